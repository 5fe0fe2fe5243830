//! The worker of one core and its event loop: collect events, process them, send once per
//! connection.

use std::sync::Arc;

use bolide_base::SlabKey;
use bolide_conf::model::LogLevel;
use bolide_engine::{Logs, RequestTallies, WorkerCount};
use bolide_io::{Interest, Io, Readiness};

use crate::background::Background;
use crate::clients::Clients;
use crate::console_desk::ConsoleDesk;
use crate::draining::{self, AfterDrain};
use crate::env::{EnvParts, WorkerEnv};
use crate::exchange_table::Exchanges;
use crate::framing::StreamAct;
use crate::generation::Generation;
use crate::heartbeat::{BusyLoop, Doing, Pulse};
use crate::jobs::Jobs;
use crate::kept_answers::KeptAnswers;
use crate::log::{LogFiles, OpenLogs};
use crate::mail::{Inbox, Mail, Post};
use crate::news::News;
use crate::overtime::Overtime;
use crate::quic_side::QuicSide;
use crate::requests::Requests;
use crate::spooling::Spooling;
use crate::tcp::TcpConn;
use crate::token::PollToken;
use crate::upstream_groups::Origins;

/// The part of all descriptors that files which no response uses may have: one of so many.
const FILES_PART: u64 = 4;
/// Messages read in one turn.
const MAIL_PER_TURN: usize = 256;

/// The token of changes below watched directories.
const CHANGES: u64 = PollToken::Changes.pack();

/// The inputs of a new worker.
#[derive(Debug)]
pub struct Startup<I> {
    /// Its number, from 0.
    pub number: u16,
    /// The event backend.
    pub io: I,
    /// The first configuration.
    pub generation: Arc<Generation>,
    /// The open log files of `generation`. They are reopened while it is in force, so they are no
    /// part of it.
    pub logs: OpenLogs,
    /// Its mailbox.
    pub inbox: Inbox,
    /// The mailboxes of all workers, including its own.
    pub posts: Arc<Vec<Post>>,
    /// The background thread.
    pub jobs: Jobs,
    /// The seed of random numbers.
    pub seed: u64,
    /// Process id and thread id, for error-log lines.
    pub ids: (u32, u32),
    /// The zero of [`bolide_base::Instant`], for the QUIC library.
    pub clock: bolide_quic::QuicClock,
    /// Wakes the disk writer.
    pub disk_writer: bolide_io::wake::Bell,
    /// The queue of console orders for the control thread.
    pub console: ConsoleDesk,
}

/// One core's worker.
#[derive(Debug)]
pub struct Worker<I> {
    pub(crate) requests: Requests<I>,
    /// Requests of older configurations with a deadline.
    pub(crate) overtime: Vec<Overtime>,
    inbox: Inbox,
    ready: Vec<Readiness>,
    pub(crate) after_drain: AfterDrain,
    done: bool,
    pulse: Arc<Pulse>,
    /// The number of turns.
    turns: u64,
    busy_loop: BusyLoop,
}

impl<I: Io> Worker<I> {
    /// A worker with the listeners of its configuration.
    pub fn new(startup: Startup<I>) -> Self {
        let Startup { number, io, generation, logs, inbox, posts, jobs, .. } = startup;
        let Startup { seed, ids, clock, disk_writer, console, .. } = startup;
        let pulse = inbox.pulse();
        let front = generation.site.store().map(|store| store.front(number));
        let secret = *generation.quic_keys.secret();
        let tallies = RequestTallies::new(posts.iter().map(Post::tally)).of(number);
        let workers = posts.len();
        let mut env = WorkerEnv::new(EnvParts {
            io,
            number,
            news: News::new(number, posts),
            kept: KeptAnswers::new(front, disk_writer),
            console,
            logs: Logs::new(ids.0, ids.1),
            log_files: LogFiles::new(logs),
            generation,
            tallies,
            seed,
        });
        debug_assert!(workers > 0, "a worker is one of all");
        // All workers share the descriptors of the process.
        let share = env.io.descriptors_max() / FILES_PART / workers as u64;
        env.files.bound_descriptors(usize::try_from(share).unwrap_or(usize::MAX));
        let requests = Requests {
            exchanges: Exchanges::new(),
            origins: Origins::new(number, |socket| PollToken::Names(socket).pack()),
            background: Background::new(jobs, number, secret),
            spooling: Spooling::default(),
            clients: Clients::new(QuicSide::new(clock)),
            env,
        };
        let mut worker = Self {
            requests,
            overtime: Vec::new(),
            inbox,
            ready: Vec::new(),
            after_drain: AfterDrain::Wait { is_logged: false },
            done: false,
            pulse,
            turns: 0,
            busy_loop: BusyLoop::default(),
        };
        let bell = worker.inbox.bell().fd();
        let watched = worker.requests.env.io.watch(bell, PollToken::Mail.pack(), Interest::Level);
        debug_assert!(watched, "a new epoll instance takes a descriptor");
        worker.requests.env.logs.set_buffers(worker.requests.env.generation.site.log_buffers());
        worker.requests.origins.tls_settings.learn(&worker.requests.env.generation);
        let groups = worker.requests.env.generation.groups.clone();
        worker.requests.origins.claim_names(&groups, &mut worker.requests.env);
        worker.listen();
        worker
    }

