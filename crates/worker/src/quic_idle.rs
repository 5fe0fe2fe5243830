//! QUIC connections without a request: how long they may stay, and which gives way first.
//!
//! The transport's idle timeout does not bound them: any packet of the client prolongs it.

use std::time::Duration;

use bolide_base::{Instant, SlabKey};

use crate::full_table::IDLE_COMPARED;
use crate::quic_conn::QuicConn;
use crate::quic_side::QuicSide;

impl QuicConn {
    /// Whether no request is in progress, and none has begun to arrive.
    fn is_idle(&self) -> bool {
        !self.lost && self.exchanges + self.post_actions == 0 && self.h3.streams_open() == 0
    }

    /// How long it may be without a request: before the first one as long as a head may take.
    fn idle_max(&self) -> Duration {
        let settings = self.settings();
        match settings.keepalive_timeout {
            time if self.h3.requests() > 0 && !time.is_zero() => time,
            _ => settings.header_timeout,
        }
    }

    /// When it ends, if it has no request. Set once; only the start of a request removes it.
    pub(crate) fn idle_until(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_idle() || self.h3.is_closing() {
            return None;
        }
        let until = now.after(self.idle_max());
        Some(*self.idle_until.get_or_insert(until))
    }

    /// Whether it has been without a request for too long.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        let has_come = self.idle_until.is_some_and(|at| at <= now);
        has_come && self.is_idle() && !self.h3.is_closing()
    }

    fn idle_for(&self, now: Instant) -> Option<Duration> {
        let until = self.idle_until.filter(|_| self.is_idle())?;
        Some(self.idle_max().saturating_sub(until.since(now)))
    }
}

impl QuicSide {
    /// Connections that are not closed.
    pub(crate) fn open(&self) -> usize {
        debug_assert!(self.lost <= self.conns.live(), "a lost connection is in the table");
        self.conns.live() - self.lost
    }

    /// A connection without a request, if there is one, and for how long it has had none: the one
    /// that has waited longest among the first of them. One whose client has not acknowledged all
    /// of a response is not idle: the transport holds the rest.
    pub(crate) fn find_idle(&mut self, now: Instant) -> Option<(Duration, SlabKey<QuicConn>)> {
        let Self { conns, udp, .. } = self;
        let idle = |key| {
            let conn = conns.get(key)?;
            let time = conn.idle_for(now)?;
            let transport = udp.get_mut(conn.slot)?.endpoint.conn(conn.id);
            transport.is_none_or(|transport| !transport.owes()).then_some((time, key))
        };
        let all = conns.keys().filter_map(idle).take(IDLE_COMPARED);
        all.max_by_key(|(time, _)| *time)
    }
}
