//! Numbers as text without the formatting machinery: a few byte copies on the hot path.

/// The decimal digits of a number, inline.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    buffer: [u8; 20],
    start: u8,
}

impl Decimal {
    /// The digits of `number`, without leading zeros.
    #[must_use]
    #[inline]
    pub const fn new(mut number: u64) -> Self {
        let mut buffer = [b'0'; 20];
        let mut start = 20;
        loop {
            start -= 1;
            buffer[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Self { buffer, start: start as u8 };
            }
        }
    }

    /// The digits.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer[usize::from(self.start)..]
    }

    /// All twenty places, with leading zeros.
    #[must_use]
    pub const fn padded(&self) -> &[u8; 20] {
        &self.buffer
    }
}

impl Default for Decimal {
    fn default() -> Self {
        Self::new(0)
    }
}

/// Appends `number` in decimal.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(Decimal::new(number).as_bytes());
}

/// Appends `number` in decimal, blanks before it up to `width` places.
pub fn push_right(out: &mut Vec<u8>, number: u64, width: usize) {
    let digits = Decimal::new(number);
    let digits = digits.as_bytes();
    out.resize(out.len() + width.saturating_sub(digits.len()), b' ');
    out.extend_from_slice(digits);
}

/// Appends `number` in lower-case hexadecimal, without leading zeros.
pub fn push_hex(out: &mut Vec<u8>, number: u64) {
    let places = (64 - (number | 1).leading_zeros()).div_ceil(4);
    for place in (0..places).rev() {
        out.push(HEX[(number >> (place * 4)) as usize & 15]);
    }
}

/// The sixteen digits of lower-case hexadecimal.
pub const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes `number % 100` as two digits.
#[inline]
pub(crate) const fn put_two(place: &mut [u8], at: usize, number: u32) {
    place[at] = b'0' + (number / 10 % 10) as u8;
    place[at + 1] = b'0' + (number % 10) as u8;
}

/// Writes `number % 10000` as four digits.
#[inline]
pub(crate) const fn put_four(place: &mut [u8], at: usize, number: u32) {
    put_two(place, at, number / 100);
    put_two(place, at + 2, number);
}

#[cfg(test)]
mod tests {
    use super::{Decimal, push_hex, push_right};
    use proptest::prelude::{any, proptest};

    proptest! {
        #[test]
        fn digits_read_back_as_the_number(number in any::<u64>(), shift in 0_u32..64) {
            let number = number >> shift;
            let decimal = Decimal::new(number);
            assert_eq!(decimal.as_bytes(), number.to_string().as_bytes());
            assert_eq!(decimal.padded(), format!("{number:020}").as_bytes());
            let mut out = Vec::new();
            push_hex(&mut out, number);
            assert_eq!(out, format!("{number:x}").as_bytes());
            out.clear();
            push_right(&mut out, number, 7);
            assert_eq!(out, format!("{number:>7}").as_bytes());
        }
    }
}
