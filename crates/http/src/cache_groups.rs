//! Names that group responses for invalidation: `Cache-Groups` and similar fields.
//!
//! Owns the parsing of `Cache-Groups` and `Cache-Group-Invalidation` (RFC 9875), and of the lists
//! between blanks or commas that other servers use (`Surrogate-Key`, `xkey`, `Cache-Tag`).

use std::borrow::Cow;

use crate::FieldMap;
use crate::structured;

/// LIMIT: names taken from one response; RFC 9875 §2.1 asks for 32 of 32 bytes. More than a cache
/// stores, so that the cache can report the excess.
pub const NAMES_MAX: usize = 64 * 1024;
/// LIMIT: bytes of one name; longer ones are ignored.
pub const NAME_MAX: usize = 1024;

/// Calls `take` with the groups of `Cache-Groups` or another field of its syntax. A field that is
/// not a list of strings contains no groups.
pub fn groups(fields: &FieldMap, field: &[u8], mut take: impl FnMut(Cow<'_, [u8]>)) {
    let Some(text) = structured::join(fields.all_text(field)) else { return };
    let Some(members) = structured::list(&text) else { return };
    if members.iter().any(|member| member.string().is_none()) {
        return;
    }
    for raw in members.iter().filter_map(structured::Value::string) {
        let name = structured::unescape(raw);
        if name.len() <= NAME_MAX {
            take(name);
        }
    }
}

/// The separator between names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// Blanks: `Surrogate-Key`, `xkey`.
    Blank,
    /// Commas, with blanks around them: `Cache-Tag`.
    Comma,
    /// Either: `Cache-Tags`, which applications write both ways.
    Either,
}

/// The names of all lines of `field`.
pub fn names<'a>(
    fields: &'a FieldMap,
    field: &'static [u8],
    separator: Separator,
) -> impl Iterator<Item = &'a [u8]> {
    let separates = move |byte: &u8| match separator {
        Separator::Blank => matches!(byte, b' ' | b'\t'),
        Separator::Comma => *byte == b',',
        Separator::Either => matches!(byte, b' ' | b'\t' | b','),
    };
    fields
        .all_text(field)
        .flat_map(move |line| line.split(separates))
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty() && name.len() <= NAME_MAX)
        .take(NAMES_MAX)
}

#[cfg(test)]
mod tests {
    use super::{Separator, groups, names};
    use crate::FieldMap;

    #[test]
    fn groups_are_strings_or_nothing() {
        let read = |line: &str| {
            let mut fields = FieldMap::new();
            fields.push_text(b"Cache-Groups", line.as_bytes());
            let mut found = Vec::new();
            groups(&fields, b"cache-groups", |name| found.push(name.into_owned()));
            found
        };
        assert_eq!(read("\"a\", \"b\\\"c\";x=1"), [b"a".to_vec(), b"b\"c".to_vec()]);
        for nothing in ["", "a", "\"a\", b", "\"a\",", "(\"a\")"] {
            assert!(read(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn keys_stand_between_blanks_or_commas() {
        let mut fields = FieldMap::new();
        fields.push_text(b"Surrogate-Key", b" a  b,c\td ");
        fields.push_text(b"Surrogate-Key", b"e");
        fields.push_text(b"Cache-Tag", b"a b, c ,,");
        let found: Vec<_> = names(&fields, b"surrogate-key", Separator::Blank).collect();
        assert_eq!(found, [&b"a"[..], b"b,c", b"d", b"e"]);
        let found: Vec<_> = names(&fields, b"cache-tag", Separator::Comma).collect();
        assert_eq!(found, [&b"a b"[..], b"c"]);
        let found: Vec<_> = names(&fields, b"cache-tag", Separator::Either).collect();
        assert_eq!(found, [b"a", b"b", b"c"]);
    }
}
