//! A worker around one exchange.
//!
//! Performs effects, pulls bodies, checks that a request is answered and finished once.

mod counted;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_base::{Instant, Now};
use bolide_engine::{
    BackgroundCapacity, ClientAddress, ConnInfo, ConnRelay, Due, Exchange, Fill, HtaccessMemory,
    JobResult, LogTarget, Logs, Recalled, RequestRefusal, RequestTallies, Site, SiteRef, StepCtx,
    StepEffect, TlsFacts, Wake,
};
use bolide_files::FileTable;
use bolide_http::date::DateClock;
use bolide_http::negotiate::Coding;
use bolide_http::{Method, RequestHead, Scheme};
use bytes::Bytes;

use crate::disk::FuzzIo;
use crate::fragments::Fragments;
use crate::reply::{WorldPulled, WorldReply, fields_of, no_reply, pull};
use crate::request::request;
use crate::site::compile;
use crate::upstream::{FuzzNext, FuzzUpstream};

/// Civil time at which every world begins: 21 November 2026, 05:40:36 UTC.
const START_SECONDS: u64 = 1_795_239_636;

/// What happens to one request.
#[derive(Default)]
struct Turn {
    method: Method,
    reply: Option<WorldReply>,
    interim: Vec<Vec<(String, String)>>,
    is_sent: bool,
    discards: bool,
    /// Bytes of the request body that the exchange got, and whose room it gave back.
    given: usize,
    consumed: usize,
}

/// Bytes of a request body that may be on their way.
const WINDOW: usize = 2000;

/// One worker with one connection, and a disk.
#[derive(Debug)]
pub struct FuzzWorld {
    /// The disk.
    pub door: FuzzIo,
    /// The connection.
    pub conn: ConnInfo,
    /// The time.
    pub now: Now,
    /// The worker's open files.
    pub files: FileTable,
    /// Requests so far.
    pub requests: u64,
    /// Bytes that one pull asks for.
    pub pull_max: usize,
    site: SiteRef,
    logs: Logs,
    tallies: RequestTallies,
    rulings: HtaccessMemory,
    prng: Prng,
    clock: DateClock,
    exchange: Exchange,
    effects: Vec<StepEffect>,
    /// The worker's table of kept answers, and what listens to the origin for the store.
    front: Option<bolide_cache::Front>,
    fill: Option<Box<Fill>>,
    /// The origin.
    pub origin: FuzzUpstream,
    /// What pages with ESI are put together from.
    pub fragments: Fragments,
    /// What is left of the request body that the client sends, and whether it ends.
    client_body: Vec<Bytes>,
    body_ends: bool,
    /// Whether clients send their bodies when the answer has begun, and not before.
    pub sends_late: bool,
    /// Whether bodies come together with heads.
    pub sends_at_once: bool,
}

impl FuzzWorld {
    /// A world with this site and an empty disk; clients come from 192.0.2.1 to 127.0.0.1:80.
    #[must_use]
    pub fn new(site: Arc<Site>) -> Self {
        let now =
            Now { mono: Instant::from_nanos(1_000_000_000), unix_millis: START_SECONDS * 1000 };
        let address =
            |ip: [u8; 4], port| ClientAddress::Inet(SocketAddr::from((Ipv4Addr::from(ip), port)));
        let conn = ConnInfo {
            serial: 1,
            remote: address([192, 0, 2, 1], 50_000),
            local: address([127, 0, 0, 1], 80),
            listen: 0,
            scheme: Scheme::Http,
            tls: None,
            relay: ConnRelay::Direct,
            started: now,
        };
        let upstreams = site.config().http.as_ref().map_or(&[][..], |http| &http.upstreams);
        let groups = Arc::new(bolide_upstream::UpstreamGroups::new(upstreams, None));
        Self {
            door: FuzzIo::default(),
            conn,
            now,
            files: FileTable::new(1),
            requests: 0,
            pull_max: 16 * 1024,
            logs: Logs::new(12, 13),
            tallies: RequestTallies::default(),
            rulings: HtaccessMemory::new(7),
            prng: Prng::new(7),
            clock: DateClock::new(now, 0),
            exchange: Exchange::new(),
            effects: Vec::new(),
            front: site.store().map(|store| store.front(0)),
            fill: None,
            site: SiteRef::new(site, groups),
            origin: FuzzUpstream::default(),
            fragments: Fragments::default(),
            client_body: Vec::new(),
            body_ends: false,
            sends_late: false,
            sends_at_once: false,
        }
    }

