//! The body filters of an answer: one list, in nginx's order.
//!
//! Owns the effects of each filter on the body and on its head. [`crate::filter::body`] decides
//! which filters a response has; ESI pages are assembled before all of them, by the body's source
//! ([`super::PageAssembly`]).

use bolide_files::{CodingDecoder, CodingEncoder};
use bolide_htaccess::SubstitutedLines;
use bolide_http::negotiate::Coding;
use bolide_http::{FieldMap, Name};

use super::compound::PartsFilter;
use super::{AnswerBody, Compound, FilteredBody, Recoder, Substitute};

/// The coding of a body is corrupt, or one of its lines cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenCoding;

/// A filter that changes the bytes of a body.
#[derive(Debug)]
pub(crate) enum ByteFilter {
    /// `gunzip`; none after its end.
    Gunzip(Option<Box<CodingDecoder>>),
    /// `sub_filter`, and whether `Last-Modified` stays.
    Sub(Substitute, bool),
    /// mod_substitute
    Lines(Box<SubstitutedLines>),
    /// `charset`
    Charset(Recoder),
    /// `gzip` and the like.
    Compress(CompressFilter),
}

/// Compresses a body while it is sent.
#[derive(Debug)]
pub(crate) struct CompressFilter {
    coding: Coding,
    /// None after its end.
    encoder: Option<CodingEncoder>,
    /// Whether the encoder may hold bytes back.
    holds: bool,
    /// The cost of a byte, compared with what other filters do with it.
    cost: u64,
    /// Work since the last `take_work`, in addition to the input bytes.
    work: u64,
}

/// A body filter, in nginx's order.
#[derive(Debug)]
pub(crate) enum BodyFilter {
    Bytes(ByteFilter),
    /// `ssi` and `addition`: responses of subrequests within and around the body.
    Parts(Box<PartsFilter>),
}

/// The filters of a body, in order.
#[derive(Debug, Default)]
pub(crate) struct BodyFilters(Vec<BodyFilter>);

impl CompressFilter {
    /// A compressor; none if the library fails.
    pub(crate) fn new(coding: Coding, level: i8) -> Option<Self> {
        let encoder = CodingEncoder::new(coding, level).ok()?;
        let cost = bolide_files::stream_cost(coding, level);
        Some(Self { coding, encoder: Some(encoder), holds: false, cost, work: 0 })
    }
}

impl ByteFilter {
    /// A gzip decompressor.
    pub(crate) fn gunzip() -> Self {
        Self::Gunzip(Some(Box::new(CodingDecoder::gzip())))
    }

    /// Appends the output for `piece` to `out`, as far as one step goes.
    pub(super) fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), BrokenCoding> {
        match self {
            Self::Sub(substitute, _) => substitute.feed(piece, out),
            Self::Lines(lines) => lines.feed(piece, out).map_err(|_| BrokenCoding)?,
            Self::Charset(recoder) => recoder.feed(piece, out),
            _ if piece.is_empty() => {}
            Self::Gunzip(decoder) => {
                let decoder = decoder.as_mut().ok_or(BrokenCoding)?;
                decoder.feed(piece, out).map_err(|_| BrokenCoding)?;
            }
            Self::Compress(filter) => {
                let encoder = filter.encoder.as_mut().ok_or(BrokenCoding)?;
                filter.holds = true;
                filter.work += (filter.cost - 1) * piece.len() as u64;
                encoder.feed(piece, out).map_err(|_| BrokenCoding)?;
            }
        }
        Ok(())
    }

    /// Whether the last step ended before its piece was processed: the next step needs no piece.
    pub(super) fn is_behind(&self) -> bool {
        match self {
            Self::Sub(substitute, _) => substitute.is_behind(),
            Self::Lines(lines) => lines.is_behind(),
            _ => false,
        }
    }

    /// Work since the last call, in addition to the input bytes.
    pub(super) fn take_work(&mut self) -> u64 {
        match self {
            Self::Lines(lines) => lines.take_work(),
            Self::Compress(filter) => std::mem::take(&mut filter.work),
            _ => 0,
        }
    }

    /// Why it has failed.
    pub(super) fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Lines(lines) => lines.fault(),
            Self::Gunzip(_) => Some("a body cannot be inflated: its gzip is damaged or cut off"),
            _ => None,
        }
    }

    /// Flushes to `out` what it need not hold back.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), BrokenCoding> {
        let Self::Compress(filter) = self else { return Ok(()) };
        if !std::mem::take(&mut filter.holds) {
            return Ok(());
        }
        let encoder = filter.encoder.as_mut().ok_or(BrokenCoding)?;
        encoder.flush(out).map_err(|_| BrokenCoding)
    }

    /// Appends the final output, as far as one step goes; returns whether that was all.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, BrokenCoding> {
        match self {
            Self::Gunzip(decoder) => {
                let decoder = decoder.take().ok_or(BrokenCoding)?;
                decoder.finish(out).map_err(|_| BrokenCoding)?;
            }
            Self::Sub(substitute, _) => return Ok(substitute.finish(out)),
            Self::Lines(lines) => return lines.finish(out).map_err(|_| BrokenCoding),
            Self::Charset(_) => {}
            Self::Compress(filter) => {
                let encoder = filter.encoder.take().ok_or(BrokenCoding)?;
                encoder.finish(out).map_err(|_| BrokenCoding)?;
            }
        }
        Ok(true)
    }

    /// Whether one byte of input may become a thousand.
    pub(super) const fn grows(&self) -> bool {
        matches!(self, Self::Gunzip(_) | Self::Charset(_))
    }

    fn edit_head(&self, fields: &mut FieldMap) {
        match self {
            Self::Gunzip(_) => {
                fields.remove(Name::ContentEncoding);
                fields.remove(Name::AcceptRanges);
                weaken(fields);
            }
            Self::Sub(_, keeps_last_modified) => blur(fields, *keeps_last_modified),
            Self::Lines(_) => {
                fields.remove(Name::AcceptRanges);
                weaken(fields);
            }
            Self::Charset(_) => {}
            Self::Compress(filter) => {
                fields.push(Name::ContentEncoding, filter.coding.token().as_bytes());
                fields.remove(Name::AcceptRanges);
                weaken(fields);
            }
        }
    }

    /// The position of [`BodyFilter::rank`].
    const fn rank(&self) -> u8 {
        match self {
            Self::Gunzip(_) => 0,
            Self::Sub(..) => 1,
            Self::Lines(_) => 2,
            Self::Charset(_) => 3,
            Self::Compress(_) => 5,
        }
    }
}

