//! Administration during a run: logs are rotated and moved, configurations change, and workers are
//! asked for their holdings.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::mpsc::sync_channel;

use bolide_worker::{Holdings, Mail};

use super::World;
use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::kernel::disk::EPOCH_SECONDS;
use crate::kernel::logs::{REQUEST_LOG_PREFIX, SYSLOG};
use crate::oracle::ConfigEpoch;
use crate::time::MILLI;
use crate::upkeep;

/// Creates the files that the server needs.
pub(super) fn prepare(kernel: &mut Kernel, seed: u64) {
    let mut chance = Chance::new(seed, 6);
    kernel.shutdown_timeout = Some(upkeep::SHUTDOWN_TIMEOUT);
    kernel.fault_rates.log_in = [0, 0, 60, 500][chance.index(4)];
    kernel.disk.replace("/www/htpasswd", upkeep::PASSWORDS.to_vec(), 0);
    if chance.one_in(2) {
        kernel.disk.make_directory("/bodies");
        kernel.has_foreign_files = true;
        for path in upkeep::LEFT {
            for (at, _) in path.match_indices('/').skip(2) {
                kernel.disk.make_directory(&path[..at]);
            }
            kernel.disk.replace(path, b"left".to_vec(), 0);
        }
    }
}

impl World {
    /// Runs a random administrative command.
    pub(super) fn administer(&mut self, now: u64) {
        self.next_event = now + 20 * MILLI + self.chance.below(1500 * MILLI);
        match self.chance.below(6) {
            0 | 1 => {
                let opened = self.server.sockets.open_logs(&mut self.kernel.borrow_mut());
                opened.err().into_iter().for_each(|error| self.violations.push(error.to_string()));
                let logs = self.server.sockets.logs();
                self.server.send_all(&self.kernel, "reopen", || Mail::Reopen(logs.clone()));
            }
            2 => {
                let mut kernel = self.kernel.borrow_mut();
                kernel.trace(|| "logs are moved".to_owned());
                kernel.logs.move_request_logs(now);
            }
            3 => self.reload(now),
            4 => self.server.send_all(&self.kernel, "tidy", || Mail::Tidy),
            _ => self.request_holdings(),
        }
    }

    fn request_holdings(&mut self) {
        for (worker, post) in self.server.posts.iter().enumerate() {
            let (sender, receiver) = sync_channel(1);
            // A mailbox accepts every message, however full it is.
            let _ = post.send(Mail::ReportHoldings(sender));
            self.pending_holdings.push((worker, receiver));
            self.kernel.borrow_mut().ring(worker);
        }
    }

    /// Checks the holdings that workers have reported.
    pub(super) fn check_holdings(&mut self) {
        let generations = 1..=u64::from(self.layout.number);
        let mut wrong = Vec::new();
        self.pending_holdings.retain(|(worker, receiver)| {
            let Ok(held) = receiver.try_recv() else { return true };
            let Holdings { tcp, quic, exchanges, post_actions, fetches, links, .. } = &held;
            let all = [tcp, quic, exchanges, post_actions, fetches, links];
            let is_sound = all.iter().all(|s| s.used <= s.made && s.made <= s.max as usize)
                && held.links_idle <= links.used
                && held.queued <= fetches.used
                && usize::from(held.worker) == *worker
                && generations.contains(&held.generation);
            if !is_sound {
                wrong.push(format!("unsound: {held:?}"));
            }
            false
        });
        self.violations.extend(wrong);
    }

    /// After all clients have left, workers release what was replaced and report their holdings
    /// once more.
    pub(super) fn finish_administration(&mut self) {
        if self.kernel.borrow().shutdown_timeout.is_some() {
            self.server.send_all(&self.kernel, "tidy", || Mail::Tidy);
            self.request_holdings();
        }
    }

