//! `fastcgi_store*`; they apply to `lsapi_pass` and `php_pass` as well.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::store::FASTCGI;
