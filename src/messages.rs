//! Messages before a log is open, and to the terminal.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use bolide_base::errno::describe;

/// Why output was lost for which a command was run.
static LOST: OnceLock<String> = OnceLock::new();

/// Writes a line to standard error; a closed terminal is not an error.
pub(crate) fn err(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes the result of a command to standard output.
pub(crate) fn out(text: &[u8]) {
    put(std::io::stdout().lock(), "standard output", text);
}

/// Writes the result of a command to standard error.
pub(crate) fn tell(line: &str) {
    put(std::io::stderr().lock(), "standard error", format!("{line}\n").as_bytes());
}

/// Writes a greeting to standard output; it is no result, and may be lost.
pub(crate) fn greet(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

fn put(mut to: impl Write, name: &str, text: &[u8]) {
    match to.write_all(text).and_then(|()| to.flush()) {
        Ok(()) => {}
        // The reader wanted no more.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => {
            let _ = LOST.set(format!("write() to {name} failed ({})", describe(&error)));
        }
    }
}

/// The end of a command: it has failed if its result was lost.
pub(crate) fn end(code: ExitCode) -> ExitCode {
    let Some(why) = LOST.get() else { return code };
    err(&format!("bolide: {why}"));
    ExitCode::FAILURE
}
