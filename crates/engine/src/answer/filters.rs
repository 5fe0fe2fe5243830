//! The body filters of an answer: one list, in nginx's order.
//!
//! Owns what each filter makes of a piece of a body and of its head. Which of them an answer has is
//! decided in [`crate::filter::body`]; pages with ESI are put together before all of them, by the
//! body's source ([`super::PageAssembly`]).

use bolide_files::{CodingDecoder, CodingEncoder};
use bolide_htaccess::SubstitutedLines;
use bolide_http::negotiate::Coding;
use bolide_http::{FieldMap, Name};

use super::compound::PartsFilter;
use super::{AnswerBody, Compound, FilteredBody, Recoder, Substitute};

/// The coding of a body is damaged, or a line of it cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenCoding;

/// A filter that makes other bytes of a body's bytes.
#[derive(Debug)]
pub(crate) enum ByteFilter {
    /// `gunzip`; nothing behind its end.
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

/// Compresses a body on its way.
#[derive(Debug)]
pub(crate) struct CompressFilter {
    coding: Coding,
    /// Nothing behind its end.
    encoder: Option<CodingEncoder>,
    /// Whether the encoder may hold something back.
    holds: bool,
}

/// A body filter, in the order of nginx.
#[derive(Debug)]
pub(crate) enum BodyFilter {
    Bytes(ByteFilter),
    /// `ssi` and `addition`: bodies of subrequests between the bytes, and around them.
    Parts(Box<PartsFilter>),
}

/// What a body goes through, in order.
#[derive(Debug, Default)]
pub(crate) struct BodyFilters(Vec<BodyFilter>);

impl CompressFilter {
    /// Compresses, unless the library cannot.
    pub(crate) fn new(coding: Coding, level: i8) -> Option<Self> {
        let encoder = CodingEncoder::new(coding, level).ok()?;
        Some(Self { coding, encoder: Some(encoder), holds: false })
    }
}

impl ByteFilter {
    /// Undoes gzip.
    pub(crate) fn gunzip() -> Self {
        Self::Gunzip(Some(Box::new(CodingDecoder::gzip())))
    }

    /// Appends to `out` what becomes of `piece`, as far as one step goes.
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
                encoder.feed(piece, out).map_err(|_| BrokenCoding)?;
            }
        }
        Ok(())
    }

    /// Whether a step ended before all of its piece was done: the next one needs no piece.
    pub(super) fn is_behind(&self) -> bool {
        match self {
            Self::Sub(substitute, _) => substitute.is_behind(),
            Self::Lines(lines) => lines.is_behind(),
            _ => false,
        }
    }

    /// Work since the last call, beside the bytes that it was given.
    pub(super) fn take_work(&mut self) -> u64 {
        match self {
            Self::Lines(lines) => lines.take_work(),
            _ => 0,
        }
    }

    /// Why it has broken off.
    pub(super) fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Lines(lines) => lines.fault(),
            Self::Gunzip(_) => Some("a body cannot be inflated: its gzip is damaged or cut off"),
            _ => None,
        }
    }

    /// Appends what is held back and need not be: no piece comes for now.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), BrokenCoding> {
        let Self::Compress(filter) = self else { return Ok(()) };
        if !std::mem::take(&mut filter.holds) {
            return Ok(());
        }
        let encoder = filter.encoder.as_mut().ok_or(BrokenCoding)?;
        encoder.flush(out).map_err(|_| BrokenCoding)
    }

    /// Appends the rest, as far as one step goes: no piece comes any more. Whether that was all.
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

    /// Whether a byte may become a thousand.
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

    /// The place among the filters of [`BodyFilter::rank`].
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
    /// nginx's order: what was decoded has texts replaced and its charset changed, is read for SSI
    /// commands, and is compressed last.
    const fn rank(&self) -> u8 {
        match self {
            Self::Bytes(filter) => filter.rank(),
            Self::Parts(_) => 4,
        }
    }

    /// Whether as many bytes leave as come.
    fn keeps_length(&self) -> bool {
        matches!(self, Self::Bytes(ByteFilter::Charset(recoder)) if recoder.keeps_length())
    }
}

impl BodyFilters {
    /// Adds the filter that follows all others.
    pub(crate) fn push(&mut self, filter: BodyFilter) {
        assert!(
            self.0.last().is_none_or(|last| last.rank() < filter.rank()),
            "body filters stand in nginx's order"
        );
        self.0.push(filter);
    }

    /// Whether as many bytes leave as come.
    pub(crate) fn keep_length(&self) -> bool {
        self.0.iter().all(BodyFilter::keeps_length)
    }

    /// Changes the fields of a head whose body goes through these.
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

    /// `body` behind all of these.
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

/// What tells versions apart was made for what is not sent.
pub(crate) fn blur(fields: &mut FieldMap, keeps_last_modified: bool) {
    if keeps_last_modified {
        weaken(fields);
    } else {
        fields.remove(Name::LastModified);
        fields.remove(Name::Etag);
    }
}

/// RFC 9110 §8.8.1: what was changed is at most equivalent to what the tag was made for.
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
