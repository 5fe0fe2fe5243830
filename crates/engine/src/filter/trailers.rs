//! Trailer fields: those of the upstream, and `add_trailer`.
//!
//! Owns whether a response has trailers, and their values, which are known at its last byte.
//! Responses that are parts of others have none.

use bolide_http::hop_by_hop::is_no_trailer;
use bolide_http::{BodyLen, FieldMap, HttpVersion, Method, Name};

use crate::answer::Answer;
use crate::ctx::SendCtx;
use crate::exchange::response_body::ResponseBody;
use crate::filter::headers::is_safe;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

impl Answer {
    /// Sets in the head how the body ends.
    #[inline]
    pub(crate) fn announce_end(&mut self, request: &Request, site: &Site) {
        let location = site.location(request.location);
        let head = &mut self.head;
        // As in nginx, an invalid request line is not HTTP/1.1.
        head.unchunked = !location.settings.chunked_transfer_encoding || request.is_unread;
        head.chunk_size = location.settings.http2_chunk_size;
        if head.body == BodyLen::Unknown && request.head().method != Method::Head {
            // Without another end, the connection is closed.
            let version = request.head().version;
            head.close |=
                version < HttpVersion::Http11 || version == HttpVersion::Http11 && head.unchunked;
        }
        if !location.is_trailed || request.role.auth().is_some() || request.role.is_subrequest() {
            return;
        }
        // A body with a length has no trailers, unless they have a place of their own.
        let may_pass = location.settings.origin.proxy.pass_trailers
            && (self.head.body == BodyLen::Unknown || self.body.awaits_end())
            && self.origin.as_ref().is_some_and(|asked| asked.is_answering());
        // As in nginx, an empty value counts here, and a 416 counts as the 206 that it might have
        // been.
        let safe = is_safe(self.head.status) || self.unsatisfied.is_some();
        let adds = !location.trailers.is_empty();
        self.head.trailed =
            may_pass || adds && safe || location.trailers.iter().any(|trailer| trailer.conf.always);
    }
}

impl ResponseBody<'_> {
    /// Adds the trailers to `fields`, and stores them for the log.
    #[cold]
    pub fn trailers(&mut self, send_ctx: &SendCtx<'_>, fields: &mut FieldMap) {
        let Self { request, answer } = self;
        let Some(site) = request.site.clone() else { return };
        debug_assert!(answer.head.trailed, "a head announces what stands behind its body");
        let location = site.location(request.location);
        let safe = is_safe(answer.head.status);
        if location.settings.origin.proxy.pass_trailers
            && let Some(asked) = answer.origin.as_ref().filter(|asked| asked.is_answering())
        {
            push_passed(location, &asked.trailers, fields);
        }
        let mut scratch = std::mem::take(&mut answer.scratch);
        for trailer in location.trailers.iter().filter(|trailer| safe || trailer.conf.always) {
            scratch.clear();
            VariableScope::of_send(request, answer, &site, send_ctx)
                .expand(&trailer.conf.value, &mut scratch);
            for byte in scratch.iter_mut().filter(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
                *byte = b' ';
            }
            if !scratch.is_empty() {
                fields.push_parsed(trailer.name, &trailer.conf.name, &scratch);
            }
        }
        answer.scratch = scratch;
        answer.trailers.copy_from(fields);
    }
}

/// Adds the upstream's trailers, without those that are about framing or the connection (RFC 9110
/// §6.5.1) and without hidden ones.
fn push_passed(location: &CompiledLocation, trailers: &FieldMap, fields: &mut FieldMap) {
    for field in trailers.iter() {
        let is_kept_back = match field.name {
            name if is_no_trailer(name) => true,
            Name::Other => location.hides_text(field.text),
            name => location.hides(name),
        };
        if !is_kept_back {
            fields.push_parsed(field.name, field.text, field.value);
        }
    }
}
