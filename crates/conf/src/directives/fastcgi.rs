//! `fastcgi_*`, as far as `proxy_*` has the same; they hold for `lsapi_pass` and `php_pass` as
//! well.

use crate::directive::Directive;

pub(super) const TABLE: &[Directive] = super::origin::FASTCGI;
