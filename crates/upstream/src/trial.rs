//! One attempt: its server, its connection, and its progress.

use std::sync::Arc;

use bolide_base::Instant;
use bolide_http::Hops;

use crate::ctx::Left;
use crate::groups::Group;
use crate::health::Lease;
use crate::messages;
use crate::request::Attempt;

/// The current attempt.
#[derive(Debug)]
pub(crate) struct UpstreamTrial {
    /// The server: index in the group.
    pub(crate) peer: usize,
    pub(crate) lease: Lease,
    pub(crate) began: Instant,
    /// When the last connection was requested.
    pub(crate) dialled: Instant,
    pub(crate) link: TrialLink,
    /// The connection is established, and its TLS handshake is running.
    pub(crate) is_handshaking: bool,
    pub(crate) left: Left,
    pub(crate) connect_ms: Option<u64>,
    pub(crate) header_ms: Option<u64>,
    pub(crate) status: u16,
    /// The hop-by-hop fields of the response.
    pub(crate) hops: Hops,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) body: u64,
    pub(crate) last_sent: Instant,
    pub(crate) last_received: Instant,
}

/// The connection of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialLink {
    /// The worker's name for it; 0 until it is established.
    pub(crate) name: u64,
    /// Requests that it carried before; 0 is a new one.
    pub(crate) served: u64,
    pub(crate) born: Instant,
    /// Whether the worker holds it, established or connecting.
    pub(crate) held: bool,
}

impl UpstreamTrial {
    /// Whether bytes of the request were sent.
    pub(crate) const fn was_sent(&self) -> bool {
        self.sent > 0 || matches!(self.left, Left::Nothing)
    }

    /// Its state at `now`.
    pub(crate) fn attempt(&self, group: &Group, now: Instant) -> Attempt {
        Attempt {
            peer: Arc::clone(&group.peers[self.peer].name),
            bond: group.bond_to(&group.peers[self.peer]),
            status: self.status,
            connect_ms: self.connect_ms,
            header_ms: self.header_ms,
            response_ms: messages::millis(self.began, now),
            response_len: self.body,
            bytes_received: self.received,
            bytes_sent: self.sent,
            is_over: false,
        }
    }
}
