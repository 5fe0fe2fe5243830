//! `bolide status`: the resources of the running server, worker by worker.
//!
//! Owns the requests to workers and the output. A worker that does not answer in time is shown as
//! such: it hangs in a turn, which may be why the operator runs the command.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use bolide_acme::{AcmeInbox, AcmeOrderReport};
use bolide_engine::RequestTallies;
use bolide_engine::console::{StatusWorkers, status};
use bolide_engine::explain::Json;
use bolide_worker::{Holdings, IntakeState, Mail, Post, Slots};

use super::format::size;
use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};
use crate::php::PoolReport;

/// Its name on the socket.
pub(crate) const COMMAND: &str = "status";
/// How long workers may take to answer: as long as the watchdog allows a turn.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The control thread's facts about the running server.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) generation: u64,
    /// How long it is still watched.
    pub(crate) watched_for: Option<Duration>,
    /// What became of the last reload and why, if it failed.
    pub(crate) reload_failure: Option<String>,
    pub(crate) crew: Members,
    pub(crate) pools: Vec<PoolReport>,
    /// The ACME orders.
    pub(crate) orders: Vec<AcmeOrderReport>,
    /// The inbox for key rollovers of accounts.
    pub(crate) accounts: Option<AcmeInbox>,
}

/// All workers.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) posts: Vec<Post>,
    /// The kernel's number of each thread.
    pub(crate) threads: Vec<u32>,
}

/// One worker: the number of its thread, and its reply.
struct Asked {
    thread: u32,
    answer: Receiver<Holdings>,
}

struct Answered {
    thread: u32,
    holdings: Option<Holdings>,
}

/// The resources of the whole process.
struct Process {
    descriptors: u64,
    descriptors_max: u64,
    resident: Option<u64>,
}

pub(super) fn run(desk: &AdminDesk, words: &Words) -> CommandResult {
    let scene = desk.scene.as_ref().ok_or("no server runs here")?;
    let workers = ask(scene);
    if words.has("json") {
        return Ok(json(desk, scene, &workers).line());
    }
    let process = Process::look();
    Ok(text(desk, scene, &process, &workers).into_bytes())
}

/// Queries all workers at once, then waits for all of them together.
fn ask(scene: &Scene) -> Vec<Answered> {
    let mut asked = Vec::new();
    for (post, &thread) in scene.crew.posts.iter().zip(&scene.crew.threads) {
        let (reply, answer) = sync_channel(1);
        // A mailbox accepts every order, however full it is.
        let _ = post.send(Mail::ReportHoldings(reply));
        asked.push(Asked { thread, answer });
    }
    let until = bolide_io::process::now().mono.after(ANSWER_TIMEOUT);
    let wait = |one: Asked| {
        let left = until.since(bolide_io::process::now().mono);
        Answered { thread: one.thread, holdings: one.answer.recv_timeout(left).ok() }
    };
    asked.into_iter().map(wait).collect()
}

impl Process {
    fn look() -> Self {
        let (descriptors_max, _) = bolide_io::process::open_files();
        // The count itself takes a descriptor: a failure means that none is left.
        let descriptors = bolide_io::process::descriptors().unwrap_or(descriptors_max);
        Self { descriptors, descriptors_max, resident: bolide_io::process::resident_bytes() }
    }
}

/// A figure's name, in the table and in JSON, and its getter.
type Column<T> = (&'static str, fn(&Holdings) -> T);

const SLABS: [Column<Slots>; 6] = [
    ("tcp", |of| of.tcp),
    ("quic", |of| of.quic),
    ("exchanges", |of| of.exchanges),
    ("post_actions", |of| of.post_actions),
    ("fetches", |of| of.fetches),
    ("links", |of| of.links),
];
const FIGURES: [Column<usize>; 6] = [
    ("links_idle", |of| of.links_idle),
    ("unwaited_fills", |of| of.unwaited_fills),
    ("ended_fills", |of| of.ended_fills),
    ("queued", |of| of.queued),
    ("quic_states", |of| of.quic_states),
    ("deadlines", |of| of.deadlines),
];

/// What a worker does with new clients.
const fn state(of: &Holdings) -> &'static str {
    match of.intake {
        IntakeState::Accepting => "accepting",
        IntakeState::Paused => "paused",
        IntakeState::Draining => "draining",
    }
}

