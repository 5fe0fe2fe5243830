//! An answer in the making and the body that is pulled from it.
//!
//! Owns how much of a body has left; the invariant that is easiest to break is that a body of a
//! stated length yields exactly that many bytes.

mod allowed;
mod assembly;
mod combined;
mod compound;
mod filtered;
mod filters;
mod fragment;
mod growth;
mod headed;
mod inflow;
mod outside;
mod pass_request;
mod recode;
mod script;
mod sliced;
pub(crate) mod strand;
mod substitute;

use bolide_base::{FileRef, SendChain};
use bolide_files::{CodingEncoder, Meta};
use bolide_http::range::ByteRange;
use bolide_http::{FieldMap, Name, ResponseHead};
use bytes::Bytes;

use crate::caching::{CacheReason, UpstreamCacheStatus};

pub use assembly::Pulled;

pub(crate) use allowed::Allowed;
pub(crate) use assembly::PageAssembly;
pub use combined::CombinedHead;
pub(crate) use compound::{Compound, CompoundReader, PartOrder, PartsFilter};
pub(crate) use filtered::{AnswerHold, BodyStart, FilteredBody};
pub(crate) use filters::{BodyFilter, BodyFilters, ByteFilter, CompressFilter, blur, weaken};
pub(crate) use growth::Growth;
pub(crate) use headed::HeadedBytes;
pub(crate) use inflow::{Flush, Inflow};
pub(crate) use outside::FromFile;
pub(crate) use pass_request::PassRequest;
pub(crate) use recode::{CharsetOutcome, Recoder};
pub(crate) use sliced::SlicedBody;
pub(crate) use strand::Strand;
pub(crate) use substitute::{Pair, Substitute};

/// What one pull gave.
#[derive(Clone, Debug)]
pub enum BodyPiece {
    /// Something was appended; ask again.
    More,
    /// Nothing now; `Effect::Ready` will tell when there is.
    Pending,
    /// Nothing now, though there is more: what was taken until now is enough for one turn. Ask
    /// again in another one.
    Later,
    /// That was the last byte; something may have been appended.
    End,
    /// The body cannot be completed; cut the stream.
    Broken,
    /// Read this part of a file and call `Exchange::feed` with what was read, then ask again.
    Read {
        /// The open file.
        file: FileRef,
        /// First byte to read.
        offset: u64,
        /// Bytes to read; fewer may be fed.
        len: u64,
        /// Whose file it is.
        whose: FileOwner,
    },
    /// Pull from the exchange of this name, give what came to `Exchange::take_fragment`, then ask
    /// again.
    Fragment(u64),
    /// Send this part of a file, then call `Exchange::advanced` with what was sent.
    File {
        /// The open file.
        file: FileRef,
        /// First byte to send.
        offset: u64,
        /// Bytes to send, at most what was asked for.
        len: u64,
        /// Whose file it is. One of a body in transit must be read, not referred to: it may be
        /// written over once it was read.
        whose: FileOwner,
    },
}

/// Whose file the bytes of a body come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwner {
    /// A body in transit, without a name.
    Transit,
    /// The site, which may change it meanwhile: as with nginx, what is there is sent, as far as the
    /// length that was stated.
    Site,
    /// The cache, which never changes it: what it must still look like.
    Cache(Meta),
}

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

