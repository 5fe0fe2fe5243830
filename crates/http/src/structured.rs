//! Structured fields (RFC 9651): the dictionaries and lists that caches need, parsed strictly.
//!
//! Owns the grammar. Parameters are checked and dropped. A malformed text is not a structured field
//! at all (RFC 9651 §4.2), so every parser returns `None` for it.

use std::borrow::Cow;

/// A value without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare<'a> {
    /// An integer of at most fifteen digits.
    Integer(i64),
    /// A decimal in thousandths.
    Decimal(i64),
    /// The text between the quotes, escapes included; see [`unescape`].
    String(&'a [u8]),
    /// A token.
    Token(&'a [u8]),
    /// Base64 between colons, not decoded.
    Bytes(&'a [u8]),
    /// `?0` or `?1`, or a dictionary's key without a value.
    Boolean(bool),
    /// `@` and seconds since 1970.
    Date(i64),
}

/// A member of a list or dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// One item.
    Item(Bare<'a>),
    /// Items between parentheses.
    Inner(Vec<Bare<'a>>),
}

impl<'a> Value<'a> {
    /// The integer that it is.
    #[must_use]
    pub const fn integer(&self) -> Option<i64> {
        match self {
            Self::Item(Bare::Integer(number)) => Some(*number),
            _ => None,
        }
    }

    /// The raw text of a string.
    #[must_use]
    pub const fn string(&self) -> Option<&'a [u8]> {
        match self {
            Self::Item(Bare::String(text)) => Some(text),
            _ => None,
        }
    }
}

/// The text of a string without its escapes.
#[must_use]
pub fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', raw).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter();
    while let Some(&byte) = bytes.next() {
        let meant = if byte == b'\\' { bytes.next().copied().unwrap_or(byte) } else { byte };
        out.push(meant);
    }
    Cow::Owned(out)
}

/// All lines of a field as one text (RFC 9110 §5.3), or `None` if the field is absent.
#[must_use]
pub fn join<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Option<Cow<'a, [u8]>> {
    let first = lines.next()?;
    let mut joined = Cow::Borrowed(first);
    for line in lines {
        let text = joined.to_mut();
        text.extend_from_slice(b", ");
        text.extend_from_slice(line);
    }
    Some(joined)
}

/// The members of a dictionary, the last of each key (RFC 9651 §4.2.2); `None` if it is malformed.
#[must_use]
pub fn dictionary(text: &[u8]) -> Option<Vec<(&[u8], Value<'_>)>> {
    let mut rest = Rest(trim_spaces(text));
    let mut members: Vec<(&[u8], Value<'_>)> = Vec::new();
    while !rest.0.is_empty() {
        let key = rest.key()?;
        let value = if rest.takes(b'=') {
            rest.value()?
        } else {
            rest.parameters()?;
            Value::Item(Bare::Boolean(true))
        };
        // Few members repeat; a bound limits a long text of distinct keys, instead of a hash.
        if let Some(member) = members.iter_mut().find(|(known, _)| *known == key) {
            member.1 = value;
        } else if members.len() < MEMBERS_MAX {
            members.push((key, value));
        } else {
            return None;
        }
        rest.separator()?;
    }
    Some(members)
}

/// The members of a list; `None` if it is malformed.
#[must_use]
pub fn list(text: &[u8]) -> Option<Vec<Value<'_>>> {
    let mut rest = Rest(trim_spaces(text));
    let mut members = Vec::new();
    while !rest.0.is_empty() {
        if members.len() >= MEMBERS_MAX {
            return None;
        }
        members.push(rest.value()?);
        rest.separator()?;
    }
    Some(members)
}

/// LIMIT: members of one list or dictionary; RFC 9651 §3.1 asks for 1024.
const MEMBERS_MAX: usize = 1024;

