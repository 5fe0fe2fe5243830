//! Exchanges that outlive their answers (`post_action`), and what they remember of connections.
//!
//! Owns which connections have some, because that bounds them: over HTTP/1 the next request waits
//! for them, as in nginx, over HTTP/2 and 3 as many may be under way as streams, those whose
//! connections have left count as connections, and all of them are at most as many as connections.
//! What would be one more is not begun. Easiest to break: a connection that was held has to be
//! looked at when it no longer is, for nothing else will report it.

use bolide_base::SlabKey;
use bolide_base::limits::STREAMS_PER_CONN_MAX;
use bolide_engine::{Behind, Wake};
use bolide_io::Io;

use crate::exchange_table::{ActiveExchange, Owner, PostAction, UploadState};
use crate::framing::ConnFraming;
use crate::tcp::TcpConn;
use crate::worker::Worker;

impl TcpConn {
    /// Whether what comes next waits for what is done behind earlier answers.
    pub(crate) fn is_held(&self) -> bool {
        self.post_actions > 0
            && matches!(&self.framing, Some(ConnFraming::H1(framing)) if !framing.is_closing())
    }
}

/// Whether another one may be begun: `all` are under way, `own` of them of the same connection.
#[inline]
pub(crate) const fn room_behind(all: usize, max: u32, own: u32) -> Behind {
    if all >= max as usize {
        Behind::Full
    } else if own >= STREAMS_PER_CONN_MAX {
        Behind::Crowded
    } else {
        Behind::Room
    }
}

impl<I: Io> Worker<I> {
    /// The client's part of an exchange is over, and the exchange goes on; there is nothing that it
    /// has to be woken with.
    pub(crate) fn outlive(&mut self, key: SlabKey<ActiveExchange>) -> Option<Wake> {
        self.drop_fetch(key);
        let live = self.exchanges.live.get_mut(key)?;
        let conn = live.owner;
        (live.throttle, live.upload) = (None, UploadState::Over);
        for child in std::mem::take(&mut live.children) {
            self.give_up(child);
        }
        let known = match conn {
            Owner::Tcp(conn) => self.conns.get_mut(conn).map(|conn| {
                conn.exchanges -= 1;
                conn.post_actions += 1;
                let requests = conn.framing.as_ref().map_or(0, ConnFraming::requests);
                (conn.subject(), requests)
            }),
            Owner::Quic(conn) => self.quics.get_mut(conn).map(|conn| {
                conn.exchanges -= 1;
                conn.post_actions += 1;
                (conn.subject(), conn.h3.requests())
            }),
            Owner::Parent(_) | Owner::PostAction(_) => None,
        };
        let (subject, requests) = known?;
        let post_action = self.post_actions.insert(PostAction { subject, requests, conn });
        debug_assert!(post_action.is_ok(), "there are as many places as for exchanges");
        if let (Ok(post_action), Some(live)) = (post_action, self.exchanges.live.get_mut(key)) {
            live.owner = Owner::PostAction(post_action);
        }
        None
    }

    /// Such an exchange is over.
    pub(crate) fn end_post_action(&mut self, post_action: SlabKey<PostAction>) {
        let Some(post_action) = self.post_actions.remove(post_action) else { return };
        match post_action.conn {
            Owner::Tcp(key) => {
                if let Some(conn) = self.conns.get_mut(key) {
                    conn.post_actions -= 1;
                    self.mark_dirty(key);
                }
            }
            Owner::Quic(key) => {
                if let Some(conn) = self.quics.get_mut(key) {
                    conn.post_actions -= 1;
                }
            }
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    /// Connections of clients, and exchanges that have outlived theirs.
    pub(crate) fn clients(&self) -> usize {
        let alone = |post_action: &PostAction| match post_action.conn {
            Owner::Tcp(conn) => self.conns.get(conn).is_none(),
            Owner::Quic(conn) => self.quics.get(conn).is_none(),
            Owner::Parent(_) | Owner::PostAction(_) => false,
        };
        let post_actions = self.post_actions.keys().filter_map(|key| self.post_actions.get(key));
        self.conns.live() + post_actions.filter(|post_action| alone(post_action)).count()
    }
}
