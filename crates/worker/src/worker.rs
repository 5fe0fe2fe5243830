//! Everything one core owns, and the turn that moves it: learn, think, speak once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bolide_base::deadline_queue::DeadlineQueue;
use bolide_base::limits::{CONNS_MAX, EXCHANGES_MAX};
use bolide_base::prng::Prng;
use bolide_base::{CopyPolicy, Now, SendChain, Slab, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_engine::{Exchange, Logs, RequestTallies, SiteRef, StepEffect, Tally, TallyCount};
use bolide_http::date::DateClock;
use bolide_io::listen::Listener;
use bolide_io::{Interest, Io, Readiness, Reset};
use bolide_wire::{HeadPool, WireEvent};

use crate::Generation;
use crate::accepting::Accepting;
use crate::exchanges::{ActiveExchange, Owner};
use crate::framing::ConnFraming;
use crate::heartbeat::{Doing, Pulse, Unrest};
use crate::jobs::Jobs;
use crate::log::{LogFiles, OpenLogs};
use crate::mail::{Inbox, Mail, Post};
use crate::output::say_goodbye;
use crate::overtime::Overtime;
use crate::post_actions::PostAction;
use crate::quic_conn::QuicConn;
use crate::tcp::TcpConn;
use crate::token::PollToken;
use crate::udp::UdpScratch;
use crate::udp_sockets::UdpSockets;
use crate::upstream_groups::Origins;
use crate::verified::{Fingerprint, Verified};
use crate::waste::WasteByAddress;

/// Notes read in one turn.
const MAIL_PER_TURN: usize = 256;

/// What a worker is started with.
#[derive(Debug)]
pub struct Startup<I> {
    /// Its number, from 0.
    pub number: u16,
    /// The door.
    pub io: I,
    /// The first configuration.
    pub generation: Arc<Generation>,
    /// Its log files, open. They are opened again while it is in force, which is why they are no
    /// part of it.
    pub logs: OpenLogs,
    /// Its mailbox.
    pub inbox: Inbox,
    /// The mailboxes of all workers, its own included.
    pub posts: Arc<Vec<Post>>,
    /// Where slow computations are done.
    pub jobs: Jobs,
    /// Chance.
    pub seed: u64,
    /// Names the process and the thread in error lines.
    pub ids: (u32, u32),
    /// The zero of [`bolide_base::Instant`], for the QUIC library.
    pub clock: bolide_quic::QuicClock,
    /// Calls who looks after the files of the cache.
    pub disk_writer: bolide_io::wake::Bell,
}

/// A listening stream socket.
#[derive(Debug)]
pub(crate) struct ListenSlot {
    pub(crate) socket: Arc<Listener>,
    pub(crate) listen: usize,
    /// Clients that wait are reported.
    pub(crate) is_watched: bool,
}

/// What exchanges are made of and lent.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) exchanges: Slab<ActiveExchange>,
    #[expect(clippy::vec_box, reason = "an exchange moves by pointer between slab and spares")]
    pub(crate) spare: Vec<Box<Exchange>>,
    pub(crate) heads: HeadPool,
    pub(crate) files: bolide_files::FileTable,
    pub(crate) logs: Logs,
    pub(crate) prng: Prng,
    pub(crate) effects: Vec<StepEffect>,
    /// Kept answers, if any are kept.
    pub(crate) cache: Option<bolide_cache::Front>,
}

/// Buffers that every connection uses for the length of one call.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) received: Vec<u8>,
    pub(crate) plain: Vec<u8>,
    pub(crate) sealed: Vec<u8>,
    pub(crate) records: SendChain,
    pub(crate) chain: SendChain,
    pub(crate) events: Vec<WireEvent>,
    pub(crate) replies: bolide_wire::h1::Replies,
    /// Owners of streams, for the length of one search.
    pub(crate) gone: Vec<bolide_wire::StreamOwner>,
    /// Exchanges that start when the bytes at hand are taken, and what came for them.
    pub(crate) early: Vec<(SlabKey<ActiveExchange>, bolide_engine::Wake)>,
    /// Streams whose pace holds them until then.
    pub(crate) paced: Vec<(bolide_wire::StreamOwner, bolide_base::Instant)>,
}

impl Scratch {
    /// The bytes at `range` of the buffer that sockets are read into, which grows to have them.
    #[inline]
    pub(crate) fn received(&mut self, range: Range<usize>) -> &mut [u8] {
        if self.received.len() < range.end {
            self.received.resize(range.end, 0);
        }
        &mut self.received[range]
    }
}

