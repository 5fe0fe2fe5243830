//! One worker's log lines on their way out: gathered per target, drained by the worker.
//!
//! Owns no file and no socket: it says which bytes belong where, and when. A target that is not
//! drained stops growing at a limit and counts what it lost; the invariant that is easiest to break
//! is that a line is appended whole or not at all. Lines for a syslog server are kept apart by
//! their lengths, since each is a datagram.
//!
//! ```text
//!  line() --> held (the buffer of the file) --does not fit, too old, forced--> ready
//!  ready --batch(), written()--> gone, or blocked for a moment and offered again
//! ```

use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use conf::model::{LogBuffer, LogFileCache, Syslog};

#[cfg(test)]
mod tests;

/// LIMIT: bytes one target holds beyond its buffer before further lines are lost.
const TARGET_SIZE_MAX: usize = 1 << 20;
/// LIMIT: targets held at once; variables in log paths can make many.
const TARGETS_MAX: usize = 512;
/// Bytes of the length in front of a line for a syslog server.
const LENGTH_SIZE: usize = 4;
/// How long a target that took nothing is left alone; the time doubles up to the second.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// Names a target of one [`Logs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId(usize);

/// What a line is written to.
#[derive(Clone, Copy, Debug)]
pub enum LogTarget<'a> {
    /// A file that the configuration names, by its absolute path.
    File(&'a [u8]),
    /// A file whose path a request has made.
    Variable(VariableFile<'a>),
    /// A syslog server; the line has no end of its own.
    Syslog(&'a Arc<Syslog>),
    /// Standard error.
    Stderr,
}

/// A file whose path a request has made.
#[derive(Clone, Copy, Debug)]
pub struct VariableFile<'a> {
    /// The absolute path.
    pub path: &'a [u8],
    /// The root directory of the request: without it nothing is opened.
    pub root: &'a [u8],
    /// How long the file stays open; without, it is opened for each write.
    pub cache: Option<LogFileCache>,
    /// What the error log says of the request behind its own words.
    pub context: &'a [u8],
    /// The number of its connection.
    pub serial: u64,
}

/// What is due for one target.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Where it goes.
    pub target: LogTarget<'a>,
    /// What is written; of a syslog target, see [`datagrams`].
    pub lines: &'a [u8],
    /// The gzip level to write it with, if it is to be.
    pub gzip: Option<u8>,
}

/// Which lines [`Logs::poll_write`] gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// What is due by size or age.
    Only,
    /// Everything: the process ends or the files are reopened.
    Everything,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    File,
    Variable(Request),
    Syslog(Arc<Syslog>),
    Stderr,
}

/// What is known of the request that named a file last.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    root: Vec<u8>,
    cache: Option<LogFileCache>,
    context: Vec<u8>,
    serial: u64,
}

#[derive(Debug)]
struct Slot {
    kind: Kind,
    path: Vec<u8>,
    /// What a file without a buffer has is ready at once.
    buffer: Option<LogBuffer>,
    lines: Vec<u8>,
    /// How much of `lines` is to be written.
    ready: usize,
    /// When the first line that is not ready was written.
    oldest: Option<Instant>,
    /// Compressed bytes that a slow reader has not taken yet; they go first.
    packed: Vec<u8>,
    blocked: Option<Instant>,
    pause: Duration,
    lost: u64,
}

/// Access-log and error-log lines of one worker.
#[derive(Debug, Default)]
pub struct Logs {
    slots: Vec<Slot>,
    buffers: Arc<[LogBuffer]>,
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

    /// Gathers lines of these files, and of no others from now on. Tell it when all is written.
    pub fn set_buffers(&mut self, buffers: Arc<[LogBuffer]>) {
        self.buffers = buffers;
        self.slots.retain(Slot::is_busy);
        for slot in &mut self.slots {
            slot.buffer = None;
            slot.ready = slot.lines.len();
        }
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
    pub fn line(&mut self, target: LogTarget<'_>, now: Instant, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(index) = self.slot(target) else {
            self.lost += 1;
            return;
        };
        let slot = &mut self.slots[index];
        let size = slot.buffer.as_ref().map_or(0, |buffer| buffer.size);
        if slot.lines.len() >= TARGET_SIZE_MAX.saturating_add(size) {
            self.lost += 1;
            slot.lost += 1;
            return;
        }
        let was_busy = slot.is_busy();
        slot.line(size, now, write);
        self.pending += usize::from(!was_busy && slot.is_busy());
    }

