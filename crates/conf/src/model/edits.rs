//! Edits of header fields: `more_set_headers`, `more_set_input_headers` and similar directives.

use std::sync::Arc;

use bolide_http::Name;

use crate::vars::Template;

/// One directive: the messages it applies to, and its edits in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderEdits {
    /// `-s`: the status codes; empty for all.
    pub statuses: Vec<u32>,
    /// `-t`: the content types, without parameters; empty for all.
    pub types: Vec<Box<[u8]>>,
    /// The effect on existing fields.
    pub mode: HeaderEditMode,
    /// The fields.
    pub edits: Vec<HeaderEdit>,
}

/// The effect of an edit on existing fields, and without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderEditMode {
    /// They are replaced; the field is added if there is none.
    #[default]
    Set,
    /// `-a`: they remain and the new one is added, except for fields that must be unique.
    Append,
    /// `-r`: they are replaced; nothing is added.
    Replace,
}

/// The edit of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderEdit {
    /// Sets a value; an empty value removes the field.
    Set {
        /// The name.
        name: Name,
        /// The name as written.
        text: Arc<[u8]>,
        /// The new value.
        value: Template,
    },
    /// Removes the field.
    Clear {
        /// The name.
        name: Name,
        /// The name as written.
        text: Arc<[u8]>,
    },
    /// `NAME*`: removes all fields whose names begin with this.
    ClearPrefix(Arc<[u8]>),
}

/// Whether a field belongs to the framing of messages, which no edit may change.
#[must_use]
pub const fn is_framing(name: Name) -> bool {
    bolide_http::hop_by_hop::is_no_trailer(name) || matches!(name, Name::Trailer | Name::Expect)
}
