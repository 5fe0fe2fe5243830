//! Connections to origins: calls, one read and one write per turn, and the watch over idle ones.
//!
//! ```text
//!            stands              Send              Release(Keep)
//!   Calling ───────▶ Standing ─────────▶ Busy ───────────────────▶ Idle ──Reuse──▶ Standing
//!      │ refused        │                 │ Release(Close, Abort)    │ hang-up, too old
//!      └────────────────┴─────────────────┴──────────────────────────┴──▶ (closed)
//! ```
//! A link belongs to one fetch or to the pool. Easiest to break: what is read is told to the fetch
//! that the link belongs to at that moment, and to none once it was released.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;

use bolide_base::limits::{RECEIVE_SIZE, SEND_PER_TURN};
use bolide_base::{CopyPolicy, Segment, SendChain, SlabKey, Spool, SpoolPiece};
use bolide_conf::model::{PeerAddress, Protocol};
use bolide_io::{Callee, ConnectCall, Fd, Interest, Io, Readiness, ReceivedBytes, Reset, Sent};
use bolide_upstream::{FetchFate, FetchWake, Left};
use bolide_wire::{BodySource, OriginConn, OriginError, OriginEvent, Pull, StreamOwner};

use crate::fetches::LiveFetch;
use crate::output::{SHARE_MIN, advance, keep_rest, segment_len};
use crate::throttle::Throttle;
use crate::tls_conn::Secured;
use crate::token::PollToken;
use crate::upstream_groups::Origins;
use crate::worker::Worker;

/// Bytes read from the file of a request body in one call.
const READ_MAX: usize = 64 * 1024;
/// Error numbers of Linux, for what the door tells without one.
const EPIPE: i32 = 32;
const ENOBUFS: i32 = 105;
const ECONNRESET: i32 = 104;
const EPROTO: i32 = 71;
/// Bytes of the shared buffer that are kept between requests.
const CHAIN_KEPT: usize = 256 * 1024;

/// A connection to an origin.
#[derive(Debug)]
pub(crate) struct UpstreamLink {
    pub(crate) fd: Fd,
    pub(crate) conn: OriginConn,
    /// Whose request it carries; the pool's if none.
    pub(crate) fetch: Option<SlabKey<LiveFetch>>,
    /// Who seals and opens; none: it is spoken in the clear.
    pub(crate) secured: Option<Box<Secured>>,
    /// The call was answered.
    pub(crate) stands: bool,
    /// A request is under way.
    is_started: bool,
    /// What the socket did not take.
    pub(crate) unsent: VecDeque<Segment>,
    /// The socket may hold bytes to read.
    pub(crate) readable: bool,
    /// The last send was not taken whole.
    pub(crate) blocked: bool,
    /// The origin was reported to have ended its side.
    pub(crate) hung_up: bool,
    /// It stands in the list of those that may write this turn.
    dirty: bool,
    /// It stands in the list of those that are read again.
    pub(crate) queued: bool,
    /// The pace at which the origin may be read, if that is limited.
    pub(crate) throttle: Option<Throttle>,
    /// The pace holds it, and the fetch was told.
    is_slowed: bool,
}

