//! Where something stands in the files of a configuration, for messages.

use std::sync::Arc;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourcePlace {
    /// The file, as messages name it.
    pub file: Arc<str>,
    /// The line of the terminating `;` or `{`; the first is 1.
    pub line: u32,
}
