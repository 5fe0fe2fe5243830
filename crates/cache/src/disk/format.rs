//! The file format of an object: a head with all properties, then the body.
//!
//! ```text
//!   magic  seal  head sum │ lengths, times, kind … │ namespace URL vary session etag tags head │
//!   sums of the body, one for each 64 KiB │ body
//! ```
//! Checksums and seal detect a file that is truncated, corrupt or foreign; such a file is never
//! served in part. INVARIANT: the head's checksum covers the whole head.

use crate::key::{KEY_SIZE_MAX, fold};
use crate::object::{ObjectKind, Times, sent_fields, split_field};
use crate::tags::Tags;

/// The first bytes of every file in this format.
pub(crate) const MAGIC: [u8; 8] = *b"bolideC2";
/// Bytes of the fixed part of a head.
pub const FIXED: usize = 112;
/// Bytes of a body that one checksum covers.
pub const CHUNK: usize = 64 * 1024;
/// LIMIT: bytes of a head.
pub const HEAD_MAX: usize = 4 << 20;

/// The position of the head's checksum. It is computed with zeros there.
const SUM: std::ops::Range<usize> = 16..24;
const PUBLIC: u32 = 1 << 31;

const K: [u64; 4] =
    [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];

/// The checksum of `bytes`. It detects accidents, not forgery: a process that can write here can
/// forge anything.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let mut lanes = K;
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, (word, k)) in lanes.iter_mut().zip(words.iter().zip(K)) {
            *lane = fold(*lane ^ u64::from_le_bytes(*word), k).wrapping_add(k).rotate_left(23);
        }
    }
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    let (words, _) = last.as_chunks::<8>();
    let mut all = fold(bytes.len() as u64 ^ K[0], K[3]);
    for (lane, word) in lanes.iter().zip(words) {
        all = fold(all.rotate_left(29) ^ lane, K[1])
            ^ fold(all.wrapping_add(u64::from_le_bytes(*word)), K[2]);
    }
    all
}

/// A file without its body. Texts are borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The seal of the cache it belongs to.
    pub seal: u64,
    /// The purge number up to which no purge has hit it.
    pub sequence: u64,
    /// A response, or a `Vary` entry.
    pub kind: ObjectKind,
    /// Whether a soft purge had hit it when it was written.
    pub is_stale: bool,
    /// The status of a response; 0 for a `Vary` entry.
    pub status: u16,
    /// Creation time and freshness.
    pub times: Times,
    /// Bytes of the body.
    pub body_len: u64,
    /// The name of its namespace.
    pub namespace: &'a [u8],
    /// The parts of its key.
    pub url: &'a [u8],
    /// See [`Self::url`].
    pub vary: &'a [u8],
    /// See [`Self::url`]; empty for a public object.
    pub session: &'a [u8],
    /// `ETag`; empty if there is none.
    pub etag: &'a [u8],
    /// The tags, encoded by [`pack_tags`].
    pub tags: &'a [u8],
    /// The fields, packed as in objects; for a `Vary` entry, the names.
    pub head: &'a [u8],
    /// The checksum of each [`CHUNK`] of the body.
    pub sums: &'a [u8],
}

/// Computes the checksums of a body that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Summer {
    sums: Vec<u8>,
    part: Vec<u8>,
}

impl Summer {
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.part.len()));
            bytes = later;
            if self.part.is_empty() && now.len() == CHUNK {
                self.sums.extend_from_slice(&sum(now).to_le_bytes());
                continue;
            }
            self.part.extend_from_slice(now);
            if self.part.len() == CHUNK {
                self.sums.extend_from_slice(&sum(&self.part).to_le_bytes());
                self.part.clear();
            }
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        if !self.part.is_empty() {
            self.sums.extend_from_slice(&sum(&self.part).to_le_bytes());
        }
        self.sums
    }
}

