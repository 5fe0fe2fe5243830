//! From framing events to exchanges and back.

use base::Key;
use engine::{ConnInfo, Ctx, Exchange, SiteRef, TlsFacts, Wake};
use http::{RequestBody, RequestHead};
use io::Io;
use wire::{Event, StreamId, User};

use crate::Generation;
use crate::quic_conn::QuicConn;
use crate::tcp::TcpConn;
use crate::throttle::Throttle;
use crate::worker::Worker;

/// Exchanges kept for reuse, so that a warm worker allocates none.
const SPARE_MAX: usize = 1024;

/// Which connection an exchange answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// HTTP/1 or HTTP/2.
    Tcp(Key<TcpConn>),
    /// HTTP/3.
    Quic(Key<QuicConn>),
}

/// An exchange in flight, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) exchange: Box<Exchange>,
    pub(crate) owner: Owner,
    pub(crate) stream: StreamId,
    /// The pace of its answer, if that is limited.
    pub(crate) throttle: Option<Throttle>,
}

/// What the request line of HTTP spoken to a TLS socket is answered with (nginx's 497).
const PLAIN_ON_TLS: engine::Refusal =
    engine::Refusal { status: 497, reason: "client sent plain HTTP request to HTTPS port" };

impl<I: Io> Worker<I> {
    /// Handles what the framing of a connection has told.
    pub(crate) fn handle_events(&mut self, owner: Owner) {
        while !self.scratch.events.is_empty() {
            let mut events = std::mem::take(&mut self.scratch.events);
            for event in events.drain(..) {
                self.handle_event(owner, event);
            }
            // Steps may have told more; that stands in a new list, which is handled next.
            if self.scratch.events.is_empty() {
                self.scratch.events = events;
            }
        }
    }

    /// Handles one event of a connection.
    pub(crate) fn handle_event(&mut self, owner: Owner, event: Event) {
        match event {
            Event::Request { stream, head } => {
                let refused = match owner {
                    Owner::Tcp(key) => self.conns.get(key).is_some_and(|conn| conn.plain_on_tls),
                    Owner::Quic(_) => false,
                };
                let wake = if refused { Wake::Refused(PLAIN_ON_TLS) } else { Wake::Start };
                self.begin(owner, stream, head, wake);
            }
            Event::Refused { stream, head, refusal } => {
                if let Owner::Tcp(key) = owner
                    && self.is_broken_preface(key, &head)
                {
                    self.core.heads.put(head);
                    return self.close(key, io::Reset::No);
                }
                let wake = Wake::Refused(convert(refusal));
                self.begin(owner, stream, head, wake);
            }
            Event::Body { user, bytes } => self.wake(user, Wake::Body(bytes)),
            Event::BodyEnd { user } => self.wake(user, Wake::BodyEnd),
            Event::BodyRefused { user, refusal } => {
                self.wake(user, Wake::BodyRefused(convert(refusal)));
            }
            Event::Reset { user } => self.wake(user, Wake::ClientGone),
            Event::Sent { user, body_bytes } => {
                self.wake(user, Wake::Sent { body_bytes, head_bytes: 0 });
            }
        }
    }

    /// Whether the first line of a connection that may speak HTTP/2 in the clear is neither its
    /// preface nor like any request: three words, no path, no version. RFC 9113 §3.4: such a
    /// connection is closed; a page in HTTP/1 would be read as a frame.
    fn is_broken_preface(&self, key: Key<TcpConn>, head: &RequestHead) -> bool {
        let mut words = head.line.split(|&byte| byte == b' ');
        let shape = (words.next(), words.next(), words.next(), words.next());
        let (Some(_), Some(path), Some(version), None) = shape else { return false };
        let unlike = !path.contains(&b'/') && !version.contains(&b'/');
        unlike
            && self.conns.get(key).is_some_and(|conn| {
                let first = conn.framing.as_ref().is_some_and(|framing| framing.requests() <= 1);
                let clear = conn.session.is_none() && !conn.plain_on_tls;
                first && clear && conn.settings().http2
            })
    }

    /// Wakes an exchange, or keeps the wake for after its start.
    fn wake(&mut self, user: User, wake: Wake) {
        let key = Key::from_bits(user);
        let early = &mut self.scratch.early;
        if !early.iter().any(|(waiting, _)| *waiting == key) {
            return self.step(key, wake);
        }
        if let Wake::BodyRefused(refusal) = wake {
            // The answer had not begun: it is the refusal, as if the head had been broken.
            early.retain(|(waiting, _)| *waiting != key);
            early.push((key, Wake::Refused(refusal)));
        } else {
            early.push((key, wake));
        }
    }

    /// Starts exchanges whose request bodies came with their heads, so that a body which breaks the
    /// rules at once is answered as nginx answers it.
    pub(crate) fn start_early(&mut self) {
        let mut early = std::mem::take(&mut self.scratch.early);
        for (key, wake) in early.drain(..) {
            self.step(key, wake);
        }
        self.scratch.early = early;
    }

    fn begin(&mut self, owner: Owner, stream: StreamId, head: Box<RequestHead>, wake: Wake) {
        let Some(site) = self.current_site(owner) else { return };
        let has_body = head.body != RequestBody::None;
        let mut exchange = self.core.spare.pop().unwrap_or_else(|| Box::new(Exchange::new()));
        exchange.start(head, site);
        let key = match self.core.exchanges.insert(Live { exchange, owner, stream, throttle: None })
        {
            Ok(key) => key,
            Err(live) => {
                debug_assert!(false, "streams are bounded below the slab: {:?}", live.stream);
                return self.abandon(owner);
            }
        };
        match owner {
            Owner::Tcp(conn) => {
                if let Some(framing) = self.conns.get_mut(conn).and_then(|c| c.framing.as_mut()) {
                    framing.bind(stream, key.to_bits());
                }
            }
            Owner::Quic(conn) => {
                if let Some(conn) = self.quics.get_mut(conn) {
                    conn.h3.bind(stream, key.to_bits());
                }
            }
        }
        if has_body && matches!(wake, Wake::Start) && matches!(owner, Owner::Tcp(_)) {
            return self.scratch.early.push((key, wake));
        }
        self.step(key, wake);
    }

