//! Messages before a log is open, and to the terminal.

use std::io::Write as _;

/// Writes a line to standard error; a closed terminal is not an error.
pub(crate) fn err(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes text to standard output.
pub(crate) fn out(text: &[u8]) {
    let _ = std::io::stdout().lock().write_all(text);
}
