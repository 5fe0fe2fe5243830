//! Base64 (RFC 4648 §4), as nginx reads it.

/// Appends what `text` stands for (RFC 4648 §4), as nginx reads it: whatever follows a `=` is
/// ignored. What was appended of a bad text is of no use.
pub fn push_base64(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut bits, mut held) = (0_u32, 0);
    let mut digits = 0;
    for &byte in text {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => break,
            _ => return false,
        };
        digits += 1;
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    digits % 4 != 1
}
