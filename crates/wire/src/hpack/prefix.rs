//! Reads integers with a prefix of N bits (RFC 7541 §5.1).
//!
//! Integers over 32 bits are refused.

/// Why an integer is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntError {
    /// The input ends within it.
    Truncated,
    /// It exceeds 32 bits or has needless bytes.
    TooLarge,
}

/// Reads an integer with a prefix of `bits` bits at `input[*at]`, and moves `at` behind it.
///
/// # Errors
///
/// [`IntError`]; `at` is then undefined.
#[inline]
pub fn read(input: &[u8], at: &mut usize, bits: u32) -> Result<u32, IntError> {
    let mask = (1_u32 << bits) - 1;
    let Some(&first) = input.get(*at) else { return Err(IntError::Truncated) };
    *at += 1;
    let value = u32::from(first) & mask;
    if value < mask { Ok(value) } else { read_rest(input, at, value) }
}

#[cold]
fn read_rest(input: &[u8], at: &mut usize, first: u32) -> Result<u32, IntError> {
    let mut value = u64::from(first);
    // LIMIT: five bytes carry 35 bits, more than any length we accept.
    for shift in [0, 7, 14, 21, 28] {
        let Some(&byte) = input.get(*at) else { return Err(IntError::Truncated) };
        *at += 1;
        value += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).map_err(|_| IntError::TooLarge);
        }
    }
    Err(IntError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::{IntError, read};
    use crate::integer::push_integer;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn the_examples_of_rfc_7541_c_1_hold() {
        for (bits, value, bytes) in
            [(5_u8, 10_u32, &[0b01010_u8][..]), (5, 1337, &[31, 0b1001_1010, 10]), (8, 42, &[42])]
        {
            let mut out = Vec::new();
            push_integer(&mut out, 0, bits, value);
            assert_eq!(out, bytes);
            assert_eq!(read(bytes, &mut 0, u32::from(bits)), Ok(value));
        }
    }

    #[test]
    fn truncated_and_oversized_integers_are_refused() {
        assert_eq!(read(&[], &mut 0, 7), Err(IntError::Truncated));
        assert_eq!(read(&[0x7f, 0x80], &mut 0, 7), Err(IntError::Truncated));
        assert_eq!(read(&[0x7f; 7], &mut 0, 7), Ok(0x7f + 0x7f));
        assert_eq!(read(&[0xff; 8], &mut 0, 7), Err(IntError::TooLarge));
        let max = [0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(read(&max, &mut 0, 7), Ok(u32::MAX));
    }

    proptest! {
        #[test]
        fn any_integer_survives_any_prefix(value in any::<u32>(), bits in 1..=8_u8) {
            let mut out = Vec::new();
            push_integer(&mut out, 0, bits, value);
            let mut at = 0;
            prop_assert_eq!(read(&out, &mut at, u32::from(bits)), Ok(value));
            prop_assert_eq!(at, out.len());
        }
    }
}
