//! Expressions that need no PCRE: any text, or a literal with or without anchors. Easiest to break:
//! the result must be PCRE's, to the byte.

use super::Letters;

/// The simple form of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The first bytes of any text, at least and at most this many.
    Start { at_least: usize, at_most: usize },
    /// This literal.
    Text { bytes: Box<[u8]>, begins: bool, ends: bool },
}

impl Shape {
    /// The simple form of `source`, if it has one.
    pub(super) fn new(source: &[u8], letters: Letters) -> Option<Self> {
        let start = |at_least, at_most| Some(Self::Start { at_least, at_most });
        match source {
            b"" | b"^" => return start(0, 0),
            b".?" | b"^.?" => return start(0, 1),
            b"." | b"^." => return start(1, 1),
            b".*" | b"^.*" | b"^.*$" | b".*$" => return start(0, usize::MAX),
            _ => {}
        }
        let (begins, mut rest) = match source {
            [b'^', rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let (mut bytes, mut ends) = (Vec::new(), false);
        while let [first, after @ ..] = rest {
            rest = match (first, after) {
                (b'\\', [escaped, after @ ..]) if is_mark(*escaped) => {
                    bytes.push(*escaped);
                    after
                }
                (b'$', []) => {
                    ends = true;
                    after
                }
                (plain, _) if is_plain(*plain) => {
                    bytes.push(*plain);
                    after
                }
                _ => return None,
            };
        }
        let is_exact = letters == Letters::Exact || !bytes.iter().any(u8::is_ascii_alphabetic);
        is_exact.then(|| Self::Text { bytes: bytes.into(), begins, ends })
    }

    /// Whether it matches one literal only.
    pub(super) const fn is_text(&self) -> bool {
        matches!(self, Self::Text { .. })
    }

    /// The position in `text`, if it matches.
    pub(super) fn find(&self, text: &[u8]) -> Option<(usize, usize)> {
        match self {
            Self::Start { at_least, at_most } => {
                (text.len() >= *at_least).then(|| (0, text.len().min(*at_most)))
            }
            Self::Text { bytes, begins, ends } => {
                let at = match (begins, ends) {
                    (true, true) => (*text == **bytes).then_some(0),
                    (true, false) => text.starts_with(bytes).then_some(0),
                    (false, true) => text.ends_with(bytes).then(|| text.len() - bytes.len()),
                    (false, false) => {
                        text.windows(bytes.len().max(1)).position(|part| *part == **bytes)
                    }
                };
                at.map(|at| (at, at + bytes.len()))
            }
        }
    }
}

/// Whether a byte after a backslash is a literal.
const fn is_mark(byte: u8) -> bool {
    byte.is_ascii_punctuation() || byte == b' '
}

/// Whether a byte is a literal.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'_' | b'-' | b'/' | b' ' | b',' | b':' | b';' | b'=' | b'@' | b'%' | b'&'
        )
        || matches!(byte, b'~' | b'\'' | b'"' | b'!' | b'<' | b'>')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Letters, Shape};
    use crate::effort::Effort;
    use crate::pattern::{Groups, Pattern};

    /// What PCRE finds.
    fn found(source: &str, letters: Letters, text: &[u8]) -> Option<(usize, usize)> {
        let mut pattern = Pattern::new(source.as_bytes(), letters).unwrap();
        pattern.shape = None;
        let mut groups = Groups::default();
        let found = pattern.find(text, &mut groups, &Effort::default()).unwrap();
        found.then(|| groups.span())
    }

    proptest! {
        #[test]
        fn it_finds_what_pcre_finds(
            source in "\\^?([ab/_.*?-]|\\\\[.\\-/ ]){0,4}\\$?",
            text in "[ab/_. \n-]{0,8}",
            is_exact in any::<bool>(),
        ) {
            let letters = if is_exact { Letters::Exact } else { Letters::Any };
            if Pattern::new(source.as_bytes(), letters).is_some()
                && let Some(shape) = Shape::new(source.as_bytes(), letters)
            {
                let seen = shape.find(text.as_bytes());
                prop_assert_eq!(seen, found(&source, letters, text.as_bytes()), "{}", source);
            }
        }
    }

    #[test]
    fn what_sites_write_has_one() {
        let has = |source: &str| Shape::new(source.as_bytes(), Letters::Exact).is_some();
        assert!(
            [".*", ".?", ".", "^", "^index\\.php$", "wp-admin/", "\\.log$"].into_iter().all(has)
        );
        assert!(!["a|b", "[a]", "(a)", "a+", "\\d", "a$b", "^(.*)$"].into_iter().any(has));
        assert_eq!(Shape::new(b"^a", Letters::Any), None);
    }
}
