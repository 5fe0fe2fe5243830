//! Regular expressions with an exact bound on the work of each match: PCRE on bytes, with JIT.
//!
//! PCRE's match limit restarts at each position where a match might begin, so it does not bound a
//! match in a long text. Here a match is first tried with a limit so low that all positions
//! together stay within the uncounted allowance of the caller. If that is not enough, the
//! expression is compiled again with a callout before each item, and the callouts count the work.
//! The caller decides what a match means.

use std::sync::OnceLock;

use bolide_base::limits;

mod library;

use library::{Code, CodeForm, ItemCosts, Outcome};

pub use library::{CompileError, GroupSpans, compiled_here};

/// How an expression is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcreOptions {
    /// Letters match in either case.
    pub caseless: bool,
    /// A dot matches a line feed, too.
    pub dotall: bool,
    /// `$` matches behind a last line feed only.
    pub dollar_end_only: bool,
    /// Whether the administrator wrote it. Others may not use `(*UTF)`, with which the work of an
    /// item has no bound, and an expression that is too large to be counted gets no more than an
    /// uncounted attempt.
    pub is_trusted: bool,
    /// The least work of an uncounted attempt, in bytes scanned and items tried.
    pub attempt: u32,
}

impl PcreOptions {
    /// Those of an expression that the administrator wrote, as nginx has them.
    #[must_use]
    pub const fn trusted() -> Self {
        Self {
            caseless: false,
            dotall: false,
            dollar_end_only: false,
            is_trusted: true,
            attempt: limits::MATCH_ATTEMPT,
        }
    }
}

/// The work that matches may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchWork {
    /// Uncounted: bytes scanned and items tried, of some ns each. An attempt is charged its
    /// maximum.
    pub quick: u32,
    /// Counted: items tried, of 20 to 60 ns each; 16 scanned bytes count as one.
    pub steps: u32,
    /// Bytes of memory for compiling with JIT, of 1 to 3 ns each: for expressions of others than
    /// the administrator, before their first match. The last one may take 512 KiB more.
    pub jit: usize,
}

impl Default for MatchWork {
    /// The allowance of one match of an administrator's expression.
    fn default() -> Self {
        Self { quick: limits::MATCH_QUICK_MAX, steps: limits::MATCH_STEPS_MAX, jit: usize::MAX }
    }
}

/// A match that exceeded its allowance, or an error of PCRE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchError {
    /// PCRE's error code: -47 for steps, -63 for memory.
    pub code: i32,
}

/// A compiled expression.
#[derive(Debug)]
pub struct Pcre {
    source: Box<[u8]>,
    options: PcreOptions,
    plain: Code,
    /// Compiled with JIT, if `plain` is not, from its first use on; none if that takes too much
    /// memory.
    jit: OnceLock<Option<Box<Code>>>,
    /// Compiled with callouts, once that was needed.
    counted: OnceLock<Option<Box<Code>>>,
    /// The work that neither PCRE's limit nor callouts see.
    unseen: UnseenWork,
}

/// The fixed size of a compiled expression in bytes.
const CODE_HEAD: usize = 150;
/// The approximate memory of an expression with JIT: a fixed part, and a part for each byte of
/// code, for the first bytes and for further ones.
const JIT_FIRST: usize = 640;
const JIT_EACH: usize = 6;
const JIT_FURTHER: usize = 14;
/// Bytes of code that count as the first ones.
const SAYS_LITTLE: usize = 128;
/// LIMIT: the factor by which JIT may exceed that; a larger expression is interpreted.
const JIT_TIMES_MAX: usize = 2;
/// LIMIT: bytes of memory for compiling one expression with JIT.
const JIT_WORK_MAX: usize = 512 * 1024;
/// The least match limit per position: an attempt with less would be in vain.
const LIMIT_MIN: usize = 8;
/// Steps per byte of compiling an expression again.
const COMPILE_STEPS: u32 = 32;
/// Properties of a character set that are checked as fast as one byte.
const QUICK_PROPERTIES: usize = 4;
/// Items of an expression per range of a character set beyond bytes.
const RANGE_ITEMS: usize = 16;

/// The work of an item that is counted only after it is done.
#[derive(Clone, Copy, Debug)]
struct UnseenWork {
    /// The largest repetition count `{n`: an item may scan this many bytes before it fails.
    repeats: usize,
    /// The cost of a character set relative to a byte: its properties are checked one by one.
    set: usize,
    again: TextAgain,
}

/// How an item scans parts of the text repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextAgain {
    No,
    /// A backreference compares the whole group; a script run is scanned once more.
    Once,
    /// `\X` looks back from each character.
    Everywhere,
}

