//! What changes bodies on their way out: `sub_filter`, `gunzip`.

use std::sync::Arc;

use super::TypeSet;
use crate::vars::Template;

/// The filters of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Filters {
    /// `sub_filter`: what is looked for, and what takes its place.
    pub sub: Arc<Vec<Substitution>>,
    /// `sub_filter_once`: each text is replaced once.
    pub sub_once: bool,
    /// `sub_filter_types`; `text/html` is always in.
    pub sub_types: TypeSet,
    /// `sub_filter_last_modified`: `Last-Modified` stays, `ETag` becomes weak.
    pub sub_last_modified: bool,
    /// `gunzip`: gzip is undone for clients that cannot read it.
    pub gunzip: bool,
    /// `gunzip_buffers`: number and size; accepted.
    pub gunzip_buffers: (u32, usize),
}

/// One `sub_filter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitution {
    /// What is looked for, in any case; the text is in lower case, what variables give is not yet.
    pub search: Template,
    /// What takes its place.
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
        }
    }
}

impl Filters {
    /// Whether `sub_filter` is about the type `media` (in lower case, without parameters; empty for
    /// none).
    #[must_use]
    pub fn rewrites(&self, media: &[u8]) -> bool {
        !self.sub.is_empty()
            && (!media.is_empty() || self.sub_types == TypeSet::All)
            && self.sub_types.contains(media)
    }
}
