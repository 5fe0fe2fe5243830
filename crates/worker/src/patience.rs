//! How long a connection over a stream socket may stay while its client does not go on.
//!
//! Owns the deadlines that received bytes do not move: that of the next request, of a head that has
//! begun, and of the end of input that is discarded. They are set once; only the start of a
//! request removes them. Easiest to break: a deadline that is set anew with each byte ends only
//! silent clients.

use std::time::Duration;

use bolide_base::Instant;

use crate::framing::ConnFraming;
use crate::tcp::{TcpConn, TcpWait};

/// The deadlines that received bytes do not move.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientPatience {
    /// Of the next request, after the last one.
    next: Option<Instant>,
    /// Of the first request, or of a head that has begun.
    head: Option<Instant>,
    /// When the head of HTTP/1 began that is incomplete.
    pub(crate) head_began: Option<Instant>,
    /// Of input that is discarded after the last response (`lingering_time`).
    discarding: Option<Instant>,
}

impl ClientPatience {
    /// A request has begun: none of them counts any more.
    pub(crate) const fn begin_request(&mut self) {
        (self.next, self.head, self.discarding) = (None, None, None);
    }
}

impl TcpConn {
    /// The deadline of what the connection waits for from now on.
    pub(crate) fn deadline_of(&mut self, waiting: TcpWait, now: Instant) -> Instant {
        // Blocks of HTTP/2 may be trailers, or be refused: no request would take the moment.
        let is_within_head =
            matches!(&self.framing, Some(ConnFraming::H1(conn)) if conn.is_reading_head());
        let began = self.patience.head_began.unwrap_or(now);
        self.patience.head_began = is_within_head.then_some(began);
        match waiting {
            TcpWait::Head => {
                // As in nginx, a connection that has sent nothing has this time from its start.
                let until = now.after(self.settings().header_timeout);
                *self.patience.head.get_or_insert(until)
            }
            TcpWait::Request => {
                debug_assert!(self.framing.is_some(), "a request came before the next one");
                self.patience.head = None;
                let until = now.after(self.idle_time());
                *self.patience.next.get_or_insert(until)
            }
            TcpWait::Exchange => {
                self.patience.head = None;
                now.after(self.settings().body_timeout)
            }
            TcpWait::Room => {
                // Trailers in several frames were waited for like a head.
                if self.framing.as_ref().is_some_and(|it| !it.is_idle() && !it.is_reading_head()) {
                    self.patience.head = None;
                }
                let until = now.after(self.manners().send_timeout);
                let ClientPatience { next, head, .. } = self.patience;
                [next, head].into_iter().flatten().fold(until, Instant::min)
            }
            TcpWait::Discarding | TcpWait::Linger => {
                debug_assert!(
                    self.framing.is_some() || waiting == TcpWait::Linger,
                    "only what belongs to a request is discarded"
                );
                let manners = *self.manners();
                let until = now.after(manners.lingering_time);
                let until = *self.patience.discarding.get_or_insert(until);
                now.after(manners.lingering_timeout).min(until)
            }
        }
    }

    /// How long the connection has been without a request, if no byte of the next one has arrived
    /// yet: it is idle, or what comes is discarded. As in nginx, one in the middle of its TLS
    /// handshake is not such a connection.
    pub(crate) fn idle_for(&self, now: Instant) -> Option<Duration> {
        let (until, whole) = match self.now_waiting() {
            TcpWait::Request => (self.patience.next, self.idle_time()),
            TcpWait::Head if self.has_no_byte_of_a_request() => {
                (self.patience.head, self.settings().header_timeout)
            }
            TcpWait::Discarding | TcpWait::Linger => {
                (self.patience.discarding, self.manners().lingering_time)
            }
            _ => return None,
        };
        Some(until.map_or(Duration::ZERO, |until| whole.saturating_sub(until.since(now))))
    }

    fn has_no_byte_of_a_request(&self) -> bool {
        if self.fresh {
            return true;
        }
        let is_secured = self.session.as_ref().is_none_or(|session| !session.is_handshaking());
        let is_between = self.framing.as_ref().is_some_and(|framing| !framing.is_reading_head());
        is_secured && is_between && self.input.is_empty() && self.cipher.is_empty()
    }

    fn idle_time(&self) -> Duration {
        self.idle_max.unwrap_or(self.settings().keepalive_timeout)
    }
}
