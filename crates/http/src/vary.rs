//! Which request fields selected a response (RFC 9110 §12.5.5, RFC 9111 §4.1).
//!
//! Owns the parsing of `Vary` and the text that distinguishes requests. Two requests match when
//! their texts are equal. `Accept-Encoding` is omitted where one object holds all codings.

use crate::{FieldMap, Name};

/// LIMIT: names that one response may vary on; more count as `*`.
pub const NAMES_MAX: usize = 16;
/// LIMIT: bytes of these names together.
pub const SIZE_MAX: usize = 512;

/// The fields that `Vary` lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VaryField {
    /// Nothing: one response for all requests.
    #[default]
    Nothing,
    /// These fields: in lower case, sorted, each once.
    Names(Vec<Box<[u8]>>),
    /// `*`: never matches.
    Anything,
}

impl VaryField {
    /// The fields that a response varies on; an invalid name counts as `*`.
    #[must_use]
    pub fn of(response: &FieldMap) -> Self {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let mut size = 0;
        let elements = response.all(Name::Vary).flat_map(|line| line.split(|&byte| byte == b','));
        for element in elements.map(<[u8]>::trim_ascii).filter(|element| !element.is_empty()) {
            let is_name = element.iter().all(|&byte| crate::structured::is_token(byte));
            size += element.len();
            if element == b"*" || !is_name || size > SIZE_MAX {
                return Self::Anything;
            }
            let lower = element.to_ascii_lowercase().into_boxed_slice();
            if let Err(place) = names.binary_search(&lower) {
                names.insert(place, lower);
            }
            if names.len() > NAMES_MAX {
                return Self::Anything;
            }
        }
        if names.is_empty() { Self::Nothing } else { Self::Names(names) }
    }

    /// The same without `name` (in lower case).
    #[must_use]
    pub fn without(self, name: &[u8]) -> Self {
        match self {
            Self::Names(mut names) => {
                names.retain(|known| &**known != name);
                if names.is_empty() { Self::Nothing } else { Self::Names(names) }
            }
            other => other,
        }
    }

    /// The names; none also for [`VaryField::Anything`].
    #[must_use]
    pub fn names(&self) -> &[Box<[u8]>] {
        match self {
            Self::Names(names) => names,
            _ => &[],
        }
    }
}

/// Appends the text that distinguishes `request` by the field `name`: the name, and its values with
/// the whitespace around commas normalised (RFC 9111 §4.1), or the name alone if the field is
/// absent. A line feed ends it, which a value cannot contain.
pub fn push_selecting(out: &mut Vec<u8>, name: &[u8], request: &FieldMap) {
    out.extend_from_slice(name);
    let mut separator = b':';
    for value in request.all_text(name) {
        out.push(separator);
        for (index, element) in value.split(|&byte| byte == b',').enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(element.trim_ascii());
        }
        separator = b',';
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::{NAMES_MAX, VaryField, push_selecting};
    use crate::{FieldMap, Name};

    fn vary(lines: &[&str]) -> VaryField {
        let mut fields = FieldMap::new();
        lines.iter().for_each(|line| fields.push(Name::Vary, line.as_bytes()));
        VaryField::of(&fields)
    }

    #[test]
    fn names_are_a_set_and_a_star_is_everything() {
        let names = |vary: &VaryField| -> Vec<String> {
            vary.names().iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        };
        assert_eq!(names(&vary(&["Foo, accept", "FOO,,Bar "])), ["accept", "bar", "foo"]);
        for everything in ["*", "foo, *", "*, foo", "foo bar", "\"a\""] {
            assert_eq!(vary(&[everything]), VaryField::Anything, "{everything}");
        }
        assert_eq!(vary(&["", ","]), VaryField::Nothing);
        assert_eq!(vary(&["Accept-Encoding"]).without(b"accept-encoding"), VaryField::Nothing);
        let many: Vec<String> = (0..=NAMES_MAX).map(|number| format!("x{number}")).collect();
        assert_eq!(vary(&[&many.join(",")]), VaryField::Anything);
        assert_eq!(vary(&[&"x".repeat(513)]), VaryField::Anything);
    }

    #[test]
    fn requests_match_when_values_are_equal_but_for_white_space_and_lines() {
        let text = |lines: &[&str]| {
            let mut fields = FieldMap::new();
            lines.iter().for_each(|line| fields.push_text(b"Foo", line.as_bytes()));
            let mut out = Vec::new();
            push_selecting(&mut out, b"foo", &fields);
            out
        };
        assert_eq!(text(&["1, 2"]), text(&["1 ,2"]));
        assert_eq!(text(&["1,2"]), text(&["1", "2"]));
        assert_ne!(text(&["1,2"]), text(&["2,1"]));
        assert_ne!(text(&["a"]), text(&["A"]));
        assert_ne!(text(&[]), text(&[""]));
    }
}
