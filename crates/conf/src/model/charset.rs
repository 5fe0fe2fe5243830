//! Charsets: the tables of `charset_map` blocks, and the charset names of the configuration.

use std::sync::Arc;

/// The replacement for a code without an entry.
const UNKNOWN: u8 = b'?';

/// The charsets of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Charsets {
    /// `charset_map`, in order; no two have the same pair of charsets.
    pub maps: Vec<Arc<CharsetMap>>,
    /// Every name in `charset`, `source_charset` and `charset_map`, in its first spelling.
    pub known: Vec<Box<[u8]>>,
}

/// One `charset_map`, which serves both directions.
#[derive(Debug)]
pub struct CharsetMap {
    /// The first charset.
    pub from: Box<[u8]>,
    /// The second one.
    pub to: Box<[u8]>,
    /// The tables.
    pub codes: CharsetCodes,
}

/// The tables of a map.
#[derive(Debug)]
pub enum CharsetCodes {
    /// Between two charsets of one byte per character.
    Bytes {
        /// From the first to the second.
        there: Box<[u8; 256]>,
        /// From the second to the first.
        back: Box<[u8; 256]>,
    },
    /// Between a charset of one byte per character and UTF-8.
    Utf8 {
        /// The bytes of each code of the first charset.
        there: Box<[Utf8Text; 256]>,
        /// The code of each character up to U+FFFF; 0 for none.
        back: Box<[u8]>,
    },
}

/// One to three bytes, as a map writes them.
#[derive(Clone, Copy, Debug)]
pub struct Utf8Text {
    bytes: [u8; 3],
    len: u8,
}

/// The use of a map from its first charset to its second one, or the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapDirection {
    /// From the first to the second.
    There,
    /// From the second to the first.
    Back,
}

impl Charsets {
    /// Records a charset name; as in nginx, its first spelling is used.
    pub(crate) fn note(&mut self, name: &[u8]) -> &[u8] {
        let known = self.known.iter().position(|known| known.eq_ignore_ascii_case(name));
        let at = known.unwrap_or(self.known.len());
        if at == self.known.len() {
            self.known.push(name.into());
        }
        &self.known[at]
    }

    /// Whether the configuration uses `name`, ignoring case.
    #[must_use]
    pub fn is_known(&self, name: &[u8]) -> bool {
        self.known.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The map from one charset to another, if there is one.
    #[must_use]
    pub fn between(&self, from: &[u8], to: &[u8]) -> Option<(&Arc<CharsetMap>, MapDirection)> {
        self.maps.iter().find_map(|map| {
            let leads = |first: &[u8], second: &[u8]| {
                map.from.eq_ignore_ascii_case(first) && map.to.eq_ignore_ascii_case(second)
            };
            if leads(from, to) {
                return Some((map, MapDirection::There));
            }
            leads(to, from).then_some((map, MapDirection::Back))
        })
    }
}

/// Whether a charset is UTF-8.
pub(crate) const fn is_utf8(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"utf-8")
}

impl CharsetCodes {
    /// Tables that map ASCII to itself and have no other entries.
    pub(crate) fn new(to: &[u8]) -> Self {
        if is_utf8(to) {
            let ascii = |code: usize| u8::try_from(code).ok().filter(u8::is_ascii);
            let text =
                |code: usize| Utf8Text { bytes: [ascii(code).unwrap_or(UNKNOWN), 0, 0], len: 1 };
            return Self::Utf8 {
                there: Box::new(std::array::from_fn(text)),
                back: vec![0; 0x1_0000].into_boxed_slice(),
            };
        }
        let code = |code: usize| u8::try_from(code).ok().filter(u8::is_ascii).unwrap_or(UNKNOWN);
        let table = Box::new(std::array::from_fn(code));
        Self::Bytes { there: table.clone(), back: table }
    }

    /// Whether recoding keeps the length of a body.
    #[must_use]
    pub const fn keeps_length(&self) -> bool {
        matches!(self, Self::Bytes { .. })
    }
}

impl Utf8Text {
    /// The text of `bytes`, with its first character; `None` if that is invalid or above U+FFFF. As
    /// in nginx, later bytes remain in the text.
    pub(crate) fn new(text: &[u8]) -> Option<(Self, u16)> {
        let Utf8Step::Char { code, .. } = utf8_step(text) else { return None };
        let code = u16::try_from(code).ok()?;
        let mut bytes = [0; 3];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some((Self { bytes, len: text.len() as u8 }, code))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The result of decoding the first bytes of a text that should be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utf8Step {
    /// A character of more than one byte.
    Char {
        /// Its number, at most U+10FFFF; surrogates count as characters.
        code: u32,
        /// Its bytes, 2 to 4.
        len: usize,
    },
    /// No character.
    Invalid {
        /// The number of invalid bytes, at least one.
        len: usize,
    },
    /// Possibly part of a character.
    Incomplete,
}

/// Decodes a character as nginx does: the first byte determines the length, and a byte that cannot
/// continue the character is part of the invalid sequence.
///
/// # Panics
///
/// If `text` is empty.
#[must_use]
pub fn utf8_step(text: &[u8]) -> Utf8Step {
    let first = text[0];
    let (bits, below, more) = match first {
        0xf8.. => return Utf8Step::Invalid { len: 1 },
        0xf0.. => (first & 0x07, 0xffff, 3),
        0xe0.. => (first & 0x0f, 0x7ff, 2),
        0xc2.. => (first & 0x1f, 0x7f, 1),
        _ => return Utf8Step::Invalid { len: 1 },
    };
    let Some(rest) = text.get(1..=more) else { return Utf8Step::Incomplete };
    let mut code = u32::from(bits);
    for (at, byte) in rest.iter().enumerate() {
        if *byte < 0x80 {
            return Utf8Step::Invalid { len: at + 2 };
        }
        code = code << 6 | u32::from(byte & 0x3f);
    }
    match code > below && code <= 0x10_ffff {
        true => Utf8Step::Char { code, len: more + 1 },
        false => Utf8Step::Invalid { len: more + 1 },
    }
}
