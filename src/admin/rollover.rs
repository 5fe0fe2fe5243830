//! `bolide acme rollover`: another key for the account at an issuer of the running server.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};

/// Its name on the socket.
pub(crate) const COMMAND: &str = "acme-rollover";
/// How long the issuer may take, and orders that are under way before.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn tell(desk: &AdminDesk, words: &Words) -> CommandResult {
    let scene = desk.scene.as_ref().ok_or("no server runs here")?;
    let name = words.value("url").map(String::from_utf8_lossy).unwrap_or_default();
    let inbox = scene.accounts.as_ref().ok_or("the server orders no certificates")?;
    match inbox.roll_over(&name).recv_timeout(PATIENCE) {
        Ok(Ok(())) => Ok(format!("the account at \"{name}\" has another key\n").into_bytes()),
        Ok(Err(why)) => Err(why),
        Err(RecvTimeoutError::Disconnected) => Err("the change broke off".to_owned()),
        Err(RecvTimeoutError::Timeout) => {
            Err("it takes long; the error log tells how it ends".to_owned())
        }
    }
}