/// Encodes tags for a file.
#[must_use]
pub fn pack_tags(tags: &Tags) -> Vec<u8> {
    let mut packed = Vec::new();
    for (tag, public) in tags.iter() {
        let len = tag.len() as u32 | if public { PUBLIC } else { 0 };
        packed.extend_from_slice(&len.to_le_bytes());
        packed.extend_from_slice(tag);
    }
    packed
}

/// The tags of a file, each with whether it is public regardless of the object.
pub(crate) fn iter_tags(packed: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    let mut rest = packed;
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len);
        let (tag, after) = after.split_at_checked((len & !PUBLIC) as usize)?;
        rest = after;
        Some((tag, len & PUBLIC != 0))
    })
}

/// Decodes the tags of a file.
#[must_use]
pub fn unpack_tags(packed: &[u8]) -> Tags {
    let mut tags = Tags::default();
    for (tag, public) in iter_tags(packed) {
        if public {
            tags.push_public(tag);
        } else {
            tags.push(tag);
        }
    }
    tags
}

/// The size of the whole head, from its first [`FIXED`] bytes; `None` if it has another format.
#[must_use]
pub fn head_size(start: &[u8]) -> Option<usize> {
    let mut fixed = Words(start.get(..FIXED)?);
    if fixed.bytes::<8>()? != MAGIC {
        return None;
    }
    fixed.skip(8 + 8)?;
    let size = fixed.u32()? as usize;
    (FIXED..=HEAD_MAX).contains(&size).then_some(size)
}

struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (now, later) = self.0.split_first_chunk::<N>()?;
        self.0 = later;
        Some(*now)
    }

    fn skip(&mut self, len: usize) -> Option<()> {
        self.0 = self.0.get(len..)?;
        Some(())
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn text(&mut self, len: usize) -> Option<&'a [u8]> {
        let (now, later) = self.0.split_at_checked(len)?;
        self.0 = later;
        Some(now)
    }
}

impl<'a> Record<'a> {
    /// Encodes the head; the body follows it in the file. False if it exceeds the limits of the
    /// format.
    #[must_use]
    pub fn encode(&self, out: &mut Vec<u8>) -> bool {
        out.clear();
        let texts = [
            self.namespace,
            self.url,
            self.vary,
            self.session,
            self.etag,
            self.tags,
            self.head,
            self.sums,
        ];
        let size = FIXED + texts.iter().map(|text| text.len()).sum::<usize>();
        let is_short = |text: &[u8]| text.len() <= usize::from(u16::MAX);
        if size > HEAD_MAX || !texts[..5].iter().all(|text| is_short(text)) {
            return false;
        }
        out.reserve(size);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.seal.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&(size as u32).to_le_bytes());
        out.push(u8::from(self.kind == ObjectKind::Vary));
        out.push(u8::from(self.is_stale));
        out.extend_from_slice(&self.status.to_le_bytes());
        for word in [self.sequence, self.body_len, self.times.created_ms, self.times.expires_ms] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for word in [self.times.stale_seconds, self.times.error_seconds] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for text in &texts[..5] {
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        }
        out.extend_from_slice(&[0; 2]);
        for text in &texts[5..] {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
        out.resize(FIXED, 0);
        debug_assert_eq!(out.len(), FIXED, "the fixed part has its size");
        texts.iter().for_each(|text| out.extend_from_slice(text));
        assert_eq!(out.len(), size, "a head has the size that it declares");
        let sum = sum(out);
        out[SUM].copy_from_slice(&sum.to_le_bytes());
        debug_assert!(
            Record::decode(out).is_none_or(|decoded| decoded.size() == size),
            "a head is read with the size it was written with"
        );
        true
    }