    /// Runs turns until told to end.
    pub fn run(&mut self) {
        while !self.done {
            self.turn();
        }
        self.requests.env.write_last_logs();
        self.does(Doing::Waiting);
    }

    /// One turn: collect events, process them, then send once per connection.
    pub fn turn(&mut self) {
        let is_busy = self.requests.is_busy();
        let until = if is_busy {
            Some(self.busy_loop.next_turn(self.requests.env.now.mono))
        } else {
            self.requests.env.next_deadline()
        };
        let mut ready = std::mem::take(&mut self.ready);
        self.does(Doing::Waiting);
        let now = self.requests.env.io.wait(until, &mut ready);
        self.turns += 1;
        self.does(Doing::Beginning);
        self.requests.env.set_time(now);
        self.requests.env.tally.set(WorkerCount::Turns, self.turns);
        if self.busy_loop.note(is_busy && ready.is_empty()) {
            self.requests
                .env
                .log_server(LogLevel::Alert, "turns follow one another though nothing happens");
        }
        let mut again = std::mem::take(&mut self.requests.clients.tcp.again);
        self.requests.clients.tcp.resume_output();
        if !self.requests.exchanges.resting.is_empty() {
            self.wake_resting();
        }
        if ready.iter().any(|report| report.token == CHANGES) {
            // A change before a request was reported no later than the request.
            self.requests.env.handle_changes();
        }
        for report in ready.drain(..) {
            self.dispatch(report);
        }
        debug_assert!(ready.is_empty(), "every report is acted on");
        self.ready = ready;
        self.does(Doing::Reading);
        if !again.is_empty() {
            // Clients may send the next request as soon as they have this turn's responses.
            self.requests.env.write_logs(bolide_engine::Due::Only);
            self.requests.env.handle_late_changes();
        }
        for key in again.drain(..) {
            self.receive(key);
        }
        let is_all = self.expire();
        self.does(Doing::Origins);
        self.requests.turn_origins();
        self.does(Doing::Writing);
        let mut dirty = std::mem::take(&mut self.requests.clients.tcp.dirty);
        for key in dirty.drain(..) {
            if self.requests.clients.tcp.is_dirty(key) {
                self.transmit(key);
            }
        }
        if self.requests.clients.tcp.dirty.is_empty() {
            self.requests.clients.tcp.dirty = dirty;
        }
        self.does(Doing::Quic);
        self.transmit_quic();
        self.does(Doing::Cache);
        self.requests.env.tend_cache();
        self.does(Doing::Logs);
        self.requests.env.write_logs_and_end();
        debug_assert!(
            !is_all
                || self.requests.env.wheel.next().is_none_or(|at| at > self.requests.env.now.mono),
            "a turn leaves a deadline that has passed"
        );
        self.done |= self.after_drain.is_end(&mut self.requests);
    }

    /// Sets the current activity for the watchdog.
    #[inline]
    pub(crate) fn does(&self, what: Doing) {
        self.pulse.note(self.turns, what);
    }

