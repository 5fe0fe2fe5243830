//! The simulated kernel: sockets, listeners, readiness, files, time.
//!
//! All clients and the `Io` of each worker share one handle to it. Nothing happens by itself: time
//! advances when a worker waits and when the run advances it.

mod connects;
pub mod disk;
pub mod file_system;
pub mod inotify;
pub mod logs;
pub mod net;
mod power_loss;
pub mod socket;
pub mod syscall_faults;
mod worker_state;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bolide_base::errno::{EIO, EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC};
use bolide_base::{Instant, Now};
use bolide_io::{Fd, Readiness};

use crate::chance::Chance;
use crate::dns::SimDns;
use crate::fault_rates::FaultRates;
use crate::fault_record::FaultRecord;
use crate::pages::PageModel;
use crate::run_trace::{RunTrace, TraceMode};
use disk::SimDisk;
use logs::SimLogs;
use net::Net;
use socket::SocketTable;
pub use socket::{SimSocket, SocketGot};
use worker_state::WorkerState;

/// The first descriptor of a simulated connection, far above those of the real kernel.
const FIRST_SOCKET: i32 = 1 << 24;

/// One worker's listening socket for a port.
#[derive(Debug)]
struct Port {
    number: u16,
    worker: usize,
    fd: i32,
    waiting: VecDeque<i32>,
    is_open: bool,
}

/// The simulated kernel.
#[derive(Debug)]
pub struct Kernel {
    /// The seed of the run.
    pub seed: u64,
    /// Simulated nanoseconds since the start.
    pub nanos: u64,
    /// The file system.
    pub disk: SimDisk,
    /// The rates of faults.
    pub fault_rates: FaultRates,
    /// The trace of the run.
    pub run_trace: RunTrace,
    /// The access log of the workers.
    pub access_log: Vec<u8>,
    /// Failed system calls.
    pub syscall_faults: syscall_faults::SyscallFaults,
    /// The other log targets.
    pub logs: SimLogs,
    /// `worker_shutdown_timeout` in nanoseconds, if the configuration has one.
    pub shutdown_timeout: Option<u64>,
    /// Files of another process are in the directory for request bodies.
    pub has_foreign_files: bool,
    /// Violated rules of `Io` and of the protocols.
    pub violations: Vec<String>,
    /// The workers have got the order to quit.
    pub draining: bool,
    /// There are more clients than `worker_connections`: idle connections are closed.
    pub is_tight: bool,
    /// accept4() has just failed: the connection that the worker closes next frees a descriptor.
    pub(crate) is_shedding: bool,
    pub(crate) chance: Chance,
    pub(crate) sockets: SocketTable,
    ports: Vec<Port>,
    worker_states: Vec<WorkerState>,
    next_socket: i32,
    pub(crate) calls: u64,
    /// Connects of workers that no upstream has accepted, with their addresses.
    pub(crate) pending_connects: VecDeque<(i32, String)>,
    /// The faults injected so far.
    pub fault_record: FaultRecord,
    /// The versions of cached pages.
    pub pages: PageModel,
    /// Milliseconds by which the civil time has jumped.
    pub skew: i64,
    /// Calls for files of the cache until the server crashes within a turn.
    pub dies_in: Option<u64>,
    /// The server has crashed: its calls have no effect.
    pub is_dead: bool,
    /// Nanoseconds for which the server may use an earlier file lookup.
    pub lookup_valid: u64,
    /// The disk of the cache is full until this time.
    pub full_until: u64,
    /// The longest max-age of pages, in seconds.
    pub age_max: u64,
    /// The UDP network.
    pub net: Net,
    /// The timeouts of the server for QUIC.
    pub quic_timeouts: QuicTimeouts,
    /// A UDP port was closed by a reload.
    pub has_lost_ports: bool,
    /// The name servers.
    pub dns: SimDns,
    /// Handshakes whose certificate was not found.
    pub missing_certificates: Arc<AtomicU64>,
}

/// The server's timeouts for QUIC clients, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicTimeouts {
    /// `keepalive_timeout`
    pub idle: u64,
    /// `send_timeout`
    pub send: u64,
    /// `client_body_timeout`
    pub body: u64,
}

impl Default for QuicTimeouts {
    fn default() -> Self {
        Self { idle: 30_000_000_000, send: 20_000_000_000, body: 20_000_000_000 }
    }
}

/// Consecutive idle waits that count as a busy loop.
const IDLE_WAITS_MAX: u32 = 64;

