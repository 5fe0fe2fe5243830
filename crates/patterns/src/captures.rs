//! Patterns of the configuration, and the captures of the last match.
//!
//! `$1`–`$9` belong to the last regex that matched in a request; values of variables (named groups,
//! `set`, results of `map`) live until the request ends. A match that exceeds the limit of steps
//! counts as none and leaves a [`MatchFailure`].

use bolide_conf::regex::{GroupSpans, MatchError, Regex};

/// A regex of the configuration, with the variables of its named groups.
#[derive(Debug)]
pub struct CapturePattern {
    regex: Regex,
    /// Group number and variable slot of each named group.
    named: Box<[(usize, u16)]>,
    groups: bool,
    /// The suffix that a text must have to match; empty if unknown.
    ending: Box<[u8]>,
}

impl CapturePattern {
    /// Binds the named groups of `regex` to their indices in `names`; unknown names are ignored.
    pub fn new<N: AsRef<[u8]>>(regex: &Regex, names: &[N]) -> Self {
        let place = |name: &str| {
            names.iter().position(|known| known.as_ref().eq_ignore_ascii_case(name.as_bytes()))
        };
        let named =
            regex.names().filter_map(|(group, name)| Some((group, place(name)? as u16))).collect();
        let groups = regex.groups() > 1;
        Self { regex: regex.clone(), named, groups, ending: regex.ending().into() }
    }

    /// The expression.
    pub const fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Whether a match sets captures.
    pub const fn has_groups(&self) -> bool {
        self.groups
    }

    /// The expression as written.
    pub fn source(&self) -> &[u8] {
        self.regex.source()
    }
}

/// A match that exceeded the limit of steps.
#[derive(Clone, Debug)]
pub struct MatchFailure {
    /// PCRE's error code.
    pub code: i32,
    /// The subject.
    pub subject: Box<[u8]>,
    /// The expression.
    pub pattern: Box<[u8]>,
}

impl MatchFailure {
    /// The failure of `pattern` on `subject`.
    #[must_use]
    pub fn new(error: MatchError, subject: &[u8], pattern: &[u8]) -> Box<Self> {
        Box::new(Self { code: error.code, subject: subject.into(), pattern: pattern.into() })
    }
}

/// The captures and variables of one request. Buffers are reused.
#[derive(Clone, Debug, Default)]
pub struct Captures {
    subject: Vec<u8>,
    spans: GroupSpans,
    /// Slot, start and end in `arena`; one entry per slot.
    named: Vec<(u16, usize, usize)>,
    /// A bit set of slots modulo 64, so that most lookups of absent slots are cheap.
    slots: u64,
    arena: Vec<u8>,
    failure: Option<Box<MatchFailure>>,
}

impl Captures {
    /// Clears everything, but keeps the buffers.
    pub fn clear(&mut self) {
        self.subject.clear();
        self.spans.clear();
        self.named.clear();
        self.slots = 0;
        self.arena.clear();
        self.failure = None;
    }

    /// Takes over the values of variables, but not the numbered groups.
    pub fn adopt(&mut self, other: Self) {
        self.named = other.named;
        self.slots = other.slots;
        self.arena = other.arena;
    }

    /// Takes over the values that changed from `before` to `now`.
    pub fn absorb(&mut self, before: &Self, now: &Self) {
        for &(slot, ..) in &now.named {
            let value = now.named(slot).unwrap_or_default();
            if before.named(slot) != Some(value) {
                self.assign(slot, value);
            }
        }
    }

    /// Clears the numbered groups.
    pub fn forget_groups(&mut self) {
        self.subject.clear();
        self.spans.clear();
    }

    /// Takes the last failure.
    pub const fn take_failure(&mut self) -> Option<Box<MatchFailure>> {
        self.failure.take()
    }

    /// Matches `subject`; on success its groups replace the previous numbered ones.
    pub fn capture(&mut self, pattern: &CapturePattern, subject: &[u8]) -> bool {
        // PERF: `location ~ \.php$` is tried for each file, and PCRE needs 600 instructions for a
        // mismatch.
        if !subject.ends_with(&pattern.ending) && !subject.ends_with(b"\n") {
            return false;
        }
        if !pattern.groups {
            return match pattern.regex.matches(subject) {
                Ok(true) => {
                    self.forget_groups();
                    true
                }
                Ok(false) => false,
                Err(error) => self.fail(pattern, subject, error),
            };
        }
        match pattern.regex.find(subject, &mut self.spans) {
            Ok(true) => {
                self.keep(pattern, subject);
                true
            }
            Ok(false) => false,
            Err(error) => self.fail(pattern, subject, error),
        }
    }

    #[cold]
    fn fail(&mut self, pattern: &CapturePattern, subject: &[u8], error: MatchError) -> bool {
        self.failure = Some(MatchFailure::new(error, subject, pattern.source()));
        false
    }

    fn keep(&mut self, pattern: &CapturePattern, subject: &[u8]) {
        self.subject.clear();
        self.subject.extend_from_slice(subject);
        for &(index, slot) in &pattern.named {
            let (start, end) = self.spans.get(index).unwrap_or((0, 0));
            self.assign(slot, &subject[start..end]);
        }
    }

    /// Assigns the variable of `slot`.
    pub fn assign(&mut self, slot: u16, value: &[u8]) {
        let start = self.arena.len();
        self.arena.extend_from_slice(value);
        let end = self.arena.len();
        let known = match self.may_have(slot) {
            true => self.named.iter_mut().find(|(known, ..)| *known == slot),
            false => None,
        };
        match known {
            Some(place) => *place = (slot, start, end),
            None => self.named.push((slot, start, end)),
        }
        self.slots |= 1 << (slot % 64);
    }

    const fn may_have(&self, slot: u16) -> bool {
        self.slots >> (slot % 64) & 1 == 1
    }

    /// `$1`–`$9`.
    pub fn numbered(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = self.spans.get(index)?;
        self.subject.get(start..end)
    }

    /// The value of a variable by its slot, if it has one.
    pub fn named(&self, slot: u16) -> Option<&[u8]> {
        if !self.may_have(slot) {
            return None;
        }
        let (_, start, end) = self.named.iter().find(|(known, ..)| *known == slot)?;
        debug_assert!(
            start <= end && *end <= self.arena.len(),
            "a value lies where values are kept"
        );
        self.arena.get(*start..*end)
    }
}

#[cfg(test)]
mod tests {
    use bolide_conf::regex::{LetterCase, Regex};

    use super::{CapturePattern, Captures};

    #[test]
    fn numbered_groups_are_the_last_match_and_named_ones_stay() {
        let pattern = |text: &[u8]| {
            CapturePattern::new(
                &Regex::new(text, LetterCase::Sensitive).unwrap(),
                &["other", "user"],
            )
        };
        let first = pattern(b"^/(?<user>[a-z]+)/(x)?");
        let second = pattern(b"(\\d+)");
        let mut captures = Captures::default();
        assert!(captures.capture(&first, b"/bob/"));
        assert_eq!(captures.numbered(1), Some(&b"bob"[..]));
        assert_eq!(captures.numbered(2), None);
        assert!(captures.capture(&second, b"a42"));
        assert!(!captures.capture(&first, b"42"));
        assert_eq!(captures.numbered(1), Some(&b"42"[..]));
        assert_eq!(captures.named(1), Some(&b"bob"[..]));
        assert_eq!(captures.named(0), None);
        captures.clear();
        assert_eq!((captures.numbered(0), captures.named(1)), (None, None));
    }
}
