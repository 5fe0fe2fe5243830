//! Regular expressions of a file: PCRE on bytes with Apache's defaults and a limit of steps. A
//! match that exceeds the limit stops the evaluation; it never counts as "no match".

use std::sync::{Arc, OnceLock};

use bolide_regex::{GroupSpans, MatchError, MatchWork, Pcre, PcreOptions};

mod shape;

use self::shape::Shape;
use crate::effort::Effort;
use crate::world::Stop;

/// Whether letters match case-insensitively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    Exact,
    Any,
}

/// The kind of subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternPlace {
    /// A text of the request: a dot matches every byte.
    Text,
    /// A line of a body: a dot matches no line feed.
    Line,
}

/// The least work of an uncounted attempt: bytes scanned, items tried.
const ATTEMPT: u32 = 8 * 1024;

/// A compiled expression.
#[derive(Clone)]
pub struct Pattern {
    source: Box<[u8]>,
    letters: Letters,
    place: PatternPlace,
    /// Its simple form, if it needs no expression.
    shape: Option<Box<Shape>>,
    /// Compiled on its first use, if it has a simple form. Threads share those of
    /// `apache_directory`.
    compiled: OnceLock<Arc<Pcre>>,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "~{}", self.source.escape_ascii())
    }
}

/// The captures of a match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    subject: Vec<u8>,
    spans: MatchSpans,
}

impl Groups {
    /// The text of a group; empty if it did not participate.
    pub(crate) fn of(&self, number: usize) -> &[u8] {
        self.spans.of(&self.subject, number)
    }

    /// The start and end of the whole match.
    pub(crate) fn span(&self) -> (usize, usize) {
        self.spans.whole()
    }

    /// Clears the match.
    pub(crate) fn clear(&mut self) {
        self.spans.0.clear();
    }
}

/// The positions of a match and its groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchSpans(GroupSpans);

impl MatchSpans {
    /// The start and end of the whole match.
    pub(crate) fn whole(&self) -> (usize, usize) {
        self.0.get(0).unwrap_or((0, 0))
    }

    /// The text of a group in `text`; empty if it did not participate.
    pub(crate) fn of<'t>(&self, text: &'t [u8], number: usize) -> &'t [u8] {
        self.0.get(number).and_then(|(start, end)| text.get(start..end)).unwrap_or_default()
    }
}

impl Pattern {
    /// Compiles `source`; none if it is invalid.
    pub(crate) fn new(source: &[u8], letters: Letters) -> Option<Self> {
        Self::of(source, letters, PatternPlace::Text)
    }

    /// As [`Self::new`] for lines of a body.
    pub(crate) fn of_line(source: &[u8], letters: Letters) -> Option<Self> {
        Self::of(source, letters, PatternPlace::Line)
    }

    fn of(source: &[u8], letters: Letters, place: PatternPlace) -> Option<Self> {
        let shape = Shape::new(source, letters);
        // A form that counts bytes would count line feeds.
        let shape = shape.filter(|shape| place == PatternPlace::Text || shape.is_text());
        let pattern = Self {
            source: source.into(),
            letters,
            place,
            shape: shape.map(Box::new),
            compiled: OnceLock::new(),
        };
        // Every simple form is valid for PCRE, which may never be needed.
        (pattern.shape.is_some() || pattern.compiled().is_ok()).then_some(pattern)
    }

    fn compiled(&self) -> Result<&Pcre, Stop> {
        if self.compiled.get().is_none() {
            let options = PcreOptions {
                caseless: self.letters == Letters::Any,
                dotall: self.place == PatternPlace::Text,
                dollar_end_only: true,
                is_trusted: false,
                attempt: ATTEMPT,
            };
            let made = Pcre::new(&self.source, options).map_err(|_| self.gave_up())?;
            // Another thread may have been first, with an equal result.
            let _ = self.compiled.set(Arc::new(made));
        }
        self.compiled.get().map(|compiled| &**compiled).ok_or_else(|| self.gave_up())
    }

    /// Whether it matches anywhere in `text`.
    ///
    /// # Errors
    ///
    /// It took too many steps, or nothing is left of `effort`.
    pub fn is_match(&self, text: &[u8], effort: &Effort) -> Result<bool, Stop> {
        effort.spend_part()?;
        if let Some(shape) = &self.shape {
            return Ok(shape.find(text).is_some());
        }
        let compiled = self.compiled()?;
        self.within(effort, |work| compiled.is_match(text, work))
    }

    /// As [`Self::is_match`]; on a match `groups` gets the captures.
    pub(crate) fn find(
        &self,
        text: &[u8],
        groups: &mut Groups,
        effort: &Effort,
    ) -> Result<bool, Stop> {
        let is_found = self.find_spans(text, &mut groups.spans, effort)?;
        if is_found {
            effort.spend(text.len());
            groups.subject.clear();
            groups.subject.extend_from_slice(text);
        }
        Ok(is_found)
    }