impl Kernel {
    /// An empty machine for this number of workers.
    #[must_use]
    pub fn new(seed: u64, workers: usize, fault_rates: FaultRates, trace_mode: TraceMode) -> Self {
        Self {
            seed,
            nanos: 1_000_000,
            disk: SimDisk::default(),
            fault_rates,
            run_trace: RunTrace::new(trace_mode),
            access_log: Vec::new(),
            syscall_faults: syscall_faults::SyscallFaults::default(),
            logs: SimLogs::default(),
            shutdown_timeout: None,
            has_foreign_files: false,
            violations: Vec::new(),
            draining: false,
            is_tight: false,
            is_shedding: false,
            chance: Chance::new(seed, 1),
            sockets: SocketTable::default(),
            ports: Vec::new(),
            // The last one is for the disk writer.
            worker_states: (0..=workers).map(|_| WorkerState::default()).collect(),
            next_socket: FIRST_SOCKET,
            calls: 0,
            pending_connects: VecDeque::new(),
            fault_record: FaultRecord::default(),
            pages: PageModel::default(),
            skew: 0,
            dies_in: None,
            is_dead: false,
            lookup_valid: 1_000_000_000,
            full_until: 0,
            age_max: 3,
            net: Net::new(Chance::new(seed, 4)),
            quic_timeouts: QuicTimeouts::default(),
            has_lost_ports: false,
            dns: SimDns::new(seed),
            missing_certificates: Arc::default(),
        }
    }

    /// Adds a line to the trace.
    pub fn trace(&mut self, line: impl FnOnce() -> String) {
        self.run_trace.line(self.nanos, line);
    }

    /// Injects errors of the cache's disk, and the crash of the server within a turn.
    pub(crate) fn store_fault(&mut self, call: &'static str) -> Result<(), bolide_io::FileFailure> {
        if let Some(left) = &mut self.dies_in {
            *left = left.saturating_sub(1);
            self.is_dead |= *left == 0;
        }
        let writes = matches!(call, "open" | "pwrite" | "write" | "mkdir");
        let errno = if self.is_dead {
            EIO
        } else if writes && self.nanos < self.full_until {
            ENOSPC
        } else if call != "unlink" && self.chance.one_in(self.fault_rates.store_in) {
            if writes && self.chance.one_in(2) { ENOSPC } else { EIO }
        } else {
            return Ok(());
        };
        let is_dead = self.is_dead;
        self.trace(|| format!("{call}: error {errno}{}", if is_dead { ", dead" } else { "" }));
        Err(bolide_io::FileFailure { errno, call })
    }

    /// The server crashes: its sockets are closed. Another server may start.
    pub fn kill_server(&mut self) {
        for socket in self.sockets.values_mut().filter(|socket| socket.closed.is_none()) {
            socket.killed = true;
            socket.close(bolide_io::Reset::Yes);
        }
        self.ports.clear();
        self.net.kill_server();
        self.worker_states.iter_mut().for_each(|state| *state = WorkerState::default());
        (self.dies_in, self.is_dead, self.calls) = (None, false, 0);
        self.trace(|| "the server is dead".to_owned());
    }

    /// Registers the listening socket `fd` of `worker`.
    pub fn add_port(&mut self, number: u16, worker: usize, fd: Fd) {
        let waiting = VecDeque::new();
        self.ports.push(Port { number, worker, fd: fd.0, waiting, is_open: true });
    }

    /// Closes a port and resets the connections that wait there.
    pub fn close_port(&mut self, number: u16) {
        for port in self.ports.iter_mut().filter(|port| port.number == number) {
            // Another socket may get the number of its descriptor.
            (port.is_open, port.fd) = (false, -1);
            for fd in port.waiting.drain(..) {
                if let Some(socket) = self.sockets.get_mut(fd) {
                    socket.killed = true;
                    socket.close(bolide_io::Reset::Yes);
                }
            }
        }
        self.trace(|| format!("port {number} is closed"));
    }

    /// A client connects; the listener of one worker gets the connection.
    pub fn connect(&mut self, number: u16) -> Option<i32> {
        let open = |port: &&mut Port| port.is_open && port.number == number;
        let count = self.ports.iter_mut().filter(open).count();
        if count == 0 {
            return None;
        }
        let chosen = self.chance.index(count);
        let port = self.ports.iter_mut().filter(open).nth(chosen)?;
        self.next_socket += 1;
        let fd = self.next_socket;
        port.waiting.push_back(fd);
        let worker = port.worker;
        let inbound = 64 + self.chance.size(128 * 1024);
        let outbound = 1024 + self.chance.size(self.fault_rates.outbound_max);
        let label = (fd - FIRST_SOCKET) as u32;
        self.sockets.insert(fd, SimSocket::new(label, number, inbound, outbound));
        self.trace(|| format!("#{label} calls {number}, worker {worker} ({inbound}/{outbound})"));
        Some(fd)
    }