impl<I: Io> Worker<I> {
    /// Calls an origin on behalf of a fetch.
    pub(crate) fn call_origin(
        &mut self,
        fetch: SlabKey<LiveFetch>,
        to: &PeerAddress,
    ) -> Option<FetchWake> {
        let live = self.origins.fetches.get(fetch)?;
        let request = live.fetch.request();
        let conn = match request.protocol {
            Protocol::FastCgi => OriginConn::fcgi(),
            Protocol::Lsapi => OriginConn::lsapi(),
            Protocol::Http => OriginConn::http(),
        };
        let secured = match Secured::new(request, live.tls.as_ref()) {
            Ok(secured) => secured,
            Err(text) => return Some(FetchWake::Unprepared(text)),
        };
        let keeps_alive = request.settings.socket_keepalive;
        let callee = match to {
            PeerAddress::Inet(at) => Callee::Inet(*at),
            PeerAddress::Unix(path) => Callee::Unix(path.as_os_str().as_bytes()),
        };
        let from = request.from.as_ref().map(|from| from.at);
        let ConnectCall { fd, stands } = match self.io.connect(callee, from) {
            Ok(call) => call,
            Err(failure) if failure.call == "bind" => {
                return Some(FetchWake::BindFailed(failure.errno));
            }
            Err(failure) => return Some(FetchWake::ConnectFailed(failure.errno)),
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
            hung_up: false,
            dirty: false,
            queued: false,
            throttle: None,
            is_slowed: false,
        };
        let key = match self.origins.links.insert(link) {
            Ok(key) => key,
            Err(link) => {
                self.io.close(link.fd, Reset::No);
                return Some(FetchWake::ConnectFailed(ENOBUFS));
            }
        };
        if !self.io.watch(fd, PollToken::Link(key).pack(), Interest::Edge) {
            self.close_link(key);
            return Some(FetchWake::ConnectFailed(ENOBUFS));
        }
        if keeps_alive {
            self.io.keep_alive(fd);
        }
        self.origins.fetches.get_mut(fetch)?.link = Some(key);
        stands.then(|| self.greet(key))
    }

    /// Takes an idle connection back into use.
    pub(crate) fn reuse_link(&mut self, fetch: SlabKey<LiveFetch>, name: u64) -> Option<FetchWake> {
        let key = SlabKey::from_bits(name);
        let idle = self.origins.links.get_mut(key).filter(|link| link.fetch.is_none());
        let Some(link) = idle else { return Some(FetchWake::Gone) };
        let live = self.origins.fetches.get_mut(fetch)?;
        let mut byte = [0];
        let is_fit = match (live.fetch.request().protocol, &link.conn) {
            // What came since, reported or not, must not become the answer to this request.
            (Protocol::Http, OriginConn::Http(_)) => {
                link.is_as_secret(live.fetch.request().secure.as_deref())
                    && self.io.receive(link.fd, &mut byte) == ReceivedBytes::Blocked
            }
            (Protocol::FastCgi, OriginConn::Fcgi(_)) | (Protocol::Lsapi, OriginConn::Lsapi(_)) => {
                true
            }
            // A group may be asked by more than one protocol.
            _ => false,
        };
        if !is_fit {
            self.close_link(key);
            return Some(FetchWake::Gone);
        }
        link.fetch = Some(fetch);
        live.link = Some(key);
        Some(FetchWake::Connected(name))
    }

    /// Begins the request of a fetch on its connection.
    pub(crate) fn start_link(&mut self, fetch: SlabKey<LiveFetch>) {
        let now = self.now.mono;
        let Some((live, key, link)) = self.origins.with_link(fetch) else { return };
        let request = live.fetch.request();
        let settings = live.conn_settings();
        link.conn.start(&request.params, request.body_len, &settings);
        link.throttle =
            Throttle::new(bolide_engine::Rate { per_second: request.rate, after: 0 }, now);
        (link.is_started, live.pulled) = (true, 0);
        self.mark_link(key);
        // Origins that speak first, or have died, were reported before a fetch listened.
        self.read_again(key);
    }

    /// Lets go of the connection of a fetch.
    pub(crate) fn release_link(&mut self, fetch: SlabKey<LiveFetch>, fate: FetchFate) {
        let Some(live) = self.origins.fetches.get_mut(fetch) else { return };
        let Some(key) = live.link.take() else { return };
        let Some(link) = self.origins.links.get_mut(key) else { return };
        link.fetch = None;
        (link.is_started, link.throttle, link.is_slowed) = (false, None, false);
        let reusable = link.conn.is_idle() && link.unsent.is_empty() && !link.hung_up;
        match fate {
            FetchFate::Keep if reusable && !self.draining => {
                // What is there already would be taken for the answer to the next request.
                self.drop_idle(key);
                self.arm_links();
            }
            FetchFate::Keep => {
                self.origins.pools.forget(key.to_bits());
                self.close_link(key);
            }
            FetchFate::Close => self.close_link(key),
            FetchFate::Abort => {
                link.conn.abort();
                // Within a record of ours it could not be understood.
                if link.stands && link.unsent.is_empty() && link.secured.is_none() {
                    let chain = &mut self.origins.chain;
                    chain.configure(CopyPolicy::Contiguous, false);
                    link.conn.transmit(SEND_PER_TURN, chain, 0, &mut NoBody);
                    // An origin that has no room for a few bytes finds out by the close.
                    let _ = self.io.send(link.fd, chain);
                    chain.clear();
                }
                self.close_link(key);
            }
        }
    }

