//! The text of an ESI page in order, whatever its source.
//!
//! Owns how many bytes of the literals were sent. Easiest to break: an upstream response is read to
//! its end even if the client stalls, because a fragment may need the very process that sends the
//! page.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_base::SendChain;
use bolide_cache::Object;
use bolide_esi::splice::{Joint, SplicePart, SpliceSeal};
use bolide_esi::{EsiInclude, EsiLimits, EsiParser};
use bolide_http::negotiate::Coding;
use bytes::Bytes;

use super::growth::{Grown, Growth};
use super::span::push_part;
use super::{BodyPiece, Inflow};

/// The next element of a page.
#[derive(Debug)]
pub(super) enum ScriptNext {
    /// Text, or why there is none now.
    Piece(BodyPiece),
    /// An include.
    Include,
    /// Nothing.
    End,
}

/// The text of a page.
#[derive(Debug)]
pub(super) enum ScriptState {
    Kept(KeptScript),
    Growing(Box<GrowingScript>),
    Inflow(Box<Arriving>),
}

/// A cached page.
#[derive(Debug)]
pub(super) struct KeptScript {
    object: Arc<Object>,
    /// The current piece, and how many bytes of it were sent.
    piece: usize,
    within: usize,
    /// Where the search for the next include continues.
    ahead: usize,
    coding: Option<Coding>,
}

/// A page that another exchange fetches.
#[derive(Debug)]
pub(super) struct GrowingScript {
    growth: Growth,
    parser: Option<EsiParser>,
    coder: Option<(Coding, i8)>,
    pieces: VecDeque<Mark>,
    includes: VecDeque<EsiInclude>,
    is_broken: bool,
}

/// A page that arrives from an upstream.
#[derive(Debug)]
pub(super) struct Arriving {
    inflow: Inflow,
    parser: Option<EsiParser>,
    coder: Option<(Coding, i8)>,
    marks: VecDeque<Mark>,
    includes: VecDeque<EsiInclude>,
    /// The rest of the declared length.
    left: Option<u64>,
}

/// A literal or an include.
#[derive(Debug)]
enum Mark {
    /// This many bytes in the spool, and their seal for splicing.
    Elsewhere(u64, Option<SpliceSeal>),
    Text(Bytes, Option<SpliceSeal>),
    Include,
}

impl ScriptState {
    pub(super) const fn kept(object: Arc<Object>) -> Self {
        Self::Kept(KeptScript { object, piece: 0, within: 0, ahead: 0, coding: None })
    }

    pub(super) fn growing(growth: Growth) -> Self {
        Self::Growing(Box::new(GrowingScript {
            growth,
            parser: Some(EsiParser::new(EsiLimits::default())),
            coder: None,
            pieces: VecDeque::new(),
            includes: VecDeque::new(),
            is_broken: false,
        }))
    }

    pub(super) fn inflow(inflow: Inflow, left: Option<u64>) -> Self {
        Self::Inflow(Box::new(Arriving {
            inflow,
            parser: Some(EsiParser::new(EsiLimits::default())),
            coder: None,
            marks: VecDeque::new(),
            includes: VecDeque::new(),
            left,
        }))
    }

    /// Sends literals as compressed parts. Call it before the first read.
    pub(super) fn encode(&mut self, coding: Coding, level: i8) {
        match self {
            Self::Kept(kept) => kept.coding = Some(coding),
            Self::Growing(growing) => growing.coder = Some((coding, level)),
            Self::Inflow(arriving) => arriving.coder = Some((coding, level)),
        }
    }

    pub(super) const fn inflow_mut(&mut self) -> Option<&mut Inflow> {
        match self {
            Self::Inflow(arriving) => Some(&mut arriving.inflow),
            Self::Kept(_) | Self::Growing(_) => None,
        }
    }

    pub(super) const fn origin(&self) -> Option<&Inflow> {
        match self {
            Self::Inflow(arriving) => Some(&arriving.inflow),
            Self::Kept(_) | Self::Growing(_) => None,
        }
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if let Self::Inflow(arriving) = self {
            arriving.push(bytes);
        }
    }

    pub(super) fn finish(&mut self) {
        if let Self::Inflow(arriving) = self {
            arriving.finish();
        }
    }

    pub(super) fn fail(&mut self) {
        if let Self::Inflow(arriving) = self {
            arriving.inflow.fail();
        }
    }

