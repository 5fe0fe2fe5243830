//! Finds ESI in raw bytes: tags in any position, in attributes and scripts too.
//!
//! Owns the bytes held back between chunks: the beginning of a possible tag. Knows four element
//! names in both spellings (`<esi:x`, `<esi_x`) and `<!--esi … -->`; all else is text. Easiest to
//! break: the result must not depend on where chunks are cut.
//!
//! ```text
//!            '<', or '-' in a comment      name and delimiter
//!   Nothing ─────────────────────▶ Prefix ───────────────────▶ Tag
//!      ▲                             │ text                     │ '>' tag; '<' or too long: text
//!      └─────────────────────────────┴──────────────────────────┘
//! ```

use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use crate::builder::Builder;
use crate::program::ProblemKind;

/// An element known to the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Include,
    Inline,
    Remove,
    Comment,
}

const ELEMENTS: [(&[u8], Element); 4] = [
    (b"include", Element::Include),
    (b"inline", Element::Inline),
    (b"remove", Element::Remove),
    (b"comment", Element::Comment),
];
const COMMENT_OPEN: &[u8] = b"<!--esi";
const COMMENT_CLOSE: &[u8] = b"-->";
/// Bytes after which it is certain whether a tag begins here: `</esi:include` and one more.
const START_MAX: usize = 14;

/// The role of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Open,
    Close,
}

/// The construct that begins at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Not certain yet.
    Partial,
    /// No tag.
    Text,
    /// A tag; its name ends after this many bytes.
    Tag(Element, Side, usize),
    /// `<!--esi`
    CommentOpen,
    /// `-->` inside such a comment.
    CommentClose,
}

/// A tag with the place of its attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EsiTag {
    pub(crate) element: Element,
    pub(crate) side: Side,
    /// Where the name ends.
    pub(crate) name_end: usize,
    /// Bytes of the page before it.
    pub(crate) at: u64,
}

/// Bytes of the page: part of the current chunk, or gathered from several.
#[derive(Clone, Debug)]
pub(crate) enum ScanPlace<'a> {
    Chunk(&'a Bytes, Range<usize>),
    Held(Bytes),
}

impl ScanPlace<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Chunk(_, range) => range.len(),
            Self::Held(bytes) => bytes.len(),
        }
    }

    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Chunk(chunk, range) => chunk.slice(range.clone()),
            Self::Held(bytes) => bytes.clone(),
        }
    }
}

/// The bytes held back.
#[derive(Clone, Copy, Debug)]
enum Held {
    /// No bytes, or the beginning of a tag.
    Prefix,
    /// A tag without its end; inside this quote, 0 for none.
    Tag(Element, Side, usize, u8),
}

/// Cuts chunks into text, tags and comment marks.
#[derive(Debug)]
pub(crate) struct EsiScanner {
    tag_max: usize,
    /// Bytes of the page before the next chunk.
    base: u64,
    held: Vec<u8>,
    state: Held,
    in_comment: bool,
}

/// Where a tag ends.
enum End {
    /// Not here.
    More,
    /// After so many bytes.
    After(usize),
    /// Another `<` follows after this many bytes.
    Broken(usize),
}

impl EsiScanner {
    pub(crate) const fn new(tag_max: usize) -> Self {
        // A tag that fits must at least hold its longest name.
        let tag_max = if tag_max < 64 { 64 } else { tag_max };
        Self { tag_max, base: 0, held: Vec::new(), state: Held::Prefix, in_comment: false }
    }

    /// Bytes of the page that were read and are not held back.
    pub(crate) const fn settled(&self) -> u64 {
        self.base - self.held.len() as u64
    }

    pub(crate) fn feed(&mut self, chunk: &Bytes, out: &mut Builder) {
        let mut at = 0;
        while !self.held.is_empty() && at < chunk.len() {
            match self.state {
                Held::Prefix => {
                    self.held.push(chunk[at]);
                    at += 1;
                    self.settle(self.base + at as u64, out);
                }
                Held::Tag(..) => at += self.extend_tag(&chunk[at..], self.base + at as u64, out),
            }
        }
        if at < chunk.len() {
            self.scan(chunk, at, out);
        }
        out.flush(chunk);
        self.base += chunk.len() as u64;
    }

    /// Ends the page: bytes held back are text.
    pub(crate) fn finish(&mut self, out: &mut Builder) {
        if matches!(self.state, Held::Tag(..)) && !self.held.is_empty() {
            out.problem(self.base - self.held.len() as u64, ProblemKind::TagTooLong);
        }
        let rest = std::mem::take(&mut self.held);
        out.source_len(self.base);
        out.text(ScanPlace::Held(Bytes::from(rest)));
    }

