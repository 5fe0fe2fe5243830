//! Bytes to send: a contiguous buffer, interleaved with large shared pieces and file ranges.

use bytes::Bytes;

use crate::FileRef;

/// What a file of the cache was when it was opened. Names and attributes may change; a different
/// stamp means different content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainStamp {
    /// Bytes.
    pub size: u64,
    /// Modification time, seconds since 1970.
    pub mtime_seconds: i64,
    /// Its nanoseconds.
    pub mtime_nanos: u32,
}

/// Part of a file that the kernel may send without us reading it.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The open file.
    pub file: FileRef,
    /// First byte to send.
    pub offset: u64,
    /// Bytes to send.
    pub len: u64,
}

/// One piece of a [`SendChain`].
#[derive(Clone, Debug)]
pub enum Segment {
    /// `start..end` of the chain's own buffer.
    Inline(usize, usize),
    /// A shared piece, too large to copy.
    Bytes(Bytes),
    /// A file range; only a chain that [`SendChain::keeps_files`] holds one.
    File(FileRange),
}

/// How a chain treats the bytes that are pushed into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPolicy {
    /// Copies everything into one buffer, for encryption or dense framing.
    Contiguous,
    /// Shared pieces of at least this many bytes stay shared; smaller ones are copied.
    Shared(usize),
}

/// A chunk that was begun and whose size is not known yet.
#[derive(Clone, Copy, Debug)]
pub struct ChunkMark {
    mark: usize,
    digits: usize,
    before: u64,
}

/// A gather list that keeps its allocations between uses.
#[derive(Debug)]
pub struct SendChain {
    weave: CopyPolicy,
    keeps_files: bool,
    buffer: Vec<u8>,
    segments: Vec<Segment>,
    len: u64,
}

impl SendChain {
    /// An empty chain.
    #[must_use]
    pub const fn new(weave: CopyPolicy) -> Self {
        Self { weave, keeps_files: false, buffer: Vec::new(), segments: Vec::new(), len: 0 }
    }

    /// Sets the policy for the next contents. The chain must be empty.
    pub fn configure(&mut self, weave: CopyPolicy, keeps_files: bool) {
        debug_assert!(self.is_empty(), "a chain changes its weave only when empty");
        self.weave = weave;
        self.keeps_files = keeps_files;
    }

    /// Whether file ranges may be pushed instead of their bytes.
    #[must_use]
    pub const fn keeps_files(&self) -> bool {
        self.keeps_files
    }

    /// Whether an owned piece of `len` bytes would be shared instead of copied.
    #[must_use]
    pub const fn shares(&self, len: usize) -> bool {
        matches!(self.weave, CopyPolicy::Shared(min) if len >= min)
    }

