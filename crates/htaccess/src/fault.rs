//! Why a file is not taken: the line and Apache's message. One fault refuses the whole file.

use std::fmt;

/// What is wrong with a file.
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

/// What the reading of one directive gives: the line is added by who reads lines.
pub(crate) type ParseResult<T> = Result<T, String>;

/// `text` for a message.
pub(crate) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
