//! The body that is pulled from a response.
//!
//! Owns how much of a body was sent. Easiest to break: a body of a stated length yields exactly
//! that many bytes.

use bolide_base::SendChain;
use bolide_http::range::ByteRange;
use bytes::Bytes;

use super::assembly::PageAssembly;
use super::compound::Compound;
use super::compressed_file::CompressedFile;
use super::filtered::FilteredBody;
use super::growth::Growth;
use super::inflow::Inflow;
use super::piece::BodyPiece;
use super::sliced::SlicedBody;
use super::span::{ByteSpan, BytesFrom, MultipartBody, pull_span};
use super::strand::Strand;

/// A body that is being sent.
#[derive(Debug, Default)]
pub(crate) enum AnswerBody {
    /// No body, or none left.
    #[default]
    Empty,
    /// `at..end` of a source.
    Span(BytesFrom, ByteSpan),
    /// `multipart/byteranges`
    Parts(Box<MultipartBody>),
    /// A file that is compressed while it is sent.
    Stream(Box<CompressedFile>),
    /// The response of an upstream server.
    Origin(Box<Inflow>),
    /// An object that another exchange's fetch fills.
    Growing(Box<Growth>),
    /// An ESI page in assembly.
    Assembly(Box<PageAssembly>),
    /// An ESI page as it was assembled a moment ago.
    Whole(Strand),
    /// Another body behind filters.
    Filtered(Box<FilteredBody>),
    /// Another body that includes responses to subrequests.
    Compound(Box<Compound>),
    /// A body that consists of slices.
    Sliced(Box<SlicedBody>),
}

impl AnswerBody {
    /// Whether the trailers of an upstream response are there when this body is.
    pub(crate) fn awaits_end(&self) -> bool {
        matches!(self, Self::Origin(inflow) if inflow.awaits_end())
    }

