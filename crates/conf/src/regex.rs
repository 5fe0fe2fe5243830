//! Regular expressions as in nginx: PCRE on bytes, compiled once, with JIT if possible. The caller
//! decides what a match means.

mod ending;

use std::fmt;
use std::sync::Arc;

use bolide_regex::{CompileError, MatchWork, Pcre, PcreOptions};

pub use bolide_regex::{GroupSpans, MatchError};

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
    case: LetterCase,
    compiled: Arc<Pcre>,
}

impl Regex {
    /// Compiles `source`.
    ///
    /// # Errors
    ///
    /// nginx's message: `pcre2_compile() failed: WHY in "RE" at "REST"`.
    pub fn new(source: &[u8], case: LetterCase) -> Result<Self, String> {
        let options =
            PcreOptions { caseless: case == LetterCase::Insensitive, ..PcreOptions::trusted() };
        match Pcre::new(source, options) {
            Ok(compiled) => Ok(Self { case, compiled: Arc::new(compiled) }),
            Err(error) => Err(message(source, &error)),
        }
    }

    /// The expression as written, without modifiers.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        self.compiled.source()
    }

    /// Whether letters match in either case.
    #[must_use]
    pub const fn case(&self) -> LetterCase {
        self.case
    }

    /// Groups, the whole match among them.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.compiled.groups()
    }

    /// A suffix of every text in which the expression matches, ignoring a final line feed: `.php`
    /// of `\.php$`. Empty if no suffix is obvious.
    #[must_use]
    pub fn ending(&self) -> &[u8] {
        match self.case {
            LetterCase::Sensitive => ending::of(self.source()),
            LetterCase::Insensitive => &[],
        }
    }

    /// Whether it matches somewhere in `text`; a match that takes too many steps counts as none.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.matches(text).unwrap_or(false)
    }

    /// Whether it matches somewhere in `text`.
    ///
    /// # Errors
    ///
    /// The match takes more than [`MATCH_STEPS_MAX`](bolide_base::limits::MATCH_STEPS_MAX) steps.
    pub fn matches(&self, text: &[u8]) -> Result<bool, MatchError> {
        self.compiled.is_match(text, &mut MatchWork::default())
    }

    /// The same; on a match `spans` has where its groups lie, and stays as it was otherwise.
    ///
    /// # Errors
    ///
    /// As [`Regex::matches`].
    pub fn find(&self, text: &[u8], spans: &mut GroupSpans) -> Result<bool, MatchError> {
        self.compiled.find(text, spans, &mut MatchWork::default())
    }

    /// Named groups: the group's number and its name.
    pub fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.compiled.names()
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.case == LetterCase::Insensitive { "~*" } else { "~" };
        write!(f, "{mark}{}", self.source().escape_ascii())
    }
}

impl Eq for Regex {}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source() && self.case == other.case
    }
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

fn message(source: &[u8], error: &CompileError) -> String {
    let why = &error.message;
    let shown = String::from_utf8_lossy(source);
    let offset = error.offset + usize::from(PLACED_LATER.contains(&why.as_str()));
    if offset >= source.len() {
        return format!("pcre2_compile() failed: {why} in \"{shown}\"");
    }
    let rest = String::from_utf8_lossy(&source[offset..]);
    format!("pcre2_compile() failed: {why} in \"{shown}\" at \"{rest}\"")
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