    /// Few targets exist, so a scan is cheaper than a hash, and safe with paths made by clients.
    fn slot(&mut self, target: LogTarget<'_>) -> Option<usize> {
        if let Some(index) = self.slots.iter().position(|slot| slot.is_for(target)) {
            self.slots[index].follow(target);
            return Some(index);
        }
        let fresh = Slot::new(target, &self.buffers);
        if self.slots.len() < TARGETS_MAX {
            self.slots.push(fresh);
            return Some(self.slots.len() - 1);
        }
        let index = self.slots.iter().position(|slot| !slot.is_busy())?;
        self.slots[index] = fresh;
        Some(index)
    }

    /// The next target with lines to write; ask [`Self::batch`] for them, then call
    /// [`Self::written`].
    pub fn poll_write(&mut self, now: Instant, due: Due) -> Option<LogId> {
        if self.pending == 0 {
            return None;
        }
        let index = self.slots.iter_mut().position(|slot| slot.is_due(now, due))?;
        Some(LogId(index))
    }

    /// What is due for `id`.
    #[must_use]
    pub fn batch(&self, id: LogId) -> Batch<'_> {
        let slot = &self.slots[id.0];
        let target = slot.target();
        if !slot.packed.is_empty() {
            return Batch { target, lines: &slot.packed, gzip: None };
        }
        let gzip = slot.buffer.as_ref().and_then(|buffer| buffer.gzip);
        Batch { target, lines: &slot.lines[..slot.ready], gzip }
    }

    /// Forgets the first `bytes` of the batch of `id`: they were written, or never will be. If
    /// there were more, the rest is offered again in a moment. Tells how many lines were lost
    /// since the target took everything last.
    pub fn written(&mut self, id: LogId, bytes: usize, now: Instant) -> u64 {
        let slot = &mut self.slots[id.0];
        let batch = if slot.packed.is_empty() { slot.ready } else { slot.packed.len() };
        if slot.packed.is_empty() {
            slot.take(bytes);
        } else {
            slot.packed.drain(..bytes);
        }
        if bytes < batch {
            slot.pause = if bytes > 0 { PAUSE.0 } else { (slot.pause * 2).min(PAUSE.1) };
            slot.blocked = Some(now.after(slot.pause));
            return 0;
        }
        slot.blocked = None;
        slot.pause = PAUSE.0;
        self.pending -= usize::from(!slot.is_busy());
        std::mem::take(&mut slot.lost)
    }

    /// As [`Self::written`] for a batch that was compressed: `rest` is what could not be written.
    pub fn written_packed(&mut self, id: LogId, rest: &[u8], now: Instant) {
        let slot = &mut self.slots[id.0];
        slot.take(slot.ready);
        slot.packed.extend_from_slice(rest);
        if !rest.is_empty() {
            slot.blocked = Some(now.after(slot.pause));
        }
        self.pending -= usize::from(!slot.is_busy());
    }

    /// When lines become due by age, or may be offered again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.pending == 0 { None } else { self.slots.iter().filter_map(Slot::deadline).min() }
    }
}

impl Slot {
    fn new(target: LogTarget<'_>, buffers: &[LogBuffer]) -> Self {
        use std::os::unix::ffi::OsStrExt as _;

        let (kind, path) = match target {
            LogTarget::File(path) => (Kind::File, path),
            LogTarget::Variable(file) => {
                let VariableFile { path, cache, serial, .. } = file;
                let (root, context) = (file.root.to_vec(), file.context.to_vec());
                (Kind::Variable(Request { root, cache, context, serial }), path)
            }
            LogTarget::Syslog(server) => (Kind::Syslog(server.clone()), &b""[..]),
            LogTarget::Stderr => (Kind::Stderr, &b""[..]),
        };
        let buffer = match kind {
            Kind::File => buffers.iter().find(|buffer| buffer.path.as_os_str().as_bytes() == path),
            _ => None,
        };
        Self {
            kind,
            path: path.to_vec(),
            buffer: buffer.cloned(),
            lines: Vec::new(),
            ready: 0,
            oldest: None,
            packed: Vec::new(),
            blocked: None,
            pause: PAUSE.0,
            lost: 0,
        }
    }

