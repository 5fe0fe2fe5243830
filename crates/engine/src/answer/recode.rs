//! `charset_map`: a body that is recoded to another charset while it is sent.
//!
//! Owns an incomplete character at the end of a piece; at the end of the body it is dropped, as in
//! nginx.

use std::sync::Arc;

use bolide_conf::model::{CharsetCodes, CharsetMap, MapDirection, Utf8Step, utf8_step};
use bolide_http::digits::push_decimal;

/// The decision about a charset.
#[derive(Debug)]
pub(crate) enum CharsetOutcome {
    /// The body is recoded.
    Recoded(Arc<CharsetMap>, MapDirection),
    /// No map converts one charset to the other.
    Unmapped {
        from: Vec<u8>,
        to: Vec<u8>,
        /// Whether the body is a file, which nginx's message depends on.
        is_file: bool,
    },
    /// `X-Accel-Charset` names a charset that the configuration does not mention.
    Unknown(Vec<u8>),
}

impl CharsetOutcome {
    /// The recoder of the body, if it is recoded.
    pub(crate) fn recoder(&self) -> Option<Recoder> {
        match self {
            Self::Recoded(map, direction) => Some(Recoder::new(map.clone(), *direction)),
            _ => None,
        }
    }
}

/// Recodes a body.
#[derive(Debug)]
pub(crate) struct Recoder {
    map: Arc<CharsetMap>,
    direction: MapDirection,
    /// LIMIT: at most three bytes of a character of UTF-8.
    held: Vec<u8>,
}

impl Recoder {
    pub(crate) const fn new(map: Arc<CharsetMap>, direction: MapDirection) -> Self {
        Self { map, direction, held: Vec::new() }
    }

    /// Whether output and input have the same length.
    pub(crate) fn keeps_length(&self) -> bool {
        self.map.codes.keeps_length()
    }

    /// Appends the output for `piece`.
    pub(crate) fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        match (&self.map.codes, self.direction) {
            (CharsetCodes::Bytes { there, .. }, MapDirection::There) => exchange(there, piece, out),
            (CharsetCodes::Bytes { back, .. }, MapDirection::Back) => exchange(back, piece, out),
            (CharsetCodes::Utf8 { there, .. }, MapDirection::There) => {
                for byte in piece {
                    out.extend_from_slice(there[usize::from(*byte)].as_bytes());
                }
            }
            (CharsetCodes::Utf8 { back, .. }, MapDirection::Back) => {
                if self.held.is_empty() {
                    let used = from_utf8(back, piece, out);
                    self.held.extend_from_slice(&piece[used..]);
                } else {
                    self.held.extend_from_slice(piece);
                    let used = from_utf8(back, &self.held, out);
                    drop(self.held.drain(..used));
                }
                debug_assert!(self.held.len() < 4, "a whole character is not held");
            }
        }
    }
}

fn exchange(table: &[u8; 256], piece: &[u8], out: &mut Vec<u8>) {
    out.extend(piece.iter().map(|byte| table[usize::from(*byte)]));
}

/// Recodes the complete characters of `text`; returns their length in bytes.
fn from_utf8(back: &[u8], text: &[u8], out: &mut Vec<u8>) -> usize {
    debug_assert_eq!(back.len(), 0x1_0000, "each character up to U+FFFF has a place");
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte.is_ascii() {
            out.push(byte);
            at += 1;
            continue;
        }
        match utf8_step(&text[at..]) {
            Utf8Step::Incomplete => break,
            Utf8Step::Invalid { len } => {
                debug_assert!(len > 0, "each step takes bytes");
                out.push(b'?');
                at += len;
            }
            Utf8Step::Char { code, len } => {
                debug_assert!(len > 0, "each step takes bytes");
                match back.get(code as usize).copied().filter(|known| *known != 0) {
                    Some(known) => out.push(known),
                    None => {
                        out.extend_from_slice(b"&#");
                        push_decimal(out, u64::from(code));
                        out.push(b';');
                    }
                }
                at += len;
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io;
    use std::net::IpAddr;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    /// A configuration of one file.
    struct Text(String);

    impl bolide_conf::ConfSource for Text {
        fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
            Ok(self.0.as_bytes().to_vec())
        }

        fn list(&self, _: &Path) -> io::Result<Vec<OsString>> {
            Ok(Vec::new())
        }

        fn resolve(&self, _: &str) -> Vec<IpAddr> {
            Vec::new()
        }
    }

    fn map_of(text: &str) -> Arc<CharsetMap> {
        let text = Text(format!("events {{}} http {{ {text} }}"));
        let options = bolide_conf::LoadOptions::default();
        let config = bolide_conf::parse(&text, Path::new("/a.conf"), &options).config;
        let http = config.and_then(|config| config.http).expect("a configuration without faults");
        http.charsets.maps[0].clone()
    }

    fn recoded(map: &Arc<CharsetMap>, direction: MapDirection, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Recoder::new(map.clone(), direction).feed(text, &mut out);
        out
    }

    #[test]
    fn a_body_is_recoded_in_both_directions() {
        let map = map_of("charset_map a b { E1 C0; 41 80; }");
        assert_eq!(recoded(&map, MapDirection::There, b"A\xe1\xff"), b"\x80\xc0?");
        assert_eq!(recoded(&map, MapDirection::Back, b"\x80\xc0\xffz"), b"A\xe1?z");
    }

    #[test]
    fn a_character_without_code_becomes_an_entity() {
        let map = map_of("charset_map a utf-8 { E1 D090; }");
        assert_eq!(recoded(&map, MapDirection::There, b"A\xe1\xff"), "A\u{410}?".as_bytes());
        let text = "A\u{410}\u{20ac}\u{1f600}z".as_bytes();
        assert_eq!(recoded(&map, MapDirection::Back, text), b"A\xe1&#8364;&#128512;z");
    }

    #[test]
    fn what_is_no_utf_8_is_a_question_mark_and_an_end_is_dropped() {
        let map = map_of("charset_map a utf-8 { E1 D090; }");
        for (text, expected) in [
            (&b"A\xffB\xc0\x80\xd0C"[..], &b"A?B???"[..]),
            (b"\xe2\x82A", b"?"),
            (b"A\xe2ABCD", b"A?BCD"),
            (b"\xf4\xa0\xa0\xa0A", b"?A"),
            (b"\xd0A\xd0\x90B", b"?\xe1B"),
            (b"\x80\xc1A", b"??A"),
            (b"A\xe2\x82", b"A"),
            (b"\xed\xa0\x80", b"&#55296;"),
        ] {
            assert_eq!(recoded(&map, MapDirection::Back, text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            text in prop::collection::vec(
                prop::sample::select(&b"A\xd0\x90\xe2\xf0\xff"[..]),
                0..40,
            ),
            size in 1_usize..5,
        ) {
            let map = map_of("charset_map a utf-8 { E1 D090; }");
            let mut recoder = Recoder::new(map.clone(), MapDirection::Back);
            let mut out = Vec::new();
            text.chunks(size).for_each(|piece| recoder.feed(piece, &mut out));
            prop_assert_eq!(out, recoded(&map, MapDirection::Back, &text));
        }
    }
}
