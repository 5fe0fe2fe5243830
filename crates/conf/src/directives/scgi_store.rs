//! `scgi_store*`: responses of SCGI applications stored as files.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::store::SCGI;
