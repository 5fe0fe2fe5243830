//! `uwsgi_ssl_*`: TLS to `suwsgi://` upstreams.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::origin_tls::UWSGI;
