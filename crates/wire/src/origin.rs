//! What connections to origins have in common: events, errors, the pulled request body.
//!
//! Mirrors `conn`: a machine is given a request, pulls its body when it may write, is fed bytes and
//! tells what the origin said. It never sees a socket and reads no clock.

use bytes::Bytes;
use http::OriginHead;

/// What an origin did.
#[derive(Debug)]
pub enum OriginEvent {
    /// A complete head of the answer.
    Head(Box<OriginHead>),
    /// Part of the answer's body.
    Body(Bytes),
    /// Text for the error log: what the application wrote to its standard error.
    Stderr(Bytes),
    /// The answer is complete.
    End {
        /// What the application ended with; 0 is in order.
        app_status: u32,
    },
}

/// The origin broke its protocol, or ended before its answer did. The connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginError {
    /// The connection ended before the head was complete:
    /// `upstream prematurely closed connection while reading response header from upstream`.
    ClosedBeforeHead,
    /// The connection ended within the body: `upstream prematurely closed connection`.
    ClosedWithinBody,
    /// `upstream sent too big header`
    HeadTooBig,
    /// The head breaks its grammar; what it is, for the error log.
    InvalidHead(&'static str),
    /// Framing that is none; what it is, for the error log.
    Invalid(&'static str),
}
