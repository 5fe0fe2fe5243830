//! Builds a program from text and tags: literals, removed parts, inlines.
//!
//! Owns the nesting of `remove` and `inline` and the limits. An error inside either cuts the
//! content instead of showing it: an inline may hold private content.
//!
//! ```text
//!            <esi:remove>               </esi:remove>
//!   Page ───────────────────▶ Remove ──────────────────▶ Page
//!     └── <esi:inline name> ▶ Inline ── </esi:inline> ──▶ Page
//! ```

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use crate::markup::{self, Attributes};
use crate::program::{EsiLimits, EsiNode, Inline, PROBLEMS_MAX, Problem, ProblemKind, Program};
use crate::scan::{Element, EsiTag, ScanPlace, Side};

#[derive(Debug)]
enum Mode {
    Page,
    Remove { depth: u32 },
    Inline { depth: u32, at: u64, inline: Option<Inline>, body: Vec<Bytes> },
}

/// Builds one program.
#[derive(Debug)]
pub(crate) struct Builder {
    limits: EsiLimits,
    program: Program,
    mode: Mode,
    /// Part of the current chunk that is kept and not a literal yet.
    run: Range<usize>,
    includes: u32,
    elements: u32,
    inlined: usize,
    /// The first include with `as-var` of each URL.
    vars: HashMap<Bytes, u32>,
    /// Positions of the inlines that have ended.
    cuts: Vec<Range<u64>>,
    is_doubtful: bool,
}

impl Builder {
    pub(crate) fn new(limits: EsiLimits) -> Self {
        Self {
            limits,
            program: Program::default(),
            mode: Mode::Page,
            run: 0..0,
            includes: 0,
            elements: 0,
            inlined: 0,
            vars: HashMap::new(),
            cuts: Vec::new(),
            is_doubtful: false,
        }
    }

