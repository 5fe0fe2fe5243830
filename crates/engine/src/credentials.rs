//! Credentials of Basic authentication (RFC 7617).
//!
//! Accepts and refuses what nginx does. It checks no password.

use bolide_base::base64::push_base64;
use bolide_http::{FieldMap, Name};

/// Appends name and password of Basic authentication, with the colon between them, and returns the
/// length of the name. Without valid credentials it appends nothing.
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
