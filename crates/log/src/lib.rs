//! The queued log lines of one worker, by target.
//!
//! Owns no file and no socket: it decides which bytes to write where, and when. A target that is
//! not drained stops growing at a limit and counts the lost lines. Easiest to break: a line is
//! appended completely or not at all. Lines for a syslog server are stored with their lengths,
//! because each is a datagram.
//!
//! ```text
//!  line() --> held (the buffer of the file) --does not fit, too old, forced--> ready
//!  ready --batch(), written()--> gone, or blocked for a moment and offered again
//! ```
//!
//! Thousands of servers have thousands of logs: targets are found by binary search, and only
//! expired deadlines or a forced write visit all of them.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::{LogBuffer, LogFileCache, Syslog};

#[cfg(test)]
mod tests;

/// LIMIT: bytes one target holds beyond its buffer before further lines are lost.
const TARGET_SIZE_MAX: usize = 1 << 20;
/// Bytes beyond its buffer from which a target is written before the turn ends.
const CROWDED: usize = TARGET_SIZE_MAX / 4;
/// LIMIT: files with variables in their names, at a time; others are bounded by the configuration.
const VARIABLE_MAX: usize = 4096;
/// Such files that are remembered while they have nothing to write.
const VARIABLE_KEPT: usize = 512;
/// Bytes of the length in front of a line for a syslog server.
const LENGTH_SIZE: usize = 4;
/// How long a target that took nothing is left alone; the time doubles up to the second.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// Identifies a target of one [`Logs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId(usize);

/// The target of a line.
#[derive(Clone, Copy, Debug)]
pub enum LogTarget<'a> {
    /// A file that the configuration names, by its absolute path.
    File(&'a [u8]),
    /// A file whose path has variables.
    Variable(VariableFile<'a>),
    /// A syslog server; the line has no line feed.
    Syslog(&'a Arc<Syslog>),
    /// Standard error.
    Stderr,
}

/// A file whose path has variables.
#[derive(Clone, Copy, Debug)]
pub struct VariableFile<'a> {
    /// The absolute path.
    pub path: &'a [u8],
    /// The request's document root: if it does not exist, the file is not opened.
    pub root: &'a [u8],
    /// How long the file stays open; without it, it is opened for each write.
    pub cache: Option<LogFileCache>,
    /// The request's context for messages in the error log.
    pub context: &'a [u8],
    /// The number of its connection.
    pub serial: u64,
}

/// The bytes to write to one target.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Where it goes.
    pub target: LogTarget<'a>,
    /// The lines; for a syslog server see [`datagrams`].
    pub lines: &'a [u8],
    /// The gzip level, if they are to be compressed.
    pub gzip: Option<u8>,
}

/// Which lines [`Logs::poll_write`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Those that are due by size or age.
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

/// The last request that named a file.
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
    /// Without a buffer, lines are ready at once.
    buffer: Option<LogBuffer>,
    lines: Vec<u8>,
    /// How many bytes of `lines` are ready to be written.
    ready: usize,
    /// When the first line that is not ready was appended.
    oldest: Option<Instant>,
    /// Bytes in their final form that a slow reader has not taken yet; they come first.
    packed: Vec<u8>,
    /// Whether it is in the queue.
    queued: bool,
    blocked: Option<Instant>,
    pause: Duration,
    lost: u64,
}

/// Access-log and error-log lines of one worker.
#[derive(Debug, Default)]
pub struct Logs {
    slots: Vec<Slot>,
    /// The used slots, sorted by rank and path.
    order: Vec<usize>,
    /// The free slots.
    free: Vec<usize>,
    /// The number of used slots for files with variables in their names.
    variable: usize,
    /// Slots with lines to write now.
    queue: VecDeque<usize>,
    /// No slot is due by age before this time.
    deadline: Option<Instant>,
    buffers: Arc<[LogBuffer]>,
    pending: usize,
    is_crowded: bool,
    lost: u64,
    pid: u32,
    tid: u32,
}

impl Logs {
    /// No lines; error-log lines contain this process and thread id.
    #[must_use]
    pub fn new(pid: u32, tid: u32) -> Self {
        Self { pid, tid, ..Self::default() }
    }

