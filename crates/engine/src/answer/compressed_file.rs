//! A file that is compressed while it is sent.

use bolide_base::{FileRef, SendChain};
use bolide_files::{CodingEncoder, VariantKey, stream_cost};

use super::piece::{BodyPiece, FileOwner};
use super::span::ByteSpan;

/// A file that is compressed while it is sent.
#[derive(Debug)]
pub(crate) struct CompressedFile {
    file: FileRef,
    /// The part that is not read yet.
    span: ByteSpan,
    /// None when the stream is complete or broken.
    encoder: Option<CodingEncoder>,
    /// The work for a byte.
    cost: u64,
    is_broken: bool,
    /// Compressed bytes that are not sent yet.
    ready: Vec<u8>,
    given: usize,
    /// The work since the last `take_work`.
    pub(super) work: u64,
}

/// Bytes of one read for a compressed stream.
const STREAM_READ: u64 = 64 * 1024;

impl CompressedFile {
    /// A stream of the whole file; none if the library fails.
    pub(crate) fn new(file: FileRef, size: u64, form: VariantKey) -> Option<Self> {
        let span = ByteSpan { at: 0, end: size };
        let encoder = CodingEncoder::new(form.coding, form.level).ok()?;
        let cost = stream_cost(form.coding, form.level);
        let ready = Vec::new();
        let encoder = Some(encoder);
        Some(Self { file, span, encoder, cost, is_broken: false, ready, given: 0, work: 0 })
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        debug_assert!(
            bytes.len() as u64 <= self.span.end - self.span.at,
            "no more is fed than was asked for"
        );
        self.span.at = self.span.end.min(self.span.at + bytes.len() as u64);
        self.work += self.cost * bytes.len() as u64;
        let fed = self.encoder.as_mut().map(|encoder| encoder.feed(bytes, &mut self.ready));
        self.is_broken |= bytes.is_empty() || !matches!(fed, Some(Ok(())));
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        if self.is_broken {
            return BodyPiece::Broken;
        }
        if self.given == self.ready.len() {
            self.ready.clear();
            self.given = 0;
            if self.span.at < self.span.end {
                let len = STREAM_READ.min(self.span.end - self.span.at);
                let (file, offset, whose) = (self.file.clone(), self.span.at, FileOwner::Site);
                return BodyPiece::Read { file, offset, len, whose };
            }
            let Some(encoder) = self.encoder.take() else { return BodyPiece::End };
            if encoder.finish(&mut self.ready).is_err() {
                self.is_broken = true;
                return BodyPiece::Broken;
            }
        }
        let end = self.ready.len().min(self.given + max);
        out.push_slice(&self.ready[self.given..end]);
        self.given = end;
        let is_over = self.encoder.is_none() && self.given == self.ready.len();
        if is_over { BodyPiece::End } else { BodyPiece::More }
    }
}
