//! When a pool on demand has processes: while it has none, its socket is watched; while it has
//! some, the workers' counters show how long it has been idle.
//!
//! The counters are those of the pool's group (`bolide_upstream::Group`), which reloads keep.

use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::Instant;
use bolide_io::{Fd, Io as _, child};
use bolide_upstream::Group;

use super::pool::PoolCtx;

/// The requests of a pool, as workers count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolLoad {
    /// Since the start of the server.
    pub(crate) requests: u64,
    /// Requests that children are processing.
    pub(crate) active: u32,
    /// Requests that wait for a child.
    pub(crate) waiting: u32,
}

/// The demand for a pool.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// The token of the socket, while the pool has no process.
    token: Option<u64>,
    group: Option<Arc<Group>>,
    /// When it last had a request, as far as checks have seen, and its count of requests at that
    /// time.
    busy_at: Instant,
    requests: u64,
}

impl Demand {
    /// Uses the counters of a configuration that names the pool.
    pub(super) fn count_by(&mut self, group: Option<Arc<Group>>) {
        self.group = group.or(self.group.take());
    }

    pub(super) fn load(&self) -> PoolLoad {
        let Some(group) = &self.group else { return PoolLoad::default() };
        let requests = group.peers().iter().map(|peer| peer.health().requests()).sum();
        PoolLoad { requests, active: group.conns(), waiting: group.waiting() }
    }

    /// Whether the pool has no process and its socket is watched.
    pub(super) const fn is_resting(&self) -> bool {
        self.token.is_some()
    }

    pub(super) fn is_watched_as(&self, token: u64) -> bool {
        self.token == Some(token)
    }

    /// Watches the socket.
    pub(super) fn rest(&mut self, listener: &UnixListener, ctx: &mut PoolCtx<'_>) {
        let token = *ctx.serial;
        ctx.door.watch(Fd(listener.as_raw_fd()), token, bolide_io::Interest::Level);
        self.token = Some(token);
    }

    /// Leaves the socket to processes.
    pub(super) fn wake(&mut self, listener: Option<&UnixListener>, ctx: &mut PoolCtx<'_>) {
        if self.token.take().is_some()
            && let Some(listener) = listener
        {
            ctx.door.unwatch(Fd(listener.as_raw_fd()));
        }
        self.busy_at = ctx.now;
    }

    /// Whether there has been no request for this long. Call it often: requests are noticed only
    /// then.
    pub(super) fn is_idle(&mut self, idle: Duration, now: Instant) -> bool {
        let PoolLoad { requests, active, waiting } = self.load();
        if active > 0 || waiting > 0 || requests != self.requests {
            (self.busy_at, self.requests) = (now, requests);
        }
        now.since(self.busy_at) >= idle
    }

    /// Whether a client has connected and was not accepted.
    pub(super) fn has_client(listener: &UnixListener) -> bool {
        child::is_readable(Fd(listener.as_raw_fd()))
    }
}