    fn is_for(&self, target: LogTarget<'_>) -> bool {
        match (&self.kind, target) {
            (Kind::File, LogTarget::File(path)) => self.path == path,
            (Kind::Variable(_), LogTarget::Variable(file)) => self.path == file.path,
            (Kind::Syslog(known), LogTarget::Syslog(server)) => {
                Arc::ptr_eq(known, server) || known == server
            }
            (Kind::Stderr, LogTarget::Stderr) => true,
            _ => false,
        }
    }

    /// What the last request says of a file with variables in its name holds.
    fn follow(&mut self, target: LogTarget<'_>) {
        if let (Kind::Variable(last), LogTarget::Variable(file)) = (&mut self.kind, target) {
            last.root.clear();
            last.root.extend_from_slice(file.root);
            last.context.clear();
            last.context.extend_from_slice(file.context);
            (last.cache, last.serial) = (file.cache, file.serial);
        }
    }

    fn target(&self) -> LogTarget<'_> {
        match &self.kind {
            Kind::File => LogTarget::File(&self.path),
            Kind::Variable(last) => LogTarget::Variable(VariableFile {
                path: &self.path,
                root: &last.root,
                cache: last.cache,
                context: &last.context,
                serial: last.serial,
            }),
            Kind::Syslog(server) => LogTarget::Syslog(server),
            Kind::Stderr => LogTarget::Stderr,
        }
    }

    const fn is_busy(&self) -> bool {
        !self.lines.is_empty() || !self.packed.is_empty()
    }

    fn line(&mut self, size: usize, now: Instant, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.lines.len();
        if let Kind::Syslog(_) = self.kind {
            self.lines.extend_from_slice(&[0; LENGTH_SIZE]);
            write(&mut self.lines);
            let length = (self.lines.len() - start - LENGTH_SIZE) as u32;
            self.lines[start..start + LENGTH_SIZE].copy_from_slice(&length.to_ne_bytes());
        } else {
            write(&mut self.lines);
        }
        // A line that does not fit sends what is before it away, and goes with it when it is
        // longer than the buffer.
        if self.lines.len() - self.ready > size {
            self.ready = if self.lines.len() - start > size { self.lines.len() } else { start };
        }
        if self.ready == self.lines.len() {
            self.oldest = None;
        } else if self.ready == start {
            self.oldest = Some(now);
        }
    }

    fn is_due(&mut self, now: Instant, due: Due) -> bool {
        let is_late = self.flush_at().is_some_and(|at| at <= now);
        if due == Due::Everything || is_late {
            self.ready = self.lines.len();
            self.oldest = None;
        }
        let may_go = self.blocked.is_none_or(|until| until <= now);
        may_go && (self.ready > 0 || !self.packed.is_empty())
    }

    fn take(&mut self, bytes: usize) {
        if bytes == self.lines.len() {
            self.lines.clear();
        } else {
            self.lines.drain(..bytes);
        }
        self.ready -= bytes;
    }

    fn flush_at(&self) -> Option<Instant> {
        let flush = self.buffer.as_ref()?.flush?;
        self.oldest.map(|oldest| oldest.after(flush))
    }

    fn deadline(&self) -> Option<Instant> {
        let again = self.blocked.filter(|_| self.is_busy());
        [again, self.flush_at()].into_iter().flatten().min()
    }
}

/// The datagrams of a batch for a syslog server, each with its offset behind it in the batch.
pub fn datagrams(mut batch: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let (length, rest) = batch.split_first_chunk::<LENGTH_SIZE>()?;
        let length = u32::from_ne_bytes(*length) as usize;
        let (datagram, rest) = rest.split_at_checked(length)?;
        batch = rest;
        end += LENGTH_SIZE + length;
        Some((datagram, end))
    })
}
