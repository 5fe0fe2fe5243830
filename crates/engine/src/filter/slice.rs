//! `slice`: a response that is fetched in ranges of equal size, each of which can be cached.
//!
//! Owns `$slice_range` and the boundaries of slices; [`crate::answer::SlicedBody`] joins them.
//! Easiest to break: the client's preconditions and ranges apply to the whole, not to the first
//! slice.

use bolide_http::range::first_byte;
use bolide_http::{BodyLen, Method, Name, OriginHead, RequestHead};

use crate::answer::{Answer, AnswerBody, ByteSpan, SlicedBody};
use crate::content::parts::inherit;
use crate::ctx::StepCtx;
use crate::delivery::{DeliveredBytes, Delivery};
use crate::exchange::NextStep;
use crate::filter::charset::RecodedLength;
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::{SliceRange, SliceRequest, Slicing};
use crate::vars::{VariableScope, VariableValue};

/// A first slice, and the head of the complete response.
#[derive(Debug)]
pub(crate) struct FirstSlice {
    /// The head of the complete response.
    pub(crate) head: OriginHead,
    range: SliceRange,
    whole: u64,
}

impl VariableScope<'_> {
    /// `$slice_range`: for a request that is no slice, the first read determines it.
    pub(crate) fn write_slice_range(&self, out: &mut Vec<u8>) -> VariableValue {
        let request = self.request;
        if let Some(slice) = request.role.slice() {
            return push_slice(out, slice.range);
        }
        // As in nginx, it is empty once all slices are there.
        let is_bare = request.head().method == Method::Head || self.answer.head.status == 304;
        let is_over = self.answer.is_complete && !is_bare;
        if is_over || request.role.is_subrequest() {
            return VariableValue::No;
        }
        let is_made = self.sent.is_some() || self.answer.is_responded;
        let size = self.location().settings.slice;
        match request.slicing.get() {
            Slicing::Begun(range) => push_slice(out, range),
            Slicing::No if size > 0 && !is_made => {
                let range = SliceRange { start: 0, size: size as u64 }.with(first_wanted(request));
                request.slicing.set(Slicing::Begun(range));
                push_slice(out, range)
            }
            Slicing::No | Slicing::Off => VariableValue::No,
        }
    }
}

fn push_slice(out: &mut Vec<u8>, range: SliceRange) -> VariableValue {
    out.extend_from_slice(b"bytes=");
    bolide_http::digits::push_decimal(out, range.start);
    out.push(b'-');
    bolide_http::digits::push_decimal(out, range.end() - 1);
    VariableValue::Yes
}

/// The first byte that the client requests, if its `Range` has one range and there is no
/// `If-Range`.
fn first_wanted(request: &Request) -> u64 {
    let fields = &request.head().fields;
    let range = fields.get(Name::Range).filter(|range| !range.contains(&b','));
    let range = range.filter(|_| fields.get(Name::IfRange).is_none());
    range.and_then(first_byte).unwrap_or(0)
}

impl Request {
    /// The slice of the upstream request.
    pub(crate) fn asked_slice(&self) -> Option<SliceRange> {
        match (self.role.slice(), self.slicing.get()) {
            (Some(slice), _) => Some(slice.range),
            (None, Slicing::Begun(range)) => Some(range),
            (None, Slicing::No | Slicing::Off) => None,
        }
    }
}

/// Logs an error of a slice.
fn log_fault(request: &Request, answer: &Answer, fault: &[u8], site: &Site, ctx: &mut StepCtx<'_>) {
    if answer.is_from_origin() || answer.is_fetching() {
        log_lines::error_at_origin(request, answer, site, ctx, |out| {
            out.extend_from_slice(fault);
            out.extend_from_slice(b" while reading response header from upstream");
        });
    } else {
        request.log_error(site, ctx, |out| out.extend_from_slice(fault));
    }
}

