//! `bolide reload`: the words of the command, which the control thread itself carries out.

/// Its name on the socket.
pub(crate) const COMMAND: &str = "reload";
/// The word for a preview.
pub(crate) const DRY_RUN: &str = "dry-run";
/// The word for a reply at the end of the watch over the new configuration.
pub(crate) const WAIT: &str = "wait";
