//! Checks streams for timeouts of their clients, on any transport.

use bolide_base::SlabKey;
use bolide_conf::model::LogLevel;
use bolide_io::Io;
use bolide_quic::Transferred;
use bolide_wire::Awaiting;

use crate::clients::Clients;
use crate::exchange_table::{ActiveExchange, Owner};
use crate::framing::ResetCause;
use crate::lateness::{Lateness, WaitingStreams};
use crate::quic_conn::QuicConn;
use crate::requests::Requests;
use crate::settings::WorkerLimits;
use crate::tcp::TcpConn;
use crate::token::PollToken;
use crate::worker::Worker;

impl Clients {
    fn lateness_of(&mut self, owner: Owner) -> Option<(&mut Lateness, &WorkerLimits)> {
        match owner {
            Owner::Tcp(key) => {
                let TcpConn { lateness, generation, info, profile, .. } =
                    self.tcp.conns.get_mut(key)?;
                Some((lateness, generation.listens[info.listen].limits(*profile)))
            }
            Owner::Quic(key) => {
                let QuicConn { lateness, generation, info, profile, .. } =
                    self.quic.conns.get_mut(key)?;
                Some((lateness, generation.listens[info.listen].limits(*profile)))
            }
            Owner::Parent(_) | Owner::PostAction(_) => None,
        }
    }

    fn awaiting(&mut self, owner: Owner) -> Option<WaitingStreams> {
        let (mut all, mut moved) = (Vec::new(), Transferred::default());
        let is_idle = match owner {
            Owner::Tcp(key) => {
                let conn = self.tcp.conns.get(key)?;
                let framing = conn.framing.as_ref()?;
                // A client cannot open windows for what it was not sent. What the socket did not
                // take has a timeout of its own.
                if conn.unsent.is_empty() {
                    framing.awaiting(&mut all);
                }
                framing.is_idle()
            }
            Owner::Quic(key) => {
                let conn = self.quic.conns.get(key).filter(|conn| !conn.lost)?;
                all.extend(conn.h3.awaiting());
                if let Some(transport) = self.quic.udp[conn.slot].endpoint.conn(conn.id) {
                    moved = transport.moved();
                }
                conn.h3.streams_open() == 0
            }
            Owner::Parent(_) | Owner::PostAction(_) => return None,
        };
        Some(WaitingStreams { all, is_idle, moved })
    }
}

impl<I: Io> Worker<I> {
    /// Checks the streams of a connection, and ends those whose client timed out.
    pub(crate) fn look_for_late(&mut self, owner: Owner) {
        let token = match owner {
            Owner::Tcp(key) => PollToken::LateTcp(key),
            Owner::Quic(key) => PollToken::LateQuic(key),
            Owner::Parent(_) | Owner::PostAction(_) => return,
        };
        let Requests { clients, exchanges, env, .. } = &mut self.requests;
        let Some(streams) = clients.awaiting(owner) else { return };
        let Some((lateness, limits)) = clients.lateness_of(owner) else { return };
        let timeout_of = |user| {
            let live = exchanges.live.get(SlabKey::from_bits(user));
            live.map(ActiveExchange::send_timeout)
        };
        let (now, mut late) = (env.now.mono, Vec::new());
        let (after, next) = lateness.look(streams, limits, now, timeout_of, &mut late);
        *lateness = after;
        if let Some(at) = next {
            env.wake_at(at, token);
        }
        for one in late {
            self.end_late(owner, one);
        }
    }

    fn end_late(&mut self, owner: Owner, late: Awaiting) {
        let doing = if late.user.is_none() { " while waiting for request" } else { "" };
        let subject = self.requests.clients.subject(owner);
        let Some(subject) = subject else { return };
        let text = format!("client timed out (110: Connection timed out){doing}");
        self.requests.env.log_conn(LogLevel::Info, &subject, &text);
        match (late.user, owner) {
            (Some(user), _) => self.requests.cut_stream(SlabKey::from_bits(user)),
            (None, Owner::Quic(key)) => {
                self.requests.clients.quic.reset(key, late.stream, ResetCause::ClientLate);
            }
            (None, _) => {}
        }
    }
}
