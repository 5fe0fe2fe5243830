//! Why a file is refused: the line and Apache's message. One error refuses the whole file.

use std::fmt;

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtaccessFault {
    /// The line, counted from one; the first of a continued line.
    pub line: u32,
    /// Why, in Apache's words where Apache has some.
    pub message: String,
}

impl fmt::Display for HtaccessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

/// The result of parsing one directive; the caller adds the line.
pub(crate) type ParseResult<T> = Result<T, String>;

/// `text` in the form for a message.
pub(crate) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
