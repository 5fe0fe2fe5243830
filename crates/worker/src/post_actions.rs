//! Exchanges that outlive their answers (`post_action`), and what they remember of connections.
//!
//! Owns which connections have some, because that bounds them: over HTTP/1 the next request waits
//! for them, as in nginx, over HTTP/2 and 3 as many may be under way as streams, those whose
//! connections have left count as connections, and all of them are at most as many as connections.
//! What would be one more is not begun. Easiest to break: a connection that was held has to be
//! looked at when it no longer is, for nothing else will report it.

use bolide_base::SlabKey;
use bolide_io::Io;

use crate::exchange_table::{ActiveExchange, Owner, UploadState};
use crate::requests::Requests;

impl<I: Io> Requests<I> {
    /// The client's part of an exchange is over, and the exchange goes on.
    pub(crate) fn outlive(&mut self, key: SlabKey<ActiveExchange>) {
        self.drop_fetch(key);
        let Some(live) = self.exchanges.live.get_mut(key) else { return };
        let conn = live.owner;
        (live.pace, live.upload) = (None, UploadState::Over);
        for child in std::mem::take(&mut live.children) {
            self.give_up(child);
        }
        let Some(post_action) = self.clients.note_outlived(conn) else { return };
        if let Some(live) = self.exchanges.live.get_mut(key) {
            live.owner = Owner::PostAction(post_action);
        }
    }
}
