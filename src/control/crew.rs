//! The threads of workers: their start, their orders, their end.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bolide_conf::model::{CpuAffinity, LogLevel};
use bolide_engine::RequestTallies;
use bolide_io::epoll::Epoll;
use bolide_worker::{ConsoleDesk, Doing, Inbox, Jobs, Mail, Post, Startup, Worker};

use super::watch::WorkerWatch;
use crate::account::{WorkerAccount, give_up_rights};
use crate::admin::status::Members;
use crate::control_log::ControlLog;
use crate::messages::err;

/// How long connections without a request yet survive the order to drain.
const DRAIN_GRACE: Duration = Duration::from_millis(bolide_base::limits::DRAIN_GRACE_MS);

/// The order that a crew has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CrewOrder {
    #[default]
    Serve,
    /// Finish requests, and accept no new connections until the next order.
    Yield,
    /// Finish requests and end.
    End,
}

/// All workers of the process. There is one crew: workers are known by their numbers, to each other
/// as to clients of QUIC.
#[derive(Debug, Default)]
pub(super) struct Crew {
    posts: Arc<Vec<Post>>,
    members: Vec<Member>,
    /// When to cut connections, if the workers were told to finish and a limit is set.
    stop_at: Option<bolide_base::Instant>,
    /// When connections without a request yet are closed.
    hurry_at: Option<bolide_base::Instant>,
    order: CrewOrder,
}

#[derive(Debug)]
struct Member {
    number: usize,
    thread: JoinHandle<()>,
    id: u32,
    watch: WorkerWatch,
}

/// The parameters that all members start with.
#[derive(Debug)]
pub(super) struct Orders<'a> {
    pub(super) workers: u16,
    pub(super) generation: &'a Arc<bolide_worker::Generation>,
    pub(super) account: Option<&'a WorkerAccount>,
    pub(super) disk_writer: &'a bolide_io::wake::Bell,
    pub(super) console: &'a ConsoleDesk,
}

impl Crew {
    /// Starts workers.
    ///
    /// # Errors
    ///
    /// No thread or descriptor is available.
    pub(super) fn start(orders: &Orders<'_>, log: &ControlLog) -> Result<Self, Vec<String>> {
        let failed = |error: std::io::Error| vec![format!("cannot start a worker: {error}")];
        let (mut posts, mut inboxes) = (Vec::new(), Vec::new());
        for _ in 0..orders.workers {
            let (post, inbox) = Inbox::new().map_err(failed)?;
            posts.push(post);
            inboxes.push(inbox);
        }
        let mut crew = Self { posts: Arc::new(posts), ..Self::default() };
        let account = orders.account.cloned();
        let io = Epoll::new().map_err(failed)?;
        let as_worker = move || give_up_rights(account).map_err(std::io::Error::other);
        let jobs = Jobs::start(crew.posts.clone(), io, as_worker).map_err(failed)?;
        let epoch = bolide_quic::QuicClock::starting_at(bolide_io::process::epoch());
        log.write(LogLevel::Notice, "start worker processes");
        for (number, inbox) in (0_u16..).zip(inboxes) {
            let startup = Startup {
                number,
                io: Epoll::new().map_err(failed)?,
                generation: orders.generation.clone(),
                logs: log.open().clone(),
                inbox,
                posts: crew.posts.clone(),
                jobs: jobs.clone(),
                seed: bolide_tls::random_seed(),
                ids: (std::process::id(), 0),
                clock: epoch,
                disk_writer: orders.disk_writer.clone(),
                console: orders.console.clone(),
            };
            let member = Member::start(startup, orders).map_err(failed)?;
            log.write(LogLevel::Notice, &format!("start worker process {}", member.id));
            crew.members.push(member);
        }
        Ok(crew)
    }

    /// How many there were at first.
    pub(super) fn size(&self) -> u16 {
        u16::try_from(self.posts.len()).unwrap_or(u16::MAX)
    }

    /// The members, for requests to them.
    pub(super) fn members(&self) -> Members {
        let post = |one: &Member| self.posts.get(one.number).cloned();
        let posts = self.members.iter().filter_map(post).collect();
        let threads = self.members.iter().map(|one| one.id).collect();
        Members { posts, threads }
    }

    /// What its members have counted.
    pub(super) fn tallies(&self) -> RequestTallies {
        RequestTallies::new(self.posts.iter().map(Post::tally))
    }

    /// Gives an order to all members.
    pub(super) fn post_all(&self, mail: impl Fn() -> Mail) {
        for post in self.posts.iter() {
            // A mailbox accepts every order, however full it is.
            let _ = post.send(mail());
        }
    }

    /// Finishes running requests and accepts no new ones; after `limit`, the rest is cut. A
    /// stricter order replaces the one before.
    pub(super) fn drain(
        &mut self,
        order: CrewOrder,
        now: bolide_base::Instant,
        limit: Option<Duration>,
        log: &ControlLog,
    ) {
        if order <= self.order {
            return;
        }
        let before = std::mem::replace(&mut self.order, order);
        // Requests that were told to end before have the rest of their time.
        self.stop_at = self.stop_at.or(limit.map(|limit| now.after(limit)));
        self.hurry_at.get_or_insert(now.after(DRAIN_GRACE));
        if before == CrewOrder::Serve {
            self.log_all("gracefully shutting down", log);
        }
        self.post_all(|| if order == CrewOrder::End { Mail::Quit } else { Mail::Yield });
    }

    /// Serves under another configuration, also after an order to yield.
    pub(super) fn configure(
        &mut self,
        generation: &Arc<bolide_worker::Generation>,
        log: &ControlLog,
    ) {
        self.post_all(|| Mail::Configure(generation.clone(), log.open().clone()));
        self.serve_again(log);
    }