    pub(crate) const fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Positions of inlines that ended since the last call, as bytes of the page.
    pub(crate) fn take_cuts(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.cuts)
    }

    /// The beginning of the current inline.
    pub(crate) const fn open_inline(&self) -> Option<u64> {
        match self.mode {
            Mode::Inline { at, .. } => Some(at),
            Mode::Page | Mode::Remove { .. } => None,
        }
    }

    /// Whether unreadable markup may have hidden content.
    pub(crate) const fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    pub(crate) const fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) const fn source_len(&mut self, bytes: u64) {
        self.program.source_len = bytes;
    }

    pub(crate) fn problem(&mut self, at: u64, kind: ProblemKind) {
        let hides = [ProblemKind::TagTooLong, ProblemKind::BrokenTag];
        self.is_doubtful |= hides.contains(&kind);
        if self.program.problems.len() < PROBLEMS_MAX {
            self.program.problems.push(Problem { at, kind });
        }
    }

    /// Bytes that are not markup.
    pub(crate) fn text(&mut self, place: ScanPlace<'_>) {
        self.count_inlined(place.len());
        match place {
            ScanPlace::Chunk(_, range) if range.is_empty() => {}
            ScanPlace::Chunk(chunk, range) => {
                if self.run.end == range.start && !self.run.is_empty() {
                    self.run.end = range.end;
                } else {
                    self.flush(chunk);
                    self.run = range;
                }
            }
            ScanPlace::Held(bytes) => self.keep(bytes),
        }
    }

    /// `<!--esi` or its `-->`: cut from the page, kept in inlines, which are parsed later.
    pub(crate) fn mark(&mut self, place: ScanPlace<'_>) {
        if matches!(self.mode, Mode::Inline { .. }) {
            self.text(place);
        }
    }

    /// Makes a literal of the part of `chunk` that is to be sent.
    pub(crate) fn flush(&mut self, chunk: &Bytes) {
        let run = std::mem::take(&mut self.run);
        if !run.is_empty() {
            self.keep(chunk.slice(run));
        }
    }

    fn flush_before(&mut self, place: &ScanPlace<'_>) {
        if let ScanPlace::Chunk(chunk, _) = place {
            self.flush(chunk);
        }
    }

    /// Drops the current inline when inlines exceed their limit.
    fn count_inlined(&mut self, len: usize) {
        if let Mode::Inline { inline, body, at, .. } = &mut self.mode {
            self.inlined += len;
            if self.inlined > self.limits.inlined && inline.take().is_some() {
                body.clear();
                let at = *at;
                self.problem(at, ProblemKind::InlinesTooLarge);
            }
        }
    }

    fn keep(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        match &mut self.mode {
            Mode::Page => {
                self.program.literal_len += bytes.len() as u64;
                self.program.pieces.push(EsiNode::Literal(bytes));
            }
            Mode::Remove { .. } => {}
            Mode::Inline { inline: Some(_), body, .. } => body.push(bytes),
            Mode::Inline { .. } => {}
        }
    }

    pub(crate) fn tag(&mut self, tag: EsiTag, place: ScanPlace<'_>) {
        let is_empty = tag.side == Side::Open && markup::is_empty_element(&place.bytes());
        let (inside, depth) = match &mut self.mode {
            Mode::Page => return self.page_tag(tag, place, is_empty),
            Mode::Remove { depth } => (Element::Remove, depth),
            Mode::Inline { depth, .. } => (Element::Inline, depth),
        };
        let mut is_too_deep = false;
        if tag.element == inside && !is_empty {
            match tag.side {
                Side::Close => *depth -= 1,
                Side::Open if *depth < self.limits.depth => *depth += 1,
                Side::Open => is_too_deep = true,
            }
        }
        let is_over = *depth == 0;
        if is_too_deep {
            self.problem(tag.at, ProblemKind::TooDeep);
        }
        if is_over {
            self.flush_before(&place);
            self.close(tag.at + place.len() as u64);
        } else {
            self.text(place);
        }
    }

    fn page_tag(&mut self, tag: EsiTag, place: ScanPlace<'_>, is_empty: bool) {
        if tag.side == Side::Open {
            if self.elements == self.limits.elements {
                self.problem(tag.at, ProblemKind::TooManyElements);
                if tag.element == Element::Inline {
                    // Content that may be private to a session is cut anyway.
                    self.flush_before(&place);
                    return self.open(tag, None, &place, is_empty);
                }
                return self.text(place);
            }
            self.elements += 1;
        }
        self.flush_before(&place);
        match (tag.element, tag.side) {
            (Element::Include, Side::Open) => self.include(tag, &place.bytes()),
            (Element::Inline, Side::Open) => {
                let inline = match self.inline(tag, &place.bytes()) {
                    Ok(inline) => Some(inline),
                    Err(kind) => {
                        self.problem(tag.at, kind);
                        None
                    }
                };
                self.open(tag, inline, &place, is_empty);
            }
            (Element::Remove, Side::Open) if !is_empty => self.mode = Mode::Remove { depth: 1 },
            // An end tag without a start tag has no effect.
            (Element::Remove | Element::Comment, Side::Open) | (_, Side::Close) => {}
        }
    }

    fn open(&mut self, tag: EsiTag, inline: Option<Inline>, place: &ScanPlace<'_>, is_empty: bool) {
        self.mode = Mode::Inline { depth: 1, at: tag.at, inline, body: Vec::new() };
        if is_empty {
            self.close(tag.at + place.len() as u64);
        }
    }

    /// The end of `remove` or `inline`, before byte `end` of the page.
    fn close(&mut self, end: u64) {
        let mode = std::mem::replace(&mut self.mode, Mode::Page);
        if let Mode::Inline { at, .. } = mode {
            self.cuts.push(at..end);
        }
        if let Mode::Inline { inline: Some(mut inline), mut body, .. } = mode {
            inline.body = if body.len() == 1 { body.remove(0) } else { body.concat().into() };
            self.program.inlines.push(inline);
        }
    }

    fn include(&mut self, tag: EsiTag, bytes: &Bytes) {
        if self.includes == self.limits.includes {
            return self.problem(tag.at, ProblemKind::TooManyIncludes);
        }
        let attributes = Attributes::new(bytes, tag.name_end);
        let mut include = match markup::include(attributes, self.limits.attribute) {
            Ok(include) => include,
            Err(kind) => return self.problem(tag.at, kind),
        };
        if include.as_var {
            match self.vars.get(&include.src) {
                Some(&first) => include.same_as = Some(first),
                None => drop(self.vars.insert(include.src.clone(), self.includes)),
            }
        }
        self.includes += 1;
        self.program.pieces.push(EsiNode::Include(Box::new(include)));
    }

    fn inline(&self, tag: EsiTag, bytes: &Bytes) -> Result<Inline, ProblemKind> {
        markup::inline(Attributes::new(bytes, tag.name_end), self.limits.attribute)
    }

    pub(crate) fn finish(mut self) -> Program {
        match self.mode {
            Mode::Page => {}
            Mode::Inline { at, .. } => self.problem(at, ProblemKind::Unclosed),
            Mode::Remove { .. } => {
                let at = self.program.source_len;
                self.problem(at, ProblemKind::Unclosed);
            }
        }
        self.program
    }
}
