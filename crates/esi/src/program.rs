//! A parsed page with ESI: literals and includes in their order, and inlines.
//!
//! Owns the types that the parser returns and its interface: chunks in, pieces out as soon as they
//! are certain. Any split of a page into chunks gives the same program, apart from where literals
//! are cut.

use bolide_http::lscache::LsCacheControl;
use bytes::Bytes;

use crate::builder::Builder;
use crate::scan::EsiScanner;

/// Bounds on what one page may request. Each excess is a [`Problem`] and costs nothing more.
#[derive(Clone, Copy, Debug)]
pub struct EsiLimits {
    /// Includes of one page; further ones are empty.
    pub includes: u32,
    /// Elements of any kind; further ones stay in the page as text.
    pub elements: u32,
    /// Bytes of one attribute's value, as written; an element with a longer one is empty.
    pub attribute: usize,
    /// Bytes of one tag; a longer one stays in the page as text.
    pub tag: usize,
    /// Bytes of all inlines of one page; further ones are cut and dropped.
    pub inlined: usize,
    /// Nesting depth of `inline` and `remove`; deeper ones are not counted.
    pub depth: u32,
}

impl Default for EsiLimits {
    fn default() -> Self {
        Self {
            includes: 256,
            elements: 4096,
            attribute: 8 * 1024,
            tag: 32 * 1024,
            inlined: 1024 * 1024,
            depth: 8,
        }
    }
}

/// A page as a sequence of pieces to send.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// In the order of the page.
    pub pieces: Vec<EsiNode>,
    /// Objects that the page brings along; they precede the includes they answer.
    pub inlines: Vec<Inline>,
    /// Bytes of all literals.
    pub literal_len: u64,
    /// Bytes of the source page.
    pub source_len: u64,
    /// The problems found; the first few ([`PROBLEMS_MAX`]).
    pub problems: Vec<Problem>,
}

/// LIMIT: problems remembered of one page.
pub const PROBLEMS_MAX: usize = 16;

impl Program {
    /// The includes in the order of the page.
    pub fn includes(&self) -> impl Iterator<Item = &EsiInclude> {
        self.pieces.iter().filter_map(|piece| match piece {
            EsiNode::Include(include) => Some(&**include),
            EsiNode::Literal(_) => None,
        })
    }

    /// Whether the page is sent unchanged: it had no ESI.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.literal_len == self.source_len && self.includes().next().is_none()
    }
}

/// One piece to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EsiNode {
    /// These bytes.
    Literal(Bytes),
    /// A fragment.
    Include(Box<EsiInclude>),
}

/// The replacement of a fragment that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// No replacement, and the failure counts.
    #[default]
    Nothing,
    /// `onerror="continue"`: no replacement, and the page is complete without it.
    Continue,
}

/// The role of an include when several are fetched at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// None.
    #[default]
    Alone,
    /// `combine="main"`: its response brings the others as inlines.
    Main,
    /// `combine="sub"`: comes with the response of the main one.
    Sub,
}

/// `<esi:include …/>`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EsiInclude {
    /// `src` without HTML's escapes; printable ASCII without blanks, not empty.
    pub src: Bytes,
    /// `alt`: fetched when `src` failed; like `src`.
    pub alt: Option<Bytes>,
    /// `onerror`
    pub onerror: OnError,
    /// `cache-control`: which cache to look in and whether cookies matter.
    pub control: LsCacheControl,
    /// `cache-tag`: the tags of a shared fragment; separated by commas.
    pub tags: Option<Bytes>,
    /// `as-var`: all includes of the page with this `src` are sent the same bytes.
    pub as_var: bool,
    /// For `as_var`: the index of the page's first include with this `src`, if that is another one.
    pub same_as: Option<u32>,
    /// `test`, unread.
    pub test: Option<Bytes>,
    /// `combine`
    pub combine: Combine,
}

/// `<esi:inline name=…>body</esi:inline>`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inline {
    /// The URL that the body answers: like [`EsiInclude::src`].
    pub name: Bytes,
    /// `cache-control`, treated as a response's.
    pub control: LsCacheControl,
    /// `cache-tag`: as `X-LiteSpeed-Tag`.
    pub tags: Option<Bytes>,
    /// The content to store; ESI in it is not parsed.
    pub body: Bytes,
}

