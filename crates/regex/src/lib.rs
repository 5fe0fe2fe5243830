//! Regular expressions with an exact bound on the work of each match: PCRE on bytes, with JIT.
//!
//! PCRE's own limit counts anew at each place where a match might begin, so it bounds no match in a
//! long text. Here a match is first tried with a limit so low that all of its places together stay
//! within the work that the caller leaves uncounted; where that does not do, the expression is
//! compiled once more with a callout before each item, and the callouts count what the match does.
//! Owns no meaning: what a match is for is the caller's.

use std::sync::OnceLock;

use bolide_base::limits;

mod library;

use library::{Code, Outcome};

pub use library::{CompileError, GroupSpans};

/// How an expression is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcreOptions {
    /// Letters match in either case.
    pub caseless: bool,
    /// A dot matches a line feed, too.
    pub dotall: bool,
    /// What an attempt that is not counted may do at least, in bytes gone through and items tried.
    pub attempt: u32,
}

/// What matches may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchWork {
    /// Uncounted: bytes gone through and items tried, of some ns each. An attempt takes the most
    /// that it could do.
    pub quick: u32,
    /// Counted: items tried, of 10 to 20 ns each, and as much for each 16 bytes gone through.
    pub steps: u32,
}

impl Default for MatchWork {
    /// That of one match of an expression that the administrator wrote.
    fn default() -> Self {
        Self { quick: limits::MATCH_QUICK_MAX, steps: limits::MATCH_STEPS_MAX }
    }
}

/// A match that took more steps than were left, or that the library could not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchError {
    /// The library's number: -47 for steps, -63 for its memory.
    pub code: i32,
}

/// An expression.
#[derive(Debug)]
pub struct Pcre {
    source: Box<[u8]>,
    options: PcreOptions,
    plain: Code,
    /// With callouts, once it was needed.
    counted: OnceLock<Option<Code>>,
    /// The largest `{n`: so many bytes an item may go through before it fails.
    repeats: usize,
}

/// The library's limit for one place where a match may begin, at least: an attempt with less would
/// be in vain.
const LIMIT_MIN: usize = 8;

impl Pcre {
    /// Compiles `source`.
    ///
    /// # Errors
    ///
    /// What the library says of it, and where.
    pub fn new(source: &[u8], options: PcreOptions) -> Result<Self, CompileError> {
        let plain = Code::new(source, options, false)?;
        let repeats = repeats(source);
        Ok(Self { source: source.into(), options, plain, counted: OnceLock::new(), repeats })
    }

    /// The expression as written.
    #[must_use]
    pub const fn source(&self) -> &[u8] {
        &self.source
    }

    /// Groups, the whole match among them.
    #[must_use]
    pub const fn groups(&self) -> usize {
        self.plain.groups()
    }

    /// Named groups: the group's number and its name.
    pub fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.plain.names().iter().map(|(group, name)| (*group, &**name))
    }

    /// Whether it matches somewhere in `text`; takes what that took from `work`.
    ///
    /// # Errors
    ///
    /// It takes more than `work` has, or more of the library's memory than 4 MB.
    pub fn is_match(&self, text: &[u8], work: &mut MatchWork) -> Result<bool, MatchError> {
        self.search(text, 0, None, work)
    }

    /// The same for a match that begins at `from` or behind; on a match `spans` has where its
    /// groups lie, and stays as it was otherwise.
    ///
    /// # Errors
    ///
    /// As [`Pcre::is_match`].
    pub fn find(
        &self,
        text: &[u8],
        from: usize,
        spans: &mut GroupSpans,
        work: &mut MatchWork,
    ) -> Result<bool, MatchError> {
        self.search(text, from, Some(spans), work)
    }

    fn search(
        &self,
        text: &[u8],
        from: usize,
        mut spans: Option<&mut GroupSpans>,
        work: &mut MatchWork,
    ) -> Result<bool, MatchError> {
        if let Some(limit) = self.take_attempt(text.len().saturating_sub(from), work) {
            match self.plain.search(text, from, limit, spans.as_deref_mut()) {
                Outcome::Found => return Ok(true),
                Outcome::Nothing => return Ok(false),
                Outcome::TooLong | Outcome::NoStack => {}
                Outcome::Failed(code) => return Err(MatchError { code }),
            }
        }
        self.search_counted(text, from, spans, &mut work.steps)
    }

    /// Takes an attempt that is not counted; gives the library's limit for each place where a match
    /// may begin, so that all together stay within it. None if too little is left.
    fn take_attempt(&self, len: usize, work: &mut MatchWork) -> Option<u32> {
        let starts = if self.plain.is_anchored() { 1 } else { len + 1 };
        // Between two of the library's counts an item goes through the text, and all others are
        // tried; a reference to a group compares as much as the group has, each time.
        let mut between = len + self.plain.items();
        if self.plain.has_references() {
            between = between.saturating_mul(len + 1);
        }
        let unit = starts.saturating_mul(between).max(1);
        let limit = (self.options.attempt as usize / unit).max(LIMIT_MIN);
        let taken = u32::try_from(limit.checked_mul(unit)?).ok()?;
        work.quick = work.quick.checked_sub(taken)?;
        u32::try_from(limit).ok()
    }

    #[cold]
    fn search_counted(
        &self,
        text: &[u8],
        from: usize,
        spans: Option<&mut GroupSpans>,
        steps: &mut u32,
    ) -> Result<bool, MatchError> {
        let counted = self.counted.get_or_init(|| Code::new(&self.source, self.options, true).ok());
        // With callouts an expression may be too large for the library.
        let Some(code) = counted else { return Err(MatchError { code: library::TOO_LONG }) };
        let unseen = if code.has_references() { text.len() } else { self.repeats.min(text.len()) };
        match code.search_counted(text, from, unseen, steps, spans) {
            Outcome::Found => Ok(true),
            Outcome::Nothing => Ok(false),
            Outcome::TooLong | Outcome::NoStack => Err(MatchError { code: library::TOO_LONG }),
            Outcome::Failed(code) => Err(MatchError { code }),
        }
    }
}

/// The largest number behind a `{`.
fn repeats(source: &[u8]) -> usize {
    let after = source.split(|byte| *byte == b'{').skip(1);
    let numbers = after.map(|text| {
        let text = text.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0_usize, |number, digit| {
            number.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
        })
    });
    numbers.max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
