//! `bolide acme rollover`: changes the key of the running server's account at an issuer.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};

/// Its name on the socket.
pub(crate) const COMMAND: &str = "acme-rollover";
/// The time for the issuer, and for orders that are in progress before.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn run(desk: &AdminDesk, words: &Words) -> CommandResult {
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