fn json(desk: &AdminDesk, scene: &Scene, workers: &[Answered]) -> Json {
    let number = |number: usize| Json::number(number as u64);
    let slots = |of: Slots| {
        let max = Json::number(of.max);
        Json::Object(vec![("used", number(of.used)), ("made", number(of.made)), ("max", max)])
    };
    let worker = |one: &Answered| {
        let mut all = vec![
            ("thread", Json::number(one.thread)),
            ("answers", Json::Bool(one.holdings.is_some())),
        ];
        if let Some(of) = &one.holdings {
            all.push(("worker", Json::number(of.worker)));
            all.push(("state", Json::text(state(of))));
            all.push(("configuration", Json::number(of.generation)));
            all.extend(SLABS.iter().map(|(name, slab)| (*name, slots(slab(of)))));
            all.extend(FIGURES.iter().map(|(name, figure)| (*name, number(figure(of)))));
        }
        Json::Object(all)
    };
    let tallies = RequestTallies::new(scene.crew.posts.iter().map(Post::tally));
    let workers = StatusWorkers::Answered(Json::list(workers, worker));
    status(&desk.site, &tallies, bolide_io::process::now(), workers)
}

fn text(desk: &AdminDesk, scene: &Scene, process: &Process, workers: &[Answered]) -> String {
    let mut out = format!(
        "process {}, configuration {}: {} of {} descriptors, {}\n",
        std::process::id(),
        scene.generation,
        process.descriptors,
        process.descriptors_max,
        process.resident.map_or("-".to_owned(), |bytes| format!("{} resident", size(bytes))),
    );
    out.push_str(&reload_lines(scene));
    let names = SLABS.iter().map(|(name, _)| *name).chain(FIGURES.iter().map(|(name, _)| *name));
    out.push_str(&row("worker", names.map(|name| name.replace('_', " ")), "state"));
    let figures = |of: &Holdings| -> Vec<usize> {
        let used = SLABS.iter().map(|(_, slab)| slab(of).used);
        used.chain(FIGURES.iter().map(|(_, figure)| figure(of))).collect()
    };
    let mut made = [0; SLABS.len()];
    for one in workers {
        let Some(of) = &one.holdings else {
            out.push_str(&format!("thread {} does not answer\n", one.thread));
            continue;
        };
        let cells = figures(of).into_iter().map(|figure| figure.to_string());
        out.push_str(&row(&of.worker.to_string(), cells, state(of)));
        made.iter_mut().zip(SLABS).for_each(|(sum, (_, slab))| *sum += slab(of).made);
    }
    let cells = made.iter().map(ToString::to_string);
    out.push_str(&row("slots made", cells, ""));
    if let Some(store) = desk.site.store() {
        let stats = store.stats();
        out.push_str(&format!(
            "cache: {} objects, {} of {}, {} fills in flight\n",
            stats.objects,
            size(stats.bytes),
            size(stats.bytes_max),
            stats.fills
        ));
    }
    scene.pools.iter().for_each(|pool| out.push_str(&format!("php {pool}\n")));
    scene.orders.iter().for_each(|order| out.push_str(&order_line(order)));
    out
}

/// The result of the last reload, unless it simply succeeded.
fn reload_lines(scene: &Scene) -> String {
    let mut out = String::new();
    if let Some(left) = scene.watched_for {
        let seconds = left.as_secs_f64().ceil();
        out.push_str(&format!("configuration {} is watched for {seconds}s\n", scene.generation));
    }
    if let Some(failure) = &scene.reload_failure {
        out.push_str(&format!("the last reload {failure}\n"));
    }
    out
}

/// The line about one ACME order.
fn order_line(of: &AcmeOrderReport) -> String {
    let now = bolide_io::process::now().unix_seconds();
    let days = |end: u64| format!("{} days left", end.saturating_sub(now) / 86_400);
    let left = of.expires.map_or_else(|| "no certificate yet".to_owned(), days);
    let next = match (of.is_ordering, of.next_attempt.saturating_sub(now)) {
        (true, _) => "ordered now".to_owned(),
        (false, wait) => format!("next attempt in {wait} s"),
    };
    let why = of
        .last_error
        .as_ref()
        .map_or_else(String::new, |why| format!(", {} attempts failed: {why}", of.failures));
    let root = of.root.as_ref();
    let root = root.map_or_else(String::new, |path| format!(", root {}", path.display()));
    let revoked = of.revoked.as_ref().map_or_else(String::new, |revoked| {
        format!(", revoked by its issuer ({})", revoked.revocation.reason_words())
    });
    let names = of.names.join(" ");
    format!("certificate {names} of {}: {left}{revoked}, {next}{root}{why}\n", of.issuer)
}

/// A line of the table: each cell has the width of its column's name.
fn row(first: &str, cells: impl Iterator<Item = String>, last: &str) -> String {
    let names = SLABS.iter().map(|(name, _)| *name).chain(FIGURES.iter().map(|(name, _)| *name));
    let mut line = format!("{first:<10}");
    for (name, cell) in names.zip(cells) {
        let width = name.len().max(4) + 2;
        line.push_str(&format!("{cell:>width$}"));
    }
    line.push_str("  ");
    line.push_str(last);
    let mut line = line.trim_end().to_owned();
    line.push('\n');
    line
}
