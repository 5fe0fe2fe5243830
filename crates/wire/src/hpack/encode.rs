//! Response fields out (RFC 7541 §6): what is indexed, what is not, and what must never be.
//!
//! Owns the encoder's dynamic table. It never sends connection-specific fields (RFC 9113 §8.2.2)
//! and lower-cases every name. The invariant easiest to break: a block that was encoded must be
//! sent, and in that order, or the peer's table is no longer ours.

use bolide_base::limits::FIELD_TABLE_SIZE;
use bolide_http::Name;

use super::huffman::{self, HuffmanCase};
use super::table::ENTRY_OVERHEAD;
use super::{FieldToken, HpackTable, Traits, statics};
use crate::integer::push_integer;

/// Different values of one name that may sit in the table at a time, for names whose values differ
/// from resource to resource; more would only push the stable fields out.
const SAME_NAME_MAX: usize = 4;
/// One field may take at most this part of the table.
const FIELD_SHARE: u32 = 4;

/// First bytes of the representations (RFC 7541 §6).
const INDEXED: u8 = 0x80;
const INSERTING: u8 = 0x40;
const SIZE_UPDATE: u8 = 0x20;
const NEVER: u8 = 0x10;
const LEAVING: u8 = 0x00;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// Stable for a connection's life or for seconds: worth an entry.
    Index,
    /// Stable for one resource: worth an entry while there are few.
    IndexFew,
    /// Not worth an entry.
    Plain,
    /// A secret that no intermediary may index either (RFC 7541 §7.1.3).
    Never,
    /// Framing's own, or of another protocol version.
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

/// The sending end of one direction of a connection.
#[derive(Debug)]
pub struct HpackEncoder {
    table: HpackTable,
    /// The smallest size since the last block, where the peer has yet to be told of a change.
    resized_to: Option<u32>,
}

impl Default for HpackEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl HpackEncoder {
    /// An encoder whose peer has the initial table size.
    #[must_use]
    pub const fn new() -> Self {
        Self { table: HpackTable::new(FIELD_TABLE_SIZE as u32), resized_to: None }
    }

    /// Obeys the peer's `SETTINGS_HEADER_TABLE_SIZE`; we use no more than [`FIELD_TABLE_SIZE`].
    pub fn limit_table(&mut self, size: u32) {
        let size = size.min(FIELD_TABLE_SIZE as u32);
        if size != self.table.size_max() {
            self.table.resize(size);
            self.resized_to = Some(self.resized_to.map_or(size, |least| least.min(size)));
        }
    }

    /// The same number means that an equal head encodes to the same block; `None` while the next
    /// block is special.
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

    /// Gives memory back; for idle moments.
    pub fn shrink(&mut self) {
        self.table.shrink();
    }

    /// Starts a block: tells of changed table sizes (RFC 7541 §4.2).
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

    /// Appends `content-length`; its values differ too much to be indexed.
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

    /// Appends a field; `text` is its name in any case and matters only for [`Name::Other`].
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

    /// Appends an index if the table has the field, else a literal that inserts it, if it is small
    /// and fewer than `same_name_max` entries have its name.
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
            // The first of the static entries for `:status`; no other pseudo-field is sent.
            _ => push_integer(out, first, bits, 8_u32),
        }
        string(value, HuffmanCase::Keep, out);
        if inserts {
            self.table.insert(token, Traits::NONE, text, value);
        }
    }

    /// Appends the start of a literal: its name, as an index where there is one.
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

/// The index of the dynamic entry at `position`, counted from the newest.
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
