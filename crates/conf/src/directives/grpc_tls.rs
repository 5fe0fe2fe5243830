//! `grpc_ssl_*`: TLS to `grpcs://` upstreams.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::origin_tls::GRPC;
