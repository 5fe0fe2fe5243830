//! What connections say that carry no request: answers of HTTP/2 to frames about the connection,
//! and the abort of a request that was given up.

use bolide_base::limits::{RECEIVE_SIZE, SEND_PER_TURN};
use bolide_base::{CopyPolicy, Segment, SendChain, SlabKey};
use bolide_io::{Io, ReceivedBytes};
use bolide_wire::{BodySource, OriginConn, Pull, StreamOwner};
use bytes::Bytes;

use crate::env::WorkerEnv;
use crate::origin_links::OriginLinks;
use crate::upstream_link::UpstreamLink;

/// LIMIT: reads of an idle connection in one turn; one with more to say is closed.
const IDLE_READS_MAX: u32 = 8;

impl OriginLinks {
    /// Marks a connection that has to answer what it received.
    pub(crate) fn mark_answers(&mut self, key: SlabKey<UpstreamLink>) {
        let link = self.table.get(key);
        let answers = |link: &UpstreamLink| {
            matches!(link.conn, OriginConn::Http2(_)) && link.conn.has_output()
        };
        if link.is_some_and(answers) {
            self.mark_link(key);
        }
    }

    /// Sends the answers that a connection owes when its response is complete.
    pub(crate) fn answer_idle<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
    ) {
        let owes = |link: &UpstreamLink| {
            matches!(link.conn, OriginConn::Http2(_)) && link.conn.is_idle() && !link.is_deaf
        };
        if self.table.get(key).is_some_and(owes) {
            self.speak(key, env);
        }
    }

    /// Reads what an idle HTTP/2 connection has received before it is used again, and closes it if
    /// it cannot be.
    pub(crate) fn settle_idle<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
    ) {
        if self.table.get(key).is_some_and(|link| matches!(link.conn, OriginConn::Http2(_))) {
            self.drop_idle(key, env);
        }
    }

    /// Reads what an idle HTTP/2 connection receives; false if it cannot be used any more.
    pub(crate) fn hear_idle<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
    ) -> bool {
        for _ in 0..IDLE_READS_MAX {
            let Some(link) = self.table.get_mut(key) else { return false };
            let scratch = env.scratch.received(0..RECEIVE_SIZE);
            let n = match env.io.receive(link.fd, scratch) {
                ReceivedBytes::Bytes(n) => n,
                ReceivedBytes::Blocked => {
                    link.readable = false;
                    return true;
                }
                ReceivedBytes::End | ReceivedBytes::Dead => return false,
            };
            if !take(link, &scratch[..n]) || !self.speak(key, env) {
                return false;
            }
        }
        false
    }

    /// Sends what the framing has to say without a body; whether all of it left.
    pub(crate) fn speak<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
    ) -> bool {
        let Some(link) = self.table.get_mut(key) else { return false };
        let mut chain = SendChain::new(CopyPolicy::Contiguous);
        link.conn.transmit(SEND_PER_TURN, &mut chain, 0, &mut NoBody);
        let bytes = chain.contiguous().unwrap_or_default();
        if !bytes.is_empty() && !link.queue_sealed(bytes) {
            link.unsent.push_back(Segment::Bytes(Bytes::copy_from_slice(bytes)));
        }
        self.flush_link(key, &mut 0, env)
            && self.table.get(key).is_some_and(|link| link.unsent.is_empty())
    }
}

/// Passes received bytes to the framing; false if the connection cannot carry a request any more.
fn take(link: &mut UpstreamLink, received: &[u8]) -> bool {
    let mut events = Vec::new();
    let heard = match &mut link.secured {
        None => link.conn.receive(received, &mut events),
        Some(secured) => {
            let mut plain = Vec::new();
            let opened = secured.session.receive(received, &mut plain);
            if opened.is_err() || secured.session.peer_closed() {
                return false;
            }
            link.conn.receive(&plain, &mut events)
        }
    };
    link.queue_own_words();
    debug_assert!(events.is_empty(), "nothing is told of a connection without a request");
    heard.is_ok() && link.conn.is_idle()
}

/// An empty body.
struct NoBody;

impl BodySource for NoBody {
    fn pull(&mut self, _user: StreamOwner, _max: usize, _out: &mut SendChain) -> Pull {
        Pull::Pending
    }
}