    /// Empties the chain and keeps its buffer.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.segments.clear();
        self.len = 0;
    }

    /// Total bytes gathered.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is gathered.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn push_slice(&mut self, bytes: &[u8]) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        self.extend_inline(start);
    }

    /// Appends `bytes`, shared or copied by policy.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &Bytes) {
        match self.weave {
            CopyPolicy::Shared(min) if bytes.len() >= min => {
                self.len += bytes.len() as u64;
                self.segments.push(Segment::Bytes(bytes.clone()));
            }
            CopyPolicy::Shared(_) | CopyPolicy::Contiguous => self.push_slice(bytes),
        }
    }

    /// Appends an owned buffer without copying it, where the policy allows.
    pub fn push_owned(&mut self, bytes: Bytes) {
        match self.weave {
            CopyPolicy::Shared(min) if bytes.len() >= min => {
                self.len += bytes.len() as u64;
                self.segments.push(Segment::Bytes(bytes));
            }
            CopyPolicy::Shared(_) | CopyPolicy::Contiguous => self.push_slice(&bytes),
        }
    }

    /// Appends a file range.
    ///
    /// # Panics
    ///
    /// In debug builds, when the chain does not keep files.
    pub fn push_file(&mut self, range: FileRange) {
        debug_assert!(self.keeps_files, "this chain wants bytes");
        self.len += range.len;
        self.segments.push(Segment::File(range));
    }

    /// Lets `fill` write up to `max` bytes in place; appends as many as it returns.
    pub fn push_with(&mut self, max: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let start = self.buffer.len();
        self.buffer.resize(start + max, 0);
        let written = fill(&mut self.buffer[start..]).min(max);
        self.buffer.truncate(start + written);
        self.extend_inline(start);
        written
    }

    /// Runs `write` on the chain's own buffer; it may only append.
    #[inline]
    pub fn push_writing<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let start = self.buffer.len();
        let result = write(&mut self.buffer);
        debug_assert!(self.buffer.len() >= start, "push_writing only appends");
        self.extend_inline(start);
        result
    }

    /// The position of the next inline byte; for [`Self::patch`] and [`Self::rewind`].
    #[must_use]
    pub const fn mark(&self) -> usize {
        self.buffer.len()
    }

    /// Overwrites inline bytes at an earlier [`Self::mark`].
    pub fn patch(&mut self, mark: usize, bytes: &[u8]) {
        self.buffer[mark..mark + bytes.len()].copy_from_slice(bytes);
    }

    /// Drops `count` inline bytes at an earlier [`Self::mark`]. Inline bytes stay behind them.
    pub fn cut(&mut self, mark: usize, count: usize) {
        if count == 0 {
            return;
        }
        self.buffer.drain(mark..mark + count);
        self.len -= count as u64;
        for segment in self.segments.iter_mut().rev() {
            match segment {
                Segment::Inline(_, end) if *end <= mark => break,
                Segment::Inline(start, end) => {
                    *end -= count;
                    if *start > mark {
                        *start -= count;
                    }
                }
                Segment::Bytes(_) | Segment::File(_) => {}
            }
        }
    }

    /// Appends the size line of a chunk (RFC 9112 §7.1) with room for the digits of `max`; to be
    /// settled by [`Self::end_chunk`].
    pub fn begin_chunk(&mut self, max: usize) -> ChunkMark {
        let digits = (usize::BITS - max.leading_zeros()).div_ceil(4) as usize;
        let chunk = ChunkMark { mark: self.mark(), digits, before: 0 };
        self.push_slice(&b"0000000000000000\r\n"[16 - digits..]);
        ChunkMark { before: self.len, ..chunk }
    }

    /// Writes the size of what was appended since `chunk` began, without leading zeros as nginx
    /// does, and the line end behind the content; drops the size line of an empty chunk. Returns
    /// the size.
    pub fn end_chunk(&mut self, chunk: ChunkMark) -> u64 {
        let ChunkMark { mark, digits, before } = chunk;
        let size = self.len - before;
        if size == 0 {
            self.rewind(mark);
            return 0;
        }
        debug_assert!(size >> (4 * digits) == 0, "the size of a chunk fits its reserved digits");
        let used = (u64::BITS - size.leading_zeros()).div_ceil(4) as usize;
        for at in 0..used {
            let nibble = size >> (4 * (used - 1 - at)) & 0xf;
            self.buffer[mark + digits - used + at] = b"0123456789abcdef"[nibble as usize];
        }
        self.push_slice(b"\r\n");
        self.cut(mark, digits - used);
        size
    }

    /// Drops everything since `mark`, all of which must be inline.
    pub fn rewind(&mut self, mark: usize) {
        let dropped = self.buffer.len() - mark;
        if dropped == 0 {
            return;
        }
        match self.segments.last_mut() {
            Some(Segment::Inline(start, end)) if *start < mark => *end = mark,
            Some(Segment::Inline(start, _)) if *start == mark => drop(self.segments.pop()),
            _ => return debug_assert!(false, "something shared was pushed since the mark"),
        }
        self.buffer.truncate(mark);
        self.len -= dropped as u64;
    }

    /// All bytes of a contiguous chain in one piece.
    #[must_use]
    pub fn contiguous(&self) -> Option<&[u8]> {
        (self.buffer.len() as u64 == self.len).then_some(&self.buffer[..])
    }

    /// The pieces in order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The bytes of an inline segment.
    #[must_use]
    pub fn inline(&self, start: usize, end: usize) -> &[u8] {
        &self.buffer[start..end]
    }

    /// Releases memory above `keep` bytes; for idle moments.
    pub fn shrink(&mut self, keep: usize) {
        if self.is_empty() && self.buffer.capacity() > keep {
            self.buffer.shrink_to(keep);
        }
    }

    #[inline]
    fn extend_inline(&mut self, start: usize) {
        let end = self.buffer.len();
        if end == start {
            return;
        }
        self.len += (end - start) as u64;
        match self.segments.last_mut() {
            Some(Segment::Inline(_, last)) if *last == start => *last = end,
            _ => self.segments.push(Segment::Inline(start, end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CopyPolicy, Segment, SendChain};
    use bytes::Bytes;

    #[test]
    fn a_contiguous_chain_is_one_slice_and_rewinds() {
        let mut chain = SendChain::new(CopyPolicy::Contiguous);
        chain.push_slice(b"ab");
        let mark = chain.mark();
        chain.push_slice(b"....");
        chain.push_bytes(&Bytes::from_static(b"cd"));
        assert_eq!(chain.contiguous(), Some(&b"ab....cd"[..]));
        chain.patch(mark, b"1234");
        assert_eq!(chain.contiguous(), Some(&b"ab1234cd"[..]));
        chain.rewind(mark);
        assert_eq!((chain.contiguous(), chain.len()), (Some(&b"ab"[..]), 2));
        assert_eq!(chain.segments().len(), 1);
    }

    #[test]
    fn the_size_of_a_chunk_has_no_leading_zeros() {
        let join = |chain: &SendChain| {
            let pieces = chain.segments().iter().flat_map(|segment| match segment {
                Segment::Inline(start, end) => chain.inline(*start, *end).to_vec(),
                Segment::Bytes(bytes) => bytes.to_vec(),
                Segment::File(_) => Vec::new(),
            });
            pieces.collect::<Vec<u8>>()
        };
        for policy in [CopyPolicy::Contiguous, CopyPolicy::Shared(20)] {
            for (len, line) in [(1, "1"), (15, "f"), (16, "10"), (255, "ff"), (4096, "1000")] {
                let mut chain = SendChain::new(policy);
                chain.push_slice(b"head");
                let chunk = chain.begin_chunk(70_000);
                chain.push_slice(b"a");
                chain.push_bytes(&Bytes::from(vec![b'b'; len - 1]));
                assert_eq!(chain.end_chunk(chunk), len as u64);
                let empty = chain.begin_chunk(70_000);
                assert_eq!(chain.end_chunk(empty), 0);
                let wanted = format!("heada{}", "b".repeat(len - 1));
                let wanted = wanted.replacen("head", &format!("head{line}\r\n"), 1) + "\r\n";
                assert_eq!(join(&chain), wanted.as_bytes(), "{len}");
                assert_eq!(chain.len(), wanted.len() as u64);
            }
        }
    }

    #[test]
    fn a_sharing_chain_keeps_large_pieces_apart() {
        let mut chain = SendChain::new(CopyPolicy::Shared(4));
        chain.push_bytes(&Bytes::from_static(b"abc"));
        chain.push_bytes(&Bytes::from_static(b"defg"));
        chain.push_slice(b"h");
        assert_eq!((chain.segments().len(), chain.len()), (3, 8));
        assert_eq!(chain.contiguous(), None);
        let mark = chain.mark();
        chain.push_slice(b"ij");
        chain.rewind(mark);
        assert_eq!((chain.segments().len(), chain.len()), (3, 8));
        chain.rewind(mark - 1);
        assert_eq!((chain.segments().len(), chain.len()), (2, 7));
    }
}
