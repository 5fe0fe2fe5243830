//! Server-side includes as nginx has them: from the bytes of a page to texts, includes and faults.
//!
//! Owns the reading of commands, conditions, variables of pages, blocks and times. Asks for nothing
//! itself: what an include means, what a variable of the server is worth and whether an expression
//! matches is its caller's business.

mod command;
mod flow;
pub mod fuzz;
mod scan;
mod time;
mod words;

pub use flow::{Flow, SsiAct, SsiInclude, SsiWorld};
pub use scan::{SsiCommand, SsiEvent, SsiScanner};
pub use time::{Moment, TIME_FORMAT, push_time};
pub use words::{Matched, SharedText};

/// What is wrong with a command, in nginx's words, for the error log; empty if nginx says nothing.
pub type SsiFault = Vec<u8>;