    /// Sets which files have buffers. Call it when all lines are written; unwritten ones keep the
    /// form that they were meant to have.
    pub fn set_buffers(&mut self, buffers: Arc<[LogBuffer]>) {
        self.buffers = buffers;
        self.slots.retain(Slot::is_busy);
        for slot in &mut self.slots {
            slot.pack();
            slot.buffer = find_buffer(&self.buffers, &slot.kind, &slot.path);
            slot.queued = false;
        }
        self.order = (0..self.slots.len()).collect();
        let slots = &self.slots;
        self.order.sort_unstable_by(|one, other| slots[*one].key().cmp(&slots[*other].key()));
        self.variable = slots.iter().filter(|slot| slot.is_variable()).count();
        self.free.clear();
        self.queue.clear();
        self.deadline = (!slots.is_empty()).then(Instant::default);
    }

    /// The process id in error-log lines.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The thread id in error-log lines.
    #[must_use]
    pub const fn tid(&self) -> u32 {
        self.tid
    }

    /// Lines that were lost because their target was not drained.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether no lines are queued.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Whether lines are queued that can be offered to their target now.
    #[inline]
    #[must_use]
    pub fn has_due(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether a target has so many lines that they should be written before there are more.
    #[inline]
    #[must_use]
    pub const fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Lets `write` append one line, including its line feed, to `target`.
    pub fn line(&mut self, target: LogTarget<'_>, now: Instant, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(index) = self.slot(target) else {
            self.lost += 1;
            return;
        };
        let slot = &mut self.slots[index];
        let size = slot.buffer.as_ref().map_or(0, |buffer| buffer.size);
        if slot.lines.len() + slot.packed.len() >= TARGET_SIZE_MAX.saturating_add(size) {
            self.lost += 1;
            slot.lost += 1;
            return;
        }
        let was_busy = slot.is_busy();
        slot.line(size, now, write);
        self.is_crowded |= slot.blocked.is_none() && slot.lines.len() >= CROWDED + size;
        self.pending += usize::from(!was_busy && slot.is_busy());
        self.settle(index);
    }

    fn slot(&mut self, target: LogTarget<'_>) -> Option<usize> {
        let key = target.key();
        let place = self.order.partition_point(|index| self.slots[*index].key() < key);
        let alike = self.order[place..].iter().map(|index| (*index, &self.slots[*index]));
        let mut alike = alike.take_while(|(_, slot)| slot.key() == key);
        if let Some((index, _)) = alike.find(|(_, slot)| slot.is_for(target)) {
            self.slots[index].follow(target);
            return Some(index);
        }
        if matches!(target, LogTarget::Variable(_)) {
            if self.variable >= VARIABLE_MAX {
                return None;
            }
            self.variable += 1;
        }
        let fresh = Slot::new(target, &self.buffers);
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index] = fresh;
                index
            }
            None => {
                self.slots.push(fresh);
                self.slots.len() - 1
            }
        };
        debug_assert!(!self.order.contains(&index), "a slot in use is found by one path");
        self.order.insert(place, index);
        Some(index)
    }

    /// Queues a changed slot if it can be written, or drops it.
    fn settle(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.has_ready() && slot.blocked.is_none() {
            if !std::mem::replace(&mut slot.queued, true) {
                self.queue.push_back(index);
            }
        } else if let Some(at) = slot.deadline() {
            self.deadline = Some(self.deadline.map_or(at, |known| known.min(at)));
        } else if !slot.is_busy() && slot.is_variable() && self.variable > VARIABLE_KEPT {
            let key = self.slots[index].key();
            let place = self.order.partition_point(|other| self.slots[*other].key() < key);
            debug_assert_eq!(self.order.get(place), Some(&index), "one slot has this path");
            self.order.remove(place);
            self.variable -= 1;
            self.free.push(index);
        }
    }

    /// The next target with lines to write; get them by [`Self::batch`], then call
    /// [`Self::written`].
    pub fn poll_write(&mut self, now: Instant, due: Due) -> Option<LogId> {
        if self.pending == 0 {
            self.is_crowded = false;
            return None;
        }
        let is_late = self.deadline.is_some_and(|at| at <= now);
        if self.queue.is_empty() && (is_late || due == Due::Everything) {
            self.gather(now, due);
        }
        let Some(index) = self.queue.pop_front() else {
            self.is_crowded = false;
            return None;
        };
        debug_assert!(self.slots[index].queued, "what stands in the queue knows it");
        self.slots[index].queued = false;
        Some(LogId(index))
    }

    /// Queues what is due by age, or everything, except blocked targets.
    fn gather(&mut self, now: Instant, due: Due) {
        self.deadline = None;
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.is_busy() {
                slot.ripen(now, due);
                self.settle(index);
            }
        }
    }

    /// The bytes to write for `id`.
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

    /// Drops the first `bytes` of the batch of `id`: they were written, or never will be. The rest
    /// is offered again after a pause. Returns how many lines were lost since the target last took
    /// everything.
    pub fn written(&mut self, id: LogId, bytes: usize, now: Instant) -> u64 {
        let slot = &mut self.slots[id.0];
        let batch = if slot.packed.is_empty() { slot.ready } else { slot.packed.len() };
        debug_assert!(bytes <= batch, "no more is written than was offered");
        debug_assert!(self.pending > 0, "what is written was waiting");
        if slot.packed.is_empty() {
            slot.take(bytes);
        } else {
            slot.packed.drain(..bytes);
        }
        if bytes < batch {
            slot.pause = if bytes > 0 { PAUSE.0 } else { (slot.pause * 2).min(PAUSE.1) };
            slot.blocked = Some(now.after(slot.pause));
            self.settle(id.0);
            return 0;
        }
        slot.blocked = None;
        slot.pause = PAUSE.0;
        self.pending -= usize::from(!slot.is_busy());
        let lost = std::mem::take(&mut slot.lost);
        self.settle(id.0);
        lost
    }

    /// As [`Self::written`] for a compressed batch: `rest` could not be written.
    pub fn written_packed(&mut self, id: LogId, rest: &[u8], now: Instant) {
        let slot = &mut self.slots[id.0];
        slot.take(slot.ready);
        slot.packed.extend_from_slice(rest);
        if !rest.is_empty() {
            slot.blocked = Some(now.after(slot.pause));
        }
        self.pending -= usize::from(!slot.is_busy());
        self.settle(id.0);
    }

    /// When lines become due by age, or are offered again.
    #[must_use]
    pub const fn next_deadline(&self) -> Option<Instant> {
        if self.pending == 0 { None } else { self.deadline }
    }
}

