//! `bolide php status`, `bolide php top` and `bolide php restart`: what they ask a running server,
//! and its replies.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use super::{runtime, top};
use crate::invocation::{PhpCommand, TopShape};
use crate::messages::out;

/// Requests a line per pool.
pub(super) const STATUS: &str = "status";
/// Requests a line per pool for [`top`].
pub(super) const TOP: &str = "top";
/// Starts one pool again, or all.
pub(super) const RESTART: &str = "restart";

/// Sends a command to the server whose pid is in the file `pid_file`, and prints its reply.
///
/// # Errors
///
/// As text: no server, no pool, or the restart failed.
#[expect(clippy::disallowed_methods, reason = "a command is a process of its own")]
pub(crate) fn send(pid: u32, pid_file: &Path, command: &PhpCommand) -> Result<(), Vec<String>> {
    let one = |text: String| vec![text];
    let path = runtime::control_of(pid)
        .map_err(|why| one(format!("the server {pid} of \"{}\" {why}", pid_file.display())))?;
    let ask = |line: &str| ask(pid, &path, line);
    if let PhpCommand::Top(shape) = command {
        let before = top::Sample::read(&ask(TOP)?);
        std::thread::sleep(Duration::from_secs(top::INTERVAL_SECONDS));
        let top = top::Top::new(&before, top::Sample::read(&ask(TOP)?));
        match shape {
            TopShape::Text => out(top.text().as_bytes()),
            TopShape::Json => out(&top.json()),
        }
        return Ok(());
    }
    let line = match command {
        PhpCommand::Status => STATUS.to_owned(),
        // Done before any server is contacted, or above.
        PhpCommand::Keep(_) | PhpCommand::Top(_) => return Ok(()),
        PhpCommand::Restart(None) => RESTART.to_owned(),
        PhpCommand::Restart(Some(name)) => format!("{RESTART} {name}"),
    };
    out(ask(&line)?.as_bytes());
    Ok(())
}

/// Sends one line to the server, and returns its reply without the marks of success.
///
/// # Errors
///
/// What the server says, or that it cannot be asked.
fn ask(pid: u32, path: &Path, line: &str) -> Result<String, Vec<String>> {
    let failed = |error: std::io::Error| vec![format!("{}: {error}", path.display())];
    let mut socket = runtime::connect(pid, path).map_err(failed)?;
    writeln!(socket, "{line}").map_err(failed)?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).map_err(failed)?;
    let (mut good, mut bad) = (String::new(), Vec::new());
    for line in answer.lines() {
        match line.strip_prefix("error: ") {
            Some(why) => bad.push(why.to_owned()),
            None => {
                good.push_str(line.strip_prefix("ok: ").unwrap_or(line));
                good.push('\n');
            }
        }
    }
    if bad.is_empty() {
        return Ok(good);
    }
    out(good.as_bytes());
    Err(bad)
}