    /// Reads the available part of a page that is being fetched.
    pub(super) fn refill(&mut self) {
        if let Self::Growing(growing) = self {
            growing.refill();
        }
    }

    /// Whether fewer than `max` bytes of a page have arrived and more are expected.
    pub(super) fn grows_below(&self, max: u64) -> bool {
        match self {
            Self::Kept(_) => false,
            Self::Growing(growing) => {
                let come = growing.parser.as_ref().map(|parser| parser.program().literal_len);
                come.is_some_and(|come| come < max)
            }
            Self::Inflow(arriving) => {
                let spool = arriving.inflow.spool();
                arriving.parser.is_some() && !spool.is_broken() && spool.received() < max
            }
        }
    }

    pub(super) const fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// The next include that is parsed, before its turn; each one is returned once.
    pub(super) fn next_include(&mut self) -> Option<EsiInclude> {
        match self {
            Self::Kept(kept) => kept.next_include(),
            Self::Growing(growing) => growing.includes.pop_front(),
            Self::Inflow(arriving) => arriving.includes.pop_front(),
        }
    }

    /// Appends at most `max` bytes of text to `out`, or returns the next other element.
    pub(super) fn pull(
        &mut self,
        max: usize,
        joint: Option<&mut Joint>,
        out: &mut SendChain,
    ) -> ScriptNext {
        match self {
            Self::Kept(kept) => kept.pull(max, joint, out),
            Self::Growing(growing) => growing.pull(max, joint, out),
            Self::Inflow(arriving) => arriving.pull(max, joint, out),
        }
    }

    pub(super) fn advance(&mut self, len: u64) {
        if let Self::Inflow(arriving) = self {
            arriving.inflow.advance(len);
            arriving.pass(len);
        }
    }
}

impl KeptScript {
    fn next_include(&mut self) -> Option<EsiInclude> {
        let pieces = &self.object.prepared().program().pieces;
        loop {
            let piece = pieces.get(self.ahead)?;
            self.ahead += 1;
            if let bolide_esi::EsiNode::Include(include) = piece {
                return Some((**include).clone());
            }
        }
    }

    fn pull(&mut self, max: usize, joint: Option<&mut Joint>, out: &mut SendChain) -> ScriptNext {
        let prepared = self.object.prepared();
        let Some(piece) = prepared.program().pieces.get(self.piece) else { return ScriptNext::End };
        let bolide_esi::EsiNode::Literal(text) = piece else {
            self.piece += 1;
            return ScriptNext::Include;
        };
        let parts = self.coding.and_then(|coding| prepared.parts(coding));
        let bytes = match (joint, parts.and_then(|parts| parts.get(self.piece))) {
            (None, _) => text,
            (Some(joint), Some(part)) => {
                if self.within == 0 {
                    joint.add(part);
                }
                part.bytes()
            }
            (Some(_), None) => return ScriptNext::Piece(BodyPiece::Broken),
        };
        debug_assert!(self.within <= bytes.len(), "no more of a literal leaves than it has");
        let end = bytes.len().min(self.within + max);
        push_part(bytes, self.within, end, out);
        self.within = end;
        if end == bytes.len() {
            self.piece += 1;
            self.within = 0;
        }
        ScriptNext::Piece(BodyPiece::More)
    }
}

/// A literal in the page's coding.
fn coded(text: Bytes, coder: Option<(Coding, i8)>) -> (Bytes, Option<SpliceSeal>) {
    let Some((coding, level)) = coder else { return (text, None) };
    let part = SplicePart::compress(coding, level, &text)
        .unwrap_or_else(|_| SplicePart::stored(coding, &text));
    (part.bytes().clone(), Some(part.seal()))
}

impl GrowingScript {
    fn refill(&mut self) {
        while let Some(parser) = &mut self.parser {
            let pieces = match self.growth.read() {
                Grown::Bytes(bytes) => {
                    parser.feed(bytes);
                    parser.take_pieces()
                }
                Grown::End => {
                    let rest = self.parser.take().map(EsiParser::finish);
                    rest.map_or_else(Vec::new, |program| program.pieces)
                }
                Grown::Broken => {
                    self.is_broken = true;
                    self.parser = None;
                    return;
                }
                Grown::Pending => return,
            };
            for piece in pieces {
                match piece {
                    bolide_esi::EsiNode::Literal(text) => {
                        let (bytes, seal) = coded(text, self.coder);
                        self.pieces.push_back(Mark::Text(bytes, seal));
                    }
                    bolide_esi::EsiNode::Include(include) => {
                        self.pieces.push_back(Mark::Include);
                        self.includes.push_back(*include);
                    }
                }
            }
        }
    }

