//! Interim responses of upstreams: `early_hints`, and which of their fields are passed on.
//!
//! Owns the limit on their size. The framing drops them for clients of HTTP/1.0.

use bolide_conf::model::LogLevel;
use bolide_http::hop_by_hop::is_no_trailer;
use bolide_http::{Name, OriginHead, ResponseHead};

use crate::answer::Answer;
use crate::ctx::{StepCtx, StepEffect};
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

impl Answer {
    /// RFC 9110 §15.2: passes an interim response to the client, without connection-specific
    /// fields; 103 only where `early_hints` permits it.
    pub(crate) fn pass_early(
        &mut self,
        request: &Request,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let location = site.location(request.location);
        let is_hint = head.status == 103;
        if is_hint && !self.wants_hints(request, site, ctx) {
            return;
        }
        if is_hint && let Some(asked) = &mut self.origin {
            asked.early_size += size_of(head);
            if asked.early_size > location.settings.origin.buffer_size {
                let origin = self.peer();
                let origin = origin.as_ref().map(|(scheme, peer)| (*scheme, &**peer));
                return log_lines::error_about(request, origin, site, ctx, LogLevel::Info, |out| {
                    out.extend_from_slice(
                        b"upstream sent too big early hints while reading response header \
                              from upstream",
                    );
                });
            }
        }
        let mut interim = Box::new(ResponseHead { status: head.status, ..ResponseHead::default() });
        for field in head.fields.iter().filter(|field| !is_no_trailer(field.name)) {
            let is_hidden = match field.name {
                Name::Other => location.hides_text(field.text),
                name => location.hides(name),
            };
            if !is_hidden {
                interim.fields.push_parsed(field.name, field.text, field.value);
            }
        }
        ctx.effects.push(StepEffect::Interim(interim));
    }

    /// `early_hints`
    fn wants_hints(&self, request: &Request, site: &Site, ctx: &StepCtx<'_>) -> bool {
        let scope = VariableScope::new(request, self, site, ctx);
        let mut text = Vec::new();
        let texts = &site.location(request.location).settings.early_hints;
        texts.iter().any(|template| scope.is_true(template, &mut text))
    }
}

/// The size of a head in HTTP/1.1 with its usual reason phrase.
fn size_of(head: &OriginHead) -> usize {
    let line = |name: &[u8], value: &[u8]| name.len() + value.len() + b": \r\n".len();
    let lines: usize = head.fields.iter().map(|field| line(field.text, field.value)).sum();
    b"HTTP/1.1 103 Early Hints\r\n\r\n".len() + lines
}
