//! The compiled request of a location to HTTP upstreams.

use std::sync::Arc;

use bolide_conf::model::{ProxyField, ProxySettings, ProxyVersion};
use bolide_conf::vars::Template;

use crate::filter::proxied::Rewriter;

/// The compiled request of a location to HTTP upstreams.
#[derive(Debug)]
pub(crate) struct ProxyPlan {
    pub(super) settings: Arc<ProxySettings>,
    /// Names of fields that the configuration replaces, in lower case.
    decided: Vec<Box<[u8]>>,
    /// The rewriting of its responses.
    pub(crate) rewriter: Rewriter,
}

impl ProxyPlan {
    /// Compiles `settings`.
    pub(crate) fn new(settings: &Arc<ProxySettings>, rewriter: Rewriter) -> Self {
        let lower = |field: &ProxyField| field.name.to_ascii_lowercase().into();
        let decided = settings.fields.iter().map(lower).collect();
        Self { settings: Arc::clone(settings), decided, rewriter }
    }

    pub(super) fn decides(&self, name: &[u8]) -> bool {
        self.decided.iter().any(|decided| decided.eq_ignore_ascii_case(name))
    }

    /// `proxy_set_body`
    pub(crate) fn body(&self) -> Option<&Template> {
        self.settings.body.as_ref()
    }

    /// Whether a body of unknown length can be sent.
    pub(crate) fn sends_chunks(&self) -> bool {
        self.settings.version != ProxyVersion::V10
    }

    /// Whether requests are sent over HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.settings.version == ProxyVersion::V2
    }
}
