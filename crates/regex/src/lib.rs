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
    /// Who runs the server wrote it. Others may not say `(*UTF)`, with which the work of an item
    /// has no bound, and what is too large to be counted is matched no longer than an attempt.
    pub is_trusted: bool,
    /// What an attempt that is not counted may do at least, in bytes gone through and items tried.
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

/// What matches may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchWork {
    /// Uncounted: bytes gone through and items tried, of some ns each. An attempt takes the most
    /// that it could do.
    pub quick: u32,
    /// Counted: items tried, of 20 to 60 ns each, and as much for each 16 bytes gone through.
    pub steps: u32,
    /// Bytes of memory that the library may have to compile for JIT, of 1 to 3 ns each: expressions
    /// that others than the administrator wrote, before their first match. The last one may take
    /// 512 KiB more.
    pub jit: usize,
}

impl Default for MatchWork {
    /// That of one match of an expression that the administrator wrote.
    fn default() -> Self {
        Self { quick: limits::MATCH_QUICK_MAX, steps: limits::MATCH_STEPS_MAX, jit: usize::MAX }
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
    /// With JIT, where `plain` is without, once it was used; none where that takes too much memory.
    jit: OnceLock<Option<Box<Code>>>,
    /// With callouts, once it was needed.
    counted: OnceLock<Option<Box<Code>>>,
    /// What it takes that neither the library's counts nor callouts see.
    unseen: UnseenWork,
}

/// Bytes of an expression that say nothing of it.
const CODE_HEAD: usize = 150;
/// About how many bytes of memory an expression takes with JIT: so many, and for each byte of what
/// it says, of the first and of further ones.
const JIT_FIRST: usize = 640;
const JIT_EACH: usize = 6;
const JIT_FURTHER: usize = 14;
/// Bytes of what an expression says that are not further ones.
const SAYS_LITTLE: usize = 128;
/// LIMIT: how much more than that JIT may take; of what takes more, the expression is interpreted.
const JIT_TIMES_MAX: usize = 2;
/// LIMIT: bytes of memory that the library may take to compile one expression for JIT.
const JIT_WORK_MAX: usize = 512 * 1024;
/// The library's limit for one place where a match may begin, at least: an attempt with less would
/// be in vain.
const LIMIT_MIN: usize = 8;
/// Steps of compiling a byte of an expression once more.
const COMPILE_STEPS: u32 = 32;
/// Properties of a set that are asked as quickly as a byte is looked up.
const QUICK_PROPERTIES: usize = 4;
/// Items of an expression for each range that a set of characters beyond bytes may have.
const RANGE_ITEMS: usize = 16;

/// The work of an item that is seen only when it is done.
#[derive(Clone, Copy, Debug)]
struct UnseenWork {
    /// The largest `{n`: so many bytes an item may go through before it fails.
    repeats: usize,
    /// How much dearer than a byte a character is that a set is asked about: one after another, its
    /// properties are.
    set: usize,
    again: TextAgain,
}

/// How an item goes through parts of the text again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextAgain {
    No,
    /// A reference to a group compares all that the group has; a script run is looked at once more.
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

    /// Bytes that an item may go through beside a text of so many.
    const fn again(self, len: usize) -> usize {
        match self.again {
            TextAgain::No => 0,
            TextAgain::Once => len.saturating_mul(len),
            TextAgain::Everywhere => len.saturating_mul(len).saturating_mul(len),
        }
    }

    /// Bytes that it may go through without moving on, in a text of so many.
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
    /// What the library says of it, and where.
    pub fn new(source: &[u8], options: PcreOptions) -> Result<Self, CompileError> {
        let mut plain = Code::new(source, options, CodeForm::Plain)?;
        // JIT takes several times as long as the rest. A file of others may have thousands of
        // expressions, and be read again whenever they like.
        let (jit, spared) = match options.is_trusted {
            true => {
                plain.compile_jit();
                (OnceLock::from(None), plain.jit_size())
            }
            false => (OnceLock::new(), jit_share(&plain)),
        };
        library::note_compiled(plain.size() + spared);
        let unseen = UnseenWork::new(source, options, &plain);
        let (source, counted) = (source.into(), OnceLock::new());
        Ok(Self { source, options, plain, jit, counted, unseen })
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
        self.search(text, None, work)
    }

    /// The same; on a match `spans` has where its groups lie, and stays as it was otherwise.
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
                outcome => return told(outcome),
            }
        }
        self.search_counted(text, spans, &mut work.steps)
    }

    /// What an attempt is made with.
    #[inline]
    fn quick(&self, work: &mut MatchWork) -> &Code {
        match self.jit.get() {
            Some(jit) => jit.as_deref().unwrap_or(&self.plain),
            None => self.compile_jit(work),
        }
    }

    /// Compiles it for JIT, if that is within `work`.
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

    /// Takes an attempt that is not counted; gives the library's limit for each place where a match
    /// may begin, so that all together stay within it. None if too little is left.
    fn take_attempt(&self, len: usize, work: &mut MatchWork) -> Option<u32> {
        let unit = self.unit(len);
        let limit = (self.options.attempt as usize / unit).max(LIMIT_MIN);
        let taken = u32::try_from(limit.checked_mul(unit)?).ok()?;
        work.quick = work.quick.checked_sub(taken)?;
        u32::try_from(limit).ok()
    }

    /// Places where a match may begin.
    const fn starts(&self, len: usize) -> usize {
        if self.plain.is_anchored() { 1 } else { len + 1 }
    }

    /// What a match may do at most for each of the library's counts, in a text of so many bytes.
    fn unit(&self, len: usize) -> usize {
        // Between two counts an item goes through the text, and all others are tried: those that
        // are repeated so often may go through as much before they fail.
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
        told(code.search_counted(text, costs, steps, spans))
    }

    /// A search by an expression that is too large for the library with callouts: an attempt that
    /// takes steps.
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
            None => return told(Outcome::TooLong),
        };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        told(self.plain.search(text, limit, spans))
    }
}

/// About how many bytes of memory an expression takes with JIT.
const fn jit_share(plain: &Code) -> usize {
    let says = plain.size().saturating_sub(CODE_HEAD);
    let little = if says < SAYS_LITTLE { says } else { SAYS_LITTLE };
    JIT_FIRST + little * JIT_EACH + (says - little).saturating_mul(JIT_FURTHER)
}

/// What a search came to, for those who asked.
const fn told(outcome: Outcome) -> Result<bool, MatchError> {
    match outcome {
        Outcome::Found => Ok(true),
        Outcome::Nothing => Ok(false),
        Outcome::TooLong | Outcome::NoStack => Err(MatchError { code: library::TOO_LONG }),
        Outcome::Failed(code) => Err(MatchError { code }),
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
