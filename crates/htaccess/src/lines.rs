//! Lines and words of a file, as Apache reads them: continuation, comments, quotes.

use std::borrow::Cow;

/// The lines of a file without comments and empty lines, each with the number of its first line.
#[derive(Debug)]
pub struct Lines<'a> {
    rest: &'a [u8],
    number: u32,
}

impl<'a> Lines<'a> {
    /// The lines of `text`.
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Self {
        Self { rest: text, number: 0 }
    }

    /// One line as written, without its end.
    fn raw(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let (line, rest) = match self.rest.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &b""[..]),
        };
        self.rest = rest;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u32, Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let raw = self.raw()?;
            let first = self.number;
            let line = match raw.strip_suffix(b"\\") {
                None => Cow::Borrowed(raw.trim_ascii()),
                Some(begun) => {
                    let mut whole = begun.to_vec();
                    while let Some(next) = self.raw() {
                        match next.strip_suffix(b"\\") {
                            Some(part) => whole.extend_from_slice(part),
                            None => {
                                whole.extend_from_slice(next);
                                break;
                            }
                        }
                    }
                    Cow::Owned(whole.trim_ascii().to_vec())
                }
            };
            if !line.is_empty() && line[0] != b'#' {
                return Some((first, line));
            }
        }
    }
}

/// The arguments of a directive, word by word.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentWords<'a> {
    rest: &'a [u8],
}

impl<'a> ArgumentWords<'a> {
    /// The words of `text`.
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Self {
        Self { rest: text.trim_ascii_start() }
    }

    /// The rest, as written.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next word that is not empty, or an empty one in quotes.
    pub fn next_word(&mut self) -> Option<Vec<u8>> {
        let first = *self.rest.first()?;
        let (word, rest) = match first {
            b'"' | b'\'' => self.quoted(first),
            _ => {
                let end = self.rest.iter().position(u8::is_ascii_whitespace);
                let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                (unescaped(word, None), rest)
            }
        };
        self.rest = rest.trim_ascii_start();
        Some(word)
    }

    /// A quoted word; without a closing quote it is the rest.
    fn quoted(&self, quote: u8) -> (Vec<u8>, &'a [u8]) {
        let inner = &self.rest[1..];
        let mut at = 0;
        while at < inner.len() && inner[at] != quote {
            let escapes = inner[at] == b'\\'
                && inner.get(at + 1).is_some_and(|next| *next == quote || *next == b'\\');
            at += if escapes { 2 } else { 1 };
        }
        let end = at.min(inner.len());
        let rest = inner.get(end + 1..).unwrap_or_default();
        (unescaped(&inner[..end], Some(quote)), rest)
    }
}

impl Iterator for ArgumentWords<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.next_word()
    }
}

/// `word` without the backslashes before backslashes and the quote.
fn unescaped(word: &[u8], quote: Option<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut at = 0;
    while at < word.len() {
        let next = word.get(at + 1).copied();
        if word[at] == b'\\' && next.is_some_and(|next| next == b'\\' || Some(next) == quote) {
            at += 1;
        }
        out.push(word[at]);
        at += 1;
    }
    out
}

/// One argument of mod_rewrite from `text` on, and the rest after it: quotes or a backslash include
/// blanks, and backslashes stay. None at the end.
pub(crate) fn rewrite_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let first = *text.first()?;
    let quote = matches!(first, b'"' | b'\'').then_some(first);
    let inner = if quote.is_some() { &text[1..] } else { text };
    let mut at = 0;
    while at < inner.len() {
        let byte = inner[at];
        if quote == Some(byte) || quote.is_none() && byte.is_ascii_whitespace() {
            break;
        }
        let escapes = byte == b'\\' && inner.get(at + 1).is_some_and(u8::is_ascii_whitespace);
        at += if escapes { 2 } else { 1 };
    }
    let rest = inner.get(at + 1..).unwrap_or_default();
    Some((&inner[..at.min(inner.len())], rest))
}

#[cfg(test)]
mod tests {
    use super::{ArgumentWords, Lines, rewrite_word};

    fn lines(text: &str) -> Vec<(u32, String)> {
        let all = Lines::new(text.as_bytes());
        all.map(|(number, line)| (number, String::from_utf8(line.into_owned()).unwrap())).collect()
    }

    #[test]
    fn lines_are_continued_and_comments_too() {
        let text = "a 1\r\n\n# c \\\n  gone\n  b \\\n  2\nlast";
        let wanted = [(1, "a 1"), (5, "b   2"), (7, "last")];
        assert_eq!(lines(text), wanted.map(|(number, line)| (number, line.to_owned())));
    }

    #[test]
    fn words_know_quotes_and_backslashes() {
        let rows: [(&str, &[&str]); 6] = [
            ("a  b\tc", &["a", "b", "c"]),
            ("\"a b\" 'c d'", &["a b", "c d"]),
            (r#""a \"b\" \\ \n" x"#, &[r#"a "b" \ \n"#, "x"]),
            (r"\.php$ \\x", &[r"\.php$", r"\x"]),
            ("\"open to the end", &["open to the end"]),
            ("\"\" b", &["", "b"]),
        ];
        for (text, wanted) in rows {
            let words: Vec<_> = ArgumentWords::new(text.as_bytes())
                .map(|word| String::from_utf8(word).unwrap())
                .collect();
            assert_eq!(words, wanted, "{text}");
        }
    }

    #[test]
    fn an_argument_of_a_rule_keeps_its_backslashes() {
        let (word, rest) = rewrite_word(br"^a\ b\\$ x").unwrap();
        assert_eq!((word, rest), (&br"^a\ b\\$"[..], &b"x"[..]));
        let (word, rest) = rewrite_word(b" \"a b\" [L]").unwrap();
        assert_eq!((word, rest), (&b"a b"[..], &b" [L]"[..]));
        assert_eq!(rewrite_word(b"  "), None);
    }
}
