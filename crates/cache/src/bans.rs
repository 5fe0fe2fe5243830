//! Bans: purges by an expression that objects are matched against, each once, when it is asked for
//! or when the sweep comes by.
//!
//! Owns the bans that an object in memory may not have seen yet. INVARIANT: a ban is pending until
//! a whole sweep has seen it and no fill is older, so no object from before it escapes.

mod expression;
mod pattern;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::key::NamespaceId;
use crate::object::{Object, ObjectKind};
use crate::tags::{TagPurge, TagVerdict};

pub use expression::{BanTerm, ban_text, url_parts};
pub use pattern::{BanKind, ban_error};
pub(crate) use pattern::{BanPattern, BanSubject};

/// LIMIT: pending bans; one more becomes a purge of everything.
const BANS_MAX: usize = 64;
/// Sweeps that have to begin behind a ban: the one under way has not seen it from its start.
const LAPS: u64 = 2;

impl BanSubject for Object {
    fn url(&self) -> &[u8] {
        self.url()
    }

    fn status(&self) -> u16 {
        self.status()
    }

    fn has_field(&self, name: &[u8], passes: &dyn Fn(&[u8]) -> bool) -> bool {
        self.iter_fields().any(|(text, value)| text.eq_ignore_ascii_case(name) && passes(value))
    }

    fn has_tag(&self, _: &dyn Fn(&[u8]) -> bool) -> bool {
        false
    }
}

#[derive(Clone, Debug)]
struct Ban {
    namespace: NamespaceId,
    pattern: Arc<BanPattern>,
    how: TagPurge,
    generation: u64,
    lap: u64,
}

/// The pending bans.
#[derive(Debug, Default)]
pub(crate) struct Bans {
    /// An object is matched against what was pending when the match began: an expression may take
    /// long, and the lock is held for a look.
    pending: RwLock<Arc<Vec<Ban>>>,
    /// How many there are; read without the lock.
    count: AtomicUsize,
    /// Whole sweeps so far.
    lap: AtomicU64,
}

impl Bans {
    /// Adds the ban of this generation; false if there are too many. One that is pending already is
    /// renewed.
    pub(crate) fn add(
        &self,
        namespace: NamespaceId,
        pattern: BanPattern,
        how: TagPurge,
        generation: u64,
    ) -> bool {
        let lap = self.lap.load(Ordering::Acquire);
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        let known = Arc::make_mut(&mut pending);
        let same = known.iter().position(|ban| {
            ban.namespace == namespace
                && ban.how == how
                && ban.pattern.is(pattern.kind(), pattern.text())
        });
        match same {
            Some(at) => (known[at].generation, known[at].lap) = (generation, lap),
            None if known.len() >= BANS_MAX => return false,
            None => {
                let pattern = Arc::new(pattern);
                known.push(Ban { namespace, pattern, how, generation, lap });
            }
        }
        debug_assert!(pending.len() <= BANS_MAX, "pending bans are bounded");
        self.count.store(pending.len(), Ordering::Release);
        true
    }

    /// The effect on an object that was good at generation `known`.
    #[inline]
    pub(crate) fn verdict(&self, object: &Object, known: u64) -> TagVerdict {
        match self.count.load(Ordering::Acquire) {
            0 => TagVerdict::Good,
            _ => self.verdict_of_pending(object, known),
        }
    }

    #[cold]
    fn verdict_of_pending(&self, object: &Object, known: u64) -> TagVerdict {
        if object.kind() != ObjectKind::Content {
            return TagVerdict::Good;
        }
        self.verdict_on(object.namespace(), known, object)
    }

    fn verdict_on(
        &self,
        namespace: NamespaceId,
        known: u64,
        subject: &impl BanSubject,
    ) -> TagVerdict {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner).clone();
        let newer = pending.iter().filter(|ban| ban.generation > known);
        let own = newer.filter(|ban| ban.namespace == namespace);
        let mut verdict = TagVerdict::Good;
        for ban in own.filter(|ban| ban.pattern.hits(subject)) {
            match ban.how {
                TagPurge::Dead => return TagVerdict::Dead,
                TagPurge::Stale => verdict = TagVerdict::Stale,
            }
        }
        verdict
    }

    /// A whole sweep has seen every object. Forgets the bans that all of them have seen; no fill
    /// in progress began before `floor`.
    pub(crate) fn end_lap(&self, floor: u64) {
        let lap = self.lap.fetch_add(1, Ordering::AcqRel) + 1;
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut pending).retain(|ban| lap < ban.lap + LAPS || floor < ban.generation);
        debug_assert!(pending.len() <= BANS_MAX, "pending bans are bounded");
        self.count.store(pending.len(), Ordering::Release);
    }

    /// The pending bans: their namespace, kind, text and effect.
    pub(crate) fn list(&self) -> Vec<(NamespaceId, BanKind, Box<[u8]>, TagPurge)> {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        let row = |ban: &Ban| {
            let (kind, text) = (ban.pattern.kind(), ban.pattern.text());
            (ban.namespace, kind, text.into(), ban.how)
        };
        pending.iter().map(row).collect()
    }

    /// The number of pending bans.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{BANS_MAX, BanKind, BanPattern, BanSubject, Bans};
    use crate::key::NamespaceId;
    use crate::tags::{TagPurge, TagVerdict};

    /// Looks whether the lock is free while it is matched.
    struct Watching<'a>(&'a Bans, Cell<bool>);

    impl BanSubject for Watching<'_> {
        fn url(&self) -> &[u8] {
            b""
        }

        fn status(&self) -> u16 {
            200
        }

        fn has_field(&self, _: &[u8], _: &dyn Fn(&[u8]) -> bool) -> bool {
            self.1.set(self.0.pending.try_write().is_ok());
            true
        }

        fn has_tag(&self, _: &dyn Fn(&[u8]) -> bool) -> bool {
            false
        }
    }

    #[test]
    fn no_lock_is_held_while_an_expression_is_matched() {
        let bans = Bans::default();
        assert!(bans.add(NamespaceId(1), pattern("a"), TagPurge::Dead, 5));
        let subject = Watching(&bans, Cell::new(false));
        assert_eq!(bans.verdict_on(NamespaceId(1), 4, &subject), TagVerdict::Dead);
        assert!(subject.1.get());
        assert_eq!(bans.verdict_on(NamespaceId(1), 5, &subject), TagVerdict::Good);
    }

    fn pattern(text: &str) -> BanPattern {
        BanPattern::new(BanKind::MagentoTags, text.as_bytes()).unwrap()
    }

    #[test]
    fn a_ban_is_pending_until_two_sweeps_have_ended_and_older_fills() {
        let bans = Bans::default();
        for generation in 5..8 {
            assert!(bans.add(NamespaceId(1), pattern("a"), TagPurge::Dead, generation));
        }
        assert_eq!(bans.len(), 1, "the same ban is renewed");
        bans.end_lap(9);
        assert_eq!(bans.len(), 1);
        bans.end_lap(6);
        assert_eq!(bans.len(), 1, "a fill from before it is in progress");
        bans.end_lap(7);
        assert_eq!(bans.len(), 0);
        for number in 0..BANS_MAX {
            assert!(bans.add(NamespaceId(1), pattern(&number.to_string()), TagPurge::Dead, 9));
        }
        assert!(!bans.add(NamespaceId(1), pattern("more"), TagPurge::Dead, 9));
    }
}
