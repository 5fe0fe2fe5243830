//! A suffix that a text must have for an expression to match, where the expression shows one.
//!
//! Rules out a match without PCRE; reports nothing for expressions that are not plain. Easiest to
//! break: `$` matches before a final line feed as well, which the caller must handle.

/// The literal suffix, with its dot, of an expression like `^/a/.*\.php$`; empty for any other.
pub(super) fn of(source: &[u8]) -> &[u8] {
    let Some(open) = source.strip_suffix(b"$").or(source.strip_suffix(br"\z")) else {
        return &[];
    };
    let is_literal = |byte: &u8| byte.is_ascii_alphanumeric();
    let len = open.iter().rev().take_while(|byte| is_literal(byte)).count();
    let (before, word) = open.split_at(open.len() - len);
    let Some(before) = before.strip_suffix(b"\\.").filter(|_| !word.is_empty()) else {
        return &[];
    };
    if is_plain(before) { &open[before.len() + 1..] } else { &[] }
}

/// Whether the expression after `text` means the same as without it: no alternative, no option, no
/// quotation, and no backslash that consumes the next byte.
fn is_plain(text: &[u8]) -> bool {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let is_known = match byte {
            b'|' => false,
            b'(' => !matches!(bytes.as_slice().first(), Some(b'?' | b'*')),
            b'\\' => matches!(bytes.next(), Some(b'.' | b'/' | b'-' | b'_' | b'd' | b'w' | b's')),
            _ => true,
        };
        if !is_known {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::of;
    use crate::regex::{LetterCase, Regex};

    #[test]
    fn a_plain_expression_tells_its_end() {
        for (source, ending) in [
            (r"\.php$", ".php"),
            (r"^/a/[^/]+\.php7$", ".php7"),
            (r"^(/[\w-]+)*\.html$", ".html"),
            (r"\.php", ""),
            (r"\.$", ""),
            (r".php$", ""),
            (r"\\.php$", ""),
            (r"\c\.php$", ""),
            (r"\Q\.php$", ""),
            (r"a|\.php$", ""),
            (r"(?m)\.php$", ""),
            (r"(*CR)\.php$", ""),
            (r"\.php\z", ".php"),
            (r"\.php\\z", ""),
            (r"\.(jpg|css)$", ""),
            (r"\.php(/|$)", ""),
        ] {
            assert_eq!(of(source.as_bytes()), ending.as_bytes(), "{source}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]
        #[test]
        fn no_text_matches_that_ends_otherwise(
            source in r"([\\.^$|()\[\]*?a-cQE/]|\\\.|\\c){0,6}\\\.(ab|a|b)\$",
            text in r"[\.\\abc/$]{0,5}(\.ab|\.a|\.b|a|ab|)(\n|)",
        ) {
            if let Ok(regex) = Regex::new(source.as_bytes(), LetterCase::Sensitive) {
                let ends = text.trim_end_matches('\n').as_bytes().ends_with(regex.ending());
                prop_assert!(ends || !regex.is_match(text.as_bytes()), "{} {}", source, text);
            }
        }
    }
}
