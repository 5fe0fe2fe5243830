//! HTTP/3 frames and QPACK sections as this client encodes them: no Huffman codes, a dynamic table
//! of its own.

pub(super) use bolide_wire::h3::frame::{code, encode_header, encode_varint, kind, parse_header};
pub(super) use bolide_wire::h3::frame::{parse_varint, setting, uni};

/// Appends an integer after `first`, whose low `bits` are its prefix (RFC 7541 §5.1).
pub(super) fn push_integer(out: &mut Vec<u8>, first: u8, bits: u8, value: u64) {
    let max = (1_u64 << bits) - 1;
    if value < max {
        return out.push(first | value as u8);
    }
    out.push(first | max as u8);
    let mut rest = value - max;
    while rest >= 128 {
        out.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    out.push(rest as u8);
}

/// Appends a string without Huffman codes.
fn push_text(out: &mut Vec<u8>, first: u8, bits: u8, text: &str) {
    push_integer(out, first, bits, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a literal field line with a literal name (RFC 9204 §4.5.6).
pub(super) fn push_field(section: &mut Vec<u8>, name: &str, value: &str) {
    push_text(section, 0x20, 3, name);
    push_text(section, 0, 7, value);
}

/// Appends a line of the static table (RFC 9204 §4.5.2).
pub(super) fn push_static(section: &mut Vec<u8>, row: u64) {
    push_integer(section, 0xc0, 6, row);
}

/// Appends an instruction that inserts an entry (RFC 9204 §4.3.3).
pub(super) fn push_insertion(out: &mut Vec<u8>, name: &str, value: &str) {
    push_text(out, 0x40, 5, name);
    push_text(out, 0, 7, value);
}

/// Appends an instruction that sets the table's capacity (RFC 9204 §4.3.1).
pub(super) fn push_capacity(out: &mut Vec<u8>, capacity: u64) {
    push_integer(out, 0x20, 5, capacity);
}

/// The prefix of a section that needs `required` insertions of a table whose capacity is at most
/// `capacity_max`, with as many as its base (RFC 9204 §4.5.1).
pub(super) fn push_prefix(section: &mut Vec<u8>, required: u64, capacity_max: u64) {
    let encoded = match required {
        0 => 0,
        // RFC 9204 §4.5.1.1: modulo twice the entries that fit.
        _ => required % (2 * (capacity_max / 32)) + 1,
    };
    push_integer(section, 0, 8, encoded);
    push_integer(section, 0, 7, 0);
}

/// Appends a line of the dynamic table: the newest entry below the base (RFC 9204 §4.5.2).
pub(super) fn push_newest(section: &mut Vec<u8>) {
    push_integer(section, 0x80, 6, 0);
}

/// Appends a frame.
pub(super) fn push(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    encode_header(out, kind, payload.len() as u64);
    out.extend_from_slice(payload);
}
