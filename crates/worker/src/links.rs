//! Upstream connections: connecting, one read per turn, and idle ones.
//!
//! ```text
//!            connected           Send              Release(Keep)
//!   Connecting ────▶ Connected ────────▶ Busy ───────────────────▶ Idle ──Reuse──▶ Connected
//!      │ refused        │                 │ Release(Close, Abort)    │ hang-up, too old
//!      └────────────────┴─────────────────┴──────────────────────────┴──▶ (closed)
//! ```
//!
//! A link belongs to one fetch or to the pool. Easiest to break: received bytes go to the fetch
//! that owns the link at that moment, and to none after its release.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use bolide_base::SlabKey;
use bolide_base::errno::{ECONNRESET, EPIPE};
use bolide_base::limits::RECEIVE_SIZE;
use bolide_conf::model::{PeerAddress, Protocol};
use bolide_io::{Callee, ConnectCall, FileFailure, Interest, Io, Readiness, ReceivedBytes, Reset};
use bolide_upstream::{CallHindrance, FetchFate, FetchWake};
use bolide_wire::{OriginConn, OriginError, OriginEvent};

use crate::descriptors::is_out_of_descriptors;
use crate::env::WorkerEnv;
use crate::exchange_table::Exchanges;
use crate::fetches::LiveFetch;
use crate::throttle::Throttle;
use crate::tls_conn::LinkTls;
use crate::token::PollToken;
use crate::upstream_groups::Origins;
use crate::upstream_link::UpstreamLink;

/// The pause between two looks whether the followers of a fill have taken what has come.
const FOLLOWERS_PAUSE: Duration = Duration::from_millis(20);

/// Who is to blame where a call failed: `connect` is answered by the other side, or by the way
/// there; all before it is had on this one.
fn not_called(failure: FileFailure) -> FetchWake {
    match failure.call {
        "socket" => FetchWake::NotCalled(CallHindrance::Socket(failure.errno)),
        "bind" => FetchWake::NotCalled(CallHindrance::Bind(failure.errno)),
        _ => FetchWake::ConnectFailed(failure.errno),
    }
}

impl Origins {
    /// Connects to an upstream server for a fetch.
    pub(crate) fn call_origin<I: Io>(
        &mut self,
        fetch: SlabKey<LiveFetch>,
        to: &PeerAddress,
        env: &mut WorkerEnv<I>,
    ) -> Option<FetchWake> {
        let live = self.fetches.get(fetch)?;
        let request = live.fetch.request();
        let conn = match request.protocol {
            Protocol::FastCgi => OriginConn::fcgi(),
            Protocol::Lsapi => OriginConn::lsapi(),
            Protocol::Http => OriginConn::http(),
            Protocol::Memcached => OriginConn::memcached(),
            Protocol::Http2 => OriginConn::http2(),
            Protocol::Uwsgi | Protocol::Scgi => OriginConn::per_request(),
        };
        let secured = match LinkTls::new(request, to, live.tls.as_ref()) {
            Ok(secured) => secured,
            Err(text) => return Some(FetchWake::Unprepared(text)),
        };
        let keeps_alive = request.settings.socket_keepalive;
        let callee = match to {
            PeerAddress::Inet(at) => Callee::Inet(*at),
            PeerAddress::Unix(path) => Callee::Unix(path.as_os_str().as_bytes()),
        };
        let from = request.from.as_ref().map(|from| from.at);
        let mut called = env.with_room(|io| io.connect(callee, from));
        if called.as_ref().is_err_and(is_out_of_descriptors) && self.links.give_up_idle(env) {
            called = env.io.connect(callee, from);
        }
        let ConnectCall { fd, stands } = match called {
            Ok(call) => call,
            Err(failure) => return Some(not_called(failure)),
        };
        let link = UpstreamLink {
            fd,
            conn,
            fetch: Some(fetch),
            secured,
            stands,
            is_started: false,
            unsent: VecDeque::new(),
            readable: false,
            blocked: false,
            is_deaf: false,
            hung_up: false,
            dirty: false,
            queued: false,
            throttle: None,
            is_slowed: false,
        };
        let key = match self.links.table.insert(link) {
            Ok(key) => key,
            Err(link) => {
                env.io.close(link.fd, Reset::No);
                return Some(FetchWake::NotCalled(CallHindrance::Full));
            }
        };
        if !env.io.watch(fd, PollToken::Link(key).pack(), Interest::Edge) {
            self.links.close_link(key, env);
            return Some(FetchWake::NotCalled(CallHindrance::Watch));
        }
        if keeps_alive {
            env.io.keep_alive(fd);
        }
        self.fetches.get_mut(fetch)?.link = Some(key);
        stands.then(|| self.links.greet(key))
    }

