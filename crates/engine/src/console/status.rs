//! The state of the server as JSON, for `bolide status --json` and the console.
//!
//! Owns the fields, which `docs/status.md` lists; their meaning is stable within a schema. It reads
//! no clock and no file, only the counters of workers and the figures of the control thread.

use std::collections::BTreeMap;

use bolide_base::Now;

use super::doctor::{DoctorRecord, diagnose};
use crate::counters::{ConnProtocol, RequestTallies, TallyCount, WorkerCount};
use crate::explain::ring::decision_reasons;
use crate::explain::{Json, machine};
use crate::metrics::process::{
    ClusterFigures, OrderFigures, PoolFigures, ProcessFigures, SharedObjectFigures,
};
use crate::metrics::rows::{BOUNDS_NANOS, CLASSES, PROTOCOLS, RequestSums, RowSum, server_label};
use crate::metrics::slow::{SLOW_MAX, SlowRequest};
use crate::site::SiteRef;

/// The version of the schema. It changes when a field is removed or changes its meaning, not when
/// one is added.
pub const SCHEMA: u32 = 1;
/// LIMIT: reported locations, upstream servers, and certificates, each.
const PARTS_MAX: usize = 64;
/// LIMIT: decisions that the doctor examines, besides hits.
const DOCTOR_RECORDS_MAX: usize = 2048;
/// Seconds of a day.
const DAY: i64 = 86_400;

/// The source of the part about workers.
#[derive(Debug)]
pub enum StatusWorkers {
    /// The counters of workers.
    Counted,
    /// The answers of workers.
    Answered(Json),
}

/// The state of the server, from the site, the process and the counters of workers.
#[must_use]
pub fn status(site: &SiteRef, tallies: &RequestTallies, now: Now, workers: StatusWorkers) -> Json {
    let figures = site.figures().process().clone();
    let mut all = process(&figures, now);
    all.push(("reloads", reloads(&figures)));
    all.push(("connections", connections(tallies)));
    all.push(("requests", requests(site, tallies)));
    all.push(("latency", latency(site, tallies)));
    all.push(("locations", locations(site, tallies)));
    all.push(("slow", slow(tallies, now)));
    all.push(("tls", handshakes(tallies)));
    all.push(("certificates", certificates(site, &figures, now)));
    all.push(("orders", Json::list(figures.orders.iter().take(PARTS_MAX), order)));
    all.push(("cache", cache(site, tallies)));
    all.push(("cluster", figures.cluster.as_ref().map_or(Json::Null, cluster)));
    all.push(("doctor", doctor(site)));
    all.push(("upstreams", upstreams(site, now)));
    all.push(("php", Json::list(&figures.pools, pool)));
    let workers = match workers {
        StatusWorkers::Counted => counted_workers(tallies),
        StatusWorkers::Answered(workers) => workers,
    };
    all.push(("workers", workers));
    Json::Object(all)
}

fn number(number: u64) -> Json {
    Json::number(number)
}

fn maybe(number: Option<u64>) -> Json {
    number.map_or(Json::Null, Json::number)
}

fn process(figures: &ProcessFigures, now: Now) -> Vec<(&'static str, Json)> {
    let millis = |seconds: f64| (seconds * 1000.0) as u64;
    vec![
        ("schema", Json::number(SCHEMA)),
        ("version", Json::text(env!("CARGO_PKG_VERSION"))),
        ("unix_ms", number(now.unix_millis)),
        ("started_ms", number(millis(figures.started))),
        ("pid", Json::number(figures.pid)),
        ("configuration", number(figures.configuration)),
        ("descriptors", number(figures.descriptors)),
        ("descriptors_max", number(figures.descriptors_max)),
        ("resident_bytes", maybe(figures.resident_bytes)),
        ("cpu_ms", maybe(figures.cpu_seconds.map(millis))),
        ("stalls", number(figures.stalls)),
    ]
}

