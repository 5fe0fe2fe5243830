//! A cached page prepared for delivery: its program, and its literals compressed once.

use std::sync::OnceLock;

use bolide_http::negotiate::Coding;
use bytes::Bytes;

use crate::program::{EsiLimits, EsiNode, EsiParser, Program};
use crate::splice::SplicePart;

/// A program with its compressed literals.
#[derive(Debug, Default)]
pub struct Prepared {
    program: Program,
    parts: [OnceLock<Box<[SplicePart]>>; 3],
}

impl Prepared {
    /// Reads a page; its literals share the memory of `pieces`.
    pub fn page(pieces: impl Iterator<Item = Bytes>, limits: EsiLimits) -> Self {
        let mut parser = EsiParser::new(limits);
        pieces.for_each(|piece| parser.feed(piece));
        Self { program: parser.finish(), ..Self::default() }
    }

    /// A body without ESI in it.
    pub fn plain(pieces: impl Iterator<Item = Bytes>) -> Self {
        let mut program = Program::default();
        for piece in pieces {
            program.literal_len += piece.len() as u64;
            program.pieces.push(EsiNode::Literal(piece));
        }
        program.source_len = program.literal_len;
        Self { program, ..Self::default() }
    }

    /// The program of the page.
    #[must_use]
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// The literals in `coding`, one part per piece; the part of an include is empty. `None` before
    /// [`Self::make_parts`].
    #[must_use]
    pub fn parts(&self, coding: Coding) -> Option<&[SplicePart]> {
        self.parts[coding.index()].get().map(|parts| &**parts)
    }

    /// Compresses the literals with `coding`, which takes time, and returns their size in bytes.
    /// Only the first call has an effect.
    pub fn make_parts(&self, coding: Coding, level: i8) -> u64 {
        let make = |piece: &EsiNode| match piece {
            EsiNode::Literal(bytes) => SplicePart::compress(coding, level, bytes)
                .unwrap_or_else(|_| SplicePart::stored(coding, bytes)),
            EsiNode::Include(_) => SplicePart::stored(coding, b""),
        };
        let mut made = 0;
        self.parts[coding.index()].get_or_init(|| {
            let parts: Box<[SplicePart]> = self.program.pieces.iter().map(make).collect();
            made = parts.iter().map(|part| part.bytes().len() as u64).sum();
            parts
        });
        made
    }
}
