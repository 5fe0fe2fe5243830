//! `bolide php status` and `bolide php restart`: the commands to a running server, and its replies.

use std::io::{Read as _, Write as _};
use std::path::Path;

use super::runtime;
use crate::invocation::PhpCommand;
use crate::messages::out;

/// Requests a line per pool.
pub(super) const STATUS: &str = "status";
/// Starts one pool again, or all.
pub(super) const RESTART: &str = "restart";

/// Sends a command to the server whose pid is in the file `pid_file`, and prints its reply.
///
/// # Errors
///
/// As text: no server, no pool, or the restart failed.
pub(crate) fn send(pid: u32, pid_file: &Path, command: &PhpCommand) -> Result<(), Vec<String>> {
    let one = |text: String| vec![text];
    let path = runtime::control_of(pid).ok_or_else(|| {
        let from = pid_file.display();
        one(format!("the server {pid} of \"{from}\" does not run, or is not ours to command"))
    })?;
    let failed = |error: std::io::Error| one(format!("{}: {error}", path.display()));
    let mut socket = runtime::connect(pid, &path).map_err(failed)?;
    let line = match command {
        PhpCommand::Status => STATUS.to_owned(),
        // Done before any server is contacted.
        PhpCommand::Keep(_) => return Ok(()),
        PhpCommand::Restart(None) => RESTART.to_owned(),
        PhpCommand::Restart(Some(name)) => format!("{RESTART} {name}"),
    };
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
    out(good.as_bytes());
    if bad.is_empty() { Ok(()) } else { Err(bad) }
}
