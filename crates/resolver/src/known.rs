//! The cache of DNS answers, in order of their last use.
//!
//! Owns how long an answer is valid and when it is dropped; both count in whole seconds.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use bolide_base::{Instant, Now};

/// LIMIT: cached names of one `resolver` on one worker.
const NAMES_MAX: usize = 16 * 1024;
/// Seconds after its last use for which an answer is cached.
const UNUSED_MAX: u64 = 30;
/// Answers that are dropped at a time.
const FORGOTTEN_AT_ONCE: usize = 2;

/// The cached answers.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    names: HashMap<Arc<[u8]>, KnownName>,
    /// By the second after which each may be dropped, and a unique number.
    by_use: BTreeMap<(u64, u64), Arc<[u8]>>,
    uses: u64,
}

#[derive(Debug)]
struct KnownName {
    answer: NameAnswer,
    /// The last second in which it is valid.
    valid: u64,
    used: (u64, u64),
}

/// A cached answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NameAnswer {
    /// Its addresses.
    Addresses(Arc<[IpAddr]>),
    /// A CNAME: another name has the addresses.
    Alias(Arc<[u8]>),
}

/// Whole seconds of the monotonic clock.
pub(crate) const fn seconds(now: Now) -> u64 {
    now.mono.as_nanos() / 1_000_000_000
}

impl KnownNames {
    /// A valid answer, with the last second in which it is.
    pub(crate) fn find(&mut self, name: &[u8], now: Now) -> Option<(NameAnswer, u64)> {
        let known = self.names.get_mut(name).filter(|known| known.valid >= seconds(now))?;
        let found = (known.answer.clone(), known.valid);
        let key = self.by_use.remove(&known.used)?;
        self.uses += 1;
        known.used = (seconds(now) + UNUSED_MAX, self.uses);
        self.by_use.insert(known.used, key);
        Some(found)
    }

    /// Caches an answer for this many seconds; returns the last second in which it is valid.
    pub(crate) fn keep(&mut self, name: &Arc<[u8]>, answer: NameAnswer, ttl: u64, now: Now) -> u64 {
        self.forget(name);
        if self.names.len() >= NAMES_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.names.remove(&oldest);
        }
        self.uses += 1;
        let used = (seconds(now) + UNUSED_MAX, self.uses);
        let valid = seconds(now).saturating_add(ttl);
        self.by_use.insert(used, Arc::clone(name));
        self.names.insert(Arc::clone(name), KnownName { answer, valid, used });
        valid
    }

    /// Drops the answer for a name.
    pub(crate) fn forget(&mut self, name: &[u8]) {
        if let Some(known) = self.names.remove(name) {
            self.by_use.remove(&known.used);
        }
    }

    /// Drops some unused answers.
    pub(crate) fn sweep(&mut self, now: Now) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(oldest) = self.by_use.first_entry() else { return };
            if oldest.key().0 >= seconds(now) {
                return;
            }
            let name = oldest.remove();
            self.names.remove(&name);
        }
    }

    /// The number of answers.
    pub(crate) fn len(&self) -> usize {
        debug_assert_eq!(self.names.len(), self.by_use.len());
        self.names.len()
    }
}

/// The time at which a second ends.
pub(crate) fn end_of(second: u64) -> Instant {
    Instant::from_nanos(second.saturating_add(1).saturating_mul(1_000_000_000))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bolide_base::{Instant, Now};

    use super::{KnownNames, NAMES_MAX, NameAnswer};

    fn at(millis: u64) -> Now {
        Now { mono: Instant::from_nanos(millis * 1_000_000), unix_millis: 0 }
    }

    fn alias() -> NameAnswer {
        NameAnswer::Alias(Arc::from(&b"x"[..]))
    }

    #[test]
    fn an_answer_is_good_until_its_last_second_is_over() {
        let mut names = KnownNames::default();
        let name: Arc<[u8]> = Arc::from(&b"a"[..]);
        names.keep(&name, alias(), 0, at(5_100));
        assert!(names.find(b"a", at(5_999)).is_some());
        assert!(names.find(b"a", at(6_000)).is_none());
        names.keep(&name, alias(), 3, at(7_900));
        assert!(names.find(b"a", at(10_999)).is_some());
        assert!(names.find(b"a", at(11_000)).is_none());
    }

    #[test]
    fn what_is_not_used_goes_after_thirty_seconds() {
        let mut names = KnownNames::default();
        let (a, b): (Arc<[u8]>, Arc<[u8]>) = (Arc::from(&b"a"[..]), Arc::from(&b"b"[..]));
        names.keep(&a, alias(), 300, at(0));
        names.keep(&b, alias(), 300, at(0));
        assert!(names.find(b"a", at(20_000)).is_some());
        names.sweep(at(30_999));
        assert_eq!(names.len(), 2);
        names.sweep(at(31_000));
        assert!(names.find(b"b", at(31_000)).is_none());
        assert!(names.find(b"a", at(31_000)).is_some());
    }

    #[test]
    fn the_answer_unused_for_longest_makes_room() {
        let mut names = KnownNames::default();
        for number in 0..NAMES_MAX as u64 + 10 {
            names.keep(&Arc::from(&number.to_le_bytes()[..]), alias(), 300, at(number));
        }
        assert_eq!(names.len(), NAMES_MAX);
        assert!(names.find(&9u64.to_le_bytes(), at(20_000)).is_none());
        assert!(names.find(&10u64.to_le_bytes(), at(20_000)).is_some());
    }
}