/// A body that is being sent.
#[derive(Debug, Default)]
pub(crate) enum AnswerBody {
    /// None, or none left.
    #[default]
    Empty,
    /// `at..end` of a source.
    Span(BytesFrom, ByteSpan),
    /// `multipart/byteranges`
    Parts(Box<MultipartBody>),
    /// A file that is compressed while it leaves.
    Stream(Box<CompressedFile>),
    /// What an origin sends.
    Origin(Box<Inflow>),
    /// What another exchange's fetch brings.
    Growing(Box<Growth>),
    /// A page that is put together.
    Assembly(Box<PageAssembly>),
    /// Such a page as it was put together a moment ago.
    Whole(Strand),
    /// Another body, behind filters.
    Filtered(Box<FilteredBody>),
    /// Another body, with further answers in it.
    Compound(Box<Compound>),
    /// Slices one after another.
    Sliced(Box<SlicedBody>),
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

impl AnswerBody {
    /// Drops what is left, without a call where nothing is.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if !matches!(self, Self::Empty) {
            *self = Self::Empty;
        }
    }

    /// Whether other answers may go into it.
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

    /// Whether it takes other bytes than it gives.
    pub(crate) fn is_changed(&self) -> bool {
        match self {
            Self::Stream(_) | Self::Filtered(_) | Self::Compound(_) => true,
            Self::Sliced(sliced) => sliced.inner.is_changed(),
            _ => false,
        }
    }

    /// Whether a pull wants nothing but what is in memory.
    const fn is_in_hand(&self) -> bool {
        matches!(
            self,
            Self::Span(BytesFrom::Memory(_), _)
                | Self::Origin(_)
                | Self::Growing(_)
                | Self::Whole(_)
        )
    }

    /// How many bytes were taken to change them since the last call.
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

    /// What comes from an origin, if anything does.
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

    /// The same, to be changed.
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

    /// The body that others change on its way.
    pub(crate) fn innermost(&self) -> &Self {
        match self {
            Self::Filtered(filtered) => filtered.inner.innermost(),
            Self::Compound(compound) => compound.inner.innermost(),
            body => body,
        }
    }

    /// The page that is put together, if one is.
    pub(crate) fn assembly(&self) -> Option<&PageAssembly> {
        match self.innermost() {
            Self::Assembly(assembly) => Some(assembly),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn assembly_mut(&mut self) -> Option<&mut PageAssembly> {
        match self {
            Self::Assembly(assembly) => Some(assembly),
            Self::Filtered(filtered) => filtered.inner.assembly_mut(),
            Self::Compound(compound) => compound.inner.assembly_mut(),
            _ => None,
        }
    }

    /// The body with other answers in it, if it is one.
    pub(crate) fn compound(&self) -> Option<&Compound> {
        match self {
            Self::Compound(compound) => Some(compound),
            Self::Filtered(filtered) => filtered.inner.compound(),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn compound_mut(&mut self) -> Option<&mut Compound> {
        match self {
            Self::Compound(compound) => Some(compound),
            Self::Filtered(filtered) => filtered.inner.compound_mut(),
            _ => None,
        }
    }

    /// The body in slices, if it is one.
    pub(crate) fn sliced(&self) -> Option<&SlicedBody> {
        match self {
            Self::Sliced(sliced) => Some(sliced),
            Self::Filtered(filtered) => filtered.inner.sliced(),
            Self::Compound(compound) => compound.inner.sliced(),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn sliced_mut(&mut self) -> Option<&mut SlicedBody> {
        match self {
            Self::Sliced(sliced) => Some(sliced),
            Self::Filtered(filtered) => filtered.inner.sliced_mut(),
            Self::Compound(compound) => compound.inner.sliced_mut(),
            _ => None,
        }
    }

    /// Throws away what is outside of `wanted`, which may be empty, of a slice that nothing was
    /// pulled of. A slice that is shorter stays as it is, and breaks the body that it is for.
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

    /// Whether it does something with what is read of a file for it.
    fn feeds_itself(&self) -> bool {
        match self {
            Self::Span(BytesFrom::Outside(_), _)
            | Self::Stream(_)
            | Self::Filtered(_)
            | Self::Compound(_) => true,
            Self::Sliced(sliced) => sliced.inner.feeds_itself(),
            _ => false,
        }
    }

    /// Takes more of what comes from an origin.
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

    /// The origin has sent all.
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

    /// The origin sends no more, and that was not all.
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

    /// Takes what was read of the described file part; nothing at all means that reading failed.
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

    /// Notes that `len` bytes of the described file part were sent.
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

/// `End` also when this call appended the last bytes.
fn pull_span(
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
fn push_part(bytes: &Bytes, start: usize, end: usize, out: &mut SendChain) {
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
    const fn feeds_itself(&self) -> bool {
        matches!(self.source, BytesFrom::Outside(_))
    }

    fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
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

/// A file that is compressed while it leaves.
#[derive(Debug)]
pub(crate) struct CompressedFile {
    file: FileRef,
    /// What is left to read.
    span: ByteSpan,
    /// Absent when the stream is complete, or broken.
    encoder: Option<CodingEncoder>,
    is_broken: bool,
    /// What was compressed and has not left.
    ready: Vec<u8>,
    given: usize,
    /// Bytes that were taken since that was asked last.
    work: u64,
}

/// Bytes read at once for a stream.
const STREAM_READ: u64 = 64 * 1024;

impl CompressedFile {
    /// A stream of the whole file.
    pub(crate) const fn new(file: FileRef, size: u64, encoder: CodingEncoder) -> Self {
        let span = ByteSpan { at: 0, end: size };
        let encoder = Some(encoder);
        let ready = Vec::new();
        Self { file, span, encoder, is_broken: false, ready, given: 0, work: 0 }
    }

    fn feed(&mut self, bytes: &[u8]) {
        debug_assert!(
            bytes.len() as u64 <= self.span.end - self.span.at,
            "no more is fed than was asked for"
        );
        self.span.at = self.span.end.min(self.span.at + bytes.len() as u64);
        self.work += bytes.len() as u64;
        let fed = self.encoder.as_mut().map(|encoder| encoder.feed(bytes, &mut self.ready));
        self.is_broken |= bytes.is_empty() || !matches!(fed, Some(Ok(())));
    }

    fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
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

/// A representation of which ranges were asked that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsatisfiedRange {
    /// Its bytes.
    pub(crate) length: u64,
    /// When it changed, in seconds since 1970.
    pub(crate) modified_at: Option<u64>,
    /// Whether another client may get it in another coding.
    pub(crate) varies: bool,
}

/// An answer in the making. Its buffers are kept between requests.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The head.
    pub(crate) head: ResponseHead,
    /// The body.
    pub(crate) body: AnswerBody,
    /// The status that an error page forces on what it leads to; 0 for none.
    pub(crate) forced_status: u16,
    /// What is logged when no head was made: 444, 499.
    pub(crate) bare_status: u16,
    /// Whether the head was handed over.
    pub(crate) is_responded: bool,
    /// Whether the last byte was handed over.
    pub(crate) is_complete: bool,
    /// Body bytes that left.
    pub(crate) body_sent: u64,
    /// Other bytes that left.
    pub(crate) head_sent: u64,
    /// Coding, size before and size after, if the body was compressed on the fly.
    pub(crate) compression: Option<(&'static str, u64, u64)>,
    /// What is known of the origins that were asked.
    pub(crate) origin: Option<Box<PassRequest>>,
    /// Seconds for `Retry-After` in a 503.
    pub(crate) retry_after: Option<u32>,
    /// Fields of an origin's answer that another answer of ours has to carry.
    pub(crate) carried: FieldMap,
    /// What stood behind the body.
    pub(crate) trailers: FieldMap,
    /// What the location knows that refused the method.
    pub(crate) allowed: Option<Allowed>,
    /// What the store had to do with it.
    pub(crate) cached: UpstreamCacheStatus,
    /// Why, if something asks and the request is over.
    pub(crate) cache_reason: Option<CacheReason>,
    /// The kept answer that it is.
    pub(crate) object: Option<std::sync::Arc<bolide_cache::Object>>,
    /// The address of a redirect; empty if there is none.
    pub(crate) location: Vec<u8>,
    /// Whether there is a redirect, though to nowhere: its `Location` is empty.
    pub(crate) is_to_nowhere: bool,
    /// How many bytes of it stand before a path of ours.
    pub(crate) location_origin: usize,
    /// Whether it stands for one that the client's conditions ruled out.
    pub(crate) fails_condition: bool,
    /// Without an address a redirect has no `Location`, not an empty one: it is the last word of
    /// `try_files`.
    pub(crate) is_without_location: bool,
    /// Whether it is a page that the server itself wrote for its status.
    pub(crate) is_own_page: bool,
    /// Whether `.htaccess` files may have its body searched.
    pub(crate) may_be_searched: bool,
    /// What its head waits for that is ready.
    pub(crate) held: AnswerHold,
    /// `WWW-Authenticate`; empty if there is none.
    pub(crate) challenge: Vec<u8>,
    /// For whatever is written on the way to it.
    pub(crate) scratch: Vec<u8>,
    /// For ranges.
    pub(crate) ranges: Vec<ByteRange>,
    /// Of what impossible ranges were asked.
    pub(crate) unsatisfied: Option<UnsatisfiedRange>,
    /// Whether a compressed form was waited for already.
    pub(crate) waited_for_form: bool,
    /// What was found about its charset when its type was written.
    pub(crate) charset: Option<Box<CharsetOutcome>>,
}

impl Answer {
    /// Forgets the last answer and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.body.clear();
        self.forced_status = 0;
        self.bare_status = 0;
        self.is_responded = false;
        self.is_complete = false;
        self.body_sent = 0;
        self.head_sent = 0;
        self.compression = None;
        self.origin = None;
        self.retry_after = None;
        self.carried.clear();
        self.trailers.clear();
        self.allowed = None;
        self.cached = UpstreamCacheStatus::No;
        self.cache_reason = None;
        self.object = None;
        self.charset = None;
        self.forget_draft();
    }

    /// Forgets what was noted for an answer that another one takes the place of.
    #[inline]
    pub(crate) fn forget_draft(&mut self) {
        self.location.clear();
        (self.location_origin, self.is_to_nowhere) = (0, false);
        (self.is_without_location, self.is_own_page) = (false, false);
        (self.may_be_searched, self.held) = (false, AnswerHold::No);
        self.fails_condition = false;
        self.challenge.clear();
        self.unsatisfied = None;
        self.waited_for_form = false;
    }

    /// Keeps fields of an origin's answer for the one that takes its place.
    pub(crate) fn carry(&mut self, fields: &FieldMap, which: impl Fn(Name) -> bool) {
        self.carried.clear();
        for field in fields.iter().filter(|field| which(field.name)) {
            self.carried.push_parsed(field.name, field.text, field.value);
        }
    }

    /// Whether what an origin sends is what the client gets.
    pub(crate) fn is_from_origin(&self) -> bool {
        self.origin.as_ref().is_some_and(|asked| asked.is_answering())
    }

    /// `$status`
    pub(crate) const fn logged_status(&self) -> u16 {
        if self.bare_status | self.forced_status == 0 {
            return self.head.status;
        }
        match (self.bare_status, self.head.status) {
            // Before there is a head, what an error page forces is known already.
            (0, 0) => self.forced_status,
            // As in nginx, `error_page ... =200` says what is logged, also of a part of its page.
            (0, 206 | 304 | 416) if self.forced_status == 200 => 200,
            (0, status) => status,
            // As in nginx, what an error page forces counts more than how it went.
            (bare, _) if self.forced_status == 0 => bare,
            _ => self.forced_status,
        }
    }

    /// The status of an answer that would be `status` were it not for an error page.
    pub(crate) const fn status_or(&self, status: u16) -> u16 {
        if self.forced_status != 0 { self.forced_status } else { status }
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