impl Slot {
    fn new(target: LogTarget<'_>, buffers: &[LogBuffer]) -> Self {
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
        let buffer = find_buffer(buffers, &kind, path);
        Self {
            kind,
            path: path.to_vec(),
            buffer,
            lines: Vec::new(),
            ready: 0,
            oldest: None,
            packed: Vec::new(),
            queued: false,
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

    /// Updates the request context of a file with variables in its name.
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
        // A line that does not fit makes the lines before it due, and itself, too, if it is longer
        // than the buffer.
        if self.lines.len() - self.ready > size {
            debug_assert!(self.ready <= start, "what is ready stands before the new line");
            self.ready = if self.lines.len() - start > size { self.lines.len() } else { start };
        }
        if self.ready == self.lines.len() {
            self.oldest = None;
        } else if self.ready == start {
            self.oldest = Some(now);
        }
    }

    /// Makes old lines due, or all.
    fn ripen(&mut self, now: Instant, due: Due) {
        let is_late = self.flush_at().is_some_and(|at| at <= now);
        if due == Due::Everything || is_late {
            self.ready = self.lines.len();
            self.oldest = None;
        }
        if self.blocked.is_some_and(|until| until <= now) {
            self.blocked = None;
        }
    }

    const fn has_ready(&self) -> bool {
        self.ready > 0 || !self.packed.is_empty()
    }

    const fn is_variable(&self) -> bool {
        matches!(self.kind, Kind::Variable(_))
    }

    fn key(&self) -> (u8, &[u8]) {
        self.target().key()
    }

    /// Converts queued lines to their final form, because later lines may have another.
    fn pack(&mut self) {
        match self.buffer.as_ref().and_then(|buffer| buffer.gzip) {
            Some(level) if !self.lines.is_empty() => {
                let coding = bolide_http::negotiate::Coding::Gzip;
                let packed = bolide_files::encode::compress(coding, level as i8, &self.lines);
                self.packed.append(&mut packed.unwrap_or_default());
            }
            _ => self.packed.append(&mut self.lines),
        }
        self.lines.clear();
        self.ready = 0;
        self.oldest = None;
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

impl<'a> LogTarget<'a> {
    /// The lookup key of a target; several syslog servers share one.
    const fn key(self) -> (u8, &'a [u8]) {
        match self {
            Self::File(path) => (0, path),
            Self::Variable(file) => (1, file.path),
            Self::Syslog(_) => (2, b""),
            Self::Stderr => (3, b""),
        }
    }
}

/// The buffer of a file.
fn find_buffer(buffers: &[LogBuffer], kind: &Kind, path: &[u8]) -> Option<LogBuffer> {
    let is_it = |buffer: &&LogBuffer| buffer.path.as_os_str().as_bytes() == path;
    if matches!(kind, Kind::File) { buffers.iter().find(is_it).cloned() } else { None }
}

/// The datagrams of a batch for a syslog server, each with the offset of its end.
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