    /// Takes an idle connection for a fetch.
    pub(crate) fn reuse_link<I: Io>(
        &mut self,
        fetch: SlabKey<LiveFetch>,
        name: u64,
        env: &mut WorkerEnv<I>,
    ) -> Option<FetchWake> {
        let key = SlabKey::from_bits(name);
        self.links.settle_idle(key, env);
        let idle = self.links.table.get_mut(key).filter(|link| link.fetch.is_none());
        let Some(link) = idle else { return Some(FetchWake::Gone) };
        let live = self.fetches.get_mut(fetch)?;
        let mut byte = [0];
        let is_fit = match (live.fetch.request().protocol, &link.conn) {
            // Bytes that arrived since must not become the response to this request.
            (Protocol::Http, OriginConn::Http(_)) => {
                link.is_as_secret(live.fetch.request().secure.as_deref())
                    && env.io.receive(link.fd, &mut byte) == ReceivedBytes::Blocked
            }
            (Protocol::FastCgi, OriginConn::Fcgi(_)) | (Protocol::Lsapi, OriginConn::Lsapi(_)) => {
                true
            }
            (Protocol::Memcached, OriginConn::Memcached(_)) => {
                env.io.receive(link.fd, &mut byte) == ReceivedBytes::Blocked
            }
            (Protocol::Http2, OriginConn::Http2(_)) => {
                link.is_as_secret(live.fetch.request().secure.as_deref())
            }
            (Protocol::Uwsgi | Protocol::Scgi, _) | (_, OriginConn::PerRequest(_)) => false,
            // A group may be used with several protocols.
            (
                Protocol::Http
                | Protocol::FastCgi
                | Protocol::Lsapi
                | Protocol::Memcached
                | Protocol::Http2,
                OriginConn::Http(_)
                | OriginConn::Fcgi(_)
                | OriginConn::Lsapi(_)
                | OriginConn::Memcached(_)
                | OriginConn::Http2(_),
            ) => false,
        };
        if !is_fit {
            self.links.close_link(key, env);
            return Some(FetchWake::Gone);
        }
        debug_assert!(link.stands && !link.is_started, "what is idle stands and asks nothing");
        debug_assert!(live.link.is_none(), "a fetch has one link");
        link.fetch = Some(fetch);
        live.link = Some(key);
        Some(FetchWake::Connected(name))
    }

    /// Begins the request of a fetch on its connection.
    pub(crate) fn start_link<I: Io>(&mut self, fetch: SlabKey<LiveFetch>, env: &mut WorkerEnv<I>) {
        let now = env.now.mono;
        let Some((live, key, link)) = self.with_link(fetch) else { return };
        debug_assert!(link.stands && !link.is_started, "a link asks one thing at a time");
        debug_assert!(
            link.secured.as_ref().is_none_or(|secured| secured.is_good),
            "no request begins before the origin was judged"
        );
        let request = live.fetch.request();
        let settings = live.conn_settings();
        link.conn.start(&request.message, request.body_len, &settings);
        link.throttle = Throttle::new(request.rate, now);
        (link.is_started, live.pulled) = (true, 0);
        self.links.mark_link(key);
        // A server that spoke first or hung up was reported before the fetch owned the link.
        self.links.read_again(key);
    }

