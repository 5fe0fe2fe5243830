//! Reads prefixed integers (RFC 7541 §5.1) of at most 62 bits (RFC 9204 §4.1.1).

/// The integer exceeds the limits of RFC 9204.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// RFC 9204 §4.1.1: implementations must decode integers up to 62 bits.
const MAX: u64 = (1 << 62) - 1;

/// The integer in the low `bits` of the first byte, and its length in bytes; `None` means
/// incomplete.
///
/// # Errors
///
/// [`TooLarge`] if it exceeds 62 bits or ten bytes.
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

#[cfg(test)]
mod tests {
    use super::{MAX, TooLarge, parse};
    use crate::integer::push_integer;
    use proptest::prelude::*;

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
            push_integer(&mut out, 0, bits, value);
            for end in 0..out.len() {
                prop_assert_eq!(parse(bits, &out[..end]), Ok(None));
            }
            prop_assert_eq!(parse(bits, &out), Ok(Some((value, out.len()))));
        }
    }
}