    /// Decides about the prefix held back as far as possible; the page was read up to `end`.
    fn settle(&mut self, end: u64, out: &mut Builder) {
        while !self.held.is_empty() {
            let keep_from = match classify(&self.held, self.in_comment) {
                Start::Partial => return,
                Start::Tag(element, side, name_end) => {
                    self.state = Held::Tag(element, side, name_end, 0);
                    // The delimiter was the last byte and may already be the end.
                    let last = self.held.split_off(name_end);
                    let at = end - last.len() as u64;
                    self.extend_tag(&last, at, out);
                    return;
                }
                Start::CommentOpen => {
                    self.in_comment = true;
                    let mark = Bytes::copy_from_slice(&self.held[..COMMENT_OPEN.len()]);
                    out.mark(ScanPlace::Held(mark));
                    COMMENT_OPEN.len()
                }
                Start::CommentClose => {
                    self.in_comment = false;
                    out.mark(ScanPlace::Held(Bytes::from_static(COMMENT_CLOSE)));
                    COMMENT_CLOSE.len()
                }
                Start::Text => {
                    let rest = &self.held[1..];
                    let next = rest.iter().position(|&byte| may_start(byte, self.in_comment));
                    let len = next.map_or(self.held.len(), |index| index + 1);
                    out.text(ScanPlace::Held(Bytes::copy_from_slice(&self.held[..len])));
                    len
                }
            };
            self.held.drain(..keep_from);
        }
    }

    /// Adds bytes to the tag held back until it ends; returns how many. They begin at `at` of the
    /// page.
    fn extend_tag(&mut self, bytes: &[u8], at: u64, out: &mut Builder) -> usize {
        let Held::Tag(element, side, name_end, mut quote) = self.state else { return 0 };
        let room = self.tag_max - self.held.len();
        let window = &bytes[..bytes.len().min(room)];
        let begin = at - self.held.len() as u64;
        let taken = match tag_end(window, &mut quote) {
            End::After(len) => {
                self.held.extend_from_slice(&window[..len]);
                let tag = EsiTag { element, side, name_end, at: begin };
                out.tag(tag, ScanPlace::Held(Bytes::from(std::mem::take(&mut self.held))));
                self.state = Held::Prefix;
                return len;
            }
            End::Broken(len) => {
                out.problem(begin, ProblemKind::BrokenTag);
                len
            }
            End::More if window.len() == room => {
                out.problem(begin, ProblemKind::TagTooLong);
                room
            }
            End::More => {
                self.held.extend_from_slice(window);
                self.state = Held::Tag(element, side, name_end, quote);
                return window.len();
            }
        };
        self.held.extend_from_slice(&window[..taken]);
        out.text(ScanPlace::Held(Bytes::from(std::mem::take(&mut self.held))));
        self.state = Held::Prefix;
        taken
    }

    /// Scans `chunk` from `at` on, with no bytes held back.
    fn scan(&mut self, chunk: &Bytes, mut at: usize, out: &mut Builder) {
        let words = memmem::Finder::new(b"esi");
        let mut words = words.find_iter(&chunk[at..]).map({
            let from = at;
            move |word| from + word
        });
        let mut candidate = next_candidate(chunk, at, &mut words);
        let mut close = None;
        while at < chunk.len() {
            // Each search continues where the last one ended, so that all of them cost one pass.
            while candidate.is_some_and(|start| start < at) {
                candidate = next_candidate(chunk, at, &mut words);
            }
            if self.in_comment && close.is_none_or(|place| place < at) {
                let found = memmem::find(&chunk[at..], COMMENT_CLOSE);
                close = Some(found.map_or(chunk.len(), |place| at + place));
            }
            let closes = close.filter(|&place| self.in_comment && place < chunk.len());
            let Some(start) = min(candidate, closes) else { break };
            match classify(&chunk[start..], self.in_comment) {
                Start::Partial => break,
                Start::Text => {
                    // Only a candidate turns out to be text; it cannot be one again.
                    candidate = next_candidate(chunk, start + 1, &mut words);
                }
                Start::CommentOpen => {
                    self.in_comment = true;
                    out.text(ScanPlace::Chunk(chunk, at..start));
                    at = start + COMMENT_OPEN.len();
                    out.mark(ScanPlace::Chunk(chunk, start..at));
                }
                Start::CommentClose => {
                    self.in_comment = false;
                    out.text(ScanPlace::Chunk(chunk, at..start));
                    at = start + COMMENT_CLOSE.len();
                    out.mark(ScanPlace::Chunk(chunk, start..at));
                }
                Start::Tag(element, side, name_end) => {
                    out.text(ScanPlace::Chunk(chunk, at..start));
                    let tag = EsiTag { element, side, name_end, at: self.base + start as u64 };
                    let Some(end) = self.tag(chunk, start, tag, out) else { return };
                    at = end;
                }
            }
        }
        let hold = self.hold_from(chunk, at);
        out.text(ScanPlace::Chunk(chunk, at..hold));
        self.held.extend_from_slice(&chunk[hold..]);
    }

