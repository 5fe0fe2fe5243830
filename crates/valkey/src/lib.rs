//! A server that speaks RESP (Valkey, or Redis from 6.2 on) as the keeper of a cluster's stream:
//! connections, and the few commands that are needed.
//!
//! Owns how it is reached and what its replies may be. A reply that is none of those is a
//! [`ValkeyFault`], and so is one that comes too late or is too large: nothing here waits for ever
//! or grows without bound. What entries mean is `bolide_cluster`'s.

mod connect;
mod kept;
mod limits;
mod line;
mod metered;
mod objects;
mod replies;
mod settings;
mod small;

pub use connect::{Connector, ValkeyDial};
pub use kept::{KeptValue, VALUE_MAX, stamp_of};
pub use line::{Line, StreamEntry, StreamState};
pub use metered::ValkeyStream;
pub use objects::{ObjectAsk, ObjectFound, ObjectOffer};
pub use settings::{ValkeyPlace, ValkeySettings};

use std::fmt;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValkeyFault {
    /// What kind of fault.
    pub kind: ValkeyFaultKind,
    /// For a log.
    pub text: String,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValkeyFaultKind {
    /// The server cannot be reached, is late, or says what it should not: another connection may
    /// be better.
    Broken,
    /// It has not answered in time.
    Late,
    /// A reply is too large.
    TooLarge,
    /// The server has no memory left for what it was sent.
    Full,
    /// The server refuses this command; it would do so over another connection as well.
    Refused,
}

impl ValkeyFault {
    pub(crate) fn broken(text: impl Into<String>) -> Self {
        Self { kind: ValkeyFaultKind::Broken, text: text.into() }
    }
}

impl fmt::Display for ValkeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
