//! The user of a request: the one that the client claims to be, and the one whose password was
//! right.

use bolide_http::FieldMap;

use super::value::{VariableValue, text};
use crate::credentials::push_basic;

/// The user of Basic authentication (RFC 7617): what stands before the colon.
pub(super) fn remote_user(fields: &FieldMap, out: &mut Vec<u8>) -> VariableValue {
    let start = out.len();
    let colon = push_basic(fields, out);
    out.truncate(start + colon.unwrap_or(0));
    VariableValue::when(colon.is_some())
}

/// The user whose password was right, never a name that only the client claims: the one that
/// `.htaccess` files admitted, else that of `checked` fields.
pub(super) fn authenticated_user(
    admitted: Option<&[u8]>,
    checked: Option<&FieldMap>,
    out: &mut Vec<u8>,
) -> VariableValue {
    match (admitted, checked) {
        (Some(user), _) => text(out, user),
        (None, Some(fields)) => remote_user(fields, out),
        (None, None) => VariableValue::No,
    }
}

#[cfg(test)]
mod tests {
    use bolide_http::{FieldMap, Name};

    use super::{VariableValue, remote_user};

    #[test]
    fn the_user_of_basic_authentication_ends_at_the_colon() {
        let user = |value: &[u8]| {
            let mut fields = FieldMap::new();
            fields.push(Name::Authorization, value);
            let mut out = Vec::new();
            let found = remote_user(&fields, &mut out);
            (found, String::from_utf8(out).unwrap())
        };
        assert_eq!(user(b"Basic dXNlcjpwYXNz"), (VariableValue::Yes, "user".to_owned()));
        assert_eq!(user(b"basic dXNlcjpwYXNz"), (VariableValue::Yes, "user".to_owned()));
        assert_eq!(user(b"Basic dXNlcg=="), (VariableValue::No, String::new()));
        assert_eq!(user(b"Basic !!"), (VariableValue::No, String::new()));
        assert_eq!(user(b"Bearer abc"), (VariableValue::No, String::new()));
    }
}
