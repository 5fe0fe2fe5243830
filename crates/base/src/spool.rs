//! A body in transit: buffered in memory first, then in a file. Read in order; again if retained.
//!
//! Owns which bytes are held and where. The owner of the `Io` backend writes and reads the file.
//! Easiest to break: bytes handed to the file become readable only after `written`.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::{FileRef, SendChain, push_piece};

/// Whether bytes can be read a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// Memory is released as it is read.
    No,
    /// Everything is retained until the end, for a second attempt.
    Yes,
}

/// The limits of memory and file. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolLimits {
    /// Bytes held in memory; more go to the file.
    pub memory: usize,
    /// Bytes held in the file; 0 means no file.
    pub file: u64,
}

/// The result of one pull.
#[derive(Clone, Debug)]
pub enum SpoolPiece {
    /// A piece was appended; pull again.
    More,
    /// No bytes now.
    Pending,
    /// That was the last byte; a piece may have been appended.
    End,
    /// The body cannot be completed.
    Broken,
    /// Read this part of the file, pass the bytes on, then call [`Spool::advance`].
    File {
        /// The file.
        file: FileRef,
        /// First byte to read.
        offset: u64,
        /// Bytes to read, at most the number requested.
        len: u64,
    },
}

/// Bytes to write to the file at an offset.
#[derive(Clone, Debug)]
pub struct SpoolWrite {
    /// The file; absent before the first write, which makes it.
    pub file: Option<FileRef>,
    /// The offset of the bytes in the file.
    pub offset: u64,
    /// The bytes.
    pub bytes: Bytes,
}

/// Smaller pieces are joined with those after them, up to this many bytes, before a write.
const JOIN_MIN: usize = 4096;
const JOIN_MAX: usize = 64 * 1024;

/// The state of a body's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Open,
    Complete,
    Broken,
}

/// A body in transit. In order: retained pieces in memory, then the file, then pieces not yet
/// written.
///
/// A copy shares the bytes and the file, and has its own reader; only one may be filled.
#[derive(Clone, Debug)]
pub struct Spool {
    limits: SpoolLimits,
    retain: Retain,
    ending: Ending,
    /// Pieces before the file; `read` of the front ones were read.
    memory: VecDeque<Bytes>,
    memory_len: usize,
    /// Pieces that wait to be written after the file's end.
    excess: VecDeque<Bytes>,
    excess_len: usize,
    file: Option<FileRef>,
    file_len: u64,
    /// Position of the reader: pieces of `memory` read, bytes of the next one, bytes of the file.
    piece: usize,
    piece_at: usize,
    file_at: u64,
    received: u64,
}

impl Spool {
    /// An empty body.
    #[must_use]
    pub const fn new(limits: SpoolLimits, retain: Retain) -> Self {
        Self {
            limits,
            retain,
            ending: Ending::Open,
            memory: VecDeque::new(),
            memory_len: 0,
            excess: VecDeque::new(),
            excess_len: 0,
            file: None,
            file_len: 0,
            piece: 0,
            piece_at: 0,
            file_at: 0,
            received: 0,
        }
    }

    /// A complete body that is empty.
    #[must_use]
    pub const fn empty() -> Self {
        let mut spool = Self::new(SpoolLimits { memory: 0, file: 0 }, Retain::No);
        spool.ending = Ending::Complete;
        spool
    }

    /// A complete body of these bytes.
    #[must_use]
    pub fn of(bytes: Bytes) -> Self {
        let limits = SpoolLimits { memory: bytes.len(), file: 0 };
        let mut spool = Self::new(limits, Retain::Yes);
        spool.push(bytes);
        spool.finish();
        spool
    }

    /// Appends bytes, even beyond the limits; see [`Self::is_full`].
    pub fn push(&mut self, bytes: Bytes) {
        debug_assert!(self.ending != Ending::Complete, "nothing follows the end");
        self.received += bytes.len() as u64;
        // A body that cannot be completed does not need the rest.
        if bytes.is_empty() || self.ending == Ending::Broken {
            return;
        }
        let in_file = self.file_len > 0 || !self.excess.is_empty();
        let fits = self.memory_len + bytes.len() <= self.limits.memory || self.limits.file == 0;
        if !in_file && fits {
            self.memory_len += bytes.len();
            // The reader knows where it stands by pieces.
            let read = self.piece + usize::from(self.piece_at > 0);
            push_piece(&mut self.memory, read, bytes);
        } else {
            self.excess_len += bytes.len();
            push_piece(&mut self.excess, 0, bytes);
        }
    }

