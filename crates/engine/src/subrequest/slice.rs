//! A slice of a response: its bytes, and the request for it.
//!
//! Owns the check whether a 206 is the requested slice. Easiest to break: slices of two versions of
//! a representation never make one response.

use bolide_http::range::{ByteRange, ContentRange, parse_content_range};
use bolide_http::{FieldMap, Name};

use crate::caching::RequestArrival;
use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use crate::route::LocationIndex;
use bolide_patterns::Captures;

/// The range of one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SliceRange {
    /// The first byte, a multiple of the size.
    pub(crate) start: u64,
    /// LIMIT: bytes of a slice, as `slice` says; not 0.
    pub(crate) size: u64,
}

impl SliceRange {
    /// One past the last byte.
    pub(crate) const fn end(self) -> u64 {
        self.start.saturating_add(self.size)
    }

    /// The part of its bytes, relative to its start, within `window` of a representation of `whole`
    /// bytes; may be empty.
    pub(crate) fn part_of(self, window: ByteRange, whole: u64) -> ByteRange {
        let length = self.end().min(whole) - self.start;
        let start = window.start.saturating_sub(self.start).min(length);
        let end = window.end.saturating_sub(self.start).clamp(start, length);
        ByteRange { start, end }
    }

    /// The slice of this size that contains byte `at`.
    pub(crate) const fn with(self, at: u64) -> Self {
        Self { start: at - at % self.size, size: self.size }
    }

    /// The length of the representation, if this response is the requested slice; else the error,
    /// in nginx's words.
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
        // Another length means another version; nginx compares the tag only.
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

    /// Whether a response with this head is another range than the requested one.
    pub(crate) fn is_missed_by(self, status: u16, fields: &FieldMap) -> bool {
        status == 206 && self.check(status, fields, None).is_err()
    }
}

/// The state of slices of a request that is no slice itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slicing {
    /// `$slice_range` was not read in the location of the content.
    #[default]
    No,
    /// The upstream request was for this slice.
    Begun(SliceRange),
    /// The response is complete.
    Off,
}

/// A request for a slice of another request's response. As in nginx, it begins at the content phase
/// of the same location: without rewriting and access checks.
#[derive(Clone, Debug)]
pub struct SliceRequest {
    pub(crate) range: SliceRange,
    /// Which of its bytes are used, relative to its start.
    pub(crate) wanted: ByteRange,
    /// The length of the representation, by the first slice.
    pub(crate) whole: u64,
    /// The entity tag of the first slice.
    pub(crate) etag: Option<Vec<u8>>,
    /// Path and query of the parent.
    pub(crate) uri: Vec<u8>,
    pub(crate) args: Option<Vec<u8>>,
    pub(crate) location: LocationIndex,
    pub(crate) rewritten_here: bool,
    pub(crate) appends_uri: bool,
    /// How the parent arrived there, which is part of the cache key.
    pub(crate) arrival: RequestArrival,
    /// Whether `auth_request` admitted the parent.
    pub(crate) is_authorized: bool,
    /// The captures and variables of the parent.
    pub(crate) known: Captures,
    pub(crate) id: [u64; 2],
    /// The client's address according to a trusted proxy.
    pub(crate) real: Option<ClientAddress>,
    /// The index of the request's listen in its site.
    pub(crate) listen: usize,
    /// The results of limits for the parent; as in nginx, none counts twice.
    pub(crate) limits: [LimitDetail; 2],
}