/// The complete response that `head` begins, if the request asked for a slice and got one.
///
/// # Errors
///
/// A 206 with another range: as in nginx, the client gets no response.
pub(crate) fn first_slice(
    request: &Request,
    answer: &Answer,
    status: u16,
    head: &OriginHead,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<Option<FirstSlice>, NextStep> {
    let Slicing::Begun(range) = request.slicing.get() else { return Ok(None) };
    if status != 206 {
        request.slicing.set(Slicing::Off);
        return Ok(None);
    }
    let whole = match range.check(status, &head.fields, None) {
        Ok(whole) => whole,
        Err(fault) => {
            log_fault(request, answer, &fault, site, ctx);
            return Err(NextStep::CloseWithoutResponse(status));
        }
    };
    let mut head = head.clone();
    head.status = 200;
    head.fields.remove(Name::ContentRange);
    head.fields.remove(Name::ContentLength);
    head.fields
        .push_writing(Name::ContentLength, |out| bolide_http::digits::push_decimal(out, whole));
    Ok(Some(FirstSlice { head, range, whole }))
}

impl FirstSlice {
    /// A sliced body is compressed after all filters, because no slice is the whole of what is
    /// compressed.
    pub(crate) const fn recoded(recoded: RecodedLength) -> RecodedLength {
        match recoded {
            RecodedLength::Untouched => RecodedLength::Kept,
            other => other,
        }
    }

    /// The length of the whole.
    pub(crate) const fn whole(&self) -> u64 {
        self.whole
    }

    /// The delivery of the first slice: all of it, if there is a body.
    pub(crate) fn delivery(delivery: &Delivery) -> Delivery {
        let bytes = match delivery.bytes {
            DeliveredBytes::Nothing => DeliveredBytes::Nothing,
            _ => DeliveredBytes::Whole,
        };
        Delivery { bytes, ..*delivery }
    }

    /// Makes the response, which is the first slice, a sliced one.
    pub(crate) fn begin(self, request: &Request, answer: &mut Answer, delivery: &Delivery) {
        answer.head.body = delivery.length;
        let window = match delivery.bytes {
            DeliveredBytes::Nothing => {
                answer.body = AnswerBody::Empty;
                return;
            }
            DeliveredBytes::Part(range) => ByteSpan { at: range.start, end: range.end },
            DeliveredBytes::Whole | DeliveredBytes::Parts => ByteSpan { at: 0, end: self.whole },
        };
        debug_assert_ne!(delivery.bytes, DeliveredBytes::Parts, "slices have one range");
        if request.head().method == Method::Head || delivery.length == BodyLen::None {
            return;
        }
        let etag = self.head.fields.get(Name::Etag).map(<[u8]>::to_vec);
        let inner = std::mem::take(&mut answer.body);
        let body = SlicedBody::new((self.range, inner), self.whole, etag, window);
        answer.body = AnswerBody::Sliced(Box::new(body));
    }
}

/// Writes the request for the next slice to `head`.
pub(crate) fn next_slice(
    request: &mut Request,
    answer: &Answer,
    head: &mut RequestHead,
) -> Option<Box<SliceRequest>> {
    let sliced = answer.body.sliced()?;
    let (range, wanted) = sliced.due()?;
    let (whole, etag) = sliced.version();
    debug_assert!(range.start < whole, "a slice that is due has bytes");
    debug_assert!(wanted.start < wanted.end, "a slice that is due has bytes that are wanted");
    inherit(head, request);
    Some(Box::new(SliceRequest {
        range,
        wanted,
        whole,
        etag: etag.map(<[u8]>::to_vec),
        uri: request.uri.clone(),
        args: request.args.clone(),
        location: request.location,
        rewritten_here: request.rewritten_here,
        appends_uri: request.appends_uri,
        arrival: request.arrival.clone(),
        is_authorized: request.is_authorized,
        known: request.captures.get_mut().clone(),
        id: request.id,
        real: request.real,
        listen: request.listen,
        limits: request.limited.details(),
    }))
}

impl Request {
    /// Sets the state that a slice has from its parent.
    pub(crate) fn adopt_sliced(&mut self, slice: &SliceRequest) {
        debug_assert_eq!(slice.range.start % slice.range.size, 0, "slices begin at multiples");
        self.internal = true;
        self.rewritten_here = slice.rewritten_here;
        self.appends_uri = slice.appends_uri;
        self.arrival.clone_from(&slice.arrival);
        (self.is_authorized, self.is_straight) = (slice.is_authorized, false);
        self.captures.get_mut().adopt(slice.known.clone());
        self.id = slice.id;
        self.real = slice.real;
        self.listen = slice.listen;
        self.limited.adopt(slice.limits);
    }
}

/// Whether the head of a slice is that of the requested slice; none if it is no slice.
pub(crate) fn is_next_slice(
    request: &Request,
    answer: &Answer,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<bool> {
    let slice = request.role.slice()?;
    let before = (slice.whole, slice.etag.as_deref());
    let head = &answer.head;
    let checked = slice.range.check(head.status, &head.fields, Some(before));
    if let Err(fault) = &checked {
        log_fault(request, answer, fault, site, ctx);
    }
    Some(checked.is_ok())
}
