//! `proxy_ssl_*`: TLS to upstreams.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::origin_tls::PROXY;
