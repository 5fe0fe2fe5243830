//! Zones of `limit_req` and `limit_conn`: counts by key, shared by all workers and by all
//! configurations with the same zone.
//!
//! Only locations with a limit use them, so a zone is a table behind a lock. Its memory is
//! accounted as in nginx's allocator: a key costs a power of two that holds nginx's record and the
//! key, and a zone has as many pages as nginx's. Easiest to break: a pinned record is not evicted,
//! and every pin is undone by [`Zone::charge`] or [`Zone::unpin`].

mod elsewhere;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bolide_conf::model::{LimitKind, LimitZone};

use elsewhere::Elsewhere;
pub use elsewhere::{HeldThere, REPORTED_KEY_MAX, ReportRoom, ReportedKeys};

/// No neighbour.
const NONE: u32 = u32::MAX;
/// Bytes of a page of shared memory.
const PAGE: u64 = 4096;
/// Bytes that nginx's allocator has at the start of a zone, and per page.
const HEAD: u64 = 704;
const PER_PAGE: u64 = 24;
/// Bytes of nginx's records apart from their keys.
const REQUESTS_RECORD: u64 = 80;
const CONNECTIONS_RECORD: u64 = 36;
/// Milliseconds after which a record without excess may be evicted.
const IDLE_MS: u64 = 60_000;

/// The verdict of a zone on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitVerdict {
    /// It was counted; its excess, in thousandths of a request.
    Counted(u64),
    /// It is within the limit; the record is pinned until it is charged.
    Pinned(u32),
    /// It exceeds the burst; its excess, in thousandths of a request.
    Busy(u64),
    /// There is no memory for the key.
    Full,
}

/// Whether further zones follow for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitPlace {
    /// The request is counted at once.
    Last,
    /// The request is counted when all zones admit it.
    Inner,
}

/// The result of entering a zone of `limit_conn`.
#[derive(Debug)]
pub enum LimitEntry {
    /// It is counted until the ticket is dropped.
    Entered(Ticket),
    /// The limit is reached.
    Busy,
    /// There is no memory for the key.
    Full,
}

/// A zone.
#[derive(Debug)]
pub struct Zone {
    name: Box<[u8]>,
    size: u64,
    key_text: Box<[u8]>,
    counts_requests: bool,
    is_shared: bool,
    records: Mutex<Records>,
}

/// A count in a zone of `limit_conn`; dropping it decrements.
#[derive(Debug)]
pub struct Ticket {
    zone: Arc<Zone>,
    record: u32,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut records = self.zone.lock();
        let record = &mut records.all[self.record as usize];
        debug_assert!(record.count > 0, "a ticket is given back once");
        record.count -= 1;
        if record.count == 0 {
            records.remove(self.record);
        }
    }
}

/// The counts of a request, until the last copy of this is dropped: a script may still be running
/// after its client has disconnected.
#[derive(Clone, Debug, Default)]
pub struct LimitHold(Vec<Arc<Ticket>>);

impl LimitHold {
    /// Adds a count.
    pub fn add(&mut self, ticket: Ticket) {
        self.0.push(Arc::new(ticket));
    }

    /// Adds the counts of another hold.
    pub fn join(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Releases all counts.
    pub fn let_go(&mut self) {
        if !self.0.is_empty() {
            self.0.clear();
        }
    }
}

/// The record of a key.
#[derive(Debug)]
struct LimitRecord {
    key: Arc<[u8]>,
    /// When it was last charged.
    last_ms: Option<u64>,
    /// The excess over its rate, in thousandths of a request.
    excess: u64,
    /// Pins, or requests in progress.
    count: u32,
    newer: u32,
    older: u32,
}

impl LimitRecord {
    /// The excess with one request more, at `now_ms`.
    fn with_one_more(&self, rate: u64, now_ms: u64) -> u64 {
        let Some(last) = self.last_ms else { return 0 };
        let paid = rate.saturating_mul(now_ms.saturating_sub(last)) / 1000;
        self.excess.saturating_add(1000).saturating_sub(paid)
    }

    /// Charges it. The clocks of workers differ by their turns, so the last charge may have a later
    /// time; the excess drained until then is not drained again.
    fn charge(&mut self, excess: u64, now_ms: u64) {
        self.excess = excess;
        self.last_ms = self.last_ms.max(Some(now_ms));
    }

    /// Whether it can be evicted without loss.
    fn is_idle(&self, rate: u64, now_ms: u64) -> bool {
        self.last_ms.is_none_or(|last| {
            let passed = now_ms.saturating_sub(last);
            passed >= IDLE_MS && rate.saturating_mul(passed) / 1000 >= self.excess
        })
    }
}

/// The records of a zone, most recently used first.
#[derive(Debug)]
struct Records {
    index: HashMap<Arc<[u8]>, u32>,
    all: Vec<LimitRecord>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// Free bytes.
    room: u64,
    /// Bytes of a record without its key.
    record_size: u64,
    /// The counts of other servers, if the zone is shared.
    elsewhere: Option<Box<Elsewhere>>,
}

impl Records {
    fn new(size: u64, record_size: u64) -> Self {
        Self {
            index: HashMap::new(),
            all: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            room: room(size),
            record_size,
            elsewhere: None,
        }
    }

