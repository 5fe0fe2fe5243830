//! One worker's log lines on their way to files: gathered per target, drained by the worker.
//!
//! Owns no file: it says which bytes belong to which path, and when. A target that is not drained
//! stops growing at a limit and counts what it lost; the invariant that is easiest to break is that
//! a line is appended whole or not at all.

use std::time::Duration;

use base::Instant;

/// Bytes one target holds before further lines are lost.
const TARGET_SIZE_MAX: usize = 1 << 20;
/// Targets held at once; variables in log paths can make many.
const TARGETS_MAX: usize = 512;

/// Names a target of one [`Logs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId(usize);

/// What a target is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTarget<'a> {
    /// A file, by its path; one with variables may be relative and lies below the prefix then.
    File(&'a [u8]),
    /// Standard error.
    Stderr,
}

/// When gathered lines are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffering {
    /// Lines wait until there are this many bytes; 0 means that they leave with the turn.
    pub size: usize,
    /// Lines wait no longer than this; zero means for as long as it takes.
    pub flush: Duration,
}

/// Which lines [`Logs::poll_write`] gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// What is due by size or age.
    Only,
    /// Everything: the process ends or the files are reopened.
    Everything,
}

#[derive(Debug)]
struct Slot {
    /// Empty for standard error.
    path: Vec<u8>,
    lines: Vec<u8>,
    buffering: Buffering,
    oldest: Option<Instant>,
}

/// Access-log and error-log lines of one worker.
#[derive(Debug, Default)]
pub struct Logs {
    slots: Vec<Slot>,
    pending: usize,
    lost: u64,
    pid: u32,
    tid: u32,
}

impl Logs {
    /// No lines; error lines will name this process and thread.
    #[must_use]
    pub fn new(pid: u32, tid: u32) -> Self {
        Self { pid, tid, ..Self::default() }
    }

    /// The process that error lines name.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The thread that error lines name.
    #[must_use]
    pub const fn tid(&self) -> u32 {
        self.tid
    }

    /// Lines that were dropped because nobody drained their target.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether no line waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Lets `write` append one line, its newline included, to `target`.
    pub fn line(
        &mut self,
        target: LogTarget<'_>,
        buffering: Buffering,
        now: Instant,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let path = match target {
            LogTarget::File(path) => path,
            LogTarget::Stderr => b"",
        };
        let Some(index) = self.slot(path, buffering) else {
            self.lost += 1;
            return;
        };
        let slot = &mut self.slots[index];
        if slot.lines.len() >= TARGET_SIZE_MAX {
            self.lost += 1;
            return;
        }
        let was_empty = slot.lines.is_empty();
        write(&mut slot.lines);
        if was_empty && !slot.lines.is_empty() {
            slot.oldest = Some(now);
            self.pending += 1;
        }
    }

    /// Few targets exist, so a scan is cheaper than a hash, and safe with paths made by clients.
    fn slot(&mut self, path: &[u8], buffering: Buffering) -> Option<usize> {
        if let Some(index) = self.slots.iter().position(|slot| slot.path == path) {
            self.slots[index].buffering = buffering;
            return Some(index);
        }
        let fresh = Slot { path: path.to_vec(), lines: Vec::new(), buffering, oldest: None };
        if self.slots.len() < TARGETS_MAX {
            self.slots.push(fresh);
            return Some(self.slots.len() - 1);
        }
        let index = self.slots.iter().position(|slot| slot.lines.is_empty())?;
        self.slots[index] = fresh;
        Some(index)
    }

    /// The next target with lines to write; ask [`Self::batch`] for them, then call
    /// [`Self::written`].
    pub fn poll_write(&mut self, now: Instant, due: Due) -> Option<LogId> {
        if self.pending == 0 {
            return None;
        }
        let is_due = |slot: &Slot| {
            !slot.lines.is_empty()
                && (due == Due::Everything
                    || slot.lines.len() >= slot.buffering.size
                    || deadline(slot).is_some_and(|at| at <= now))
        };
        self.slots.iter().position(is_due).map(LogId)
    }

