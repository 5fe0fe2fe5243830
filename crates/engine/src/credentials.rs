//! Names and passwords that requests carry (RFC 7617), and base64.
//!
//! Reads what nginx reads and refuses what it refuses; whether a password is right is not known
//! here.

use bolide_http::{FieldMap, Name};

/// Appends the name and password of Basic authentication with the colon between them; says how
/// long the name is, or appends nothing.
pub(crate) fn push_basic(fields: &FieldMap, out: &mut Vec<u8>) -> Option<usize> {
    let (scheme, token) = fields.get(Name::Authorization)?.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let first = token.iter().position(|byte| *byte != b' ')?;
    let start = out.len();
    let is_base64 = push_base64(&token[first..], out);
    let colon = memchr::memchr(b':', &out[start..]).filter(|colon| is_base64 && *colon > 0);
    if colon.is_none() {
        out.truncate(start);
    }
    colon
}

/// Appends what `text` stands for (RFC 4648 §4), as nginx reads it: whatever follows a `=` is
/// ignored. What was appended of a bad text is of no use.
pub(crate) fn push_base64(text: &[u8], out: &mut Vec<u8>) -> bool {
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

#[cfg(test)]
mod tests {
    use bolide_http::{FieldMap, Name};

    use super::push_basic;

    #[test]
    fn name_and_password_are_what_stands_around_the_first_colon() {
        let read = |value: &'static [u8]| {
            let mut fields = FieldMap::new();
            fields.push(Name::Authorization, value);
            let mut out = b"before ".to_vec();
            let colon = push_basic(&fields, &mut out);
            (colon, String::from_utf8(out).unwrap())
        };
        let none = (None, "before ".to_owned());
        assert_eq!(read(b"Basic dXNlcjpwYXNz"), (Some(4), "before user:pass".to_owned()));
        assert_eq!(read(b"basic   dTpwOnE="), (Some(1), "before u:p:q".to_owned()));
        assert_eq!(read(b"Basic dXNlcg=="), none, "no colon");
        assert_eq!(read(b"Basic OnBhc3M="), none, "no name");
        assert_eq!(read(b"Basic dXNlcjpwYXNz!"), none, "bad behind the colon");
        assert_eq!(read(b"Basic dXNlcjpwYXNzc"), none, "a lone digit");
        assert_eq!(read(b"Basic "), none);
        assert_eq!(read(b"Bearer abc"), none);
    }
}