    /// Takes the next connection that waits, if there is one.
    ///
    /// # Errors
    ///
    /// No descriptor or no memory is left.
    pub(crate) fn accept(&mut self, listener: Fd) -> Result<Option<i32>, i32> {
        if self.chance.one_in(self.fault_rates.accept_in) {
            self.is_shedding = true;
            let errno = [EMFILE, ENFILE, ENOBUFS, ENOMEM][self.chance.index(4)];
            self.trace(|| format!("accept: error {errno}"));
            return Err(errno);
        }
        let port = self.ports.iter_mut().find(|port| port.fd == listener.0);
        Ok(port.and_then(|port| port.waiting.pop_front()))
    }

    /// The connection with this descriptor.
    #[must_use]
    pub fn socket(&self, fd: i32) -> Option<&SimSocket> {
        self.sockets.get(fd)
    }

    /// Connections that the server has not closed.
    pub fn open_sockets(&self) -> impl Iterator<Item = &SimSocket> {
        self.sockets.iter().map(|(_, socket)| socket).filter(|socket| socket.closed.is_none())
    }

    /// The client of `fd` writes; `None` if the connection is dead.
    pub fn client_write(&mut self, fd: i32, bytes: &[u8]) -> Option<usize> {
        self.sockets.get_mut(fd)?.write(bytes)
    }

    /// The client of `fd` reads.
    pub fn client_read(&mut self, fd: i32, max: usize) -> SocketGot {
        self.sockets.get_mut(fd).map_or(SocketGot::Reset, |socket| socket.read(max))
    }

