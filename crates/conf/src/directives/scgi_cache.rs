//! `scgi_cache*`, as far as `fastcgi_cache*` has the same.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::cache::SCGI;
