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
use crate::kernel::logs::{OWN, SYSLOG};
use crate::scenario::MILLI;
use crate::upkeep;

/// Has the disk hold what it needs before a server begins.
pub(super) fn prepare(kernel: &mut Kernel, seed: u64) {
    let mut chance = Chance::new(seed, 6);
    kernel.overtime = Some(upkeep::OVERTIME);
    kernel.faults.log_in = [0, 0, 60, 500][chance.index(4)];
    kernel.disk.replace("/www/htpasswd", upkeep::PASSWORDS.to_vec(), 0);
    if chance.one_in(2) {
        kernel.disk.make_directory("/bodies");
        kernel.has_left_bodies = true;
        for path in upkeep::LEFT {
            for (at, _) in path.match_indices('/').skip(2) {
                kernel.disk.make_directory(&path[..at]);
            }
            kernel.disk.replace(path, b"left".to_vec(), 0);
        }
    }
}

impl World {
    /// The administrator does something.
    pub(super) fn keep_up(&mut self, now: u64) {
        self.next_event = now + 20 * MILLI + self.chance.below(1500 * MILLI);
        match self.chance.below(6) {
            0 | 1 => {
                let opened = self.server.sockets.open_logs(&mut self.kernel.borrow_mut());
                opened.err().into_iter().for_each(|error| self.complaints.push(error.to_string()));
                let logs = self.server.sockets.logs();
                self.server.tell_all(&self.kernel, "reopen", || Mail::Reopen(logs.clone()));
            }
            2 => {
                let mut kernel = self.kernel.borrow_mut();
                kernel.tell(|| "logs are moved".to_owned());
                kernel.logs.move_own(now);
            }
            3 => self.reload(now),
            4 => self.server.tell_all(&self.kernel, "tidy", || Mail::Tidy),
            _ => self.ask_holdings(),
        }
    }

    fn ask_holdings(&mut self) {
        for (worker, post) in self.server.posts.iter().enumerate() {
            let (teller, told) = sync_channel(1);
            // A box takes every question, however full it is.
            let _ = post.send(Mail::Tell(teller));
            self.told.push((worker, told));
            self.kernel.borrow_mut().ring(worker);
        }
    }

    /// Judges what workers tell of themselves.
    pub(super) fn hear_holdings(&mut self) {
        let generations = 1..=u64::from(self.layout.number);
        let mut wrong = Vec::new();
        self.told.retain(|(worker, told)| {
            let Ok(held) = told.try_recv() else { return true };
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
        self.complaints.extend(wrong);
    }

    /// All clients have left: workers are asked once more, and let go of what was replaced.
    pub(super) fn finish_chores(&mut self) {
        if self.kernel.borrow().overtime.is_some() {
            self.server.tell_all(&self.kernel, "tidy", || Mail::Tidy);
            self.ask_holdings();
        }
    }

    /// What is wrong with what is left of all that.
    pub(super) fn check_chores(&self, kernel: &Kernel) -> Vec<String> {
        let eras = self.eras.windows(2).map(|pair| (pair[1].told, pair[0].over));
        let mut wrong = check(kernel, &eras.collect::<Vec<_>>());
        if kernel.dearth.is_felt() {
            // What failed is not in the logs, and may be left on the disk.
            wrong.clear();
        } else {
            wrong.extend(check_bodies(kernel));
        }
        wrong.extend(kernel.logs.leaks().map(|name| format!("an old {name} is held open")));
        for (worker, told) in &self.told {
            let Ok(held) = told.try_recv() else {
                wrong.push(format!("worker {worker} tells nothing of itself"));
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

/// Nanoseconds by which what is logged may differ from what was.
const GRAIN: u64 = 50_000_000;

/// How often each line was written.
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

/// When a request began and ended, as its line says.
fn span(line: &str) -> Option<(u64, u64)> {
    let mut words = line.rsplit(' ');
    let nanos = |word: &str| {
        let (seconds, millis) = word.split_once('.')?;
        let (seconds, millis): (u64, u64) = (seconds.parse().ok()?, millis.parse().ok()?);
        Some(seconds * 1_000_000_000 + millis * 1_000_000)
    };
    let (end, took) = (nanos(words.next()?)?, nanos(words.next()?)?);
    let end = end.checked_sub(EPOCH_SECONDS * 1_000_000_000)?;
    Some((end.saturating_sub(took), end))
}

/// What is wrong with what was logged; `reloads` tells when each was ordered, and when all workers
/// had heard of it.
fn check(kernel: &Kernel, reloads: &[(u64, u64)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut all: BTreeMap<&str, Lines> = BTreeMap::new();
    for (name, bytes) in kernel.logs.whole() {
        let target = if name.starts_with(OWN) { OWN } else { name };
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
            wrong.push(format!("no line of {first}: {line:?}"));
            continue;
        };
        let outlives = |(told, heard): &&(u64, u64)| {
            began + GRAIN < *told && ended > heard.saturating_add(upkeep::OVERTIME + GRAIN)
        };
        if let Some((told, heard)) = reloads.iter().find(outlives) {
            wrong.push(format!("{line} from {began} to {ended} outlives {told} to {heard}"));
        }
    }
    wrong
}

/// What is wrong with the files that bodies were kept in: all of them are gone, and what others
/// left is as it was.
fn check_bodies(kernel: &Kernel) -> Vec<String> {
    let found: Vec<&str> = kernel.disk.below("/bodies/").collect();
    let left = if kernel.has_left_bodies { &upkeep::LEFT[..] } else { &[] };
    if found == left { Vec::new() } else { vec![format!("{found:?} are left of bodies")] }
}
