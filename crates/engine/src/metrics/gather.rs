//! Collects the metrics: adds up the counters of all workers.
//!
//! Owns the source of each metric. It reads no clock and no file; the figures of the control thread
//! are at most a second old.

use std::collections::{BTreeMap, HashMap};

use bolide_base::Now;
use bolide_conf::model::Pem;

use super::accept::MetricsFormat;
use super::exposition::{Exposition, HistogramValue, MetricFamily};
use super::families as all;
use super::process::{ClusterFigures, ProcessFigures};
use super::rows::{BOUNDS, CLASSES, PROTOCOLS, RequestSums, RowSum, server_label};
use crate::counters::{ConnProtocol, RequestTallies, TallyCount, WorkerCount};
use crate::explain::ring::{DECISION_WORDS, decision_reasons};
use crate::site::SiteRef;

/// LIMIT: reported upstream servers; names that are looked up may have many addresses.
const PEERS_MAX: usize = 1024;
/// LIMIT: reported namespaces of the cache, and certificates.
const PARTS_MAX: usize = 1024;

/// The metrics of a site, with the counters of all workers.
#[must_use]
pub fn metrics_text(
    site: &SiteRef,
    tallies: &RequestTallies,
    now: Now,
    format: MetricsFormat,
) -> Vec<u8> {
    let figures = site.figures().process().clone();
    let mut gatherer = Gatherer { out: Exposition::new(format), site, tallies, now };
    gatherer.configuration(&figures);
    gatherer.certificates(&figures);
    gatherer.cluster(&figures);
    gatherer.connections();
    gatherer.requests();
    gatherer.transport();
    gatherer.cache();
    gatherer.upstreams();
    gatherer.pools(&figures);
    gatherer.workers(&figures);
    gatherer.process(&figures);
    gatherer.out.finish()
}

struct Gatherer<'a> {
    out: Exposition,
    site: &'a SiteRef,
    tallies: &'a RequestTallies,
    now: Now,
}