/// One core's worker.
#[derive(Debug)]
pub struct Worker<I> {
    pub(crate) io: I,
    pub(crate) number: u16,
    pub(crate) now: Now,
    pub(crate) clock: DateClock,
    pub(crate) offset: (u64, i32),
    pub(crate) generation: Arc<Generation>,
    pub(crate) site: SiteRef,
    /// Whether a variable names what the kernel says of connections.
    pub(crate) reads_tcp: bool,
    pub(crate) inbox: Inbox,
    pub(crate) posts: Arc<Vec<Post>>,
    pub(crate) jobs: Jobs,
    /// Their tokens are places in it, which they keep.
    pub(crate) listeners: Vec<Option<ListenSlot>>,
    pub(crate) accepting: Accepting,
    pub(crate) udp: UdpSockets,
    pub(crate) wasters: WasteByAddress,
    pub(crate) conns: Slab<TcpConn>,
    pub(crate) quics: Slab<QuicConn>,
    /// Exchanges that have outlived their answers.
    pub(crate) post_actions: Slab<PostAction>,
    /// Requests of older configurations that may go on for a while only.
    pub(crate) overtime: Vec<Overtime>,
    pub(crate) quic_clock: bolide_quic::QuicClock,
    pub(crate) core: Core,
    pub(crate) scratch: Scratch,
    pub(crate) udp_scratch: UdpScratch,
    pub(crate) origins: Origins,
    pub(crate) wheel: DeadlineQueue,
    pub(crate) serial: u64,
    /// What it counts itself, and what all workers do.
    pub(crate) tally: Arc<Tally>,
    pub(crate) tallies: RequestTallies,
    pub(crate) log_files: LogFiles,
    /// Who waits for which password to be checked by a background thread, by ticket.
    pub(crate) checking: HashMap<u64, (SlabKey<ActiveExchange>, Fingerprint)>,
    pub(crate) verified: Verified,
    /// Orders to compress that a background thread works on, by ticket.
    pub(crate) compressing: HashMap<u64, (SlabKey<ActiveExchange>, bolide_files::CompressJob)>,
    /// Kept answers that are compressed, by ticket.
    pub(crate) coding: HashMap<u64, (Arc<bolide_cache::Object>, bolide_http::negotiate::Coding)>,
    pub(crate) tickets: u64,
    pub(crate) disk_writer: bolide_io::wake::Bell,
    pub(crate) dirty: Vec<SlabKey<TcpConn>>,
    pub(crate) again: Vec<SlabKey<TcpConn>>,
    pub(crate) again_output: Vec<SlabKey<TcpConn>>,
    pub(crate) dirty_quic: Vec<SlabKey<QuicConn>>,
    ready: Vec<Readiness>,
    pub(crate) draining: bool,
    done: bool,
    pulse: Arc<Pulse>,
    /// Counts turns.
    turns: u64,
    unrest: Unrest,
}

impl<I: Io> Worker<I> {
    /// A worker that listens where its configuration says.
    pub fn new(startup: Startup<I>) -> Self {
        let Startup { number, io, generation, logs, inbox, posts, jobs, .. } = startup;
        let Startup { seed, ids, clock, disk_writer, .. } = startup;
        let core = Core {
            exchanges: Slab::with_capacity(EXCHANGES_MAX),
            spare: Vec::new(),
            heads: HeadPool::default(),
            files: bolide_files::FileTable::new(seed),
            logs: Logs::new(ids.0, ids.1),
            prng: Prng::new(seed),
            effects: Vec::new(),
            cache: generation.site.store().map(|store| store.front(number)),
        };
        let scratch = Scratch {
            received: Vec::new(),
            plain: Vec::new(),
            sealed: Vec::new(),
            records: SendChain::new(CopyPolicy::Contiguous),
            chain: SendChain::new(CopyPolicy::Contiguous),
            events: Vec::new(),
            replies: bolide_wire::h1::Replies::default(),
            gone: Vec::new(),
            early: Vec::new(),
            paced: Vec::new(),
        };
        let pulse = inbox.pulse();
        let tallies = RequestTallies::new(posts.iter().map(Post::tally));
        let mut worker = Self {
            io,
            number,
            now: Now::default(),
            clock: DateClock::new(Now::default(), 0),
            offset: (u64::MAX, 0),
            site: SiteRef::new(generation.site.clone(), generation.groups.clone()),
            reads_tcp: generation.site.looks().tcp_info,
            log_files: LogFiles::new(logs),
            generation: generation.clone(),
            inbox,
            posts,
            jobs,
            listeners: Vec::new(),
            accepting: Accepting::default(),
            udp: UdpSockets::default(),
            wasters: WasteByAddress::default(),
            conns: Slab::with_capacity(CONNS_MAX),
            quics: Slab::with_capacity(CONNS_MAX),
            post_actions: Slab::with_capacity(EXCHANGES_MAX),
            overtime: Vec::new(),
            quic_clock: clock,
            core,
            scratch,
            udp_scratch: UdpScratch::default(),
            origins: Origins::new(number),
            wheel: DeadlineQueue::default(),
            serial: u64::from(number) << 48,
            tally: tallies.of(number),
            tallies,
            checking: HashMap::new(),
            verified: Verified::new(*generation.quic_keys.secret()),
            compressing: HashMap::new(),
            coding: HashMap::new(),
            tickets: 0,
            disk_writer,
            dirty: Vec::new(),
            again: Vec::new(),
            again_output: Vec::new(),
            dirty_quic: Vec::new(),
            ready: Vec::new(),
            draining: false,
            done: false,
            pulse,
            turns: 0,
            unrest: Unrest::default(),
        };
        let bell = worker.inbox.bell().fd();
        let watched = worker.io.watch(bell, PollToken::Mail.pack(), Interest::Level);
        debug_assert!(watched, "a new epoll instance takes a descriptor");
        worker.core.logs.set_buffers(worker.generation.site.log_buffers());
        worker.origins.secrets.learn(&worker.generation);
        worker.listen();
        worker
    }

