//! Keys that rotate on all servers of a cluster: one for each span of time.
//!
//! The number of a span names its key, so servers have to agree only on which of them makes it, and
//! Valkey decides that: the first one. The key of the next span is made a whole span ahead: when it
//! comes into use, all servers have it. Each server uses its own clock, so that write access to
//! Valkey is not enough to bring an old key back into use.

use std::fmt;

use crate::vault::VaultSecret;

/// How long a key has to be known before it is used, so that other servers have it as well.
pub const RING_GRACE_MS: u64 = 3000;
/// LIMIT: keys of one span; there is more than one if Valkey has lost the first.
const PER_SPAN: usize = 4;

/// Keys by span.
#[derive(Debug)]
pub struct KeyRing {
    /// The length of a span, in seconds.
    span: u64,
    known: Vec<RingKey>,
}

struct RingKey {
    number: u64,
    secret: VaultSecret,
    /// When Valkey reported it; `None` if it has not yet.
    received_ms: Option<u64>,
}

impl fmt::Debug for RingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingKey").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A key with its times of use, in seconds since 1970.
#[derive(Clone, PartialEq, Eq)]
pub struct TimedKey {
    /// The key.
    pub secret: VaultSecret,
    /// When it is used to encrypt: from, until.
    pub makes: Option<(u64, u64)>,
    /// Until when it is used to decrypt.
    pub until: u64,
}

impl fmt::Debug for TimedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedKey").field("until", &self.until).finish_non_exhaustive()
    }
}

impl KeyRing {
    /// What is encrypted with a key is valid for up to `span` seconds.
    #[must_use]
    pub fn new(span: u64) -> Self {
        Self { span: span.max(1), known: Vec::new() }
    }

    /// The spans whose keys are needed, and whether a missing key is made.
    #[must_use]
    pub fn wanted(&self, now: u64) -> Vec<(u64, bool)> {
        let number = now / self.span;
        // What was encrypted in the previous span is still valid.
        let before = number.checked_sub(1).map(|before| (before, false));
        before.into_iter().chain([(number, true), (number + 1, true)]).collect()
    }

    /// How many milliseconds Valkey has to store the key of a span: until the end of the next one.
    #[must_use]
    pub const fn keep_ms(&self, number: u64, now: u64) -> u64 {
        let end = number.saturating_add(2).saturating_mul(self.span);
        end.saturating_sub(now).saturating_mul(1000)
    }

    /// The key to offer for a span that has none in Valkey: the known one, or a new one.
    pub fn offer(
        &mut self,
        number: u64,
        fresh: impl FnOnce() -> Result<VaultSecret, String>,
    ) -> Result<VaultSecret, String> {
        if let Some(known) = self.known.iter().rev().find(|key| key.number == number) {
            return Ok(known.secret.clone());
        }
        let secret = fresh()?;
        self.known.push(RingKey { number, secret: secret.clone(), received_ms: None });
        Ok(secret)
    }

    /// Valkey has this key for a span, by the clock of this process.
    pub fn receive(&mut self, number: u64, secret: VaultSecret, now_ms: u64) {
        let of_span = |key: &RingKey| key.number == number;
        // A key that was offered but not accepted was never used.
        self.known.retain(|key| !of_span(key) || key.received_ms.is_some() || key.secret == secret);
        let known = self.known.iter().position(|key| of_span(key) && key.secret == secret);
        match known {
            Some(at) if self.known.iter().rposition(of_span) == Some(at) => {
                self.known[at].received_ms.get_or_insert(now_ms);
            }
            // Valkey has it again in place of another one: servers that begin know only this one.
            Some(at) => {
                let known = self.known.remove(at);
                self.known.push(RingKey { received_ms: Some(now_ms), ..known });
            }
            None => self.known.push(RingKey { number, secret, received_ms: Some(now_ms) }),
        }
        if self.known.iter().filter(|key| of_span(key)).count() > PER_SPAN
            && let Some(oldest) = self.known.iter().position(of_span)
        {
            self.known.remove(oldest);
        }
    }

