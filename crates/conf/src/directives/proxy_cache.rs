//! `proxy_cache*`, as far as `fastcgi_cache*` has the same.

use crate::directive::Directive;

pub(super) const TABLE: &[Directive] = super::cache::PROXY;