    /// Closes an idle connection.
    pub(crate) fn close_link(&mut self, key: SlabKey<UpstreamLink>) {
        if let Some(mut link) = self.origins.links.remove(key) {
            // Within a record of ours it could not be understood.
            if link.secured.is_some() && link.unsent.is_empty() {
                link.queue_goodbye();
                if let Some(goodbye) = link.unsent.front() {
                    let _ = self.io.send_segment(link.fd, goodbye);
                }
            }
            self.io.close(link.fd, Reset::No);
            self.note_freed();
        }
    }

    /// Something became possible on a connection to an origin.
    pub(crate) fn wake_link(&mut self, key: SlabKey<UpstreamLink>, report: Readiness) {
        let Some(link) = self.origins.links.get_mut(key) else { return };
        link.readable |= report.readable || report.hangup;
        link.hung_up |= report.hangup;
        if !link.stands {
            return self.conclude_call(key);
        }
        if link.fetch.is_none() {
            return self.drop_idle(key);
        }
        if report.writable && link.blocked {
            link.blocked = false;
            self.mark_link(key);
        }
        if !self.in_handshake(key, Self::receive_handshake) {
            self.receive_link(key);
        }
    }

    fn conclude_call(&mut self, key: SlabKey<UpstreamLink>) {
        let Some(link) = self.origins.links.get_mut(key) else { return };
        let Some(fetch) = link.fetch else { return self.close_link(key) };
        match self.io.connect_result(link.fd) {
            Ok(()) => {
                link.stands = true;
                let wake = self.greet(key);
                self.step_fetch(fetch, wake);
            }
            Err(errno) => {
                if let Some(live) = self.origins.fetches.get_mut(fetch) {
                    live.link = None;
                }
                self.close_link(key);
                self.step_fetch(fetch, FetchWake::ConnectFailed(errno));
            }
        }
    }

    /// An idle connection that says anything has ended, or is of no more use.
    fn drop_idle(&mut self, key: SlabKey<UpstreamLink>) {
        let Some(link) = self.origins.links.get_mut(key) else { return };
        if !link.readable {
            return;
        }
        let mut byte = [0];
        if self.io.receive(link.fd, &mut byte) == ReceivedBytes::Blocked {
            link.readable = false;
            return;
        }
        self.origins.pools.forget(key.to_bits());
        self.close_link(key);
    }

    /// Closes what has been idle for too long, and arms the next look.
    pub(crate) fn expire_links(&mut self) {
        while let Some(name) = self.origins.pools.expire(self.now.mono) {
            self.close_idle(name);
        }
        self.arm_links();
    }

    /// Closes an idle connection that the pool no longer knows.
    pub(crate) fn close_idle(&mut self, name: u64) {
        let key = SlabKey::from_bits(name);
        if self.origins.links.get(key).is_some_and(|link| link.fetch.is_none()) {
            self.close_link(key);
        }
    }

    /// Sees to it that idle connections are looked at in time.
    pub(crate) fn arm_links(&mut self) {
        if let Some(at) = self.origins.pools.next_expiry() {
            self.wheel.arm(&mut self.origins.armed, at, PollToken::Links.pack());
        }
    }

    /// Lets a connection be read though nothing is reported.
    pub(crate) fn read_again(&mut self, key: SlabKey<UpstreamLink>) {
        if let Some(link) = self.origins.links.get_mut(key)
            && link.readable
            && !link.queued
        {
            link.queued = true;
            self.origins.again.push(key);
        }
    }

