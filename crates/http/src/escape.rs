//! Escaping for redirects, links, HTML, JSON and log lines, byte for byte as nginx escapes.
//!
//! Every function appends to the caller's buffer; none checks whether its input is well-formed.

use crate::digits::HEX;

/// Which bytes of a URI are percent-encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriPart {
    /// A whole path, for `Location` and upstream requests: slashes stay.
    Path,
    /// A query argument.
    Args,
    /// One path segment or name: everything but RFC 3986's unreserved characters is encoded.
    Component,
}

type Table = [bool; 256];

/// Bytes outside printable ASCII, blank, and those of `also`.
const fn table(also: &[u8]) -> Table {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte <= 0x20 || byte >= 0x7f;
        byte += 1;
    }
    let mut i = 0;
    while i < also.len() {
        table[also[i] as usize] = true;
        i += 1;
    }
    table
}

const PATH: Table = table(b"\"#%<>?\\^`{|}");
const ARGS: Table = table(b"\"#%<>?\\^`{|}&+;");
const COMPONENT: Table = table(b"!\"#$%&'()*+,/:;<=>?@[\\]^`{|}");

impl UriPart {
    const fn table(self) -> &'static Table {
        match self {
            Self::Path => &PATH,
            Self::Args => &ARGS,
            Self::Component => &COMPONENT,
        }
    }
}

/// Appends `text` with the bytes that `part` does not allow as `%XX`.
pub fn push_uri(out: &mut Vec<u8>, text: &[u8], part: UriPart) {
    const UPPER: &[u8; 16] = b"0123456789ABCDEF";
    let table = part.table();
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| table[usize::from(byte)]) {
        let byte = rest[at];
        out.extend_from_slice(&rest[..at]);
        let (high, low) = (UPPER[usize::from(byte >> 4)], UPPER[usize::from(byte & 15)]);
        out.extend_from_slice(&[b'%', high, low]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Whether `text` contains a byte that `part` would encode.
#[must_use]
pub fn needs_uri(text: &[u8], part: UriPart) -> bool {
    let table = part.table();
    text.iter().any(|&byte| table[usize::from(byte)])
}

/// Appends `text` with `<`, `>`, `&` and `"` as entities.
pub fn push_html(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            other => out.push(other),
        }
    }
}