    /// Where the lines of `id` go, and the lines.
    #[must_use]
    pub fn batch(&self, id: LogId) -> (LogTarget<'_>, &[u8]) {
        let slot = &self.slots[id.0];
        let target = match &slot.path[..] {
            b"" => LogTarget::Stderr,
            path => LogTarget::File(path),
        };
        (target, &slot.lines)
    }

    /// Forgets the lines of `id`: they were written, or they never will be.
    pub fn written(&mut self, id: LogId) {
        let slot = &mut self.slots[id.0];
        if !slot.lines.is_empty() {
            slot.lines.clear();
            slot.oldest = None;
            self.pending -= 1;
        }
    }

    /// When buffered lines become due by age.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.pending == 0 { None } else { self.slots.iter().filter_map(deadline).min() }
    }
}

fn deadline(slot: &Slot) -> Option<Instant> {
    let waits = !slot.buffering.flush.is_zero() && slot.buffering.size > 0;
    slot.oldest.filter(|_| waits).map(|oldest| oldest.after(slot.buffering.flush))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::Instant;

    use super::{Buffering, Due, LogTarget, Logs};

    fn drain(logs: &mut Logs, now: u64, due: Due) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        while let Some(id) = logs.poll_write(Instant::from_nanos(now), due) {
            let (target, lines) = logs.batch(id);
            seen.push((format!("{target:?}"), String::from_utf8(lines.to_vec()).unwrap()));
            logs.written(id);
        }
        seen
    }

    #[test]
    fn lines_of_one_target_leave_together_and_in_order() {
        let mut logs = Logs::new(1, 2);
        let now = Instant::from_nanos(5);
        let (a, none) = (LogTarget::File(b"/a"), Buffering::default());
        logs.line(a, none, now, |out| out.extend_from_slice(b"1\n"));
        logs.line(LogTarget::Stderr, none, now, |out| out.extend_from_slice(b"2\n"));
        logs.line(a, none, now, |out| out.extend_from_slice(b"3\n"));
        let seen = drain(&mut logs, 5, Due::Only);
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].1, "1\n3\n");
        assert_eq!(seen[1], ("Stderr".to_owned(), "2\n".to_owned()));
        assert!(logs.is_empty() && drain(&mut logs, 9, Due::Everything).is_empty());
    }

    #[test]
    fn buffered_lines_wait_for_size_or_age_and_leave_when_forced() {
        let mut logs = Logs::new(1, 2);
        let buffering = Buffering { size: 4, flush: Duration::from_nanos(10) };
        let put = |logs: &mut Logs, at| {
            let now = Instant::from_nanos(at);
            logs.line(LogTarget::File(b"/a"), buffering, now, |out| out.extend_from_slice(b"1\n"));
        };
        put(&mut logs, 0);
        assert!(drain(&mut logs, 9, Due::Only).is_empty());
        assert_eq!(logs.next_deadline(), Some(Instant::from_nanos(10)));
        assert_eq!(drain(&mut logs, 10, Due::Only).len(), 1);
        put(&mut logs, 20);
        put(&mut logs, 21);
        assert_eq!(drain(&mut logs, 21, Due::Only)[0].1, "1\n1\n");
        put(&mut logs, 30);
        assert_eq!(drain(&mut logs, 30, Due::Everything).len(), 1);
        assert_eq!(logs.next_deadline(), None);
    }

    #[test]
    fn a_target_that_nobody_drains_stops_growing_and_counts_its_losses() {
        let mut logs = Logs::new(1, 2);
        for _ in 0..3000 {
            let line = |out: &mut Vec<u8>| out.resize(out.len() + 1024, b'x');
            logs.line(LogTarget::Stderr, Buffering::default(), Instant::from_nanos(0), line);
        }
        assert_eq!(logs.lost(), 3000 - 1024);
    }
}
