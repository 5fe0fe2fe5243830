//! One pool: a socket that outlives the processes behind it, and the processes that accept on it.
//!
//! ```text
//!             start               ready
//!    (none)  ──────► next ─────────────────► current ──────► old ──► (gone)
//!       ▲             │ ends: told,            │ dies         finishes its requests
//!       └─ retry ─────┴─ current stays         └─► another is started at once
//! ```
//!
//! The listening socket belongs to the server and not to a process, so that requests wait for a
//! restart instead of failing. A pool on demand rests without a process; its socket is watched
//! then, and a client that connects starts one.
//! Easiest to break: `current` is told to finish only when `next` takes requests, or when the
//! socket is watched again.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Weak;
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::LogLevel;
use bolide_engine::Site;
use bolide_io::Io as _;
use bolide_io::child::{self, ChildEnd};
use bolide_io::epoll::Epoll;

use super::demand::Demand;
use super::process::{Process, say};
use super::report::{PoolReport, PoolState};
use super::retry::{RETRY_MAX, retry_delay};
use super::settle::Settled;
use super::socket::{PoolSocket, backlog};
use crate::control_log::ControlLog;

/// A master that lived this long did not fail to start.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// Failed starts in a row, without a request, after which clients are refused instead of kept
/// waiting.
const REFUSE_AFTER: u32 = 4;
/// How long a pool that is no longer configured waits for requests of the old configuration.
const RETIRE_AFTER: Duration = Duration::from_secs(300);
/// The resources of a pool.
pub(super) struct PoolCtx<'a> {
    pub(super) now: Instant,
    pub(super) door: &'a mut Epoll,
    pub(super) log: &'a ControlLog,
    pub(super) dir: &'a Path,
    pub(super) serial: &'a mut u64,
}

/// A pool that runs.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) settled: Settled,
    pub(super) socket: PoolSocket,
    pub(super) demand: Demand,
    current: Option<Process>,
    next: Option<Process>,
    old: Vec<Process>,
    /// Consecutive early ends: they determine the wait before the next try.
    failures: u32,
    /// Those of them that never took a request.
    stillborn: u32,
    retry_at: Option<Instant>,
    /// Restarts after an unexpected end.
    restarts: u64,
    retire: Option<Retire>,
    /// Clients that wait for the result of a restart.
    waiting: Vec<UnixStream>,
}

/// The end of a pool that is no longer configured.
#[derive(Debug)]
struct Retire {
    /// The last configuration that names it.
    site: Weak<Site>,
    until: Instant,
    /// Whether its processes were told to finish; none is started from then on.
    is_told: bool,
}

impl Retire {
    /// Whether no request of its configuration can come any more, or is waited for.
    fn is_due(&self, now: Instant) -> bool {
        self.site.strong_count() == 0 || now >= self.until
    }
}

impl Pool {
    pub(super) fn new(settled: Settled, socket: PoolSocket) -> Self {
        Self {
            settled,
            socket,
            demand: Demand::default(),
            current: None,
            next: None,
            old: Vec::new(),
            failures: 0,
            stillborn: 0,
            retry_at: None,
            restarts: 0,
            retire: None,
            waiting: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.settled.pool.name
    }

    /// Whether a configuration names it.
    pub(super) fn is_configured(&self) -> bool {
        self.retire.is_none()
    }

    /// Whether the pool has ended.
    pub(super) fn is_over(&self) -> bool {
        self.retire.as_ref().is_some_and(|it| it.is_told) && self.processes().next().is_none()
    }

    /// The number of its processes, including finishing ones.
    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.current.iter().chain(&self.next).chain(&self.old)
    }