/// Appends `text` as the contents of a JSON string; bytes above 0x7f pass unchanged.
pub fn push_json(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..=0x1f => {
                const UPPER: &[u8; 16] = b"0123456789ABCDEF";
                let (high, low) = (UPPER[usize::from(byte >> 4)], UPPER[usize::from(byte & 15)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            other => out.push(other),
        }
    }
}

/// As [`push_json`]; bytes that are no UTF-8 become U+FFFD (RFC 8259 §8.1).
pub fn push_strict_json(out: &mut Vec<u8>, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        push_json(out, chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Appends `text` in access log form: `"`, `\`, controls and bytes above 0x7e as `\xHH`.
pub fn push_log(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                let (high, low) = (high.to_ascii_uppercase(), low.to_ascii_uppercase());
                out.extend_from_slice(&[b'\\', b'x', high, low]);
            }
            other => out.push(other),
        }
    }
}

/// Escapes the controls in `out` from `start` on as `\xHH`, so that no text can forge a log line or
/// control the reader's terminal: C0, DEL, and C1 both as bare bytes and in UTF-8. Other text stays
/// unchanged.
pub fn escape_controls(out: &mut Vec<u8>, start: usize) {
    if out[start..].iter().all(|byte| !matches!(byte, 0..=0x1f | 0x7f..=0x9f)) {
        return;
    }
    let raw = out.split_off(start);
    for chunk in raw.utf8_chunks() {
        for text in chunk.valid().split_inclusive(char::is_control) {
            let kept = text.trim_end_matches(char::is_control);
            out.extend_from_slice(kept.as_bytes());
            push_log(out, &text.as_bytes()[kept.len()..]);
        }
        for byte in chunk.invalid() {
            match byte {
                0x80..=0x9f => push_log(out, &[*byte]),
                other => out.push(*other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        UriPart, escape_controls, needs_uri, push_html, push_json, push_log, push_strict_json,
        push_uri,
    };
    use proptest::prelude::{any, proptest};

    fn run(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn each_part_encodes_its_own_set() {
        let text = b"/a b%c?d&e+f:g\xc3\xa4~";
        let path = run(|out| push_uri(out, text, UriPart::Path));
        assert_eq!(path, "/a%20b%25c%3Fd&e+f:g%C3%A4~");
        let args = run(|out| push_uri(out, text, UriPart::Args));
        assert_eq!(args, "/a%20b%25c%3Fd%26e%2Bf:g%C3%A4~");
        let name = run(|out| push_uri(out, text, UriPart::Component));
        assert_eq!(name, "%2Fa%20b%25c%3Fd%26e%2Bf%3Ag%C3%A4~");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_in_strict_json() {
        let strict = |text: &[u8]| {
            let mut out = Vec::new();
            push_strict_json(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(strict(b"a\"\xc3\xa4\xff\xe9\x80\n"), "a\\\"\u{e4}\u{fffd}\u{fffd}\\n");
        proptest!(|(text in proptest::collection::vec(any::<u8>(), 0..64))| {
            let out = strict(&text);
            proptest::prop_assert!(out.bytes().all(|byte| byte >= b' '));
            let plain = String::from_utf8_lossy(&text);
            let quotes = plain.matches('"').count();
            proptest::prop_assert_eq!(out.matches('"').count(), quotes);
        });
    }

    #[test]
    fn html_json_and_log_lines_are_made_harmless() {
        assert_eq!(
            run(|out| push_html(out, b"<a href=\"x\">&")),
            "&lt;a href=&quot;x&quot;&gt;&amp;"
        );
        assert_eq!(run(|out| push_json(out, b"a\"\\\n\x01\x08z")), "a\\\"\\\\\\n\\u0001\\bz");
        assert_eq!(run(|out| push_log(out, b"a\"\\\r\x7f~\xff")), "a\\x22\\x5C\\x0D\\x7F~\\xFF");
    }

    #[test]
    fn controls_of_every_kind_are_escaped_and_other_text_stays() {
        let rows: [(&[u8], &[u8]); 6] = [
            (b"plain \"x\\y\"", b"plain \"x\\y\""),
            (b"a\nb\r\0\x1b[31m\x7f", b"a\\x0Ab\\x0D\\x00\\x1B[31m\\x7F"),
            ("a\u{9b}b\u{85}".as_bytes(), b"a\\xC2\\x9Bb\\xC2\\x85"),
            (b"a\x9bb\xff\xe4", b"a\\x9Bb\xff\xe4"),
            ("\u{e9}\u{2603}\u{4e2d}".as_bytes(), "\u{e9}\u{2603}\u{4e2d}".as_bytes()),
            (b"\xc3\n\xe2\x98", b"\xc3\\x0A\xe2\\x98"),
        ];
        for (text, wanted) in rows {
            let mut out = b"\n".to_vec();
            out.extend_from_slice(text);
            escape_controls(&mut out, 1);
            assert_eq!(&out[1..], wanted, "{}", String::from_utf8_lossy(&out));
            assert_eq!(out[0], b'\n');
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_needs_no_more_and_decodes_to_the_same(text: Vec<u8>, pick in 0_u8..3) {
            let part = [UriPart::Path, UriPart::Args, UriPart::Component][usize::from(pick)];
            let mut once = Vec::new();
            push_uri(&mut once, &text, part);
            let percent_free: Vec<u8> = once.iter().copied().filter(|&byte| byte != b'%').collect();
            assert!(!needs_uri(&percent_free, part));
            let (mut decoded, mut rest) = (Vec::new(), &once[..]);
            while let Some((&byte, tail)) = rest.split_first() {
                if byte == b'%' {
                    let digits = std::str::from_utf8(&tail[..2]).unwrap();
                    decoded.push(u8::from_str_radix(digits, 16).unwrap());
                    rest = &tail[2..];
                } else {
                    decoded.push(byte);
                    rest = tail;
                }
            }
            assert_eq!(decoded, text);
        }

        #[test]
        fn a_json_string_never_holds_a_raw_quote_or_control(text in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            push_json(&mut out, &text);
            let mut escaped = false;
            for &byte in &out {
                assert!(byte > 0x1f);
                assert!(escaped || byte != b'"');
                escaped = !escaped && byte == b'\\';
            }
            assert!(!escaped);
        }
    }
}
