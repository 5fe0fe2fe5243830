//! The simulated kernel: sockets, listeners, readiness, files, time.
//!
//! Everything is behind one handle that clients and the `Io` of each worker share. Nothing happens
//! by itself: time advances when a worker waits and when the run advances it.

mod callers;
pub mod changes;
pub mod dav;
pub mod dearth;
pub mod disk;
pub mod logs;
pub mod net;
mod power;
pub mod socket;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bolide_base::errno::{EIO, EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC};
use bolide_base::{Instant, Now};
use bolide_io::{Fd, Readiness};

use crate::chance::Chance;
use crate::deeds::Deeds;
use crate::names::SimNames;
use crate::pages::PageModel;
use crate::scenario::Faults;
use crate::scenario_log::{ScenarioLog, Telling};
use disk::SimDisk;
use logs::SimLogs;
use net::Net;
use socket::SocketTable;
pub use socket::{SimSocket, SocketGot};

/// Descriptors of connections; far above those that the real kernel gives out.
const FIRST_SOCKET: i32 = 1 << 24;

/// One listening socket: a port, seen by one worker.
#[derive(Debug)]
struct Port {
    number: u16,
    worker: usize,
    fd: i32,
    waiting: VecDeque<i32>,
    is_open: bool,
}

/// What the kernel knows of one worker.
#[derive(Debug, Default)]
struct Desk {
    bell: Option<(i32, u64)>,
    is_ringing: bool,
    listening: BTreeMap<i32, u64>,
    until: Option<Instant>,
    is_settled: bool,
    /// Waits in a row that ended at once without an event and without a call in between.
    idle_waits: u32,
}

/// The kernel.
#[derive(Debug)]
pub struct Kernel {
    /// What decides everything.
    pub seed: u64,
    /// Simulated nanoseconds since the start.
    pub nanos: u64,
    /// All files.
    pub disk: SimDisk,
    /// What goes wrong.
    pub faults: Faults,
    /// What happened.
    pub story: ScenarioLog,
    /// What the workers wrote to their access log.
    pub access_log: Vec<u8>,
    /// What fails for want of something.
    pub dearth: dearth::Dearth,
    /// Where other log lines go.
    pub logs: SimLogs,
    /// Nanoseconds that a reload leaves to requests, if it limits them.
    pub overtime: Option<u64>,
    /// Others have left files where bodies are kept.
    pub has_left_bodies: bool,
    /// Rules of the door that a worker broke.
    pub offences: Vec<String>,
    /// The workers were told to quit.
    pub draining: bool,
    /// There are more clients than the workers take; idle connections have to go.
    pub is_tight: bool,
    /// accept4() has just failed: the connection that the worker closes next makes room.
    pub(crate) is_shedding: bool,
    pub(crate) chance: Chance,
    pub(crate) sockets: SocketTable,
    ports: Vec<Port>,
    desks: Vec<Desk>,
    next_socket: i32,
    /// Connections that workers watch, and some that they have closed since.
    watched: BTreeSet<i32>,
    pub(crate) calls: u64,
    /// Calls of the workers without an answer yet, with their destinations.
    pub(crate) callers: VecDeque<(i32, String)>,
    /// What went wrong with applications.
    pub deeds: Deeds,
    /// What applications said that is kept.
    pub pages: PageModel,
    /// Milliseconds by which civil time has jumped.
    pub skew: i64,
    /// Calls about files of the cache after which the server dies, in the middle of a turn.
    pub dies_in: Option<u64>,
    /// The server is dead: nothing that it does has any effect.
    pub is_dead: bool,
    /// Nanoseconds for which the server may rely on an earlier look at a file.
    pub look_valid: u64,
    /// The disk of the cache is full until then.
    pub full_until: u64,
    /// Seconds for which pages are good, at most.
    pub age_max: u64,
    /// What carries datagrams.
    pub net: Net,
    /// How long the server waits for clients.
    pub patience: KernelPatience,
    /// Some port for datagrams is not listened on any more.
    pub has_lost_ports: bool,
    /// Who knows the addresses of names.
    pub names: SimNames,
    /// Certificates that were not found for who shook hands.
    pub missing_certificates: Arc<AtomicU64>,
}

