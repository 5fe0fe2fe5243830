//! Percent-escapes as mod_rewrite writes them.

/// Appends `text` with all bytes escaped (`%2f`) that `stays` does not keep.
pub(crate) fn push_hex(text: &[u8], stays: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in text {
        if stays(byte) {
            out.push(byte);
        } else {
            let digits = [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)]);
            out.extend_from_slice(&[b'%', digits[0], digits[1]]);
        }
    }
}

/// Appends `text` with its escapes decoded; invalid ones stay.
pub(crate) fn push_decoded(text: &[u8], out: &mut Vec<u8>) {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        let byte = match (first, after) {
            (b'%', [high, low, behind @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = behind;
                    high << 4 | low
                }
                _ => *first,
            },
            _ => *first,
        };
        out.push(byte);
    }
}

/// The bytes that Apache's `ap_escape_uri` does not escape in a path or URL.
pub(crate) fn is_plain_in_uri(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"$-_.+!*'(),:@&=/~;".contains(&byte)
}

/// Appends a URL with the bytes escaped that a field must not have.
pub(crate) fn push_without_controls(text: &[u8], out: &mut Vec<u8>) {
    push_hex(text, |byte| !byte.is_ascii_control(), out);
}
