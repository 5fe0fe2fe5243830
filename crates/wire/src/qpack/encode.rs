//! The QPACK encoder: response fields to field sections and encoder-stream instructions.
//!
//! Owns our dynamic table at the peer. It refers only to entries that the peer has acknowledged, so
//! that our sections never block.
//!
//! ```text
//!   field seen once ──again──► inserted ──acknowledged──► referable ──(space needed)──► evicted
//! ```
//!
//! INVARIANT: an entry at or above the lowest outstanding reference, or not yet acknowledged, is
//! never evicted (RFC 9204 §2.1.1).

use bolide_base::limits::FIELD_TABLE_SIZE;
use bolide_http::Name;

use super::known::{self, StaticMatch};
use super::table::QpackTable;
use super::{BadInstruction, ENTRY_OVERHEAD, integer};
use crate::hpack::huffman;
use crate::integer::push_integer;

/// The references of a section that the peer has neither acknowledged nor cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct References {
    /// The oldest entry that it refers to.
    pub lowest: u64,
    /// The Required Insert Count (RFC 9204 §4.5.1.1).
    pub required: u64,
}

/// The result of encoding a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedSection {
    /// The references for [`QpackEncoder::track`].
    pub references: Option<References>,
    /// Whether equal fields encode to equal bytes while [`QpackEncoder::version`] stays the same.
    pub is_settled: bool,
}

/// Bytes that a field must have to be inserted.
const CANDIDATE_MIN: usize = 32;
/// Bytes that references must save. A section with references costs the peer an acknowledgment.
const SAVING_MIN: usize = 48;
/// LIMIT: outstanding sections with references. More are encoded without references.
const OUTSTANDING_MAX: usize = 256;
/// Sections between two insertions that evict, so that a small table does not thrash.
const EVICTION_PAUSE: u32 = 32;
/// LIMIT: fields that are remembered as seen once.
const HISTORY: usize = 16;

/// The QPACK encoder of a connection. It has no table until [`Self::allow`].
#[derive(Debug, Default)]
pub struct QpackEncoder {
    table: QpackTable,
    /// The table capacity that the peer allows (RFC 9204 §3.2.3). The encoded insert count depends
    /// on it.
    peer_capacity: u64,
    /// The Known Received Count: insertions that the peer has acknowledged.
    known: u64,
    version: u64,
    outstanding: Vec<(u64, References)>,
    history: [u32; HISTORY],
    history_at: usize,
    /// Sections since an insertion evicted an entry.
    calm: u32,
    partial: Vec<u8>,
    lower: Vec<u8>,
    out: Vec<u8>,
}

impl QpackEncoder {
    /// Applies the peer's `SETTINGS_QPACK_MAX_TABLE_CAPACITY`.
    pub fn allow(&mut self, capacity: u64) {
        self.peer_capacity = capacity;
        self.version += 1;
    }

    /// While this number stays the same, equal fields encode to equal bytes.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Bytes of the dynamic table.
    #[must_use]
    pub const fn table_size(&self) -> usize {
        self.table.size()
    }

    /// Whether the encoder stream has output.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Moves the output of the encoder stream to `to`.
    pub fn poll_output(&mut self, to: &mut Vec<u8>) {
        to.append(&mut self.out);
    }

    /// Whether another section with references may be sent.
    #[must_use]
    pub const fn may_refer(&self) -> bool {
        self.outstanding.len() < OUTSTANDING_MAX
    }

    /// Records the references of a section on `stream`.
    pub fn track(&mut self, stream: u64, references: Option<References>) {
        if let Some(references) = references {
            debug_assert!(
                self.table.dropped() <= references.lowest && references.required <= self.known,
                "a section refers only to acknowledged entries of the table"
            );
            debug_assert!(self.may_refer(), "the outstanding sections are bounded");
            self.outstanding.push((stream, references));
        }
    }

