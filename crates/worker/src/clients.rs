//! The connections of all clients, over any transport, and the operations of exchanges on them.
//!
//! Owns the two transports, and what remains of connections for exchanges that outlive their
//! responses. Knows exchanges by their keys only.

use std::sync::Arc;

use bolide_base::limits::{EXCHANGES_MAX, STREAMS_PER_CONN_MAX};
use bolide_base::{Instant, Slab, SlabKey};
use bolide_engine::{BackgroundCapacity, ConnInfo, SiteRef};
use bolide_http::ResponseHead;
use bolide_io::Fd;
use bolide_wire::{StreamId, StreamOwner};

use crate::env::WorkerEnv;
use crate::exchange_table::{Owner, PostAction};
use crate::framing::{ConnFraming, Cut, ResetCause, StreamAct};
use crate::generation::Generation;
use crate::quic_conn::QuicConn;
use crate::quic_side::QuicSide;
use crate::subject::Subject;
use crate::tcp::TcpConn;
use crate::tcp_side::TcpSide;

/// The connections of all clients.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) tcp: TcpSide,
    pub(crate) quic: QuicSide,
    /// Exchanges that have outlived their responses.
    pub(crate) post_actions: Slab<PostAction>,
}

/// What a step may know of its connection.
pub(crate) struct AskingConn<'a> {
    pub(crate) info: &'a ConnInfo,
    /// Its stream socket, if it has one.
    pub(crate) fd: Option<Fd>,
    /// Requests on the connection so far.
    pub(crate) requests: u64,
    /// Exchanges of the connection that have outlived their responses.
    pub(crate) behind: u32,
}

impl Clients {
    pub(crate) fn new(quic: QuicSide) -> Self {
        Self { tcp: TcpSide::new(), quic, post_actions: Slab::with_capacity(EXCHANGES_MAX) }
    }

    /// The connection of an owner, for log lines.
    pub(crate) fn subject(&self, owner: Owner) -> Option<Subject> {
        match owner {
            Owner::Tcp(conn) => self.tcp.conns.get(conn).map(TcpConn::subject),
            Owner::Quic(conn) => self.quic.conns.get(conn).map(QuicConn::subject),
            Owner::PostAction(post_action) => {
                self.post_actions.get(post_action).map(|past| past.subject.clone())
            }
            Owner::Parent(_) => None,
        }
    }

    /// Whether a client can send nothing of any body until we consume what came. Over HTTP/3 that
    /// cannot be: streams that are held take nothing from the others.
    pub(crate) fn is_shut(&self, owner: Owner) -> bool {
        let Owner::Tcp(conn) = owner else { return false };
        let framing = self.tcp.conns.get(conn).and_then(|conn| conn.framing.as_ref());
        framing.is_some_and(ConnFraming::is_shut)
    }

    /// Resets a stream, whatever its state; returns what has to end with it.
    pub(crate) fn reset_stream(
        &mut self,
        owner: Owner,
        stream: StreamId,
        cause: ResetCause,
    ) -> Cut {
        match owner {
            Owner::Tcp(conn) => {
                let framing = self.tcp.conns.get_mut(conn).and_then(|conn| conn.framing.as_mut());
                framing.map_or(Cut::Connection, |framing| framing.reset(stream, cause))
            }
            Owner::Quic(conn) => {
                self.quic.reset(conn, stream, cause);
                Cut::Stream
            }
            Owner::Parent(_) | Owner::PostAction(_) => Cut::Stream,
        }
    }

