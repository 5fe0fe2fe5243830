//! Resumable sessions: their lifetime and their store.
//!
//! The library lets a ticket or a stored session live as long as its keys or its store. Here they
//! carry their creation time, and expire after `ssl_session_timeout`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::server::{ProducesTickets, StoresServerSessions};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};

use crate::ServerCerts;
use crate::certs::SessionContext;

/// A server-side session store, shared by its users. Work under a lock takes as long with a million
/// sessions as with one.
#[derive(Clone, Debug)]
pub struct Sessions(Arc<[Mutex<SessionShard>]>);

/// The least sessions per shard, so that all shards fill about evenly, and the most shards.
const SHARD_MIN: usize = 1024;
const SHARDS_MAX: usize = 64;

/// A part of a place.
#[derive(Debug, Default)]
struct SessionShard {
    /// Sessions by key, with their sequence numbers.
    kept: HashMap<Vec<u8>, (u64, Vec<u8>)>,
    /// The keys in the order of their numbers, including sessions taken since.
    order: VecDeque<(u64, Vec<u8>)>,
    count: usize,
    next: u64,
}

impl Sessions {
    /// Room for about `count` sessions; the oldest make room for new ones.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let shards = (count / SHARD_MIN).clamp(1, SHARDS_MAX);
        let count = count.div_ceil(shards).max(1);
        Self(
            (0..shards)
                .map(|_| Mutex::new(SessionShard { count, ..SessionShard::default() }))
                .collect(),
        )
    }

    /// Keys are generated here, and random.
    fn shard(&self, key: &[u8]) -> MutexGuard<'_, SessionShard> {
        let last = key.last().copied().unwrap_or_default();
        self.0[usize::from(last) % self.0.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, key: Vec<u8>, session: Vec<u8>) {
        self.shard(&key).put(key, session);
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.shard(key).kept.get(key).map(|(_, session)| session.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.shard(key).kept.remove(key).map(|(_, session)| session)
    }
}

impl SessionShard {
    fn put(&mut self, key: Vec<u8>, session: Vec<u8>) {
        self.next += 1;
        self.kept.insert(key.clone(), (self.next, session));
        self.order.push_back((self.next, key));
        while self.kept.len() > self.count || self.order.len() > 2 * self.count {
            let Some((number, key)) = self.order.pop_front() else { return };
            if self.kept.get(&key).is_some_and(|(known, _)| *known == number) {
                self.kept.remove(&key);
            }
        }
    }
}

/// The stamp on a stored session: its time, and which servers may resume it.
#[derive(Clone, Debug)]
pub(crate) struct SessionStamp {
    /// Seconds.
    pub(crate) lifetime: u32,
    pub(crate) contexts: SessionContexts,
}

/// The contexts of a socket's servers.
#[derive(Clone, Debug)]
pub(crate) enum SessionContexts {
    /// All have this one.
    Common(SessionContext),
    /// Each has its own.
    ByName(Arc<ServerCerts>),
}

impl SessionContexts {
    pub(crate) fn of(certs: &Arc<ServerCerts>) -> Self {
        match certs.common_context() {
            Some(context) => Self::Common(context),
            None => Self::ByName(Arc::clone(certs)),
        }
    }

    /// The context of the server that a session was made with; `None` for no session.
    fn context(&self, session: &[u8]) -> Option<SessionContext> {
        match self {
            Self::Common(context) => Some(*context),
            Self::ByName(certs) => Some(certs.context(name_in(session)?)),
        }
    }
}

/// The server name at the front of the library's form of a session: the only thing in it that tells
/// the server. It resumes a session only for that name.
fn name_in(session: &[u8]) -> Option<Option<&str>> {
    match session {
        [0, ..] => Some(None),
        [1, len, rest @ ..] => {
            let name = rest.get(..usize::from(*len))?;
            std::str::from_utf8(name).ok().map(Some)
        }
        _ => None,
    }
}

impl SessionStamp {
    fn now() -> Option<u64> {
        DefaultTimeProvider.current_time().map(|now| now.as_secs())
    }

    fn put_on(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut stamped = Self::now()?.to_be_bytes().to_vec();
        stamped.extend_from_slice(&self.contexts.context(plain)?);
        stamped.extend_from_slice(plain);
        Some(stamped)
    }

    fn take_off(&self, stamped: &[u8]) -> Option<Vec<u8>> {
        self.take_off_at(stamped, Self::now()?)
    }

    fn take_off_at(&self, stamped: &[u8], now: u64) -> Option<Vec<u8>> {
        let (made, rest) = stamped.split_first_chunk()?;
        let age = now.saturating_sub(u64::from_be_bytes(*made));
        let (context, plain) = rest.split_first_chunk::<16>()?;
        let is_good = age < u64::from(self.lifetime) && self.contexts.context(plain)? == *context;
        is_good.then(|| plain.to_vec())
    }
}

/// Tickets with stamps.
#[derive(Debug)]
pub(crate) struct StampedTickets {
    pub(crate) tickets: Arc<dyn ProducesTickets>,
    pub(crate) stamp: SessionStamp,
}

