//! Expressions of Apache's in nginx's words. Apache compiles all of them with `DOTALL` and
//! `DOLLAR_ENDONLY`, nginx with neither: without this, a line feed in a path (`%0a`) hides the rest
//! of it from a rule. Whatever copies an expression goes by [`quoted_regex`].

use crate::words::in_quotes;

/// `regex` in quotes, with the meaning that it has in Apache.
pub(crate) fn quoted_regex(regex: &str) -> String {
    in_quotes(&of_apache(regex))
}

/// `regex` with the meaning that it has in Apache: a dot finds line feeds, too, and `$` is behind
/// the last one.
pub(crate) fn of_apache(regex: &str) -> String {
    let mut reader = RegexReader { rest: regex, out: String::with_capacity(regex.len() + 8) };
    // What the library itself is told stands before everything else.
    while reader.rest.starts_with("(*") {
        reader.copy(reader.rest.find(')').map_or(reader.rest.len(), |end| end + 1));
    }
    let told = reader.out.len();
    let (has_dot, is_of_lines) = reader.parts();
    // With `(?m)` a `$` is that of a line in Apache, too.
    let mut out = if is_of_lines { regex.to_owned() } else { reader.out };
    if has_dot && !out[told..].starts_with(DOTALL) {
        out.insert_str(told, DOTALL);
    }
    out
}

/// From here on a dot finds line feeds.
const DOTALL: &str = "(?s)";

struct RegexReader<'a> {
    rest: &'a str,
    out: String,
}

impl RegexReader<'_> {
    fn copy(&mut self, len: usize) {
        let (part, rest) = self.rest.split_at(len);
        self.out.push_str(part);
        self.rest = rest;
    }

    /// Copies the rest with each `$` as `\z`. Returns whether a dot stands for any byte, and
    /// whether an option makes `$` the end of a line.
    fn parts(&mut self) -> (bool, bool) {
        let (mut has_dot, mut is_of_lines) = (false, false);
        while let Some(first) = self.rest.chars().next() {
            match first {
                '\\' if self.rest.starts_with("\\Q") => {
                    self.copy(self.rest.find("\\E").unwrap_or(self.rest.len()));
                }
                '\\' => {
                    let next = self.rest[1..].chars().next().map_or(0, char::len_utf8);
                    self.copy(1 + next);
                }
                '[' => self.copy(class_len(self.rest)),
                '$' => {
                    self.rest = &self.rest[1..];
                    let is_repeated = self.rest.starts_with(['*', '+', '?', '{']);
                    self.out.push_str(if is_repeated { "(?:\\z)" } else { "\\z" });
                }
                _ => {
                    has_dot |= first == '.';
                    is_of_lines |= has_line_option(self.rest);
                    self.copy(first.len_utf8());
                }
            }
        }
        (has_dot, is_of_lines)
    }
}

/// Whether a group with options, such as `(?im)`, begins here and has `$` mean the end of a line.
fn has_line_option(rest: &str) -> bool {
    let Some(options) = rest.strip_prefix("(?") else { return false };
    let is_option = |one: char| one.is_ascii_alphabetic() || one == '^';
    let len = options.find(|one| !is_option(one)).unwrap_or(options.len());
    options[len..].starts_with([')', ':', '-']) && options[..len].contains('m')
}

/// The length of the class that `rest` begins with, up to its `]`.
fn class_len(rest: &str) -> usize {
    let mut at = 1 + usize::from(rest[1..].starts_with('^'));
    // As the first one it is a member.
    at += usize::from(rest[at..].starts_with(']'));
    while let Some(one) = rest[at..].chars().next() {
        at += match one {
            ']' => return at + 1,
            '\\' => 1 + rest[at + 1..].chars().next().map_or(0, char::len_utf8),
            '[' if rest[at..].starts_with("[:") => rest[at..].find(":]").map_or(1, |len| len + 2),
            one => one.len_utf8(),
        };
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::of_apache;

    #[test]
    fn line_feeds_are_found_as_apache_finds_them() {
        let rows = [
            (r"^/x\.php(.*)$", r"(?s)^/x\.php(.*)\z"),
            (r"\.php(?:/|$)", r"\.php(?:/|\z)"),
            (r"[.$]x", r"[.$]x"),
            (r"[]$.][^]$.]$", r"[]$.][^]$.]\z"),
            (r"[[:alpha:].$]$", r"[[:alpha:].$]\z"),
            (r"a\$\\$", r"a\$\\\z"),
            (r"\Q.$\E.$", r"(?s)\Q.$\E.\z"),
            (r"(?i)^a.$", r"(?s)(?i)^a.\z"),
            (r"(?im)^a.$", r"(?s)(?im)^a.$"),
            (r"(?-m:a$)", r"(?-m:a\z)"),
            (r"(*ANYCRLF)a.$", r"(*ANYCRLF)(?s)a.\z"),
            (r"(a$)?b$?", r"(a\z)?b(?:\z)?"),
            ("^", "^"),
            ("[", "["),
            ("\\", "\\"),
            ("ü$", "ü\\z"),
        ];
        for (regex, wanted) in rows {
            assert_eq!(of_apache(regex), wanted);
        }
    }

    proptest! {
        /// What is written once means the same when it is written again.
        #[test]
        fn it_is_done_once(regex in r"(\(\*A\))?([a.$\\Q\[\]()?:mE^ü|]|\(\?m\)){0,12}") {
            let once = of_apache(&regex);
            prop_assert_eq!(of_apache(&once), once);
        }
    }
}
