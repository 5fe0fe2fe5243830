//! Byte classes and small scanners that the parts of the HTTP/1 machine share.
//!
//! Nothing here knows the meaning of a field.

/// A letter, a digit or `-`: a valid byte of a field name in nginx.
pub(super) const PLAIN: u8 = 0;
/// `_`, valid with `underscores_in_headers` only.
pub(super) const UNDERSCORE: u8 = 1;
/// Any other token byte (RFC 9110 §5.6.2).
pub(super) const TOKEN: u8 = 2;
/// A byte that is invalid in a token.
pub(super) const FOREIGN: u8 = 4;
/// `:`, the end of a name.
pub(super) const COLON: u8 = 8;
/// White space or a control byte: refused in any name.
pub(super) const FATAL: u8 = 16;

const NAME_CLASSES: [u8; 256] = {
    let mut classes = [FOREIGN; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            0..=b' ' | 0x7f => FATAL,
            b':' => COLON,
            b'_' => UNDERSCORE,
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => PLAIN,
            b'!' | b'#'..=b'\'' | b'*' | b'+' | b'.' | b'^' | b'`' | b'|' | b'~' => TOKEN,
            _ => FOREIGN,
        };
        byte += 1;
    }
    classes
};

/// The end of the field name, and the union of the classes of its bytes.
#[inline]
pub(super) fn scan_name(line: &[u8]) -> Option<(usize, u8)> {
    let mut classes = 0;
    for (at, &byte) in line.iter().enumerate() {
        match NAME_CLASSES[usize::from(byte)] {
            COLON if at > 0 => return Some((at, classes)),
            COLON | FATAL => return None,
            class => classes |= class,
        }
    }
    None
}

/// Whether `byte` is valid in the name of a trailer field.
#[inline]
pub(super) const fn is_token(byte: u8) -> bool {
    NAME_CLASSES[byte as usize] < FOREIGN
}

const ONES: u64 = u64::MAX / 255;

/// Non-zero if one of eight bytes may be a control byte. Zero is exact.
#[inline]
const fn suspects(bytes: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(bytes);
    let low = word.wrapping_sub(ONES * 0x20) & !word;
    let delete = word ^ (ONES * 0x7f);
    let delete = delete.wrapping_sub(ONES) & !delete;
    (low | delete) & (ONES * 0x80)
}

/// Whether `text` has a control byte.
#[inline]
pub(super) fn has_control(text: &[u8]) -> bool {
    let Some(last) = text.last_chunk::<8>() else { return has_control_slow(text) };
    // PERF: eight bytes at a time; the last word overlaps instead of leaving a tail.
    let (words, _) = text.as_chunks::<8>();
    let found = words.iter().fold(suspects(*last), |found, word| found | suspects(*word));
    found != 0 && has_control_slow(text)
}

fn has_control_slow(text: &[u8]) -> bool {
    text.iter().any(|&byte| byte == 0x7f || byte < b' ')
}

/// Whether a field value has NUL or CR. nginx allows other control bytes (RFC 9110 §5.5).
#[inline]
pub(super) fn has_line_control(value: &[u8]) -> bool {
    memchr::memchr2(0, b'\r', value).is_some()
}

/// Strips spaces and tabs from both ends (RFC 9110 §5.6.3: OWS).
#[inline]
pub(super) const fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Parses a decimal number of digits only, at most `i64::MAX`.
pub(crate) fn parse_decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in text {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    (value <= i64::MAX as u64).then_some(value)
}

/// Appends `value` in decimal.
#[inline]
pub(super) fn push_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return out.extend_from_slice(&digits[start..]);
        }
    }
}

/// Whether a list of tokens has `token`, ignoring case.
pub(super) fn list_has(list: &[u8], token: &[u8]) -> bool {
    list.split(|&byte| byte == b',').any(|item| trim(item).eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::{has_control, has_control_slow, parse_decimal, push_decimal};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn the_fast_control_scan_agrees_with_the_slow_one(
            text in proptest::collection::vec(any::<u8>(), 0..40),
            mild in proptest::collection::vec(0x20_u8..0x7f, 0..40),
            at in 0..40_usize,
            byte in any::<u8>(),
        ) {
            let mut spiked = mild;
            if let Some(slot) = spiked.get_mut(at) {
                *slot = byte;
            }
            for text in [text, spiked] {
                prop_assert_eq!(has_control(&text), has_control_slow(&text));
            }
        }

        #[test]
        fn decimals_come_back(value in 0..=i64::MAX as u64) {
            let mut text = Vec::new();
            push_decimal(&mut text, value);
            prop_assert_eq!(parse_decimal(&text), Some(value));
        }
    }
}