    /// A world from the text of a configuration.
    ///
    /// # Panics
    ///
    /// When the configuration has an error.
    #[must_use]
    pub fn of(config: &str) -> Self {
        match compile(config) {
            Ok(site) => Self::new(Arc::new(site)),
            Err(messages) => panic!("{messages}"),
        }
    }

    /// The same with a store of kept answers.
    ///
    /// # Panics
    ///
    /// When the configuration has an error.
    #[must_use]
    pub fn keeping(config: &str) -> Self {
        match compile(config) {
            Ok(site) => {
                let store = bolide_cache::Store::new(bolide_cache::StoreLimits::default(), 7);
                Self::new(Arc::new(site.with_store(store)))
            }
            Err(messages) => panic!("{messages}"),
        }
    }

    /// The site.
    #[must_use]
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Reaches the listener `index` on its own port; over TLS if it is a TLS listener.
    pub fn listen(&mut self, index: usize) {
        let listen = &self.site.listens()[index];
        let (port, tls) = (listen.address.port(), listen.tls);
        self.conn.listen = index;
        self.conn.local = ClientAddress::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        self.conn.scheme = if tls { Scheme::Https } else { Scheme::Http };
        self.conn.tls = tls.then(TlsFacts::default);
    }

    /// Has what `.htaccess` files say judged anew.
    pub fn forget_rulings(&mut self) {
        self.rulings = HtaccessMemory::new(7);
    }

    /// How many requests were answered by what `.htaccess` files said to one before.
    #[must_use]
    pub const fn rulings_recalled(&self) -> u64 {
        self.rulings.recalled()
    }

    /// How many rulings of `.htaccess` files are kept, and about how many bytes they take.
    #[must_use]
    pub const fn rulings_held(&self) -> (usize, usize) {
        self.rulings.held()
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        self.now.mono = self.now.mono.after(time);
        self.now.unix_millis += time.as_millis() as u64;
        self.clock.update(self.now, 0);
    }

    /// `GET path` from `host` over HTTP/1.1.
    pub fn get(&mut self, host: &str, path: &str) -> WorldReply {
        self.ask(request(Method::Get, host, path, &[]))
    }

    /// One whole request.
    pub fn ask(&mut self, head: Box<RequestHead>) -> WorldReply {
        self.ask_refused(head, None)
    }

    /// One whole request, refused by framing if `refusal` says so.
    ///
    /// # Panics
    ///
    /// When the exchange answers or finishes not exactly once, or breaks its body's length.
    pub fn ask_refused(
        &mut self,
        head: Box<RequestHead>,
        refusal: Option<RequestRefusal>,
    ) -> WorldReply {
        self.requests += 1;
        self.pass(Duration::from_millis(1));
        let mut turn = Turn { method: head.method, ..Turn::default() };
        self.exchange.start(head, self.site.clone(), None);
        if self.sends_at_once {
            let whole: usize = self.client_body.iter().map(|piece| piece.len()).sum();
            self.exchange.upload_mut().foresee(whole);
            self.exchange.upload_mut().foresee_end();
        }
        self.wake(refusal.map_or(Wake::Start, Wake::Refused));
        for _ in 0..100_000 {
            if self.effects.is_empty() && !self.go_on(&mut turn) {
                break;
            }
            let Some(effect) = (!self.effects.is_empty()).then(|| self.effects.remove(0)) else {
                continue;
            };
            if let StepEffect::Finish = effect {
                assert!(self.effects.is_empty(), "nothing comes after the end");
                let mut reply = turn.reply.expect("an exchange answers before it ends");
                reply.discards = turn.discards;
                reply.interim = turn.interim;
                self.exchange.take_request();
                self.client_body.clear();
                self.body_ends = false;
                return reply;
            }
            self.perform(effect, &mut turn);
        }
        panic!("the exchange never finished");
    }

