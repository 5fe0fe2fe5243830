//! Writes the prefixed integers that HPACK and QPACK share (RFC 7541 §5.1).
//!
//! Each decoder reads them with its own bounds.

/// Appends `value` with a prefix of `bits` bits. `flags` are the bits above the prefix.
#[inline]
pub(crate) fn push_integer(out: &mut Vec<u8>, flags: u8, bits: u8, value: impl Into<u64>) {
    let value = value.into();
    let mask = (1_u64 << bits) - 1;
    debug_assert!(u64::from(flags) & mask == 0, "the flags are above the prefix");
    if value < mask {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
