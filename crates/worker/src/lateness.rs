//! Streams whose client is late though its connection is alive: it gives an answer no room in its
//! windows (`send_timeout`), or does not end the head of a request (`client_header_timeout`).
//!
//! Owns what was seen of such streams when they were looked at last. Over HTTP/1 the connection is
//! the measure; where one has several streams, those that move say nothing of the others. They are
//! looked at a few times within a timeout, and not whenever something moves, so that it costs
//! nothing; a stream is ended when its timeout has passed and a quarter of it at most. Easiest to
//! break: who takes a little now and then is slow and not late.

use std::time::Duration;

use bolide_base::{Instant, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_io::Io;
use bolide_quic::Transferred;
use bolide_wire::{Awaiting, StreamId};

use crate::exchange_table::{ActiveExchange, Owner};
use crate::quic_conn::QuicConn;
use crate::settings::WorkerLimits;
use crate::tcp::TcpConn;
use crate::token::PollToken;
use crate::worker::Worker;

/// Looks within one timeout.
const LOOKS: u32 = 4;
/// Time between two looks.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The same where timeouts are long.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What is known of the streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    /// They will be looked at.
    is_armed: bool,
    seen: Vec<Seen>,
    /// What had moved then, over QUIC.
    moved: Transferred,
}

/// The streams of a connection that wait for the client.
#[derive(Debug)]
struct WaitingStreams {
    all: Vec<Awaiting>,
    /// The connection has no stream at all.
    is_idle: bool,
    /// What has moved so far, over QUIC.
    moved: Transferred,
}

/// A stream that waited for its client at the last look.
#[derive(Clone, Copy, Debug)]
struct Seen {
    stream: StreamId,
    progress: u64,
    since: Instant,
}

impl Lateness {
    /// Since when a stream waits like this, as far as was seen.
    fn since(&self, one: &Awaiting, now: Instant) -> Instant {
        let is_it = |seen: &&Seen| seen.stream == one.stream && seen.progress == one.progress;
        self.seen.iter().find(is_it).map_or(now, |seen| seen.since)
    }
}

/// How long after a look the next one is.
fn pause(timeout: Duration) -> Duration {
    (timeout / LOOKS).clamp(PAUSE_MIN, PAUSE_MAX)
}

impl<I: Io> Worker<I> {
    /// Sees to it that the streams of a connection are looked at while there are any.
    #[inline]
    pub(crate) fn watch_for_late(&mut self, owner: Owner) {
        let Some((lateness, limits)) = self.lateness_of(owner) else { return };
        if std::mem::replace(&mut lateness.is_armed, true) {
            return;
        }
        let timeout = limits.manners.send_timeout.min(limits.header_timeout);
        self.arm_look(owner, pause(timeout));
    }

    fn arm_look(&mut self, owner: Owner, after: Duration) {
        let token = match owner {
            Owner::Tcp(key) => PollToken::LateTcp(key),
            Owner::Quic(key) => PollToken::LateQuic(key),
            Owner::Parent(_) | Owner::PostAction(_) => return,
        };
        self.env.wheel.arm_once(self.env.now.mono.after(after), token.pack());
    }

    fn lateness_of(&mut self, owner: Owner) -> Option<(&mut Lateness, &WorkerLimits)> {
        match owner {
            Owner::Tcp(key) => {
                let TcpConn { lateness, generation, info, profile, .. } =
                    self.conns.get_mut(key)?;
                Some((lateness, generation.listens[info.listen].limits(*profile)))
            }
            Owner::Quic(key) => {
                let QuicConn { lateness, generation, info, profile, .. } =
                    self.quics.get_mut(key)?;
                Some((lateness, generation.listens[info.listen].limits(*profile)))
            }
            Owner::Parent(_) | Owner::PostAction(_) => None,
        }
    }

    /// Looks at the streams of a connection, and ends those whose client is late.
    pub(crate) fn look_for_late(&mut self, owner: Owner) {
        let Some(WaitingStreams { all, is_idle, moved }) = self.awaiting(owner) else { return };
        let now = self.env.now.mono;
        let Some((lateness, limits)) = self.lateness_of(owner) else { return };
        let header_timeout = limits.header_timeout;
        let mut next = limits.manners.send_timeout.min(header_timeout);
        let before = std::mem::take(lateness);
        // Its client takes what it was sent, and cannot give more room for what it was not.
        let is_drained = moved.only_drained(&before.moved);
        let seen = Vec::new();
        let (mut after, mut late) = (Lateness { is_armed: !is_idle, seen, moved }, Vec::new());
        for one in all {
            let live = one.user.and_then(|user| self.exchanges.live.get(SlabKey::from_bits(user)));
            let timeout = live.map_or(header_timeout, ActiveExchange::send_timeout);
            let since = before.since(&one, now);
            if now.since(since) >= timeout && !is_drained {
                late.push(one);
            } else {
                after.seen.push(Seen { stream: one.stream, progress: one.progress, since });
                next = next.min(timeout);
            }
        }
        if let Some((lateness, _)) = self.lateness_of(owner) {
            *lateness = after;
        }
        if !is_idle {
            self.arm_look(owner, pause(next));
        }
        for one in late {
            self.end_late(owner, one);
        }
    }

    fn awaiting(&mut self, owner: Owner) -> Option<WaitingStreams> {
        let (mut all, mut moved) = (Vec::new(), Transferred::default());
        let is_idle = match owner {
            Owner::Tcp(key) => {
                let conn = self.conns.get(key)?;
                let framing = conn.framing.as_ref()?;
                // Its client cannot give room for what it was not sent. What the socket did not
                // take has a timeout of its own.
                if conn.unsent.is_empty() {
                    framing.awaiting(&mut all);
                }
                framing.is_idle()
            }
            Owner::Quic(key) => {
                let conn = self.quics.get(key).filter(|conn| !conn.lost)?;
                all.extend(conn.h3.awaiting());
                if let Some(transport) = self.udp[conn.slot].endpoint.conn(conn.id) {
                    moved = transport.moved();
                }
                conn.h3.streams_open() == 0
            }
            Owner::Parent(_) | Owner::PostAction(_) => return None,
        };
        Some(WaitingStreams { all, is_idle, moved })
    }

    fn end_late(&mut self, owner: Owner, late: Awaiting) {
        let doing = if late.user.is_none() { " while waiting for request" } else { "" };
        let subject = match owner {
            Owner::Tcp(key) => self.conns.get(key).map(TcpConn::subject),
            Owner::Quic(key) => self.quics.get(key).map(QuicConn::subject),
            Owner::Parent(_) | Owner::PostAction(_) => None,
        };
        let Some(subject) = subject else { return };
        let text = format!("client timed out (110: Connection timed out){doing}");
        self.env.log_conn(LogLevel::Info, &subject, &text);
        match (late.user, owner) {
            (Some(user), _) => self.cut_stream(SlabKey::from_bits(user)),
            (None, Owner::Quic(key)) => self.reset_quic(key, late.stream),
            (None, _) => {}
        }
    }
}
