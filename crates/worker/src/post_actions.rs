//! Exchanges that outlive their responses (`post_action`) or have none (`mirror`), and what they
//! need of their connections.
//!
//! Owns their limits: over HTTP/1 the next request waits for them, as in nginx; over HTTP/2 and 3 a
//! connection may have as many as streams; those whose connections are gone count as connections;
//! and in total there are at most as many as connections. Beyond that none is begun. Easiest to
//! break: a connection that was held must be processed when it no longer is, because no report will
//! follow.

use bolide_base::SlabKey;
use bolide_engine::{ConnProtocol, Mirrored, Subrequest, TallyCount, Wake};
use bolide_io::Io;
use bolide_wire::StreamId;

use crate::exchange_table::{ActiveExchange, Owner, UploadState};
use crate::requests::Requests;

impl<I: Io> Requests<I> {
    /// Detaches an exchange whose client has its response from its connection, and continues it.
    pub(crate) fn detach_exchange(&mut self, key: SlabKey<ActiveExchange>) {
        self.drop_fetch(key);
        let Some(live) = self.exchanges.live.get_mut(key) else { return };
        let conn = live.owner;
        (live.pace, live.upload) = (None, UploadState::Over);
        for child in std::mem::take(&mut live.children) {
            self.give_up(child, false);
        }
        let Some(post_action) = self.clients.detach_from_connection(conn) else { return };
        if let Some(live) = self.exchanges.live.get_mut(key) {
            live.owner = Owner::PostAction(post_action);
        }
    }

    /// Starts a mirror subrequest; its connection is held as by `post_action`.
    pub(crate) fn start_mirror(&mut self, key: SlabKey<ActiveExchange>, mirrored: Box<Mirrored>) {
        let mut head = self.env.heads.take();
        let found = self.exchanges.live.get_mut(key).and_then(|live| {
            live.exchange.as_parent().copy_head(&mut head, &mirrored);
            Some((live.owner, live.exchange.site()?.clone()))
        });
        let behind =
            found.and_then(|(conn, site)| Some((self.clients.count_background(conn)?, site)));
        let Some((behind, site)) = behind else {
            self.env.heads.put(head);
            return;
        };
        let mut exchange = self.exchanges.take_spare();
        let spoken = ConnProtocol::of(head.version);
        exchange.start_child(head, site, Subrequest::Mirror(mirrored));
        let owner = Owner::PostAction(behind);
        let mut live = ActiveExchange::new(exchange, owner, StreamId(0), self.env.now.mono);
        live.spoken = spoken;
        let Ok(copy) = self.exchanges.live.insert(live) else {
            return self.clients.end_post_action(behind);
        };
        self.env.tally.add(TallyCount::Writing, spoken);
        self.step(copy, Wake::Start);
    }
}