    /// As [`Self::is_match`]; on a match `spans` gets the positions.
    #[inline]
    pub(crate) fn find_spans(
        &self,
        text: &[u8],
        MatchSpans(spans): &mut MatchSpans,
        effort: &Effort,
    ) -> Result<bool, Stop> {
        effort.spend_part()?;
        match self.shape.as_ref().map(|shape| shape.find(text)) {
            Some(Some((start, end))) => {
                spans.set_whole(start, end);
                Ok(true)
            }
            Some(None) => Ok(false),
            None => {
                let compiled = self.compiled()?;
                self.within(effort, |work| compiled.find(text, spans, work))
            }
        }
    }

    /// A match within the rest of `effort`.
    fn within(
        &self,
        effort: &Effort,
        matched: impl FnOnce(&mut MatchWork) -> Result<bool, MatchError>,
    ) -> Result<bool, Stop> {
        effort.matched(matched)?.map_err(|_| self.gave_up())
    }

    fn gave_up(&self) -> Stop {
        Stop::GaveUp(self.source.clone())
    }
}

/// Whether `text` matches the wildcards `*`, `?` and `[…]` of `glob`, in linear space and in time
/// bounded by the product of both lengths; false if that exceeds the limit of an evaluation.
#[must_use]
pub fn fits(glob: &[u8], text: &[u8]) -> bool {
    fits_within(glob, text, &Effort::default()).unwrap_or(false)
}

/// As [`fits`], within the rest of `effort`.
///
/// # Errors
///
/// Nothing is left of it.
pub(crate) fn fits_within(glob: &[u8], text: &[u8], effort: &Effort) -> Result<bool, Stop> {
    effort.spend_part()?;
    let (mut at, mut from) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        effort.spend(1);
        effort.check()?;
        let step = match glob.get(at) {
            Some(b'*') => {
                retry = Some((at + 1, from));
                at += 1;
                continue;
            }
            Some(_) if from < text.len() => one_fits(&glob[at..], text[from]),
            None if from == text.len() => return Ok(true),
            _ => None,
        };
        match (step, &mut retry) {
            (Some(used), _) => {
                at += used;
                from += 1;
            }
            (None, Some((after, mark))) if *mark < text.len() => {
                *mark += 1;
                (at, from) = (*after, *mark);
            }
            _ => return Ok(false),
        }
    }
}

/// The length of the part of `glob` that matches one byte.
fn one_fits(glob: &[u8], byte: u8) -> Option<usize> {
    match glob {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', set @ ..] => {
            let (negated, set) = match set {
                [b'!' | b'^', rest @ ..] => (true, rest),
                _ => (false, set),
            };
            let Some(end) = set.iter().skip(1).position(|byte| *byte == b']') else {
                return (byte == b'[').then_some(1);
            };
            let members = &set[..=end];
            let mut is_member = false;
            let mut rest = members;
            while let Some(first) = rest.first() {
                (is_member, rest) = match rest {
                    [low, b'-', high, after @ ..] => {
                        (is_member || (*low..=*high).contains(&byte), after)
                    }
                    _ => (is_member || *first == byte, &rest[1..]),
                };
            }
            (is_member != negated).then_some(glob.len() - set.len() + members.len() + 1)
        }
        [plain, ..] => (*plain == byte).then_some(1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Groups, Letters, Pattern, fits};
    use crate::effort::Effort;
    use crate::world::Stop;

    #[test]
    fn wildcards_are_those_of_a_shell() {
        let rows = [
            ("*", "", true),
            ("*.php", "a.php", true),
            ("*.php", "a.phps", false),
            (".ht*", ".htaccess", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x]", "]", true),
            ("[a", "[a", true),
            ("a*b*c", "axxbyybc", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
        ];
        for (glob, text, wanted) in rows {
            assert_eq!(fits(glob.as_bytes(), text.as_bytes()), wanted, "{glob} {text}");
        }
    }

    #[test]
    fn an_expression_that_takes_too_long_stops() {
        let pattern = Pattern::new(b"^(a|aa)+$", Letters::Exact).unwrap();
        let text = [&[b'a'; 40][..], b"c"].concat();
        assert!(matches!(pattern.is_match(&text, &Effort::default()), Err(Stop::GaveUp(_))));
    }

    #[test]
    fn a_dot_matches_every_byte() {
        let mut groups = Groups::default();
        let pattern = Pattern::new(b"^(.+)x(y)?$", Letters::Any).unwrap();
        assert!(pattern.find(b"a\nbX", &mut groups, &Effort::default()).unwrap());
        assert_eq!((groups.of(1), groups.of(2)), (&b"a\nb"[..], &b""[..]));
        assert!(Pattern::new(b"^(", Letters::Exact).is_none());
    }
}
