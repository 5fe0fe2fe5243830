//! Which fields of upstream servers clients see of a location, and which statuses they do not.

use std::sync::Arc;

use super::{CompiledLocation, UpstreamPass};
use crate::caching::Caching;

impl CompiledLocation {
    /// Whether an error page answers for an upstream server's `status` (`*_intercept_errors`).
    pub(crate) fn intercepts(&self, status: u16) -> bool {
        let settings = &self.settings;
        settings.origin.intercept_errors
            && status >= 300
            && settings.error_pages.iter().any(|page| page.status == status)
    }

    /// Whether clients do not see the origin's field `name`.
    pub(crate) fn hides(&self, name: bolide_http::Name) -> bool {
        self.pass.as_ref().is_some_and(|pass| pass.hidden.names.contains(&name))
    }

    /// Whether an answer of the origin with these fields gets `name`, which is `Server` or `Date`,
    /// from us. As in nginx, an HTTP origin may have it leave without, where the field may pass.
    pub(crate) fn adds(&self, name: bolide_http::Name, fields: &bolide_http::FieldMap) -> bool {
        let is_proxied = self.pass.as_ref().is_some_and(|pass| pass.proxied.is_some());
        self.hides(name) || !is_proxied && fields.get(name).is_none()
    }

    /// Whether an answer of an origin is dated anew, as nginx does; not where it may come out of a
    /// store that says how old it is (RFC 9110 §6.6.1).
    pub(crate) fn dates(&self, fields: &bolide_http::FieldMap) -> bool {
        !(self.keeps_dates() && fields.get(bolide_http::Name::Date).is_some())
            && self.adds(bolide_http::Name::Date, fields)
    }

    /// Whether the date of an answer is passed on though proxies usually hide it.
    pub(crate) fn keeps_dates(&self) -> bool {
        self.caching.as_ref().is_some_and(Caching::tells_age)
    }

    /// Whether clients do not see the origin's field `text`, which is none of the known ones.
    pub(crate) fn hides_text(&self, text: &[u8]) -> bool {
        let is_hidden = |pass: &Arc<UpstreamPass>| {
            pass.hidden.texts.iter().any(|hidden| hidden.eq_ignore_ascii_case(text))
        };
        self.pass.as_ref().is_some_and(is_hidden)
    }
}
