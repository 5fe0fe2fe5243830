//! Draining: a worker accepts no new connections, and ends the others after their requests.
//!
//! ```text
//!   serving ──Yield──▶ draining, then waiting ──Resume, Configure──▶ serving
//!      └──────Quit──────────▶│ draining ──▶ its end
//! ```
//!
//! Easiest to break: exchanges of other workers, places in upstream queues and QUIC clients know a
//! worker by its number. So one that may serve again stays, and no other takes its number.

use bolide_conf::model::LogLevel;
use bolide_engine::Due;
use bolide_io::Io;

use crate::requests::Requests;

/// What a worker without connections and fetches does when it drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterDrain {
    /// It waits until it serves again, and has logged so or not.
    Wait {
        is_logged: bool,
    },
    End,
}

impl AfterDrain {
    /// Lets a worker serve again, unless it is to end.
    pub(crate) fn serve_again<I: Io>(&mut self, requests: &mut Requests<I>) {
        if let Self::Wait { is_logged } = self {
            *is_logged = false;
            requests.env.draining = false;
        }
    }

    /// Whether a worker ends because it has drained; else it logs, once, that it has.
    pub(crate) fn is_end<I: Io>(&mut self, requests: &mut Requests<I>) -> bool {
        if !(requests.env.draining && requests.is_over()) {
            return false;
        }
        if let Self::Wait { is_logged } = self
            && !std::mem::replace(is_logged, true)
        {
            requests.env.log_server(LogLevel::Notice, "all requests have ended, waiting");
            requests.env.write_logs(Due::Everything);
        }
        *self == Self::End
    }
}

/// Accepts no new connections and closes idle ones; the others end after their requests. Those
/// without a request so far were accepted: [`end_fresh`] ends them.
pub(crate) fn drain<I: Io>(requests: &mut Requests<I>) {
    if std::mem::replace(&mut requests.env.draining, true) {
        return;
    }
    requests.env.listeners.close(&mut requests.env.io);
    // The next server may want the ports.
    requests.clients.quic.udp.leave_all();
    end_connections(requests, true);
    requests.origins.links.drain(&mut requests.env);
    let (origins, env, exchanges) = requests.upstream();
    origins.drain_fetches(env, exchanges);
}

/// Also ends connections without a request so far, if the worker is still draining.
pub(crate) fn end_fresh<I: Io>(requests: &mut Requests<I>) {
    if requests.env.draining {
        debug_assert!(
            requests.clients.quic.udp.iter().all(|udp| !udp.wanted),
            "a worker that drains listens nowhere"
        );
        end_connections(requests, false);
    }
}

fn end_connections<I: Io>(requests: &mut Requests<I>, spares_fresh: bool) {
    requests.clients.tcp.drain(spares_fresh);
    for key in requests.clients.quic.conns.keys().collect::<Vec<_>>() {
        let conn = requests.clients.quic.conns.get(key);
        if conn.is_some_and(|conn| !spares_fresh || conn.h3.requests() > 0) {
            requests.end_quic(key);
        }
    }
}