    fn processes_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.current.iter_mut().chain(&mut self.next).chain(&mut self.old)
    }

    /// Starts a pool that is new: at once, or when a request comes.
    pub(super) fn begin(&mut self, ctx: &mut PoolCtx<'_>) {
        if self.settled.pool.idle.is_some() {
            self.rest(ctx);
        } else {
            self.start(ctx);
        }
    }

    /// Has no process until a client connects.
    fn rest(&mut self, ctx: &mut PoolCtx<'_>) {
        self.retry_at = None;
        if self.socket.listener.is_none()
            && let Err(why) = self.socket.listen(&self.settled)
        {
            say(ctx.log, LogLevel::Alert, self.name(), &why);
            // The next failure follows this one, so that it waits too.
            self.failures = self.failures.max(1);
            return self.retry_at = Some(ctx.now.after(RETRY_MAX));
        }
        let Some(listener) = &self.socket.listener else { return };
        *ctx.serial += 1;
        self.demand.rest(listener, ctx);
    }

    /// A client has connected to a pool without a process, or the pool gets one anyway.
    fn wake(&mut self, ctx: &mut PoolCtx<'_>) {
        self.demand.wake(self.socket.listener.as_ref(), ctx);
        self.start(ctx);
    }

    /// Ends the processes of a pool on demand that has had no request for long.
    fn sleep(&mut self, ctx: &mut PoolCtx<'_>) {
        let Some(idle) = self.settled.pool.idle else { return };
        let is_settled = self.next.is_none() && self.current.as_ref().is_some_and(|it| it.is_ready);
        if !is_settled || !self.demand.is_idle(idle, ctx.now) {
            return;
        }
        if let Some(mut process) = self.current.take() {
            say(ctx.log, LogLevel::Info, self.name(), "no requests, ending its processes");
            process.finish(ctx.now);
            self.old.push(process);
        }
        (self.failures, self.stillborn) = (0, 0);
        self.rest(ctx);
    }

    /// Starts a master; it takes over when it is ready.
    pub(super) fn start(&mut self, ctx: &mut PoolCtx<'_>) {
        if let Err(why) = self.try_start(ctx) {
            say(ctx.log, LogLevel::Alert, self.name(), &why);
            self.answer(&format!("error: {why}"));
            self.fail(ctx);
        }
    }

    fn try_start(&mut self, ctx: &mut PoolCtx<'_>) -> Result<(), String> {
        self.retry_at = None;
        if self.socket.listener.is_none() {
            self.socket.listen(&self.settled)?;
        }
        let Some(listener) = &self.socket.listener else { return Ok(()) };
        child::set_backlog(listener, backlog(&self.settled))
            .map_err(|error| format!("listen: {error}"))?;
        *ctx.serial += 1;
        let process = Process::start(&self.settled, listener, ctx.dir, *ctx.serial, ctx.now)?;
        if let Some(fd) = process.output() {
            ctx.door.watch(fd, process.serial, bolide_io::Interest::Level);
        }
        // Its children accept requests before it says that it is ready.
        if let Some(mut replaced) = self.next.replace(process) {
            replaced.finish(ctx.now);
            self.old.push(replaced);
        }
        if self.current.is_none() {
            self.current = self.next.take();
        }
        Ok(())
    }

    /// Restarts with other settings, or the same, and lets running requests finish.
    pub(super) fn restart(&mut self, ctx: &mut PoolCtx<'_>, client: Option<UnixStream>) {
        self.waiting.extend(client);
        (self.failures, self.stillborn) = (0, 0);
        if self.demand.is_resting() {
            if self.settled.pool.idle.is_none() {
                return self.wake(ctx);
            }
            let text = format!("ok: {}: has no process, the next request starts one", self.name());
            return self.answer(&text);
        }
        // One that is not ready may never be.
        if let Some(mut process) = self.current.take_if(|process| !process.is_ready) {
            process.finish(ctx.now);
            self.old.push(process);
        }
        self.start(ctx);
        self.settle(ctx);
    }

    /// Sets the settings of future processes.
    pub(super) fn configure(&mut self, settled: Settled, ctx: &mut PoolCtx<'_>) {
        let was_retired = self.retire.take().is_some();
        if self.settled.is_same(&settled) {
            // Its processes may have been told to finish already.
            let is_ending = self.current.is_none() && self.next.is_none();
            let is_resting = self.demand.is_resting();
            if was_retired && is_ending && !is_resting && self.retry_at.is_none() {
                self.begin(ctx);
            }
            return;
        }
        self.settled = settled;
        say(ctx.log, LogLevel::Notice, self.name(), "settings have changed, starting again");
        self.restart(ctx, None);
    }

    /// No configuration names it any more; it stays for the requests of the last that did.
    pub(super) fn retire(&mut self, site: &Weak<Site>, now: Instant) {
        if self.retire.is_none() {
            let until = now.after(RETIRE_AFTER);
            self.retire = Some(Retire { site: site.clone(), until, is_told: false });
        }
    }

    /// Whether it fits the new configuration.
    pub(super) fn suits(&self, settled: &Settled) -> bool {
        self.settled.shares_socket(settled)
    }

    /// Reads the output of the process with this token; false if it is not ours.
    pub(super) fn read(&mut self, serial: u64, ctx: &mut PoolCtx<'_>) -> bool {
        if self.demand.is_watched_as(serial) {
            self.wake(ctx);
            return true;
        }
        let name = self.settled.pool.name.clone();
        let Some(process) = self.processes_mut().find(|process| process.serial == serial) else {
            return false;
        };
        process.read(&name, ctx.log);
        if let Some(end) = process.take_lost_master() {
            self.lose_master(serial, &end, ctx);
        }
        self.settle(ctx);
        true
    }

    /// Lets `next` take over when it is ready.
    fn settle(&mut self, ctx: &mut PoolCtx<'_>) {
        if self.next.as_ref().is_some_and(|next| next.is_ready) || self.current.is_none() {
            let before = std::mem::replace(&mut self.current, self.next.take());
            if let Some(mut process) = before {
                process.finish(ctx.now);
                self.old.push(process);
            }
        }
        if self.next.is_none()
            && let Some(process) = self.current.as_ref().filter(|process| process.is_ready)
        {
            let text = format!("ok: {}: restarted, pid {}", self.name(), process.pid);
            self.answer(&text);
        }
    }

    /// Sends the result to all clients that wait for a restart, and closes their connections.
    fn answer(&mut self, text: &str) {
        for mut client in self.waiting.drain(..) {
            // A client that has left needs no result.
            let _ = writeln!(client, "{text}");
        }
    }

    /// Handles the end of a process; false if it is not ours.
    pub(super) fn handle_end(&mut self, pid: u32, end: ChildEnd, ctx: &mut PoolCtx<'_>) -> bool {
        let is_it = |process: &Process| process.pid == pid;
        if let Some(at) = self.old.iter().position(is_it) {
            let mut process = self.old.swap_remove(at);
            self.last_words(&mut process, ctx);
            self.keep_orphans(process, ctx);
            return true;
        }
        if let Some(mut process) = self.next.take_if(|process| is_it(process)) {
            self.last_words(&mut process, ctx);
            self.bury_next(process, &end.to_string(), ctx);
            return true;
        }
        if !self.current.as_ref().is_some_and(is_it) {
            return false;
        }
        if let Some(mut process) = self.current.take() {
            self.last_words(&mut process, ctx);
            self.replace(process, &end.to_string(), ctx);
        }
        true
    }

    /// The master behind a keeper has ended; the keeper waits for its children.
    fn lose_master(&mut self, serial: u64, end: &str, ctx: &mut PoolCtx<'_>) {
        let lost = format!("lost its master, which {end}");
        if let Some(process) = self.next.take_if(|process| process.serial == serial) {
            return self.bury_next(process, &lost, ctx);
        }
        if let Some(process) = self.current.take_if(|process| process.serial == serial) {
            self.replace(process, &lost, ctx);
        }
    }

    /// Starts another process in place of one that has ended unexpectedly.
    fn replace(&mut self, process: Process, end: &str, ctx: &mut PoolCtx<'_>) {
        let then = match self.settled.pool.idle {
            None => "starting again",
            Some(_) => "starting again for the next request",
        };
        let text = format!("process {} {end}, {then}", process.pid);
        say(ctx.log, LogLevel::Alert, self.name(), &text);
        self.restarts += 1;
        let lived = ctx.now.since(process.started);
        if process.is_ready {
            self.stillborn = 0;
        }
        self.keep_orphans(process, ctx);
        if lived >= HEALTHY_AFTER {
            self.failures = 0;
        }
        self.current = self.next.take();
        if self.current.is_none() {
            self.fail(ctx);
        }
    }

    /// A successor failed to start; the present master continues.
    fn bury_next(&mut self, process: Process, end: &str, ctx: &mut PoolCtx<'_>) {
        let text = format!("process {} {end} before it was ready", process.pid);
        say(ctx.log, LogLevel::Alert, self.name(), &text);
        self.answer(&format!("error: {}: {text}; the old one goes on", self.name()));
        self.keep_orphans(process, ctx);
    }

    /// Reads the output that a process left.
    fn last_words(&self, process: &mut Process, ctx: &mut PoolCtx<'_>) {
        let Some(fd) = process.output() else { return };
        ctx.door.unwatch(fd);
        // Its children may hold the pipe open, so read only the bytes that are there already.
        if child::is_readable(fd) {
            process.read(self.name(), ctx.log);
        }
    }

    /// Children of a dead master finish their requests.
    fn keep_orphans(&mut self, mut process: Process, ctx: &mut PoolCtx<'_>) {
        if child::is_group_alive(process.pid) {
            process.orphan(ctx.now);
            self.old.push(process);
        }
    }

    /// No process takes requests: tries again, at once or later.
    fn fail(&mut self, ctx: &mut PoolCtx<'_>) {
        if self.current.is_some() {
            return;
        }
        let delay = retry_delay(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.stillborn = self.stillborn.saturating_add(1);
        self.retry_at = Some(ctx.now.after(delay));
        if self.stillborn == REFUSE_AFTER {
            let text = "does not start; requests to it fail until it does";
            say(ctx.log, LogLevel::Alert, self.name(), text);
        }
        if self.stillborn >= REFUSE_AFTER {
            self.socket.listener = None;
            self.answer("error: it does not start; see the error log");
        }
    }

    /// Does pending work.
    pub(super) fn tick(&mut self, ctx: &mut PoolCtx<'_>) {
        for process in self.processes_mut() {
            process.tick(ctx.now);
        }
        self.old.retain(|process| child::is_group_alive(process.pid));
        self.settle(ctx);
        self.sleep(ctx);
        if self.retire.as_ref().is_some_and(|it| it.is_due(ctx.now)) {
            return self.end(ctx);
        }
        // Also without a configuration that names it: requests of the last that did may wait.
        if self.retry_at.is_some_and(|at| ctx.now >= at) {
            if self.is_wanted() { self.start(ctx) } else { self.rest(ctx) }
        }
    }

    /// Lets the processes of a pool that is no longer configured finish, and starts no others.
    fn end(&mut self, ctx: &mut PoolCtx<'_>) {
        self.retry_at = None;
        self.demand.wake(self.socket.listener.as_ref(), ctx);
        for mut process in self.current.take().into_iter().chain(self.next.take()) {
            process.finish(ctx.now);
            self.old.push(process);
        }
        if let Some(retire) = &mut self.retire {
            retire.is_told = true;
        }
    }

    /// Whether it should have a process though none lives: always, or while a client waits.
    fn is_wanted(&self) -> bool {
        let waits = || self.socket.listener.as_ref().is_some_and(Demand::has_client);
        self.settled.pool.idle.is_none() || waits()
    }

    /// When to call [`Self::tick`] at the latest: after a call, later than the time of the call.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let processes = self.processes().filter_map(Process::deadline);
        processes.chain(self.retry_at).min()
    }

    /// Kills every process, running requests included.
    pub(super) fn stop(&mut self, now: Instant) {
        for process in self.processes_mut() {
            process.stop(now);
        }
    }

    /// Kills the rest.
    pub(super) fn kill(&mut self) {
        for process in self.processes_mut() {
            process.kill();
        }
    }

    /// Whether any of its processes is left.
    pub(super) fn is_alive(&self) -> bool {
        self.processes().any(|process| child::is_group_alive(process.pid))
    }

    /// One line for a person.
    pub(super) fn report(&self, now: Instant) -> PoolReport {
        let process = self.current.as_ref();
        PoolReport {
            name: self.name().to_owned(),
            program: self.settled.binary.clone(),
            state: match process {
                Some(process) if process.is_ready => PoolState::Running,
                Some(_) => PoolState::Starting,
                None if self.demand.is_resting() => PoolState::Idle,
                None => PoolState::Down,
            },
            pid: process.map(|process| process.pid),
            children: process.map_or(0, Process::children),
            children_max: self.settled.children,
            seconds: process.map_or(0, |process| now.since(process.started).as_secs()),
            failures: self.failures,
            ended: self.restarts,
            finishing: self.old.len(),
            is_configured: self.is_configured(),
            load: self.demand.load(),
            queue_max: self.settled.pool.queue.len,
            masters: self.processes().map(|process| process.pid).collect(),
        }
    }
}