    /// Takes the tag at `start`; returns its end, or `None` if the chunk ends before.
    fn tag(
        &mut self,
        chunk: &Bytes,
        start: usize,
        tag: EsiTag,
        out: &mut Builder,
    ) -> Option<usize> {
        let mut quote = 0;
        let name_end = start + tag.name_end;
        let window_end = chunk.len().min(start + self.tag_max);
        let text_end = match tag_end(&chunk[name_end..window_end], &mut quote) {
            End::After(len) => {
                out.tag(tag, ScanPlace::Chunk(chunk, start..name_end + len));
                return Some(name_end + len);
            }
            End::Broken(len) => {
                out.problem(tag.at, ProblemKind::BrokenTag);
                name_end + len
            }
            End::More if window_end == start + self.tag_max => {
                out.problem(tag.at, ProblemKind::TagTooLong);
                window_end
            }
            End::More => {
                self.held.extend_from_slice(&chunk[start..]);
                self.state = Held::Tag(tag.element, tag.side, tag.name_end, quote);
                return None;
            }
        };
        out.text(ScanPlace::Chunk(chunk, start..text_end));
        Some(text_end)
    }

    /// The beginning of an uncertain construct at the end of `chunk`, or its end.
    fn hold_from(&self, chunk: &Bytes, at: usize) -> usize {
        let from = at.max(chunk.len().saturating_sub(START_MAX));
        (from..chunk.len())
            .find(|&start| classify(&chunk[start..], self.in_comment) == Start::Partial)
            .unwrap_or(chunk.len())
    }
}

fn min(first: Option<usize>, second: Option<usize>) -> Option<usize> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.min(second)),
        (one, other) => one.or(other),
    }
}

/// The first position from `at` on where the start of an element or comment precedes `esi`.
fn next_candidate(
    chunk: &[u8],
    at: usize,
    words: &mut impl Iterator<Item = usize>,
) -> Option<usize> {
    words.find_map(|word| {
        let before = chunk.get(at..word)?;
        let len = [&b"<"[..], b"</", b"<!--"].iter().find(|mark| before.ends_with(mark))?.len();
        Some(word - len)
    })
}

const fn may_start(byte: u8, in_comment: bool) -> bool {
    byte == b'<' || (in_comment && byte == b'-')
}

/// The construct that `bytes` begins with.
fn classify(bytes: &[u8], in_comment: bool) -> Start {
    if in_comment && bytes.first() == Some(&b'-') {
        return match is_prefix(bytes, COMMENT_CLOSE) {
            Some(true) => Start::CommentClose,
            Some(false) => Start::Partial,
            None => Start::Text,
        };
    }
    match bytes {
        [b'<', b'!', ..] => match is_prefix(bytes, COMMENT_OPEN) {
            Some(true) => match bytes.get(COMMENT_OPEN.len()) {
                None => Start::Partial,
                Some(b'_' | b':') => Start::Text,
                Some(byte) if byte.is_ascii_alphanumeric() => Start::Text,
                Some(_) => Start::CommentOpen,
            },
            Some(false) => Start::Partial,
            None => Start::Text,
        },
        [b'<', b'/', name @ ..] => element(name, Side::Close, 2),
        [b'<', name @ ..] => element(name, Side::Open, 1),
        _ => Start::Text,
    }
}

/// Whether `bytes` begins with `pattern`; `Some(false)` if it ends before that is known.
fn is_prefix(bytes: &[u8], pattern: &[u8]) -> Option<bool> {
    let len = bytes.len().min(pattern.len());
    (bytes[..len] == pattern[..len]).then_some(len == pattern.len())
}

/// An element's name after `esi:` or `esi_`, and a delimiter; `before` bytes precede it.
fn element(text: &[u8], side: Side, before: usize) -> Start {
    match is_prefix(text, b"esi") {
        None => return Start::Text,
        Some(false) => return Start::Partial,
        Some(true) => {}
    }
    let name = match text.get(3) {
        None => return Start::Partial,
        Some(b':' | b'_') => &text[4..],
        Some(_) => return Start::Text,
    };
    let mut result = Start::Text;
    for (known, element) in ELEMENTS {
        match is_prefix(name, known) {
            None => {}
            Some(false) => result = Start::Partial,
            Some(true) => {
                return match name.get(known.len()) {
                    None => Start::Partial,
                    Some(b'>' | b'/' | b'\\') => {
                        Start::Tag(element, side, before + 4 + known.len())
                    }
                    Some(byte) if byte.is_ascii_whitespace() => {
                        Start::Tag(element, side, before + 4 + known.len())
                    }
                    Some(_) => Start::Text,
                };
            }
        }
    }
    result
}

/// Looks for the end of a tag, starting inside `quote` (0 for none), and updates it.
fn tag_end(bytes: &[u8], quote: &mut u8) -> End {
    let mut at = 0;
    while at < bytes.len() {
        if *quote != 0 {
            match memchr::memchr(*quote, &bytes[at..]) {
                Some(len) => {
                    at += len + 1;
                    *quote = 0;
                }
                None => return End::More,
            }
            continue;
        }
        match bytes[at] {
            b'>' => return End::After(at + 1),
            b'<' => return End::Broken(at),
            mark @ (b'"' | b'\'') => *quote = mark,
            _ => {}
        }
        at += 1;
    }
    End::More
}