impl UnseenWork {
    fn new(source: &[u8], options: PcreOptions, code: &Code) -> Self {
        let escapes = |letters: &[u8]| {
            source.windows(2).filter(|two| two[0] == b'\\' && letters.contains(&two[1])).count()
        };
        let is_utf = options.is_trusted && source.starts_with(b"(*");
        let mut set = 1 + escapes(b"pP") / QUICK_PROPERTIES;
        set += if is_utf { code.items() / RANGE_ITEMS } else { 0 };
        let again = match (is_utf, code.has_references()) {
            (true, _) if escapes(b"X") > 0 => TextAgain::Everywhere,
            (true, _) | (_, true) => TextAgain::Once,
            _ => TextAgain::No,
        };
        Self { repeats: repeats(source), set, again }
    }

    /// Bytes that an item may scan in addition, in a text of this length.
    const fn again(self, len: usize) -> usize {
        match self.again {
            TextAgain::No => 0,
            TextAgain::Once => len.saturating_mul(len),
            TextAgain::Everywhere => len.saturating_mul(len).saturating_mul(len),
        }
    }

    /// Bytes that it may scan without advancing, in a text of this length.
    fn before_failing(self, len: usize) -> usize {
        match self.again {
            TextAgain::No => self.repeats.min(len),
            TextAgain::Once => len,
            TextAgain::Everywhere => len.saturating_mul(len),
        }
    }
}

impl Pcre {
    /// Compiles `source`.
    ///
    /// # Errors
    ///
    /// PCRE's message and position.
    pub fn new(source: &[u8], options: PcreOptions) -> Result<Self, CompileError> {
        let mut plain = Code::new(source, options, CodeForm::Plain)?;
        // JIT takes several times as long as the rest. Another user's file may have thousands of
        // expressions, and be read again at any time.
        let (jit, spared) = match options.is_trusted {
            true => {
                plain.compile_jit();
                (OnceLock::from(None), plain.jit_size())
            }
            false => (OnceLock::new(), jit_share(&plain)),
        };
        library::count_compiled(plain.size() + spared);
        let unseen = UnseenWork::new(source, options, &plain);
        let (source, counted) = (source.into(), OnceLock::new());
        Ok(Self { source, options, plain, jit, counted, unseen })
    }

    /// The expression as written.
    #[must_use]
    pub const fn source(&self) -> &[u8] {
        &self.source
    }

    /// The number of groups, including the whole match.
    #[must_use]
    pub const fn groups(&self) -> usize {
        self.plain.groups()
    }

