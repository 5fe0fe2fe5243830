//! `proxy_*`, as far as `fastcgi_*` has the same.

use crate::directive::Directive;

pub(super) const TABLE: &[Directive] = super::origin::PROXY;