fn trim_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| byte != b' ').unwrap_or(text.len());
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(start, |last| last + 1);
    &text[start..end]
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn takes(&mut self, wanted: u8) -> bool {
        match self.0.split_first() {
            Some((&byte, rest)) if byte == wanted => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| !is_skipped(byte)).unwrap_or(self.0.len());
        let (skipped, rest) = self.0.split_at(end);
        self.0 = rest;
        skipped
    }

    /// A comma between members; a trailing one is an error.
    fn separator(&mut self) -> Option<()> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        if self.0.is_empty() {
            return Some(());
        }
        if !self.takes(b',') {
            return None;
        }
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        (!self.0.is_empty()).then_some(())
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        if !matches!(self.0.first()?, b'a'..=b'z' | b'*') {
            return None;
        }
        Some(
            self.skip(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*')),
        )
    }

    fn value(&mut self) -> Option<Value<'a>> {
        if !self.takes(b'(') {
            let item = self.bare()?;
            self.parameters()?;
            return Some(Value::Item(item));
        }
        let mut items = Vec::new();
        loop {
            self.skip(|byte| byte == b' ');
            if self.takes(b')') {
                self.parameters()?;
                return Some(Value::Inner(items));
            }
            if items.len() >= MEMBERS_MAX {
                return None;
            }
            items.push(self.bare()?);
            self.parameters()?;
            matches!(self.0.first()?, b' ' | b')').then_some(())?;
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.takes(b';') {
            self.skip(|byte| byte == b' ');
            self.key()?;
            if self.takes(b'=') {
                self.bare()?;
            }
        }
        Some(())
    }

    fn bare(&mut self) -> Option<Bare<'a>> {
        match *self.0.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'?' => {
                self.takes(b'?');
                let truth = self.takes(b'1');
                (truth || self.takes(b'0')).then_some(Bare::Boolean(truth))
            }
            b'@' => {
                self.takes(b'@');
                match self.number()? {
                    Bare::Integer(seconds) => Some(Bare::Date(seconds)),
                    _ => None,
                }
            }
            b':' => {
                self.takes(b':');
                let is_base64 =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
                let text = self.skip(is_base64);
                self.takes(b':').then_some(Bare::Bytes(text))
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'*' => {
                Some(Bare::Token(self.skip(|byte| is_token(byte) || matches!(byte, b':' | b'/'))))
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Bare<'a>> {
        let sign = if self.takes(b'-') { -1 } else { 1 };
        let whole = self.skip(|byte| byte.is_ascii_digit());
        if !self.takes(b'.') {
            let fits = (1..=15).contains(&whole.len());
            return fits.then(|| Bare::Integer(sign * digits(whole)));
        }
        let fraction = self.skip(|byte| byte.is_ascii_digit());
        if !(1..=12).contains(&whole.len()) || !(1..=3).contains(&fraction.len()) {
            return None;
        }
        let scale = [100, 10, 1][fraction.len() - 1];
        Some(Bare::Decimal(sign * (digits(whole) * 1000 + digits(fraction) * scale)))
    }

    fn string(&mut self) -> Option<Bare<'a>> {
        self.takes(b'"');
        let text = self.0;
        let mut at = 0;
        loop {
            match *text.get(at)? {
                b'"' => break,
                b'\\' if matches!(text.get(at + 1)?, b'"' | b'\\') => at += 2,
                b'\\' => return None,
                0x20..=0x7e => at += 1,
                _ => return None,
            }
        }
        self.0 = &text[at + 1..];
        Some(Bare::String(&text[..at]))
    }
}

fn digits(text: &[u8]) -> i64 {
    text.iter().fold(0, |number, &digit| number * 10 + i64::from(digit - b'0'))
}

/// Whether a token may contain `byte` (RFC 9110 §5.6.2).
#[must_use]
pub const fn is_token(byte: u8) -> bool {
    matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
        || byte.is_ascii_alphanumeric()
}

/// Appends `text` as a string; bytes that a string cannot hold become `?`.
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x20..=0x7e => out.push(byte),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::{Bare, Value, dictionary, list, push_string, unescape};
    use proptest::prelude::{any, proptest};

    #[test]
    fn dictionaries_are_read_or_refused_as_a_whole() {
        let members = dictionary(b"max-age=60;x=1, no-store, a=(\"x\" y 1.5);q, a=?0").unwrap();
        let expected: Vec<(&[u8], Value<'_>)> = vec![
            (b"max-age", Value::Item(Bare::Integer(60))),
            (b"no-store", Value::Item(Bare::Boolean(true))),
            (b"a", Value::Item(Bare::Boolean(false))),
        ];
        assert_eq!(members, expected);
        assert_eq!(dictionary(b"  "), Some(Vec::new()));
        let wrong: [&[u8]; 13] = [
            b"Max-Age=1",
            b"a=1,",
            b"a=1,,b",
            b"a b",
            b"a=",
            b"a = 1",
            b"a=1.",
            b"a=1.0000",
            b"a=1000000000000000",
            b"a=\"x",
            b"a=\"\\n\"",
            b"a=(1 2",
            b"a=(1,2)",
        ];
        for text in wrong {
            assert_eq!(dictionary(text), None, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn lists_hold_items_of_every_kind() {
        let items =
            list(b"\"a\\\"b\", tok/en:x;p=\"y\", -12, 1.25, ?1, @7, :YQ==:, (a b)").unwrap();
        assert_eq!(unescape(items[0].string().unwrap()), &b"a\"b"[..]);
        assert_eq!(items[1], Value::Item(Bare::Token(b"tok/en:x")));
        assert_eq!(items[2].integer(), Some(-12));
        assert_eq!(items[3], Value::Item(Bare::Decimal(1250)));
        assert_eq!(items[5], Value::Item(Bare::Date(7)));
        assert_eq!(items[7], Value::Inner(vec![Bare::Token(b"a"), Bare::Token(b"b")]));
        assert_eq!(list(b"a,"), None);
    }

    proptest! {
        #[test]
        fn a_written_string_reads_back(text in "[ -~]{0,30}", bytes in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            push_string(&mut out, text.as_bytes());
            let items = list(&out).unwrap();
            assert_eq!(unescape(items[0].string().unwrap()), text.as_bytes());
            let _ = (list(&bytes), dictionary(&bytes));
        }
    }
}
