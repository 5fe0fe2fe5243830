//! The origin and the client begin to speak another protocol (RFC 9110 §15.2.2): all that is left
//! to do is to carry bytes both ways.

use bolide_base::SpoolLimits;
use bolide_http::{BodyLen, OriginHead};

use crate::answer::Answer;
use crate::answer::{AnswerBody, Inflow};
use crate::ctx::StepCtx;
use crate::delivery::Delivery;
use crate::exchange::{Exchange, NextStep};
use crate::filter::compress::CodingChoice;
use crate::log_lines;
use crate::site::Site;

impl Answer {
    /// Whether client and origin speak a protocol of their own by now.
    pub(crate) const fn is_tunnel(&self) -> bool {
        self.head.status == 101
    }
}

impl Exchange {
    /// Answers with the origin's 101, behind which the connection is a tunnel.
    pub(crate) fn send_tunnel(
        &mut self,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if !self.request.may_tunnel() || !self.request.upload.is_streamed() {
            log_lines::error_at_origin(&self.request, &self.answer, site, ctx, |out| {
                out.extend_from_slice(b"upstream switched protocols for a client that cannot");
            });
            self.answer.drop_fetch(ctx);
            return NextStep::Fail(502);
        }
        let location = site.location(self.request.location);
        let content_type = head.fields.get(bolide_http::Name::ContentType).unwrap_or_default();
        let kind = &*location.kinds.of_value(content_type, &location.settings);
        let whole = Delivery::whole(101);
        self.fill_from_origin(head, kind, CodingChoice::default(), &whole, site, ctx);
        if let Some(asked) = &mut self.answer.origin {
            asked.set_answering();
        }
        let limits = SpoolLimits { memory: location.settings.origin.buffer_size, file: 0 };
        self.answer.head.body = BodyLen::Unknown;
        self.answer.body = AnswerBody::Origin(Box::new(Inflow::new(limits, None)));
        NextStep::Respond
    }
}
