//! `RewriteMap`: names and sources of maps, text maps, and the internal functions.
//!
//! It reads no file; programs (`prg`) and databases (`dbm`, `dbd`) are refused.

use std::collections::HashMap;

use crate::escape::{is_plain_in_uri, push_decoded, push_hex};
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;

/// LIMIT: bytes of a map's file.
pub const MAP_FILE_MAX: usize = 8 * 1024 * 1024;

/// The source of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapSource {
    /// A file of keys and values.
    Text(Box<[u8]>),
    /// A file of keys and values; a value is a random one of several, separated by bars.
    Random(Box<[u8]>),
    /// A function of the key.
    Function(MapFunction),
}

/// An internal function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFunction {
    /// `toupper`
    Upper,
    /// `tolower`
    Lower,
    /// `escape`: percent-encodes bytes that a URL path cannot have.
    Escape,
    /// `unescape`
    Unescape,
}

/// A map and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RewriteMap {
    pub(crate) name: Box<[u8]>,
    pub(crate) source: MapSource,
}

/// Parses the arguments of `RewriteMap`.
pub(crate) fn parse(arguments: &[u8]) -> ParseResult<RewriteMap> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    let [name, source] = &words[..] else {
        return Err("RewriteMap takes two arguments, a mapname and a source".to_owned());
    };
    let (kind, rest) = crate::variable::split(source, b':').unwrap_or((b"txt", source));
    let path = || match rest {
        [b'/', ..] => Ok(Box::from(rest)),
        _ => Err(format!("RewriteMap: '{}' is not an absolute path", shown(rest))),
    };
    let source = match &kind.to_ascii_lowercase()[..] {
        b"txt" => MapSource::Text(path()?),
        b"rnd" => MapSource::Random(path()?),
        b"int" => MapSource::Function(match &rest.to_ascii_lowercase()[..] {
            b"toupper" => MapFunction::Upper,
            b"tolower" => MapFunction::Lower,
            b"escape" => MapFunction::Escape,
            b"unescape" => MapFunction::Unescape,
            _ => return Err(format!("RewriteMap: internal map not found:{}", shown(rest))),
        }),
        _ => {
            let kind = shown(kind);
            return Err(format!("RewriteMap: maps of the kind '{kind}' are not available here"));
        }
    };
    Ok(RewriteMap { name: name.clone().into(), source })
}

impl MapFunction {
    /// Appends its value for `key`.
    pub fn push(self, key: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Upper => out.extend(key.iter().map(u8::to_ascii_uppercase)),
            Self::Lower => out.extend(key.iter().map(u8::to_ascii_lowercase)),
            Self::Escape => push_hex(key, is_plain_in_uri, out),
            Self::Unescape => push_decoded(key, out),
        }
    }
}

/// A parsed map file.
#[derive(Clone, Debug, Default)]
pub struct TextMap {
    all: HashMap<Box<[u8]>, Box<[u8]>>,
}

impl TextMap {
    /// Parses a map file: a key and a value in each line; the first of equal keys counts. Lines
    /// that begin with a blank or `#`, and lines without a value, are ignored.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let mut all = HashMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            if line.first().is_none_or(|first| *first == b'#' || first.is_ascii_whitespace()) {
                continue;
            }
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            if let (Some(key), Some(value)) = (words.next(), words.next()) {
                all.entry(key.into()).or_insert_with(|| value.into());
            }
        }
        Self { all }
    }

    /// The value of `key`.
    #[must_use]
    pub fn of(&self, key: &[u8]) -> Option<&[u8]> {
        self.all.get(key).map(|value| &**value)
    }
}

/// One of the values between bars, selected by the random number `chance`.
#[must_use]
pub fn choose(value: &[u8], chance: u64) -> &[u8] {
    let count = value.split(|byte| *byte == b'|').count() as u64;
    let at = usize::try_from(chance % count).unwrap_or(0);
    value.split(|byte| *byte == b'|').nth(at).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{MapFunction, MapSource, TextMap, choose, parse};

    #[test]
    fn a_map_has_a_name_and_a_source() {
        let source = |text: &str| parse(text.as_bytes()).map(|map| map.source);
        let path = |text: &str| Box::from(text.as_bytes());
        assert_eq!(source("a txt:/m.txt"), Ok(MapSource::Text(path("/m.txt"))));
        assert_eq!(source("a /m.txt"), Ok(MapSource::Text(path("/m.txt"))));
        assert_eq!(source("a rnd:/m.txt"), Ok(MapSource::Random(path("/m.txt"))));
        assert_eq!(source("a int:tolower"), Ok(MapSource::Function(MapFunction::Lower)));
        for (text, wanted) in [
            ("a prg:/bin/x", "the kind 'prg'"),
            ("a dbm:/x", "the kind 'dbm'"),
            ("a int:rot13", "internal map not found:rot13"),
            ("a txt:m.txt", "not an absolute path"),
            ("a", "takes two arguments"),
        ] {
            assert!(source(text).unwrap_err().contains(wanted), "{text}");
        }
    }

    #[test]
    fn functions_are_those_of_apache() {
        let of = |function: MapFunction, key: &[u8]| {
            let mut out = Vec::new();
            function.push(key, &mut out);
            out
        };
        assert_eq!(of(MapFunction::Upper, b"aB\xc3"), b"AB\xc3");
        assert_eq!(of(MapFunction::Lower, b"aB"), b"ab");
        assert_eq!(of(MapFunction::Escape, b"a b?"), b"a%20b%3f");
        assert_eq!(of(MapFunction::Unescape, b"a%20b%zz%4"), b"a b%zz%4");
    }

    #[test]
    fn the_first_line_of_a_key_counts() {
        let map = TextMap::parse(b"# a x\na 1 more\r\n b 2\nc\na 3\nd\t4");
        assert_eq!(map.of(b"a"), Some(&b"1"[..]));
        assert_eq!(map.of(b"d"), Some(&b"4"[..]));
        assert!(map.of(b"b").is_none() && map.of(b"c").is_none() && map.of(b"#").is_none());
        assert_eq!((choose(b"x|y|z", 4), choose(b"x", 9)), (&b"y"[..], &b"x"[..]));
    }
}
