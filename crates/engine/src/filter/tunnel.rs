//! Upgrade to another protocol (RFC 9110 §15.2.2): forwards bytes in both directions.

use bolide_base::SpoolLimits;
use bolide_conf::model::Protocol;
use bolide_http::{BodyLen, HttpVersion, OriginHead, RequestBody};

use crate::answer::Answer;
use crate::answer::{AnswerBody, Inflow};
use crate::ctx::{StepCtx, StepEffect};
use crate::delivery::Delivery;
use crate::exchange::NextStep;
use crate::filter::compress::CodingChoice;
use crate::filter::upstream_response::PassedHead;
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;

/// Whether the `Upgrade` of a request counts (RFC 9110 §7.8).
pub(crate) fn may_ask_upgrade(request: &Request) -> bool {
    request.head().version == HttpVersion::Http11 && !request.role.is_subrequest()
}

impl Request {
    /// Whether a 101 response can turn its connection into a tunnel: not before its body has
    /// arrived.
    pub(crate) fn may_tunnel(&self) -> bool {
        let is_complete = self.head().body == RequestBody::None || self.upload.is_complete();
        is_complete && may_ask_upgrade(self)
    }
}

impl Answer {
    /// Whether the connection is a tunnel by now.
    pub(crate) const fn is_tunnel(&self) -> bool {
        self.head.status == 101
    }
}

impl Answer {
    /// Sends the upstream's 101, after which the connection is a tunnel.
    pub(crate) fn send_tunnel(
        &mut self,
        request: &mut Request,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert_eq!(head.status, 101, "only this begins another protocol (RFC 9110 §15.2.2)");
        let location = site.location(request.location);
        let protocol = location.pass.as_ref().map(|pass| pass.conf.protocol);
        if !protocol.is_some_and(Protocol::has_tunnels) || !request.may_tunnel() {
            log_lines::error_at_origin(request, self, site, ctx, |out| {
                out.extend_from_slice(b"upstream switched protocols for a client that cannot");
            });
            self.drop_fetch(ctx);
            return NextStep::Fail(502);
        }
        request.begin_tunnel();
        ctx.effects.push(StepEffect::FetchTunnel(location.settings.client_body_buffer_size));
        let whole = Delivery::whole(101);
        let choice = CodingChoice::default();
        self.fill_from_origin(request, PassedHead { head, choice, delivery: &whole }, site, ctx);
        if let Some(asked) = &mut self.origin {
            asked.set_answering();
        }
        let limits = SpoolLimits { memory: location.settings.origin.buffer_size, file: 0 };
        self.head.body = BodyLen::Unknown;
        self.body = AnswerBody::Origin(Box::new(Inflow::new(limits, None)));
        NextStep::Respond
    }
}
