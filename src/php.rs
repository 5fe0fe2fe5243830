//! The PHP pools that the server runs itself: from a configuration to processes, across reloads and
//! deaths, to the end. All of it runs on the control thread; requests never wait for it.

mod cgroup;
pub(crate) mod command;
mod demand;
mod files;
mod fpm;
pub(crate) mod keeper;
mod lsphp;
mod pool;
mod process;
mod report;
mod retry;
pub(crate) mod runtime;
mod settle;
mod size;
mod socket;
mod top;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::{Config, LogLevel, PeerAddress, UpstreamKind, UpstreamServer};
use bolide_engine::Site;
use bolide_io::Io as _;
use bolide_io::child;
use bolide_io::epoll::Epoll;
use bolide_upstream::{Group, UpstreamGroups};

use crate::admin::line_protocol::{LINE_MAX, Words};
use crate::control_log::ControlLog;
use pool::{Pool, PoolCtx};
pub(crate) use report::{PoolReport, PoolState};
use runtime::Runtime;
use settle::Settled;
pub(crate) use settle::dangers;
use socket::PoolSocket;

/// Tokens of the descriptors that the control thread watches: its signals, the command socket, the
/// output of processes.
pub(crate) const SIGNALS: u64 = 0;
const COMMANDS: u64 = 1;
/// How long a client may take to send a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);
/// How long commands wait when there is no descriptor for them.
const COMMAND_REST: Duration = Duration::from_millis(500);
/// Time for processes to end when the server does.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// The resources of the control thread.
pub(crate) struct PhpDesk<'a> {
    pub(crate) door: &'a mut Epoll,
    pub(crate) log: &'a ControlLog,
}

/// All pools of the server.
#[derive(Debug, Default)]
pub(crate) struct PhpPools {
    pools: Vec<Pool>,
    commands: Option<UnixListener>,
    /// A spare descriptor for a command that arrives when no other is left.
    reserve: Option<std::os::fd::OwnedFd>,
    /// The command socket is not watched until then.
    rests_until: Option<Instant>,
    /// Commands that are not for pools, and the clients that wait for their replies.
    orders: Vec<(UnixStream, Words)>,
    /// Declared after its contents, as it is removed last.
    runtime: Option<Runtime>,
    serial: u64,
}

/// Pools of a configuration that is not in force yet. Dropping it changes nothing.
#[derive(Debug, Default)]
pub(crate) struct PoolPlan {
    entries: Vec<(Settled, Option<PoolSocket>)>,
}

/// Checks the pools of a configuration without starting anything.
///
/// # Errors
///
/// One text per mistake.
pub(crate) fn check(config: &Config) -> Result<(), Vec<String>> {
    settle::all(config).map(drop)
}

impl PhpPools {
    /// Resolves the pools of a configuration, opens missing sockets, and writes their addresses
    /// into it.
    ///
    /// # Errors
    ///
    /// One text per error; the running pools continue then.
    pub(crate) fn prepare(&mut self, config: &mut Config) -> Result<PoolPlan, Vec<String>> {
        let all = settle::all(config)?;
        let Some(http) = &mut config.http else { return Ok(PoolPlan::default()) };
        cgroup::PoolGroups::ready_for(&http.php_pools)?;
        let mut plan = PoolPlan::default();
        for (index, settled) in (0_u32..).zip(all) {
            let known = self.pools.iter().find(|pool| pool.suits(&settled));
            let (address, socket): (Arc<Path>, _) = match known {
                Some(known) => (known.socket.path().into(), None),
                None => {
                    let socket = self.open(&settled).map_err(|text| vec![text])?;
                    (socket.path().into(), Some(socket))
                }
            };
            for upstream in &mut http.upstreams {
                if upstream.kind == UpstreamKind::Pool(index) {
                    upstream.servers = vec![server(&address, settled.children)];
                    upstream.queue = Some(settled.pool.queue);
                }
            }
            plan.entries.push((settled, socket));
        }
        Ok(plan)
    }

    fn open(&mut self, settled: &Settled) -> Result<PoolSocket, String> {
        let runtime = match &mut self.runtime {
            Some(runtime) => runtime,
            none => none.insert(Runtime::create()?),
        };
        self.serial += 1;
        let path = socket::socket_path(runtime.path(), &settled.pool.name, self.serial);
        PoolSocket::open(path, settled)
    }