    /// Checks the logs, stored request bodies and holdings at the end.
    pub(super) fn check_administration(&self, kernel: &Kernel) -> Vec<String> {
        let mut wrong = check(kernel, &self.epochs);
        if kernel.syscall_faults.any_failed() {
            // Failed calls lose log lines and leave files behind.
            wrong.clear();
        } else {
            wrong.extend(check_bodies(kernel));
        }
        wrong.extend(kernel.logs.leaks().map(|name| format!("an old {name} is held open")));
        for (worker, receiver) in &self.pending_holdings {
            let Ok(held) = receiver.try_recv() else {
                wrong.push(format!("worker {worker} does not report its holdings"));
                continue;
            };
            let live = [held.tcp, held.exchanges, held.post_actions, held.fetches];
            if live.iter().any(|slots| slots.used > 0) || held.queued > 0 {
                wrong.push(format!("at the end: {held:?}"));
            }
        }
        wrong
    }
}

/// Nanoseconds by which logged times may differ from the actual ones.
const GRAIN: u64 = 50_000_000;

/// The number of occurrences of each line.
type Lines = BTreeMap<String, usize>;

fn lines(name: &str, bytes: &[u8]) -> Result<Vec<String>, String> {
    let mut text = Vec::new();
    if name == "/logs/packed" {
        let mut decoder = flate2::read::MultiGzDecoder::new(bytes);
        decoder.read_to_end(&mut text).map_err(|error| format!("{name}: {error}"))?;
    } else {
        text.extend_from_slice(bytes);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines()
        .map(|line| match name {
            SYSLOG => match line.split_once(" sim: ") {
                Some((_, line)) => Ok(line.to_owned()),
                None => Err(format!("{name}: {line}")),
            },
            _ => Ok(line.to_owned()),
        })
        .collect()
}

/// When the head of a request was complete, and when the request ended, as its log line says.
/// `None` for a head that was refused.
fn span(line: &str) -> Option<(u64, u64)> {
    let mut words = line.rsplit(' ');
    let nanos = |word: &str| {
        let (seconds, millis) = word.split_once('.')?;
        let (seconds, millis): (u64, u64) = (seconds.parse().ok()?, millis.parse().ok()?);
        (seconds * 1_000_000_000 + millis * 1_000_000).checked_sub(EPOCH_SECONDS * 1_000_000_000)
    };
    let ended = nanos(words.next()?)?;
    Some((nanos(words.next()?)?, ended))
}

/// Checks the logs.
fn check(kernel: &Kernel, epochs: &[ConfigEpoch]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut all: BTreeMap<&str, Lines> = BTreeMap::new();
    for (name, bytes) in kernel.logs.whole() {
        let target = if name.starts_with(REQUEST_LOG_PREFIX) { REQUEST_LOG_PREFIX } else { name };
        match lines(name, bytes) {
            Ok(lines) => {
                let counts = all.entry(target).or_default();
                lines.into_iter().for_each(|line| *counts.entry(line).or_default() += 1);
            }
            Err(problem) => wrong.push(problem),
        }
    }
    let Some((first, known)) = all.pop_first() else { return wrong };
    for (name, counts) in &all {
        let differs = |line: &&String| known.get(*line) != counts.get(*line);
        if let Some(line) = known.keys().chain(counts.keys()).find(differs) {
            wrong.push(format!("{line:?} is not as often in {name} as in {first}"));
        }
    }
    for line in known.keys() {
        let Some((began, ended)) = span(line) else {
            // A head that was refused has not been complete.
            let has_time = !line.contains("  ");
            if has_time {
                wrong.push(format!("no line of {first}: {line:?}"));
            }
            continue;
        };
        let outlives = |pair: &&[ConfigEpoch]| {
            let until = pair[0].superseded_at.saturating_add(upkeep::SHUTDOWN_TIMEOUT + GRAIN);
            began + GRAIN < pair[1].sent_at && ended > until
        };
        if let Some(pair) = epochs.windows(2).find(outlives) {
            let (sent, applied) = (pair[1].sent_at, pair[0].superseded_at);
            wrong.push(format!("{line} from {began} to {ended} outlives {sent} to {applied}"));
        }
    }
    wrong
}

/// Checks the directory of request bodies: the server's files are removed, and other files are
/// unchanged.
fn check_bodies(kernel: &Kernel) -> Vec<String> {
    let found: Vec<&str> = kernel.disk.below("/bodies/").collect();
    let left = if kernel.has_foreign_files { &upkeep::LEFT[..] } else { &[] };
    if found == left { Vec::new() } else { vec![format!("{found:?} are left of bodies")] }
}
