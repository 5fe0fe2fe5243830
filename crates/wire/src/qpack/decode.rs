//! The QPACK decoder: encoder-stream instructions and field sections to field lines.
//!
//! Owns the peer's dynamic table and the output of our decoder stream. It reports that a section is
//! blocked; the caller knows which stream that blocks.
//!
//! INVARIANT: a decoded section with references is acknowledged exactly once, and one that is
//! abandoned is cancelled.

use super::known::ROWS;
use super::table::QpackTable;
use super::{ENTRY_OVERHEAD, integer};
use crate::hpack::huffman::{self, HuffmanPadding};
use crate::integer::push_integer;
use crate::pseudo::Label;

/// The result of decoding a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// All field lines were passed to the sink.
    Complete {
        /// The Required Insert Count; 0 needs no acknowledgment.
        required: u64,
    },
    /// No field line was passed: insertions are missing.
    Blocked {
        /// The Required Insert Count.
        required: u64,
    },
}

/// The QPACK decoder of a connection.
#[derive(Debug, Default)]
pub struct QpackDecoder {
    table: QpackTable,
    /// LIMIT: the table capacity in our SETTINGS.
    capacity_max: usize,
    /// LIMIT: encoded bytes of a string.
    string_max: usize,
    /// Insertions that we have acknowledged to the peer.
    acknowledged: u64,
    /// How often the peer has set the capacity, which may evict entries.
    capacity_changes: u64,
    /// The beginning of an incomplete instruction.
    partial: Vec<u8>,
    scratch: Vec<u8>,
    out: Vec<u8>,
}

/// Why instructions of the peer's encoder or a field section cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpackFault {
    /// They are invalid.
    Invalid,
    /// A string is longer than [`QpackDecoder::bound_strings`] allows.
    TooLong,
}

/// LIMIT: encoded bytes of a string.
#[derive(Clone, Copy)]
struct LiteralLimits {
    /// More are too long.
    string_max: usize,
    /// More cannot be right.
    room: usize,
}

/// A string literal and the bytes behind it.
struct Literal<'a> {
    text: &'a [u8],
    coding: Coding,
    rest: &'a [u8],
}

#[derive(Clone, Copy)]
enum Coding {
    Plain,
    Huffman,
}

impl QpackDecoder {
    /// A decoder whose SETTINGS allow a table of `capacity_max` bytes.
    #[must_use]
    pub fn new(capacity_max: usize) -> Self {
        Self { capacity_max, string_max: usize::MAX, ..Self::default() }
    }

    /// LIMIT: sets how many bytes a string may have as it is encoded.
    pub const fn bound_strings(&mut self, max: usize) {
        self.string_max = max;
    }