    fn pull(&mut self, max: usize, joint: Option<&mut Joint>, out: &mut SendChain) -> ScriptNext {
        match self.pieces.front_mut() {
            Some(Mark::Text(bytes, seal)) => {
                if let (Some(joint), Some(seal)) = (joint, seal.take()) {
                    joint.add_sealed(seal);
                }
                out.push_owned(bytes.split_to(bytes.len().min(max)));
                if bytes.is_empty() {
                    self.pieces.pop_front();
                }
                ScriptNext::Piece(BodyPiece::More)
            }
            Some(Mark::Include) => {
                self.pieces.pop_front();
                ScriptNext::Include
            }
            Some(Mark::Elsewhere(..)) | None if self.is_broken => {
                ScriptNext::Piece(BodyPiece::Broken)
            }
            Some(Mark::Elsewhere(..)) | None if self.parser.is_none() => ScriptNext::End,
            Some(Mark::Elsewhere(..)) | None => ScriptNext::Piece(BodyPiece::Pending),
        }
    }
}

impl Arriving {
    fn push(&mut self, mut bytes: Bytes) {
        if let Some(left) = &mut self.left {
            bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= bytes.len() as u64;
        }
        let Some(parser) = &mut self.parser else { return };
        parser.feed(bytes);
        let pieces = parser.take_pieces();
        self.take(pieces);
    }

    fn take(&mut self, pieces: Vec<bolide_esi::EsiNode>) {
        for piece in pieces {
            match piece {
                bolide_esi::EsiNode::Literal(text) => {
                    let (bytes, seal) = coded(text, self.coder);
                    let len = bytes.len() as u64;
                    match self.marks.back_mut() {
                        Some(Mark::Elsewhere(last, None)) if seal.is_none() => *last += len,
                        _ => self.marks.push_back(Mark::Elsewhere(len, seal)),
                    }
                    self.inflow.push(bytes);
                }
                bolide_esi::EsiNode::Include(include) => {
                    self.marks.push_back(Mark::Include);
                    self.includes.push_back(*include);
                }
            }
        }
    }

    fn finish(&mut self) {
        if self.left.is_some_and(|left| left > 0) {
            return self.inflow.fail();
        }
        if let Some(parser) = self.parser.take() {
            let rest = parser.finish().pieces;
            self.take(rest);
        }
        self.inflow.finish();
    }

    fn pull(&mut self, max: usize, joint: Option<&mut Joint>, out: &mut SendChain) -> ScriptNext {
        match self.marks.front_mut() {
            Some(Mark::Include) => {
                self.marks.pop_front();
                ScriptNext::Include
            }
            Some(Mark::Elsewhere(len, seal)) => {
                if let (Some(joint), Some(seal)) = (joint, seal.take()) {
                    joint.add_sealed(seal);
                }
                let max = max.min(usize::try_from(*len).unwrap_or(usize::MAX));
                let before = out.len();
                let piece = self.inflow.pull(max, out);
                self.pass(out.len() - before);
                // The end of the spool is not the end of the page.
                let piece = if matches!(piece, BodyPiece::End) { BodyPiece::More } else { piece };
                ScriptNext::Piece(piece)
            }
            Some(Mark::Text(..)) | None if self.inflow.spool().is_broken() => {
                ScriptNext::Piece(BodyPiece::Broken)
            }
            Some(Mark::Text(..)) | None if self.parser.is_none() => ScriptNext::End,
            Some(Mark::Text(..)) | None => ScriptNext::Piece(BodyPiece::Pending),
        }
    }

    /// Records that this many bytes of literals were sent.
    fn pass(&mut self, len: u64) {
        if let Some(Mark::Elsewhere(left, _)) = self.marks.front_mut() {
            debug_assert!(len <= *left, "no more leaves than stands before the next include");
            *left = left.saturating_sub(len);
            if *left == 0 {
                self.marks.pop_front();
            }
        }
    }
}
