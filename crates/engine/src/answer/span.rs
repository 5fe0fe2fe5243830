//! Spans of bytes, and several of them with their frames.

use bolide_base::{FileRef, SendChain};
use bolide_http::range::ByteRange;
use bytes::Bytes;

use super::headed::HeadedBytes;
use super::outside::FromFile;
use super::piece::{BodyPiece, FileOwner};

/// Where the bytes of a part come from.
#[derive(Clone, Debug)]
pub(crate) enum BytesFrom {
    /// Memory.
    Memory(Bytes),
    /// A file that is too large to keep.
    File(FileRef),
    /// A kept answer in several pieces.
    Object(std::sync::Arc<bolide_cache::Object>),
    /// A kept answer that memory does not have.
    Outside(Box<FromFile>),
    /// Bytes of ours, and a source from a byte on behind them.
    Headed(Box<HeadedBytes>),
}

/// What is left of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteSpan {
    pub(crate) at: u64,
    pub(crate) end: u64,
}

impl From<ByteSpan> for ByteRange {
    fn from(span: ByteSpan) -> Self {
        Self { start: span.at, end: span.end }
    }
}

/// Several ranges, each with its frame.
#[derive(Debug)]
pub(crate) struct MultipartBody {
    pub(crate) source: BytesFrom,
    /// The frame before each range, and the end.
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) ranges: Vec<ByteRange>,
    /// Which frame comes next.
    pub(crate) next: usize,
    /// What is left of the current range.
    pub(crate) span: Option<ByteSpan>,
}

/// `End` also when this call appended the last bytes.
pub(super) fn pull_span(
    source: &BytesFrom,
    span: &mut ByteSpan,
    max: usize,
    out: &mut SendChain,
) -> BodyPiece {
    debug_assert!(span.at <= span.end, "a span does not run over its end");
    let left = span.end - span.at;
    if left == 0 {
        return BodyPiece::End;
    }
    let len = left.min(max as u64);
    match source {
        BytesFrom::File(file) => {
            BodyPiece::File { file: file.clone(), offset: span.at, len, whose: FileOwner::Site }
        }
        BytesFrom::Outside(file) => file.pull(span, len, out),
        BytesFrom::Headed(headed) => headed.pull(span, len, out),
        BytesFrom::Object(object) => {
            let Some(mut bytes) = object.piece_at(span.at) else { return BodyPiece::Broken };
            bytes.truncate(len as usize);
            span.at += bytes.len() as u64;
            out.push_owned(bytes);
            if span.at == span.end { BodyPiece::End } else { BodyPiece::More }
        }
        BytesFrom::Memory(bytes) => {
            let (start, stop) = (span.at as usize, (span.at + len) as usize);
            if stop > bytes.len() {
                return BodyPiece::Broken;
            }
            push_part(bytes, start, stop, out);
            span.at += len;
            if span.at == span.end { BodyPiece::End } else { BodyPiece::More }
        }
    }
}

/// Slices shorter than this are copied rather than counted.
const SHARED_MIN: usize = 1024;

/// Appends a part of `bytes` in the cheapest way.
#[inline]
pub(super) fn push_part(bytes: &Bytes, start: usize, end: usize, out: &mut SendChain) {
    if end - start == bytes.len() {
        out.push_bytes(bytes);
    } else if end - start < SHARED_MIN {
        out.push_slice(&bytes[start..end]);
    } else {
        out.push_owned(bytes.slice(start..end));
    }
}

impl MultipartBody {
    /// Whether it keeps what is read of a file for it.
    pub(super) const fn feeds_itself(&self) -> bool {
        matches!(self.source, BytesFrom::Outside(_))
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        if let Some(span) = &mut self.span {
            let before = out.len();
            match pull_span(&self.source, span, max, out) {
                BodyPiece::End => self.span = None,
                other => return other,
            }
            if out.len() > before {
                return BodyPiece::More;
            }
        }
        debug_assert_eq!(
            self.frames.len(),
            self.ranges.len() + 1,
            "a frame before each, and an end"
        );
        let Some(frame) = self.frames.get(self.next) else { return BodyPiece::End };
        out.push_slice(frame);
        match self.ranges.get(self.next) {
            Some(range) => {
                self.span = Some(ByteSpan { at: range.start, end: range.end });
                self.next += 1;
                BodyPiece::More
            }
            None => {
                self.next += 1;
                BodyPiece::End
            }
        }
    }
}
