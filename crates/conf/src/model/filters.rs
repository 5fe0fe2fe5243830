//! Body filters: `sub_filter`, `gunzip`, `ssi`, `addition`.

use std::sync::Arc;

use super::TypeSet;
use crate::vars::Template;

/// The filters of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Filters {
    /// `sub_filter`: search texts with their replacements.
    pub sub: Arc<Vec<Substitution>>,
    /// `sub_filter_once`: each text is replaced once.
    pub sub_once: bool,
    /// `sub_filter_types`; `text/html` is always in.
    pub sub_types: TypeSet,
    /// `sub_filter_last_modified`: `Last-Modified` stays, `ETag` becomes weak.
    pub sub_last_modified: bool,
    /// `gunzip`: gzip is decoded for clients that do not accept it.
    pub gunzip: bool,
    /// `gunzip_buffers`: number and size; accepted.
    pub gunzip_buffers: (u32, usize),
    /// `ssi*`
    pub ssi: Ssi,
    /// `subrequest_output_buffer_size`: bytes of a response stored in a variable.
    pub subrequest_buffer: usize,
    /// `add_before_body`, `add_after_body`, `addition_types`
    pub addition: Addition,
}

/// `ssi*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ssi {
    /// `ssi`
    pub on: bool,
    /// `ssi_silent_errors`: a command that fails sends nothing.
    pub silent_errors: bool,
    /// `ssi_types`; `text/html` is always in.
    pub types: TypeSet,
    /// `ssi_value_length`: bytes of a parameter's value.
    pub value_length: usize,
    /// `ssi_last_modified`: `Last-Modified` stays, `ETag` becomes weak.
    pub last_modified: bool,
}

/// `add_before_body` and `add_after_body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// `add_before_body`: a path of this server; `None` if it was set to the empty text.
    pub before: Option<Arc<[u8]>>,
    /// `add_after_body`, the same.
    pub after: Option<Arc<[u8]>>,
    /// `addition_types`; `text/html` is always in.
    pub types: TypeSet,
}

/// One `sub_filter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitution {
    /// The search text, case-insensitive. Literal text is in lower case already, values of
    /// variables are not.
    pub search: Template,
    /// The replacement.
    pub replacement: Template,
}

impl Default for Filters {
    fn default() -> Self {
        Self {
            sub: Arc::default(),
            sub_once: true,
            sub_types: TypeSet::of(&["text/html"]),
            sub_last_modified: false,
            gunzip: false,
            gunzip_buffers: (32, 4096),
            ssi: Ssi {
                on: false,
                silent_errors: false,
                types: TypeSet::of(&["text/html"]),
                value_length: 255,
                last_modified: false,
            },
            subrequest_buffer: 4096,
            addition: Addition { before: None, after: None, types: TypeSet::of(&["text/html"]) },
        }
    }
}

impl Filters {
    /// Whether `sub_filter` applies to the type `media` (in lower case, without parameters; empty
    /// for none).
    #[must_use]
    pub fn rewrites(&self, media: &[u8]) -> bool {
        !self.sub.is_empty() && is_about(&self.sub_types, media)
    }

    /// Whether `ssi` applies to the type `media`.
    #[must_use]
    pub fn includes(&self, media: &[u8]) -> bool {
        self.ssi.on && is_about(&self.ssi.types, media)
    }

    /// Whether bodies of the type `media` get an addition before or after.
    #[must_use]
    pub fn adds(&self, media: &[u8]) -> bool {
        let addition = &self.addition;
        (addition.before.is_some() || addition.after.is_some()) && is_about(&addition.types, media)
    }

    /// Whether any body filter is on.
    #[must_use]
    pub fn is_any(&self) -> bool {
        let added = self.addition.before.is_some() || self.addition.after.is_some();
        !self.sub.is_empty() || self.gunzip || self.ssi.on || added
    }
}

/// Whether a list of types contains `media` (in lower case, without parameters; empty for none).
fn is_about(types: &TypeSet, media: &[u8]) -> bool {
    (!media.is_empty() || *types == TypeSet::All) && types.contains(media)
}