    /// The client of `fd` shuts its sending side down.
    pub fn client_finish(&mut self, fd: i32) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            socket.finish();
            let number = socket.number;
            self.trace(|| format!("#{number} client ends its side"));
        }
    }

    /// The client of `fd` closes; by a reset if `rude`.
    pub fn client_leave(&mut self, fd: i32, rude: bool) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            socket.leave(rude);
            let number = socket.number;
            self.trace(|| format!("#{number} client leaves{}", if rude { " rudely" } else { "" }));
        }
    }

    /// The network breaks a connection.
    pub fn cut(&mut self, fd: i32) {
        if let Some(socket) = self.sockets.get_mut(fd)
            && socket.closed.is_none()
        {
            self.fault_record.broken_links += u64::from(socket.port == 0);
            socket.killed = true;
            socket.leave(true);
            socket.reset = true;
            let number = socket.number;
            self.trace(|| format!("#{number} the network breaks"));
        }
    }

    /// A random connection that is open on both sides.
    pub fn any_socket(&mut self) -> Option<i32> {
        let open = |s: &SimSocket| s.closed.is_none() && !s.client_gone;
        let all: Vec<i32> =
            self.sockets.iter().filter(|(_, s)| open(s)).map(|(fd, _)| fd).collect();
        if all.is_empty() { None } else { Some(all[self.chance.index(all.len())]) }
    }

    /// Wakes `worker`, because it has mail.
    pub fn ring(&mut self, worker: usize) {
        self.worker_states[worker].is_ringing = true;
    }

    /// Whether every worker has read its mail.
    #[must_use]
    pub fn all_mail_is_read(&self) -> bool {
        let workers = &self.worker_states[..self.worker_states.len() - 1];
        workers.iter().all(|state| !state.is_ringing)
    }

    pub(crate) fn clear_wake(&mut self, worker: usize) {
        self.worker_states[worker].is_ringing = false;
    }

    pub(crate) fn watch(&mut self, worker: usize, fd: i32, token: u64) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            self.worker_states[worker].watch(fd);
            socket.watch = Some((worker, token));
            // epoll reports the current state when a descriptor is added.
            socket.edge = true;
        } else if self.net.has_socket(fd) {
            self.net.watch(fd, token);
        } else if self.dns.has(fd) {
            self.dns.watch(fd, token);
        } else if self.ports.iter().any(|port| port.fd == fd) {
            self.worker_states[worker].listening.insert(fd, token);
        } else {
            // The first unknown descriptor is a worker's eventfd; later ones are ports that were
            // closed.
            self.worker_states[worker].bell.get_or_insert((fd, token));
        }
    }

    pub(crate) fn unwatch(&mut self, worker: usize, fd: i32) {
        self.worker_states[worker].listening.remove(&fd);
        self.net.close(fd);
    }

    /// Whether `worker` can make progress now.
    #[must_use]
    pub fn is_due(&self, worker: usize) -> bool {
        let state = &self.worker_states[worker];
        !state.is_settled
            || state.until.is_some_and(|at| at.as_nanos() <= self.nanos)
            || self.has_events(worker)
    }

    /// When the timeout of the worker's wait expires.
    #[must_use]
    pub fn deadline(&self, worker: usize) -> Option<u64> {
        self.worker_states[worker].until.map(Instant::as_nanos)
    }

    fn has_events(&self, worker: usize) -> bool {
        let state = &self.worker_states[worker];
        let calls = |fd: &i32| self.ports.iter().any(|p| p.fd == *fd && !p.waiting.is_empty());
        state.is_ringing
            || state.listening.keys().any(calls)
            || self.net.is_readable(worker)
            || self.dns.readable(worker).next().is_some()
            || self.disk.watches.report(worker).is_some()
            || state
                .watched
                .iter()
                .any(|fd| self.sockets.get(*fd).is_some_and(|socket| socket.is_due_to(worker)))
    }

    /// The current time, with civil time.
    #[must_use]
    pub const fn now(&self) -> Now {
        let civil = disk::EPOCH_SECONDS * 1000 + self.nanos / 1_000_000;
        let unix_millis = civil.saturating_add_signed(self.skew);
        Now { mono: Instant::from_nanos(self.nanos), unix_millis }
    }

    /// Delivers some of the events for `worker`, in random order; the others later.
    pub(crate) fn wait(&mut self, worker: usize, until: Option<Instant>, out: &mut Vec<Readiness>) {
        self.nanos += self.chance.between(1_000, 60_000);
        self.is_shedding = false;
        self.check_ends(worker);
        self.deliver();
        let mut found = Vec::new();
        let level = |token| Readiness { token, readable: true, writable: false, hangup: false };
        let state = &self.worker_states[worker];
        found.extend(state.bell.filter(|_| state.is_ringing).map(|(_, token)| level(token)));
        // Listeners keep their order, because descriptor numbers depend on other threads.
        let called = self.ports.iter().filter(|port| !port.waiting.is_empty());
        found.extend(called.filter_map(|port| state.listening.get(&port.fd)).copied().map(level));
        found.extend(self.net.readable(worker).map(level));
        found.extend(self.dns.readable(worker).map(level));
        let late = self.fault_rates.late_in;
        found.retain(|_| !self.chance.one_in(late));
        // A change of a file is reported no later than a request that follows it.
        found.extend(self.disk.watches.report(worker).map(level));
        let is_own = |fd: &i32| self.sockets.get(*fd).is_some_and(|s| s.is_watched_by(worker));
        let watched = &mut self.worker_states[worker].watched;
        watched.retain(is_own);
        for fd in watched {
            let Some(socket) = self.sockets.get_mut(*fd) else { continue };
            let Some((_, token)) = socket.watch else { continue };
            if !socket.edge || self.chance.one_in(late) {
                continue;
            }
            socket.edge = false;
            let report = Readiness {
                token,
                readable: socket.is_readable(),
                writable: socket.is_writable(),
                hangup: socket.fin || socket.dead,
            };
            if report.readable || report.writable || report.hangup {
                found.push(report);
            }
        }
        self.chance.shuffle(&mut found);
        self.settle(worker, until, !found.is_empty());
        out.append(&mut found);
    }

    fn settle(&mut self, worker: usize, until: Option<Instant>, has_events: bool) {
        let is_later = until.is_none_or(|at| at.as_nanos() > self.nanos);
        let is_idle = !has_events && self.calls == 0;
        let state = &mut self.worker_states[worker];
        state.until = until;
        state.is_settled = !has_events && is_later;
        state.idle_waits = if is_idle && !is_later { state.idle_waits + 1 } else { 0 };
        let is_deaf = state.had_events && self.calls == 0;
        state.deaf_waits = if is_deaf { state.deaf_waits + 1 } else { 0 };
        state.had_events = has_events;
        self.calls = 0;
        if state.deaf_waits > IDLE_WAITS_MAX {
            state.deaf_waits = 0;
            self.violations.push(format!("worker {worker} does not react to what is ready"));
        }
        if state.idle_waits > IDLE_WAITS_MAX {
            state.idle_waits = 0;
            self.violations.push(format!("worker {worker} turns and turns and does nothing"));
        }
    }
}
