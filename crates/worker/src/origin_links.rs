//! Upstream connections: their table, idle ones, and those that read or write in this turn.
//!
//! The fetch of a link knows which request it carries.

use bolide_base::deadline_queue::Armed;
use bolide_base::limits::LINKS_MAX;
use bolide_base::{Slab, SlabKey};
use bolide_io::{Io, ReceivedBytes, Reset, Sent};
use bolide_upstream::{FetchWake, LinkPools};
use bolide_wire::OriginConn;

use crate::env::WorkerEnv;
use crate::fetches::LiveFetch;
use crate::segments::{advance, segment_len};
use crate::token::PollToken;
use crate::upstream_link::UpstreamLink;

/// Connections to upstream servers.
#[derive(Debug)]
pub(crate) struct OriginLinks {
    pub(crate) table: Slab<UpstreamLink>,
    pub(crate) pools: LinkPools,
    /// The deadline of the next check of idle links.
    pub(crate) armed: Armed,
    /// Links that may write in this turn.
    pub(crate) dirty: Vec<SlabKey<UpstreamLink>>,
    /// Links that are read again without a report.
    pub(crate) again: Vec<SlabKey<UpstreamLink>>,
}

impl OriginLinks {
    /// No links, for the worker with this number.
    pub(crate) fn new(worker: u16) -> Self {
        Self {
            table: Slab::with_capacity(LINKS_MAX),
            pools: LinkPools::new(usize::from(worker)),
            armed: Armed::default(),
            dirty: Vec::new(),
            again: Vec::new(),
        }
    }

    /// Closes an idle connection.
    pub(crate) fn close_link<I: Io>(&mut self, key: SlabKey<UpstreamLink>, env: &mut WorkerEnv<I>) {
        if let Some(mut link) = self.table.remove(key) {
            // In the middle of a TLS record it could not be understood.
            if link.secured.is_some() && link.unsent.is_empty() {
                link.queue_goodbye();
                if let Some(close_notify) = link.unsent.front() {
                    let _ = env.io.send_segment(link.fd, close_notify);
                }
            }
            env.close(link.fd, Reset::No);
        }
    }

    /// An idle connection that sends anything has ended, or cannot be used.
    pub(crate) fn drop_idle<I: Io>(&mut self, key: SlabKey<UpstreamLink>, env: &mut WorkerEnv<I>) {
        let Some(link) = self.table.get_mut(key) else { return };
        debug_assert!(link.fetch.is_none(), "what serves a fetch is not idle");
        if !link.readable {
            return;
        }
        if matches!(link.conn, OriginConn::Http2(_)) {
            if !self.hear_idle(key, env) {
                self.pools.forget(key.to_bits());
                self.close_link(key, env);
            }
            return;
        }
        let mut byte = [0];
        if env.io.receive(link.fd, &mut byte) == ReceivedBytes::Blocked {
            link.readable = false;
            return;
        }
        self.pools.forget(key.to_bits());
        self.close_link(key, env);
    }

    /// Closes connections that were idle for too long, and sets the next deadline.
    pub(crate) fn expire_links<I: Io>(&mut self, env: &mut WorkerEnv<I>) {
        while let Some(name) = self.pools.expire(env.now.mono) {
            self.close_idle(name, env);
        }
        self.arm_links(env);
    }

    /// Closes an idle connection that the pool has dropped.
    pub(crate) fn close_idle<I: Io>(&mut self, name: u64, env: &mut WorkerEnv<I>) {
        let key = SlabKey::from_bits(name);
        debug_assert!(
            self.table.get(key).is_none_or(|link| link.fetch.is_none()),
            "the pool names what is idle"
        );
        if self.table.get(key).is_some_and(|link| link.fetch.is_none()) {
            self.close_link(key, env);
        }
    }

    /// Closes an idle connection, because its descriptor is needed; false if there is none.
    pub(crate) fn give_up_idle<I: Io>(&mut self, env: &mut WorkerEnv<I>) -> bool {
        let Some(name) = self.pools.give_up() else { return false };
        self.close_idle(name, env);
        true
    }

    /// Sets the deadline for idle connections.
    pub(crate) fn arm_links<I: Io>(&mut self, env: &mut WorkerEnv<I>) {
        if let Some(at) = self.pools.next_expiry() {
            env.wheel.arm(&mut self.armed, at, PollToken::Links.pack());
        }
    }

    /// Reads a connection without a report.
    pub(crate) fn read_again(&mut self, key: SlabKey<UpstreamLink>) {
        if let Some(link) = self.table.get_mut(key)
            && link.readable
            && !link.queued
        {
            debug_assert!(!self.again.contains(&key), "a link stands in a list once");
            link.queued = true;
            self.again.push(key);
        }
    }

    /// Marks a connection to write in this turn.
    pub(crate) fn mark_link(&mut self, key: SlabKey<UpstreamLink>) {
        if let Some(link) = self.table.get_mut(key)
            && !link.dirty
        {
            debug_assert!(!self.dirty.contains(&key), "a link stands in a list once");
            link.dirty = true;
            self.dirty.push(key);
        }
    }

    /// Closes the sending side of a tunnel, because the client has closed its own.
    pub(crate) fn end_tunnel_side<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
    ) {
        let Some(link) = self.table.get_mut(key) else { return };
        if link.conn.is_tunnel() && link.conn.is_request_sent() {
            link.queue_goodbye();
            let fd = link.fd;
            self.flush_link(key, &mut 0, env);
            env.io.shut_write(fd);
        }
    }

    /// Sends queued bytes of earlier turns; false if the connection is dead.
    pub(crate) fn flush_link<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        bytes: &mut u64,
        env: &mut WorkerEnv<I>,
    ) -> bool {
        let Some(link) = self.table.get_mut(key) else { return false };
        while let Some(segment) = link.unsent.front_mut() {
            let len = segment_len(segment);
            match env.io.send_segment(link.fd, segment) {
                Sent::Bytes(n) if n < len => {
                    advance(segment, n);
                    link.blocked = true;
                    *bytes += link.credit(n);
                    return true;
                }
                Sent::Bytes(n) => {
                    link.unsent.pop_front();
                    *bytes += link.credit(n);
                }
                Sent::Dead | Sent::FileFailed => return false,
            }
        }
        true
    }

    /// The fetch of a link that is in its handshake.
    pub(crate) fn in_handshake(&self, key: SlabKey<UpstreamLink>) -> Option<SlabKey<LiveFetch>> {
        let link = self.table.get(key)?;
        link.fetch.filter(|_| link.is_handshaking())
    }

    /// The connection is established: returns the wake for its fetch, or begins the handshake.
    pub(crate) fn greet(&mut self, key: SlabKey<UpstreamLink>) -> FetchWake {
        debug_assert!(self.table.get(key).is_some_and(|link| link.stands), "the call was answered");
        match self.table.get_mut(key) {
            Some(link) if link.secured.is_some() => {
                link.queue_own_words();
                self.mark_link(key);
                // A server that spoke first, or hung up, was reported together with the connection.
                self.read_again(key);
                FetchWake::Handshaking
            }
            _ => FetchWake::Connected(key.to_bits()),
        }
    }

    /// Closes idle connections.
    pub(crate) fn drain<I: Io>(&mut self, env: &mut WorkerEnv<I>) {
        for key in self.table.keys().collect::<Vec<_>>() {
            if self.table.get(key).is_some_and(|link| link.fetch.is_none()) {
                self.pools.forget(key.to_bits());
                self.close_link(key, env);
            }
        }
    }
}