fn cluster(of: &ClusterFigures) -> Json {
    let objects = |of: SharedObjectFigures| {
        Json::Object(vec![
            ("answering", Json::Bool(of.is_answering)),
            ("asked", number(of.asked)),
            ("taken", number(of.taken)),
            ("unfit", number(of.unfit)),
            ("offered", number(of.offered)),
            ("late", number(of.late)),
        ])
    };
    Json::Object(vec![
        ("connected", Json::Bool(of.is_connected)),
        ("sent", number(of.sent)),
        ("waiting", number(of.waiting)),
        ("received", number(of.received)),
        ("losses", number(of.losses)),
        ("objects", of.objects.map_or(Json::Null, objects)),
    ])
}

fn reloads(figures: &ProcessFigures) -> Json {
    let reloads = figures.reloads;
    Json::Object(vec![
        ("good", number(reloads.good)),
        ("failed", number(reloads.failed)),
        ("last_good_s", number(reloads.last_good)),
        ("last_failed_s", number(reloads.last_failed)),
        ("has_failed", Json::Bool(reloads.has_failed)),
        ("errors", Json::list(&figures.reload_errors, Json::text)),
        ("taken_back", number(reloads.taken_back)),
        ("was_taken_back", Json::Bool(reloads.was_taken_back)),
        ("watched_until_s", number(reloads.watched_until)),
    ])
}

fn connections(tallies: &RequestTallies) -> Json {
    // The difference may be negative while a worker counts.
    let open = |of, count| tallies.sum_of(count, of).cast_signed().max(0).cast_unsigned();
    let one = |of: ConnProtocol| {
        Json::Object(vec![
            ("settled", number(tallies.sum_of(TallyCount::Settled, of))),
            ("active", number(open(of, TallyCount::Active))),
            ("reading", number(open(of, TallyCount::Reading))),
            ("writing", number(open(of, TallyCount::Writing))),
            ("waiting", number(open(of, TallyCount::Waiting))),
        ])
    };
    let mut all = vec![
        ("accepted", number(tallies.sum(TallyCount::Accepted))),
        ("handled", number(tallies.sum(TallyCount::Handled))),
    ];
    all.extend(ConnProtocol::ALL.map(|of| (of.word(), one(of))));
    Json::Object(all)
}

fn row(tallies: &RequestTallies, at: usize) -> RequestSums {
    let mut sums = RequestSums::default();
    tallies.each().for_each(|tally| tally.rows.add(at, &mut sums, &mut RowSum::default()));
    sums
}

fn requests(site: &SiteRef, tallies: &RequestTallies) -> Json {
    let mut all: Vec<_> =
        PROTOCOLS.map(|of| (of.word(), number(tallies.sum_of(TallyCount::Requests, of)))).into();
    let mut classes = [0; CLASSES.len()];
    let rows = site.figures().names().rows().len();
    for at in 0..rows {
        let sums = row(tallies, at);
        classes.iter_mut().zip(sums).for_each(|(all, sums)| *all += sums.iter().sum::<u64>());
    }
    let classes = CLASSES.into_iter().zip(classes.map(number)).collect();
    all.push(("classes", Json::Object(classes)));
    all.push(("is_counted", Json::Bool(site.counts_requests())));
    Json::Object(all)
}

fn latency(site: &SiteRef, tallies: &RequestTallies) -> Json {
    let mut sum = RowSum::default();
    let rows = site.figures().names().rows().len();
    for at in 0..rows {
        tallies.each().for_each(|tally| tally.rows.add(at, &mut RequestSums::default(), &mut sum));
    }
    debug_assert!(sum.buckets.len() == BOUNDS_NANOS.len() + 1, "the last bucket has no bound");
    Json::Object(vec![
        ("bounds_us", Json::list(BOUNDS_NANOS, |bound| number(bound / 1000))),
        ("counts", Json::list(sum.buckets, number)),
        ("sum_us", number(sum.nanos / 1000)),
        ("bytes_in", number(sum.bytes_in)),
        ("bytes_out", number(sum.bytes_out)),
    ])
}

