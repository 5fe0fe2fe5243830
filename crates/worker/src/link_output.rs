//! Output to upstream connections: one write per turn, of what the framing pulls.

use bolide_base::errno::EPIPE;
use bolide_base::limits::SEND_PER_TURN;
use bolide_base::{Bound, CopyPolicy, SendChain, SlabKey, Spool, SpoolPiece};
use bolide_io::{AfterSend, Io, Sent};
use bolide_upstream::{FetchWake, Left};
use bolide_wire::{BodySource, Pull, StreamOwner};

use crate::env::WorkerEnv;
use crate::exchange_table::Exchanges;
use crate::fetches::LiveFetch;
use crate::segments::{SHARE_MIN, keep_rest};
use crate::upstream_groups::Origins;
use crate::upstream_link::UpstreamLink;

/// Bytes read from the file of a request body in one call.
const READ_MAX: usize = 64 * 1024;
/// Bytes of the shared buffer that are kept between requests.
const CHAIN_KEPT: usize = 256 * 1024;

impl Origins {
    /// Writes the connection's output, once.
    pub(crate) fn transmit_link<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(link) = self.links.table.get_mut(key) else { return };
        link.dirty = false;
        if self.transmit_handshake(key, env, exchanges) {
            return;
        }
        let Some(link) = self.links.table.get_mut(key) else { return };
        let sends = link.is_started && !link.blocked && !link.is_deaf;
        let Some(fetch) = link.fetch.filter(|_| sends) else { return };
        let mut bytes = 0;
        let alive = self.links.flush_link(key, &mut bytes, env)
            && self.send_more(key, fetch, &mut bytes, env);
        if !alive {
            return self.read_final_response(key, fetch, env, exchanges);
        }
        let Some(link) = self.links.table.get(key) else { return };
        let left = if !link.unsent.is_empty() {
            Left::Blocked
        } else if link.conn.is_request_sent() {
            Left::Nothing
        } else if link.conn.has_output() || link.conn.is_blocked() {
            Left::Blocked
        } else {
            Left::Unready
        };
        if link.unsent.is_empty() {
            let (is_broken, more) = (link.conn.is_broken(), link.conn.has_output());
            self.credit_request_body(fetch);
            if is_broken {
                return self.step_fetch(fetch, FetchWake::Unsendable, env, exchanges);
            }
            if more {
                self.links.mark_link(key);
            }
            self.links.end_tunnel_side(key, env);
        }
        self.step_fetch(fetch, FetchWake::Sent { bytes, left }, env, exchanges);
    }

    /// The server takes no more of the request. If it responded before it closed, that counts (RFC
    /// 9112 §9.5); otherwise the attempt has failed.
    fn read_final_response<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let mut bound = Bound::new();
        while bound.goes_on() {
            let Some(link) = self.links.table.get_mut(key) else { return };
            (link.is_deaf, link.readable) = (true, true);
            link.unsent.clear();
            let before = self.fetches.get(fetch).map(|live| live.fetch.received());
            self.receive_link(key, env, exchanges);
            let Some(live) = self.fetches.get(fetch).filter(|live| live.link == Some(key)) else {
                return;
            };
            if live.fetch.is_answering() {
                return;
            }
            if before == Some(live.fetch.received()) {
                break;
            }
        }
        self.step_fetch(fetch, FetchWake::SendFailed(EPIPE), env, exchanges);
    }

    /// Pulls and sends a part of the request; false if the connection is dead.
    fn send_more<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        bytes: &mut u64,
        env: &mut WorkerEnv<I>,
    ) -> bool {
        let Self { links, fetches, chain, .. } = self;
        let (Some(link), Some(live)) = (links.table.get_mut(key), fetches.get_mut(fetch)) else {
            return true;
        };
        if !link.unsent.is_empty() || !link.conn.has_output() {
            return true;
        }
        let is_plain = link.secured.is_none();
        chain.configure(
            if is_plain { CopyPolicy::Shared(SHARE_MIN) } else { CopyPolicy::Contiguous },
            false,
        );
        let spool = live.fetch.body_mut();
        let mut body = RequestBody { spool, io: &mut env.io, pulled: 0 };
        link.conn.transmit(SEND_PER_TURN, chain, fetch.to_bits(), &mut body);
        live.pulled += body.pulled;
        let len = chain.len();
        if len > 0 && link.queue_sealed(chain.contiguous().unwrap_or_default()) {
            chain.clear();
            chain.shrink(CHAIN_KEPT);
            return self.links.flush_link(key, bytes, env);
        }
        let sent =
            if len > 0 { env.io.send(link.fd, chain, AfterSend::Nothing) } else { Sent::Bytes(0) };
        if let Sent::Bytes(n) = sent {
            *bytes += n;
            if n < len {
                link.blocked = true;
                keep_rest(chain, n, &mut link.unsent);
            }
        }
        chain.clear();
        chain.shrink(CHAIN_KEPT);
        matches!(sent, Sent::Bytes(_))
    }
}

/// The request body of one fetch, and the `Io` that reads its file.
struct RequestBody<'a, I> {
    spool: &'a mut Spool,
    io: &'a mut I,
    pulled: u64,
}

impl<I: Io> BodySource for RequestBody<'_, I> {
    fn pull(&mut self, _user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let before = out.len();
        let piece = self.spool.pull(max, out);
        let pull = match piece {
            SpoolPiece::More => Pull::More,
            SpoolPiece::Pending => Pull::Pending,
            SpoolPiece::End => Pull::End,
            SpoolPiece::Broken => Pull::Broken,
            SpoolPiece::File { file, offset, len } => {
                let want = (len as usize).min(max).min(READ_MAX);
                let n =
                    out.push_with(want, |buffer| self.io.read(&file, offset, buffer).unwrap_or(0));
                self.spool.advance(n as u64);
                if n == 0 { Pull::Broken } else { Pull::More }
            }
        };
        self.pulled += out.len() - before;
        pull
    }
}
