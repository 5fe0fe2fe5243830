//! Everything one core owns, and the turn that moves it: learn, think, speak once.

use std::sync::Arc;

use bolide_base::limits::{CONNS_MAX, EXCHANGES_MAX};
use bolide_base::{Slab, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_engine::{Logs, RequestTallies, TallyCount};
use bolide_io::{Interest, Io, Readiness, Reset};

use crate::background::Background;
use crate::env::{EnvParts, WorkerEnv};
use crate::exchange_table::{Exchanges, Owner, PostAction};
use crate::framing::ConnFraming;
use crate::generation::Generation;
use crate::heartbeat::{Doing, Pulse, Unrest};
use crate::jobs::Jobs;
use crate::kept_answers::KeptAnswers;
use crate::log::{LogFiles, OpenLogs};
use crate::mail::{Inbox, Mail, Post};
use crate::news::News;
use crate::output::say_goodbye;
use crate::overtime::Overtime;
use crate::quic_conn::QuicConn;
use crate::spooling::Spooling;
use crate::tcp::TcpConn;
use crate::token::PollToken;
use crate::udp::UdpScratch;
use crate::udp_sockets::UdpSockets;
use crate::upstream_groups::Origins;

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

/// One core's worker.
#[derive(Debug)]
pub struct Worker<I> {
    pub(crate) env: WorkerEnv<I>,
    pub(crate) exchanges: Exchanges,
    pub(crate) origins: Origins,
    pub(crate) background: Background,
    pub(crate) spooling: Spooling,
    pub(crate) udp: UdpSockets,
    pub(crate) conns: Slab<TcpConn>,
    pub(crate) quics: Slab<QuicConn>,
    /// Exchanges that have outlived their answers.
    pub(crate) post_actions: Slab<PostAction>,
    /// Requests of older configurations that may go on for a while only.
    pub(crate) overtime: Vec<Overtime>,
    pub(crate) quic_clock: bolide_quic::QuicClock,
    pub(crate) udp_scratch: UdpScratch,
    pub(crate) dirty: Vec<SlabKey<TcpConn>>,
    pub(crate) again: Vec<SlabKey<TcpConn>>,
    pub(crate) again_output: Vec<SlabKey<TcpConn>>,
    pub(crate) dirty_quic: Vec<SlabKey<QuicConn>>,
    inbox: Inbox,
    ready: Vec<Readiness>,
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
        let pulse = inbox.pulse();
        let front = generation.site.store().map(|store| store.front(number));
        let secret = *generation.quic_keys.secret();
        let tallies = RequestTallies::new(posts.iter().map(Post::tally));
        let mut worker = Self {
            exchanges: Exchanges::new(),
            origins: Origins::new(number),
            background: Background::new(jobs, number, secret),
            spooling: Spooling::default(),
            udp: UdpSockets::default(),
            conns: Slab::with_capacity(CONNS_MAX),
            quics: Slab::with_capacity(CONNS_MAX),
            post_actions: Slab::with_capacity(EXCHANGES_MAX),
            overtime: Vec::new(),
            quic_clock: clock,
            udp_scratch: UdpScratch::default(),
            dirty: Vec::new(),
            again: Vec::new(),
            again_output: Vec::new(),
            dirty_quic: Vec::new(),
            inbox,
            ready: Vec::new(),
            done: false,
            pulse,
            turns: 0,
            unrest: Unrest::default(),
            env: WorkerEnv::new(EnvParts {
                io,
                number,
                news: News::new(number, posts),
                kept: KeptAnswers::new(front, disk_writer),
                logs: Logs::new(ids.0, ids.1),
                log_files: LogFiles::new(logs),
                generation,
                tallies,
                seed,
            }),
        };
        let bell = worker.inbox.bell().fd();
        let watched = worker.env.io.watch(bell, PollToken::Mail.pack(), Interest::Level);
        debug_assert!(watched, "a new epoll instance takes a descriptor");
        worker.env.logs.set_buffers(worker.env.generation.site.log_buffers());
        worker.origins.secrets.learn(&worker.env.generation);
        worker.listen();
        worker
    }

    /// Turns until told to end.
    pub fn run(&mut self) {
        while !self.done {
            self.turn();
        }
        self.env.write_last_logs();
        self.does(Doing::Waiting);
    }

    /// One turn: learn what happened, think, then speak once per connection.
    pub fn turn(&mut self) {
        let more_input = !self.again.is_empty();
        let more_output = !self.again_output.is_empty() || !self.dirty.is_empty();
        let more_quic = !self.dirty_quic.is_empty();
        let is_busy = more_input || more_output || more_quic || self.is_busy();
        let until = if is_busy {
            Some(self.unrest.next_turn(self.env.now.mono))
        } else {
            [self.env.wheel.next(), self.env.logs.next_deadline()].into_iter().flatten().min()
        };
        let mut ready = std::mem::take(&mut self.ready);
        self.does(Doing::Waiting);
        let now = self.env.io.wait(until, &mut ready);
        self.turns += 1;
        self.does(Doing::Beginning);
        self.env.tell_time(now);
        if self.unrest.note(is_busy && ready.is_empty()) {
            self.env.log_server(LogLevel::Alert, "turns follow one another though nothing happens");
        }
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
        self.env.tend_cache();
        self.does(Doing::Logs);
        self.env.write_logs(bolide_engine::Due::Only);
        debug_assert!(
            !is_all || self.env.wheel.next().is_none_or(|at| at > self.env.now.mono),
            "a turn leaves a deadline that has passed"
        );
        let alone = self.conns.live() == 0 && self.quics.live() == 0;
        let alone = alone && self.post_actions.live() == 0;
        if self.env.draining && alone && self.origins.fetches.live() == 0 {
            self.done = true;
        }
    }

    /// Tells who watches from outside what it does now.
    #[inline]
    pub(crate) fn does(&self, what: Doing) {
        self.pulse.note(self.turns, what);
    }

    fn dispatch(&mut self, report: Readiness) {
        let token = PollToken::unpack(report.token);
        self.does(token.map_or(Doing::Beginning, PollToken::report_doing));
        match token {
            Some(PollToken::Mail) => self.read_mail(),
            Some(PollToken::Listener(slot)) => self.accept(slot as usize),
            Some(PollToken::Udp(slot)) => self.receive_datagrams(slot as usize),
            Some(PollToken::Tcp(key)) => self.wake_conn(key, report),
            Some(PollToken::Link(key)) => {
                self.origins.wake_link(key, report, &mut self.env, &mut self.exchanges);
            }
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
        self.env.io.drain(bell);
        for _ in 0..MAIL_PER_TURN {
            let Some(mail) = self.inbox.take() else { return };
            match mail {
                Mail::Configure(generation, logs) => self.configure(generation, logs),
                Mail::Tidy => self.env.log_files.tidy(),
                Mail::Reopen(files) => {
                    self.env.write_logs(bolide_engine::Due::Everything);
                    self.env.log_files.reopen(files);
                }
                Mail::Quit => self.drain_all(),
                Mail::Stop => self.done = true,
                Mail::Cut => {
                    self.cut_all();
                    self.done = true;
                }
                Mail::Tell(teller) => self.tell_holdings(&teller),
                Mail::Finished(finished) => {
                    let WorkerEnv { files, kept, .. } = &mut self.env;
                    if let Some((key, wake)) = self.background.finish(finished, files, kept) {
                        self.step(key, wake);
                    }
                }
                Mail::Datagram(strayed) => self.handle_strayed(*strayed),
                Mail::News { exchange } => {
                    self.env.news.tell(SlabKey::from_bits(exchange), bolide_engine::Wake::Filled);
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
        let spares_fresh = !self.env.draining;
        self.env.draining = true;
        self.env.listeners.close(&mut self.env.io);
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
        self.origins.drain_origins(&mut self.env);
    }

    /// Ends a connection and everything that it asked for.
    pub(crate) fn close(&mut self, key: SlabKey<TcpConn>, reset: Reset) {
        self.orphan(Owner::Tcp(key));
        if let Some(mut conn) = self.conns.remove(key) {
            // The end of a body may be the end of the connection: one that was cut must not look
            // complete.
            let is_whole = |framing: &ConnFraming| framing.is_idle() || !framing.is_plain_h1();
            if reset == Reset::No && conn.framing.as_ref().is_none_or(is_whole) {
                say_goodbye(&mut self.env.io, &mut conn);
            }
            self.env.tally.remove(TallyCount::Active);
            conn.counted.into_iter().for_each(|count| self.env.tally.remove(count));
            self.env.close(conn.fd, reset);
        }
    }

    /// Counts for tests: live connections and exchanges.
    #[must_use]
    pub fn live(&self) -> (usize, usize) {
        (self.conns.live() + self.quics.live(), self.exchanges.live.live())
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