    /// Schedules all bytes in memory for the file, so that the file holds the whole body. Must come
    /// before the first read and the first write.
    pub fn spill(&mut self) {
        debug_assert!(self.piece == 0 && self.piece_at == 0, "nothing was read");
        if self.file_len == 0 && self.excess.is_empty() {
            self.excess = std::mem::take(&mut self.memory);
            self.excess_len = std::mem::take(&mut self.memory_len);
        }
    }

    /// That was all.
    pub fn finish(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Complete;
        }
    }

    /// Ends the body as incomplete.
    pub fn fail(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Broken;
        }
    }

    /// Whether all bytes arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ending == Ending::Complete
    }

    /// Whether it ended before its last byte.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.ending == Ending::Broken
    }

    /// Bytes that arrived so far.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes held in memory, including those on their way to the file.
    #[must_use]
    pub const fn in_memory(&self) -> usize {
        self.memory_len + self.excess_len
    }

    /// The file cannot be written: from now on all bytes stay in memory, and the producer waits.
    /// False if a second attempt would need the file.
    pub const fn forgo_file(&mut self) -> bool {
        if self.prefers_reader() {
            self.limits.file = 0;
        }
        self.prefers_reader()
    }

    /// Whether bytes that wait to be written may be read before, instead of being written.
    #[must_use]
    pub const fn prefers_reader(&self) -> bool {
        matches!(self.retain, Retain::No)
    }

    /// Whether the producer should wait until bytes have been read.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        if self.limits.file == 0 {
            self.in_memory() >= self.limits.memory
        } else {
            self.excess_len > 0 || self.file_len >= self.limits.file
        }
    }

    /// Whether all bytes present have been read.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.piece == self.memory.len() && self.file_at == self.file_len && self.excess.is_empty()
    }

    /// The whole body, if it is complete, in memory and no part of it was released.
    pub fn pieces(&self) -> Option<impl Iterator<Item = &Bytes>> {
        let whole = self.file_len == 0 && self.excess.is_empty();
        let kept = self.retain == Retain::Yes || self.received == self.memory_len as u64;
        (whole && kept && self.is_complete()).then(|| self.memory.iter())
    }

    /// Takes out a body of which every byte that arrived is still in memory; `None` if a part was
    /// released or is in a file.
    pub fn take_whole(&mut self) -> Option<VecDeque<Bytes>> {
        let is_whole = self.received == self.memory_len as u64;
        is_whole.then(|| {
            (self.memory_len, self.received, self.piece, self.piece_at) = (0, 0, 0, 0);
            std::mem::take(&mut self.memory)
        })
    }

    /// The file, if there is one.
    #[must_use]
    pub const fn file(&self) -> Option<&FileRef> {
        self.file.as_ref()
    }

    /// Whether a write to the file is pending.
    #[must_use]
    pub const fn wants_writing(&self) -> bool {
        self.excess_len > 0 && self.limits.file > 0
    }

    /// The next write to the file; afterwards call [`Self::written`] or [`Self::fail`].
    #[must_use]
    pub fn next_write(&self) -> Option<SpoolWrite> {
        let front = self.excess.front().filter(|_| self.wants_writing())?;
        let bytes = if front.len() < JOIN_MIN && self.excess.len() > 1 {
            // Without the minimum a client that sends single bytes would cost a system call for
            // each.
            let mut joined = Vec::with_capacity(self.excess_len.min(JOIN_MAX));
            for piece in &self.excess {
                if !joined.is_empty() && joined.len() + piece.len() > JOIN_MAX {
                    break;
                }
                joined.extend_from_slice(piece);
            }
            Bytes::from(joined)
        } else {
            front.clone()
        };
        Some(SpoolWrite { file: self.file.clone(), offset: self.file_len, bytes })
    }

    /// Records that the first `len` bytes of [`Self::next_write`] are in `file`.
    pub fn written(&mut self, file: FileRef, len: usize) {
        self.file = Some(file);
        let mut left = len.min(self.excess_len);
        self.excess_len -= left;
        self.file_len += left as u64;
        while let Some(front) = self.excess.front_mut() {
            if left < front.len() {
                let _written = front.split_to(left);
                return;
            }
            left -= front.len();
            self.excess.pop_front();
        }
    }

    /// Appends at most `max` bytes to `out`, or describes a part of the file.
    pub fn pull(&mut self, max: usize, out: &mut SendChain) -> SpoolPiece {
        if self.piece < self.memory.len() {
            self.pull_memory(max, out);
            return if self.is_over() { SpoolPiece::End } else { SpoolPiece::More };
        }
        if self.file_at < self.file_len
            && let Some(file) = &self.file
        {
            let len = (self.file_len - self.file_at).min(max as u64);
            return SpoolPiece::File { file: file.clone(), offset: self.file_at, len };
        }
        if self.prefers_reader() && !self.excess.is_empty() {
            // The reader is faster than the file, all of which was read.
            self.memory = std::mem::take(&mut self.excess);
            self.memory_len = std::mem::take(&mut self.excess_len);
            (self.file_at, self.file_len) = (0, 0);
            return self.pull(max, out);
        }
        match self.ending {
            Ending::Complete if self.excess.is_empty() => SpoolPiece::End,
            Ending::Broken => SpoolPiece::Broken,
            Ending::Open | Ending::Complete => SpoolPiece::Pending,
        }
    }

    /// Records that `len` bytes of the described part of the file were read.
    pub fn advance(&mut self, len: u64) {
        self.file_at = self.file_len.min(self.file_at + len);
        // All bytes were read, so later ones may stay in memory again.
        if self.retain == Retain::No && self.file_at == self.file_len && self.excess.is_empty() {
            self.file_at = 0;
            self.file_len = 0;
        }
    }

    /// Starts to read from the first byte again; false if a part was released.
    pub fn rewind(&mut self) -> bool {
        let kept = self.retain == Retain::Yes || self.received == self.memory_len as u64;
        if kept {
            self.piece = 0;
            self.piece_at = 0;
            self.file_at = 0;
        }
        kept
    }

    fn is_over(&self) -> bool {
        self.is_complete() && self.is_drained()
    }

    fn pull_memory(&mut self, max: usize, out: &mut SendChain) {
        let Some(bytes) = self.memory.get(self.piece) else { return };
        let end = bytes.len().min(self.piece_at + max);
        if self.piece_at == 0 && end == bytes.len() {
            out.push_bytes(bytes);
        } else {
            out.push_owned(bytes.slice(self.piece_at..end));
        }
        if end < bytes.len() {
            self.piece_at = end;
            return;
        }
        self.piece_at = 0;
        if self.retain == Retain::Yes {
            self.piece += 1;
        } else if let Some(read) = self.memory.pop_front() {
            self.memory_len -= read.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use bytes::Bytes;

    use super::{Retain, Spool, SpoolLimits, SpoolPiece};
    use crate::{CopyPolicy, FileRef, SendChain};

    const LIMITS: SpoolLimits = SpoolLimits { memory: 8, file: 100 };

    /// Reads all bytes; `disk` holds those that were written.
    fn drain(spool: &mut Spool, disk: &[u8]) -> (Vec<u8>, SpoolPiece) {
        let mut all = Vec::new();
        loop {
            let mut out = SendChain::new(CopyPolicy::Contiguous);
            let piece = spool.pull(3, &mut out);
            all.extend_from_slice(out.contiguous().unwrap());
            match piece {
                SpoolPiece::More => {}
                SpoolPiece::File { offset, len, .. } => {
                    all.extend_from_slice(&disk[offset as usize..(offset + len) as usize]);
                    spool.advance(len);
                }
                end => return (all, end),
            }
        }
    }

    fn write(spool: &mut Spool, disk: &mut Vec<u8>) {
        while let Some(write) = spool.next_write() {
            let file = write.file.unwrap_or_else(|| {
                FileRef::new(std::io::stdin().as_fd().try_clone_to_owned().unwrap())
            });
            disk.truncate(write.offset as usize);
            let len = write.bytes.len().min(5);
            disk.extend_from_slice(&write.bytes[..len]);
            spool.written(file, len);
        }
    }

    #[test]
    fn bytes_beyond_memory_come_back_from_the_file_in_order_and_twice_if_retained() {
        for retain in [Retain::Yes, Retain::No] {
            let mut spool = Spool::new(LIMITS, retain);
            let mut disk = Vec::new();
            for piece in [&b"0123"[..], b"4567", b"89abcdef", b"gh"] {
                spool.push(Bytes::copy_from_slice(piece));
            }
            assert!(spool.is_full() && spool.pieces().is_none());
            write(&mut spool, &mut disk);
            assert_eq!((spool.in_memory(), spool.is_full()), (8, false));
            spool.finish();
            let (all, end) = drain(&mut spool, &disk);
            assert_eq!((&all[..], spool.received()), (&b"0123456789abcdefgh"[..], 18));
            assert!(matches!(end, SpoolPiece::End) && spool.is_complete());
            assert_eq!(spool.rewind(), retain == Retain::Yes);
            if retain == Retain::Yes {
                assert_eq!(drain(&mut spool, &disk).0, b"0123456789abcdefgh");
            }
        }
    }

    #[test]
    fn what_waits_to_be_written_goes_to_a_faster_reader() {
        let mut spool = Spool::new(LIMITS, Retain::No);
        for piece in [&b"01234567"[..], b"89", b"abc"] {
            spool.push(Bytes::from_static(piece));
        }
        assert!(spool.wants_writing() && spool.is_full());
        assert_eq!(drain(&mut spool, b"").0, b"0123456789abc");
        assert!(spool.next_write().is_none() && !spool.is_full());
        spool.finish();
        assert!(matches!(drain(&mut spool, b"").1, SpoolPiece::End));
    }

    #[test]
    fn a_full_file_that_was_read_keeps_no_producer_waiting() {
        let limits = SpoolLimits { memory: 8, file: 4 };
        let (mut spool, mut disk) = (Spool::new(limits, Retain::No), b"89abc".to_vec());
        spool.push(Bytes::from_static(b"01234567"));
        spool.push(Bytes::from_static(b"89abcdefgh"));
        // A part is written, which fills the file.
        let file = FileRef::new(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
        spool.written(file, 5);
        assert_eq!(drain(&mut spool, &disk).0, b"0123456789abcdefgh");
        assert!(!spool.is_full() && spool.is_drained());
        spool.push(Bytes::from_static(b"ijklmnopq"));
        write(&mut spool, &mut disk);
        assert_eq!(drain(&mut spool, &disk).0, b"ijklmnopq");
    }

    #[test]
    fn without_a_file_the_rest_stays_in_memory_and_in_order() {
        let mut spool = Spool::new(LIMITS, Retain::No);
        let mut disk = Vec::new();
        spool.push(Bytes::from_static(b"01234567"));
        spool.push(Bytes::from_static(b"89abc"));
        write(&mut spool, &mut disk);
        spool.push(Bytes::from_static(b"defghijk"));
        assert!(spool.wants_writing() && spool.forgo_file());
        assert!(!spool.wants_writing() && spool.next_write().is_none());
        spool.push(Bytes::from_static(b"l"));
        assert!(spool.is_full(), "the producer waits for the reader");
        spool.finish();
        let (all, end) = drain(&mut spool, &disk);
        assert_eq!(&all[..], b"0123456789abcdefghijkl");
        assert!(matches!(end, SpoolPiece::End) && !spool.is_full());
        let mut retained = Spool::new(LIMITS, Retain::Yes);
        assert!(!retained.forgo_file(), "a second attempt needs the file");
    }

    #[test]
    fn a_reader_that_keeps_up_needs_no_file_again() {
        let mut spool = Spool::new(LIMITS, Retain::No);
        let mut disk = Vec::new();
        spool.push(Bytes::from_static(b"0123456789"));
        write(&mut spool, &mut disk);
        assert_eq!(drain(&mut spool, &disk).0, b"0123456789");
        spool.push(Bytes::from_static(b"abc"));
        assert!(spool.next_write().is_none());
        assert_eq!(drain(&mut spool, &disk).0, b"abc");
        spool.fail();
        assert!(matches!(drain(&mut spool, &disk).1, SpoolPiece::Broken));
    }

    #[test]
    fn small_pieces_are_written_together() {
        let mut spool = Spool::new(SpoolLimits { memory: 0, file: 1 << 20 }, Retain::No);
        let mut sent = Vec::new();
        for n in 0..3000_u32 {
            let piece = vec![n as u8; if n == 1000 { 9000 } else { 1 + n as usize % 60 }];
            sent.extend_from_slice(&piece);
            spool.push(Bytes::from(piece));
        }
        spool.finish();
        let (mut disk, mut writes) = (Vec::new(), 0);
        while let Some(write) = spool.next_write() {
            let stdin = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
            disk.extend_from_slice(&write.bytes);
            spool.written(write.file.unwrap_or_else(|| FileRef::new(stdin)), write.bytes.len());
            writes += 1;
        }
        assert!(writes <= 4 && disk == sent, "{writes} writes");
        assert_eq!(drain(&mut spool, &disk).0, sent);
    }

    #[test]
    fn what_is_spilled_is_read_from_the_file_alone() {
        let mut spool = Spool::new(LIMITS, Retain::Yes);
        let mut disk = Vec::new();
        spool.push(Bytes::from_static(b"0123"));
        spool.spill();
        spool.push(Bytes::from_static(b"45"));
        write(&mut spool, &mut disk);
        spool.finish();
        assert_eq!((spool.in_memory(), &disk[..]), (0, &b"012345"[..]));
        assert_eq!(drain(&mut spool, &disk).0, b"012345");
    }

    #[test]
    fn without_a_file_memory_says_when_to_wait() {
        let mut spool = Spool::new(SpoolLimits { memory: 4, file: 0 }, Retain::No);
        spool.push(Bytes::from_static(b"01234"));
        assert!(spool.is_full() && spool.next_write().is_none());
        assert_eq!(drain(&mut spool, &[]).0, b"01234");
        assert!(!spool.is_full());
        spool.finish();
        assert!(matches!(drain(&mut spool, &[]).1, SpoolPiece::End));
    }
}
