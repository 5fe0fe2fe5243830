//! Prefixed integers (RFC 7541 §5.1 as RFC 9204 §4.1.1 bounds them): at most 62 bits.

/// An integer that is longer or larger than RFC 9204 allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// RFC 9204 §4.1.1: implementations decode integers of up to 62 bits.
const MAX: u64 = (1 << 62) - 1;

/// The integer in the low `bits` of the first byte, and the bytes it took; `None`: incomplete.
///
/// # Errors
///
/// [`TooLarge`] when it exceeds 62 bits or is padded beyond ten bytes.
#[inline]
pub fn parse(bits: u8, input: &[u8]) -> Result<Option<(u64, usize)>, TooLarge> {
    let Some(&first) = input.first() else { return Ok(None) };
    let mask = ((1_u16 << bits) - 1) as u8;
    if first & mask != mask {
        return Ok(Some((u64::from(first & mask), 1)));
    }
    let mut value = u64::from(mask);
    for (i, &byte) in input[1..].iter().enumerate() {
        let shift = 7 * i as u32;
        if shift > 56 {
            return Err(TooLarge);
        }
        value += u64::from(byte & 0x7f) << shift;
        if value > MAX {
            return Err(TooLarge);
        }
        if byte & 0x80 == 0 {
            return Ok(Some((value, i + 2)));
        }
    }
    if input.len() > 10 { Err(TooLarge) } else { Ok(None) }
}

/// Appends `value` with a prefix of `bits`; `flags` are the bits above the prefix.
#[inline]
pub fn encode(out: &mut Vec<u8>, flags: u8, bits: u8, value: u64) {
    let mask = (1_u64 << bits) - 1;
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

#[cfg(test)]
mod tests {
    use super::{MAX, TooLarge, encode, parse};
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_7541_c_1_come_out() {
        let mut out = Vec::new();
        encode(&mut out, 0, 5, 10);
        encode(&mut out, 0, 5, 1337);
        encode(&mut out, 0, 8, 42);
        assert_eq!(out, [0x0a, 0x1f, 0x9a, 0x0a, 0x2a]);
    }

    #[test]
    fn too_large_an_integer_is_an_error_and_not_a_wrap() {
        let mut long = vec![0xff_u8; 12];
        assert_eq!(parse(5, &long), Err(TooLarge));
        long.truncate(9);
        assert_eq!(parse(5, &long), Ok(None));
        assert_eq!(
            parse(8, &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f]),
            Err(TooLarge)
        );
    }

    proptest! {
        #[test]
        fn an_integer_comes_back_and_its_beginnings_are_incomplete(
            value in prop_oneof![0..600_u64, 0..=MAX],
            bits in 3..=8_u8,
        ) {
            let mut out = Vec::new();
            encode(&mut out, 0, bits, value);
            for end in 0..out.len() {
                prop_assert_eq!(parse(bits, &out[..end]), Ok(None));
            }
            prop_assert_eq!(parse(bits, &out), Ok(Some((value, out.len()))));
        }
    }
}
