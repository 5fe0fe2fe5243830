//! TLS on upstream connections: the handshake before the first request, then records.
//!
//! ```text
//!            connected            handshake, verdict           Send
//!   Connecting ────▶ Handshaking ────────────────────▶ Connected ──▶ Busy …
//!                        └── refused, bad, late ──▶ (closed)
//! ```
//!
//! Easiest to break: everything that is sent over TLS is encrypted on every path; and no request
//! begins before the server was verified.

use bolide_base::SlabKey;
use bolide_io::{Io, ReceivedBytes};
use bolide_upstream::FetchWake;

use crate::env::WorkerEnv;
use crate::exchange_table::Exchanges;
use crate::fetches::LiveFetch;
use crate::upstream_groups::Origins;
use crate::upstream_link::UpstreamLink;

impl Origins {
    /// Writes handshake bytes, if the link is in its handshake.
    pub(crate) fn transmit_handshake<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) -> bool {
        let Some(fetch) = self.links.in_handshake(key) else { return false };
        let Some(link) = self.links.table.get(key) else { return false };
        let alive = link.blocked || self.links.flush_link(key, &mut 0, env);
        if !alive {
            let text = "peer closed connection in SSL handshake (32: Broken pipe)";
            self.step_fetch(fetch, FetchWake::Insecure(text.to_owned()), env, exchanges);
        }
        true
    }

    /// Continues the handshake, if the link is in it.
    pub(crate) fn receive_handshake<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) -> bool {
        let fetch = self.links.in_handshake(key);
        if let Some(fetch) = fetch {
            self.read_handshake(key, fetch, env, exchanges);
        }
        fetch.is_some()
    }

    /// Reads handshake bytes, and verifies the server at the end.
    fn read_handshake<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(link) = self.links.table.get_mut(key) else { return };
        if !link.readable {
            return;
        }
        let room = bolide_base::limits::RECEIVE_SIZE;
        let scratch = env.scratch.received(0..room);
        let n = match env.io.receive(link.fd, scratch) {
            ReceivedBytes::Bytes(n) => n,
            ReceivedBytes::Blocked => {
                link.readable = false;
                return;
            }
            end @ (ReceivedBytes::End | ReceivedBytes::Dead) => {
                (link.readable, link.hung_up) = (false, true);
                let why = match end {
                    ReceivedBytes::Dead => " (104: Connection reset by peer)",
                    _ => "",
                };
                let text = format!("peer closed connection in SSL handshake{why}");
                return self.step_fetch(fetch, FetchWake::Insecure(text), env, exchanges);
            }
        };
        let Some(secured) = &mut link.secured else { return };
        let received = secured.session.receive(&scratch[..n], &mut secured.early);
        let fault = match received {
            Err(fault) => Some(format!("SSL_do_handshake() failed ({fault})")),
            Ok(()) if secured.session.is_handshaking() => None,
            Ok(()) => {
                let verdict = secured.session.verdict();
                secured.is_good = verdict.is_none();
                verdict
            }
        };
        let is_good = secured.is_good;
        // A response that came along has to be read even if the socket is empty.
        link.readable = n == room || link.hung_up || !secured.early.is_empty();
        link.queue_own_words();
        if let Some(text) = fault {
            // The alert tells the server why; without room for it, the close has to do.
            self.links.flush_link(key, &mut 0, env);
            return self.step_fetch(fetch, FetchWake::Insecure(text), env, exchanges);
        }
        self.links.mark_link(key);
        self.links.read_again(key);
        if is_good {
            self.step_fetch(fetch, FetchWake::Connected(key.to_bits()), env, exchanges);
        }
    }

    /// Whether the server sent data before the request; passes it on now.
    pub(crate) fn pass_early_data<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) -> bool {
        let secured = self.links.table.get(key).and_then(|link| link.secured.as_ref());
        let has_some = secured.is_some_and(|secured| !secured.early.is_empty());
        if has_some {
            self.receive_sealed(key, fetch, 0, env, exchanges);
        }
        has_some
    }

    /// Decrypts `n` bytes of records in the scratch buffer.
    pub(crate) fn receive_sealed<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        n: usize,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Self { links, plain, events, .. } = self;
        let Some(link) = links.table.get_mut(key) else { return };
        let Some(secured) = &mut link.secured else { return };
        plain.clear();
        plain.append(&mut secured.early);
        let opened = secured.session.receive(&env.scratch.received[..n], plain);
        let is_over = secured.session.peer_closed();
        let bytes = plain.len() as u64;
        let result = link.conn.receive(plain, events).map(drop);
        if let Some(throttle) = &mut link.throttle {
            throttle.advance(bytes);
        }
        link.queue_own_words();
        let has_words = !link.unsent.is_empty();
        // A failed session serves no other request, whatever happens to this one.
        if is_over || opened.is_err() {
            (link.readable, link.hung_up) = (false, true);
        }
        if has_words {
            self.links.mark_link(key);
        }
        self.links.mark_answers(key);
        if bytes > 0 {
            self.step_fetch(fetch, FetchWake::Received(bytes), env, exchanges);
        }
        self.pass_events(key, fetch, result, env, exchanges);
        if !self.owns(fetch, key) {
            return;
        }
        if let Err(fault) = opened {
            let text = format!("SSL_read() failed ({fault})");
            return self.step_fetch(fetch, FetchWake::Insecure(text), env, exchanges);
        }
        if is_over {
            let Some(link) = self.links.table.get_mut(key) else { return };
            let result = link.conn.handle_eof(&mut self.events);
            return self.pass_events(key, fetch, result, env, exchanges);
        }
        self.links.read_again(key);
    }

    fn owns(&self, fetch: SlabKey<LiveFetch>, key: SlabKey<UpstreamLink>) -> bool {
        self.fetches.get(fetch).is_some_and(|live| live.link == Some(key))
    }
}
