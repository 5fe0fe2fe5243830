//! JSON output.

use bolide_http::escape::push_json;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Number(i128),
    /// Bytes; invalid UTF-8 is replaced.
    Text(Vec<u8>),
    /// An array.
    List(Vec<Self>),
    /// An object; its members keep their order.
    Object(Vec<(&'static str, Self)>),
}

impl Json {
    /// A text.
    #[must_use]
    pub fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Text(text.as_ref().to_vec())
    }

    /// A number.
    pub fn number(number: impl Into<i128>) -> Self {
        Self::Number(number.into())
    }

    /// One value for each of `all`.
    pub fn list<T>(all: impl IntoIterator<Item = T>, value: impl Fn(T) -> Self) -> Self {
        Self::List(all.into_iter().map(value).collect())
    }

    /// The value as one line.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.push(&mut out);
        out.push(b'\n');
        out
    }

    fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(is) => out.extend_from_slice(if *is { b"true" } else { b"false" }),
            Self::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Self::Text(text) => {
                out.push(b'"');
                push_json(out, String::from_utf8_lossy(text).as_bytes());
                out.push(b'"');
            }
            Self::List(all) => {
                out.push(b'[');
                for (at, one) in all.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    one.push(out);
                }
                out.push(b']');
            }
            Self::Object(all) => {
                out.push(b'{');
                for (at, (name, one)) in all.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    Self::text(name).push(out);
                    out.push(b':');
                    one.push(out);
                }
                out.push(b'}');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn values_are_written_as_rfc_8259_has_them() {
        let value = Json::Object(vec![
            ("a", Json::list([1, -2], Json::number)),
            ("b\"", Json::text(b"x\n\xff\"")),
            ("c", Json::Null),
            ("d", Json::Bool(true)),
        ]);
        let line = String::from_utf8(value.line()).unwrap();
        assert_eq!(line, "{\"a\":[1,-2],\"b\\\"\":\"x\\n\u{fffd}\\\"\",\"c\":null,\"d\":true}\n");
    }
}