    fn abandon(&mut self, owner: Owner) {
        match owner {
            Owner::Tcp(key) => self.close(key, io::Reset::Yes),
            Owner::Quic(key) => self.close_quic(key),
        }
    }

    /// The site that answers: the newest, unless it no longer listens where the client came in.
    fn current_site(&mut self, owner: Owner) -> Option<SiteRef> {
        let newest = &self.generation;
        let (info, generation) = match owner {
            Owner::Tcp(key) => {
                let conn = self.conns.get_mut(key)?;
                (&mut *conn.info, &mut conn.generation)
            }
            Owner::Quic(key) => {
                let conn = self.quics.get_mut(key)?;
                (&mut *conn.info, &mut conn.generation)
            }
        };
        if generation.number == newest.number {
            return Some(self.site.clone());
        }
        if let Some(listen) = newest.same_listen(generation, info.listen) {
            info.listen = listen;
            *generation = newest.clone();
            return Some(self.site.clone());
        }
        Some(SiteRef::new(generation.site.clone()))
    }

    /// Steps an exchange and performs what it wants done.
    pub(crate) fn step(&mut self, key: Key<Live>, wake: Wake) {
        let mut next = Some(wake);
        while let Some(wake) = next.take() {
            let Some((live, mut ctx)) = self.lend(key) else { return };
            live.exchange.step(wake, &mut ctx);
            let mut effects = std::mem::take(&mut self.core.effects);
            for effect in effects.drain(..) {
                let then = self.perform(key, effect);
                debug_assert!(next.is_none() || then.is_none(), "one wish per step is answered");
                next = next.or(then);
            }
            self.core.effects = effects;
        }
    }

    /// An exchange and everything that it may touch.
    fn lend(&mut self, key: Key<Live>) -> Option<(&mut Live, Ctx<'_>)> {
        let live = self.core.exchanges.get_mut(key)?;
        let (info, requests): (&ConnInfo, u64) = match live.owner {
            Owner::Tcp(conn) => {
                let conn = self.conns.get(conn)?;
                (&conn.info, conn.framing.as_ref().map_or(0, |framing| framing.requests()))
            }
            Owner::Quic(conn) => {
                let conn = self.quics.get(conn)?;
                (&conn.info, conn.h3.requests())
            }
        };
        let ctx = Ctx {
            now: self.now,
            clock: &self.clock,
            conn: info,
            files: &mut self.core.files,
            prng: &mut self.core.prng,
            logs: &mut self.core.logs,
            effects: &mut self.core.effects,
            requests_on_conn: requests,
            counters: self.counters,
        };
        Some((live, ctx))
    }

    /// Sets the pace of an answer whose location has `limit_rate`.
    pub(crate) fn pace(&mut self, key: Key<Live>) {
        let now = self.now.mono;
        let Some((live, ctx)) = self.lend(key) else { return };
        live.throttle = Throttle::new(live.exchange.rate(&ctx), now);
    }

    /// Frees an exchange whose log lines are written.
    pub(crate) fn retire(&mut self, key: Key<Live>) {
        let Some(mut live) = self.core.exchanges.remove(key) else { return };
        self.core.heads.put(live.exchange.take_request());
        if self.core.spare.len() < SPARE_MAX {
            self.core.spare.push(live.exchange);
        }
    }

    /// Tells every exchange of a connection that is gone.
    pub(crate) fn orphan(&mut self, owner: Owner) {
        // PERF: a connection without streams owns no exchange, and the search below visits all.
        if let Owner::Quic(key) = owner
            && self.quics.get(key).is_none_or(|conn| conn.h3.streams_open() == 0)
        {
            return;
        }
        let mut gone = std::mem::take(&mut self.scratch.gone);
        gone.extend(
            self.core.exchanges.keys().filter(|&key| {
                self.core.exchanges.get(key).is_some_and(|live| live.owner == owner)
            }),
        );
        for key in gone.drain(..) {
            self.step(key, Wake::ClientGone);
            self.retire(key);
        }
        self.scratch.gone = gone;
    }
}

const fn convert(refusal: wire::Refusal) -> engine::Refusal {
    engine::Refusal { status: refusal.status, reason: refusal.reason }
}

impl Generation {
    /// Where this configuration listens on the address of `listen` of an older one.
    pub(crate) fn same_listen(&self, older: &Self, listen: usize) -> Option<usize> {
        let (ours, theirs) =
            (self.site.config().http.as_ref()?, older.site.config().http.as_ref()?);
        let wanted = theirs.listens.get(listen)?;
        ours.listens
            .iter()
            .position(|have| have.address == wanted.address && have.transport == wanted.transport)
    }
}

/// What a finished handshake settled, as the engine names it.
pub(crate) fn tls_facts(session: &tls::Session) -> TlsFacts {
    TlsFacts {
        protocol: session.protocol(),
        cipher: session.cipher(),
        curve: session.curve(),
        alpn: match session.alpn() {
            Some(b"h2") => "h2",
            Some(b"http/1.1") => "http/1.1",
            Some(b"http/1.0") => "http/1.0",
            _ => "",
        },
        server_name: session.server_name().map(Box::from),
        reused: session.is_resumed(),
    }
}