    fn dispatch(&mut self, report: Readiness) {
        let token = PollToken::unpack(report.token);
        self.does(token.map_or(Doing::Beginning, PollToken::report_doing));
        match token {
            Some(PollToken::Mail) => self.read_mail(),
            // They were handled before anything else.
            Some(PollToken::Changes) => {}
            Some(PollToken::Listener(slot)) => self.accept(slot as usize),
            Some(PollToken::Udp(slot)) => self.receive_datagrams(slot as usize),
            Some(PollToken::Tcp(key)) => self.wake_conn(key, report),
            Some(PollToken::Link(key)) => {
                let (origins, env, exchanges) = self.requests.upstream();
                origins.wake_link(key, report, env, exchanges);
            }
            Some(PollToken::Names(socket)) => {
                let (origins, env, _) = self.requests.upstream();
                origins.wake_names(socket, report, env);
            }
            Some(
                PollToken::Quic(_)
                | PollToken::Exchange(_)
                | PollToken::Asked(_)
                | PollToken::Body(_)
                | PollToken::Fetch(_)
                | PollToken::NamesDue(_)
                | PollToken::ServersDue,
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
        let Some(conn) = self.requests.clients.tcp.conns.get_mut(key) else { return };
        if report.writable && conn.blocked {
            conn.blocked = false;
            self.requests.clients.tcp.mark_dirty(key);
        }
        if report.readable || report.hangup {
            if let Some(conn) = self.requests.clients.tcp.conns.get_mut(key) {
                conn.readable = true;
                conn.hung_up |= report.hangup;
            }
            self.receive(key);
            if report.hangup {
                self.requests.leave_if_alone(key);
            }
        }
        // PERF: its exchanges are in the CPU's caches now; at the end of a turn with a hundred
        // connections they would not be (0.35 of 2.8 µs per HTTP/2 request).
        if self.requests.clients.tcp.is_dirty(key) {
            self.transmit(key);
        }
    }

    /// Pulls the bodies that reached the limit of the last turn.
    // PERF: out of line, as in most turns there are none.
    #[inline(never)]
    fn wake_resting(&mut self) {
        for key in std::mem::take(&mut self.requests.exchanges.resting) {
            self.requests.with_stream(key, StreamAct::Ready);
        }
    }

    fn read_mail(&mut self) {
        let bell = self.inbox.bell().fd();
        self.requests.env.io.drain(bell);
        for _ in 0..MAIL_PER_TURN {
            let Some(mail) = self.inbox.take() else { return };
            match mail {
                Mail::Configure(generation, logs) => self.configure(generation, logs),
                Mail::Tidy => self.requests.env.log_files.tidy(),
                Mail::Reopen(files) => {
                    self.requests.env.write_logs(bolide_engine::Due::Everything);
                    self.requests.env.log_files.reopen(files);
                }
                Mail::Resume => self.resume(),
                Mail::Yield => draining::drain(&mut self.requests),
                Mail::Quit => {
                    self.after_drain = AfterDrain::End;
                    draining::drain(&mut self.requests);
                }
                Mail::EndFresh => draining::end_fresh(&mut self.requests),
                Mail::Stop => self.done = true,
                Mail::Cut => {
                    self.cut_all();
                    self.done |= self.after_drain == AfterDrain::End;
                }
                // Its receiver may be gone.
                Mail::ReportHoldings(sender) => drop(sender.try_send(self.requests.holdings())),
                Mail::Finished(finished) => self.requests.handle_finished(finished),
                Mail::Datagram(strayed) => {
                    let (quic, env) = self.requests.quic();
                    if let Some(key) = quic.take_strayed(*strayed, env) {
                        self.handle_quic(key);
                    }
                }
                Mail::FillProgress { exchange } => {
                    self.requests
                        .env
                        .news
                        .wake(SlabKey::from_bits(exchange), bolide_engine::Wake::Filled);
                }
                Mail::Commanded { exchange, outcome } => {
                    let wake = bolide_engine::Wake::Commanded(outcome);
                    self.requests.env.news.wake(SlabKey::from_bits(exchange), wake);
                }
                Mail::Shared { exchange, answer } => {
                    self.handle_node_answer(SlabKey::from_bits(exchange), *answer);
                }
                Mail::Turn { group } => {
                    self.requests.origins.links.pools.handle_notice(group);
                    self.requests.origins.stepped = true;
                }
            }
        }
        self.inbox.bell().ring();
    }

    /// For tests: the numbers of connections and exchanges.
    #[must_use]
    pub fn live(&self) -> (usize, usize) {
        let Requests { clients, exchanges, .. } = &self.requests;
        (clients.tcp.conns.live() + clients.quic.conns.live(), exchanges.live.live())
    }

    /// For tests: the numbers of QUIC connections, and of those that the transport knows.
    #[must_use]
    pub fn live_quic(&self) -> (usize, usize) {
        let quic = &self.requests.clients.quic;
        (quic.conns.live(), quic.udp.iter().map(|udp| udp.endpoint.live()).sum())
    }

    /// For tests: the numbers of fetches, upstream connections, and idle ones.
    #[must_use]
    pub fn live_origins(&self) -> (usize, usize, usize) {
        let Origins { fetches, links, .. } = &self.requests.origins;
        (fetches.live(), links.table.live(), links.pools.idle())
    }
}
