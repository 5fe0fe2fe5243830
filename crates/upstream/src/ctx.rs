//! The context of one step of a fetch, the reasons to step it, and its effects.
//!
//! The vocabulary between worker and fetch: values only, nothing here acts.

use std::net::IpAddr;
use std::sync::Arc;

use bolide_base::prng::Prng;
use bolide_base::{Instant, Now};
use bolide_conf::model::PeerAddress;
use bolide_wire::{OriginError, OriginEvent};

use crate::groups::UpstreamGroups;
use crate::pool::LinkPools;
use crate::request::{NameTarget, OriginNews};

/// Why a fetch is stepped.
#[derive(Debug)]
pub enum FetchWake {
    /// It was made.
    Start,
    /// The name of its target was looked up: the addresses, or why there are none, in the words of
    /// the log.
    Resolved(Result<Arc<[IpAddr]>, String>),
    /// The requested connection is established; the worker's name for it.
    Connected(u64),
    /// The connect failed, and there is nothing to release: the error number of the system.
    ConnectFailed(i32),
    /// No server was called, by a want of ours: as before.
    NotCalled(CallHindrance),
    /// The requested connection is established, and its TLS handshake is running.
    Handshaking,
    /// TLS failed, in the handshake or later: the log line.
    Insecure(String),
    /// No connection was attempted: the TLS credentials could not be prepared; the log line.
    Unprepared(String),
    /// The requested idle connection was gone already; there is nothing to release.
    Gone,
    /// Part of the request, body included, was passed to the kernel.
    Sent {
        /// Bytes, framing included; may be 0.
        bytes: u64,
        /// The rest of the request.
        left: Left,
    },
    /// This many bytes were received, framing included; comes before the events in them.
    Received(u64),
    /// The upstream sent something.
    Event(OriginEvent),
    /// The upstream's bytes, or its close, violate the protocol.
    Broken(OriginError),
    /// Receiving failed: the error number of the system.
    ReceiveFailed(i32),
    /// Sending failed: the error number of the system.
    SendFailed(i32),
    /// The protocol cannot carry the request, or its body broke off: no server is to blame.
    Unsendable,
    /// The worker stops reading for now: the client is slow, or the rate is limited.
    Paused,
    /// The worker reads again.
    Resumed,
    /// The moment of the last [`FetchEffect::Deadline`] has come.
    Deadline,
    /// A place that it waited for may be free.
    Turn,
    /// The worker ends: a fetch that only keeps a place gives it back.
    Draining,
    /// The response is no longer needed. If the fetch continues nevertheless
    /// (`fastcgi_ignore_client_abort`, a pool of ours), the worker reads on, and no more news
    /// follow.
    Abandoned,
}

/// Why no server could be called: another one would not help, and none is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallHindrance {
    /// There is no socket: the error number of the system.
    Socket(i32),
    /// The bind to the configured local address failed: the error number of the system.
    Bind(i32),
    /// The kernel does not watch the socket.
    Watch,
    /// As many connections to servers are open as may be.
    Full,
}

/// The part of the request that remains to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// All of it is sent.
    Nothing,
    /// The kernel accepts no more now: the upstream is slow.
    Blocked,
    /// The next part has not arrived from the client yet.
    Unready,
}

/// The effects of a fetch. The worker performs them in order; the fetch never does.
#[derive(Debug)]
pub enum FetchEffect {
    /// Look the name of the target up, and wake with `Resolved`, unless the fetch finishes before.
    Resolve(Box<NameTarget>),
    /// Connect there, wake with `Connected`, `ConnectFailed` or `NotCalled`.
    Connect(PeerAddress),
    /// Take the idle connection of this name; wake with `Connected`, or with `Gone`.
    Reuse(u64),
    /// Send the request from its first byte over the connection; see [`crate::Fetch::request`].
    Send,
    /// Wake with `Deadline` then. A wake that comes early is harmless.
    Deadline(Instant),
    /// Deliver news to the exchange.
    Notify(OriginNews),
    /// Gives up the connection, which may not be established yet. Data that it received already is
    /// discarded.
    Release(FetchFate),
    /// No more news follow, but the connection stays and is read until `Release`.
    Linger,
    /// Close the idle connection of this name: it made room for another, or its server has left the
    /// group.
    Evict(u64),
    /// Free the fetch.
    Finish,
}

/// The fate of a connection that a fetch gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchFate {
    /// The pool keeps it, under its name, for another request. If it cannot carry another one,
    /// close it and call [`LinkPools::forget`].
    Keep,
    /// It is closed.
    Close,
    /// The application gets an abort request, then the connection is closed.
    Abort,
}

/// The context of one step.
#[derive(Debug)]
pub struct FetchCtx<'a> {
    /// The turn's time.
    pub now: Now,
    /// The worker's name for this fetch, used by [`crate::Turns`].
    pub me: u64,
    /// Random numbers.
    pub prng: &'a mut Prng,
    /// The groups of the configuration that the request belongs to.
    pub groups: &'a UpstreamGroups,
    /// This worker's state of them.
    pub pools: &'a mut LinkPools,
    /// The effects, in order.
    pub effects: &'a mut Vec<FetchEffect>,
}