    /// The named groups: number and name.
    pub fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.plain.names().iter().map(|(group, name)| (*group, &**name))
    }

    /// Whether it matches anywhere in `text`; the work is taken from `work`.
    ///
    /// # Errors
    ///
    /// The match exceeds `work`, or 4 MB of PCRE's memory.
    pub fn is_match(&self, text: &[u8], work: &mut MatchWork) -> Result<bool, MatchError> {
        self.search(text, None, work)
    }

    /// As [`Pcre::is_match`]; on a match `spans` gets the positions of its groups, and is unchanged
    /// otherwise.
    ///
    /// # Errors
    ///
    /// As [`Pcre::is_match`].
    pub fn find(
        &self,
        text: &[u8],
        spans: &mut GroupSpans,
        work: &mut MatchWork,
    ) -> Result<bool, MatchError> {
        self.search(text, Some(spans), work)
    }

    fn search(
        &self,
        text: &[u8],
        mut spans: Option<&mut GroupSpans>,
        work: &mut MatchWork,
    ) -> Result<bool, MatchError> {
        if let Some(limit) = self.take_attempt(text.len(), work) {
            match self.quick(work).search(text, limit, spans.as_deref_mut()) {
                Outcome::TooLong | Outcome::NoStack => {}
                outcome => return verdict_of(outcome),
            }
        }
        self.search_counted(text, spans, &mut work.steps)
    }

    /// The code for an uncounted attempt.
    #[inline]
    fn quick(&self, work: &mut MatchWork) -> &Code {
        match self.jit.get() {
            Some(jit) => jit.as_deref().unwrap_or(&self.plain),
            None => self.compile_jit(work),
        }
    }

    /// Compiles it with JIT, if that is within `work`.
    #[cold]
    fn compile_jit(&self, work: &mut MatchWork) -> &Code {
        if work.jit == 0 {
            return &self.plain;
        }
        let most = jit_share(&self.plain).saturating_mul(JIT_TIMES_MAX);
        let compiled = self.jit.get_or_init(|| {
            let mut code = Code::new(&self.source, self.options, CodeForm::Plain).ok()?;
            let taken = code.compile_jit_within(JIT_WORK_MAX);
            work.jit = work.jit.saturating_sub(self.plain.size() + taken);
            let is_small = code.size() + code.jit_size() <= most;
            (code.has_jit() && is_small).then(|| Box::new(code))
        });
        compiled.as_deref().unwrap_or(&self.plain)
    }

    /// Takes the work of an uncounted attempt; returns the match limit per position, so that all
    /// together stay within it. None if too little is left.
    fn take_attempt(&self, len: usize, work: &mut MatchWork) -> Option<u32> {
        let unit = self.unit(len);
        let limit = (self.options.attempt as usize / unit).max(LIMIT_MIN);
        let taken = u32::try_from(limit.checked_mul(unit)?).ok()?;
        work.quick = work.quick.checked_sub(taken)?;
        u32::try_from(limit).ok()
    }

    /// The number of positions where a match may begin.
    const fn starts(&self, len: usize) -> usize {
        if self.plain.is_anchored() { 1 } else { len + 1 }
    }

    /// The most work per count of PCRE's match limit, in a text of this length.
    fn unit(&self, len: usize) -> usize {
        // Between two counts an item may scan the text, and all others are tried: each item with so
        // large a repetition count may scan as much before it fails.
        let UnseenWork { repeats, set, .. } = self.unseen;
        let through = len.saturating_add(self.unseen.again(len)).saturating_mul(set);
        let each = repeats.min(len).max(1).saturating_mul(set);
        let between = through.saturating_add(self.plain.items().saturating_mul(each));
        self.starts(len).saturating_mul(between).max(1)
    }

    #[cold]
    fn search_counted(
        &self,
        text: &[u8],
        spans: Option<&mut GroupSpans>,
        steps: &mut u32,
    ) -> Result<bool, MatchError> {
        let counted = self.counted.get_or_init(|| {
            // Compiling takes about a microsecond for a byte.
            let compiling = u32::try_from(self.source.len()).unwrap_or(u32::MAX);
            *steps -= compiling.saturating_mul(COMPILE_STEPS).min(*steps / 2);
            let mut code = Code::new(&self.source, self.options, CodeForm::Counted).ok()?;
            if self.options.is_trusted {
                code.compile_jit();
            }
            Some(Box::new(code))
        });
        let Some(code) = counted else {
            return self.search_large(text, spans, steps);
        };
        let costs = ItemCosts {
            source: &self.source,
            set: self.unseen.set,
            unseen: self.unseen.before_failing(text.len()),
            is_unseen_anywhere: self.unseen.again != TextAgain::No,
        };
        verdict_of(code.search_counted(text, costs, steps, spans))
    }

    /// A search with an expression that is too large to be compiled with callouts: an uncounted
    /// attempt whose maximum is charged as steps.
    fn search_large(
        &self,
        text: &[u8],
        spans: Option<&mut GroupSpans>,
        steps: &mut u32,
    ) -> Result<bool, MatchError> {
        let len = text.len();
        let attempt = self.unit(len).saturating_mul(LIMIT_MIN) / library::BYTES_PER_STEP;
        let limit = match u32::try_from(attempt).ok().and_then(|taken| steps.checked_sub(taken)) {
            Some(left) => {
                *steps = left;
                LIMIT_MIN
            }
            None if self.options.is_trusted => {
                let all = std::mem::take(steps) as usize;
                (all / self.starts(len)).max(LIMIT_MIN)
            }
            None => return verdict_of(Outcome::TooLong),
        };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        verdict_of(self.plain.search(text, limit, spans))
    }
}

/// The approximate memory of an expression with JIT, in bytes.
const fn jit_share(plain: &Code) -> usize {
    let says = plain.size().saturating_sub(CODE_HEAD);
    let little = if says < SAYS_LITTLE { says } else { SAYS_LITTLE };
    JIT_FIRST + little * JIT_EACH + (says - little).saturating_mul(JIT_FURTHER)
}

/// The outcome of a search, as a result.
const fn verdict_of(outcome: Outcome) -> Result<bool, MatchError> {
    match outcome {
        Outcome::Found => Ok(true),
        Outcome::Nothing => Ok(false),
        Outcome::TooLong | Outcome::NoStack => Err(MatchError { code: library::TOO_LONG }),
        Outcome::Failed(code) => Err(MatchError { code }),
    }
}

/// The largest number after a `{`.
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