    /// Releases the connection of a fetch.
    pub(crate) fn release_link<I: Io>(
        &mut self,
        fetch: SlabKey<LiveFetch>,
        fate: FetchFate,
        env: &mut WorkerEnv<I>,
    ) {
        let Some(live) = self.fetches.get_mut(fetch) else { return };
        let Some(key) = live.link.take() else { return };
        let Some(link) = self.links.table.get_mut(key) else { return };
        debug_assert!(link.fetch == Some(fetch), "a link serves one fetch");
        link.fetch = None;
        (link.is_started, link.throttle, link.is_slowed) = (false, None, false);
        if fate == FetchFate::Keep {
            self.links.answer_idle(key, env);
        }
        let Some(link) = self.links.table.get_mut(key) else { return };
        let reusable =
            link.conn.is_idle() && link.unsent.is_empty() && !link.hung_up && !link.is_deaf;
        match fate {
            FetchFate::Keep if reusable && !env.draining => {
                // Bytes that have arrived already would be taken for the next response.
                self.links.drop_idle(key, env);
                self.links.arm_links(env);
            }
            FetchFate::Keep => {
                self.links.pools.forget(key.to_bits());
                self.links.close_link(key, env);
            }
            FetchFate::Close => self.links.close_link(key, env),
            FetchFate::Abort => {
                link.conn.abort();
                // In the middle of a TLS record, or of what came before, it could not be
                // understood. Without room for a few bytes, the close has to do.
                if link.stands && !link.is_handshaking() && link.unsent.is_empty() && !link.is_deaf
                {
                    self.links.speak(key, env);
                }
                self.links.close_link(key, env);
            }
        }
    }