fn locations(site: &SiteRef, tallies: &RequestTallies) -> Json {
    let names = site.figures().names();
    let mut all: Vec<_> = (names.rows().iter().enumerate())
        .map(|(at, name)| (name, row(tallies, at)))
        .map(|(name, sums)| (name, sums, sums.iter().flatten().sum::<u64>()))
        .filter(|(.., sum)| *sum > 0)
        .collect();
    all.sort_by_key(|(.., sum)| std::cmp::Reverse(*sum));
    all.truncate(PARTS_MAX);
    let of_class = |sums: &RequestSums, class: &str| {
        let at = CLASSES.iter().position(|known| *known == class);
        number(at.map_or(0, |at| sums[at].iter().sum()))
    };
    Json::list(&all, |((server, location), sums, sum)| {
        Json::Object(vec![
            ("server", Json::text(&**server)),
            ("location", Json::text(&**location)),
            ("requests", number(*sum)),
            ("4xx", of_class(sums, "4xx")),
            ("5xx", of_class(sums, "5xx")),
        ])
    })
}

fn slow(tallies: &RequestTallies, now: Now) -> Json {
    let mut all: Vec<SlowRequest> = Vec::new();
    tallies.each().for_each(|tally| tally.slow.add_to(&mut all, now.unix_millis));
    all.sort_by_key(|one| std::cmp::Reverse(one.micros));
    all.truncate(SLOW_MAX);
    Json::list(&all, |one| {
        Json::Object(vec![
            ("unix_ms", number(one.at_ms)),
            ("duration_us", number(one.micros)),
            ("status", Json::number(one.status)),
            ("protocol", Json::text(one.protocol.word())),
            ("method", Json::text(&one.method)),
            ("host", Json::text(&one.host)),
            ("target", Json::text(&one.target)),
            ("request_id", Json::text(format!("{:016x}{:016x}", one.id[0], one.id[1]))),
        ])
    })
}

fn handshakes(tallies: &RequestTallies) -> Json {
    let sum = |all: &[WorkerCount]| number(all.iter().map(|one| tallies.total(*one)).sum());
    use WorkerCount as Of;
    Json::Object(vec![
        ("tls12", sum(&[Of::Tls12Full, Of::Tls12Resumed])),
        ("tls13", sum(&[Of::Tls13Full, Of::Tls13Resumed])),
        ("quic", sum(&[Of::QuicFull, Of::QuicResumed])),
        ("resumed", sum(&[Of::Tls12Resumed, Of::Tls13Resumed, Of::QuicResumed])),
        ("failed", sum(&[Of::TlsRefused, Of::TlsAbandoned, Of::QuicRefused, Of::QuicAbandoned])),
    ])
}

fn certificates(site: &SiteRef, figures: &ProcessFigures, now: Now) -> Json {
    let ends: BTreeMap<&str, i64> =
        figures.certificates.iter().map(|(file, end)| (&**file, *end)).collect();
    let mut by_end = BTreeMap::new();
    for server in site.http().into_iter().flat_map(|http| &http.servers) {
        for pair in server.tls.certificates.iter() {
            let bolide_conf::model::Pem::File(file) = &pair.chain else { continue };
            let file = file.to_string_lossy().into_owned();
            if let Some(end) = ends.get(&*file) {
                by_end.insert((*end, server_label(&server.primary_name), file), *end);
            }
        }
    }
    let seconds = i64::try_from(now.unix_seconds()).unwrap_or(i64::MAX);
    Json::list(by_end.keys().take(PARTS_MAX), |(end, server, file)| {
        Json::Object(vec![
            ("server", Json::text(server)),
            ("file", Json::text(file)),
            ("not_after_s", Json::number(*end)),
            ("days_left", Json::number((end - seconds).div_euclid(DAY))),
        ])
    })
}

