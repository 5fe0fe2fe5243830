//! Log lines, in nginx's words, for clients that disconnect without a request in progress: in a
//! handshake, before their first request, or between two requests.
//!
//! Requests in progress log it themselves.

use bolide_conf::model::LogLevel;
use bolide_io::Io;
use bolide_wire::proxy::Broken;

use crate::env::WorkerEnv;
use crate::framing::ConnFraming;
use crate::tcp::{Opening, TcpConn};

/// How a client disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It closed its side.
    End,
    /// The connection was reset.
    Reset,
}

impl Departure {
    const fn why(self) -> &'static str {
        match self {
            Self::End => "",
            Self::Reset => " (104: Connection reset by peer)",
        }
    }
}

/// The activity of a connection when its client disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    ReadingPreface,
    /// No byte of the handshake has arrived.
    AwaitingHandshake,
    Handshaking,
    /// No byte of the first request has arrived.
    AwaitingRequest,
    /// A request was answered, and no byte of the next has arrived.
    Resting,
    /// Streams are in progress over HTTP/2.
    Streaming,
    /// An activity that logs the disconnect itself.
    Other,
}

impl Doing {
    fn of(conn: &TcpConn, departure: Departure) -> Self {
        if conn.lingering {
            return Self::Other;
        }
        if conn.opening == Opening::Proxy {
            return Self::ReadingPreface;
        }
        if conn.session.as_ref().is_some_and(|session| session.is_handshaking()) {
            let has_begun = conn.opening == Opening::Over;
            return if has_begun { Self::Handshaking } else { Self::AwaitingHandshake };
        }
        match &conn.framing {
            // The bytes so far begin the HTTP/2 preface.
            None => Self::AwaitingRequest,
            // As in nginx, a client that disconnects between two frames is not logged.
            Some(framing @ ConnFraming::H2(_))
                if framing.is_idle()
                    && conn.input.is_empty()
                    && (departure == Departure::End || conn.session.is_some()) =>
            {
                Self::Other
            }
            Some(ConnFraming::H2(_)) => Self::Streaming,
            Some(framing) if framing.is_within_head() => Self::Other,
            Some(framing) if !framing.is_idle() || !conn.unsent.is_empty() => Self::Other,
            Some(framing) if framing.requests() == 0 => Self::AwaitingRequest,
            Some(_) => Self::Resting,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::ReadingPreface => " while reading PROXY protocol",
            Self::AwaitingHandshake | Self::Handshaking => " while SSL handshaking",
            Self::Streaming => " while processing HTTP/2 connection",
            Self::AwaitingRequest | Self::Resting | Self::Other => " while waiting for request",
        }
    }
}

/// What a connection waits for, when its client sends its first bytes too late.
pub(crate) fn awaited(conn: &TcpConn) -> &'static str {
    Doing::of(conn, Departure::End).text()
}

impl<I: Io> WorkerEnv<I> {
    /// Logs that a client disconnected, unless its requests do.
    pub(crate) fn log_disconnect(&mut self, conn: &TcpConn, departure: Departure) {
        let Self { now, clock, logs, .. } = self;
        let (site, info) = (&conn.generation.site, &conn.info);
        let doing = Doing::of(conn, departure);
        let begun = if conn.session.is_some() { &conn.cipher } else { &conn.input };
        // As in nginx, which takes the bytes so far for all of it.
        if doing == Doing::ReadingPreface
            && !begun.is_empty()
            && let Some(text) = Broken::Header.message(begun)
        {
            return site.log_conn(info, LogLevel::Error, &[&text], *now, clock, logs);
        }
        let what = match (doing, departure) {
            (Doing::Other, _) => return,
            (Doing::Resting, _) => {
                return site.log_kept_end(info, departure.why(), *now, clock, logs);
            }
            (Doing::Handshaking, _) => "peer closed connection in SSL handshake",
            (_, Departure::Reset) => "recv() failed",
            (Doing::Streaming, Departure::End) => "client prematurely closed connection",
            (_, Departure::End) => "client closed connection",
        };
        debug_assert!(doing != Doing::Resting, "a kept connection has a line of its own");
        let text = [what, departure.why(), doing.text()];
        site.log_conn(info, LogLevel::Info, &text, *now, clock, logs);
    }
}