    /// What the client of the next request sends as its body.
    pub fn client_sends<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        self.client_body = pieces.map(Bytes::copy_from_slice).collect();
        self.body_ends = true;
    }

    /// One request with a body, in pieces.
    pub fn ask_with_body(&mut self, head: Box<RequestHead>, pieces: &[&[u8]]) -> WorldReply {
        self.client_sends(pieces.iter().copied());
        self.ask(head)
    }

    fn perform(&mut self, effect: StepEffect, turn: &mut Turn) {
        match effect {
            StepEffect::Probe(probe) => {
                let probed = self.door.perform(&probe);
                self.files.insert_watched(&probe, probed, self.now);
                self.wake(Wake::Probed);
            }
            StepEffect::Resolve(path) => {
                self.files.real.insert(path.clone(), Ok(path), false, self.now.mono);
                self.wake(Wake::Probed);
            }
            StepEffect::Compress(job) => {
                let output = job.run();
                self.files.finish_job(&job, output);
                self.wake(Wake::Compressed);
            }
            StepEffect::ChangeFiles(_) => self.wake(Wake::FilesChanged(Box::default())),
            StepEffect::CheckPassword(check) => self.wake(Wake::PasswordChecked(check.run())),
            StepEffect::DiscardBody => {
                turn.discards = true;
                self.client_body.clear();
            }
            StepEffect::BodyConsumed(len) => turn.consumed += len,
            StepEffect::Deadline(_)
            | StepEffect::BodyReady
            | StepEffect::Detach
            | StepEffect::WantBody(_) => {}
            StepEffect::Spool(_) => {
                if let Some(spool) = self.exchange.spool_mut() {
                    self.origin.write(spool);
                }
                self.wake(Wake::Spooled(None));
            }
            StepEffect::Fill(fill) => self.fill = Some(fill),
            StepEffect::CompressObject(object, coding, level) => self.code(&object, coding, level),
            StepEffect::Recall(permit) => {
                let absent = Recalled::Found(bolide_cache::Lookup::Miss(*permit));
                self.wake(Wake::Recalled(Box::new(absent)));
            }
            StepEffect::AskNodes(permit) => {
                self.wake(Wake::Recalled(Box::new(Recalled::Alone(*permit))));
            }
            // There is one exchange, which waits for no other; nothing is done behind its back.
            StepEffect::WakeExchanges(_) | StepEffect::StoreFile(_) | StepEffect::Command(_) => {}
            StepEffect::AuthSubrequest | StepEffect::Mirror(_) => unreachable!("there are none"),
            StepEffect::List(job) => self.wake(Wake::JobDone(JobResult::Listing(job.run().into()))),
            StepEffect::Refresh(..) | StepEffect::CutVideo(_) => unreachable!("no background"),
            StepEffect::Fragments => self.fragments.begin(&mut self.exchange, &self.conn),
            StepEffect::Fetch(request) => self.origin.ask(*request),
            StepEffect::DeliverNews(_) => unreachable!("fragments are not exchanges here"),
            StepEffect::FetchBody(bytes) => turn.consumed += self.origin.push_body(bytes),
            StepEffect::FetchBodyEnd => self.origin.end_body(),
            StepEffect::FetchTunnel(memory) => self.origin.begin_tunnel(memory),
            StepEffect::FetchMayRead(more) => self.origin.allow(more),
            StepEffect::FetchDrop => self.origin.drop_request(),
            StepEffect::Interim(head) => {
                assert!(turn.reply.is_none() && head.status == 103, "103 comes first");
                turn.interim.push(fields_of(&head));
            }
            StepEffect::Continue => {
                assert!(turn.reply.is_none(), "100 comes before the answer");
            }
            StepEffect::CloseSilently => {
                assert!(turn.reply.is_none(), "answered twice");
                turn.reply = Some(no_reply());
            }
            StepEffect::Respond => {
                assert!(turn.reply.is_none(), "answered twice");
                turn.reply = Some(self.receive());
            }
            StepEffect::Finish => unreachable!("the end is seen to elsewhere"),
        }
    }

    fn code(&self, object: &Arc<bolide_cache::Object>, coding: Coding, level: i8) {
        let (Some(front), Some(body)) = (&self.front, object.body()) else { return };
        let variant = match bolide_files::compress(coding, level, &body) {
            Ok(form) if form.len() < body.len() => {
                bolide_cache::ObjectVariant::Ready(Bytes::from(form))
            }
            Ok(_) | Err(_) => bolide_cache::ObjectVariant::NotWorth,
        };
        front.store().set_variant(object, coding, variant);
    }

    /// What a worker does when nothing is left of a step: it pulls, reads the client, the origin.
    fn go_on(&mut self, turn: &mut Turn) -> bool {
        if let Some(reply) = &mut turn.reply
            && !turn.is_sent
        {
            let Self { exchange, door, origin, fragments, conn, .. } = self;
            let pulled = pull(exchange, self.pull_max, door, origin, fragments, reply);
            fragments.begin(exchange, conn);
            match pulled {
                WorldPulled::Some => {
                    if self.exchange.response_body().wants_origin() {
                        self.origin.allow(true);
                    }
                    return true;
                }
                WorldPulled::Nothing if self.do_commands() => return true,
                WorldPulled::Nothing if self.fragments.go_on(&mut self.exchange) => return true,
                WorldPulled::Nothing => {}
                WorldPulled::All => {
                    turn.is_sent = true;
                    reply.check(turn.method);
                    let sent = reply.body.len() as u64;
                    self.wake(Wake::Sent { body_bytes: sent, head_bytes: 100 });
                    return true;
                }
                WorldPulled::Broken => {
                    turn.is_sent = true;
                    reply.is_broken = true;
                    self.wake(Wake::ClientGone);
                    return true;
                }
            }
        }
        if self.exchange.is_assembling() && self.fragments.go_on(&mut self.exchange) {
            self.wake(Wake::Fragment);
            return true;
        }
        let sends = !self.sends_late || turn.reply.is_some();
        if sends && !turn.discards && turn.given <= turn.consumed + WINDOW {
            if !self.client_body.is_empty() {
                let piece = self.client_body.remove(0);
                turn.given += piece.len();
                self.wake(Wake::Body(piece));
                return true;
            }
            if std::mem::take(&mut self.body_ends) {
                self.wake(Wake::BodyEnd);
                return true;
            }
        }
        let is_bounded = self.exchange.response_body().wants_origin() || !self.origin.is_allowed();
        assert!(is_bounded, "an origin that sends more than there is room for has to wait");
        match self.origin.next() {
            FuzzNext::News(news) => {
                if let Some(fill) = &mut self.fill {
                    drop(fill.handle_news(&news, Some(&mut self.exchange), self.now));
                }
                self.wake(Wake::Origin(news));
            }
            FuzzNext::ClientLeaves => {
                turn.reply.get_or_insert_with(no_reply);
                turn.is_sent = true;
                self.wake(Wake::ClientGone);
            }
            FuzzNext::Nothing => return false,
        }
        true
    }

    fn wake(&mut self, wake: Wake) {
        self.with(|exchange, ctx| exchange.step(wake, ctx));
    }

    /// Does commands of SSI, once; whether there were any. Parts are not answered here.
    fn do_commands(&mut self) -> bool {
        let is_wanted = self.exchange.wants_fragments();
        if is_wanted {
            self.fragments.rounds += 1;
            let mut head = RequestHead::default();
            if self.with(|exchange, ctx| exchange.as_parent().next(&mut head, ctx)).is_some() {
                self.exchange.as_parent().refuse(true);
            }
        }
        is_wanted
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Exchange, &mut StepCtx<'_>) -> T) -> T {
        let mut ctx = StepCtx {
            now: self.now,
            clock: &self.clock,
            conn: &self.conn,
            files: &mut self.files,
            rulings: &mut self.rulings,
            prng: &mut self.prng,
            logs: &mut self.logs,
            effects: &mut self.effects,
            requests_on_conn: self.requests,
            background: BackgroundCapacity::Available,
            counters: &self.tallies,
            cache: self.front.as_mut(),
            me: 0,
            tcp: None,
        };
        act(&mut self.exchange, &mut ctx)
    }

    fn receive(&mut self) -> WorldReply {
        let head = self.exchange.head();
        let reply = WorldReply {
            status: head.status,
            fields: fields_of(head),
            len: head.body,
            close: head.close,
            ..no_reply()
        };
        assert!((200..600).contains(&reply.status), "status {}", reply.status);
        let framing = ["Content-Length", "Transfer-Encoding", "Connection"];
        assert!(framing.iter().all(|name| reply.field(name).is_empty()), "framing adds these");
        reply
    }

    /// Takes all log lines that go to the file at `path`.
    pub fn take_log(&mut self, path: &str) -> String {
        let mut text = String::new();
        while let Some(id) = self.logs.poll_write(self.now.mono, Due::Everything) {
            let batch = self.logs.batch(id);
            let bytes = batch.lines.len();
            let own = match batch.target {
                LogTarget::File(own) => own,
                LogTarget::Variable(file) => file.path,
                LogTarget::Syslog(_) | LogTarget::Stderr => b"",
            };
            if own == path.as_bytes() {
                text.push_str(&String::from_utf8_lossy(batch.lines));
            }
            self.logs.written(id, bytes, self.now.mono);
        }
        text
    }
}