    /// Handles a readiness report of an upstream connection.
    pub(crate) fn wake_link<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        report: Readiness,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(link) = self.links.table.get_mut(key) else { return };
        link.readable |= report.readable || report.hangup;
        link.hung_up |= report.hangup;
        if !link.stands {
            return self.conclude_call(key, env, exchanges);
        }
        if link.fetch.is_none() {
            return self.links.drop_idle(key, env);
        }
        if report.writable && link.blocked {
            link.blocked = false;
            self.links.mark_link(key);
        }
        self.read_link(key, env, exchanges);
    }

    /// Continues the handshake, or reads the response.
    pub(crate) fn read_link<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        if !self.receive_handshake(key, env, exchanges) {
            self.receive_link(key, env, exchanges);
        }
    }

    fn conclude_call<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(link) = self.links.table.get_mut(key) else { return };
        let Some(fetch) = link.fetch else { return self.links.close_link(key, env) };
        match env.io.connect_result(link.fd) {
            Ok(()) => {
                link.stands = true;
                let wake = self.links.greet(key);
                self.step_fetch(fetch, wake, env, exchanges);
            }
            Err(errno) => {
                if let Some(live) = self.fetches.get_mut(fetch) {
                    live.link = None;
                }
                self.links.close_link(key, env);
                self.step_fetch(fetch, FetchWake::ConnectFailed(errno), env, exchanges);
            }
        }
    }

    /// One read, if the reader of the response has room.
    pub(crate) fn receive_link<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(link) = self.links.table.get_mut(key) else { return };
        let Some(fetch) = link.fetch.filter(|_| link.is_started && link.readable) else { return };
        if !self.may_read(fetch, env, exchanges) || self.pass_early_data(key, fetch, env, exchanges)
        {
            return;
        }
        let Some(room) = self.room_of(key, fetch, env, exchanges) else { return };
        let Some(link) = self.links.table.get_mut(key) else { return };
        let scratch = env.scratch.received(0..room);
        match env.io.receive(link.fd, scratch) {
            ReceivedBytes::Bytes(n) => {
                link.readable = n == room || link.hung_up;
                if link.secured.is_some() {
                    return self.receive_sealed(key, fetch, n, env, exchanges);
                }
                if let Some(throttle) = &mut link.throttle {
                    throttle.advance(n as u64);
                }
                let result = link.conn.receive(&scratch[..n], &mut self.events);
                self.links.mark_answers(key);
                self.step_fetch(fetch, FetchWake::Received(n as u64), env, exchanges);
                self.pass_events(key, fetch, result.map(drop), env, exchanges);
                self.links.read_again(key);
            }
            ReceivedBytes::Blocked => link.readable = false,
            ReceivedBytes::End | ReceivedBytes::Dead
                if link.is_deaf
                    && self.fetches.get(fetch).is_some_and(|live| !live.fetch.is_answering()) =>
            {
                (link.readable, link.hung_up) = (false, true);
                self.step_fetch(fetch, FetchWake::SendFailed(EPIPE), env, exchanges);
            }
            ReceivedBytes::End if !link.is_deaf => {
                (link.readable, link.hung_up) = (false, true);
                let is_proved = link.secured.as_ref().is_none_or(|it| it.session.peer_closed());
                let result = link.conn.handle_eof(&mut self.events);
                if result.is_ok() && !is_proved {
                    self.doubt_end(fetch, env);
                }
                self.pass_events(key, fetch, result, env, exchanges);
            }
            // After a write that failed by a reset, the kernel only reports the end.
            ReceivedBytes::End | ReceivedBytes::Dead => {
                (link.readable, link.hung_up) = (false, true);
                self.step_fetch(fetch, FetchWake::ReceiveFailed(ECONNRESET), env, exchanges);
            }
        }
    }

    /// Whether the exchange has room for more of the response; it is woken when it has again.
    fn may_read<I: Io>(
        &mut self,
        fetch: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) -> bool {
        let Some(live) = self.fetches.get(fetch) else { return false };
        if live.feeds_store() {
            return true;
        }
        let waiting = live.exchange.and_then(|key| exchanges.live.get_mut(key));
        // No exchange waits for a response whose client is gone.
        let Some(waiting) = waiting else { return true };
        if waiting.exchange.response_body().wants_origin() {
            return true;
        }
        if !waiting.paused {
            waiting.paused = true;
            if let Some(key) = live.exchange
                && let Some(at) = exchanges.watch_stall(key, env.now.mono)
            {
                env.wake_at(at, PollToken::Stall(key));
            }
            self.step_fetch(fetch, FetchWake::Paused, env, exchanges);
        }
        false
    }

    /// Bytes that may be read now; none while the rate limit (`proxy_limit_rate`) delays it, or
    /// requests that follow the fill are behind.
    fn room_of<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) -> Option<usize> {
        let now = env.now.mono;
        let is_ahead = self.fetches.get(fetch)?.awaits_followers(env.now);
        let link = self.links.table.get_mut(key)?;
        let (room, next) = match &link.throttle {
            _ if is_ahead => (0, now.after(FOLLOWERS_PAUSE)),
            None if !link.is_slowed => return Some(RECEIVE_SIZE),
            None => (RECEIVE_SIZE, now),
            Some(throttle) => (throttle.allowed(now).min(RECEIVE_SIZE), throttle.next(now)),
        };
        let was_slowed = std::mem::replace(&mut link.is_slowed, room == 0);
        if room == 0 {
            env.wheel.arm_once(next, PollToken::Link(key).pack());
        }
        match (was_slowed, room == 0) {
            (false, true) => self.step_fetch(fetch, FetchWake::Paused, env, exchanges),
            (true, false) => self.step_fetch(fetch, FetchWake::Resumed, env, exchanges),
            _ => {}
        }
        (room > 0).then_some(room)
    }

    /// Passes events to the fetch that owns the connection.
    pub(crate) fn pass_events<I: Io>(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        result: Result<(), OriginError>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let mut events = std::mem::take(&mut self.events);
        let is_http = |link: &UpstreamLink| matches!(link.conn, OriginConn::Http(_));
        if matches!(result, Err(OriginError::Invalid(_)))
            && self.links.table.get(key).is_some_and(is_http)
            && events.iter().any(|event| matches!(event, OriginEvent::Head(_)))
        {
            // A client without a response head gets an error.
            events.clear();
        }
        let broken = result.err().map(FetchWake::Broken);
        for wake in events.drain(..).map(FetchWake::Event).chain(broken) {
            if self.fetches.get(fetch).is_none_or(|live| live.link != Some(key)) {
                break;
            }
            self.step_fetch(fetch, wake, env, exchanges);
        }
        self.events = events;
    }
}
