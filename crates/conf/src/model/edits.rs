//! Edits of header fields: `more_set_headers`, `more_set_input_headers` and their kin.

use std::sync::Arc;

use bolide_http::Name;

use crate::vars::Template;

/// One directive: which messages it is about, and its edits in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderEdits {
    /// `-s`: the status codes; empty for all.
    pub statuses: Vec<u32>,
    /// `-t`: the content types, without parameters; empty for all.
    pub types: Vec<Box<[u8]>>,
    /// What happens to fields that are there.
    pub mode: HeaderEditMode,
    /// The fields.
    pub edits: Vec<HeaderEdit>,
}

/// What an edit does with fields that are there, and without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderEditMode {
    /// They are replaced; the field is added if there is none.
    #[default]
    Set,
    /// `-a`: they stay beside the new one, but for fields that may be there once only.
    Append,
    /// `-r`: they are replaced; nothing is added.
    Replace,
}

/// What becomes of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderEdit {
    /// It gets a value; one that evaluates to the empty text removes it.
    Set {
        /// Which name it is.
        name: Name,
        /// The name as written.
        text: Arc<[u8]>,
        /// The new value.
        value: Template,
    },
    /// It goes.
    Clear {
        /// Which name it is.
        name: Name,
        /// The name as written.
        text: Arc<[u8]>,
    },
    /// `NAME*`: all go whose names begin with this.
    ClearPrefix(Arc<[u8]>),
}

/// Whether a field belongs to the framing of messages, which no edit may change.
#[must_use]
pub const fn is_framing(name: Name) -> bool {
    bolide_http::hop_by_hop::is_no_trailer(name) || matches!(name, Name::Trailer | Name::Expect)
}
