//! `proxy_store*`: responses of HTTP servers stored as files.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::store::PROXY;
