//! What origin and `add_trailer` say behind the body.
//!
//! Owns whether an answer has trailers and what they are worth, which is known at its last byte;
//! refuses parts of other answers, whose ends no client sees.

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
    /// Says in the head how the body will end.
    #[inline]
    pub(crate) fn announce_end(&mut self, request: &Request, site: &Site) {
        let location = site.location(request.location);
        let head = &mut self.head;
        // As in nginx, a line that could not be read is not one of HTTP/1.1.
        head.unchunked = !location.settings.chunked_transfer_encoding || request.is_unread;
        head.chunk_size = location.settings.http2_chunk_size;
        if head.body == BodyLen::Unknown && request.head().method != Method::Head {
            // What nothing else ends, the end of the connection does.
            let version = request.head().version;
            head.close |=
                version < HttpVersion::Http11 || version == HttpVersion::Http11 && head.unchunked;
        }
        if !location.is_trailed || request.role.auth().is_some() || request.role.is_subrequest() {
            return;
        }
        // Of what had a length nothing can stand behind it.
        let may_pass = location.settings.origin.proxy.pass_trailers
            && self.head.body == BodyLen::Unknown
            && self.origin.as_ref().is_some_and(|asked| asked.is_answering());
        // As in nginx, an empty value counts here, and what turns out to be a 416 was a 206.
        let safe = is_safe(self.head.status) || self.unsatisfied.is_some();
        let adds = !location.trailers.is_empty();
        self.head.trailed =
            may_pass || adds && safe || location.trailers.iter().any(|trailer| trailer.conf.always);
    }
}

impl ResponseBody<'_> {
    /// Adds what stands behind the body to `fields`, and remembers it for the log.
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

/// Adds the origin's `trailers` but those that are about framing or one connection (RFC 9110
/// §6.5.1), and what clients do not see.
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
