//! Regular expressions as in nginx: PCRE on bytes, compiled once, with JIT if possible. The caller
//! decides what a match means.

mod ending;

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use pcre2::bytes;

/// Whether letters match case-insensitively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LetterCase {
    /// `~`
    Sensitive,
    /// `~*`
    Insensitive,
}

/// A compiled regular expression and its source.
#[derive(Clone)]
pub struct Regex {
    source: Arc<[u8]>,
    case: LetterCase,
    compiled: Arc<bytes::Regex>,
}

impl Regex {
    /// Compiles `source`.
    ///
    /// # Errors
    ///
    /// nginx's message: `pcre2_compile() failed: WHY in "RE" at "REST"`.
    pub fn new(source: &[u8], case: LetterCase) -> Result<Self, String> {
        let limit = format!("(*LIMIT_MATCH={})", bolide_base::limits::MATCH_STEPS_MAX);
        let built = bytes::RegexBuilder::new()
            .caseless(case == LetterCase::Insensitive)
            .jit_if_available(true)
            .build(&(limit + &pattern_of(source)));
        match built {
            Ok(compiled) => Ok(Self { source: source.into(), case, compiled: Arc::new(compiled) }),
            Err(error) => Err(message(source, case, error)),
        }
    }

    /// The expression as written, without modifiers.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// Whether letters match in either case.
    #[must_use]
    pub const fn case(&self) -> LetterCase {
        self.case
    }

    /// The compiled form.
    #[must_use]
    pub fn compiled(&self) -> &bytes::Regex {
        &self.compiled
    }

    /// A suffix of every text in which the expression matches, ignoring a final line feed: `.php`
    /// of `\.php$`. Empty if no suffix is obvious.
    #[must_use]
    pub fn ending(&self) -> &[u8] {
        match self.case {
            LetterCase::Sensitive => ending::of(&self.source),
            LetterCase::Insensitive => &[],
        }
    }

    /// Whether it matches somewhere in `text`; a match that takes too many steps counts as none.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.compiled.is_match(text).unwrap_or(false)
    }

    /// Named groups: the group's number and its name.
    pub fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        let names = self.compiled.capture_names().iter().enumerate();
        names.filter_map(|(group, name)| Some((group, name.as_deref()?)))
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.case == LetterCase::Insensitive { "~*" } else { "~" };
        write!(f, "{mark}{}", self.source.escape_ascii())
    }
}

impl Eq for Regex {}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.case == other.case
    }
}

/// The binding accepts UTF-8 only; other bytes become `\xHH`, which means the same to PCRE.
fn pattern_of(source: &[u8]) -> String {
    let mut pattern = String::with_capacity(source.len());
    for chunk in source.utf8_chunks() {
        pattern.push_str(chunk.valid());
        // A backslash before such a byte does not change its meaning.
        let escapes = pattern.bytes().rev().take_while(|byte| *byte == b'\\').count();
        if escapes % 2 == 1 && !chunk.invalid().is_empty() {
            pattern.pop();
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(pattern, "\\x{byte:02x}");
        }
    }
    pattern
}

/// Errors that newer libraries place one byte later than the built-in one.
const PLACED_LATER: [&str; 6] = [
    "quantifier does not follow a repeatable item",
    "range out of order in character class",
    "reference to non-existent subpattern",
    "subpattern name must start with a non-digit",
    "unmatched closing parenthesis",
    "unrecognized character after (? or (?-",
];

fn message(source: &[u8], case: LetterCase, with_limit: pcre2::Error) -> String {
    // Alone it gives the position that nginx reports.
    let mut alone = bytes::RegexBuilder::new();
    let alone = alone.caseless(case == LetterCase::Insensitive).build(&pattern_of(source));
    let error = alone.err().unwrap_or(with_limit);
    let text = error.to_string();
    let why = match text.strip_prefix("PCRE2: error compiling pattern at offset ") {
        Some(rest) => rest.split_once(": ").map_or(rest, |(_, why)| why),
        None => text.strip_prefix("PCRE2: ").unwrap_or(&text),
    };
    let shown = String::from_utf8_lossy(source);
    let later = usize::from(PLACED_LATER.contains(&why));
    match error.offset().map(|offset| offset + later) {
        Some(offset) if offset < source.len() => {
            let rest = String::from_utf8_lossy(&source[offset..]);
            format!("pcre2_compile() failed: {why} in \"{shown}\" at \"{rest}\"")
        }
        _ => format!("pcre2_compile() failed: {why} in \"{shown}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::{LetterCase, Regex};

    #[test]
    fn a_regex_matches_bytes_and_knows_its_names() {
        let regex = Regex::new(b"^/(?<first>[^/]+)/(.*)\\.PHP$", LetterCase::Insensitive).unwrap();
        assert!(regex.is_match(b"/a/\xff.php"));
        assert!(!regex.is_match(b"/a"));
        assert_eq!(regex.names().collect::<Vec<_>>(), [(1, "first")]);
        assert!(Regex::new(b"a\xffb", LetterCase::Sensitive).unwrap().is_match(b"-a\xffb-"));
    }

    #[test]
    fn a_backslash_before_a_byte_that_is_no_text_is_taken_off() {
        let rows: [(&[u8], &[u8], bool); 5] = [
            (b"^a\\\xe9$", b"a\xe9", true),
            (b"^a\\\xe9$", b"a\\xe9", false),
            (b"^a\\\\\xe9$", b"a\\\xe9", true),
            (b"^[\\\xe9\\\xea]+$", b"\xea\xe9", true),
            (b"^[\\\xe9\\\xea]+$", b"x", false),
        ];
        for (pattern, text, is_match) in rows {
            let regex = Regex::new(pattern, LetterCase::Sensitive).unwrap();
            assert_eq!(regex.is_match(text), is_match, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_broken_regex_gives_the_text_that_nginx_gives() {
        let text = Regex::new(b"(abc", LetterCase::Sensitive).unwrap_err();
        assert_eq!(text, "pcre2_compile() failed: missing closing parenthesis in \"(abc\"");
        let text = Regex::new(b"ab(?x", LetterCase::Sensitive).unwrap_err();
        assert!(text.starts_with("pcre2_compile() failed: ") && text.contains("in \"ab(?x\""));
        let text = Regex::new(b"[z-a]x", LetterCase::Sensitive).unwrap_err();
        assert!(text.ends_with("in \"[z-a]x\" at \"-a]x\"") || text.contains(" at \""), "{text}");
    }
}
