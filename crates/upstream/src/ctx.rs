//! What a fetch is lent for one step, why it is stepped, and what it wants done.
//!
//! The vocabulary between worker and fetch: values only, nothing here acts.

use bolide_base::prng::Prng;
use bolide_base::{Instant, Now};
use bolide_conf::model::PeerAddress;
use bolide_wire::{OriginError, OriginEvent};

use crate::groups::UpstreamGroups;
use crate::pool::LinkPools;
use crate::request::OriginNews;

/// Why a fetch is stepped.
#[derive(Debug)]
pub enum FetchWake {
    /// It was made.
    Start,
    /// The connection that it asked for stands; the worker's name for it.
    Connected(u64),
    /// There is no connection, and nothing to release: the error number of the system.
    ConnectFailed(i32),
    /// There is no connection by the address of ours that was wanted: as before.
    BindFailed(i32),
    /// The connection that it asked for stands, and secrets are being agreed on.
    Handshaking,
    /// The connection is not secret, or is so no more: what the log says of it.
    Insecure(String),
    /// Nobody was called, for what an origin is to be shown cannot be had: what the log says of it.
    Unprepared(String),
    /// The idle connection that it asked for was gone already; there is nothing to release.
    Gone,
    /// Part of the request, body included, was handed to the kernel.
    Sent {
        /// Bytes, framing included; may be 0.
        bytes: u64,
        /// What remains.
        left: Left,
    },
    /// So many bytes were received, framing included; before the events that they hold.
    Received(u64),
    /// The origin said something.
    Event(OriginEvent),
    /// What the origin sent, or that it ended, breaks the protocol.
    Broken(OriginError),
    /// Receiving failed: the error number of the system.
    ReceiveFailed(i32),
    /// Sending failed: the error number of the system.
    SendFailed(i32),
    /// The worker stops reading for now: the client is slow, or the rate is limited.
    Paused,
    /// The worker reads again.
    Resumed,
    /// The moment of the last [`FetchEffect::Deadline`] has come.
    Deadline,
    /// A place that it waited for may be free.
    Turn,
    /// Nobody waits for the answer any more. If it goes on nevertheless
    /// (`fastcgi_ignore_client_abort`), the worker reads on and nothing is told any more.
    Abandoned,
}

/// What of the request remains to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// The kernel takes no more now: the origin is slow.
    Blocked,
    /// What comes next did not arrive from the client yet.
    Unready,
}

/// What a fetch wants done. The worker does it, in order; the fetch never does.
#[derive(Debug)]
pub enum FetchEffect {
    /// Connect there, wake with `Connected`, `ConnectFailed` or `BindFailed`.
    Connect(PeerAddress),
    /// Take the idle connection of this name, wake with `Connected`, or with `Gone`.
    Reuse(u64),
    /// Send the request from its first byte over the connection; see [`crate::Fetch::request`].
    Send,
    /// Wake with `Deadline` then. A wake that comes early is harmless.
    Deadline(Instant),
    /// Tell the exchange.
    Tell(OriginNews),
    /// Let go of the connection, which may not stand yet. What else it said is of no interest,
    /// even if it was received already.
    Release(FetchFate),
    /// Close the idle connection of this name: it made room for another.
    Evict(u64),
    /// Free the fetch.
    Finish,
}

/// What becomes of a connection that a fetch lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchFate {
    /// It is kept for another request; the pool knows its name. If it cannot carry another one,
    /// close it and call [`Pools::forget`].
    Keep,
    /// It is closed.
    Close,
    /// The application is told to stop, then it is closed.
    Abort,
}

/// What a fetch is lent for one step.
#[derive(Debug)]
pub struct FetchCtx<'a> {
    /// The turn's time.
    pub now: Now,
    /// The worker's name for this fetch, by which [`crate::Turns`] calls it.
    pub me: u64,
    /// Chance.
    pub prng: &'a mut Prng,
    /// The groups of the configuration that the request belongs to; looked at on `Start`.
    pub groups: &'a UpstreamGroups,
    /// What this worker keeps of them.
    pub pools: &'a mut LinkPools,
    /// Where wishes go, in order.
    pub effects: &'a mut Vec<FetchEffect>,
}