    /// Receives bytes of the peer's decoder stream.
    ///
    /// # Errors
    ///
    /// RFC 9204 §4.4: an acknowledgment without a section, or an increment of zero or beyond our
    /// insertions.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), BadInstruction> {
        let mut all = std::mem::take(&mut self.partial);
        let mut rest = bytes;
        if !all.is_empty() {
            all.extend_from_slice(bytes);
            rest = &all;
        }
        while let Some(&first) = rest.first() {
            let bits = if first & 0x80 != 0 { 7 } else { 6 };
            let parsed = integer::parse(bits, rest).map_err(|_| BadInstruction)?;
            let Some((number, used)) = parsed else { break };
            match first {
                0x80.. => self.handle_acknowledgment(number)?,
                0x40.. => self.outstanding.retain(|(stream, _)| *stream != number),
                _ => self.handle_increment(number)?,
            }
            rest = &rest[used..];
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    /// Appends a section of `:status`, `fields` (name, text, value) and `content-length` to `out`.
    pub fn encode<'a, I>(
        &mut self,
        status: u16,
        length: Option<u64>,
        fields: impl Fn() -> I,
        out: &mut Vec<u8>,
    ) -> EncodedSection
    where
        I: Iterator<Item = (Name, &'a [u8], &'a [u8])>,
    {
        let has_table = self.peer_capacity >= CANDIDATE_MIN as u64 + ENTRY_OVERHEAD as u64;
        self.calm = self.calm.saturating_add(1);
        let is_settled = !has_table || self.learn(fields());
        let references = if has_table { self.plan(fields()) } else { None };
        self.prefix(references, out);
        match known::find_status(status) {
            StaticMatch::Whole(row) => push_integer(out, 0xc0, 6, row),
            StaticMatch::Name(row) => {
                push_integer(out, 0x50, 4, row);
                let digits = [status / 100, status / 10 % 10, status % 10];
                string(&digits.map(|digit| b'0' + (digit % 10) as u8), 0, 7, out);
            }
            StaticMatch::None => {}
        }
        for (name, text, value) in fields() {
            self.line(name, text, value, references.is_some(), out);
        }
        if let Some(length) = length {
            let mut digits = [0; 20];
            self.line(Name::ContentLength, b"", decimal(length, &mut digits), false, out);
        }
        EncodedSection { references, is_settled }
    }

    /// Appends a section of `fields` (name, text, value) without references to the dynamic table;
    /// for trailers.
    pub fn encode_plain<'a>(
        &mut self,
        fields: impl Iterator<Item = (Name, &'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) {
        self.prefix(None, out);
        for (name, text, value) in fields {
            self.line(name, text, value, false, out);
        }
    }

    fn handle_acknowledgment(&mut self, stream: u64) -> Result<(), BadInstruction> {
        let at = self.outstanding.iter().position(|(of, _)| *of == stream);
        // RFC 9204 §4.4.1: each section with references is acknowledged once; no other is.
        let (_, references) = self.outstanding.remove(at.ok_or(BadInstruction)?);
        self.acknowledge_inserts(references.required);
        Ok(())
    }

    fn handle_increment(&mut self, increment: u64) -> Result<(), BadInstruction> {
        let known = self.known.checked_add(increment).ok_or(BadInstruction)?;
        // RFC 9204 §4.4.3: neither zero nor more than we inserted.
        if increment == 0 || known > self.table.inserted() {
            return Err(BadInstruction);
        }
        self.acknowledge_inserts(known);
        Ok(())
    }

    fn acknowledge_inserts(&mut self, known: u64) {
        debug_assert!(
            known <= self.table.inserted(),
            "the peer acknowledges only insertions that were made"
        );
        if known > self.known {
            self.known = known;
            self.version += 1;
        }
    }

