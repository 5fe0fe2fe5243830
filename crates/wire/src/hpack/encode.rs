//! Encodes fields (RFC 7541 §6) and chooses which are indexed.
//!
//! Owns the encoder's dynamic table. It never sends connection-specific fields (RFC 9113 §8.2.2)
//! and writes every name in lower case. INVARIANT: encoded blocks are sent, and in order; else the
//! peer's table differs from ours.

use bolide_base::limits::FIELD_TABLE_SIZE;
use bolide_http::Name;

use super::huffman::{self, HuffmanCase};
use super::table::ENTRY_OVERHEAD;
use super::{FieldToken, HpackTable, Traits, statics};
use crate::integer::push_integer;

/// LIMIT: table entries with the same name, for names whose values differ between resources. More
/// would evict the stable fields.
const SAME_NAME_MAX: usize = 4;
/// LIMIT: the fraction of the table that one field may take.
const FIELD_SHARE: u32 = 4;

/// The first bytes of the representations (RFC 7541 §6).
const INDEXED: u8 = 0x80;
const INSERTING: u8 = 0x40;
const SIZE_UPDATE: u8 = 0x20;
const NEVER: u8 = 0x10;
const LEAVING: u8 = 0x00;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// Stable for seconds or for a connection's life: indexed.
    Index,
    /// Stable for one resource: indexed up to [`SAME_NAME_MAX`] times.
    IndexFew,
    /// Not indexed.
    Plain,
    /// A secret that intermediaries must not index, either (RFC 7541 §7.1.3).
    Never,
    /// Framing writes it, or HTTP/2 does not have it.
    Omit,
}

const fn policy(name: Name) -> Policy {
    match name {
        Name::Connection
        | Name::KeepAlive
        | Name::ProxyConnection
        | Name::TransferEncoding
        | Name::Upgrade
        | Name::ContentLength => Policy::Omit,
        Name::SetCookie | Name::Cookie | Name::Authorization | Name::ProxyAuthorization => {
            Policy::Never
        }
        Name::Age
        | Name::ContentDisposition
        | Name::ContentLocation
        | Name::ContentRange
        | Name::Location
        | Name::Refresh
        | Name::RetryAfter => Policy::Plain,
        Name::Etag | Name::LastModified | Name::Link | Name::Other => Policy::IndexFew,
        _ => Policy::Index,
    }
}

/// The HPACK encoder of a connection.
#[derive(Debug)]
pub struct HpackEncoder {
    table: HpackTable,
    /// The smallest table size since the last block, unless the peer has it already.
    resized_to: Option<u32>,
}

impl Default for HpackEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl HpackEncoder {
    /// An encoder with the default table size of the peer.
    #[must_use]
    pub const fn new() -> Self {
        Self { table: HpackTable::new(FIELD_TABLE_SIZE as u32), resized_to: None }
    }

    /// Applies the peer's `SETTINGS_HEADER_TABLE_SIZE`. We use no more than [`FIELD_TABLE_SIZE`].
    pub fn limit_table(&mut self, size: u32) {
        let size = size.min(FIELD_TABLE_SIZE as u32);
        if size != self.table.size_max() {
            self.table.resize(size);
            self.resized_to = Some(self.resized_to.map_or(size, |least| least.min(size)));
        }
    }

    /// While this number stays the same, equal heads encode to equal blocks. `None` if the next
    /// block starts with a size update.
    #[must_use]
    #[inline]
    pub const fn generation(&self) -> Option<u32> {
        match self.resized_to {
            Some(_) => None,
            None => Some(self.table.generation()),
        }
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

    /// Starts a block with the pending table size updates (RFC 7541 §4.2).
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some(least) = self.resized_to.take() else { return };
        if least < self.table.size_max() {
            push_integer(out, SIZE_UPDATE, 5, least);
        }
        push_integer(out, SIZE_UPDATE, 5, self.table.size_max());
    }

