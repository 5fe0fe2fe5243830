//! `scgi_*`, as far as `fastcgi_*` has the same.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::origin::SCGI;