    /// Applies a plan. `groups` are those of its configuration; `old` is the configuration whose
    /// requests may still need a pool that the plan drops.
    pub(crate) fn commit(
        &mut self,
        plan: PoolPlan,
        groups: &UpstreamGroups,
        old: &Weak<Site>,
        desk: &mut PhpDesk<'_>,
    ) {
        self.listen(desk);
        let now = bolide_io::process::now().mono;
        let mut kept = Vec::new();
        for (settled, socket) in plan.entries {
            kept.push(settled.clone());
            match (socket, self.pools.iter().position(|pool| pool.suits(&settled))) {
                (Some(socket), _) => {
                    if settled.runs_as_root() {
                        let text = "scripts run as root; set \"user\"";
                        process::say(desk.log, LogLevel::Warn, &settled.pool.name, text);
                    }
                    self.pools.push(Pool::new(settled, socket));
                    let last = self.pools.len() - 1;
                    self.with(desk, now, |pools, ctx| pools[last].begin(ctx));
                }
                (None, Some(at)) => {
                    self.with(desk, now, |pools, ctx| pools[at].configure(settled, ctx));
                }
                (None, None) => {}
            }
        }
        let counters = counters(groups);
        for pool in &mut self.pools {
            if kept.iter().any(|settled| pool.suits(settled)) {
                pool.demand.count_by(counters.get(pool.name()).cloned());
            } else {
                pool.retire(old, now);
            }
        }
    }

    /// Lends pools their resources.
    fn with<T>(
        &mut self,
        desk: &mut PhpDesk<'_>,
        now: Instant,
        body: impl FnOnce(&mut [Pool], &mut PoolCtx<'_>) -> T,
    ) -> Option<T> {
        let dir = self.runtime.as_ref()?.path();
        // Tokens below are taken.
        self.serial = self.serial.max(COMMANDS);
        let mut ctx =
            PoolCtx { now, door: &mut *desk.door, log: desk.log, dir, serial: &mut self.serial };
        Some(body(&mut self.pools, &mut ctx))
    }

    /// Opens the command socket. A server without one runs anyway.
    fn listen(&mut self, desk: &mut PhpDesk<'_>) {
        if self.commands.is_some() {
            return;
        }
        if self.runtime.is_none() {
            match Runtime::create() {
                Ok(runtime) => self.runtime = Some(runtime),
                Err(text) => desk.log.write(LogLevel::Alert, &text),
            }
        }
        let Some(runtime) = &self.runtime else { return };
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        let path = runtime.control();
        let opened = UnixListener::bind(&path)
            .and_then(|socket| std::fs::set_permissions(&path, private).map(|()| socket));
        match opened {
            Ok(socket) => {
                desk.door.watch(
                    bolide_io::Fd(socket.as_raw_fd()),
                    COMMANDS,
                    bolide_io::Interest::Level,
                );
                self.commands = Some(socket);
                self.tend_commands(bolide_io::process::now().mono, desk);
            }
            Err(error) => {
                let text = format!("bind() to unix:{} failed ({error})", path.display());
                desk.log.write(LogLevel::Alert, &text);
            }
        }
    }

    /// Handles a readable descriptor.
    pub(crate) fn handle_ready(&mut self, token: u64, desk: &mut PhpDesk<'_>) {
        let now = bolide_io::process::now().mono;
        if token == COMMANDS {
            return self.take_command(now, desk);
        }
        self.with(desk, now, |pools, ctx| {
            for pool in pools {
                if pool.read(token, ctx) {
                    return;
                }
            }
        });
    }

    /// Does pending work: reaps, restarts, ends. A child `except` is left to its own waiter.
    pub(crate) fn tick(&mut self, now: Instant, except: Option<u32>, desk: &mut PhpDesk<'_>) {
        self.tend_commands(now, desk);
        while let Some((pid, end)) = child::reap(except) {
            self.with(desk, now, |pools, ctx| {
                for pool in pools {
                    if pool.handle_end(pid, end, ctx) {
                        return;
                    }
                }
            });
        }
        self.with(desk, now, |pools, ctx| pools.iter_mut().for_each(|pool| pool.tick(ctx)));
        self.pools.retain(|pool| !pool.is_over());
    }

    /// Resumes accepting commands.
    fn tend_commands(&mut self, now: Instant, desk: &mut PhpDesk<'_>) {
        let Some(socket) = &self.commands else { return };
        if self.reserve.is_none() {
            self.reserve = bolide_io::process::spare_descriptor();
        }
        if self.rests_until.take_if(|until| *until <= now).is_some() {
            desk.door.watch(
                bolide_io::Fd(socket.as_raw_fd()),
                COMMANDS,
                bolide_io::Interest::Level,
            );
        }
    }

    /// When to call [`Self::tick`] at the latest: after a call, later than its `now`.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pools.iter().filter_map(Pool::deadline).min()
    }

