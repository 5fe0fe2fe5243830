//! `bolide drain`: the words of the command, which the control thread itself carries out.

use std::time::Duration;

use super::line_protocol::Words;

/// Its name on the socket.
pub(crate) const COMMAND: &str = "drain";
/// How long new requests are taken, if nothing else is said.
const AFTER: u64 = 5;
/// LIMIT: seconds that they may be.
const AFTER_MAX: u64 = 3600;

/// How long new requests are taken.
///
/// # Errors
///
/// The word is no number of seconds.
pub(crate) fn after(words: &Words) -> Result<Duration, String> {
    let Some(text) = words.text("after") else { return Ok(Duration::from_secs(AFTER)) };
    let seconds = text.parse().ok().filter(|seconds| *seconds <= AFTER_MAX);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("\"{text}\" is not a number of seconds up to {AFTER_MAX}"))
}