    /// The insert count.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// How often the table has changed. Between two changes, the same bytes mean the same.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.table.inserted() + self.capacity_changes
    }

    /// Bytes of the dynamic table.
    #[must_use]
    pub const fn table_size(&self) -> usize {
        self.table.size()
    }

    /// Receives bytes of the peer's encoder stream and returns the number of complete instructions.
    ///
    /// # Errors
    ///
    /// RFC 9204 §3.2.3, §4.3: invalid capacity, entry larger than the table, unknown index, bad
    /// string.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<u32, QpackFault> {
        let mut count = 0;
        if self.partial.is_empty() {
            let used = self.instructions(bytes, &mut count)?;
            self.partial.extend_from_slice(&bytes[used..]);
        } else {
            let mut all = std::mem::take(&mut self.partial);
            all.extend_from_slice(bytes);
            let used = self.instructions(&all, &mut count)?;
            all.drain(..used);
            self.partial = all;
        }
        Ok(count)
    }

    /// Decodes one section into `sink`.
    ///
    /// # Errors
    ///
    /// RFC 9204 §2.2.1, §4.5: the section is invalid for the current table.
    pub fn decode(
        &mut self,
        section: &[u8],
        sink: impl FnMut(Label<'_>, &[u8]),
    ) -> Result<Section, QpackFault> {
        let (required, base, lines) = self.prefix(section)?;
        if required > self.table.inserted() {
            return Ok(Section::Blocked { required });
        }
        let string_max = self.string_max;
        let view = View { table: &self.table, required, base, string_max };
        view.lines(lines, &mut self.scratch, sink)?;
        Ok(Section::Complete { required })
    }

    /// Acknowledges a decoded section of `stream`, unless it required no insertions.
    pub fn acknowledge(&mut self, stream: u64, required: u64) {
        if required > 0 {
            // RFC 9204 §4.4.1: Section Acknowledgment.
            push_integer(&mut self.out, 0x80, 7, stream);
            self.acknowledged = self.acknowledged.max(required);
            debug_assert!(
                self.acknowledged <= self.table.inserted(),
                "only insertions that came are acknowledged"
            );
        }
    }

    /// Cancels the sections of `stream` that are not decoded.
    pub fn cancel(&mut self, stream: u64) {
        // RFC 9204 §2.2.2.2: without a table no cancellation is needed.
        if self.capacity_max > 0 {
            push_integer(&mut self.out, 0x40, 6, stream);
        }
    }

    /// Whether the decoder stream has output.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.out.is_empty() || self.table.inserted() > self.acknowledged
    }

    /// Moves the output of the decoder stream to `to`.
    pub fn poll_output(&mut self, to: &mut Vec<u8>) {
        let news = self.table.inserted() - self.acknowledged;
        if news > 0 {
            // RFC 9204 §4.4.3: an increment for the insertions that no section acknowledged.
            push_integer(&mut self.out, 0, 6, news);
            self.acknowledged += news;
        }
        to.append(&mut self.out);
    }

    fn instructions(&mut self, bytes: &[u8], count: &mut u32) -> Result<usize, QpackFault> {
        let mut rest = bytes;
        while let Some(after) = self.instruction(rest)? {
            rest = after;
            *count += 1;
        }
        // LIMIT: an incomplete instruction has at most two literals and their lengths.
        if rest.len() > 2 * (self.literal_max() + 16) {
            return Err(QpackFault::Invalid);
        }
        Ok(bytes.len() - rest.len())
    }

    /// LIMIT: encoded bytes of a string. A Huffman code has at most 30 bits.
    const fn literal_max(&self) -> usize {
        4 * self.capacity_max
    }

    const fn literal_limits(&self) -> LiteralLimits {
        LiteralLimits { string_max: self.string_max, room: self.literal_max() }
    }

    /// Executes one instruction and returns the bytes behind it; `None` means incomplete.
    fn instruction<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, QpackFault> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let bits = match first {
            0x80.. => 6,
            _ => 5,
        };
        if first & 0xc0 == 0x40 {
            return self.insert_literal(bytes);
        }
        let Some((number, used)) = integer::parse(bits, bytes).map_err(|_| QpackFault::Invalid)?
        else {
            return Ok(None);
        };
        let rest = &bytes[used..];
        let done = match first {
            0x80.. => return self.insert_named(first & 0x40 != 0, number, rest),
            0x20.. => match usize::try_from(number) {
                // RFC 9204 §4.3.1: at most the capacity in our SETTINGS.
                Ok(capacity) if capacity <= self.capacity_max => {
                    self.table.set_capacity(capacity);
                    self.capacity_changes += 1;
                    true
                }
                _ => false,
            },
            _ => {
                let index = self.relative(number)?;
                self.table.insert_from(index, None)
            }
        };
        if done { Ok(Some(rest)) } else { Err(QpackFault::Invalid) }
    }

    fn insert_named<'a>(
        &mut self,
        is_static: bool,
        index: u64,
        bytes: &'a [u8],
    ) -> Result<Option<&'a [u8]>, QpackFault> {
        let limits = self.literal_limits();
        let Some(value) = literal(7, bytes, limits)? else {
            return Ok(None);
        };
        self.scratch.clear();
        let text = value.decode(&mut self.scratch)?;
        let text = text.of(&self.scratch);
        let done = if is_static {
            let row = usize::try_from(index).ok().and_then(|index| ROWS.get(index));
            row.is_some_and(|row| self.table.insert(row.name.as_bytes(), text))
        } else {
            let index = self.table.inserted().checked_sub(index + 1).ok_or(QpackFault::Invalid)?;
            self.table.insert_from(index, Some(text))
        };
        if done { Ok(Some(value.rest)) } else { Err(QpackFault::Invalid) }
    }

    fn insert_literal<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, QpackFault> {
        let limits = self.literal_limits();
        let Some(name) = literal(5, bytes, limits)? else {
            return Ok(None);
        };
        let Some(value) = literal(7, name.rest, limits)? else {
            return Ok(None);
        };
        self.scratch.clear();
        let name = name.decode(&mut self.scratch)?;
        let text = value.decode(&mut self.scratch)?;
        let (name, text) = (name.of(&self.scratch), text.of(&self.scratch));
        if self.table.insert(name, text) { Ok(Some(value.rest)) } else { Err(QpackFault::Invalid) }
    }

    /// RFC 9204 §3.2.5: on the encoder stream, index 0 is the newest entry.
    fn relative(&self, index: u64) -> Result<u64, QpackFault> {
        self.table.inserted().checked_sub(index + 1).ok_or(QpackFault::Invalid)
    }

    /// RFC 9204 §4.5.1: Required Insert Count, Base, and the field lines behind them.
    fn prefix<'a>(&self, section: &'a [u8]) -> Result<(u64, u64, &'a [u8]), QpackFault> {
        if let [0, 0, lines @ ..] = section {
            return Ok((0, 0, lines));
        }
        let (encoded, used) = number(8, section)?;
        let section = &section[used..];
        let required = self.required(encoded)?;
        let is_negative = section.first().is_some_and(|byte| byte & 0x80 != 0);
        let (delta, used) = number(7, section)?;
        let base =
            if is_negative { required.checked_sub(delta + 1) } else { required.checked_add(delta) };
        Ok((required, base.ok_or(QpackFault::Invalid)?, &section[used..]))
    }

    /// RFC 9204 §4.5.1.1: restores the count from its value modulo twice the number of entries.
    fn required(&self, encoded: u64) -> Result<u64, QpackFault> {
        if encoded == 0 {
            return Ok(0);
        }
        let entries_max = (self.capacity_max / ENTRY_OVERHEAD) as u64;
        let full_range = 2 * entries_max;
        if encoded > full_range {
            return Err(QpackFault::Invalid);
        }
        let value_max = self.table.inserted() + entries_max;
        let wrapped = value_max / full_range * full_range;
        let mut required = wrapped + encoded - 1;
        if required > value_max {
            required = required.checked_sub(full_range).ok_or(QpackFault::Invalid)?;
        }
        if required == 0 { Err(QpackFault::Invalid) } else { Ok(required) }
    }
}