impl BodyFilter {
    /// nginx's order: decompression, `sub_filter`, charset, SSI, and compression last.
    const fn rank(&self) -> u8 {
        match self {
            Self::Bytes(filter) => filter.rank(),
            Self::Parts(_) => 4,
        }
    }

    /// Whether output and input have the same length.
    fn keeps_length(&self) -> bool {
        matches!(self, Self::Bytes(ByteFilter::Charset(recoder)) if recoder.keeps_length())
    }
}

impl BodyFilters {
    /// Appends a filter, which comes after all others in nginx's order.
    pub(crate) fn push(&mut self, filter: BodyFilter) {
        assert!(
            self.0.last().is_none_or(|last| last.rank() < filter.rank()),
            "body filters stand in nginx's order"
        );
        self.0.push(filter);
    }

    /// Whether output and input have the same length.
    pub(crate) fn keep_length(&self) -> bool {
        self.0.iter().all(BodyFilter::keeps_length)
    }

    /// Adjusts the fields of a head whose body passes these filters.
    pub(crate) fn edit_head(&self, fields: &mut FieldMap) {
        for filter in &self.0 {
            match filter {
                BodyFilter::Bytes(filter) => filter.edit_head(fields),
                BodyFilter::Parts(parts) => {
                    fields.remove(Name::AcceptRanges);
                    blur(fields, parts.keeps_last_modified());
                }
            }
        }
    }

    /// `body` behind these filters.
    pub(crate) fn around(self, mut body: AnswerBody) -> AnswerBody {
        let mut run = Vec::new();
        for filter in self.0 {
            match filter {
                BodyFilter::Bytes(filter) => run.push(filter),
                BodyFilter::Parts(parts) => {
                    body = through(body, std::mem::take(&mut run));
                    body = AnswerBody::Compound(Box::new(Compound::new(body, *parts)));
                }
            }
        }
        through(body, run)
    }
}

fn through(body: AnswerBody, filters: Vec<ByteFilter>) -> AnswerBody {
    if filters.is_empty() {
        return body;
    }
    AnswerBody::Filtered(Box::new(FilteredBody::new(body, filters)))
}

/// Removes validators, which belong to other bytes.
pub(crate) fn blur(fields: &mut FieldMap, keeps_last_modified: bool) {
    if keeps_last_modified {
        weaken(fields);
    } else {
        fields.remove(Name::LastModified);
        fields.remove(Name::Etag);
    }
}

/// RFC 9110 §8.8.1: changed bytes are at most equivalent to those that the entity tag identifies.
pub(crate) fn weaken(fields: &mut FieldMap) {
    let Some(etag) = fields.get(Name::Etag) else { return };
    if etag.starts_with(b"W/") {
        return;
    }
    let weak = etag.starts_with(b"\"").then(|| [b"W/", etag].concat());
    fields.remove(Name::Etag);
    if let Some(weak) = weak {
        fields.push(Name::Etag, &weak);
    }
}