    fn take_command(&mut self, now: Instant, desk: &mut PhpDesk<'_>) {
        let Some(socket) = &self.commands else { return };
        let mut taken = socket.accept();
        if taken.is_err() && self.reserve.take().is_some() {
            // A client that connects while no descriptor is left may want to see exactly that.
            taken = socket.accept();
        }
        let Ok((client, _)) = taken else {
            // A waiting client would be reported again at once, forever.
            desk.door.unwatch(bolide_io::Fd(socket.as_raw_fd()));
            self.rests_until = Some(now.after(COMMAND_REST));
            return;
        };
        // Only our own account can connect, and commands arrive at once.
        let _ = client.set_read_timeout(Some(COMMAND_TIMEOUT));
        let _ = client.set_write_timeout(Some(COMMAND_TIMEOUT));
        let mut line = String::new();
        if BufReader::new(&client).take(LINE_MAX).read_line(&mut line).is_err() {
            return;
        }
        if let Some(words) = Words::read(&line) {
            return self.orders.push((client, words));
        }
        let mut words = line.split_whitespace();
        match words.next() {
            Some(command::STATUS) => self.reply_status(&client, now),
            Some(command::TOP) => self.reply_loads(&client, now),
            Some(command::RESTART) => self.restart(&client, words.next(), now, desk),
            _ => {}
        }
    }

    /// Commands that are not for pools.
    pub(crate) fn take_orders(&mut self) -> Vec<(UnixStream, Words)> {
        std::mem::take(&mut self.orders)
    }

    /// How all pools are.
    pub(crate) fn reports(&self) -> Vec<PoolReport> {
        let now = bolide_io::process::now().mono;
        self.pools.iter().map(|pool| pool.report(now)).collect()
    }

    fn reply_status(&self, mut client: &UnixStream, now: Instant) {
        if self.pools.is_empty() {
            let _ = writeln!(client, "error: the server runs no php pool");
        }
        for pool in &self.pools {
            let _ = writeln!(client, "{}", pool.report(now));
        }
    }

    fn reply_loads(&self, mut client: &UnixStream, now: Instant) {
        if self.pools.is_empty() {
            let _ = writeln!(client, "error: the server runs no php pool");
        }
        for pool in &self.pools {
            let _ = writeln!(client, "{}", top::line(&pool.report(now)));
        }
    }

    fn restart(
        &mut self,
        mut client: &UnixStream,
        name: Option<&str>,
        now: Instant,
        desk: &mut PhpDesk<'_>,
    ) {
        if self.restart_chosen(Some(client), name, now, desk) == 0 {
            let why = match name {
                Some(name) => format!("there is no php pool \"{name}\""),
                None => "the server runs no php pool".to_owned(),
            };
            let _ = writeln!(client, "error: {why}");
        }
    }

    /// Starts the pool of this name again, or all of them: how many. What came of it is written to
    /// `client`.
    pub(crate) fn restart_chosen(
        &mut self,
        client: Option<&UnixStream>,
        name: Option<&str>,
        now: Instant,
        desk: &mut PhpDesk<'_>,
    ) -> usize {
        let found = self.with(desk, now, |pools, ctx| {
            let chosen = |pool: &&mut Pool| {
                pool.is_configured() && name.is_none_or(|name| pool.name() == name)
            };
            let mut found = 0;
            for pool in pools.iter_mut().filter(chosen) {
                found += 1;
                process::say(ctx.log, LogLevel::Notice, pool.name(), "restarting");
                pool.restart(ctx, client.and_then(|client| client.try_clone().ok()));
            }
            found
        });
        found.unwrap_or(0)
    }

    /// Ends all processes; none is left afterwards.
    pub(crate) fn shutdown(&mut self) {
        let now = bolide_io::process::now().mono;
        self.pools.iter_mut().for_each(|pool| pool.stop(now));
        let until = now.after(END_TIMEOUT);
        while self.is_alive() && bolide_io::process::now().mono < until {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        self.pools.iter_mut().for_each(Pool::kill);
        let until = bolide_io::process::now().mono.after(END_TIMEOUT);
        while self.is_alive() && bolide_io::process::now().mono < until {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        self.pools.clear();
        self.commands = None;
        self.runtime = None;
    }

    fn is_alive(&self) -> bool {
        while child::reap(None).is_some() {}
        self.pools.iter().any(Pool::is_alive)
    }
}

/// What workers count of the requests of each pool.
fn counters(groups: &UpstreamGroups) -> HashMap<String, Arc<Group>> {
    let pools = groups.iter().filter(|group| matches!(group.kind(), UpstreamKind::Pool(_)));
    pools.map(|group| (group.name().to_string(), group)).collect()
}

/// The one server of a pool's group.
fn server(path: &Arc<Path>, children: u32) -> UpstreamServer {
    UpstreamServer {
        name: format!("unix:{}", path.display()).into(),
        addresses: vec![PeerAddress::Unix(path.clone())],
        weight: 1,
        max_conns: children,
        // There is no other server to try.
        max_fails: 0,
        fail_timeout: Duration::from_secs(10),
        backup: false,
        down: false,
        drain: false,
        route: None,
        resolve: None,
    }
}