    fn cost(&self, key: &[u8]) -> u64 {
        let bytes = self.record_size + key.len() as u64;
        if bytes > PAGE / 2 { bytes.next_multiple_of(PAGE) } else { bytes.next_power_of_two() }
    }

    /// Inserts a record at the front, if there is room.
    fn insert(&mut self, key: &[u8]) -> Option<u32> {
        self.room = self.room.checked_sub(self.cost(key))?;
        let key: Arc<[u8]> = key.into();
        let record = LimitRecord {
            key: key.clone(),
            last_ms: None,
            excess: 0,
            count: 0,
            newer: NONE,
            older: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = record;
                at
            }
            None => {
                self.all.push(record);
                (self.all.len() - 1) as u32
            }
        };
        debug_assert!(!self.index.contains_key(&key), "a key has one record");
        self.index.insert(key, at);
        self.link(at);
        Some(at)
    }

    fn remove(&mut self, at: u32) {
        debug_assert_eq!(
            self.all[at as usize].count, 0,
            "what is pinned or in work is not evicted"
        );
        debug_assert!(!self.free.contains(&at), "a record is freed once");
        self.unlink(at);
        let key = std::mem::replace(&mut self.all[at as usize].key, Arc::from(&b""[..]));
        debug_assert_eq!(self.index.get(&key), Some(&at), "a record is found by its key");
        self.index.remove(&key);
        self.room += self.cost(&key);
        self.free.push(at);
    }

