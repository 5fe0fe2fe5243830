//! FastCGI records: headers, BEGIN_REQUEST, name-value pairs (specification 1.0, §3.3, §3.4).
//!
//! Encodes what a web server sends, and reads any header. It keeps no state.

use bolide_http::Params;

/// Bytes of a record's header.
pub const HEADER_LEN: usize = 8;
/// Bytes of the largest content.
pub const CONTENT_MAX: usize = 65_535;
/// The version there is.
pub const VERSION: u8 = 1;
/// The id of every request: connections are not multiplexed.
pub const REQUEST_ID: u16 = 1;

const ROLE_RESPONDER: u8 = 1;
const FLAG_KEEP_CONN: u8 = 1;

/// What a record carries; records of other kinds concern no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Opens a request.
    BeginRequest = 1,
    /// The request is not wanted any more.
    AbortRequest = 2,
    /// The application is done with the request.
    EndRequest = 3,
    /// Name-value pairs; an empty one ends them.
    Params = 4,
    /// The request body; an empty one ends it.
    Stdin = 5,
    /// The answer; an empty one ends it.
    Stdout = 6,
    /// Text for the error log.
    Stderr = 7,
}

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// What the record carries.
    pub kind: RecordKind,
    /// Whose record it is.
    pub id: u16,
    /// Bytes of content.
    pub len: u16,
    /// Bytes behind the content that mean nothing.
    pub padding: u8,
}

impl RecordHeader {
    /// The header of a record of ours.
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

    /// As it is sent.
    #[must_use]
    pub const fn bytes(self) -> [u8; HEADER_LEN] {
        let ([id_high, id_low], [high, low]) = (self.id.to_be_bytes(), self.len.to_be_bytes());
        [VERSION, self.kind as u8, id_high, id_low, high, low, self.padding, 0]
    }

    /// Appends it.
    pub fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// Reads a header; none if its kind concerns no request. Ignores the version.
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

/// Appends the record that opens a request; with `keep` the application leaves the connection open.
pub fn push_begin(out: &mut Vec<u8>, keep: bool) {
    RecordHeader::new(RecordKind::BeginRequest, 8).push(out);
    let flags = if keep { FLAG_KEEP_CONN } else { 0 };
    out.extend_from_slice(&[0, ROLE_RESPONDER, flags, 0, 0, 0, 0, 0]);
}

/// Appends all pairs, in as many records as they need, and the record that ends them.
///
/// PHP reads the pairs of each record by themselves, so a pair goes on in the next record only if
/// it is larger than a record.
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
    // What is open ends the pairs if it stayed empty.
    if out.len() - record > HEADER_LEN {
        next_record(out, record);
    }
}

/// Completes the record that starts at `record` and opens another, unless it is empty.
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