fn order(of: &OrderFigures) -> Json {
    Json::Object(vec![
        ("names", Json::list(of.names.iter().take(PARTS_MAX), Json::text)),
        ("issuer", Json::text(&of.issuer)),
        ("expires_s", maybe(of.expires)),
        ("next_attempt_s", number(of.next_attempt)),
        ("is_ordering", Json::Bool(of.is_ordering)),
        ("failures", Json::number(of.failures)),
        ("last_error", of.last_error.as_ref().map_or(Json::Null, Json::text)),
        ("revoked", of.revoked.map_or(Json::Null, Json::text)),
    ])
}

fn cache(site: &SiteRef, tallies: &RequestTallies) -> Json {
    let Some(store) = site.store() else { return Json::Null };
    let Json::Object(mut all) = machine::stats(store, &site.spaces()) else { return Json::Null };
    let reasons = decision_reasons(tallies).map(|(result, reason, count)| {
        Json::Object(vec![
            ("result", Json::text(result)),
            ("reason", Json::text(reason)),
            ("requests", number(count)),
        ])
    });
    all.push(("reasons", Json::List(reasons.collect())));
    Json::Object(all)
}

/// The doctor's findings about recent decisions of all workers.
fn doctor(site: &SiteRef) -> Json {
    let Some(store) = site.store() else { return Json::Null };
    let spaces = site.spaces();
    let (mut records, mut all) = (Vec::new(), 0_u64);
    store.decisions(|noted| {
        let Some(at) = spaces.iter().position(|space| space.id == noted.namespace) else { return };
        all += 1;
        let record = DoctorRecord::new(noted, at, spaces[at].is_zone);
        if !record.is_hit && records.len() < DOCTOR_RECORDS_MAX {
            records.push(record);
        }
    });
    Json::list(diagnose(&records), |found| {
        let space = spaces.get(found.space);
        Json::Object(vec![
            ("space", space.map_or(Json::Null, |space| Json::text(&space.name))),
            ("pattern", Json::text(&found.pattern)),
            ("reason", Json::text(found.why.word())),
            ("refusal", found.refusal.map_or(Json::Null, |refusal| Json::text(refusal.reason()))),
            ("requests", number(found.requests)),
            ("of_requests", number(all)),
            ("waited_ms", number(found.millis)),
            ("why", Json::text(found.remedy.why)),
            ("remedy", Json::text(found.remedy.text)),
            ("directives", Json::list(found.remedy.directives, Json::text)),
        ])
    })
}

fn upstreams(site: &SiteRef, now: Now) -> Json {
    let mut left = PARTS_MAX;
    let mut all = Vec::new();
    for group in site.groups().iter() {
        let peers: Vec<Json> = group
            .peers()
            .iter()
            .take(left)
            .map(|peer| {
                let health = peer.health();
                Json::Object(vec![
                    ("name", Json::text(&*peer.name)),
                    ("is_up", Json::Bool(group.is_up(peer, now.mono))),
                    ("active", Json::number(health.conns())),
                    ("requests", number(health.requests())),
                    ("failures", number(health.failures())),
                ])
            })
            .collect();
        left -= peers.len();
        all.push(Json::Object(vec![
            ("name", Json::text(&**group.name())),
            ("queued", Json::number(group.waiting())),
            ("peers", Json::List(peers)),
        ]));
        if left == 0 {
            break;
        }
    }
    Json::List(all)
}

fn pool(of: &PoolFigures) -> Json {
    Json::Object(vec![
        ("name", Json::text(&of.name)),
        ("state", Json::text(of.state)),
        ("pid", of.pid.map_or(Json::Null, Json::number)),
        ("children", number(of.children)),
        ("children_max", number(of.children_max)),
        ("seconds", number(of.seconds)),
        ("ended", number(of.ended)),
        ("finishing", number(of.finishing)),
    ])
}

fn counted_workers(tallies: &RequestTallies) -> Json {
    Json::list(tallies.each().enumerate(), |(worker, tally)| {
        Json::Object(vec![
            ("worker", number(worker as u64)),
            ("turns", number(tally.read(WorkerCount::Turns))),
            ("lag_us", number(tally.read(WorkerCount::LagNanos) / 1000)),
        ])
    })
}
