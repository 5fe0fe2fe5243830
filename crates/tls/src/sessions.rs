//! Sessions that can be taken up again: for how long, and where.
//!
//! The library lets both a ticket and a kept session live as long as their keys or their place.
//! Here they carry the moment of their making, and die when `ssl_session_timeout` says.

use std::sync::Arc;

use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};

/// A place where sessions are kept by the server, for all who share it.
#[derive(Clone, Debug)]
pub struct Sessions(Arc<ServerSessionMemoryCache>);

impl Sessions {
    /// Room for about `count` sessions; the oldest make room for new ones.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(ServerSessionMemoryCache::new(count))
    }
}

/// What is written on a session when it is put away: when, and who may take it up.
///
/// Where servers ask clients for certificates, a session brings the client's chain back, or its
/// absence; so it is good only where the same would have been asked.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    /// Seconds.
    pub(crate) lifetime: u32,
    pub(crate) context: Option<[u8; 32]>,
}

impl Stamp {
    fn now() -> Option<u64> {
        DefaultTimeProvider.current_time().map(|now| now.as_secs())
    }

    fn put_on(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut stamped = Self::now()?.to_be_bytes().to_vec();
        stamped.extend_from_slice(self.context.as_ref().map_or(&[], |context| &context[..]));
        stamped.extend_from_slice(plain);
        Some(stamped)
    }

    fn take_off(&self, stamped: &[u8]) -> Option<Vec<u8>> {
        self.take_off_at(stamped, Self::now()?)
    }

    fn take_off_at(&self, stamped: &[u8], now: u64) -> Option<Vec<u8>> {
        let (made, rest) = stamped.split_first_chunk()?;
        let age = now.saturating_sub(u64::from_be_bytes(*made));
        let plain = rest.strip_prefix(self.context.as_ref().map_or(&[][..], |context| context))?;
        (age < u64::from(self.lifetime)).then(|| plain.to_vec())
    }
}

/// Tickets with stamps.
#[derive(Debug)]
pub(crate) struct StampedTickets {
    pub(crate) tickets: Arc<dyn ProducesTickets>,
    pub(crate) stamp: Stamp,
}

impl ProducesTickets for StampedTickets {
    fn enabled(&self) -> bool {
        self.tickets.enabled()
    }

    fn lifetime(&self) -> u32 {
        // RFC 8446 §4.6.1: no more than seven days.
        self.stamp.lifetime.min(604_800)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.tickets.encrypt(&self.stamp.put_on(plain)?)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.stamp.take_off(&self.tickets.decrypt(cipher)?)
    }
}

/// LIMIT: bytes of a session that is kept, as in nginx: a client's chain is a part of it, and the
/// cache counts sessions.
const SESSION_MAX: usize = 4096;

/// Kept sessions with stamps.
#[derive(Debug)]
pub(crate) struct StampedSessions {
    pub(crate) sessions: Sessions,
    pub(crate) stamp: Stamp,
}

impl StoresServerSessions for StampedSessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        value.len() <= SESSION_MAX
            && self.stamp.put_on(&value).is_some_and(|stamped| self.sessions.0.put(key, stamped))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.stamp.take_off(&self.sessions.0.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.stamp.take_off(&self.sessions.0.take(key)?)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Stamp;

    #[test]
    fn a_session_dies_with_its_time_and_is_good_for_its_own_context_only() {
        let stamp = Stamp { lifetime: 60, context: Some([7; 32]) };
        let made = Stamp::now().unwrap();
        let stamped = stamp.put_on(b"session").unwrap();
        let at = |age| stamp.take_off_at(&stamped, made + age);
        assert_eq!(at(0).as_deref(), Some(&b"session"[..]));
        assert_eq!(at(58).as_deref(), Some(&b"session"[..]));
        assert_eq!(at(62), None);
        let other = Stamp { lifetime: 60, context: Some([8; 32]) };
        assert_eq!(other.take_off_at(&stamped, made), None);
        let never = Stamp { lifetime: 0, context: Some([7; 32]) };
        assert_eq!(never.take_off_at(&stamped, made), None);
        assert_eq!(stamp.take_off_at(b"short", made), None);
    }
}
