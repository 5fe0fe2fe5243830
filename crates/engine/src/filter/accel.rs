//! The head of an origin's answer: what it means, what of it the client sees.

use base::SpoolLimits;
use http::{BodyLen, Method, Name, OriginHead};

use crate::answer::{Body, Inflow};
use crate::ctx::Ctx;
use crate::exchange::{Exchange, Next};
use crate::filter::headers::Draft;
use crate::site::Site;

impl Exchange {
    /// Answers with what the origin begins to say.
    pub(crate) fn take_origin_head(
        &mut self,
        head: &OriginHead,
        site: &Site,
        ctx: &mut Ctx<'_>,
    ) -> Next {
        let location = site.location(self.request.location);
        let status = match head.status {
            0 if head.fields.get(Name::Location).is_some() => 302,
            0 => 200,
            status => status,
        };
        self.fill(status, &Draft::default(), site, ctx);
        for field in head.fields.iter().filter(|field| field.name != Name::ContentLength) {
            self.answer.head.fields.push_parsed(field.name, field.text, field.value);
        }
        let len = head.fields.get(Name::ContentLength).and_then(|text| {
            std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok())
        });
        let origin = &location.settings.origin;
        let memory = origin.buffer_size + origin.buffers.0 as usize * origin.buffers.1;
        let limits = SpoolLimits { memory, file: origin.max_temp_file_size };
        self.answer.head.body = len.map_or(BodyLen::Unknown, BodyLen::Exact);
        self.answer.body = Body::Origin(Box::new(Inflow::new(limits, len)));
        if self.request.head().method == Method::Head && len.is_none() {
            self.answer.head.body = BodyLen::None;
        }
        Next::Respond
    }
}
