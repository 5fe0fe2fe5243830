//! Selects the reports of limits that this server sends, and their order.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use bolide_cluster::ReportKind;
use bolide_engine::{LimitZone, ReportRoom};

use super::ZoneName;

/// How often requests in progress are reported again, in milliseconds.
const AGAIN_MS: u64 = 1000;
/// LIMIT: keys in progress per zone, and counted keys per report; a report has keys of one zone.
const HELD_MAX: usize = 4096;
const COUNTED_MAX: usize = 2048;
/// LIMIT: bytes of keys and numbers in a report. The number of reports that others read at once is
/// far smaller than the read limit of a connection.
pub(super) const REPORT_BYTES: usize = 128 << 10;
/// LIMIT: reports per tick, and their bytes. The rest is reported later.
const REPORTS_MAX: usize = 32;
const TICK_BYTES: usize = 1 << 20;

/// Keys with numbers of requests.
type Keys = Vec<(Arc<[u8]>, u32)>;

/// The content of one report.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: ReportKind,
    pub(super) zone: ZoneName,
    pub(super) keys: Keys,
    /// Bytes of the keys and numbers.
    bytes: usize,
}

/// The last sent report of a zone.
#[derive(Debug)]
struct Reported {
    keys: Keys,
    at_ms: u64,
}

/// Zones of one name, kind and key: that of this configuration, and those of older ones with
/// running requests. Others treat them as one.
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
    /// Sets the current zones. Counts of new ones from before are not reported; returns their
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

/// The reports sent on one connection.
#[derive(Debug, Default)]
pub(super) struct LimitReporting {
    reported: HashMap<ZoneName, Reported>,
    /// The zone whose turn it is (round robin).
    first: usize,
}

impl LimitReporting {
    /// The reports to send now: zones take turns, across ticks as well, and counts are taken out of
    /// them.
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

    /// The requests in progress, if others do not know them for certain.
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