    /// Turns until told to end.
    pub fn run(&mut self) {
        while !self.done {
            self.turn();
        }
        self.write_last_logs();
        self.does(Doing::Waiting);
    }

    /// One turn: learn what happened, think, then speak once per connection.
    pub fn turn(&mut self) {
        let more_input = !self.again.is_empty();
        let more_output = !self.again_output.is_empty() || !self.dirty.is_empty();
        let more_quic = !self.dirty_quic.is_empty();
        let is_busy = more_input || more_output || more_quic || self.origins.is_busy();
        let until = if is_busy {
            Some(self.unrest.next_turn(self.now.mono))
        } else {
            [self.wheel.next(), self.core.logs.next_deadline()].into_iter().flatten().min()
        };
        let mut ready = std::mem::take(&mut self.ready);
        self.does(Doing::Waiting);
        self.now = self.io.wait(until, &mut ready);
        self.turns += 1;
        self.does(Doing::Beginning);
        if self.unrest.note(is_busy && ready.is_empty()) {
            self.log_server(LogLevel::Alert, "turns follow one another though nothing happens");
        }
        self.tell_time();
        let mut again = std::mem::take(&mut self.again);
        for key in std::mem::take(&mut self.again_output) {
            self.mark_dirty(key);
        }
        for report in ready.drain(..) {
            self.dispatch(report);
        }
        self.ready = ready;
        self.does(Doing::Reading);
        for key in again.drain(..) {
            self.receive(key);
        }
        let is_all = self.expire();
        self.does(Doing::Origins);
        self.turn_origins();
        self.does(Doing::Writing);
        let mut dirty = std::mem::take(&mut self.dirty);
        for key in dirty.drain(..) {
            if self.conns.get(key).is_some_and(|conn| conn.dirty) {
                self.transmit(key);
            }
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
        self.does(Doing::Quic);
        self.transmit_quic();
        self.does(Doing::Cache);
        self.tend_cache();
        self.does(Doing::Logs);
        self.write_logs(bolide_engine::Due::Only);
        debug_assert!(
            !is_all || self.wheel.next().is_none_or(|at| at > self.now.mono),
            "a turn leaves a deadline that has passed"
        );
        let alone = self.conns.live() == 0 && self.quics.live() == 0;
        let alone = alone && self.post_actions.live() == 0;
        if self.draining && alone && self.origins.fetches.live() == 0 {
            self.done = true;
        }
    }

    /// Tells who watches from outside what it does now.
    #[inline]
    pub(crate) fn does(&self, what: Doing) {
        self.pulse.note(self.turns, what);
    }

    fn tell_time(&mut self) {
        // The zone's offset changes at full quarters of an hour at most.
        let quarter = self.now.unix_seconds() / 900;
        if self.offset.0 != quarter {
            let offset = bolide_io::process::utc_offset_seconds(self.now.unix_seconds());
            self.offset = (quarter, offset);
            self.clock.set_zone(&bolide_io::process::zone_name(self.now.unix_seconds()));
        }
        self.clock.update(self.now, self.offset.1);
    }

    fn dispatch(&mut self, report: Readiness) {
        let token = PollToken::unpack(report.token);
        self.does(token.map_or(Doing::Beginning, PollToken::report_doing));
        match token {
            Some(PollToken::Mail) => self.read_mail(),
            Some(PollToken::Listener(slot)) => self.accept(slot as usize),
            Some(PollToken::Udp(slot)) => self.receive_datagrams(slot as usize),
            Some(PollToken::Tcp(key)) => self.wake_conn(key, report),
            Some(PollToken::Link(key)) => self.wake_link(key, report),
            Some(
                PollToken::Quic(_)
                | PollToken::Exchange(_)
                | PollToken::Body(_)
                | PollToken::Fetch(_),
            )
            | Some(
                PollToken::Links | PollToken::Ping(_) | PollToken::Stall(_) | PollToken::Overtime,
            )
            | Some(PollToken::Accepting | PollToken::LateTcp(_) | PollToken::LateQuic(_))
            | None => {
                debug_assert!(false, "no such descriptor");
            }
        }
    }

    fn wake_conn(&mut self, key: SlabKey<TcpConn>, report: Readiness) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        if report.writable && conn.blocked {
            conn.blocked = false;
            self.mark_dirty(key);
        }
        if report.readable || report.hangup {
            if let Some(conn) = self.conns.get_mut(key) {
                conn.readable = true;
                conn.hung_up |= report.hangup;
            }
            self.receive(key);
            if report.hangup {
                self.leave_if_alone(key);
            }
        }
        // PERF: its exchanges are warm now; at the end of a turn of a hundred connections they
        // would have left the cache (0.35 of 2.8 µs per HTTP/2 request).
        if self.conns.get(key).is_some_and(|conn| conn.dirty) {
            self.transmit(key);
        }
    }