/// Something wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the page before the tag.
    pub at: u64,
    /// Its kind.
    pub kind: ProblemKind,
}

/// The kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// More includes than one page may have.
    TooManyIncludes,
    /// More elements than one page may have.
    TooManyElements,
    /// A tag too long, or cut off by the end of the page.
    TagTooLong,
    /// A tag inside which another one begins.
    BrokenTag,
    /// A value too long.
    AttributeTooLong,
    /// An include without `src`, or an inline without `name`.
    NoAddress,
    /// A URL with a blank, a control or a byte outside ASCII.
    BadAddress,
    /// More bytes of inlines than one page may have.
    InlinesTooLarge,
    /// The page ends inside `inline` or `remove`.
    Unclosed,
    /// `inline` or `remove` nested too deeply.
    TooDeep,
}

impl ProblemKind {
    /// For the log.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooManyIncludes => "ESI: too many includes in one page",
            Self::TooManyElements => "ESI: too many elements in one page",
            Self::TagTooLong => "ESI: a tag is too long or never ends",
            Self::BrokenTag => "ESI: a tag begins inside of a tag",
            Self::AttributeTooLong => "ESI: an attribute is too long",
            Self::NoAddress => "ESI: an include without src or an inline without name",
            Self::BadAddress => "ESI: blanks or controls in an address",
            Self::InlinesTooLarge => "ESI: too many bytes of inlines in one page",
            Self::Unclosed => "ESI: the page ends inside of inline or remove",
            Self::TooDeep => "ESI: inline or remove nested too deeply",
        }
    }
}

/// Reads a page chunk by chunk.
///
/// ```
/// let mut parser = bolide_esi::EsiParser::new(bolide_esi::EsiLimits::default());
/// parser.feed(bytes::Bytes::from_static(b"<p><esi:inc"));
/// parser.feed(bytes::Bytes::from_static(b"lude src='/a'/></p>"));
/// assert_eq!(parser.finish().includes().next().map(|i| &i.src[..]), Some(&b"/a"[..]));
/// ```
#[derive(Debug)]
pub struct EsiParser {
    scanner: EsiScanner,
    builder: Builder,
}

impl EsiParser {
    /// A parser at the beginning of a page.
    #[must_use]
    pub fn new(limits: EsiLimits) -> Self {
        Self { scanner: EsiScanner::new(limits.tag), builder: Builder::new(limits) }
    }

    /// Takes the next bytes of the page; they are shared, not copied, except tags split across
    /// chunks.
    #[expect(clippy::needless_pass_by_value, reason = "literals keep the chunk")]
    pub fn feed(&mut self, chunk: Bytes) {
        self.scanner.feed(&chunk, &mut self.builder);
    }

    /// The certain part so far; pieces and inlines are only ever appended.
    #[must_use]
    pub const fn program(&self) -> &Program {
        self.builder.program()
    }

    /// Removes the pieces that are certain so far. Numbers of includes count removed ones, too.
    pub fn take_pieces(&mut self) -> Vec<EsiNode> {
        std::mem::take(&mut self.builder.program_mut().pieces)
    }

    /// Removes the inlines that are complete so far.
    pub(crate) fn take_inlines(&mut self) -> Vec<Inline> {
        std::mem::take(&mut self.builder.program_mut().inlines)
    }

    pub(crate) fn take_cuts(&mut self) -> Vec<std::ops::Range<u64>> {
        self.builder.take_cuts()
    }

    /// Bytes of the page before an unfinished inline and before bytes held back.
    pub(crate) fn settled(&self) -> u64 {
        self.builder.open_inline().unwrap_or_else(|| self.scanner.settled())
    }

    pub(crate) const fn is_in_inline(&self) -> bool {
        self.builder.open_inline().is_some()
    }

    pub(crate) const fn is_doubtful(&self) -> bool {
        self.builder.is_doubtful()
    }

    /// The whole program, at the end of the page.
    #[must_use]
    pub fn finish(mut self) -> Program {
        self.scanner.finish(&mut self.builder);
        self.builder.finish()
    }
}

/// The program of a page in one piece.
#[must_use]
pub fn parse(page: Bytes, limits: EsiLimits) -> Program {
    let mut parser = EsiParser::new(limits);
    parser.feed(page);
    parser.finish()
}

#[cfg(test)]
mod tests;