/// The dynamic table as one section may use it.
struct View<'a> {
    table: &'a QpackTable,
    required: u64,
    base: u64,
    string_max: usize,
}

impl View<'_> {
    fn lines(
        &self,
        lines: &[u8],
        scratch: &mut Vec<u8>,
        mut sink: impl FnMut(Label<'_>, &[u8]),
    ) -> Result<(), QpackFault> {
        let mut rest = lines;
        while let Some(&first) = rest.first() {
            scratch.clear();
            rest = match first {
                // RFC 9204 §4.5.2: indexed field line, static or dynamic.
                0x80.. => {
                    let (index, used) = number(6, rest)?;
                    if first & 0x40 != 0 {
                        let row = static_row(index)?;
                        sink(row.label, row.value.as_bytes());
                    } else {
                        let entry = self.entry(self.relative(index)?)?;
                        sink(entry.label(), entry.value());
                    }
                    &rest[used..]
                }
                // RFC 9204 §4.5.4: literal field line with name reference.
                0x40.. => {
                    let (index, used) = number(4, rest)?;
                    let value = whole_literal(7, &rest[used..], self.string_max)?;
                    let text = value.decode(scratch)?;
                    let label = if first & 0x10 != 0 {
                        static_row(index)?.label
                    } else {
                        self.entry(self.relative(index)?)?.label()
                    };
                    sink(label, text.of(scratch));
                    value.rest
                }
                // RFC 9204 §4.5.6: literal field line with literal name.
                0x20.. => {
                    let name = whole_literal(3, rest, self.string_max)?;
                    let value = whole_literal(7, name.rest, self.string_max)?;
                    let name_text = name.decode(scratch)?;
                    let text = value.decode(scratch)?;
                    sink(Label::parse(name_text.of(scratch)), text.of(scratch));
                    value.rest
                }
                // RFC 9204 §4.5.3: indexed field line with post-base index.
                0x10.. => {
                    let (index, used) = number(4, rest)?;
                    let entry = self.entry(self.post_base(index)?)?;
                    sink(entry.label(), entry.value());
                    &rest[used..]
                }
                // RFC 9204 §4.5.5: literal field line with post-base name reference.
                _ => {
                    let (index, used) = number(3, rest)?;
                    let value = whole_literal(7, &rest[used..], self.string_max)?;
                    let text = value.decode(scratch)?;
                    let label = self.entry(self.post_base(index)?)?.label();
                    sink(label, text.of(scratch));
                    value.rest
                }
            };
        }
        Ok(())
    }

    fn relative(&self, index: u64) -> Result<u64, QpackFault> {
        self.base.checked_sub(index + 1).ok_or(QpackFault::Invalid)
    }

    fn post_base(&self, index: u64) -> Result<u64, QpackFault> {
        self.base.checked_add(index).ok_or(QpackFault::Invalid)
    }

    /// RFC 9204 §2.2.1: neither evicted nor above the Required Insert Count.
    fn entry(&self, index: u64) -> Result<&super::table::QpackEntry, QpackFault> {
        if index >= self.required {
            return Err(QpackFault::Invalid);
        }
        self.table.entry(index).ok_or(QpackFault::Invalid)
    }
}