    fn link(&mut self, at: u32) {
        let before = std::mem::replace(&mut self.newest, at);
        let record = &mut self.all[at as usize];
        (record.newer, record.older) = (NONE, before);
        match self.all.get_mut(before as usize) {
            Some(before) => before.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let LimitRecord { newer, older, .. } = self.all[at as usize];
        match self.all.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.all.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Evicts the oldest record even if it has an excess (`by_force`), and up to two idle ones.
    fn expire(&mut self, by_force: bool, rate: u64, now_ms: u64) {
        for turn in u32::from(!by_force)..3 {
            let at = self.oldest;
            let Some(record) = self.all.get(at as usize) else { return };
            // The records behind it are newer.
            if record.count > 0 || turn > 0 && !record.is_idle(rate, now_ms) {
                return;
            }
            self.remove(at);
        }
    }
}

/// The bytes for records in a zone of `size`: whole pages after the tables of nginx's allocator,
/// without the page for the zone's name and header.
const fn room(size: u64) -> u64 {
    let pages = size.saturating_sub(HEAD) / (PAGE + PER_PAGE);
    let start = (HEAD + pages * PER_PAGE).next_multiple_of(PAGE);
    let there = size.saturating_sub(start) / PAGE;
    let pages = if there < pages { there } else { pages };
    (pages * PAGE).saturating_sub(PAGE + 128)
}

impl Zone {
    /// An empty zone.
    pub fn new(conf: &LimitZone) -> Self {
        let counts_requests = matches!(conf.kind, LimitKind::Requests { .. });
        let record = if counts_requests { REQUESTS_RECORD } else { CONNECTIONS_RECORD };
        let mut records = Records::new(conf.size, record);
        if conf.shared {
            records.elsewhere = Some(Box::new(Elsewhere::new(conf.size, record)));
        }
        Self {
            name: conf.name.clone(),
            size: conf.size,
            key_text: conf.key_text.clone(),
            counts_requests,
            is_shared: conf.shared,
            records: Mutex::new(records),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks one more request of `key` against `rate` and `burst`, in thousandths.
    pub fn check_limit(
        &self,
        key: &[u8],
        (rate, burst): (u64, u64),
        place: LimitPlace,
        now_ms: u64,
    ) -> LimitVerdict {
        let mut records = self.lock();
        let known = records.index.get(key).copied();
        let excess = match known {
            Some(at) => {
                records.unlink(at);
                records.link(at);
                records.all[at as usize].with_one_more(rate, now_ms)
            }
            None => records.owed_elsewhere(key, rate, now_ms),
        };
        if excess > burst {
            return LimitVerdict::Busy(excess);
        }
        let Some(at) = known.or_else(|| make(&mut records, key, rate, now_ms)) else {
            return LimitVerdict::Full;
        };
        if known.is_none() {
            records.move_in(at);
        }
        let record = &mut records.all[at as usize];
        match place {
            LimitPlace::Last => {
                record.charge(excess, now_ms);
                records.record_charge(at);
                LimitVerdict::Counted(excess)
            }
            LimitPlace::Inner => {
                record.count += 1;
                LimitVerdict::Pinned(at)
            }
        }
    }

    /// Counts the request of a pinned record; returns its excess over `rate`.
    pub fn charge(&self, pinned: u32, rate: u64, now_ms: u64) -> u64 {
        let mut records = self.lock();
        let record = &mut records.all[pinned as usize];
        debug_assert!(record.count > 0, "only what is pinned is charged");
        record.charge(record.with_one_more(rate, now_ms), now_ms);
        record.count -= 1;
        let excess = record.excess;
        records.record_charge(pinned);
        excess
    }

    /// Unpins a record without counting the request.
    pub fn unpin(&self, pinned: u32) {
        let mut records = self.lock();
        let record = &mut records.all[pinned as usize];
        debug_assert!(record.count > 0, "only what is pinned is let go");
        record.count -= 1;
    }

    /// Counts a request in progress, if there are fewer than `most`.
    pub fn enter(self: &Arc<Self>, key: &[u8], most: u32) -> LimitEntry {
        let mut records = self.lock();
        let known = records.index.get(key).copied();
        let there = records.held_elsewhere(key);
        let here = known.map_or(0, |record| records.all[record as usize].count);
        // `most` is never 0, so no record is created without a request.
        if here.saturating_add(there) >= most {
            return LimitEntry::Busy;
        }
        let Some(record) = known.or_else(|| records.insert(key)) else { return LimitEntry::Full };
        records.all[record as usize].count += 1;
        LimitEntry::Entered(Ticket { zone: self.clone(), record })
    }

    /// The number of records.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().index.len()
    }
}

/// Creates a record, evicting older ones if necessary.
fn make(records: &mut Records, key: &[u8], rate: u64, now_ms: u64) -> Option<u32> {
    records.expire(false, rate, now_ms);
    if let Some(at) = records.insert(key) {
        return Some(at);
    }
    records.expire(true, rate, now_ms);
    records.insert(key)
}

/// The zones of a process: a configuration reuses those of the one in force with the same name,
/// kind and size.
#[derive(Clone, Debug, Default)]
pub struct Zones(Arc<Mutex<ZoneList>>);

#[derive(Debug, Default)]
struct ZoneList {
    /// Those of configurations that were in force, as long as requests use them.
    all: Vec<Weak<Zone>>,
    /// Those of the configuration in force.
    in_force: Vec<Weak<Zone>>,
}

impl Zones {
    fn list(&self) -> MutexGuard<'_, ZoneList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of keys with requests in progress.
    #[must_use]
    pub fn held(&self) -> usize {
        let list = self.list();
        let zones = list.all.iter().filter_map(Weak::upgrade).filter(|zone| !zone.counts_requests);
        zones.map(|zone| zone.lock().index.len()).sum()
    }

    /// The zones that a cluster shares.
    #[must_use]
    pub fn shared(&self) -> Vec<Arc<Zone>> {
        let list = self.list();
        list.all.iter().filter_map(Weak::upgrade).filter(|zone| zone.is_shared).collect()
    }

    /// The zone that `conf` describes, for a configuration that may still be refused: one in force
    /// keeps its rate until [`Zone::set_rate`], and a new one is unknown until
    /// [`Self::put_in_force`].
    ///
    /// # Errors
    ///
    /// In nginx's words: the zone in force has another key.
    pub fn adopt(&self, conf: &LimitZone) -> Result<Arc<Zone>, String> {
        let fresh = Zone::new(conf);
        let list = self.list();
        let mut known = list.in_force.iter().filter_map(Weak::upgrade);
        let same = known.find(|zone| {
            (&zone.name, zone.size, zone.counts_requests, zone.is_shared)
                == (&fresh.name, fresh.size, fresh.counts_requests, fresh.is_shared)
        });
        let Some(zone) = same else {
            let zone = Arc::new(fresh);
            zone.set_rate(conf);
            return Ok(zone);
        };
        if zone.key_text == fresh.key_text {
            return Ok(zone);
        }
        let directive = if fresh.counts_requests { "limit_req" } else { "limit_conn_zone" };
        let text = String::from_utf8_lossy;
        Err(format!(
            "{directive} \"{}\" uses the \"{}\" key while previously it used the \"{}\" key",
            text(&fresh.name),
            text(&fresh.key_text),
            text(&zone.key_text)
        ))
    }

    /// The zones of the configuration that comes into force. A later one with a zone that this one
    /// lacks gets a new zone, even while requests use one of that name.
    pub fn put_in_force(&self, zones: &[Arc<Zone>]) {
        let mut list = self.list();
        list.in_force = zones.iter().map(Arc::downgrade).collect();
        list.all.retain(|zone| zone.strong_count() > 0);
        for zone in zones.iter().map(Arc::downgrade) {
            if !list.all.iter().any(|known| Weak::ptr_eq(known, &zone)) {
                list.all.push(zone);
            }
        }
    }
}

#[cfg(test)]
mod tests;