/// How long the server waits for clients of QUIC, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPatience {
    /// For any sign of life.
    pub idle: u64,
    /// For an answer to move.
    pub send: u64,
    /// For a request's body to move.
    pub body: u64,
}

impl Default for KernelPatience {
    fn default() -> Self {
        Self { idle: 30_000_000_000, send: 20_000_000_000, body: 20_000_000_000 }
    }
}

/// Waits without any effect after which a worker is called spinning.
const IDLE_WAITS_MAX: u32 = 64;

impl Kernel {
    /// An empty machine for `workers`.
    #[must_use]
    pub fn new(seed: u64, workers: usize, faults: Faults, telling: Telling) -> Self {
        Self {
            seed,
            nanos: 1_000_000,
            disk: SimDisk::default(),
            faults,
            story: ScenarioLog::new(telling),
            access_log: Vec::new(),
            dearth: dearth::Dearth::default(),
            logs: SimLogs::default(),
            overtime: None,
            has_left_bodies: false,
            offences: Vec::new(),
            draining: false,
            is_tight: false,
            is_shedding: false,
            chance: Chance::new(seed, 1),
            sockets: SocketTable::default(),
            ports: Vec::new(),
            // The last one is the disk writer's.
            desks: (0..=workers).map(|_| Desk::default()).collect(),
            next_socket: FIRST_SOCKET,
            watched: BTreeSet::new(),
            calls: 0,
            callers: VecDeque::new(),
            deeds: Deeds::default(),
            pages: PageModel::default(),
            skew: 0,
            dies_in: None,
            is_dead: false,
            look_valid: 1_000_000_000,
            full_until: 0,
            age_max: 3,
            net: Net::new(Chance::new(seed, 4)),
            patience: KernelPatience::default(),
            has_lost_ports: false,
            names: SimNames::new(seed),
            missing_certificates: Arc::default(),
        }
    }

    /// Tells one line of the story.
    pub fn tell(&mut self, line: impl FnOnce() -> String) {
        self.story.tell(self.nanos, line);
    }

    /// Errors of a disk that the cache is on, and the end of a server in the middle of its work.
    pub(crate) fn disturb_store(
        &mut self,
        call: &'static str,
    ) -> Result<(), bolide_io::FileFailure> {
        if let Some(left) = &mut self.dies_in {
            *left = left.saturating_sub(1);
            self.is_dead |= *left == 0;
        }
        let writes = matches!(call, "open" | "pwrite" | "write" | "mkdir");
        let errno = if self.is_dead {
            EIO
        } else if writes && self.nanos < self.full_until {
            ENOSPC
        } else if call != "unlink" && self.chance.one_in(self.faults.store_in) {
            if writes && self.chance.one_in(2) { ENOSPC } else { EIO }
        } else {
            return Ok(());
        };
        let is_dead = self.is_dead;
        self.tell(|| format!("{call}: error {errno}{}", if is_dead { ", dead" } else { "" }));
        Err(bolide_io::FileFailure { errno, call })
    }

    /// The server has died: its sockets are gone. Another one may start.
    pub fn bury(&mut self) {
        for socket in self.sockets.values_mut().filter(|socket| socket.closed.is_none()) {
            socket.killed = true;
            socket.close(bolide_io::Reset::Yes);
        }
        self.ports.clear();
        self.net.bury();
        self.desks.iter_mut().for_each(|desk| *desk = Desk::default());
        (self.dies_in, self.is_dead, self.calls) = (None, false, 0);
        self.tell(|| "the server is dead".to_owned());
    }

    /// Registers the listening socket `fd` of `worker`.
    pub fn add_port(&mut self, number: u16, worker: usize, fd: Fd) {
        let waiting = VecDeque::new();
        self.ports.push(Port { number, worker, fd: fd.0, waiting, is_open: true });
    }

    /// Closes a port: who waits there is refused.
    pub fn close_port(&mut self, number: u16) {
        for port in self.ports.iter_mut().filter(|port| port.number == number) {
            // The number of its descriptor may be given to another socket.
            (port.is_open, port.fd) = (false, -1);
            for fd in port.waiting.drain(..) {
                if let Some(socket) = self.sockets.get_mut(fd) {
                    socket.killed = true;
                    socket.close(bolide_io::Reset::Yes);
                }
            }
        }
        self.tell(|| format!("port {number} is closed"));
    }

