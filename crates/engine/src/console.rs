//! The console: the server's state as data and as a page with actions.
//!
//! `crates/engine/src/content/console.rs` serves it; `bolide status --json` prints the same data.

mod action;
pub(crate) mod assets;
mod doctor;
pub(crate) mod guard;
mod remedies;
mod status;

pub use action::{ConsoleAction, ConsoleOutcome};
pub use status::{SCHEMA, StatusWorkers, status};