impl Gatherer<'_> {
    /// A family with one sample.
    fn one(&mut self, family: &'static MetricFamily, value: u64) {
        self.out.begin(family).add([], value);
    }

    fn configuration(&mut self, figures: &ProcessFigures) {
        self.out.begin(&all::BUILD_INFO).add([env!("CARGO_PKG_VERSION").as_bytes()], 1_u64);
        self.one(&all::CONFIGURATION, figures.configuration);
        let reloads = figures.reloads;
        let mut family = self.out.begin(&all::RELOADS);
        family.add([b"success"], reloads.good).add([b"failure"], reloads.failed);
        self.one(&all::RELOAD_GOOD, u64::from(!reloads.has_failed));
        self.one(&all::RELOAD_GOOD_AT, reloads.last_good);
        self.one(&all::RELOAD_FAILED_AT, reloads.last_failed);
        self.one(&all::RELOADS_TAKEN_BACK, reloads.taken_back);
        self.one(&all::RELOAD_WATCHED, reloads.watched_until);
        let ends: BTreeMap<&str, i64> =
            figures.certificates.iter().map(|(file, end)| (&**file, *end)).collect();
        let mut by_end = BTreeMap::new();
        let http = self.site.http().into_iter();
        for (http, server) in http.flat_map(|http| http.servers.iter().map(move |one| (http, one)))
        {
            for pair in server.tls.certificates.iter() {
                let file = match &pair.chain {
                    Pem::File(file) => file.to_string_lossy().into_owned(),
                    Pem::Issued(id) => http.acme.label(*id),
                    Pem::Data(_) | Pem::Store(_) | Pem::Computed { .. } => continue,
                };
                if let Some(end) = ends.get(&*file) {
                    by_end.insert((server_label(&server.primary_name), file), *end);
                }
            }
        }
        let mut family = self.out.begin(&all::CERTIFICATES);
        for ((server, file), end) in by_end.iter().take(PARTS_MAX) {
            family.add([server.as_bytes(), file.as_bytes()], *end as f64);
        }
    }

    fn certificates(&mut self, figures: &ProcessFigures) {
        let acme = figures.acme;
        self.one(&all::ACME_ISSUED, acme.issued);
        self.one(&all::ACME_FAILED, acme.failed_attempts);
        let mut family = self.out.begin(&all::ACME_ORDERS);
        family.add([b"valid"], acme.valid).add([b"missing"], acme.missing);
        family.add([b"failing"], acme.failing).add([b"revoked"], acme.revoked);
        self.one(&all::ACME_NEXT, acme.next_attempt);
    }

    fn cluster(&mut self, figures: &ProcessFigures) {
        let cluster = figures.cluster;
        let mut one = |family, value: fn(&ClusterFigures) -> u64| {
            let mut family = self.out.begin(family);
            if let Some(cluster) = &cluster {
                family.add([], value(cluster));
            }
        };
        one(&all::CLUSTER_CONNECTED, |of| u64::from(of.is_connected));
        one(&all::CLUSTER_WAITING, |of| of.waiting);
        one(&all::CLUSTER_LOSSES, |of| of.losses);
        let mut family = self.out.begin(&all::CLUSTER_OBJECTS);
        if let Some(of) = cluster.as_ref().and_then(|cluster| cluster.objects) {
            family.add([b"asked"], of.asked).add([b"taken"], of.taken);
            family.add([b"unfit"], of.unfit).add([b"offered"], of.offered);
            family.add([b"late"], of.late);
        }
        let mut family = self.out.begin(&all::CLUSTER_PURGES);
        if let Some(cluster) = &cluster {
            family.add([b"sent"], cluster.sent).add([b"received"], cluster.received);
        }
    }

    fn connections(&mut self) {
        let Self { out, tallies, .. } = self;
        out.begin(&all::ACCEPTED).add([], tallies.sum(TallyCount::Accepted));
        out.begin(&all::HANDLED).add([], tallies.sum(TallyCount::Handled));
        let mut family = out.begin(&all::SETTLED);
        for of in ConnProtocol::ALL {
            family.add([of.word().as_bytes()], tallies.sum_of(TallyCount::Settled, of));
        }
        let mut family = out.begin(&all::CONNECTIONS);
        for of in ConnProtocol::ALL {
            for (state, count) in [
                ("active", TallyCount::Active),
                ("reading", TallyCount::Reading),
                ("writing", TallyCount::Writing),
                ("waiting", TallyCount::Waiting),
            ] {
                // The difference may be negative while a worker counts.
                let open = tallies.sum_of(count, of).cast_signed().max(0).cast_unsigned();
                family.add([of.word().as_bytes(), state.as_bytes()], open);
            }
        }
        let mut family = out.begin(&all::RECEIVED);
        for of in PROTOCOLS {
            family.add([of.word().as_bytes()], tallies.sum_of(TallyCount::Requests, of));
        }
    }

    fn requests(&mut self) {
        let Self { out, tallies, site, .. } = self;
        let names = site.figures().names();
        let mut family = out.begin(&all::REQUESTS);
        let mut servers: BTreeMap<&str, RowSum> = BTreeMap::new();
        for (at, (server, location)) in names.rows().iter().enumerate() {
            let (mut sums, of_server) =
                (RequestSums::default(), servers.entry(server).or_default());
            tallies.each().for_each(|tally| tally.rows.add(at, &mut sums, of_server));
            for (class, sums) in CLASSES.iter().zip(sums) {
                for (of, sum) in PROTOCOLS.iter().zip(sums).filter(|(_, sum)| *sum > 0) {
                    let labels = [&**server, &**location, class, of.word()].map(str::as_bytes);
                    family.add(labels, sum);
                }
            }
        }
        debug_assert!(!names.rows().is_empty(), "the first row is for what has none");
        servers.retain(|_, sum| *sum != RowSum::default());
        let servers = servers.iter().map(|(name, sum)| (name.as_bytes(), sum));
        let mut family = out.begin(&all::DURATION);
        for (name, sum) in servers.clone() {
            let seconds = sum.nanos as f64 / 1e9;
            let value = HistogramValue { bounds: &BOUNDS, counts: &sum.buckets, sum: seconds };
            family.add_histogram([name], value);
        }
        out.begin(&all::BYTES_IN).extend(servers.clone().map(|(name, sum)| ([name], sum.bytes_in)));
        out.begin(&all::BYTES_OUT).extend(servers.map(|(name, sum)| ([name], sum.bytes_out)));
    }

    fn transport(&mut self) {
        let Self { out, tallies, .. } = self;
        let mut family = out.begin(&all::HANDSHAKES);
        for (transport, version, resumed, count) in [
            ("tcp", "TLSv1.2", "no", WorkerCount::Tls12Full),
            ("tcp", "TLSv1.2", "yes", WorkerCount::Tls12Resumed),
            ("tcp", "TLSv1.3", "no", WorkerCount::Tls13Full),
            ("tcp", "TLSv1.3", "yes", WorkerCount::Tls13Resumed),
            ("quic", "TLSv1.3", "no", WorkerCount::QuicFull),
            ("quic", "TLSv1.3", "yes", WorkerCount::QuicResumed),
        ] {
            family.add([transport, version, resumed].map(str::as_bytes), tallies.total(count));
        }
        out.begin(&all::HANDSHAKES_FAILED)
            .add([b"tcp", b"refused"], tallies.total(WorkerCount::TlsRefused))
            .add([b"tcp", b"abandoned"], tallies.total(WorkerCount::TlsAbandoned))
            .add([b"quic", b"refused"], tallies.total(WorkerCount::QuicRefused))
            .add([b"quic", b"abandoned"], tallies.total(WorkerCount::QuicAbandoned));
        out.begin(&all::DATAGRAMS)
            .add([b"received"], tallies.total(WorkerCount::DatagramsIn))
            .add([b"sent"], tallies.total(WorkerCount::DatagramsOut));
        out.begin(&all::DATAGRAM_BYTES)
            .add([b"received"], tallies.total(WorkerCount::DatagramBytesIn))
            .add([b"sent"], tallies.total(WorkerCount::DatagramBytesOut));
        out.begin(&all::CLOSED_SENT).add([], tallies.total(WorkerCount::PacketsSent));
        out.begin(&all::CLOSED_LOST).add([], tallies.total(WorkerCount::PacketsLost));
        out.begin(&all::ROUND_TRIPS).add([], tallies.total(WorkerCount::RoundTrips));
        let seconds = tallies.total(WorkerCount::RoundTripMicros) as f64 / 1e6;
        out.begin(&all::ROUND_TRIP_SECONDS).add([], seconds);
    }

    fn cache(&mut self) {
        let Some(store) = self.site.store() else { return };
        let of_parts = store.namespaces().stats();
        let mut of_parts: HashMap<_, _> = of_parts.iter().map(|one| (one.id, one)).collect();
        let parts = self.site.spaces();
        let mut sums: BTreeMap<(&str, &str), [u64; 6]> = BTreeMap::new();
        for part in &parts {
            // Servers of the same name share a namespace, which is reported once.
            let Some(one) = of_parts.remove(&part.id) else { continue };
            let kind = if part.is_zone { "zone" } else { "vhost" };
            let key = (kind, server_label(&part.name));
            if sums.len() == PARTS_MAX && !sums.contains_key(&key) {
                continue;
            }
            let all = [one.hits, one.stale, one.misses, one.passes, one.bytes, one.objects];
            let sum = sums.entry(key).or_default();
            sum.iter_mut().zip(all).for_each(|(sum, one)| *sum += one);
        }
        let out = &mut self.out;
        let mut family = out.begin(&all::CACHE_REQUESTS);
        for ((kind, name), sum) in &sums {
            for (result, count) in DECISION_WORDS.iter().zip(sum) {
                let labels: [&str; 3] = [kind, name, result];
                family.add(labels.map(str::as_bytes), *count);
            }
        }
        let mut family = out.begin(&all::CACHE_DECISIONS);
        for (result, reason, count) in decision_reasons(self.tallies) {
            family.add([result.as_bytes(), reason.as_bytes()], count);
        }
        for (family, at) in [(&all::CACHE_BYTES, 4), (&all::CACHE_OBJECTS, 5)] {
            let mut family = out.begin(family);
            for ((kind, name), sum) in &sums {
                family.add([kind.as_bytes(), name.as_bytes()], sum[at]);
            }
        }
        let stats = store.stats();
        out.begin(&all::CACHE_LIMIT).add([], stats.bytes_max);
        out.begin(&all::CACHE_FILLS).add([], stats.fills);
        out.begin(&all::CACHE_LOOKUPS)
            .add([b"hit"], stats.hits)
            .add([b"stale"], stats.stale)
            .add([b"miss"], stats.misses)
            .add([b"join"], stats.joins)
            .add([b"pass"], stats.passes);
        out.begin(&all::CACHE_INSERTED).add([], stats.inserted);
        out.begin(&all::CACHE_EVICTED).add([], stats.evicted);
        out.begin(&all::CACHE_RECALLED).add([], stats.recalled);
        out.begin(&all::CACHE_PURGES).add([], stats.purges);
        out.begin(&all::MEMORY).add([b"cache"], stats.bytes).add([b"fills"], stats.filling_bytes);
    }

    fn upstreams(&mut self) {
        /// The totals of one address; a group may list it several times.
        #[derive(Default)]
        struct PeerSum {
            requests: u64,
            failures: u64,
            active: u32,
            is_up: bool,
        }
        let groups: Vec<_> = self.site.groups().iter().collect();
        let (mut peers, mut queues) = (BTreeMap::new(), BTreeMap::new());
        for group in &groups {
            if queues.len() < PEERS_MAX {
                *queues.entry(&**group.name()).or_insert(0) += group.waiting();
            }
            for peer in group.peers() {
                let key = (&**group.name(), &*peer.name);
                if peers.len() == PEERS_MAX && !peers.contains_key(&key) {
                    continue;
                }
                let (sum, health): (&mut PeerSum, _) =
                    (peers.entry(key).or_default(), peer.health());
                sum.requests += health.requests();
                sum.failures += health.failures();
                sum.active += health.conns();
                sum.is_up |= group.is_up(peer, self.now.mono);
            }
        }
        let out = &mut self.out;
        let label = |key: &(&'_ str, &'_ str)| -> [Vec<u8>; 2] { [key.0.into(), key.1.into()] };
        let labels: Vec<_> = peers.keys().map(label).collect();
        let rows = || labels.iter().map(|[group, peer]| [&**group, &**peer]).zip(peers.values());
        out.begin(&all::UPSTREAM_REQUESTS)
            .extend(rows().map(|(labels, sum)| (labels, sum.requests)));
        out.begin(&all::UPSTREAM_FAILURES)
            .extend(rows().map(|(labels, sum)| (labels, sum.failures)));
        out.begin(&all::UPSTREAM_ACTIVE).extend(rows().map(|(labels, sum)| (labels, sum.active)));
        out.begin(&all::UPSTREAM_UP).extend(rows().map(|(labels, sum)| (labels, sum.is_up)));
        out.begin(&all::UPSTREAM_QUEUE)
            .extend(queues.iter().map(|(name, waiting)| ([name.as_bytes()], *waiting)));
    }

    fn pools(&mut self, figures: &ProcessFigures) {
        let (out, pools) = (&mut self.out, &figures.pools);
        out.begin(&all::POOL_UP)
            .extend(pools.iter().map(|pool| ([pool.name.as_bytes()], pool.is_up)));
        out.begin(&all::POOL_CHILDREN)
            .extend(pools.iter().map(|pool| ([pool.name.as_bytes()], pool.children)));
        out.begin(&all::POOL_CHILDREN_MAX)
            .extend(pools.iter().map(|pool| ([pool.name.as_bytes()], pool.children_max)));
        out.begin(&all::POOL_ENDED)
            .extend(pools.iter().map(|pool| ([pool.name.as_bytes()], pool.ended)));
    }

    fn workers(&mut self, figures: &ProcessFigures) {
        let Self { out, tallies, .. } = self;
        out.begin(&all::WORKERS).add([], tallies.each().len() as u64);
        let mut family = out.begin(&all::WORKER_TURNS);
        for (number, tally) in tallies.each().enumerate() {
            family.add([number.to_string().as_bytes()], tally.read(WorkerCount::Turns));
        }
        let mut family = out.begin(&all::WORKER_LAG);
        for (number, tally) in tallies.each().enumerate() {
            let seconds = tally.read(WorkerCount::LagNanos) as f64 / 1e9;
            family.add([number.to_string().as_bytes()], seconds);
        }
        out.begin(&all::WORKER_STALLS).add([], figures.stalls);
    }

    fn process(&mut self, figures: &ProcessFigures) {
        let out = &mut self.out;
        if let Some(seconds) = figures.cpu_seconds {
            out.begin(&all::CPU).add([], seconds);
        }
        out.begin(&all::FDS).add([], figures.descriptors);
        out.begin(&all::FDS_MAX).add([], figures.descriptors_max);
        if let Some(bytes) = figures.resident_bytes {
            out.begin(&all::RESIDENT).add([], bytes);
        }
        if let Some(bytes) = figures.virtual_bytes {
            out.begin(&all::VIRTUAL).add([], bytes);
        }
        out.begin(&all::STARTED).add([], figures.started);
    }
}
