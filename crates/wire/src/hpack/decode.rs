//! Decodes field blocks (RFC 7541 §3, §6).
//!
//! Owns the decoder's dynamic table. It refuses every block that could make the two tables differ:
//! a decoding error is a connection error.

use bolide_base::limits::FIELD_TABLE_SIZE;

use super::huffman::{self, HuffmanPadding};
use super::prefix::{self, IntError};
use super::statics::{self, COUNT};
use super::table::{ENTRY_OVERHEAD, StaticRow};
use super::{FieldToken, HpackTable, Traits};

/// The receiver of decoded fields.
pub trait Sink {
    /// Takes the next field.
    fn field(&mut self, token: FieldToken, traits: Traits, name: &[u8], value: &[u8]);
}

/// Why a block cannot be decoded. All but `TooLarge` are compression errors (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// It ends within a field.
    Truncated,
    /// An integer is too large.
    Integer,
    /// A string has an invalid Huffman code.
    Huffman,
    /// An index has no entry.
    Index,
    /// A table size update is too large or not at the start.
    SizeUpdate,
    /// The fields exceed the limit of the caller. The tables differ now.
    TooLarge,
}

impl HpackError {
    /// The text for the error log.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "client sent a truncated header block",
            Self::Integer => "client sent a header block with too large an integer",
            Self::Huffman => "client sent invalid Huffman-encoded header data",
            Self::Index => "client sent invalid hpack table index",
            Self::SizeUpdate => "client sent invalid hpack table size update",
            Self::TooLarge => "client sent an absurdly large header block",
        }
    }
}

impl From<IntError> for HpackError {
    fn from(error: IntError) -> Self {
        match error {
            IntError::Truncated => Self::Truncated,
            IntError::TooLarge => Self::Integer,
        }
    }
}

/// The place of a decoded string.
#[derive(Clone, Copy)]
enum Text {
    Static(&'static str),
    Block(usize, usize),
    Scratch(usize, usize),
}

impl Text {
    #[inline]
    fn resolve<'a>(self, block: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Static(text) => text.as_bytes(),
            Self::Block(start, end) => &block[start..end],
            Self::Scratch(start, end) => &scratch[start..end],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    Insert,
    Leave,
}

/// The HPACK decoder of a connection.
#[derive(Debug)]
pub struct HpackDecoder {
    table: HpackTable,
    /// Our `SETTINGS_HEADER_TABLE_SIZE`: the limit of table size updates.
    size_limit: u32,
    /// Above so many bytes, as it is encoded, a string has [`Traits::LONG`].
    string_max: usize,
}

impl Default for HpackDecoder {
    fn default() -> Self {
        Self::new(FIELD_TABLE_SIZE as u32)
    }
}

impl HpackDecoder {
    /// A decoder with a table of at most `size_limit` bytes (`SETTINGS_HEADER_TABLE_SIZE`).
    #[must_use]
    pub const fn new(size_limit: u32) -> Self {
        Self { table: HpackTable::new(size_limit), size_limit, string_max: usize::MAX }
    }

    /// LIMIT: sets how many bytes a string may have as it is encoded. A field with a longer one has
    /// [`Traits::LONG`]; an entry of a table has not.
    pub const fn bound_strings(&mut self, max: usize) {
        self.string_max = max;
    }

    /// While this number stays the same, equal blocks decode to equal fields.
    #[must_use]
    #[inline]
    pub const fn generation(&self) -> u32 {
        self.table.generation()
    }

    /// The dynamic table.
    #[must_use]
    pub const fn table(&self) -> &HpackTable {
        &self.table
    }

    /// Frees unused memory; for idle connections.
    pub fn shrink(&mut self) {
        self.table.shrink();
    }

    /// Decodes a whole block into `sink`. `scratch` holds the decoded Huffman strings.
    ///
    /// # Errors
    ///
    /// [`HpackError`]: a connection error. `TooLarge` means that names, values and
    /// [`ENTRY_OVERHEAD`] per field exceed `size_max`.
    pub fn decode(
        &mut self,
        block: &[u8],
        size_max: usize,
        scratch: &mut Vec<u8>,
        sink: &mut impl Sink,
    ) -> Result<(), HpackError> {
        let (mut at, mut size) = (0, 0);
        self.size_updates(block, &mut at)?;
        while let Some(&first) = block.get(at) {
            size += if first & 0x80 != 0 {
                self.indexed(block, &mut at, sink)?
            } else if first & 0x40 != 0 {
                self.literal(block, &mut at, Indexing::Insert, scratch, sink)?
            } else if first & 0x20 != 0 {
                // RFC 7541 §4.2: an update MUST occur at the beginning of a block.
                return Err(HpackError::SizeUpdate);
            } else {
                self.literal(block, &mut at, Indexing::Leave, scratch, sink)?
            };
            debug_assert!(at <= block.len(), "a field ends within its block");
            if size > size_max {
                return Err(HpackError::TooLarge);
            }
        }
        Ok(())
    }