    /// Decodes a whole head; later bytes are ignored. `None` if it is truncated, corrupt or has
    /// another format.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let size = head_size(bytes)?;
        let bytes = bytes.get(..size)?;
        let mut words = Words(bytes);
        words.skip(8)?;
        let seal = words.u64()?;
        let stored = words.u64()?;
        words.skip(4)?;
        let kind = match words.bytes::<1>()? {
            [0] => ObjectKind::Content,
            [1] => ObjectKind::Vary,
            _ => return None,
        };
        let is_stale = words.bytes::<1>()? != [0];
        let status = words.u16()?;
        let (sequence, body_len) = (words.u64()?, words.u64()?);
        let times = Times {
            created_ms: words.u64()?,
            expires_ms: words.u64()?,
            stale_seconds: words.u32()?,
            error_seconds: words.u32()?,
        };
        let mut lengths = [0; 8];
        for length in &mut lengths[..5] {
            *length = usize::from(words.u16()?);
        }
        words.skip(2)?;
        for length in &mut lengths[5..] {
            *length = words.u32()? as usize;
        }
        let mut texts = Words(&bytes[FIXED..]);
        let mut next = lengths.into_iter().map_while(|length| texts.text(length));
        let record = Self {
            seal,
            sequence,
            kind,
            is_stale,
            status,
            times,
            body_len,
            namespace: next.next()?,
            url: next.next()?,
            vary: next.next()?,
            session: next.next()?,
            etag: next.next()?,
            tags: next.next()?,
            head: next.next()?,
            sums: next.next()?,
        };
        drop(next);
        let is_whole = texts.0.is_empty() && record.is_sound();
        (is_whole && stored == sum_of_head(bytes)).then_some(record)
    }

    fn is_sound(&self) -> bool {
        let is_fit = match self.kind {
            ObjectKind::Content => is_storable(self.status) && is_head(self.head),
            ObjectKind::Vary => self.status == 0 && self.body_len == 0 && !self.head.is_empty(),
            ObjectKind::Pass | ObjectKind::Failed => false,
        };
        let mut rest = self.tags;
        for (tag, _) in iter_tags(self.tags) {
            rest = &rest[4 + tag.len()..];
        }
        is_fit
            && rest.is_empty()
            && self.url.len() + self.vary.len() <= KEY_SIZE_MAX
            && self.session.len() <= 1024
            && self.sums.len() as u64 == self.body_len.div_ceil(CHUNK as u64).saturating_mul(8)
    }

    /// The stored fields, name and value.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        sent_fields(self.head)
    }

    /// The size of the head, which is the offset of the body.
    #[must_use]
    pub const fn size(&self) -> usize {
        FIXED
            + self.namespace.len()
            + self.url.len()
            + self.vary.len()
            + self.session.len()
            + self.etag.len()
            + self.tags.len()
            + self.head.len()
            + self.sums.len()
    }

    /// Whether `body` has the right length and checksums.
    #[must_use]
    pub fn has_body(&self, body: &[u8]) -> bool {
        let (sums, _) = self.sums.as_chunks::<8>();
        body.len() as u64 == self.body_len
            && body.chunks(CHUNK).zip(sums).all(|(part, stored)| sum(part).to_le_bytes() == *stored)
    }
}

/// Whether a response with this status may be stored: interim responses and 304 are no responses
/// to other requests.
const fn is_storable(status: u16) -> bool {
    matches!(status, 200..=303 | 305..=999)
}

/// Whether `packed` has the form of packed fields, and those that are sent are what an origin may
/// send.
fn is_head(packed: &[u8]) -> bool {
    let Some(mut rest) = packed.get(8..) else { return false };
    while let Some((_, _, next)) = split_field(rest) {
        rest = next;
    }
    let is_name = |name: &[u8]| {
        !name.is_empty() && !name.iter().any(|byte| matches!(byte, 0..=b' ' | b':' | 0x7f))
    };
    let is_value = |value: &[u8]| memchr::memchr3(0, b'\r', b'\n', value).is_none();
    rest.is_empty() && sent_fields(packed).all(|(name, value)| is_name(name) && is_value(value))
}

/// As [`sum`], with zeros in place of the checksum itself.
fn sum_of_head(bytes: &[u8]) -> u64 {
    let mut copy = bytes.to_vec();
    copy[SUM].fill(0);
    sum(&copy)
}

#[cfg(test)]
mod tests;
