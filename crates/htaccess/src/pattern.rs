//! Regular expressions of a file: PCRE on bytes with Apache's defaults and a bound on its steps. An
//! expression that gives up stops the evaluation; it never counts as "no match".

use std::sync::OnceLock;

use pcre2::bytes;

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

/// LIMIT: steps of a match at first; most matches end within them.
const QUICK_STEPS_MAX: u32 = 2_000;

/// A compiled expression.
#[derive(Clone)]
pub struct Pattern {
    source: Box<[u8]>,
    letters: Letters,
    /// What it comes to, where no expression is needed for it.
    shape: Option<Box<Shape>>,
    /// With few steps; only where they were needed, if it has a shape.
    quick: OnceLock<bytes::Regex>,
    /// The same with more steps, where they were needed. Threads share what `apache_directory` has.
    long: OnceLock<bytes::Regex>,
}

fn compile(source: &str, letters: Letters, steps: u32) -> Result<bytes::Regex, pcre2::Error> {
    bytes::RegexBuilder::new()
        .caseless(letters == Letters::Any)
        .dotall(true)
        .jit_if_available(true)
        .build(&format!("(*LIMIT_MATCH={steps}){source}"))
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "~{}", self.source.escape_ascii())
    }
}

/// What the groups of a match hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    subject: Vec<u8>,
    spans: Vec<Option<(usize, usize)>>,
}

impl Groups {
    /// The text of a group; empty if it took no part.
    pub(crate) fn of(&self, number: usize) -> &[u8] {
        let span = self.spans.get(number).copied().flatten();
        span.and_then(|(start, end)| self.subject.get(start..end)).unwrap_or_default()
    }

    /// Where all that matched begins and ends.
    pub(crate) fn span(&self) -> (usize, usize) {
        self.spans.first().copied().flatten().unwrap_or((0, 0))
    }

    /// Forgets the match.
    pub(crate) fn clear(&mut self) {
        self.spans.clear();
    }
}

impl Pattern {
    /// Compiles `source`; none where PCRE refuses it, or where it is no UTF-8.
    pub(crate) fn new(source: &[u8], letters: Letters) -> Option<Self> {
        let text = std::str::from_utf8(source).ok()?;
        let shape = Shape::new(source, letters).map(Box::new);
        let quick = match shape {
            // PCRE accepts all that has a shape, and may never be asked.
            Some(_) => OnceLock::new(),
            None => compile(text, letters, QUICK_STEPS_MAX).ok()?.into(),
        };
        Some(Self { source: source.into(), letters, shape, quick, long: OnceLock::new() })
    }

    /// The expression with few steps.
    fn quick(&self) -> Result<&bytes::Regex, Stop> {
        self.compiled(&self.quick, QUICK_STEPS_MAX)
    }

    /// The expression with the bound of a match.
    fn long(&self) -> Result<&bytes::Regex, Stop> {
        self.compiled(&self.long, bolide_base::limits::MATCH_STEPS_MAX)
    }

    fn compiled<'a>(
        &self,
        place: &'a OnceLock<bytes::Regex>,
        steps: u32,
    ) -> Result<&'a bytes::Regex, Stop> {
        if place.get().is_none() {
            let text = std::str::from_utf8(&self.source).map_err(|_| self.gave_up())?;
            let made = compile(text, self.letters, steps).map_err(|_| self.gave_up())?;
            // Another thread may have been first, with the same.
            let _ = place.set(made);
        }
        place.get().ok_or_else(|| self.gave_up())
    }

    /// Whether it matches somewhere in `text`.
    ///
    /// # Errors
    ///
    /// It took too many steps, or nothing is left of `effort`.
    pub fn is_match(&self, text: &[u8], effort: &Effort) -> Result<bool, Stop> {
        effort.spend_part()?;
        if let Some(found) = self.shape.as_ref().and_then(|shape| shape.find(text)) {
            return Ok(found.is_some());
        }
        match self.quick()?.is_match(text) {
            Ok(found) => Ok(found),
            Err(_) => {
                effort.spend_long_match()?;
                self.long()?.is_match(text).map_err(|_| self.gave_up())
            }
        }
    }

    /// The same; on a match `groups` has what it captured.
    pub(crate) fn find(
        &self,
        text: &[u8],
        groups: &mut Groups,
        effort: &Effort,
    ) -> Result<bool, Stop> {
        effort.spend_part()?;
        let whole = match self.shape.as_ref().and_then(|shape| shape.find(text)) {
            Some(found) => found,
            None => self.find_whole(text, effort)?,
        };
        let Some(whole) = whole else { return Ok(false) };
        effort.spend(text.len());
        groups.subject.clear();
        groups.subject.extend_from_slice(text);
        groups.spans.clear();
        groups.spans.push(Some(whole));
        if self.shape.is_none() && self.quick()?.captures_len() > 1 {
            // What it captured costs an allocation, so only a match is asked for it.
            self.read_groups(text, groups)?;
        }
        debug_assert_eq!(groups.span(), whole, "a match is the same when it is made again");
        Ok(true)
    }

    /// Where it matches.
    fn find_whole(&self, text: &[u8], effort: &Effort) -> Result<Option<(usize, usize)>, Stop> {
        let found = match self.quick()?.find(text) {
            Ok(found) => found,
            Err(_) => {
                effort.spend_long_match()?;
                self.long()?.find(text).map_err(|_| self.gave_up())?
            }
        };
        Ok(found.map(|found| (found.start(), found.end())))
    }

    fn read_groups(&self, text: &[u8], groups: &mut Groups) -> Result<(), Stop> {
        let quick = self.quick()?;
        let mut locations = quick.capture_locations();
        if quick.captures_read(&mut locations, text).is_err() {
            let long = self.long()?;
            locations = long.capture_locations();
            long.captures_read(&mut locations, text).map_err(|_| self.gave_up())?;
        }
        groups.spans.clear();
        groups.spans.extend((0..locations.len()).map(|index| locations.get(index)));
        Ok(())
    }

    fn gave_up(&self) -> Stop {
        Stop::GaveUp(self.source.clone())
    }
}

/// Whether `text` fits the wildcards `*`, `?` and `[…]` of `glob`, in linear space and in time
/// bounded by the product of both lengths; not if that takes more steps than an evaluation has.
#[must_use]
pub fn fits(glob: &[u8], text: &[u8]) -> bool {
    fits_within(glob, text, &Effort::default()).unwrap_or(false)
}

/// The same within what is left of `effort`.
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

/// How much of `glob` fits one byte.
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