    /// The valid keys, by the clock of the machine and that of the process. Of several keys of one
    /// span, the one reported last encrypts, once other servers have had time to get it.
    pub fn keys(&mut self, now: u64, now_ms: u64) -> Vec<TimedKey> {
        let number = now / self.span;
        self.known.retain(|key| key.number + 1 >= number && key.number <= number + 1);
        let mut keys: Vec<TimedKey> = Vec::new();
        for key in &self.known {
            let Some(received) = key.received_ms else { continue };
            let from = key.number.saturating_mul(self.span);
            let (end, until) =
                (from.saturating_add(self.span), from.saturating_add(self.span.saturating_mul(2)));
            let is_ripe = now_ms.saturating_sub(received) >= RING_GRACE_MS;
            if is_ripe {
                keys.iter_mut()
                    .filter(|other| other.until == until)
                    .for_each(|other| other.makes = None);
            }
            let makes = is_ripe.then_some((from, end));
            keys.push(TimedKey { secret: key.secret.clone(), makes, until });
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{KeyRing, RING_GRACE_MS};
    use crate::vault::VaultSecret;

    fn secret(seed: u8) -> VaultSecret {
        VaultSecret::new([seed; 32])
    }

    /// The seed of the key that encrypts at a time.
    fn maker(ring: &mut KeyRing, now: u64, now_ms: u64) -> Option<u8> {
        let makes = |at: (u64, u64)| (at.0..at.1).contains(&now);
        let keys = ring.keys(now, now_ms);
        let mut found = keys.iter().filter(|key| key.makes.is_some_and(makes));
        let first = found.next().map(|key| key.secret[0]);
        assert!(found.next().is_none(), "one key makes");
        first
    }

    #[test]
    fn a_key_is_known_before_it_is_used_and_counts_a_span_longer() {
        let mut ring = KeyRing::new(100);
        assert_eq!(ring.wanted(250), [(1, false), (2, true), (3, true)]);
        assert_eq!(ring.wanted(50), [(0, true), (1, true)]);
        ring.receive(2, secret(2), 0);
        ring.receive(3, secret(3), 0);
        assert_eq!(maker(&mut ring, 250, RING_GRACE_MS - 1), None, "others may not know it");
        assert_eq!(maker(&mut ring, 250, RING_GRACE_MS), Some(2));
        assert_eq!(maker(&mut ring, 300, RING_GRACE_MS), Some(3));
        let until = |ring: &mut KeyRing, now| {
            ring.keys(now, 0).iter().map(|key| (key.secret[0], key.until)).collect::<Vec<_>>()
        };
        assert_eq!(until(&mut ring, 399), [(2, 400), (3, 500)]);
        assert_eq!(until(&mut ring, 400), [(3, 500)]);
        let shown = format!("{ring:?} {:?}", ring.keys(400, 0));
        assert!(!shown.contains("secret") && !shown.contains("3, 3"), "{shown}");
    }

    #[test]
    fn what_was_offered_is_used_only_if_it_became_the_key() {
        let mut ring = KeyRing::new(100);
        assert_eq!(ring.offer(2, || Ok(secret(1))).unwrap(), secret(1));
        assert_eq!(ring.offer(2, || Err("once".to_owned())).unwrap(), secret(1));
        assert!(ring.keys(250, 10_000).is_empty());
        ring.receive(2, secret(9), 0);
        assert_eq!(maker(&mut ring, 250, RING_GRACE_MS), Some(9));
        assert_eq!(ring.keys(250, 0).len(), 1);
    }

    #[test]
    fn a_key_that_valkey_lost_opens_and_another_one_makes() {
        let mut ring = KeyRing::new(100);
        ring.receive(2, secret(1), 0);
        assert_eq!(maker(&mut ring, 250, 9000), Some(1));
        assert_eq!(ring.offer(2, || Err("known".to_owned())).unwrap(), secret(1));
        ring.receive(2, secret(7), 9000);
        assert_eq!(maker(&mut ring, 250, 9000), Some(1), "the new one is not ripe");
        assert_eq!(maker(&mut ring, 250, 9000 + RING_GRACE_MS), Some(7));
        assert_eq!(ring.keys(250, 20_000).len(), 2);
    }

    /// As after a failover to a replica that is behind: servers that begin now know only this key.
    #[test]
    fn a_key_that_valkey_has_again_makes_again() {
        let mut ring = KeyRing::new(100);
        ring.receive(2, secret(1), 0);
        ring.receive(2, secret(7), 5000);
        assert_eq!(maker(&mut ring, 250, 9000), Some(7));
        ring.receive(2, secret(1), 9000);
        assert_eq!(maker(&mut ring, 250, 9000), Some(7), "others may not know it yet");
        ring.receive(2, secret(1), 10_000);
        assert_eq!(maker(&mut ring, 250, 9000 + RING_GRACE_MS), Some(1));
        assert_eq!(ring.keys(250, 20_000).len(), 2, "both open");
        assert_eq!(ring.offer(2, || Err("known".to_owned())).unwrap(), secret(1));
    }

    proptest! {
        /// Whatever Valkey replies in whatever order, keys are few, of these spans, and one
        /// encrypts.
        #[test]
        fn keys_are_of_now(
            received in prop::collection::vec((0_u64..9, 0_u8..20, 0_u64..9000), 0..60)
        ) {
            let mut ring = KeyRing::new(100);
            for (number, seed, at) in received {
                ring.receive(number, secret(seed), at);
                let _one = maker(&mut ring, 450, at);
                let keys = ring.keys(450, at);
                prop_assert!(keys.len() <= 12);
                prop_assert!(keys.iter().all(|key| key.until > 450 && key.until <= 700));
            }
        }
    }
}
