//! Executes a delivery: the bytes of the body, and the fields that describe them.
//!
//! Owns `Content-Range`, `multipart/byteranges` and the fields that a 304 must not have.

use bolide_http::conditional::Conditions;
use bolide_http::range::{Boundary, Multipart, push_unsatisfied};
use bolide_http::{BodyLen, Name};
use bytes::Bytes;

use super::{DeliveredBytes, Delivery, DeliveryRefusal, Representation, decide, push_range};
use crate::answer::{Answer, AnswerBody, BytesFrom, MultipartBody, UnsatisfiedRange};
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::request::Request;

impl Answer {
    /// Decides what is sent of `representation` for this request, or prepares the error response.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        request: &Request,
        representation: &Representation<'_>,
    ) -> Result<Delivery, NextStep> {
        let head = request.head();
        // PERF: most texts and errors need no look at the request's fields.
        let conditions = match representation.source.is_conditional() {
            true => Conditions::of(&head.fields),
            false => Conditions::default(),
        };
        match decide(representation, head.method, &conditions, &mut self.ranges) {
            Ok(delivery) => Ok(delivery),
            Err(DeliveryRefusal::PreconditionFailed) => {
                self.fails_condition = true;
                Err(NextStep::Fail(412))
            }
            Err(DeliveryRefusal::RangeNotSatisfiable(length)) => {
                let modified_at = representation.validator.last_modified;
                self.unsatisfied = Some(UnsatisfiedRange { length, modified_at, varies: false });
                debug_assert!(self.ranges.is_empty(), "what cannot be satisfied selects nothing");
                Err(NextStep::Fail(416))
            }
        }
    }

    /// Sets `text` as the body of a response whose fields are complete.
    pub(crate) fn give_text(&mut self, request: &Request, text: Bytes) {
        let representation = Representation::text(self.head.status, text.len() as u64);
        let delivered = self.deliver(request, &representation);
        debug_assert!(delivered.is_ok(), "a text has no conditions and no ranges");
        if let Ok(delivery) = delivered {
            give_coded(self, &delivery, text);
        }
    }

    /// Sets the body to the part of the `length` bytes of `source` that `delivery` selects. All
    /// other fields are complete: as in nginx, `add_header` sees the values of the whole.
    #[inline]
    pub(crate) fn give_bytes(
        &mut self,
        delivery: &Delivery,
        source: BytesFrom,
        length: u64,
        ctx: &mut StepCtx<'_>,
    ) {
        self.head.body = delivery.length;
        self.body = match delivery.bytes {
            DeliveredBytes::Nothing => AnswerBody::Empty,
            DeliveredBytes::Whole if length == 0 => AnswerBody::Empty,
            DeliveredBytes::Whole => AnswerBody::whole(source, length),
            DeliveredBytes::Part(range) => {
                debug_assert!(range.end <= length, "a range lies within its representation");
                push_range(&mut self.head.fields, delivery, length);
                AnswerBody::span(source, range)
            }
            DeliveredBytes::Parts => self.multipart(source, length, ctx),
        };
    }

    /// Several ranges as `multipart/byteranges` (RFC 9110 §14.6).
    fn multipart(&mut self, source: BytesFrom, length: u64, ctx: &mut StepCtx<'_>) -> AnswerBody {
        let fields = &mut self.head.fields;
        let content_type = fields.get(Name::ContentType).unwrap_or_default();
        debug_assert!(self.ranges.len() > 1, "one range is no multipart");
        debug_assert!(
            self.ranges.iter().all(|range| range.start < range.end && range.end <= length),
            "ranges have bytes and lie within their representation"
        );
        let boundary = Boundary::new(ctx.prng.next_u64());
        let multipart = Multipart { boundary, content_type, length };
        let mut frames = Vec::with_capacity(self.ranges.len() + 1);
        for range in &self.ranges {
            let mut frame = Vec::new();
            multipart.push_part(&mut frame, *range);
            frames.push(frame);
        }
        let mut end = Vec::new();
        multipart.push_end(&mut end);
        frames.push(end);
        self.head.body = BodyLen::Exact(multipart.body_len(&self.ranges));
        let mut content_type = Vec::with_capacity(64);
        boundary.push_content_type(&mut content_type);
        fields.set(Name::ContentType, &content_type);
        let ranges = self.ranges.clone();
        AnswerBody::Parts(Box::new(MultipartBody { source, frames, ranges, next: 0, span: None }))
    }

    /// Adds `Content-Range` to a 416.
    pub(crate) fn push_unsatisfied(&mut self) {
        if let Some(UnsatisfiedRange { length, .. }) = self.unsatisfied.take() {
            let fields = &mut self.head.fields;
            fields.push_writing(Name::ContentRange, |out| push_unsatisfied(out, length));
        }
    }
}

/// Sets `bytes`, already in their final coding, as the body.
pub(crate) fn give_coded(answer: &mut Answer, delivery: &Delivery, bytes: Bytes) {
    debug_assert!(!delivery.is_partial(), "a coded form has no ranges");
    answer.head.body = delivery.length;
    answer.body = match delivery.bytes {
        DeliveredBytes::Whole if !bytes.is_empty() => AnswerBody::memory(bytes),
        _ => AnswerBody::Empty,
    };
}
