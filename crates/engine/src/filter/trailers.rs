//! What `add_trailer` says behind the body.
//!
//! Owns whether an answer has trailers and what they are worth, which is known at its last byte;
//! refuses parts of other answers, whose ends nobody sees.

use http::{BodyLen, Fields, Method, Version};

use crate::ctx::Around;
use crate::exchange::Exchange;
use crate::filter::headers::is_safe;
use crate::site::Site;
use crate::vars::Scope;

impl Exchange {
    /// Says in the head how the body will end.
    #[inline]
    pub(crate) fn announce_end(&mut self, site: &Site) {
        let location = site.location(self.request.location);
        let head = &mut self.answer.head;
        head.unchunked = !location.settings.chunked_transfer_encoding;
        if head.body == BodyLen::Unknown && self.request.head().method != Method::Head {
            // What nothing else ends, the end of the connection does.
            let version = self.request.head().version;
            head.close |= version < Version::Http11 || version == Version::Http11 && head.unchunked;
        }
        if location.trailers.is_empty() || self.request.question.is_some() || self.is_fragment() {
            return;
        }
        // As in nginx, an empty value counts here, and what turns out to be a 416 was a 206.
        let safe = is_safe(self.answer.head.status) || self.unsatisfied.is_some();
        self.answer.head.trailed =
            safe || location.trailers.iter().any(|trailer| trailer.conf.always);
    }

    /// Adds what stands behind the body to `fields`, and remembers it for the log.
    #[cold]
    pub fn trailers(&mut self, around: &Around<'_>, fields: &mut Fields) {
        let Some(site) = self.request.site.clone() else { return };
        let location = site.location(self.request.location);
        let safe = is_safe(self.answer.head.status);
        let mut scratch = std::mem::take(&mut self.scratch);
        for trailer in location.trailers.iter().filter(|trailer| safe || trailer.conf.always) {
            scratch.clear();
            Scope::around(&self.request, &self.answer, &site, around)
                .expand(&trailer.conf.value, &mut scratch);
            for byte in scratch.iter_mut().filter(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
                *byte = b' ';
            }
            if !scratch.is_empty() {
                fields.push_parsed(trailer.name, &trailer.conf.name, &scratch);
            }
        }
        self.scratch = scratch;
        self.answer.trailers.copy_from(fields);
    }
}
