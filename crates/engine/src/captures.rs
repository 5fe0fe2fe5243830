//! Patterns of the configuration and what the last matching one captured.
//!
//! `$1`–`$9` belong to the last regex that matched in a request, named groups live until the
//! request ends. Refuses nothing: a pattern that fails while matching (backtrack limit) counts as
//! no match.

use conf::regex::Regex;
use pcre2::bytes::CaptureLocations;

/// A regex of the configuration, with the named groups it fills.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Group number and variable slot of each named group.
    named: Box<[(usize, u16)]>,
    groups: bool,
}

impl Pattern {
    /// Binds the named groups of `regex` to their places in `names`; unknown names are unread.
    pub(crate) fn new<N: AsRef<[u8]>>(regex: &Regex, names: &[N]) -> Self {
        let place = |name: &str| names.iter().position(|known| known.as_ref() == name.as_bytes());
        let named =
            regex.names().filter_map(|(group, name)| Some((group, place(name)? as u16))).collect();
        Self { regex: regex.clone(), named, groups: regex.compiled().captures_len() > 1 }
    }

    /// Whether `subject` matches; captures nothing.
    pub(crate) fn matches(&self, subject: &[u8]) -> bool {
        self.regex.is_match(subject)
    }
}

/// What one request has captured so far. Keeps its memory between requests.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    subject: Vec<u8>,
    spans: Vec<Option<(usize, usize)>>,
    /// Slot, start and end in `arena`; a later entry of the same slot wins.
    named: Vec<(u16, usize, usize)>,
    arena: Vec<u8>,
}

impl Captures {
    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.subject.clear();
        self.spans.clear();
        self.named.clear();
        self.arena.clear();
    }

    /// Matches `subject`; on success its groups replace the numbered ones held so far.
    pub(crate) fn capture(&mut self, pattern: &Pattern, subject: &[u8]) -> bool {
        if !pattern.groups {
            let matched = pattern.matches(subject);
            if matched {
                self.subject.clear();
                self.spans.clear();
            }
            return matched;
        }
        let compiled = pattern.regex.compiled();
        let mut locations = compiled.capture_locations();
        let matched = compiled.captures_read(&mut locations, subject);
        if !matches!(matched, Ok(Some(_))) {
            return false;
        }
        self.keep(pattern, &locations, subject);
        true
    }

    fn keep(&mut self, pattern: &Pattern, locations: &CaptureLocations, subject: &[u8]) {
        self.subject.clear();
        self.subject.extend_from_slice(subject);
        self.spans.clear();
        self.spans.extend((0..locations.len()).map(|index| locations.get(index)));
        for &(index, slot) in &pattern.named {
            let (start, end) = locations.get(index).unwrap_or((0, 0));
            let at = self.arena.len();
            self.arena.extend_from_slice(&subject[start..end]);
            self.named.push((slot, at, self.arena.len()));
        }
    }

    /// `$1`–`$9`.
    pub(crate) fn numbered(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = (*self.spans.get(index)?)?;
        self.subject.get(start..end)
    }

    /// A named group by its slot.
    pub(crate) fn named(&self, slot: u16) -> Option<&[u8]> {
        let (_, start, end) = self.named.iter().rev().find(|(known, ..)| *known == slot)?;
        self.arena.get(*start..*end)
    }
}

#[cfg(test)]
mod tests {
    use conf::regex::{Case, Regex};

    use super::{Captures, Pattern};

    #[test]
    fn numbered_groups_are_the_last_match_and_named_ones_stay() {
        let pattern = |text: &[u8]| {
            Pattern::new(&Regex::new(text, Case::Sensitive).unwrap(), &["other", "user"])
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
