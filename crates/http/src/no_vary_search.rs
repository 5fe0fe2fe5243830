//! Query parameters that the cache key ignores (`No-Vary-Search`), and queries without them.
//!
//! Owns the parsing of the field and the comparison of queries by it. A malformed field is ignored:
//! then every byte of the query matters.

use crate::FieldMap;
use crate::structured::{self, Bare, Value};

/// LIMIT: parameters of a query that are sorted or compared; longer queries stay unchanged.
const PARAMETERS_MAX: usize = 256;

/// Which parameters are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// None.
    #[default]
    Nothing,
    /// All but these.
    AllBut(Vec<Box<[u8]>>),
    /// These.
    These(Vec<Box<[u8]>>),
}

/// The contents of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoVarySearch {
    /// Whether the order of parameters does not matter.
    pub any_order: bool,
    /// Parameters that do not matter.
    pub ignored: Ignored,
}

impl NoVarySearch {
    /// The field of a response; `None` if it is absent or invalid.
    #[must_use]
    pub fn of(response: &FieldMap) -> Option<Self> {
        let text = structured::join(response.all_text(b"No-Vary-Search"))?;
        let mut found = Self::default();
        let (mut all, mut these, mut but) = (false, None, None);
        for (key, value) in structured::dictionary(&text)? {
            match (key, value) {
                (b"key-order", Value::Item(Bare::Boolean(any))) => found.any_order = any,
                (b"params", Value::Item(Bare::Boolean(ignored))) => {
                    all = ignored;
                    these = None;
                }
                (b"params", Value::Inner(items)) => these = Some(strings(&items)?),
                (b"except", Value::Inner(items)) => but = Some(strings(&items)?),
                (b"key-order" | b"params" | b"except", _) => return None,
                _ => {}
            }
        }
        found.ignored = match (all, these, but) {
            (true, _, but) => Ignored::AllBut(but.unwrap_or_default()),
            // Exceptions make sense only for all parameters.
            (false, _, Some(_)) => return None,
            (false, Some(names), None) => Ignored::These(names),
            (false, None, None) => Ignored::Nothing,
        };
        (found != Self::default()).then_some(found)
    }

    /// Appends the relevant part of `query`. Equal texts mean the same request.
    pub fn push(&self, out: &mut Vec<u8>, query: &[u8]) {
        let mut kept: Vec<(Vec<u8>, &[u8])> = Vec::new();
        for piece in query.split(|&byte| byte == b'&').filter(|piece| !piece.is_empty()) {
            if kept.len() >= PARAMETERS_MAX {
                return out.extend_from_slice(query);
            }
            let name = piece.split(|&byte| byte == b'=').next().unwrap_or_default();
            let name = decode(name);
            let is_ignored = match &self.ignored {
                Ignored::Nothing => false,
                Ignored::AllBut(names) => !names.iter().any(|known| **known == *name),
                Ignored::These(names) => names.iter().any(|known| **known == *name),
            };
            if !is_ignored {
                kept.push((name, piece));
            }
        }
        if self.any_order {
            // Stable: the order of equal names still matters.
            kept.sort_by(|a, b| a.0.cmp(&b.0));
        }
        for (index, (_, piece)) in kept.iter().enumerate() {
            if index > 0 {
                out.push(b'&');
            }
            out.extend_from_slice(piece);
        }
    }
}

fn strings(items: &[Bare<'_>]) -> Option<Vec<Box<[u8]>>> {
    let text = |item: &Bare<'_>| match item {
        Bare::String(raw) => Some(decode(&structured::unescape(raw)).into_boxed_slice()),
        _ => None,
    };
    items.iter().map(text).collect()
}

/// Form decoding of a parameter's name: `+` is a blank, malformed escapes stay.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let hex = |at: usize| after.get(at).and_then(|&digit| char::from(digit).to_digit(16));
        match (byte, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            (b'+', ..) => out.push(b' '),
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::NoVarySearch;
    use crate::FieldMap;

    fn read(line: &str) -> Option<NoVarySearch> {
        let mut fields = FieldMap::new();
        fields.push_text(b"no-vary-search", line.as_bytes());
        NoVarySearch::of(&fields)
    }

    #[test]
    fn queries_lose_what_does_not_matter() {
        let rows = [
            ("params", "a=1&b=2", ""),
            ("params, except=(\"b\")", "a=1&b=2&b=3", "b=2&b=3"),
            ("params=(\"utm_source\" \"a b\")", "a+b=1&x=2&utm_source=3&a%20b", "x=2"),
            ("key-order", "b=2&a=1&b=1", "a=1&b=2&b=1"),
            ("key-order, params=(\"x\")", "&c&&x&a", "a&c"),
        ];
        for (field, query, kept) in rows {
            let mut out = Vec::new();
            read(field).unwrap().push(&mut out, query.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), kept, "{field}");
        }
    }

    #[test]
    fn what_is_wrong_or_says_nothing_is_nothing() {
        for field in [
            "",
            "params=?0",
            "params=\"x\"",
            "params=(x)",
            "except=(\"a\")",
            "key-order=1",
            "params=(\"a\"), except=(\"b\")",
            "Params",
        ] {
            assert_eq!(read(field), None, "{field}");
        }
    }
}