    /// Appends `:status`.
    pub fn status(&mut self, code: u16, out: &mut Vec<u8>) {
        let index = match code {
            200 => 8_u32,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digits = [code / 100, code / 10 % 10, code % 10].map(|d| b'0' + d as u8);
                return self.indexing(FieldToken::Status, b":status", &digits, usize::MAX, out);
            }
        };
        push_integer(out, INDEXED, 7, index);
    }

    /// Appends the pseudo-header fields of a request; an empty `authority` is omitted.
    pub fn request(
        &mut self,
        method: &[u8],
        scheme: &[u8],
        path: &[u8],
        authority: &[u8],
        out: &mut Vec<u8>,
    ) {
        for (token, text, value) in [
            (FieldToken::Method, b":method".as_slice(), method),
            (FieldToken::Scheme, b":scheme", scheme),
            (FieldToken::Path, b":path", path),
            (FieldToken::Authority, b":authority", authority),
        ] {
            let is_entry =
                |entry: &statics::Static| entry.token == token && entry.value.as_bytes() == value;
            match statics::ENTRIES.iter().position(is_entry) {
                _ if value.is_empty() => {}
                Some(at) => push_integer(out, INDEXED, 7, at as u32 + 1),
                None => self.indexing(token, text, value, SAME_NAME_MAX, out),
            }
        }
    }

    /// Appends `content-length`. It is not indexed, because its values differ too much.
    pub fn content_length(&mut self, length: u64, out: &mut Vec<u8>) {
        let (mut digits, mut at, mut rest) = ([0; 20], 20, length);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.literal(LEAVING, 4, Name::ContentLength, b"", None, out);
        string(&digits[at..], HuffmanCase::Keep, out);
    }

    /// Appends a field. `text` is its name in any case; it matters only for [`Name::Other`].
    pub fn field(&mut self, name: Name, text: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let text = if name == Name::Other { text } else { name.text().as_bytes() };
        let first = match policy(name) {
            Policy::Omit => return,
            Policy::Index => {
                return self.indexing(FieldToken::Field(name), text, value, usize::MAX, out);
            }
            Policy::IndexFew => {
                return self.indexing(FieldToken::Field(name), text, value, SAME_NAME_MAX, out);
            }
            Policy::Plain => LEAVING,
            Policy::Never => NEVER,
        };
        self.literal(first, 4, name, text, None, out);
        string(value, HuffmanCase::Keep, out);
    }

    /// Appends an index if the table has the field, else a literal. The literal is inserted if it
    /// is small and fewer than `same_name_max` entries have its name.
    fn indexing(
        &mut self,
        token: FieldToken,
        text: &[u8],
        value: &[u8],
        same_name_max: usize,
        out: &mut Vec<u8>,
    ) {
        let found = self.table.find(token, text, value);
        if let Some(position) = found.exact {
            return push_integer(out, INDEXED, 7, index_at(position));
        }
        let size = text.len() + value.len() + ENTRY_OVERHEAD;
        let is_small = size <= (self.table.size_max() / FIELD_SHARE) as usize;
        let inserts = is_small && found.same_name < same_name_max;
        let (first, bits) = if inserts { (INSERTING, 6) } else { (LEAVING, 4) };
        match token {
            FieldToken::Field(name) => self.literal(first, bits, name, text, found.name, out),
            pseudo => push_integer(out, first, bits, index_of_pseudo(pseudo)),
        }
        string(value, HuffmanCase::Keep, out);
        if inserts {
            self.table.insert(token, Traits::NONE, text, value);
        }
    }

    /// Appends the start of a literal with its name, as an index if there is one.
    fn literal(
        &self,
        first: u8,
        bits: u8,
        name: Name,
        text: &[u8],
        position: Option<usize>,
        out: &mut Vec<u8>,
    ) {
        let token = FieldToken::Field(name);
        let dynamic = || {
            let row = self.table.row(position?)?;
            debug_assert!(row.token == token, "a position is of its name");
            position.map(index_at)
        };
        match statics::index_of(name).or_else(dynamic) {
            Some(index) => push_integer(out, first, bits, index),
            None => {
                out.push(first);
                string(text, HuffmanCase::Lower, out);
            }
        }
    }
}

/// The first static entry of a pseudo-header field.
const fn index_of_pseudo(token: FieldToken) -> u32 {
    match token {
        FieldToken::Authority => 1,
        FieldToken::Method => 2,
        FieldToken::Path => 4,
        FieldToken::Scheme => 6,
        FieldToken::Status | FieldToken::Field(_) => 8,
    }
}

/// The index of the dynamic entry at `position`; the newest has position 0.
const fn index_at(position: usize) -> u32 {
    (statics::COUNT + 1 + position) as u32
}

/// Appends a string literal, Huffman-encoded where that is shorter.
fn string(bytes: &[u8], case: HuffmanCase, out: &mut Vec<u8>) {
    let encoded = huffman::encoded_len_in(bytes, case);
    if encoded < bytes.len() {
        push_integer(out, 0x80, 7, encoded as u32);
        huffman::encode_in(bytes, case, out);
    } else {
        push_integer(out, 0, 7, bytes.len() as u32);
        out.extend(bytes.iter().map(|&byte| case.apply(byte)));
    }
}
