//! A slice of a response: which bytes it has, and the request for one.
//!
//! Owns whether a 206 is the slice that was asked for. Easiest to break: slices of two versions of
//! a representation never make one response.

use bolide_http::range::{ByteRange, ContentRange, parse_content_range};
use bolide_http::{FieldMap, Name};

use crate::caching::RequestArrival;
use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use crate::route::LocationIndex;
use bolide_patterns::Captures;

/// The bytes that one slice is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SliceRange {
    /// The first byte, a multiple of the size.
    pub(crate) start: u64,
    /// LIMIT: bytes of a slice, as `slice` says; not 0.
    pub(crate) size: u64,
}

impl SliceRange {
    /// One past the last byte that is asked for.
    pub(crate) const fn end(self) -> u64 {
        self.start.saturating_add(self.size)
    }

    /// Which of its bytes, counted from its start, lie in `window` of a representation of `whole`
    /// bytes; maybe none.
    pub(crate) fn part_of(self, window: ByteRange, whole: u64) -> ByteRange {
        let length = self.end().min(whole) - self.start;
        let start = window.start.saturating_sub(self.start).min(length);
        let end = window.end.saturating_sub(self.start).clamp(start, length);
        ByteRange { start, end }
    }

    /// The range of this size that byte `at` is in.
    pub(crate) const fn with(self, at: u64) -> Self {
        Self { start: at - at % self.size, size: self.size }
    }

    /// Bytes of the whole, if this response is the slice of this range; else what is wrong, in
    /// nginx's words.
    pub(crate) fn check(
        self,
        status: u16,
        fields: &FieldMap,
        before: Option<(u64, Option<&[u8]>)>,
    ) -> Result<u64, Vec<u8>> {
        if status != 206 {
            return Err(format!("unexpected status code {status} in slice response").into_bytes());
        }
        if let Some((_, Some(etag))) = before
            && fields.get(Name::Etag) != Some(etag)
        {
            return Err(b"etag mismatch in slice response".to_vec());
        }
        let said = fields.get(Name::ContentRange).and_then(parse_content_range);
        let Some(ContentRange { start, end, whole }) = said else {
            return Err(b"invalid range in slice response".to_vec());
        };
        let Some(whole) = whole else {
            return Err(b"no complete length in slice response".to_vec());
        };
        // What has another length than before is another version; nginx relies on the tag alone.
        let is_same = before.is_none_or(|(length, _)| length == whole);
        let due = start.saturating_add(self.size).min(whole);
        if start != self.start || start >= due || end != due || !is_same {
            let text = format!(
                "unexpected range in slice response: {start}-{end}, expected: {}-{due}",
                self.start
            );
            return Err(text.into_bytes());
        }
        Ok(whole)
    }

    /// Whether a response with this head has a part, and not the one that was asked for.
    pub(crate) fn is_missed_by(self, status: u16, fields: &FieldMap) -> bool {
        status == 206 && self.check(status, fields, None).is_err()
    }
}

/// What a request that is no slice itself knows of its slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slicing {
    /// `$slice_range` was not read where the request is answered.
    #[default]
    No,
    /// An upstream server was asked for this slice.
    Begun(SliceRange),
    /// The response came whole.
    Off,
}

/// What makes a request one for a slice of another one's response. As in nginx, it is made where
/// the other one is answered: nothing is rewritten or checked again.
#[derive(Clone, Debug)]
pub struct SliceRequest {
    pub(crate) range: SliceRange,
    /// Which of its bytes are used, counted from its start.
    pub(crate) wanted: ByteRange,
    /// Bytes that the whole has, by its first slice.
    pub(crate) whole: u64,
    /// The entity tag of the first slice.
    pub(crate) etag: Option<Vec<u8>>,
    /// Path and query of the other one.
    pub(crate) uri: Vec<u8>,
    pub(crate) args: Option<Vec<u8>>,
    pub(crate) location: LocationIndex,
    pub(crate) rewritten_here: bool,
    pub(crate) appends_uri: bool,
    /// How the other one arrived there, which belongs to the key of what is cached.
    pub(crate) arrival: RequestArrival,
    /// Whether another location let the other one in.
    pub(crate) is_authorized: bool,
    /// What the other one knew.
    pub(crate) known: Captures,
    pub(crate) id: [u64; 2],
    /// Who asks, if that is not who is connected.
    pub(crate) real: Option<ClientAddress>,
    /// Where the request came in, as its site counts it.
    pub(crate) listen: usize,
    /// What limits said of the request; as in nginx, none is counted twice.
    pub(crate) told: [LimitDetail; 2],
}