    /// One read, if the reader of the answer has room.
    pub(crate) fn receive_link(&mut self, key: SlabKey<UpstreamLink>) {
        let Some(link) = self.origins.links.get_mut(key) else { return };
        let Some(fetch) = link.fetch.filter(|_| link.is_started && link.readable) else { return };
        if !self.may_read(fetch) || self.tell_early(key, fetch) {
            return;
        }
        let Some(room) = self.room_of(key, fetch) else { return };
        let Some(link) = self.origins.links.get_mut(key) else { return };
        let scratch = self.scratch.received(0..room);
        match self.io.receive(link.fd, scratch) {
            ReceivedBytes::Bytes(n) => {
                link.readable = n == room || link.hung_up;
                if link.secured.is_some() {
                    return self.receive_sealed(key, fetch, n);
                }
                if let Some(throttle) = &mut link.throttle {
                    throttle.advance(n as u64);
                }
                let result = link.conn.receive(&scratch[..n], &mut self.origins.events);
                self.step_fetch(fetch, FetchWake::Received(n as u64));
                self.tell_fetch(key, fetch, result.map(drop));
                self.read_again(key);
            }
            ReceivedBytes::Blocked => link.readable = false,
            ReceivedBytes::End => {
                (link.readable, link.hung_up) = (false, true);
                let result = link.conn.handle_eof(&mut self.origins.events);
                self.tell_fetch(key, fetch, result);
            }
            ReceivedBytes::Dead => {
                (link.readable, link.hung_up) = (false, true);
                self.step_fetch(fetch, FetchWake::ReceiveFailed(ECONNRESET));
            }
        }
    }

    /// Whether the exchange has room for more of the answer; it is woken when it has again.
    fn may_read(&mut self, fetch: SlabKey<LiveFetch>) -> bool {
        let Some(live) = self.origins.fetches.get(fetch) else { return false };
        if live.is_filling() {
            return true;
        }
        let waiting = live.exchange.and_then(|key| self.core.exchanges.get_mut(key));
        // No exchange waits for what an upstream server says to a client that has left.
        let Some(waiting) = waiting else { return true };
        if waiting.exchange.wants_origin() {
            return true;
        }
        if !waiting.paused {
            waiting.paused = true;
            if let Some(key) = live.exchange {
                self.watch_stall(key);
            }
            self.step_fetch(fetch, FetchWake::Paused);
        }
        false
    }

    /// Bytes that may be read now; none while the pace of the origin holds it.
    fn room_of(&mut self, key: SlabKey<UpstreamLink>, fetch: SlabKey<LiveFetch>) -> Option<usize> {
        let now = self.now.mono;
        let link = self.origins.links.get_mut(key)?;
        let Some(throttle) = &link.throttle else { return Some(RECEIVE_SIZE) };
        let room = throttle.allowed(now).min(RECEIVE_SIZE);
        let was_slowed = std::mem::replace(&mut link.is_slowed, room == 0);
        if room == 0 {
            self.wheel.arm_once(throttle.next(now), PollToken::Link(key).pack());
        }
        match (was_slowed, room == 0) {
            (false, true) => self.step_fetch(fetch, FetchWake::Paused),
            (true, false) => self.step_fetch(fetch, FetchWake::Resumed),
            _ => {}
        }
        (room > 0).then_some(room)
    }

    /// Tells a fetch what was heard, as long as the connection is its own.
    pub(crate) fn tell_fetch(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        result: Result<(), OriginError>,
    ) {
        let mut events = std::mem::take(&mut self.origins.events);
        let is_http = |link: &UpstreamLink| matches!(link.conn, OriginConn::Http(_));
        if matches!(result, Err(OriginError::Invalid(_)))
            && self.origins.links.get(key).is_some_and(is_http)
            && events.iter().any(|event| matches!(event, OriginEvent::Head(_)))
        {
            // A client that has nothing yet gets an honest error.
            events.clear();
        }
        let broken = result.err().map(FetchWake::Broken);
        for wake in events.drain(..).map(FetchWake::Event).chain(broken) {
            if self.origins.fetches.get(fetch).is_none_or(|live| live.link != Some(key)) {
                break;
            }
            self.step_fetch(fetch, wake);
        }
        self.origins.events = events;
    }

    /// Puts a connection among those that may write this turn.
    pub(crate) fn mark_link(&mut self, key: SlabKey<UpstreamLink>) {
        if let Some(link) = self.origins.links.get_mut(key)
            && !link.dirty
        {
            link.dirty = true;
            self.origins.dirty.push(key);
        }
    }

