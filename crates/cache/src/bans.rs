//! Bans: purges by an expression that objects are matched against, each once, when it is asked for
//! or when the sweep comes by.
//!
//! Owns the bans that an object in memory may not have seen yet. INVARIANT: a ban is pending until
//! a whole sweep has seen it and no fill is older, so no object from before it escapes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use pcre2::bytes::Regex;

use crate::key::NamespaceId;
use crate::object::{Object, ObjectKind};
use crate::tags::{TagPurge, TagVerdict};

/// LIMIT: pending bans; one more becomes a purge of everything.
const BANS_MAX: usize = 64;
/// LIMIT: bytes of an expression.
const PATTERN_MAX: usize = 8 * 1024;
/// Sweeps that have to begin behind a ban: the one under way has not seen it from its start.
const LAPS: u64 = 2;

/// The field of an object that a ban is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanField {
    /// `X-Magento-Tags`
    Tags,
    /// `X-Pool`
    Pool,
}

impl BanField {
    const fn name(self) -> &'static [u8] {
        match self {
            Self::Tags => b"X-Magento-Tags",
            Self::Pool => b"X-Pool",
        }
    }
}

/// An expression that bans.
#[derive(Debug)]
pub(crate) struct BanPattern {
    field: BanField,
    text: Box<[u8]>,
    regex: Regex,
}

impl BanPattern {
    /// Reads an expression; none if it is none, or too long.
    pub(crate) fn new(field: BanField, text: &[u8]) -> Option<Self> {
        if text.len() > PATTERN_MAX {
            return None;
        }
        let limit = format!("(*LIMIT_MATCH={})", bolide_base::limits::MATCH_STEPS_MAX);
        let regex = Regex::new(&(limit + std::str::from_utf8(text).ok()?)).ok()?;
        Some(Self { field, text: text.into(), regex })
    }

    /// Whether it is the one with this text.
    pub(crate) fn is(&self, field: BanField, text: &[u8]) -> bool {
        self.field == field && *self.text == *text
    }

    /// Whether it is about an object with these fields. What takes too many steps is hit.
    pub(crate) fn hits<'a>(&self, mut fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> bool {
        let name = self.field.name();
        fields.any(|(text, value)| {
            text.eq_ignore_ascii_case(name) && self.regex.is_match(value).unwrap_or(true)
        })
    }
}

/// Whether `text` is an expression that may ban.
#[must_use]
pub fn is_ban(field: BanField, text: &[u8]) -> bool {
    BanPattern::new(field, text).is_some()
}

#[derive(Debug)]
struct Ban {
    namespace: NamespaceId,
    pattern: BanPattern,
    how: TagPurge,
    generation: u64,
    lap: u64,
}

/// The pending bans.
#[derive(Debug, Default)]
pub(crate) struct Bans {
    pending: RwLock<Vec<Ban>>,
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
        let same = pending.iter().position(|ban| {
            ban.namespace == namespace
                && ban.how == how
                && ban.pattern.is(pattern.field, &pattern.text)
        });
        match same {
            Some(at) => (pending[at].generation, pending[at].lap) = (generation, lap),
            None if pending.len() >= BANS_MAX => return false,
            None => pending.push(Ban { namespace, pattern, how, generation, lap }),
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
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        let newer = pending.iter().filter(|ban| ban.generation > known);
        let own = newer.filter(|ban| ban.namespace == object.namespace());
        let mut verdict = TagVerdict::Good;
        for ban in own.filter(|ban| ban.pattern.hits(object.iter_fields())) {
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
        pending.retain(|ban| lap < ban.lap + LAPS || floor < ban.generation);
        debug_assert!(pending.len() <= BANS_MAX, "pending bans are bounded");
        self.count.store(pending.len(), Ordering::Release);
    }

    /// The number of pending bans.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::{BANS_MAX, BanField, BanPattern, Bans, is_ban};
    use crate::key::NamespaceId;
    use crate::tags::TagPurge;

    fn pattern(text: &str) -> BanPattern {
        BanPattern::new(BanField::Tags, text.as_bytes()).unwrap()
    }

    #[test]
    fn an_expression_is_matched_against_its_field() {
        let fields = |name: &'static [u8], value: &'static [u8]| [(name, value)].into_iter();
        let ban = pattern("(^|,)cat_p_[0-9]+(,|$)");
        assert!(ban.hits(fields(b"x-magento-tags", b"a,cat_p_12")));
        assert!(!ban.hits(fields(b"X-Magento-Tags", b"a,cat_p_x")));
        assert!(!ban.hits(fields(b"X-Pool", b"cat_p_12")));
        for text in ["(", "a{2,1}", "[b-a]"] {
            assert!(!is_ban(BanField::Pool, text.as_bytes()), "{text}");
        }
        assert!(!is_ban(BanField::Pool, &[b'a'; 9000]));
        // What cannot be decided is hit.
        let slow = pattern("^(a+)+$");
        let value: &'static [u8] = Box::leak([vec![b'a'; 64], vec![b'b']].concat().into());
        assert!(slow.hits(fields(b"X-Magento-Tags", value)));
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
