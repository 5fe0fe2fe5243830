//! The control thread: starts the workers, takes signals, reloads, hands over, ends.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use conf::model::{Config, CpuAffinity, Level};
use io::Io as _;
use io::epoll::Epoll;
use io::signal::{self, Signal, Signals};
use worker::{Inbox, Jobs, Mail, Post, Startup, Worker};

use crate::admin::{self, Office};
use crate::assemble::{self, Shared};
use crate::cli::{ADMIN_HELP, Command, HELP, Invocation, Php, Purpose};
use crate::librarian::Librarian;
use crate::messages::{err, out};
use crate::php::{self, Desk, Pools};
use crate::pid::PidFile;
use crate::reading::{self, Reading};
use crate::sockets::{self, Open};
use crate::tls_setup::TlsState;
use crate::{check, serve, upgrade};

/// How often the control thread looks up from waiting for signals.
const TICK: Duration = Duration::from_millis(500);

/// How long connections that have asked nothing yet outlive the order to drain.
const DRAIN_GRACE: Duration = Duration::from_millis(base::limits::DRAIN_GRACE_MS);

/// Whom the workers of a server that root starts become where the configuration names nobody.
pub(crate) const NOBODY: &str = "nobody";

/// What is said of a file without `events`.
const NO_EVENTS: &str = "no \"events\" section in configuration";

/// Runs a command to its end.
pub(crate) fn run(invocation: &Invocation) -> ExitCode {
    match &invocation.command {
        Command::Help => {
            err(&format!("bolide version: bolide/{}\n{HELP}", env!("CARGO_PKG_VERSION")));
            ExitCode::SUCCESS
        }
        Command::Version { build } => {
            err(concat!("bolide version: bolide/", env!("CARGO_PKG_VERSION")));
            if *build {
                err("built with rustls, aws-lc, quinn-proto, PCRE2");
                err("TLS SNI support enabled");
                err("configure arguments: --with-http_ssl_module --with-http_v2_module \
                     --with-http_v3_module --with-http_gzip_static_module");
            }
            ExitCode::SUCCESS
        }
        Command::Test { dump } => test(invocation, *dump),
        Command::Signal(signal) => send_signal(invocation, *signal),
        Command::Run => finish_logged(invocation, read_and_start(invocation)),
        Command::Serve(options) if options.purpose == Purpose::Print => {
            finish(serve::prepare(options).map(|ready| out(ready.text.as_bytes())))
        }
        Command::Serve(options) => finish(serve::prepare(options).and_then(|ready| {
            let reading = reading::of_text(&ready.conf, &ready.text)?;
            start(invocation, reading, Some(&ready.greeting))
        })),
        Command::Php(Php::Keep(program)) => php::keeper::run(program),
        Command::Check(request) => check::run(invocation, request),
        Command::Admin(request) => admin::client::run(invocation, request),
        Command::AdminHelp => {
            out(ADMIN_HELP.as_bytes());
            ExitCode::SUCCESS
        }
        Command::Php(command) => finish(
            running(invocation).and_then(|(pid, path)| php::command::send(pid, &path, command)),
        ),
    }
}

