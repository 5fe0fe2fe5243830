//! Server-side includes as in nginx: from the bytes of a page to texts, includes and errors.
//!
//! Owns the parsing of commands, conditions, variables of pages, blocks and times. Requests nothing
//! itself: the caller makes the subrequests, evaluates server variables and matches expressions.

mod command;
mod flow;
mod scan;
mod time;
mod words;

pub use flow::{Flow, SsiAct, SsiInclude, SsiWorld};
pub use scan::{SsiCommand, SsiEvent, SsiScanner};
pub use time::{Moment, TIME_FORMAT, push_time};
pub use words::{Matched, SharedText};

/// The error of a command, in nginx's words, for the error log; empty if nginx logs nothing.
pub type SsiFault = Vec<u8>;