    /// Drops the rest of the body, without a call if there is none.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if !matches!(self, Self::Empty) {
            *self = Self::Empty;
        }
    }

    /// Whether responses to subrequests may be included.
    pub(crate) const fn may_have_parts(&self) -> bool {
        matches!(self, Self::Assembly(_) | Self::Filtered(_) | Self::Compound(_) | Self::Sliced(_))
    }

    /// All of `bytes`.
    pub(crate) fn memory(bytes: Bytes) -> Self {
        let end = bytes.len() as u64;
        if end == 0 {
            Self::Empty
        } else {
            Self::Span(BytesFrom::Memory(bytes), ByteSpan { at: 0, end })
        }
    }

    /// All `length` bytes of `source`.
    pub(crate) fn whole(source: BytesFrom, length: u64) -> Self {
        debug_assert!(
            !matches!(&source, BytesFrom::Memory(bytes) if bytes.len() as u64 != length),
            "the declared length is that of the bytes"
        );
        Self::Span(source, ByteSpan { at: 0, end: length })
    }

    /// A part of `source`.
    pub(crate) fn span(source: BytesFrom, range: ByteRange) -> Self {
        debug_assert!(range.start < range.end, "a range has bytes (RFC 9110 §14.1.1)");
        Self::Span(source, ByteSpan { at: range.start, end: range.end })
    }

    /// Appends at most `max` bytes to `out`, or describes a part of a file.
    pub(crate) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        match self {
            Self::Empty => BodyPiece::End,
            Self::Span(source, span) => {
                let piece = pull_span(source, span, max, out);
                if matches!(piece, BodyPiece::End) {
                    *self = Self::Empty;
                }
                piece
            }
            Self::Parts(parts) => parts.pull(max, out),
            Self::Stream(stream) => stream.pull(max, out),
            Self::Origin(inflow) => inflow.pull(max, out),
            Self::Growing(growth) => growth.pull(max, out),
            Self::Assembly(assembly) => assembly.pull(max, out),
            Self::Whole(strand) => strand.pull(max, out),
            Self::Filtered(filtered) => filtered.pull(max, out),
            Self::Compound(compound) => compound.pull(max, out),
            Self::Sliced(sliced) => sliced.pull(max, out),
        }
    }

    /// Why it has no more bytes, for the error log.
    pub(crate) const fn failure(&self) -> &'static str {
        match self {
            Self::Growing(_) => {
                "the request that fetches it has failed, or this client was too slow"
            }
            Self::Span(..) | Self::Parts(_) | Self::Whole(_) => "its file cannot be read",
            Self::Assembly(_) | Self::Compound(_) | Self::Sliced(_) | Self::Origin(_) => {
                "a part of it has failed"
            }
            Self::Empty | Self::Stream(_) | Self::Filtered(_) => "a filter of it has failed",
        }
    }

    /// Whether a filter changes its bytes.
    pub(crate) fn is_changed(&self) -> bool {
        match self {
            Self::Stream(_) | Self::Filtered(_) | Self::Compound(_) => true,
            Self::Sliced(sliced) => sliced.inner.is_changed(),
            _ => false,
        }
    }

    /// Whether a pull needs nothing but memory.
    pub(super) const fn is_in_hand(&self) -> bool {
        matches!(
            self,
            Self::Span(BytesFrom::Memory(_), _)
                | Self::Origin(_)
                | Self::Growing(_)
                | Self::Whole(_)
        )
    }

    /// The bytes that filters have processed since the last call.
    pub(crate) fn take_work(&mut self) -> u64 {
        match self {
            Self::Stream(stream) => std::mem::take(&mut stream.work),
            Self::Filtered(filtered) => {
                std::mem::take(&mut filtered.work) + filtered.inner.take_work()
            }
            Self::Compound(compound) => {
                std::mem::take(&mut compound.work) + compound.inner.take_work()
            }
            Self::Sliced(sliced) => sliced.inner.take_work(),
            _ => 0,
        }
    }

    /// The upstream response in it, if there is one.
    pub(crate) fn inflow(&self) -> Option<&Inflow> {
        match self {
            Self::Origin(inflow) => Some(inflow),
            Self::Assembly(assembly) => assembly.origin(),
            Self::Filtered(filtered) => filtered.inner.inflow(),
            Self::Compound(compound) => compound.inner.inflow(),
            Self::Sliced(sliced) => sliced.inner.inflow(),
            _ => None,
        }
    }

    /// As [`Self::inflow`], mutable.
    pub(crate) fn inflow_mut(&mut self) -> Option<&mut Inflow> {
        match self {
            Self::Origin(inflow) => Some(inflow),
            Self::Assembly(assembly) => assembly.inflow_mut(),
            Self::Filtered(filtered) => filtered.inner.inflow_mut(),
            Self::Compound(compound) => compound.inner.inflow_mut(),
            Self::Sliced(sliced) => sliced.inner.inflow_mut(),
            _ => None,
        }
    }

    /// The body inside all filters.
    #[inline]
    pub(crate) fn innermost(&self) -> &Self {
        let mut body = self;
        loop {
            body = match body {
                Self::Filtered(filtered) => &filtered.inner,
                Self::Compound(compound) => &compound.inner,
                body => return body,
            };
        }
    }

    /// The ESI page in it, if there is one.
    pub(crate) fn assembly(&self) -> Option<&PageAssembly> {
        match self.innermost() {
            Self::Assembly(assembly) => Some(assembly),
            _ => None,
        }
    }

    /// As [`Self::assembly`], mutable.
    pub(crate) fn assembly_mut(&mut self) -> Option<&mut PageAssembly> {
        match self {
            Self::Assembly(assembly) => Some(assembly),
            Self::Filtered(filtered) => filtered.inner.assembly_mut(),
            Self::Compound(compound) => compound.inner.assembly_mut(),
            _ => None,
        }
    }

    /// The body with included responses, if it is one.
    pub(crate) fn compound(&self) -> Option<&Compound> {
        match self {
            Self::Compound(compound) => Some(compound),
            Self::Filtered(filtered) => filtered.inner.compound(),
            _ => None,
        }
    }

    /// As [`Self::compound`], mutable.
    pub(crate) fn compound_mut(&mut self) -> Option<&mut Compound> {
        match self {
            Self::Compound(compound) => Some(compound),
            Self::Filtered(filtered) => filtered.inner.compound_mut(),
            _ => None,
        }
    }

    /// The sliced body, if it is one.
    pub(crate) fn sliced(&self) -> Option<&SlicedBody> {
        match self {
            Self::Sliced(sliced) => Some(sliced),
            Self::Filtered(filtered) => filtered.inner.sliced(),
            Self::Compound(compound) => compound.inner.sliced(),
            _ => None,
        }
    }

    /// As [`Self::sliced`], mutable.
    pub(crate) fn sliced_mut(&mut self) -> Option<&mut SlicedBody> {
        match self {
            Self::Sliced(sliced) => Some(sliced),
            Self::Filtered(filtered) => filtered.inner.sliced_mut(),
            Self::Compound(compound) => compound.inner.sliced_mut(),
            _ => None,
        }
    }

    /// Drops what is outside of `wanted`, which may be empty, from a slice that was not pulled yet.
    /// A slice that is too short stays as it is, and breaks the body that it is for.
    pub(crate) fn keep_of_slice(&mut self, wanted: ByteRange) {
        match self {
            Self::Span(_, span) if span.end - span.at >= wanted.end => {
                span.end = span.at + wanted.end;
                span.at += wanted.start;
            }
            Self::Origin(inflow) => inflow.keep_only(wanted),
            _ => {}
        }
    }

    /// Whether it processes what is read from its file.
    pub(super) fn feeds_itself(&self) -> bool {
        match self {
            Self::Span(BytesFrom::Outside(_), _)
            | Self::Stream(_)
            | Self::Filtered(_)
            | Self::Compound(_) => true,
            Self::Sliced(sliced) => sliced.inner.feeds_itself(),
            _ => false,
        }
    }

    /// Appends bytes of the upstream response.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        match self {
            Self::Origin(inflow) => inflow.push(bytes),
            Self::Assembly(assembly) => assembly.push(bytes),
            Self::Filtered(filtered) => filtered.inner.push(bytes),
            Self::Compound(compound) => compound.inner.push(bytes),
            Self::Sliced(sliced) => sliced.inner.push(bytes),
            _ => {}
        }
    }

    /// The upstream response is complete.
    pub(crate) fn finish(&mut self) {
        match self {
            Self::Origin(inflow) => inflow.finish(),
            Self::Assembly(assembly) => assembly.finish(),
            Self::Filtered(filtered) => filtered.inner.finish(),
            Self::Compound(compound) => compound.inner.finish(),
            Self::Sliced(sliced) => sliced.inner.finish(),
            _ => {}
        }
    }

    /// The upstream response broke off.
    pub(crate) fn fail(&mut self) {
        match self {
            Self::Origin(inflow) => inflow.fail(),
            Self::Assembly(assembly) => assembly.fail(),
            Self::Filtered(filtered) => filtered.inner.fail(),
            Self::Compound(compound) => compound.inner.fail(),
            Self::Sliced(sliced) => sliced.inner.fail(),
            _ => {}
        }
    }

    /// Takes the bytes that were read of the described file part; an empty slice means that reading
    /// failed.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        match self {
            Self::Stream(stream) => stream.feed(bytes),
            Self::Filtered(filtered) => filtered.feed(bytes),
            Self::Compound(compound) => compound.feed(bytes),
            Self::Sliced(sliced) => sliced.inner.feed(bytes),
            Self::Span(BytesFrom::Outside(file), span) => file.feed(span.at, bytes),
            Self::Parts(parts) => {
                if let (BytesFrom::Outside(file), Some(span)) = (&mut parts.source, &parts.span) {
                    file.feed(span.at, bytes);
                }
            }
            Self::Empty
            | Self::Span(..)
            | Self::Origin(_)
            | Self::Growing(_)
            | Self::Assembly(_)
            | Self::Whole(_) => {}
        }
    }

    /// Records that `len` bytes of the described file part were sent.
    pub(crate) fn advance(&mut self, len: u64) {
        let span = match self {
            Self::Span(_, span) => Some(span),
            Self::Parts(parts) => parts.span.as_mut(),
            Self::Origin(inflow) => return inflow.advance(len),
            Self::Assembly(assembly) => return assembly.advance(len),
            Self::Filtered(filtered) => return filtered.inner.advance(len),
            Self::Compound(compound) => return compound.inner.advance(len),
            Self::Sliced(sliced) => return sliced.advance(len),
            Self::Empty | Self::Stream(_) | Self::Growing(_) | Self::Whole(_) => None,
        };
        if let Some(span) = span {
            debug_assert!(len <= span.end - span.at, "no more is sent than was described");
            span.at = span.end.min(span.at.saturating_add(len));
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::SendChain;
    use bolide_base::chain::CopyPolicy;
    use bolide_http::range::ByteRange;
    use bytes::Bytes;

    use super::{AnswerBody, BodyPiece, BytesFrom, MultipartBody};

    fn drain(body: &mut AnswerBody, max: usize) -> Vec<u8> {
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        for _ in 0..1000 {
            match body.pull(max, &mut out) {
                BodyPiece::More => {}
                BodyPiece::End => return out.contiguous().unwrap().to_vec(),
                other => panic!("{other:?}"),
            }
        }
        panic!("the body never ends");
    }

    #[test]
    fn a_body_in_memory_is_whole_whatever_the_size_of_the_pulls() {
        for max in [1, 3, 10, 11, 100] {
            let mut body = AnswerBody::memory(Bytes::from_static(b"0123456789"));
            assert_eq!(drain(&mut body, max), b"0123456789");
            assert_eq!(drain(&mut body, max), b"");
        }
    }

    #[test]
    fn parts_come_with_their_frames() {
        let mut body = AnswerBody::Parts(Box::new(MultipartBody {
            source: BytesFrom::Memory(Bytes::from_static(b"0123456789")),
            frames: vec![b"<a>".to_vec(), b"<b>".to_vec(), b"<end>".to_vec()],
            ranges: vec![ByteRange { start: 1, end: 4 }, ByteRange { start: 8, end: 10 }],
            next: 0,
            span: None,
        }));
        assert_eq!(drain(&mut body, 2), b"<a>123<b>89<end>");
    }
}