    fn read_mail(&mut self) {
        let bell = self.inbox.bell().fd();
        self.io.drain(bell);
        for _ in 0..MAIL_PER_TURN {
            let Some(mail) = self.inbox.take() else { return };
            match mail {
                Mail::Configure(generation, logs) => self.configure(generation, logs),
                Mail::Tidy => self.log_files.tidy(),
                Mail::Reopen(files) => {
                    self.write_logs(bolide_engine::Due::Everything);
                    self.log_files.reopen(files);
                }
                Mail::Quit => self.drain_all(),
                Mail::Stop => self.done = true,
                Mail::Cut => {
                    self.cut_all();
                    self.done = true;
                }
                Mail::Tell(teller) => self.tell_holdings(&teller),
                Mail::Finished(finished) => self.handle_finished(finished),
                Mail::Datagram(strayed) => self.handle_strayed(*strayed),
                Mail::News { exchange } => {
                    self.origins
                        .news
                        .push_back((SlabKey::from_bits(exchange), bolide_engine::Wake::Filled));
                }
                Mail::Turn { group } => {
                    self.origins.pools.handle_notice(group);
                    self.origins.stepped = true;
                }
            }
        }
        self.inbox.bell().ring();
    }

    /// Takes no new connections and ends idle ones; the others end with their requests. Those that
    /// have asked nothing yet were promised an answer by being accepted: the second call ends them.
    fn drain_all(&mut self) {
        let spares_fresh = !self.draining;
        self.draining = true;
        for slot in std::mem::take(&mut self.listeners).into_iter().flatten() {
            self.io.unwatch(slot.socket.fd());
        }
        for key in self.conns.keys().collect::<Vec<_>>() {
            let Some(conn) = self.conns.get_mut(key) else { continue };
            if spares_fresh && conn.framing.as_ref().is_none_or(|framing| framing.requests() == 0) {
                continue;
            }
            conn.draining = true;
            if let Some(framing) = &mut conn.framing {
                framing.shutdown();
            }
            self.mark_dirty(key);
        }
        self.drain_quic(spares_fresh);
        self.drain_origins();
    }

    /// Ends a connection and everything that it asked for.
    pub(crate) fn close(&mut self, key: SlabKey<TcpConn>, reset: Reset) {
        self.orphan(Owner::Tcp(key));
        if let Some(mut conn) = self.conns.remove(key) {
            // The end of a body may be the end of the connection: one that was cut must not look
            // complete.
            let is_whole = |framing: &ConnFraming| framing.is_idle() || !framing.is_plain_h1();
            if reset == Reset::No && conn.framing.as_ref().is_none_or(is_whole) {
                say_goodbye(&mut self.io, &mut conn);
            }
            self.tally.remove(TallyCount::Active);
            conn.counted.into_iter().for_each(|count| self.tally.remove(count));
            self.io.close(conn.fd, reset);
            self.note_freed();
        }
    }

    /// Counts for tests: live connections and exchanges.
    #[must_use]
    pub fn live(&self) -> (usize, usize) {
        (self.conns.live() + self.quics.live(), self.core.exchanges.live())
    }

    /// Counts for tests: live QUIC connections, and those of them that the transport still knows.
    #[must_use]
    pub fn live_quic(&self) -> (usize, usize) {
        (self.quics.live(), self.udp.iter().map(|udp| udp.endpoint.live()).sum())
    }

    /// Counts for tests: live requests to origins, connections to them, and those of the latter
    /// that are idle.
    #[must_use]
    pub fn live_origins(&self) -> (usize, usize, usize) {
        let Origins { fetches, links, pools, .. } = &self.origins;
        (fetches.live(), links.live(), pools.idle())
    }
}