/// The place of a decoded string.
enum Text<'a> {
    Borrowed(&'a [u8]),
    Scratch(std::ops::Range<usize>),
}

impl<'a> Text<'a> {
    #[inline]
    fn of<'b>(&self, scratch: &'b [u8]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Borrowed(text) => text,
            Self::Scratch(range) => &scratch[range.clone()],
        }
    }
}

impl<'a> Literal<'a> {
    #[inline]
    fn decode(&self, scratch: &mut Vec<u8>) -> Result<Text<'a>, QpackFault> {
        match self.coding {
            Coding::Plain => Ok(Text::Borrowed(self.text)),
            Coding::Huffman => {
                let start = scratch.len();
                huffman::decode(self.text, HuffmanPadding::Any, scratch)
                    .map_err(|_| QpackFault::Invalid)?;
                Ok(Text::Scratch(start..scratch.len()))
            }
        }
    }
}

/// A string literal whose length has a prefix of `bits`, with the Huffman flag above it.
#[inline]
fn literal(
    bits: u8,
    bytes: &[u8],
    limits: LiteralLimits,
) -> Result<Option<Literal<'_>>, QpackFault> {
    let Some(&first) = bytes.first() else { return Ok(None) };
    let Some((len, used)) = integer::parse(bits, bytes).map_err(|_| QpackFault::Invalid)? else {
        return Ok(None);
    };
    if len > limits.string_max as u64 {
        return Err(QpackFault::TooLong);
    }
    if len > limits.room as u64 {
        return Err(QpackFault::Invalid);
    }
    let Some((text, rest)) = bytes[used..].split_at_checked(len as usize) else {
        return Ok(None);
    };
    let coding = if first & (1 << bits) == 0 { Coding::Plain } else { Coding::Huffman };
    Ok(Some(Literal { text, coding, rest }))
}

#[inline]
fn whole_literal(bits: u8, bytes: &[u8], string_max: usize) -> Result<Literal<'_>, QpackFault> {
    literal(bits, bytes, LiteralLimits { string_max, room: bytes.len() })?
        .ok_or(QpackFault::Invalid)
}

#[inline]
fn number(bits: u8, bytes: &[u8]) -> Result<(u64, usize), QpackFault> {
    integer::parse(bits, bytes).ok().flatten().ok_or(QpackFault::Invalid)
}

#[inline]
fn static_row(index: u64) -> Result<&'static super::known::KnownRow, QpackFault> {
    usize::try_from(index).ok().and_then(|index| ROWS.get(index)).ok_or(QpackFault::Invalid)
}