impl ProducesTickets for StampedTickets {
    fn enabled(&self) -> bool {
        self.tickets.enabled()
    }

    fn lifetime(&self) -> u32 {
        // RFC 8446 §4.6.1: at most seven days.
        self.stamp.lifetime.min(604_800)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.tickets.encrypt(&self.stamp.put_on(plain)?)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.stamp.take_off(&self.tickets.decrypt(cipher)?)
    }
}

/// LIMIT: bytes of a stored session, as in nginx: a client's chain is a part of it, and the cache
/// counts sessions.
const SESSION_MAX: usize = 4096;

/// Stored sessions with stamps.
#[derive(Debug)]
pub(crate) struct StampedSessions {
    pub(crate) sessions: Sessions,
    pub(crate) stamp: SessionStamp,
}

impl StoresServerSessions for StampedSessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let stamped = self.stamp.put_on(&value).filter(|_| value.len() <= SESSION_MAX);
        let is_kept = stamped.is_some();
        stamped.into_iter().for_each(|stamped| self.sessions.put(key.clone(), stamped));
        is_kept
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.stamp.take_off(&self.sessions.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.stamp.take_off(&self.sessions.take(key)?)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use rustls::server::StoresServerSessions as _;

    use super::{SESSION_MAX, SessionContexts, SessionStamp, Sessions, StampedSessions, name_in};

    fn key(number: u32) -> Vec<u8> {
        number.to_le_bytes().to_vec()
    }

    #[test]
    fn the_oldest_sessions_make_room_and_each_is_taken_once() {
        for count in [1, 10, 5000] {
            let sessions = Sessions::new(count as usize);
            let room: usize = sessions.0.iter().map(|shard| shard.lock().unwrap().count).sum();
            assert!(room >= count as usize && room < count as usize + sessions.0.len());
            // The last bytes of keys select the shard.
            let key = |number: u32| number.to_be_bytes().to_vec();
            (0..20 * count).for_each(|number| sessions.put(key(number), vec![1]));
            assert_eq!(sessions.get(&key(20 * count - 1)), Some(vec![1]));
            assert_eq!(sessions.take(&key(20 * count - 1)), Some(vec![1]));
            assert_eq!(sessions.take(&key(20 * count - 1)), None);
            assert_eq!(sessions.get(&key(0)), None);
            let held: usize = sessions.0.iter().map(|shard| shard.lock().unwrap().kept.len()).sum();
            assert!(held < room, "{held}");
        }
    }

    #[test]
    fn sessions_that_are_taken_leave_nothing_behind() {
        let sessions = Sessions::new(8);
        for number in 0..1000 {
            sessions.put(key(number), vec![1]);
            assert_eq!(sessions.take(&key(number)), Some(vec![1]));
        }
        let shard = sessions.0[0].lock().unwrap();
        assert!(shard.kept.is_empty() && shard.order.len() <= 16, "{}", shard.order.len());
    }

    #[test]
    fn a_session_that_is_too_large_is_not_stored() {
        let stamp = SessionStamp { lifetime: 60, contexts: SessionContexts::Common([0; 16]) };
        let stamped = StampedSessions { sessions: Sessions::new(8), stamp };
        assert!(stamped.put(key(1), vec![0; SESSION_MAX]));
        assert!(!stamped.put(key(2), vec![0; SESSION_MAX + 1]));
        assert!(stamped.get(&key(1)).is_some() && stamped.get(&key(2)).is_none());
    }

    #[test]
    fn a_session_dies_with_its_time_and_is_good_for_its_own_context_only() {
        let stamp = SessionStamp { lifetime: 60, contexts: SessionContexts::Common([7; 16]) };
        let made = SessionStamp::now().unwrap();
        let stamped = stamp.put_on(b"session").unwrap();
        let at = |age| stamp.take_off_at(&stamped, made + age);
        assert_eq!(at(0).as_deref(), Some(&b"session"[..]));
        assert_eq!(at(58).as_deref(), Some(&b"session"[..]));
        assert_eq!(at(62), None);
        let other = SessionStamp { lifetime: 60, contexts: SessionContexts::Common([8; 16]) };
        assert_eq!(other.take_off_at(&stamped, made), None);
        let never = SessionStamp { lifetime: 0, ..stamp.clone() };
        assert_eq!(never.take_off_at(&stamped, made), None);
        assert_eq!(stamp.take_off_at(b"short", made), None);
    }

    #[test]
    fn a_session_begins_with_the_name_that_its_client_asked_for() {
        assert_eq!(name_in(&[0, 3, 4]), Some(None));
        assert_eq!(name_in(b"\x01\x03abcd"), Some(Some("abc")));
        for bytes in [&b""[..], b"\x01", b"\x01\x03ab", b"\x02\x01a", b"\x01\x01\xff"] {
            assert_eq!(name_in(bytes), None, "{bytes:?}");
        }
    }
}