fn finish(result: Result<(), Vec<String>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(texts) => {
            for text in texts {
                err(&format!("bolide: [emerg] {text}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// As [`finish`]; mistakes also go to the log that is used before the configuration is read.
fn finish_logged(invocation: &Invocation, result: Result<(), Vec<String>>) -> ExitCode {
    if let Err(texts) = &result {
        crate::control_log::write_early(&early_log(invocation), Level::Emerg, texts);
    }
    finish(result)
}

fn test(invocation: &Invocation, dump: bool) -> ExitCode {
    let name = invocation.conf.display();
    let checked = reading::of_file(invocation).and_then(|reading| {
        account(&reading.config)?;
        php::check(&reading.config)?;
        let shared = shared(&mut Open::default(), &reading.config)?;
        let draft = assemble::draft(&reading.config, &shared)?;
        Ok((reading, draft.warnings))
    });
    let (reading, warnings) = match checked {
        Ok(checked) => checked,
        Err(texts) => {
            if texts.iter().all(|text| is_seen_late(text)) && !invocation.quiet {
                err(&format!("bolide: the configuration file {name} syntax is ok"));
            }
            let code = finish_logged(invocation, Err(texts));
            err(&format!("bolide: configuration file {name} test failed"));
            return code;
        }
    };
    warn(invocation, &reading.warnings);
    warn(invocation, &warnings);
    if !invocation.quiet {
        err(&format!("bolide: the configuration file {name} syntax is ok"));
    }
    let opened = crate::pid::check(&reading.config.main.pid)
        .and_then(|()| make_temp_dirs(&reading.config))
        .and_then(|()| assemble::open_logs(&reading.config).map_err(|text| vec![text]));
    if let Err(texts) = opened {
        let code = finish_logged(invocation, Err(texts));
        err(&format!("bolide: configuration file {name} test failed"));
        return code;
    }
    if !invocation.quiet {
        err(&format!("bolide: configuration file {name} test is successful"));
    }
    if dump {
        for (path, bytes) in &reading.files {
            out(format!("# configuration file {}:\n", path.display()).as_bytes());
            out(bytes);
            out(b"\n");
        }
    }
    ExitCode::SUCCESS
}

/// Whether nginx sees a mistake only when all is read and found to be well-formed.
fn is_seen_late(text: &str) -> bool {
    text == NO_EVENTS || text.starts_with("zero size shared memory zone")
}

fn warn(invocation: &Invocation, texts: &[String]) {
    for text in texts {
        err(&format!("bolide: [warn] {text}"));
    }
    crate::control_log::write_early(&early_log(invocation), Level::Warn, texts);
}

/// The log that is used before the configuration is read.
fn early_log(invocation: &Invocation) -> PathBuf {
    let path = invocation.error_log.clone().unwrap_or_else(|| "logs/error.log".into());
    invocation.prefix.join(path)
}

fn send_signal(invocation: &Invocation, signal: Signal) -> ExitCode {
    finish(running(invocation).and_then(|(pid, _)| {
        signal::send(pid, signal).map_err(|error| {
            vec![format!("kill({pid}, {}) failed ({})", signal.number(), sockets::describe(&error))]
        })
    }))
}

/// The pid of the running server, and the file that it stands in.
pub(crate) fn running(invocation: &Invocation) -> Result<(u32, PathBuf), Vec<String>> {
    let reading = reading::of_file(invocation)?;
    let path = &reading.config.main.pid;
    let text = std::fs::read_to_string(path).map_err(|error| {
        vec![format!("open() \"{}\" failed ({})", path.display(), sockets::describe(&error))]
    })?;
    let number = text.trim();
    let pid = number
        .parse()
        .map_err(|_| vec![format!("invalid PID number \"{number}\" in \"{}\"", path.display())])?;
    Ok((pid, path.clone()))
}

fn shared(open: &mut Open, config: &Config) -> Result<Shared, Vec<String>> {
    let tls = TlsState::new().map_err(|text| vec![text])?;
    let workers = assemble::worker_count(config);
    let quic_keys = Arc::new(upgrade::quic_keys(open, workers).map_err(|text| vec![text])?);
    Ok(Shared {
        tls,
        quic_keys,
        store: std::sync::OnceLock::new(),
        zones: engine::Zones::default(),
    })
}

fn read_and_start(invocation: &Invocation) -> Result<(), Vec<String>> {
    let reading = reading::of_file(invocation)?;
    start(invocation, reading, None)
}

fn start(
    invocation: &Invocation,
    mut reading: Reading,
    greeting: Option<&str>,
) -> Result<(), Vec<String>> {
    warn(invocation, &reading.warnings);
    let account = account(&reading.config)?;
    let mut pools = Pools::default();
    let plan = pools.prepare(Arc::make_mut(&mut reading.config))?;
    let config = reading.config;
    let mut open = Open::default();
    let shared = shared(&mut open, &config)?;
    let draft = assemble::draft(&config, &shared)?;
    warn(invocation, &draft.warnings);
    let one = |text: String| vec![text];
    upgrade::adopt(&mut open);
    let workers = assemble::worker_count(&config);
    // As with nginx, a successor stays the child that its predecessor watches.
    if config.main.daemon && greeting.is_none() && !upgrade::has_predecessor() {
        // Before any thread is started and before the pid is written down.
        io::process::daemonize().map_err(|error| one(format!("daemon: {error}")))?;
    }
    // Before any socket listens: who finds us answering may signal us at once.
    signal::block();
    set_limits(&config)?;
    make_temp_dirs(&config)?;
    let logs = assemble::open_logs(&config).map_err(one)?;
    let per_worker = match &config.http {
        Some(http) => open.apply(http, workers, &shared.quic_keys).map_err(one)?,
        None => vec![Vec::new(); usize::from(workers)],
    };
    let (door, signals) = desk().map_err(|error| one(format!("epoll: {error}")))?;
    let generation = Arc::new(assemble::generation(1, draft, per_worker, logs, &shared, None));
    let mut control = Control {
        invocation,
        shared,
        open,
        config: config.clone(),
        generation: generation.clone(),
        posts: Arc::new(Vec::new()),
        threads: Vec::new(),
        served: greeting.is_some(),
        log: crate::control_log::ControlLog::new(&generation),
        pools,
        office: Office::default(),
        account: account.clone(),
        door,
        signals,
        librarian: Librarian::new().map_err(|error| one(format!("eventfd: {error}")))?,
    };
    control.commit(plan, &Weak::new());
    control.spawn(workers, &generation, account.as_ref())?;
    // Or the first configuration would be held as long as the server runs.
    drop(generation);
    // Only now, when every socket listens, as those who wait for the file expect.
    let pid = if greeting.is_some() { None } else { Some(PidFile::write(&config.main.pid)?) };
    if let Some(greeting) = greeting {
        out(greeting.as_bytes());
    }
    control.obey(pid);
    Ok(())
}

/// What the control thread waits at.
fn desk() -> std::io::Result<(Epoll, Signals)> {
    let (mut door, signals) = (Epoll::new()?, Signals::open()?);
    door.watch(signals.fd(), php::SIGNALS, io::Watch::Level);
    Ok((door, signals))
}

fn set_limits(config: &Config) -> Result<(), Vec<String>> {
    match config.main.worker_rlimit_nofile {
        Some(files) => {
            // As with nginx, a limit that may not be raised is told and served within.
            if let Err(error) = io::process::set_open_files_max(files) {
                let why = sockets::describe(&error);
                err(&format!("bolide: [alert] setrlimit(RLIMIT_NOFILE, {files}) failed ({why})"));
                let _ = io::process::raise_open_files();
            }
        }
        None => {
            let _ = io::process::raise_open_files();
        }
    }
    if let Some(directory) = &config.main.working_directory {
        std::env::set_current_dir(directory).map_err(|error| {
            vec![format!("chdir(\"{}\") failed ({error})", directory.display())]
        })?;
    }
    Ok(())
}

/// The account that workers run under: name, user and group number.
pub(crate) type Account = (String, u32, u32);

pub(crate) fn account(config: &Config) -> Result<Option<Account>, Vec<String>> {
    if !io::process::is_root() {
        return Ok(None);
    }
    let Some(user) = &config.main.user else {
        let (uid, gid) = io::process::find_user(NOBODY, None)
            .ok_or_else(|| vec![format!("getpwnam(\"{NOBODY}\") failed")])?;
        return Ok(Some((NOBODY.to_owned(), uid, gid)));
    };
    match io::process::find_user(user, config.main.group.as_deref()) {
        Some((uid, gid)) => Ok(Some((user.clone(), uid, gid))),
        None => {
            let group = config.main.group.as_deref().unwrap_or_default();
            let call = match io::process::find_user(user, None) {
                Some(_) => format!("getgrnam(\"{group}\")"),
                None => format!("getpwnam(\"{user}\")"),
            };
            let conf::Place { file, line } = &config.main.user_place;
            Err(vec![format!("{call} failed in {file}:{line}")])
        }
    }
}

fn make_temp_dirs(config: &Config) -> Result<(), Vec<String>> {
    let owner = account(config)?.map(|(_, uid, gid)| (uid, gid));
    crate::temp_dirs::make(config, owner).map_err(|text| vec![text])
}

/// Everything the control thread holds while the server runs.
#[derive(Debug)]
struct Control<'a> {
    invocation: &'a Invocation,
    shared: Shared,
    open: Open,
    config: Arc<Config>,
    generation: Arc<worker::Generation>,
    posts: Arc<Vec<Post>>,
    threads: Vec<JoinHandle<()>>,
    /// Started without a configuration file, so there is none to read again.
    served: bool,
    log: crate::control_log::ControlLog,
    pools: Pools,
    office: Office,
    /// Whom the workers have become.
    account: Option<Account>,
    door: Epoll,
    signals: Signals,
    librarian: Librarian,
}

impl Control<'_> {
    /// Runs the pools of a configuration.
    fn commit(&mut self, plan: php::Plan, old: &Weak<engine::Site>) {
        let mut desk = Desk { door: &mut self.door, log: &self.log };
        self.pools.commit(plan, old, &mut desk);
    }

    /// Waits for a signal; meanwhile looks after the pools. A successor is left to who started it.
    fn wait(
        &mut self,
        until: base::Instant,
        heir: Option<u32>,
        ready: &mut Vec<io::Ready>,
    ) -> Option<Signal> {
        let until = self.pools.deadline().map_or(until, |at| at.min(until));
        ready.clear();
        let _ = self.door.wait(Some(until), ready);
        let mut desk = Desk { door: &mut self.door, log: &self.log };
        for one in ready.iter().filter(|one| one.token != php::SIGNALS) {
            self.pools.handle_ready(one.token, &mut desk);
        }
        self.pools.tick(heir, &mut desk);
        for (client, words) in self.pools.take_orders() {
            self.office.handle(client, words, &self.generation, self.account.as_ref());
        }
        self.signals.take()
    }

    fn spawn(
        &mut self,
        workers: u16,
        generation: &Arc<worker::Generation>,
        account: Option<&Account>,
    ) -> Result<(), Vec<String>> {
        let failed = |error: std::io::Error| vec![format!("cannot start a worker: {error}")];
        let (mut posts, mut inboxes) = (Vec::new(), Vec::new());
        for _ in 0..workers {
            let (post, inbox) = Inbox::new().map_err(failed)?;
            posts.push(post);
            inboxes.push(inbox);
        }
        self.posts = Arc::new(posts);
        let jobs = Jobs::start(self.posts.clone()).map_err(failed)?;
        self.librarian.settle(generation, account)?;
        let epoch = quic::Clock::starting_at(io::process::epoch());
        let pid = std::process::id();
        for (number, inbox) in (0_u16..).zip(inboxes) {
            let io = Epoll::new().map_err(failed)?;
            let seed = tls::random_seed();
            let startup = Startup {
                number,
                io,
                generation: generation.clone(),
                inbox,
                posts: self.posts.clone(),
                jobs: jobs.clone(),
                seed,
                ids: (pid, pid + u32::from(number)),
                clock: epoch,
                librarian: self.librarian.bell().clone(),
            };
            let core = core_of(&self.config.main.worker_cpu_affinity, usize::from(number));
            let account = account.cloned();
            let body = move || work(startup, core, account);
            let name = format!("worker-{number}");
            let thread = std::thread::Builder::new().name(name).spawn(body).map_err(failed)?;
            self.threads.push(thread);
        }
        Ok(())
    }

    fn post_all(&self, mail: impl Fn() -> Mail) {
        for post in self.posts.iter() {
            // A box takes every order, however full it is.
            let _ = post.send(mail());
        }
    }

    /// Takes signals until the workers have ended.
    fn obey(&mut self, mut pid: Option<PidFile>) {
        let mut drain_until = None;
        let mut grace_until = None;
        let mut successor: Option<std::process::Child> = None;
        let mut ready = Vec::new();
        loop {
            let tick = io::process::now().mono.after(TICK);
            let heir = successor.as_ref().map(std::process::Child::id);
            let signal = self.wait(tick, heir, &mut ready);
            if self.threads.iter().all(JoinHandle::is_finished) {
                return self.shut_down();
            }
            self.open.succeed(&self.shared.quic_keys);
            if let Some(pid) = &mut pid {
                upgrade::watch_successor(&mut successor, pid, &self.log);
            }
            let now = io::process::now().mono;
            if drain_until.is_some_and(|until| now >= until) {
                self.post_all(|| Mail::Stop);
            }
            if grace_until.take_if(|until| now >= *until).is_some() {
                self.post_all(|| Mail::Quit);
            }
            match signal {
                Some(Signal::Stop) => self.post_all(|| Mail::Stop),
                Some(Signal::Quit) => {
                    let limit = self.config.main.worker_shutdown_timeout;
                    drain_until = limit.map(|limit| now.after(limit));
                    grace_until = Some(now.after(DRAIN_GRACE));
                    self.post_all(|| Mail::Quit);
                }
                Some(Signal::Drain) => {
                    grace_until = Some(now.after(DRAIN_GRACE));
                    self.post_all(|| Mail::Quit);
                }
                Some(Signal::Reload) if !self.served => self.reload(),
                Some(Signal::Reopen) => self.reopen(),
                Some(Signal::Upgrade) if !self.served && successor.is_none() => {
                    if let Some(pid) = &mut pid {
                        let (keys, workers) = (&self.shared.quic_keys, self.posts.len());
                        let log = &self.log;
                        let started = upgrade::start_successor(&self.open, keys, workers, pid, log);
                        successor = started.or(successor);
                    }
                }
                Some(Signal::Reload | Signal::Upgrade | Signal::Child) | None => {}
            }
            if matches!(signal, Some(Signal::Stop | Signal::Quit)) && self.hasten() {
                return self.shut_down();
            }
        }
    }

    fn shut_down(&mut self) {
        self.librarian.end();
        self.pools.shutdown();
    }

    /// Waits a moment for workers that end at once, so that a stop takes no whole tick; whether
    /// they have ended.
    fn hasten(&self) -> bool {
        (0..20).any(|_| {
            let ended = self.threads.iter().all(JoinHandle::is_finished);
            if !ended {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            ended
        })
    }

    /// Reads the configuration again; a bad one is refused and the old one goes on.
    fn reload(&mut self) {
        self.log.write(Level::Notice, "signal 1 (SIGHUP) received, reconfiguring");
        match self.try_reload() {
            Ok(warnings) => {
                for text in warnings {
                    self.log.write(Level::Warn, &text);
                }
                self.log.write(Level::Notice, "reconfigured");
            }
            Err(texts) => {
                for text in texts {
                    self.log.write(Level::Emerg, &text);
                }
            }
        }
    }

    fn try_reload(&mut self) -> Result<Vec<String>, Vec<String>> {
        let mut reading = reading::of_file(self.invocation)?;
        let plan = self.pools.prepare(Arc::make_mut(&mut reading.config))?;
        let draft = assemble::draft(&reading.config, &self.shared)?;
        let one = |text: String| vec![text];
        make_temp_dirs(&reading.config)?;
        let logs = assemble::open_logs(&reading.config).map_err(one)?;
        let workers = u16::try_from(self.posts.len()).unwrap_or(1);
        let per_worker = match &reading.config.http {
            Some(http) => self.open.apply(http, workers, &self.shared.quic_keys).map_err(one)?,
            None => vec![Vec::new(); usize::from(workers)],
        };
        let mut warnings = reading.warnings;
        warnings.extend(draft.warnings.iter().cloned());
        if assemble::worker_count(&reading.config) != workers {
            warnings.push("\"worker_processes\" takes effect after a restart only".to_owned());
        }
        let number = self.generation.number + 1;
        let previous = Some(&*self.generation);
        let generation =
            assemble::generation(number, draft, per_worker, logs, &self.shared, previous);
        let generation = Arc::new(generation);
        self.config = reading.config;
        self.log = crate::control_log::ControlLog::new(&generation);
        let old = Arc::downgrade(&self.generation.site);
        self.commit(plan, &old);
        self.generation = generation.clone();
        let account = account(&self.config)?;
        self.librarian.settle(&generation, account.as_ref())?;
        self.post_all(|| Mail::Configure(generation.clone()));
        Ok(warnings)
    }

    fn reopen(&mut self) {
        match assemble::open_logs(&self.config) {
            Ok(logs) => {
                self.log.replace(logs.clone());
                self.post_all(|| Mail::Reopen(logs.clone()));
            }
            Err(text) => self.log.write(Level::Emerg, &text),
        }
    }
}

/// A worker's thread, from its core and account to its last turn.
fn work(startup: Startup<Epoll>, core: Option<usize>, account: Option<Account>) {
    if let Some(core) = core {
        // A core that is gone is no reason not to serve.
        let _ = io::process::pin_to_core(core);
    }
    if let Some((user, uid, gid)) = account
        && let Err(error) = io::process::become_user(&user, uid, gid)
    {
        return err(&format!("bolide: [emerg] setuid({uid}) failed ({error})"));
    }
    Worker::new(startup).run();
}

fn core_of(affinity: &CpuAffinity, number: usize) -> Option<usize> {
    let cores_in = |mask: u64| (0..64).filter(move |core| mask >> core & 1 == 1);
    match affinity {
        CpuAffinity::None => None,
        CpuAffinity::Auto(None) => Some(number % io::process::cores()),
        CpuAffinity::Auto(Some(mask)) => {
            let cores: Vec<usize> = cores_in(*mask).collect();
            cores.get(number % cores.len().max(1)).copied()
        }
        CpuAffinity::Masks(masks) => {
            masks.get(number).or(masks.last()).and_then(|mask| cores_in(*mask).next())
        }
    }
}

/// The directory of a file.
pub(crate) fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_path_buf()
}
