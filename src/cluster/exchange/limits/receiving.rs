//! Reports of limits from other servers: each is charged once, while it is new; and the requests
//! that they have in progress.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_base::Now;
use bolide_cluster::{LimitReport, ReportKind, ReportZone};
use bolide_engine::LimitZone;

use super::ZoneName;
use super::reporting::kind;

/// LIMIT: the difference between the time of a report and the receiver's time, in milliseconds.
pub(super) const AGE_MAX_MS: u64 = 60_000;
/// After this silence, no requests count as in progress on a server, in milliseconds.
const SILENCE_MS: u64 = 5000;
/// LIMIT: processes whose last reports are stored; others are ignored until one is dropped.
const LIVES_MAX: usize = 1024;
/// LIMIT: servers and zones with requests in progress, and the total of their keys and bytes.
const PEERS_MAX: usize = 1024;
const PEER_KEYS_MAX: usize = 65_536;
const PEER_BYTES_MAX: usize = 16 << 20;

/// The last report of each process. It survives connections, so that no report is charged again on
/// the next one.
#[derive(Debug, Default)]
pub(super) struct LastReports(HashMap<(Box<[u8]>, u64), LastReport>);

#[derive(Debug)]
struct LastReport {
    number: u64,
    received_ms: u64,
}

impl LastReports {
    /// Whether a report is new: it has about the current time, and follows the last one of its
    /// process.
    fn admits(&mut self, report: &LimitReport<'_>, now: Now) -> bool {
        if report.unix_ms.abs_diff(now.unix_millis) > AGE_MAX_MS {
            return false;
        }
        let now_ms = mono_ms(now);
        let from = (report.node.into(), report.life);
        if let Some(last) = self.0.get_mut(&from) {
            let is_new = report.number > last.number;
            if is_new {
                *last = LastReport { number: report.number, received_ms: now_ms };
            }
            return is_new;
        }
        if self.0.len() >= LIVES_MAX {
            // Their reports are too old by now, even if their clocks were ahead.
            self.0.retain(|_, last| now_ms.saturating_sub(last.received_ms) <= 2 * AGE_MAX_MS);
        }
        let is_room = self.0.len() < LIVES_MAX;
        if is_room {
            self.0.insert(from, LastReport { number: report.number, received_ms: now_ms });
        }
        is_room
    }
}

/// The requests of a server in progress, for one zone.
#[derive(Debug)]
struct Held {
    keys: HashMap<Box<[u8]>, u32>,
    received_ms: u64,
}

impl Held {
    fn bytes(&self) -> usize {
        self.keys.keys().map(|key| key.len()).sum()
    }
}

/// The state of other servers, for one connection.
#[derive(Debug, Default)]
pub(super) struct LimitReceiving {
    held: HashMap<(Box<[u8]>, u64, ZoneName), Held>,
    /// Zones whose sums have changed.
    changed: Vec<ZoneName>,
}

impl LimitReceiving {
    /// Charges a report of another process. Returns whether it was new.
    pub(super) fn apply(
        &mut self,
        report: &LimitReport<'_>,
        zones: &[Arc<LimitZone>],
        last_reports: &mut LastReports,
        now: Now,
    ) -> bool {
        if !last_reports.admits(report, now) {
            return false;
        }
        for reported in &report.zones {
            // A zone of an older configuration with running requests is a separate one.
            let is_reported = |zone: &&Arc<LimitZone>| {
                kind(zone) == reported.kind
                    && (zone.name(), zone.key_text()) == (reported.name, reported.key_text)
            };
            let mut matching = zones.iter().filter(is_reported);
            match reported.kind {
                ReportKind::Counted => matching.for_each(|zone| {
                    for (key, count) in &reported.keys {
                        zone.charge_elsewhere(key, (*count).into(), mono_ms(now));
                    }
                }),
                ReportKind::Held => {
                    if let Some(zone) = matching.next() {
                        self.hold(report, reported, ZoneName::of(zone), mono_ms(now));
                    }
                }
            }
        }
        true
    }

    fn hold(
        &mut self,
        report: &LimitReport<'_>,
        reported: &ReportZone<'_>,
        zone: ZoneName,
        now_ms: u64,
    ) {
        let from = (report.node.into(), report.life, zone.clone());
        let before = self.held.remove(&from).map(|held| held.keys).unwrap_or_default();
        let keys = reported.keys.iter().map(|(key, count)| ((*key).into(), *count)).collect();
        let mut held = Held { keys, received_ms: now_ms };
        let known = self.held.values().map(|held| held.keys.len()).sum::<usize>();
        let bytes = self.held.values().map(Held::bytes).sum::<usize>();
        let is_room = known + held.keys.len() <= PEER_KEYS_MAX
            && bytes + held.bytes() <= PEER_BYTES_MAX
            && self.held.len() < PEERS_MAX;
        if !is_room {
            held.keys.clear();
        }
        if before != held.keys {
            self.mark_changed(zone);
        }
        if !held.keys.is_empty() {
            self.held.insert(from, held);
        }
    }

    /// The sums of a zone are not up to date.
    pub(super) fn mark_changed(&mut self, zone: ZoneName) {
        if !self.changed.contains(&zone) {
            self.changed.push(zone);
        }
    }

    /// Drops silent servers, and updates the sums of zones.
    pub(super) fn settle(&mut self, zones: &[Arc<LimitZone>], now: Now) {
        let is_silent = |held: &Held| mono_ms(now).saturating_sub(held.received_ms) >= SILENCE_MS;
        let silent = self.held.iter().filter(|(_, held)| is_silent(held));
        let silent: Vec<_> = silent.map(|((_, _, zone), _)| zone.clone()).collect();
        silent.into_iter().for_each(|zone| self.mark_changed(zone));
        self.held.retain(|_, held| !is_silent(held));
        for name in self.changed.drain(..) {
            let mut sums: HashMap<Box<[u8]>, u32> = HashMap::new();
            let of_zone = self.held.iter().filter(|((_, _, zone), _)| *zone == name);
            for (key, count) in of_zone.flat_map(|(_, held)| &held.keys) {
                let sum = sums.entry(key.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
            let is_it =
                |zone: &&Arc<LimitZone>| !zone.counts_requests() && ZoneName::of(zone) == name;
            zones.iter().filter(is_it).for_each(|zone| zone.set_held_elsewhere(sums.clone()));
        }
    }
}

const fn mono_ms(now: Now) -> u64 {
    now.mono.as_nanos() / 1_000_000
}
