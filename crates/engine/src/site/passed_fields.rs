//! Which fields and statuses of upstream responses clients of a location get.

use std::sync::Arc;

use bolide_conf::model::Protocol;

use super::{CompiledLocation, UpstreamPass};
use crate::caching::Caching;

impl UpstreamPass {
    /// Whether the upstream speaks HTTP in any version.
    pub(crate) fn is_http(&self) -> bool {
        self.proxied.is_some() || self.conf.protocol == Protocol::Http2
    }

    /// What is spoken with the upstream.
    pub(crate) fn protocol(&self) -> Protocol {
        match &self.proxied {
            Some(plan) if plan.speaks_http2() => Protocol::Http2,
            _ => self.conf.protocol,
        }
    }
}

impl CompiledLocation {
    /// Whether `error_page` replaces an upstream response with `status` (`*_intercept_errors`).
    pub(crate) fn intercepts(&self, status: u16) -> bool {
        let settings = &self.settings;
        settings.origin.intercept_errors
            && status >= 300
            && settings.error_pages.iter().any(|page| page.status == status)
    }

    /// Whether the upstream's field `name` is hidden from clients.
    pub(crate) fn hides(&self, name: bolide_http::Name) -> bool {
        self.pass.as_ref().is_some_and(|pass| pass.hidden.names.contains(&name))
    }

    /// Whether an upstream response with these fields gets our `name`, which is `Server` or `Date`.
    /// As in nginx, an HTTP upstream may suppress it where the field is passed.
    pub(crate) fn adds(&self, name: bolide_http::Name, fields: &bolide_http::FieldMap) -> bool {
        let is_proxied = self.pass.as_ref().is_some_and(|pass| pass.proxied.is_some());
        self.hides(name) || !is_proxied && fields.get(name).is_none()
    }

    /// Whether an upstream response gets our `Date`, as in nginx; not if it may come from a cache
    /// that sends `Age` (RFC 9110 §6.6.1).
    pub(crate) fn dates(&self, fields: &bolide_http::FieldMap) -> bool {
        !(self.keeps_dates() && fields.get(bolide_http::Name::Date).is_some())
            && self.adds(bolide_http::Name::Date, fields)
    }

    /// Whether `Date` of the upstream is passed although proxies usually hide it.
    pub(crate) fn keeps_dates(&self) -> bool {
        self.caching.as_ref().is_some_and(Caching::sends_age)
    }

    /// Whether the upstream's field `text`, which has no known name, is hidden from clients.
    pub(crate) fn hides_text(&self, text: &[u8]) -> bool {
        let is_hidden = |pass: &Arc<UpstreamPass>| {
            pass.hidden.texts.iter().any(|hidden| hidden.eq_ignore_ascii_case(text))
        };
        self.pass.as_ref().is_some_and(is_hidden)
    }
}
