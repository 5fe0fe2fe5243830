//! `-s`: a signal to the server whose pid is in the file that the configuration names.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bolide_base::errno::describe;
use bolide_conf::model::LogLevel;
use bolide_io::signal::{self, Signal};

use crate::early_log::EarlyLog;
use crate::invocation::Invocation;
use crate::pid;
use crate::reading;

/// LIMIT: bytes of a pid file that are read; as many digits as a number may have.
const PID_BYTES_MAX: usize = 22;

/// Sends the signal; errors have nginx's words and severity.
pub(crate) fn send(invocation: &Invocation, signal: Signal) -> ExitCode {
    let log = EarlyLog::of(invocation);
    let sent =
        reading::of_file(invocation).map_err(|mistakes| (LogLevel::Emerg, mistakes.warn(&log)));
    let sent = sent.and_then(|reading| {
        log.write_lines(LogLevel::Notice, &["signal process started".to_owned()]);
        let path = &reading.config.main.pid;
        let pid = match signal {
            // The successor of an upgrade would live on.
            Signal::Stop | Signal::Quit => read_pid(path),
            _ => server_pid(path),
        };
        let pid = pid.map_err(|text| (LogLevel::Error, vec![text]))?;
        signal::send(pid, signal).map_err(|error| {
            let (number, why) = (signal.number(), describe(&error));
            (LogLevel::Alert, vec![format!("kill({pid}, {number}) failed ({why})")])
        })
    });
    match sent {
        Ok(()) => ExitCode::SUCCESS,
        Err((level, texts)) => {
            log.write_lines(level, &texts);
            ExitCode::FAILURE
        }
    }
}

/// The pid of the running server, and its file.
///
/// # Errors
///
/// The configuration's errors, or that of the file.
pub(crate) fn running(invocation: &Invocation) -> Result<(u32, PathBuf), Vec<String>> {
    let reading = reading::of_file(invocation)?;
    let path = &reading.config.main.pid;
    let pid = server_pid(path).map_err(|text| vec![text])?;
    Ok((pid, path.clone()))
}

/// The number in the pid file of our server. In an upgrade, until the successor has written its
/// own, that of the process that runs.
///
/// # Errors
///
/// In nginx's words, about `path`.
fn server_pid(path: &Path) -> Result<u32, String> {
    // The successor may have written it since.
    read_pid(path)
        .or_else(|why| read_pid(&pid::aside(path)).or_else(|_| read_pid(path).or(Err(why))))
}

/// The number in a pid file.
///
/// # Errors
///
/// In nginx's words.
pub(crate) fn read_pid(path: &Path) -> Result<u32, String> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| format!("open() \"{shown}\" failed ({})", describe(&error)))?;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(PID_BYTES_MAX)]).into_owned();
    let number = text.trim_end_matches(['\r', '\n']);
    let invalid = || format!("invalid PID number \"{number}\" in \"{shown}\"");
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    // Zero would be every process of our own group.
    number.parse().ok().filter(|pid| *pid != 0).ok_or_else(invalid)
}