    /// A client calls; some worker will accept it.
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
        let outbound = 1024 + self.chance.size(self.faults.outbound_max);
        let label = (fd - FIRST_SOCKET) as u32;
        self.sockets.insert(fd, SimSocket::new(label, number, inbound, outbound));
        self.tell(|| format!("#{label} calls {number}, worker {worker} ({inbound}/{outbound})"));
        Some(fd)
    }

    /// Takes the waiting connection, if there is one.
    ///
    /// # Errors
    ///
    /// There is no descriptor or no memory left for him.
    pub(crate) fn accept(&mut self, listener: Fd) -> Result<Option<i32>, i32> {
        self.is_shedding = self.chance.one_in(self.faults.accept_in);
        if self.is_shedding {
            let errno = [EMFILE, ENFILE, ENOBUFS, ENOMEM][self.chance.index(4)];
            self.tell(|| format!("accept: error {errno}"));
            return Err(errno);
        }
        let port = self.ports.iter_mut().find(|port| port.fd == listener.0);
        Ok(port.and_then(|port| port.waiting.pop_front()))
    }

    /// The connection behind a descriptor.
    #[must_use]
    pub fn socket(&self, fd: i32) -> Option<&SimSocket> {
        self.sockets.get(fd)
    }

    /// Connections that the server has not closed.
    pub fn open_sockets(&self) -> impl Iterator<Item = &SimSocket> {
        self.sockets.iter().map(|(_, socket)| socket).filter(|socket| socket.closed.is_none())
    }

    /// The client of `fd` writes; `None` when the connection is dead.
    pub fn client_write(&mut self, fd: i32, bytes: &[u8]) -> Option<usize> {
        self.sockets.get_mut(fd)?.write(bytes)
    }

    /// The client of `fd` reads.
    pub fn client_read(&mut self, fd: i32, max: usize) -> SocketGot {
        self.sockets.get_mut(fd).map_or(SocketGot::Reset, |socket| socket.read(max))
    }

    /// The client of `fd` sends no more.
    pub fn client_finish(&mut self, fd: i32) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            socket.finish();
            let number = socket.number;
            self.tell(|| format!("#{number} client ends its side"));
        }
    }

    /// The client of `fd` leaves; `rude` means by a reset.
    pub fn client_leave(&mut self, fd: i32, rude: bool) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            socket.leave(rude);
            let number = socket.number;
            self.tell(|| format!("#{number} client leaves{}", if rude { " rudely" } else { "" }));
        }
    }

    /// Kills a connection in the middle, as a broken network does.
    pub fn cut(&mut self, fd: i32) {
        if let Some(socket) = self.sockets.get_mut(fd)
            && socket.closed.is_none()
        {
            self.deeds.cuts += u64::from(socket.port == 0);
            socket.killed = true;
            socket.leave(true);
            socket.reset = true;
            let number = socket.number;
            self.tell(|| format!("#{number} the network breaks"));
        }
    }

    /// Any connection that is open on both sides.
    pub fn any_socket(&mut self) -> Option<i32> {
        let open = |s: &SimSocket| s.closed.is_none() && !s.client_gone;
        let all: Vec<i32> =
            self.sockets.iter().filter(|(_, s)| open(s)).map(|(fd, _)| fd).collect();
        if all.is_empty() { None } else { Some(all[self.chance.index(all.len())]) }
    }

    /// There is mail in the box of `worker`.
    pub fn ring(&mut self, worker: usize) {
        self.desks[worker].is_ringing = true;
    }

    /// Whether every worker has read its mail.
    #[must_use]
    pub fn all_mail_is_read(&self) -> bool {
        let workers = &self.desks[..self.desks.len() - 1];
        workers.iter().all(|desk| !desk.is_ringing)
    }

    pub(crate) fn silence(&mut self, worker: usize) {
        self.desks[worker].is_ringing = false;
    }

    pub(crate) fn watch(&mut self, worker: usize, fd: i32, token: u64) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            self.watched.insert(fd);
            socket.watch = Some((worker, token));
            // epoll reports what is already so when a descriptor is added.
            socket.edge = true;
        } else if self.net.has_socket(fd) {
            self.net.watch(fd, token);
        } else if self.names.has(fd) {
            self.names.watch(fd, token);
        } else if self.ports.iter().any(|port| port.fd == fd) {
            self.desks[worker].listening.insert(fd, token);
        } else {
            // It is a worker's first; later it is a port that was closed meanwhile.
            self.desks[worker].bell.get_or_insert((fd, token));
        }
    }

    pub(crate) fn unwatch(&mut self, worker: usize, fd: i32) {
        self.desks[worker].listening.remove(&fd);
        self.net.close(fd);
    }

    /// Whether `worker` has something to do at this moment.
    #[must_use]
    pub fn is_due(&self, worker: usize) -> bool {
        let desk = &self.desks[worker];
        !desk.is_settled
            || desk.until.is_some_and(|at| at.as_nanos() <= self.nanos)
            || self.has_events(worker)
    }

    /// When `worker` wants to be woken though nothing happens.
    #[must_use]
    pub fn deadline(&self, worker: usize) -> Option<u64> {
        self.desks[worker].until.map(Instant::as_nanos)
    }

    fn has_events(&self, worker: usize) -> bool {
        let desk = &self.desks[worker];
        let calls = |fd: &i32| self.ports.iter().any(|p| p.fd == *fd && !p.waiting.is_empty());
        desk.is_ringing
            || desk.listening.keys().any(calls)
            || self.net.is_readable(worker)
            || self.names.readable(worker).next().is_some()
            || self.disk.watches.report(worker).is_some()
            || self
                .watched
                .iter()
                .any(|fd| self.sockets.get(*fd).is_some_and(|socket| socket.is_due_to(worker)))
    }

    /// The time, civil time included.
    #[must_use]
    pub const fn now(&self) -> Now {
        let civil = disk::EPOCH_SECONDS * 1000 + self.nanos / 1_000_000;
        let unix_millis = civil.saturating_add_signed(self.skew);
        Now { mono: Instant::from_nanos(self.nanos), unix_millis }
    }

    /// Delivers what happened to `worker`: some of it, in any order, the rest later.
    pub(crate) fn wait(&mut self, worker: usize, until: Option<Instant>, out: &mut Vec<Readiness>) {
        self.nanos += self.chance.between(1_000, 60_000);
        self.is_shedding = false;
        self.check_ends(worker);
        self.deliver();
        let mut found = Vec::new();
        let level = |token| Readiness { token, readable: true, writable: false, hangup: false };
        let desk = &self.desks[worker];
        found.extend(desk.bell.filter(|_| desk.is_ringing).map(|(_, token)| level(token)));
        // Ports keep their order; descriptor numbers depend on what other threads have open.
        let called = self.ports.iter().filter(|port| !port.waiting.is_empty());
        found.extend(called.filter_map(|port| desk.listening.get(&port.fd)).copied().map(level));
        found.extend(self.net.readable(worker).map(level));
        found.extend(self.names.readable(worker).map(level));
        let late = self.faults.late_in;
        found.retain(|_| !self.chance.one_in(late));
        // A change is told no later than a request that comes behind it.
        found.extend(self.disk.watches.report(worker).map(level));
        self.watched
            .retain(|fd| self.sockets.get(*fd).is_some_and(|socket| socket.watch.is_some()));
        for fd in &self.watched {
            let Some(socket) = self.sockets.get_mut(*fd) else { continue };
            let Some((_, token)) = socket.watch.filter(|(watcher, _)| *watcher == worker) else {
                continue;
            };
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
        let desk = &mut self.desks[worker];
        desk.until = until;
        desk.is_settled = !has_events && is_later;
        desk.idle_waits = if is_idle && !is_later { desk.idle_waits + 1 } else { 0 };
        self.calls = 0;
        if desk.idle_waits > IDLE_WAITS_MAX {
            desk.idle_waits = 0;
            self.offences.push(format!("worker {worker} turns and turns and does nothing"));
        }
    }
}
