//! The origin and the client begin to speak another protocol (RFC 9110 §15.2.2): all that is left
//! to do is to carry bytes both ways.

use base::SpoolLimits;
use http::{BodyLen, OriginHead};

use crate::answer::{Body, Inflow};
use crate::ctx::Ctx;
use crate::exchange::{Exchange, Next};
use crate::filter::accel::Shape;
use crate::record;
use crate::site::Site;

impl Exchange {
    /// Whether client and origin speak a protocol of their own by now.
    pub(crate) const fn is_tunnel(&self) -> bool {
        self.answer.head.status == 101
    }

    /// Answers with the origin's 101, behind which the connection is a tunnel.
    pub(crate) fn send_tunnel(
        &mut self,
        head: &OriginHead,
        site: &Site,
        ctx: &mut Ctx<'_>,
    ) -> Next {
        if !self.request.may_tunnel() || !self.request.upload.is_streamed() {
            record::error_at_origin(self, site, ctx, |out| {
                out.extend_from_slice(b"upstream switched protocols for a client that cannot");
            });
            self.drop_fetch(ctx);
            return Next::Fail(502);
        }
        let location = site.location(self.request.location);
        let content_type = head.fields.get(http::Name::ContentType).unwrap_or_default();
        let kind = &*location.kinds.of_value(content_type, &location.settings);
        self.fill_from_origin(101, head, kind, Shape::default(), site, ctx);
        if let Some(asked) = &mut self.answer.origin {
            asked.set_answering();
        }
        let limits = SpoolLimits { memory: location.settings.origin.buffer_size, file: 0 };
        self.answer.head.body = BodyLen::Unknown;
        self.answer.body = Body::Origin(Box::new(Inflow::new(limits, None)));
        Next::Respond
    }
}
