//! `fastcgi_*`, as far as `proxy_*` has the same; they apply to `lsapi_pass` and `php_pass` as
//! well.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::origin::FASTCGI;
