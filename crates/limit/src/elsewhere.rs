//! The counts of other servers in a cluster, by the same keys.
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

/// LIMIT: keys whose counts wait to be reported, and their bytes. Further ones are not reported.
const UNSENT_MAX: usize = 65_536;
const UNSENT_BYTES_MAX: usize = 8 << 20;
/// LIMIT: bytes of a key that is reported to other servers.
pub const REPORTED_KEY_MAX: usize = 4096;
/// Bytes of a key in a report, besides its own.
const KEY_HEAD: usize = 6;
/// LIMIT: the charge of a key from other servers, in seconds of its rate.
const CHARGED_MAX: u64 = 3600;

/// Keys with numbers of requests, as in reports.
pub type ReportedKeys = Vec<(Arc<[u8]>, u64)>;
/// Requests in progress on other servers, by key.
pub type HeldThere = HashMap<Box<[u8]>, u32>;

/// The room in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportRoom {
    /// Keys.
    pub keys: usize,
    /// Bytes of keys and numbers.
    pub bytes: usize,
}

impl ReportRoom {
    /// Takes the room of a key, if there is enough.
    pub fn take(&mut self, key: &[u8]) -> bool {
        let bytes = key.len() + KEY_HEAD;
        let is_there = self.keys > 0 && bytes <= self.bytes;
        if is_there {
            (self.keys, self.bytes) = (self.keys - 1, self.bytes - bytes);
        }
        is_there
    }
}

/// Requests that were counted here since the last report, the longest waiting key first.
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

/// The counts of other servers.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// Keys without a record of their own here.
    owed: Records,
    /// In thousandths per second.
    rate: u64,
    held: HeldThere,
    unsent: UnsentRequests,
    /// Whether unsent counts are collected.
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
    /// Charges requests of other servers; the excess is at most [`CHARGED_MAX`] of the rate.
    fn charge_more(&mut self, requests: u64, rate: u64, now_ms: u64) {
        let Some(others) = requests.checked_sub(1) else { return };
        let first = self.with_one_more(rate, now_ms);
        let own = first.saturating_sub(1000);
        let most = rate.saturating_mul(CHARGED_MAX).max(own);
        self.charge(first.saturating_add(others.saturating_mul(1000)).min(most), now_ms);
    }
}

impl Records {
    /// The excess of a key without a record here, with one request more.
    pub(crate) fn owed_elsewhere(&self, key: &[u8], rate: u64, now_ms: u64) -> u64 {
        let Some(elsewhere) = &self.elsewhere else { return 0 };
        let at = elsewhere.owed.index.get(key);
        at.map_or(0, |at| elsewhere.owed.all[*at as usize].with_one_more(rate, now_ms))
    }

    /// A new record takes over the excess of its key from other servers.
    pub(crate) fn move_in(&mut self, at: u32) {
        let Some(elsewhere) = &mut self.elsewhere else { return };
        let record = &mut self.all[at as usize];
        if let Some(there) = elsewhere.owed.index.get(&record.key).copied() {
            let known = &elsewhere.owed.all[there as usize];
            (record.last_ms, record.excess) = (known.last_ms, known.excess);
            elsewhere.owed.remove(there);
        }
    }

    /// Records a counted request, which has to be reported.
    pub(crate) fn record_charge(&mut self, at: u32) {
        let Some(elsewhere) = &mut self.elsewhere else { return };
        if !elsewhere.is_reported {
            return;
        }
        elsewhere.unsent.note(&self.all[at as usize].key);
    }

    /// The number of requests with a key in progress on other servers.
    pub(crate) fn held_elsewhere(&self, key: &[u8]) -> u32 {
        let elsewhere = self.elsewhere.as_ref();
        elsewhere.and_then(|elsewhere| elsewhere.held.get(key)).copied().unwrap_or(0)
    }
}

/// The interface for a cluster's thread; it has no effect on zones that are not shared.
impl Zone {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The key as written: zones with different ones have nothing in common.
    #[must_use]
    pub fn key_text(&self) -> &[u8] {
        &self.key_text
    }

    /// Whether it is a zone of `limit_req`, not of `limit_conn`.
    #[must_use]
    pub const fn counts_requests(&self) -> bool {
        self.counts_requests
    }

    /// The counts of other servers are drained at the rate of `conf` from now on.
    pub fn set_rate(&self, conf: &LimitZone) {
        if let (LimitKind::Requests { rate }, Some(elsewhere)) =
            (conf.kind, &mut self.lock().elsewhere)
        {
            elsewhere.rate = rate;
        }
    }

    /// Starts or stops recording requests for reports. Requests in progress on other servers are
    /// dropped; the excess of keys is drained.
    pub fn share(&self, is_reported: bool) {
        let mut records = self.lock();
        let Some(elsewhere) = &mut records.elsewhere else { return };
        elsewhere.is_reported = is_reported;
        let before = (std::mem::take(&mut elsewhere.unsent), std::mem::take(&mut elsewhere.held));
        drop(records);
        drop(before);
    }

    /// Takes unreported counts, as far as there is room.
    #[must_use]
    pub fn take_unsent(&self, room: &mut ReportRoom) -> ReportedKeys {
        let mut records = self.lock();
        records.elsewhere.as_mut().map(|it| it.unsent.take(room)).unwrap_or_default()
    }

    /// Charges requests that other servers have counted.
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

    /// The requests in progress here, for as many keys as there is room.
    #[must_use]
    pub fn held(&self, room: &mut ReportRoom) -> ReportedKeys {
        let records = self.lock();
        let of = |(key, at): (&Arc<[u8]>, &u32)| (key.clone(), records.all[*at as usize].count);
        let held = records.index.iter().map(of);
        let reported = held.filter(|(key, count)| *count > 0 && key.len() <= REPORTED_KEY_MAX);
        let reported = reported.take_while(|(key, _)| room.take(key));
        reported.map(|(key, count)| (key, count.into())).collect()
    }

    /// Sets the requests in progress on all other servers.
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