    /// Writes what a connection has to say, once.
    pub(crate) fn transmit_link(&mut self, key: SlabKey<UpstreamLink>) {
        let Some(link) = self.origins.links.get_mut(key) else { return };
        link.dirty = false;
        if self.in_handshake(key, Self::transmit_handshake) {
            return;
        }
        let Some(link) = self.origins.links.get_mut(key) else { return };
        let Some(fetch) = link.fetch.filter(|_| link.is_started && !link.blocked) else { return };
        let mut bytes = 0;
        let alive = self.flush_link(key, &mut bytes) && self.send_more(key, fetch, &mut bytes);
        if !alive {
            return self.step_fetch(fetch, FetchWake::SendFailed(EPIPE));
        }
        let Some(link) = self.origins.links.get(key) else { return };
        let left = if !link.unsent.is_empty() {
            Left::Blocked
        } else if link.conn.is_request_sent() {
            Left::Nothing
        } else if link.conn.has_output() {
            Left::Blocked
        } else {
            Left::Unready
        };
        if link.unsent.is_empty() {
            let (is_broken, more) = (link.conn.is_broken(), link.conn.has_output());
            self.give_room_back(fetch);
            if is_broken {
                return self.step_fetch(fetch, FetchWake::SendFailed(EPROTO));
            }
            if more {
                self.mark_link(key);
            }
            self.end_tunnel_side(key);
        }
        self.step_fetch(fetch, FetchWake::Sent { bytes, left });
    }

    /// Tells the origin of a tunnel that the client has nothing more to say.
    fn end_tunnel_side(&mut self, key: SlabKey<UpstreamLink>) {
        let Some(link) = self.origins.links.get_mut(key) else { return };
        if link.conn.is_tunnel() && link.conn.is_request_sent() {
            link.queue_goodbye();
            let fd = link.fd;
            self.flush_link(key, &mut 0);
            self.io.shut_write(fd);
        }
    }

    /// Sends what earlier turns left over; false when the connection is dead.
    pub(crate) fn flush_link(&mut self, key: SlabKey<UpstreamLink>, bytes: &mut u64) -> bool {
        let Some(link) = self.origins.links.get_mut(key) else { return false };
        while let Some(segment) = link.unsent.front_mut() {
            let len = segment_len(segment);
            match self.io.send_segment(link.fd, segment) {
                Sent::Bytes(n) if n < len => {
                    advance(segment, n);
                    link.blocked = true;
                    *bytes += link.credit(n);
                    return true;
                }
                Sent::Bytes(n) => {
                    link.unsent.pop_front();
                    *bytes += link.credit(n);
                }
                Sent::Dead | Sent::FileFailed => return false,
            }
        }
        true
    }

    /// Pulls and sends some of the request; false when the connection is dead.
    fn send_more(
        &mut self,
        key: SlabKey<UpstreamLink>,
        fetch: SlabKey<LiveFetch>,
        bytes: &mut u64,
    ) -> bool {
        let Origins { links, fetches, chain, .. } = &mut self.origins;
        let (Some(link), Some(live)) = (links.get_mut(key), fetches.get_mut(fetch)) else {
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
        let mut body = RequestBody { spool, io: &mut self.io, pulled: 0 };
        link.conn.transmit(SEND_PER_TURN, chain, fetch.to_bits(), &mut body);
        live.pulled += body.pulled;
        let len = chain.len();
        if len > 0 && link.queue_sealed(chain.contiguous().unwrap_or_default()) {
            chain.clear();
            chain.shrink(CHAIN_KEPT);
            return self.flush_link(key, bytes);
        }
        let sent = if len > 0 { self.io.send(link.fd, chain) } else { Sent::Bytes(0) };
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

/// The request body of one fetch, and the door through which its file is read.
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

/// A body that gives nothing.
struct NoBody;

impl BodySource for NoBody {
    fn pull(&mut self, _user: StreamOwner, _max: usize, _out: &mut SendChain) -> Pull {
        Pull::Pending
    }
}
