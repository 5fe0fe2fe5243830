//! What other servers of a cluster count by the same keys.
//!
//! Each server reports how many requests of a key it has counted, and charges the requests that
//! other servers report as if they had arrived here. So the excess of a key becomes the same on all
//! servers, and together they follow the rate; requests that passed before a report arrived are
//! paid off later.
//! INVARIANT: what comes from elsewhere makes a zone stricter only, and displaces nothing of its
//! own: a key that has not been here is in a table beside it, as large as the zone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bolide_conf::model::{LimitKind, LimitZone};

use crate::{LimitRecord, Records, Zone, make};

/// LIMIT: keys whose requests wait to be reported, and their bytes. Those of further ones are not.
const UNSENT_MAX: usize = 65_536;
const UNSENT_BYTES_MAX: usize = 8 << 20;
/// LIMIT: bytes of a key that is reported to other servers.
pub const REPORTED_KEY_MAX: usize = 4096;
/// Bytes of a key in a report, beside its own.
const KEY_HEAD: usize = 6;
/// LIMIT: for how many seconds of its rate a key may be charged from elsewhere, whatever others
/// say.
const CHARGED_MAX: u64 = 3600;

/// Keys with numbers of requests, as a report has them.
pub type ReportedKeys = Vec<(Arc<[u8]>, u64)>;
/// Requests in work on other servers, by key.
pub type HeldThere = HashMap<Box<[u8]>, u32>;

/// How much of a zone fits into a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportRoom {
    /// Keys.
    pub keys: usize,
    /// Bytes of keys and numbers.
    pub bytes: usize,
}

impl ReportRoom {
    /// Takes the room of a key, if it is there.
    pub fn take(&mut self, key: &[u8]) -> bool {
        let bytes = key.len() + KEY_HEAD;
        let is_there = self.keys > 0 && bytes <= self.bytes;
        if is_there {
            (self.keys, self.bytes) = (self.keys - 1, self.bytes - bytes);
        }
        is_there
    }
}

/// Requests that were counted here since the last report, the key that waits longest first.
#[derive(Debug, Default)]
struct UnsentRequests {
    counts: HashMap<Arc<[u8]>, u64>,
    order: VecDeque<Arc<[u8]>>,
    /// Bytes of the keys.
    bytes: usize,
}

impl UnsentRequests {
    fn note(&mut self, key: &Arc<[u8]>) {
        if let Some(count) = self.counts.get_mut(key) {
            *count += 1;
            return;
        }
        let bytes = self.bytes + key.len();
        let is_room = self.counts.len() < UNSENT_MAX && bytes <= UNSENT_BYTES_MAX;
        if is_room && key.len() <= REPORTED_KEY_MAX {
            self.bytes = bytes;
            self.counts.insert(key.clone(), 1);
            self.order.push_back(key.clone());
        }
    }

    fn take(&mut self, room: &mut ReportRoom) -> ReportedKeys {
        let mut taken = ReportedKeys::new();
        while self.order.front().is_some_and(|key| room.take(key)) {
            let Some(key) = self.order.pop_front() else { break };
            self.bytes -= key.len();
            let count = self.counts.remove(&key).unwrap_or(0);
            taken.push((key, count));
        }
        taken
    }
}

/// What others count.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// Keys that have not been here.
    owed: Records,
    /// In thousandths per second.
    rate: u64,
    held: HeldThere,
    unsent: UnsentRequests,
    /// Whether what is unsent is taken.
    is_reported: bool,
}

impl Elsewhere {
    pub(crate) fn new(size: u64, record_size: u64) -> Self {
        Self {
            owed: Records::new(size, record_size),
            rate: 0,
            held: HeldThere::new(),
            unsent: UnsentRequests::default(),
            is_reported: false,
        }
    }
}

impl LimitRecord {
    /// Charges requests from elsewhere. They may owe what the rate pays off in [`CHARGED_MAX`].
    fn charge_more(&mut self, requests: u64, rate: u64, now_ms: u64) {
        let Some(others) = requests.checked_sub(1) else { return };
        let first = self.with_one_more(rate, now_ms);
        let own = first.saturating_sub(1000);
        let most = rate.saturating_mul(CHARGED_MAX).max(own);
        self.charge(first.saturating_add(others.saturating_mul(1000)).min(most), now_ms);
    }
}

impl Records {
    /// The excess of a key that has not been here, with one request more.
    pub(crate) fn owed_elsewhere(&self, key: &[u8], rate: u64, now_ms: u64) -> u64 {
        let Some(elsewhere) = &self.elsewhere else { return 0 };
        let at = elsewhere.owed.index.get(key);
        at.map_or(0, |at| elsewhere.owed.all[*at as usize].with_one_more(rate, now_ms))
    }