    #[inline]
    fn size_updates(&mut self, block: &[u8], at: &mut usize) -> Result<(), HpackError> {
        while block.get(*at).is_some_and(|&byte| byte & 0xe0 == 0x20) {
            let size = prefix::read(block, at, 5)?;
            // RFC 7541 §6.3: the new size MUST NOT exceed the limit of the protocol.
            if size > self.size_limit {
                return Err(HpackError::SizeUpdate);
            }
            self.table.resize(size);
        }
        Ok(())
    }

    #[inline]
    fn row(&self, index: u32) -> Result<StaticRow<'_>, HpackError> {
        let index = index as usize;
        if let Some(entry) = index.checked_sub(1).and_then(|i| statics::ENTRIES.get(i)) {
            let (name, value) = (entry.name.as_bytes(), entry.value.as_bytes());
            return Ok(StaticRow { token: entry.token, traits: Traits::NONE, name, value });
        }
        // RFC 7541 §6.1: index 0 is not used and MUST be treated as an error.
        let position = index.checked_sub(COUNT + 1).ok_or(HpackError::Index)?;
        self.table.row(position).ok_or(HpackError::Index)
    }

    #[inline]
    fn indexed(
        &self,
        block: &[u8],
        at: &mut usize,
        sink: &mut impl Sink,
    ) -> Result<usize, HpackError> {
        let row = self.row(prefix::read(block, at, 7)?)?;
        sink.field(row.token, row.traits, row.name, row.value);
        Ok(row.name.len() + row.value.len() + ENTRY_OVERHEAD)
    }

    fn literal(
        &mut self,
        block: &[u8],
        at: &mut usize,
        indexing: Indexing,
        scratch: &mut Vec<u8>,
        sink: &mut impl Sink,
    ) -> Result<usize, HpackError> {
        scratch.clear();
        let mut longest = 0;
        let bits = if indexing == Indexing::Insert { 6 } else { 4 };
        let (token, name_traits, name) = match prefix::read(block, at, bits)? {
            0 => {
                let name = string(block, at, scratch, &mut longest)?;
                let text = name.resolve(block, scratch);
                let token = FieldToken::parse(text);
                // The colon of a known pseudo-header name is valid.
                let known = !matches!(token, FieldToken::Field(_));
                let traits = if known { Traits::NONE } else { Traits::of_name(text) };
                (token, traits, name)
            }
            index => self.indexed_name(index, scratch)?,
        };
        let value = string(block, at, scratch, &mut longest)?;
        let (name, value) = (name.resolve(block, scratch), value.resolve(block, scratch));
        let traits = name_traits.and(Traits::of_value(value));
        if indexing == Indexing::Insert {
            self.table.insert(token, traits, name, value);
        }
        let is_long = longest > self.string_max;
        let traits = if is_long { traits.and(Traits::LONG) } else { traits };
        sink.field(token, traits, name, value);
        Ok(name.len() + value.len() + ENTRY_OVERHEAD)
    }

    /// RFC 7541 §4.4: an insertion may evict the entry whose name it uses. So the name of a dynamic
    /// entry is copied first.
    #[inline]
    fn indexed_name(
        &self,
        index: u32,
        scratch: &mut Vec<u8>,
    ) -> Result<(FieldToken, Traits, Text), HpackError> {
        if let Some(entry) = statics::ENTRIES.get((index - 1) as usize) {
            return Ok((entry.token, Traits::NONE, Text::Static(entry.name)));
        }
        let row = self.row(index)?;
        scratch.extend_from_slice(row.name);
        Ok((row.token, row.traits.of_its_name(), Text::Scratch(0, row.name.len())))
    }
}

/// Reads a string; `longest` becomes its encoded length, if that is more.
#[inline]
fn string(
    block: &[u8],
    at: &mut usize,
    scratch: &mut Vec<u8>,
    longest: &mut usize,
) -> Result<Text, HpackError> {
    let is_huffman = block.get(*at).is_some_and(|&byte| byte & 0x80 != 0);
    let len = prefix::read(block, at, 7)? as usize;
    let start = *at;
    let end = start + len;
    let bytes = block.get(start..end).ok_or(HpackError::Truncated)?;
    *at = end;
    *longest = len.max(*longest);
    if !is_huffman {
        return Ok(Text::Block(start, end));
    }
    let from = scratch.len();
    huffman::decode(bytes, HuffmanPadding::Shortest, scratch).map_err(|_| HpackError::Huffman)?;
    Ok(Text::Scratch(from, scratch.len()))
}
