//! Which reports of limits this server sends: which zones have counts to report, and in what order.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use bolide_cluster::ReportKind;
use bolide_engine::{LimitZone, ReportRoom};

use super::ZoneName;

/// How often those are reported again that are in work, in milliseconds.
const AGAIN_MS: u64 = 1000;
/// LIMIT: keys in work that are reported, of each zone, and keys counted, in each report; a report
/// has them of one zone.
const HELD_MAX: usize = 4096;
const COUNTED_MAX: usize = 2048;
/// LIMIT: bytes of keys and numbers in a report. As many reports as others read at once are far
/// smaller than what a connection reads at once.
pub(super) const REPORT_BYTES: usize = 128 << 10;
/// LIMIT: reports of a tick, and their bytes. What is counted beyond them is in later ones.
const REPORTS_MAX: usize = 32;
const TICK_BYTES: usize = 1 << 20;

/// Keys with numbers of requests.
type Keys = Vec<(Arc<[u8]>, u32)>;

/// What one report says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: ReportKind,
    pub(super) zone: ZoneName,
    pub(super) keys: Keys,
    /// Bytes of the keys and numbers.
    bytes: usize,
}

/// The last report of a zone that this server has sent.
#[derive(Debug)]
struct Reported {
    keys: Keys,
    at_ms: u64,
}

/// Zones of one name, kind and key: that of this configuration, and those of older ones that still
/// have requests. Others know them as one.
#[derive(Debug)]
struct Unit<'a> {
    name: ZoneName,
    kind: ReportKind,
    zones: Vec<&'a LimitZone>,
}

fn units(zones: &[Arc<LimitZone>]) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    for zone in zones {
        let (name, kind) = (ZoneName::of(zone), kind(zone));
        match units.iter_mut().find(|unit| unit.kind == kind && unit.name == name) {
            Some(unit) => unit.zones.push(zone),
            None => units.push(Unit { name, kind, zones: vec![zone] }),
        }
    }
    units
}

pub(super) const fn kind(zone: &LimitZone) -> ReportKind {
    if zone.counts_requests() { ReportKind::Counted } else { ReportKind::Held }
}

/// Zones whose counts are reported while this value exists. It holds no strong reference, so a
/// zone is freed with its configuration.
#[derive(Debug, Default)]
pub(super) struct ReportedZones(Vec<Weak<LimitZone>>);

impl ReportedZones {
    /// The zones of now. Of those that are new, what was counted before is not reported; their
    /// names.
    pub(super) fn turn(&mut self, now: &[Arc<LimitZone>]) -> Vec<ZoneName> {
        let is_known = |zone: &&Arc<LimitZone>| {
            self.0.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(zone)))
        };
        let fresh: Vec<_> = now.iter().filter(|zone| !is_known(zone)).collect();
        fresh.iter().for_each(|zone| zone.share(true));
        let names = fresh.iter().map(|zone| ZoneName::of(zone)).collect();
        self.0 = now.iter().map(Arc::downgrade).collect();
        names
    }
}

impl Drop for ReportedZones {
    fn drop(&mut self) {
        self.0.iter().filter_map(Weak::upgrade).for_each(|zone| zone.share(false));
    }
}

/// What was reported on one connection.
#[derive(Debug, Default)]
pub(super) struct LimitReporting {
    reported: HashMap<ZoneName, Reported>,
    /// Whose turn it is.
    first: usize,
}

impl LimitReporting {
    /// What is to be reported now: zones take turns, over ticks as well, and what is taken of
    /// them is in the reports.
    pub(super) fn tick(&mut self, zones: &[Arc<LimitZone>], now_ms: u64) -> Vec<Part> {
        let units = units(zones);
        self.reported.retain(|name, _| units.iter().any(|unit| unit.name == *name));
        let (mut parts, mut left, mut silent) = (Vec::new(), TICK_BYTES, 0);
        while silent < units.len() && parts.len() < REPORTS_MAX && left >= REPORT_BYTES {
            self.first %= units.len();
            let unit = &units[self.first];
            self.first += 1;
            let part = match unit.kind {
                ReportKind::Counted => unit.counted(),
                ReportKind::Held => self.held(unit, now_ms),
            };
            match part {
                Some(part) => {
                    left -= part.bytes;
                    parts.push(part);
                    silent = 0;
                }
                None => silent += 1,
            }
        }
        parts
    }

    /// What is in work, if others do not know it, or not for certain.
    fn held(&mut self, unit: &Unit<'_>, now_ms: u64) -> Option<Part> {
        let mut room = ReportRoom { keys: HELD_MAX, bytes: REPORT_BYTES };
        let mut sums: BTreeMap<Arc<[u8]>, u64> = BTreeMap::new();
        for (key, count) in unit.zones.iter().flat_map(|zone| zone.held(&mut room)) {
            *sums.entry(key).or_default() += count;
        }
        let keys: Keys = sums.into_iter().map(|(key, count)| (key, least(count))).collect();
        let is_due = match self.reported.get(&unit.name) {
            None => !keys.is_empty(),
            Some(reported) => {
                let is_old = now_ms.saturating_sub(reported.at_ms) >= AGAIN_MS;
                reported.keys != keys || !keys.is_empty() && is_old
            }
        };
        is_due.then(|| {
            let reported = Reported { keys: keys.clone(), at_ms: now_ms };
            self.reported.insert(unit.name.clone(), reported);
            Part::new(unit, keys, room)
        })
    }
}

impl Unit<'_> {
    fn counted(&self) -> Option<Part> {
        let mut room = ReportRoom { keys: COUNTED_MAX, bytes: REPORT_BYTES };
        let counted = self.zones.iter().flat_map(|zone| zone.take_unsent(&mut room));
        let keys: Keys = counted.map(|(key, count)| (key, least(count))).collect();
        (!keys.is_empty()).then(|| Part::new(self, keys, room))
    }
}

impl Part {
    fn new(unit: &Unit<'_>, keys: Keys, left: ReportRoom) -> Self {
        Self { kind: unit.kind, zone: unit.name.clone(), keys, bytes: REPORT_BYTES - left.bytes }
    }
}

fn least(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