    /// A new record takes over what its key owes elsewhere.
    pub(crate) fn move_in(&mut self, at: u32) {
        let Some(elsewhere) = &mut self.elsewhere else { return };
        let record = &mut self.all[at as usize];
        if let Some(there) = elsewhere.owed.index.get(&record.key).copied() {
            let known = &elsewhere.owed.all[there as usize];
            (record.last_ms, record.excess) = (known.last_ms, known.excess);
            elsewhere.owed.remove(there);
        }
    }

    /// A request was counted, which is to be reported.
    pub(crate) fn note_charged(&mut self, at: u32) {
        let Some(elsewhere) = &mut self.elsewhere else { return };
        if !elsewhere.is_reported {
            return;
        }
        elsewhere.unsent.note(&self.all[at as usize].key);
    }

    /// How many requests of a key are in work elsewhere.
    pub(crate) fn held_elsewhere(&self, key: &[u8]) -> u32 {
        let elsewhere = self.elsewhere.as_ref();
        elsewhere.and_then(|elsewhere| elsewhere.held.get(key)).copied().unwrap_or(0)
    }
}

/// What the thread of a cluster does with zones that are shared; with others it does nothing.
impl Zone {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The key as written: zones that count by different ones have nothing in common.
    #[must_use]
    pub fn key_text(&self) -> &[u8] {
        &self.key_text
    }

    /// Whether it counts requests over time, and not those in work.
    #[must_use]
    pub const fn counts_requests(&self) -> bool {
        self.counts_requests
    }

    /// What others count is paid off by the rate of `conf` from now on.
    pub fn set_rate(&self, conf: &LimitZone) {
        if let (LimitKind::Requests { rate }, Some(elsewhere)) =
            (conf.kind, &mut self.lock().elsewhere)
        {
            elsewhere.rate = rate;
        }
    }

    /// Starts or stops recording requests for reports. Requests in work on other servers are
    /// forgotten; the excess of keys is paid off.
    pub fn share(&self, is_reported: bool) {
        let mut records = self.lock();
        let Some(elsewhere) = &mut records.elsewhere else { return };
        elsewhere.is_reported = is_reported;
        let before = (std::mem::take(&mut elsewhere.unsent), std::mem::take(&mut elsewhere.held));
        drop(records);
        drop(before);
    }

    /// Takes what has not been reported yet, as far as there is room for it.
    #[must_use]
    pub fn take_unsent(&self, room: &mut ReportRoom) -> ReportedKeys {
        let mut records = self.lock();
        records.elsewhere.as_mut().map(|it| it.unsent.take(room)).unwrap_or_default()
    }

    /// Others have counted requests of a key.
    pub fn charge_elsewhere(&self, key: &[u8], requests: u64, now_ms: u64) {
        let mut records = self.lock();
        let known = records.index.get(key).copied();
        let records = &mut *records;
        let Some(elsewhere) = &mut records.elsewhere else { return };
        let rate = elsewhere.rate;
        let record = match known {
            Some(at) => records.all.get_mut(at as usize),
            None => {
                let owed = &mut elsewhere.owed;
                let at = owed.index.get(key).copied();
                if let Some(at) = at {
                    owed.unlink(at);
                    owed.link(at);
                }
                let at = at.or_else(|| make(owed, key, rate, now_ms));
                at.and_then(|at| owed.all.get_mut(at as usize))
            }
        };
        if let Some(record) = record {
            record.charge_more(requests, rate, now_ms);
        }
    }

    /// The requests in work here, of the keys that there is room for.
    #[must_use]
    pub fn held(&self, room: &mut ReportRoom) -> ReportedKeys {
        let records = self.lock();
        let of = |(key, at): (&Arc<[u8]>, &u32)| (key.clone(), records.all[*at as usize].count);
        let held = records.index.iter().map(of);
        let reported = held.filter(|(key, count)| *count > 0 && key.len() <= REPORTED_KEY_MAX);
        let reported = reported.take_while(|(key, _)| room.take(key));
        reported.map(|(key, count)| (key, count.into())).collect()
    }

    /// The requests in work on all other servers.
    pub fn set_held_elsewhere(&self, held: HeldThere) {
        let mut records = self.lock();
        let Some(elsewhere) = &mut records.elsewhere else { return };
        let before = std::mem::replace(&mut elsewhere.held, held);
        drop(records);
        drop(before);
    }
}

#[cfg(test)]
mod tests;
