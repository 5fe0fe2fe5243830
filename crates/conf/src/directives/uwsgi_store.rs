//! `uwsgi_store*`: responses of uwsgi applications stored as files.

use crate::directive::DirectiveSpec;

pub(super) const TABLE: &[DirectiveSpec] = super::store::UWSGI;
