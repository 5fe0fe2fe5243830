//! The sessions of `sticky learn`: which server each of them belongs to.
//!
//! Owns the zone, which all workers share, and which outlives a reload if its name and its size
//! stay. Only groups with `sticky learn` use it, so it is a table behind a lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bolide_base::Instant;

/// Bytes of a session beside its name.
const RECORD: u64 = 192;
/// Sessions that may be removed for their age at each use of the zone.
const EXPIRED_MAX: usize = 2;

/// The sessions of one zone.
#[derive(Debug)]
pub struct SessionZone {
    name: Arc<str>,
    size: u64,
    /// How long a session without requests is known.
    timeout: Duration,
    sessions: Arc<Mutex<Sessions>>,
}

#[derive(Debug, Default)]
struct Sessions {
    by_name: HashMap<Arc<[u8]>, Session>,
    /// By the turn of their last use, the oldest first.
    by_use: BTreeMap<u64, Arc<[u8]>>,
    turn: u64,
    /// LIMIT: at most the size of the zone.
    bytes: u64,
}

#[derive(Debug)]
struct Session {
    /// The id of its server.
    server: Arc<[u8]>,
    used: Instant,
    turn: u64,
}

impl SessionZone {
    /// A zone of this size; the sessions of `old` stay if it is the same.
    pub(crate) fn new(name: &Arc<str>, size: u64, timeout: Duration, old: Option<&Self>) -> Self {
        let same = old.filter(|old| old.name == *name && old.size == size);
        let sessions = same.map_or_else(Arc::default, |old| Arc::clone(&old.sessions));
        Self { name: Arc::clone(name), size, timeout, sessions }
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The id of the server of a session, which is used by this.
    pub(crate) fn find(&self, name: &[u8], now: Instant) -> Option<Arc<[u8]>> {
        let mut sessions = self.lock();
        sessions.expire(now, self.timeout);
        let (name, session) = sessions.take(name)?;
        if now.since(session.used) >= self.timeout {
            return None;
        }
        let server = Arc::clone(&session.server);
        sessions.put(name, session.server, now);
        Some(server)
    }

    /// Records that a session belongs to the server with this id. The oldest ones make room for it;
    /// one that is larger than the zone is not noted.
    pub fn learn(&self, name: &[u8], server: &Arc<[u8]>, now: Instant) {
        let mut sessions = self.lock();
        sessions.expire(now, self.timeout);
        sessions.take(name);
        let cost = cost(name, server);
        if cost > self.size {
            return;
        }
        while sessions.bytes + cost > self.size && sessions.drop_oldest() {}
        sessions.put(name.into(), Arc::clone(server), now);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for SessionZone {
    /// Whether both are the same sessions.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.sessions, &other.sessions)
    }
}

impl Eq for SessionZone {}

impl Sessions {
    fn take(&mut self, name: &[u8]) -> Option<(Arc<[u8]>, Session)> {
        let (name, session) = self.by_name.remove_entry(name)?;
        self.by_use.remove(&session.turn);
        self.bytes -= cost(&name, &session.server);
        Some((name, session))
    }

    /// Adds a session that is not there.
    fn put(&mut self, name: Arc<[u8]>, server: Arc<[u8]>, now: Instant) {
        self.turn += 1;
        self.bytes += cost(&name, &server);
        self.by_use.insert(self.turn, Arc::clone(&name));
        self.by_name.insert(name, Session { server, used: now, turn: self.turn });
        debug_assert_eq!(self.by_use.len(), self.by_name.len(), "each session has one turn");
    }

    /// Removes the session whose last use is the oldest; false if there is none.
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.by_use.values().next().cloned();
        oldest.and_then(|name| self.take(&name)).is_some()
    }

    fn expire(&mut self, now: Instant, timeout: Duration) {
        for _ in 0..EXPIRED_MAX {
            let oldest = self.by_use.values().next().and_then(|name| self.by_name.get(name));
            if oldest.is_none_or(|session| now.since(session.used) < timeout) {
                return;
            }
            self.drop_oldest();
        }
    }
}

/// Bytes that a session takes of its zone.
const fn cost(name: &[u8], server: &[u8]) -> u64 {
    RECORD + name.len() as u64 + server.len() as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bolide_base::Instant;

    use super::{RECORD, SessionZone};

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn zone(size: u64, old: Option<&SessionZone>) -> SessionZone {
        SessionZone::new(&"z".into(), size, TIMEOUT, old)
    }

    fn at(seconds: u64) -> Instant {
        Instant::default().after(Duration::from_secs(seconds))
    }

    fn id(text: &str) -> Arc<[u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn a_session_is_known_until_its_timeout_after_its_last_use() {
        let zone = zone(4096, None);
        zone.learn(b"s", &id("a"), at(0));
        assert_eq!(zone.find(b"s", at(9)), Some(id("a")));
        assert_eq!(zone.find(b"s", at(18)), Some(id("a")));
        assert_eq!(zone.find(b"t", at(18)), None);
        assert_eq!(zone.find(b"s", at(28)), None);
        assert_eq!(zone.lock().bytes, 0);
    }

    #[test]
    fn the_last_server_of_a_session_counts() {
        let zone = zone(4096, None);
        zone.learn(b"s", &id("a"), at(0));
        zone.learn(b"s", &id("bb"), at(1));
        assert_eq!(zone.find(b"s", at(2)), Some(id("bb")));
        assert_eq!(zone.lock().bytes, RECORD + 3);
    }

    #[test]
    fn a_full_zone_forgets_what_was_not_used_for_the_longest_time() {
        let zone = zone(3 * (RECORD + 2), None);
        for name in [b"1", b"2", b"3"] {
            zone.learn(name, &id("a"), at(0));
        }
        zone.find(b"1", at(1));
        zone.learn(b"4", &id("a"), at(1));
        let known: Vec<bool> =
            [b"1", b"2", b"3", b"4"].map(|name| zone.find(name, at(2)).is_some()).into();
        assert_eq!(known, [true, false, true, true]);
        zone.learn(&[b'x'; 4096], &id("a"), at(2));
        assert!(zone.find(b"4", at(2)).is_some(), "one that cannot fit displaces nothing");
    }

    #[test]
    fn sessions_outlive_a_reload_if_the_zone_stays_the_same() {
        let old = zone(4096, None);
        old.learn(b"s", &id("a"), at(0));
        assert_eq!(zone(4096, Some(&old)).find(b"s", at(1)), Some(id("a")));
        assert_eq!(zone(8192, Some(&old)).find(b"s", at(1)), None);
    }
}
