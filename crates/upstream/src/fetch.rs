//! One request to an origin, from the choice of a server to the end of the answer.

use base::Instant;
use conf::model::PeerAddress;
use wire::{OriginError, OriginEvent};

use crate::request::OriginNews;

/// Why a fetch is stepped.
#[derive(Debug)]
pub enum FetchWake {
    /// It was made.
    Start,
    /// The connection that it asked for stands.
    Connected,
    /// There is no connection: the error number of the system.
    ConnectFailed(i32),
    /// The request, body included, was handed to the kernel.
    RequestSent,
    /// The origin said something.
    Event(OriginEvent),
    /// What the origin sent, or that it ended, breaks the protocol.
    Broken(OriginError),
    /// Receiving or sending failed: the error number of the system.
    Died(i32),
    /// The moment of the last [`FetchEffect::Deadline`] has come.
    Deadline,
    /// A place that it waited for may be free.
    Turn,
    /// Nobody waits for the answer any more.
    Abandoned,
}

/// What a fetch wants done. The worker does it; the fetch never does.
#[derive(Debug)]
pub enum FetchEffect {
    /// Connect there, wake with `Connected` or `ConnectFailed`.
    Connect(PeerAddress),
    /// Take the idle connection of this name, wake with `Connected`, or with `Died` if it is gone.
    Reuse(u64),
    /// Send the request over the connection.
    Send,
    /// Wake with `Deadline` then, and not at any moment asked for before; none is never.
    Deadline(Option<Instant>),
    /// Tell the exchange.
    Tell(OriginNews),
    /// Let go of the connection.
    Release(Fate),
    /// Free the fetch.
    Finish,
}

/// What becomes of a connection that a fetch lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is kept for another request; the pool was told its name.
    Keep,
    /// It is closed.
    Close,
    /// The application is told to stop, then it is closed.
    Abort,
}