    /// Inserts the candidates that were seen before. `false` means that a candidate is new.
    fn learn<'a>(&mut self, fields: impl Iterator<Item = (Name, &'a [u8], &'a [u8])>) -> bool {
        let mut is_settled = true;
        for (name, text, value) in fields {
            if !is_candidate(name, text, value) || self.find(text, value).is_some() {
                continue;
            }
            if matches!(known::find(name, text, value), StaticMatch::Whole(_)) {
                continue;
            }
            let hash = hash(text, value);
            if self.history.contains(&hash) {
                self.insert(name, text, value);
            } else {
                self.history[self.history_at] = hash;
                self.history_at = (self.history_at + 1) % HISTORY;
                is_settled = false;
            }
        }
        is_settled
    }

    /// The references of a section with these fields, if they save enough.
    fn plan<'a>(
        &self,
        fields: impl Iterator<Item = (Name, &'a [u8], &'a [u8])>,
    ) -> Option<References> {
        if self.known == self.table.dropped() || !self.may_refer() {
            return None;
        }
        let (mut saving, mut lowest, mut required) = (0, u64::MAX, 0);
        for (name, text, value) in fields {
            if !is_candidate(name, text, value) {
                continue;
            }
            if let Some(index) = self.find(text, value).filter(|index| *index < self.known) {
                saving += text.len() + value.len();
                lowest = lowest.min(index);
                required = required.max(index + 1);
            }
        }
        (saving >= SAVING_MIN).then_some(References { lowest, required })
    }

    fn prefix(&self, references: Option<References>, out: &mut Vec<u8>) {
        let Some(References { required, .. }) = references else {
            return out.extend_from_slice(&[0, 0]);
        };
        // RFC 9204 §4.5.1.1: modulo twice the number of entries that fit the peer's table.
        let full_range = 2 * (self.peer_capacity / ENTRY_OVERHEAD as u64);
        debug_assert!(full_range > 0, "a table with entries has room for one");
        push_integer(out, 0, 8, required % full_range + 1);
        push_integer(out, 0, 7, self.table.inserted() - required);
    }

    #[inline]
    fn line(&mut self, name: Name, text: &[u8], value: &[u8], refers: bool, out: &mut Vec<u8>) {
        if refers
            && is_candidate(name, text, value)
            && let Some(index) = self.find(text, value).filter(|index| *index < self.known)
        {
            // RFC 9204 §4.5.2: relative to the Base, which is the insert count.
            return push_integer(out, 0x80, 6, self.table.inserted() - index - 1);
        }
        match known::find(name, text, value) {
            StaticMatch::Whole(row) => return push_integer(out, 0xc0, 6, row),
            StaticMatch::Name(row) => push_integer(out, 0x50, 4, row),
            StaticMatch::None => {
                self.lower.clear();
                self.lower.extend(text.iter().map(u8::to_ascii_lowercase));
                string(&self.lower, 0x20, 3, out);
            }
        }
        string(value, 0, 7, out);
    }

    /// The newest entry with this name (any case) and value.
    fn find(&self, text: &[u8], value: &[u8]) -> Option<u64> {
        let mut found = None;
        for (index, entry) in self.table.entries() {
            if entry.value() == value && entry.name().eq_ignore_ascii_case(text) {
                found = Some(index);
            }
        }
        found
    }

    fn insert(&mut self, name: Name, text: &[u8], value: &[u8]) {
        let capacity = usize::try_from(self.peer_capacity).unwrap_or(usize::MAX);
        let capacity = capacity.min(FIELD_TABLE_SIZE);
        let size = text.len() + value.len() + ENTRY_OVERHEAD;
        // LIMIT: an entry takes at most a quarter of the table, so that the table does not thrash.
        if size > capacity / 4 || !self.has_room(size, capacity) {
            return;
        }
        if self.table.size() + size > capacity {
            if self.calm < EVICTION_PAUSE {
                return;
            }
            self.calm = 0;
        }
        if self.table.capacity() == 0 {
            // RFC 9204 §4.3.1: Set Dynamic Table Capacity.
            push_integer(&mut self.out, 0x20, 5, capacity as u64);
            self.table.set_capacity(capacity);
        }
        self.lower.clear();
        self.lower.extend(text.iter().map(u8::to_ascii_lowercase));
        if !self.table.insert(&self.lower, value) {
            return;
        }
        assert!(
            self.table.dropped() <= self.evictable(),
            "RFC 9204 §2.1.1: no entry is evicted that the peer may still need"
        );
        match known::find(name, text, value) {
            // RFC 9204 §4.3.2: Insert with Name Reference.
            StaticMatch::Name(row) | StaticMatch::Whole(row) => {
                push_integer(&mut self.out, 0xc0, 6, row);
            }
            // RFC 9204 §4.3.3: Insert with Literal Name.
            StaticMatch::None => string(&self.lower, 0x40, 5, &mut self.out),
        }
        string(value, 0, 7, &mut self.out);
        self.version += 1;
    }

    /// The first entry that must stay: it is referred to, or not acknowledged.
    fn evictable(&self) -> u64 {
        let lowest = self.outstanding.iter().map(|(_, references)| references.lowest).min();
        self.known.min(lowest.unwrap_or(u64::MAX))
    }

    /// RFC 9204 §2.1.1: whether evicting only unreferenced entries makes room.
    fn has_room(&self, size: usize, capacity: usize) -> bool {
        let evictable = self.evictable();
        let mut used = self.table.size();
        for (index, entry) in self.table.entries() {
            if used + size <= capacity {
                return true;
            }
            if index >= evictable {
                return false;
            }
            used -= entry.size();
        }
        used + size <= capacity
    }
}

/// Whether a field is long enough and may be the same in many responses.
fn is_candidate(name: Name, text: &[u8], value: &[u8]) -> bool {
    let changes = matches!(
        name,
        Name::Date
            | Name::Age
            | Name::Expires
            | Name::LastModified
            | Name::Etag
            | Name::SetCookie
            | Name::Location
            | Name::ContentRange
            | Name::ContentLocation
    );
    !changes && text.len() + value.len() >= CANDIDATE_MIN
}

/// FNV-1a; a collision only causes an early insertion. Never 0.
fn hash(text: &[u8], value: &[u8]) -> u32 {
    let bytes = text.iter().map(u8::to_ascii_lowercase).chain(value.iter().copied());
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    bytes.fold(0x811c_9dc5, step) | 1
}

/// Appends a string whose length has a prefix of `bits`, Huffman-encoded where that is shorter.
#[inline]
fn string(text: &[u8], flags: u8, bits: u8, out: &mut Vec<u8>) {
    if text.len() < (1 << bits) - 1 {
        // PERF: a short string is encoded at once and its length patched, instead of measured
        // first.
        let at = out.len();
        out.push(0);
        huffman::encode(text, out);
        let coded = out.len() - at - 1;
        if coded < text.len() {
            out[at] = flags | 1 << bits | coded as u8;
        } else {
            out.truncate(at);
            out.push(flags | text.len() as u8);
            out.extend_from_slice(text);
        }
        return;
    }
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        push_integer(out, flags | 1 << bits, bits, coded as u64);
        huffman::encode(text, out);
    } else {
        push_integer(out, flags, bits, text.len() as u64);
        out.extend_from_slice(text);
    }
}

/// `number` in decimal, at the end of `digits`.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}
