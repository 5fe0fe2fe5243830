//! QUIC connections that are to end, and sockets that are to be closed.

use std::sync::Arc;
use std::time::Duration;

use bolide_base::SlabKey;
use bolide_io::Io;
use bolide_io::listen::Listener;

use crate::env::WorkerEnv;
use crate::quic_conn::{QuicConn, QuicStreamTable};
use crate::quic_side::QuicSide;
use crate::udp_sockets::NO_LISTEN;

/// The assumed delay of acknowledgments (RFC 9000 §18.2).
const ACK_DELAY: Duration = Duration::from_millis(25);

impl QuicSide {
    /// Whether to close a connection: its client got GOAWAY and has all responses, or has not
    /// acknowledged them within `send_timeout`. Requests that it may have sent before GOAWAY
    /// arrived are waited for.
    pub(crate) fn is_to_close<I: Io>(
        &mut self,
        key: SlabKey<QuicConn>,
        env: &WorkerEnv<I>,
    ) -> bool {
        let Some(conn) = self.conns.get_mut(key) else { return false };
        let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) else { return false };
        if !conn.h3.is_idle() {
            (conn.close_at, conn.owing) = (None, None);
            return false;
        }
        if transport.owes() {
            // A client that confirms nothing is late, whatever other signs of life it gives.
            let moved = transport.moved();
            if conn.owing.is_none_or(|before| moved.is_confirmed_since(&before)) {
                conn.owing = Some(moved);
                conn.close_at = Some(env.now.mono.after(conn.settings().manners.send_timeout));
            }
            return conn.close_at.is_some_and(|at| at <= env.now.mono);
        }
        if conn.owing.take().is_some() {
            conn.close_at = None;
        }
        match conn.close_at {
            None => {
                let grace = 2 * transport.round_trip() + ACK_DELAY;
                conn.close_at = Some(env.now.mono.after(grace));
            }
            Some(at) if at > env.now.mono => {}
            Some(_) if !std::mem::replace(&mut conn.said_goaway, true) => {
                // RFC 9114 §5.2: the final GOAWAY names the last processed request.
                conn.h3.shutdown(&mut QuicStreamTable(transport));
                let grace = 2 * transport.round_trip() + ACK_DELAY;
                conn.close_at = Some(env.now.mono.after(grace));
            }
            Some(_) => {
                conn.close_at = None;
                return true;
            }
        }
        false
    }

    /// Ends a connection after its requests; returns whether it has none: close it then.
    pub(crate) fn end(&mut self, key: SlabKey<QuicConn>) -> bool {
        let Some(conn) = self.conns.get_mut(key) else { return false };
        if !conn.started {
            return true;
        }
        // A request may be on its way: GOAWAY is sent before the connection closes.
        if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
            conn.h3.shutdown(&mut QuicStreamTable(transport));
            self.mark(key);
        }
        false
    }

    /// Marks sockets that the configuration no longer names; returns connections to end.
    pub(crate) fn forget_others(
        &mut self,
        sockets: &[(usize, Arc<Listener>)],
    ) -> Vec<SlabKey<QuicConn>> {
        let mut is_leaving = false;
        for udp in self.udp.iter_mut() {
            udp.wanted = sockets.iter().any(|(_, socket)| socket.fd() == udp.socket.fd());
            if !udp.wanted {
                udp.listen = NO_LISTEN;
                udp.endpoint.stop_accepting();
                is_leaving = true;
            }
        }
        self.udp.is_leaving = is_leaving;
        if !is_leaving {
            return Vec::new();
        }
        let is_unwanted = |key: &SlabKey<QuicConn>| {
            self.conns.get(*key).is_some_and(|conn| !self.udp[conn.slot].wanted)
        };
        self.conns.keys().filter(is_unwanted).collect()
    }

    /// Closes such sockets that have no connection left.
    pub(crate) fn let_sockets_go<I: Io>(&mut self, env: &mut WorkerEnv<I>) {
        let mut is_leaving = false;
        for (place, held) in self.udp.places.iter_mut().enumerate() {
            let Some(udp) = held.as_ref().filter(|udp| !udp.wanted) else { continue };
            let is_used = udp.endpoint.live() > 0
                || self
                    .conns
                    .keys()
                    .any(|key| self.conns.get(key).is_some_and(|conn| conn.slot == place));
            if is_used {
                is_leaving = true;
            } else {
                env.io.unwatch(udp.socket.fd());
                *held = None;
            }
        }
        self.udp.is_leaving = is_leaving;
    }
}