    /// Sends an interim response. An exchange that is gone or has responded has no use for it.
    pub(crate) fn interim(&mut self, owner: Owner, stream: StreamId, head: &ResponseHead) {
        match owner {
            Owner::Tcp(conn) => {
                let framing = self.tcp.conns.get_mut(conn).and_then(|conn| conn.framing.as_mut());
                if let Some(framing) = framing {
                    framing.announce(stream, head);
                    self.tcp.mark_dirty(conn);
                }
            }
            Owner::Quic(conn) => {
                if let Some(found) = self.quic.conns.get_mut(conn) {
                    found.h3.announce(stream, head);
                    self.quic.mark(conn);
                }
            }
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    /// The connection of an owner, if its client hung up before the exchange waited: that is not
    /// reported again.
    pub(crate) fn hung_up(&self, owner: Owner) -> Option<SlabKey<TcpConn>> {
        let Owner::Tcp(key) = owner else { return None };
        let conn = self.tcp.conns.get(key)?;
        (conn.hung_up || conn.eof).then_some(key)
    }

    /// Applies an action to one stream; false if the owner is no connection with a framing.
    pub(crate) fn act(&mut self, owner: Owner, stream: StreamId, act: StreamAct) {
        match owner {
            Owner::Tcp(conn) => {
                let framing = self.tcp.conns.get_mut(conn).and_then(|conn| conn.framing.as_mut());
                let Some(framing) = framing else { return };
                match act {
                    StreamAct::Continue => framing.send_continue(stream),
                    StreamAct::Ready => framing.body_ready(stream),
                    StreamAct::Discard => framing.discard_body(stream),
                    StreamAct::Wanted(window) => framing.body_wanted(stream, window),
                    StreamAct::Consumed(bytes) => framing.body_consumed(stream, bytes),
                }
                self.tcp.mark_dirty(conn);
            }
            Owner::Quic(conn) => {
                self.quic.act(conn, stream, act);
                self.quic.mark(conn);
            }
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    /// Counts an exchange of a connection as ended.
    pub(crate) fn count_ended(&mut self, owner: Owner) {
        let exchanges = match owner {
            Owner::Tcp(conn) => self.tcp.conns.get_mut(conn).map(|conn| &mut conn.exchanges),
            Owner::Quic(conn) => self.quic.conns.get_mut(conn).map(|conn| &mut conn.exchanges),
            Owner::Parent(_) | Owner::PostAction(_) => None,
        };
        if let Some(exchanges) = exchanges {
            debug_assert!(*exchanges > 0, "a connection counts its exchanges");
            *exchanges -= 1;
        }
    }

    /// Detaches an exchange from its connection, because it outlives its response; returns what
    /// remains of the connection.
    pub(crate) fn detach_from_connection(&mut self, conn: Owner) -> Option<SlabKey<PostAction>> {
        self.count_ended(conn);
        self.count_background(conn)
    }

    /// Counts an exchange of a connection that has no response (`mirror`); returns what it needs of
    /// the connection.
    pub(crate) fn count_background(&mut self, conn: Owner) -> Option<SlabKey<PostAction>> {
        let (subject, requests) = match conn {
            Owner::Tcp(key) => {
                let conn = self.tcp.conns.get_mut(key)?;
                conn.post_actions += 1;
                let requests = conn.framing.as_ref().map_or(0, ConnFraming::requests);
                (conn.subject(), requests)
            }
            Owner::Quic(key) => {
                let conn = self.quic.conns.get_mut(key)?;
                conn.post_actions += 1;
                (conn.subject(), conn.h3.requests())
            }
            Owner::Parent(_) | Owner::PostAction(_) => return None,
        };
        let post_action = self.post_actions.insert(PostAction { subject, requests, conn });
        debug_assert!(post_action.is_ok(), "there are as many places as for exchanges");
        post_action.ok()
    }

    /// The site for a new request: the newest, unless it has no listen for the client's address, or
    /// its rules for handshakes are others. Then, as in nginx, the request belongs to the
    /// configuration that accepted the connection. With it, when the head of the request began, if
    /// that was in an earlier turn.
    pub(crate) fn begin_at_site<I>(
        &mut self,
        owner: Owner,
        env: &WorkerEnv<I>,
    ) -> Option<(SiteRef, Option<Instant>)> {
        let newest = &env.generation;
        let mut head_began = None;
        let (is_newest, generation) = match owner {
            Owner::Tcp(key) => {
                let conn = self.tcp.conns.get_mut(key)?;
                head_began = conn.patience.head_began.take();
                let is_newest = conn.generation.number == newest.number
                    || conn.outdated.is_none() && conn.follow(newest);
                (is_newest, &conn.generation)
            }
            Owner::Quic(key) => {
                let conn = self.quic.conns.get_mut(key)?;
                let is_newest = conn.generation.number == newest.number || conn.follow(newest);
                (is_newest, &conn.generation)
            }
            Owner::Parent(_) | Owner::PostAction(_) => return None,
        };
        let site = match is_newest {
            true => env.site.clone(),
            false => SiteRef::new(generation.site.clone(), generation.groups.clone()),
        };
        Some((site, head_began))
    }

    /// The number of exchanges that a connection owns.
    pub(crate) fn owned(&self, owner: Owner) -> u32 {
        match owner {
            Owner::Tcp(key) => self.tcp.conns.get(key).map_or(0, |conn| conn.exchanges),
            Owner::Quic(key) => self.quic.conns.get(key).map_or(0, |conn| conn.exchanges),
            Owner::Parent(_) | Owner::PostAction(_) => 0,
        }
    }

    /// Appends the owners of the open streams of a connection.
    pub(crate) fn users(&self, owner: Owner, into: &mut Vec<StreamOwner>) {
        match owner {
            Owner::Tcp(key) => {
                if let Some(framing) =
                    self.tcp.conns.get(key).and_then(|conn| conn.framing.as_ref())
                {
                    framing.users(into);
                }
            }
            Owner::Quic(key) => {
                into.extend(self.quic.conns.get(key).into_iter().flat_map(|conn| conn.h3.users()));
            }
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    /// Ends an exchange that outlived its response.
    pub(crate) fn end_post_action(&mut self, post_action: SlabKey<PostAction>) {
        let Some(post_action) = self.post_actions.remove(post_action) else { return };
        match post_action.conn {
            Owner::Tcp(key) => {
                if let Some(conn) = self.tcp.conns.get_mut(key) {
                    debug_assert!(conn.post_actions > 0, "a connection counts what it is rid of");
                    conn.post_actions -= 1;
                    self.tcp.mark_dirty(key);
                }
            }
            Owner::Quic(key) => {
                if let Some(conn) = self.quic.conns.get_mut(key) {
                    debug_assert!(conn.post_actions > 0, "a connection counts what it is rid of");
                    conn.post_actions -= 1;
                }
            }
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    /// The number of client connections and of exchanges that have outlived theirs.
    pub(crate) fn count(&self) -> usize {
        let alone = |post_action: &PostAction| match post_action.conn {
            Owner::Tcp(conn) => self.tcp.conns.get(conn).is_none(),
            Owner::Quic(conn) => self.quic.conns.get(conn).is_none(),
            Owner::Parent(_) | Owner::PostAction(_) => false,
        };
        let post_actions = self.post_actions.keys().filter_map(|key| self.post_actions.get(key));
        self.tcp.conns.live()
            + self.quic.open()
            + post_actions.filter(|post_action| alone(post_action)).count()
    }

    /// Binds a stream to the exchange that owns it.
    pub(crate) fn bind<I>(
        &mut self,
        owner: Owner,
        stream: StreamId,
        user: StreamOwner,
        env: &WorkerEnv<I>,
    ) {
        match owner {
            Owner::Tcp(conn) => {
                let Some(conn) = self.tcp.conns.get_mut(conn) else { return };
                conn.exchanges += 1;
                conn.patience.begin_request();
                if let Some((count, of)) = conn.counted.take() {
                    env.tally.remove(count, of);
                }
                debug_assert!(conn.framing.is_some(), "a request comes from a framing");
                if let Some(framing) = &mut conn.framing {
                    framing.bind(stream, user);
                }
            }
            Owner::Quic(conn) => {
                if let Some(conn) = self.quic.conns.get_mut(conn) {
                    debug_assert!(conn.started, "a request comes from a framing");
                    conn.exchanges += 1;
                    conn.idle_until = None;
                    conn.h3.bind(stream, user);
                    let age = env.now.mono.since(conn.info.started.mono);
                    if age > conn.settings().keepalive_time {
                        conn.h3.announce_end();
                    }
                }
            }
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    /// Moves connections without requests to the newest configuration: an idle one would keep the
    /// old one in memory.
    pub(crate) fn bring_along(&mut self, newest: &Arc<Generation>) {
        for key in self.tcp.conns.keys().collect::<Vec<_>>() {
            let Some(conn) = self.tcp.conns.get_mut(key) else { continue };
            // A handshake is completed under the configuration that began it.
            if conn.exchanges == 0
                && conn.outdated.is_none()
                && (conn.framing.is_some() || conn.session.is_none())
            {
                conn.follow(newest);
            }
        }
        for key in self.quic.conns.keys().collect::<Vec<_>>() {
            let Some(conn) = self.quic.conns.get_mut(key) else { continue };
            if conn.exchanges == 0 && conn.started {
                conn.follow(newest);
            }
        }
    }

    /// What a step may know of the connection of an owner.
    #[inline]
    pub(crate) fn asker(&self, owner: Owner) -> Option<AskingConn<'_>> {
        Some(match owner {
            Owner::Tcp(conn) => {
                let conn = self.tcp.conns.get(conn)?;
                let requests = conn.framing.as_ref().map_or(0, ConnFraming::requests);
                AskingConn {
                    info: &conn.info,
                    fd: Some(conn.fd),
                    requests,
                    behind: conn.post_actions,
                }
            }
            Owner::Quic(conn) => {
                let conn = self.quic.conns.get(conn)?;
                let requests = conn.h3.requests();
                AskingConn { info: &conn.info, fd: None, requests, behind: conn.post_actions }
            }
            Owner::PostAction(post_action) => {
                let past = self.post_actions.get(post_action)?;
                AskingConn {
                    info: past.subject.info(),
                    fd: None,
                    requests: past.requests,
                    behind: 0,
                }
            }
            Owner::Parent(_) => return None,
        })
    }
}

/// Whether one more may begin: `all` are in progress, `own` of them of the same connection.
#[inline]
pub(crate) const fn background_capacity(all: usize, max: u32, own: u32) -> BackgroundCapacity {
    if all >= max as usize {
        BackgroundCapacity::WorkerFull
    } else if own >= STREAMS_PER_CONN_MAX {
        BackgroundCapacity::ConnectionFull
    } else {
        BackgroundCapacity::Available
    }
}