    /// Serves again after an order to yield.
    pub(super) fn resume(&mut self, log: &ControlLog) {
        self.post_all(|| Mail::Resume);
        self.serve_again(log);
    }

    fn serve_again(&mut self, log: &ControlLog) {
        if self.has_yielded() {
            self.log_all("accepting connections again", log);
            (self.order, self.stop_at, self.hurry_at) = (CrewOrder::Serve, None, None);
        }
    }

    fn log_all(&self, text: &str, log: &ControlLog) {
        self.members.iter().for_each(|one| log.write_for(one.id, LogLevel::Notice, text));
    }

    /// Whether it accepts no connections, and may serve again.
    pub(super) fn has_yielded(&self) -> bool {
        self.order == CrewOrder::Yield
    }

    /// Whether all have ended.
    pub(super) const fn is_over(&self) -> bool {
        self.members.is_empty()
    }

    /// Records the members that have ended, and ends those whose time is over.
    pub(super) fn look_after(&mut self, now: bolide_base::Instant, log: &ControlLog) {
        if self.stop_at.take_if(|at| now >= *at).is_some() {
            self.post_all(|| Mail::Cut);
        }
        if self.hurry_at.take_if(|at| now >= *at).is_some() {
            self.post_all(|| Mail::EndFresh);
        }
        for member in self.members.extract_if(.., |member| member.thread.is_finished()) {
            let id = member.id;
            match member.thread.join() {
                Ok(()) => {
                    log.write_for(id, LogLevel::Notice, "exiting");
                    log.write_for(id, LogLevel::Notice, "exit");
                    let text = format!("worker process {id} exited with code 0");
                    log.write(LogLevel::Notice, &text);
                }
                Err(_) => log.write(LogLevel::Alert, &format!("worker process {id} failed")),
            }
        }
    }

    /// Workers that hang in one turn: their thread and their activity.
    pub(super) fn look_at_pulses(&mut self, now: bolide_base::Instant) -> Vec<(u32, Doing)> {
        let look = |member: &mut Member| Some((member.id, member.watch.look(now)?));
        self.members.iter_mut().filter_map(look).collect()
    }

    /// Whether a worker hangs since a check that reported it.
    pub(super) fn has_standing(&self) -> bool {
        self.members.iter().any(|member| member.watch.is_standing())
    }

    /// Logs the members that have not ended and will be left behind.
    pub(super) fn give_up(&self, log: &ControlLog) {
        for Member { id, watch, .. } in &self.members {
            let doing = watch.doing().text();
            let text = format!("worker process {id} does not stop while {doing}, left behind");
            log.write(LogLevel::Alert, &text);
        }
    }

    /// Waits a moment for workers that end at once, so that a stop does not take a whole tick.
    pub(super) fn hasten(&self) {
        for _ in 0..20 {
            if self.members.iter().all(|member| member.thread.is_finished()) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Member {
    fn start(startup: Startup<Epoll>, orders: &Orders<'_>) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let main = &orders.generation.site.config().main;
        let number = startup.number;
        let pulse = startup.posts[usize::from(number)].pulse();
        let watch = WorkerWatch::new(pulse, bolide_io::process::now().mono);
        let cores = cores_of(&main.worker_cpu_affinity, usize::from(number));
        let (priority, account) = (main.worker_priority, orders.account.cloned());
        let body = move || {
            let id = bolide_io::process::thread_id();
            let is_ready = settle(&cores, priority, account);
            // The starter waits for it.
            let _ = sender.send(id);
            let mut startup = startup;
            startup.ids.1 = id;
            if is_ready {
                Worker::new(startup).run();
            }
        };
        let thread = std::thread::Builder::new().name(format!("worker-{number}")).spawn(body)?;
        let id = receiver.recv().unwrap_or_default();
        Ok(Self { number: usize::from(number), thread, id, watch })
    }
}

/// Sets the cores, priority and account of the calling thread; returns whether it may work.
fn settle(cores: &[usize], priority: i32, account: Option<WorkerAccount>) -> bool {
    let alert = |call: &str, error: &std::io::Error| {
        let why = bolide_base::errno::describe(error);
        err(&format!("bolide: [alert] {call} failed ({why})"));
    };
    if !cores.is_empty()
        && let Err(error) = bolide_io::process::pin_to_cores(cores)
    {
        // The worker serves even if cores are gone.
        alert("sched_setaffinity()", &error);
    }
    if priority != 0
        && let Err(error) = bolide_io::process::set_priority(priority)
    {
        alert(&format!("setpriority({priority})"), &error);
    }
    match give_up_rights(account) {
        Ok(()) => true,
        Err(why) => {
            err(&format!("bolide: [emerg] {why}"));
            false
        }
    }
}

/// The cores that a worker is bound to; none means all.
fn cores_of(affinity: &CpuAffinity, number: usize) -> Vec<usize> {
    let cores_in = |mask: u64| (0..64).filter(move |core| mask >> core & 1 == 1);
    match affinity {
        CpuAffinity::None => Vec::new(),
        CpuAffinity::Auto(None) => vec![number % bolide_io::process::cores()],
        CpuAffinity::Auto(Some(mask)) => {
            let cores: Vec<usize> = cores_in(*mask).collect();
            cores.get(number % cores.len().max(1)).copied().into_iter().collect()
        }
        CpuAffinity::Masks(masks) => masks
            .get(number)
            .or(masks.last())
            .into_iter()
            .flat_map(|mask| cores_in(*mask))
            .collect(),
    }
}
