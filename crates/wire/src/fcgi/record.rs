//! FastCGI records: headers, BEGIN_REQUEST, name-value pairs (specification 1.0, §3.3, §3.4).
//!
//! Encodes the records of a web server, and parses any record header. It has no state.

use bolide_http::Params;

/// Bytes of a record header.
pub const HEADER_LEN: usize = 8;
/// LIMIT: bytes of the content of a record.
pub const CONTENT_MAX: usize = 65_535;
/// The only protocol version.
pub const VERSION: u8 = 1;
/// The id of every request: connections are not multiplexed.
pub const REQUEST_ID: u16 = 1;

const ROLE_RESPONDER: u8 = 1;
const FLAG_KEEP_CONN: u8 = 1;

/// The type of a record. Management records have no request and no type here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Opens a request.
    BeginRequest = 1,
    /// Aborts the request.
    AbortRequest = 2,
    /// The application has finished the request.
    EndRequest = 3,
    /// Name-value pairs; an empty record ends them.
    Params = 4,
    /// The request body; an empty record ends it.
    Stdin = 5,
    /// The response; an empty record ends it.
    Stdout = 6,
    /// Text for the error log.
    Stderr = 7,
}

/// A record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The type of the record.
    pub kind: RecordKind,
    /// The request id.
    pub id: u16,
    /// Bytes of content.
    pub len: u16,
    /// Bytes of padding behind the content.
    pub padding: u8,
}

impl RecordHeader {
    /// The header of a record that we send.
    #[must_use]
    pub const fn new(kind: RecordKind, len: usize) -> Self {
        debug_assert!(len <= CONTENT_MAX, "a record's length has two bytes");
        Self { kind, id: REQUEST_ID, len: len as u16, padding: 0 }
    }

    /// The header of a record without content.
    #[must_use]
    pub const fn empty(kind: RecordKind) -> Self {
        Self::new(kind, 0)
    }

    /// The encoded header.
    #[must_use]
    pub const fn bytes(self) -> [u8; HEADER_LEN] {
        let ([id_high, id_low], [high, low]) = (self.id.to_be_bytes(), self.len.to_be_bytes());
        [VERSION, self.kind as u8, id_high, id_low, high, low, self.padding, 0]
    }

    /// Appends the encoded header.
    pub fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// Parses a header; `None` for a management record or an unknown type. It does not check the
    /// version.
    #[must_use]
    pub const fn parse(bytes: [u8; HEADER_LEN]) -> Option<Self> {
        let [_, kind, id_high, id_low, high, low, padding, _] = bytes;
        let kind = match kind {
            1 => RecordKind::BeginRequest,
            2 => RecordKind::AbortRequest,
            3 => RecordKind::EndRequest,
            4 => RecordKind::Params,
            5 => RecordKind::Stdin,
            6 => RecordKind::Stdout,
            7 => RecordKind::Stderr,
            _ => return None,
        };
        let (id, len) = (u16::from_be_bytes([id_high, id_low]), u16::from_be_bytes([high, low]));
        Some(Self { kind, id, len, padding })
    }
}

/// Appends BEGIN_REQUEST. With `keep` the application keeps the connection open.
pub fn push_begin(out: &mut Vec<u8>, keep: bool) {
    RecordHeader::new(RecordKind::BeginRequest, 8).push(out);
    let flags = if keep { FLAG_KEEP_CONN } else { 0 };
    out.extend_from_slice(&[0, ROLE_RESPONDER, flags, 0, 0, 0, 0, 0]);
}

/// Appends all pairs in as many records as they need, and the empty record that ends them.
///
/// PHP parses the pairs of each record separately. So a pair continues in the next record only if
/// it exceeds a record.
pub fn push_params(out: &mut Vec<u8>, params: &Params) {
    let mut record = out.len();
    RecordHeader::empty(RecordKind::Params).push(out);
    for (name, value) in params.iter() {
        let size = length_size(name.len()) + length_size(value.len()) + name.len() + value.len();
        if out.len() - record - HEADER_LEN + size > CONTENT_MAX {
            record = next_record(out, record);
        }
        push_length(out, name.len());
        push_length(out, value.len());
        for mut text in [name, value] {
            loop {
                let room = CONTENT_MAX - (out.len() - record - HEADER_LEN);
                let (now, later) = text.split_at(text.len().min(room));
                out.extend_from_slice(now);
                if later.is_empty() {
                    break;
                }
                text = later;
                record = next_record(out, record);
            }
        }
    }
    // If the open record is empty, it ends the pairs.
    if out.len() - record > HEADER_LEN {
        next_record(out, record);
    }
}

/// Completes the record that starts at `record` and opens another one, unless it is empty.
fn next_record(out: &mut Vec<u8>, record: usize) -> usize {
    let len = out.len() - record - HEADER_LEN;
    if len == 0 {
        return record;
    }
    let header = RecordHeader::new(RecordKind::Params, len).bytes();
    out[record..record + HEADER_LEN].copy_from_slice(&header);
    let next = out.len();
    RecordHeader::empty(RecordKind::Params).push(out);
    next
}

const fn length_size(len: usize) -> usize {
    if len < 128 { 1 } else { 4 }
}

fn push_length(out: &mut Vec<u8>, len: usize) {
    if len < 128 {
        out.push(len as u8);
    } else {
        out.extend_from_slice(&(len as u32 | 1 << 31).to_be_bytes());
    }
}
