//! Parses `Substitute`, `SubstituteMaxLineLength` and `SubstituteInheritBefore`.

use std::sync::Arc;

use super::{LINE_MAX_MAX, LineRule, RULES_MAX, ReplacementPart, SubstituteSettings};
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;
use crate::pattern::{Letters, Pattern};

fn one(name: &str, arguments: &[u8]) -> ParseResult<Vec<u8>> {
    let mut words = ArgumentWords::new(arguments);
    match (words.next_word(), words.rest()) {
        (Some(word), []) => Ok(word),
        _ => Err(format!("{name} takes one argument")),
    }
}

/// `Substitute s/PATTERN/TEXT/[infq]`
pub(crate) fn substitute(own: &mut SubstituteSettings, arguments: &[u8]) -> ParseResult<()> {
    let word = one("Substitute", arguments)?;
    if own.rules.len() >= RULES_MAX {
        return Err(format!("more than {RULES_MAX} lines of Substitute"));
    }
    own.rules.push(Arc::new(LineRule::parse(&word)?));
    Ok(())
}

/// `SubstituteInheritBefore on|off`
pub(crate) fn inherit_before(own: &mut SubstituteSettings, is_on: bool) {
    own.inherits_before = Some(is_on);
}

/// `SubstituteMaxLineLength BYTES`, with a unit.
pub(crate) fn line_max(own: &mut SubstituteSettings, arguments: &[u8]) -> ParseResult<()> {
    let word = one("SubstituteMaxLineLength", arguments)?;
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = word.split_at(digits);
    let shift = match unit {
        b"" | b"b" | b"B" => 0,
        b"k" | b"K" => 10,
        b"m" | b"M" => 20,
        b"g" | b"G" => 30,
        _ => return Err(not_a_size()),
    };
    let number = std::str::from_utf8(number).ok().and_then(|text| text.parse::<usize>().ok());
    let bytes = number.and_then(|number| number.checked_mul(1 << shift)).ok_or_else(not_a_size)?;
    if bytes > LINE_MAX_MAX {
        return Err("SubstituteMaxLineLength can be 4m at most here".to_owned());
    }
    own.line_max = Some(bytes);
    Ok(())
}

fn not_a_size() -> String {
    "SubstituteMaxLineLength must be a non-negative integer optionally suffixed with 'b', 'k', 'm' \
     or 'g'."
        .to_owned()
}

/// The texts before and after the next `mark`, which cannot be escaped.
fn cut(text: &[u8], mark: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == mark)?;
    Some((&text[..at], &text[at + 1..]))
}

impl LineRule {
    /// Parses `s/PATTERN/TEXT/FLAGS`, with any delimiter in place of the slash.
    pub(super) fn parse(word: &[u8]) -> ParseResult<Self> {
        let [b's' | b'S', rest @ ..] = word else {
            return Err("Bad Substitute format, must be an s/// pattern".to_owned());
        };
        let incomplete = || "Bad Substitute format, must be a complete s/// pattern".to_owned();
        let (mark, rest) = rest.split_first().ok_or_else(incomplete)?;
        let (from, rest) = cut(rest, *mark).ok_or_else(incomplete)?;
        if from.is_empty() {
            return Err(incomplete());
        }
        let (to, flags) = cut(rest, *mark).unwrap_or((rest, b""));
        let (mut letters, mut is_regex, mut is_flat) = (Letters::Exact, true, true);
        for flag in flags.to_ascii_lowercase() {
            match flag {
                b'i' => letters = Letters::Any,
                b'n' => is_regex = false,
                b'f' => is_flat = true,
                b'q' => is_flat = false,
                _ => {
                    return Err("Bad Substitute flag, only s///[infq] are supported".to_owned());
                }
            }
        }
        let source = if is_regex { from.to_vec() } else { literal(from) };
        let pattern = Pattern::of_line(&source, letters)
            .ok_or_else(|| format!("Substitute could not compile regex '{}'", shown(from)))?;
        let with = if is_regex { parts(to) } else { vec![ReplacementPart::Text(to.into())] };
        Ok(Self { pattern, with, is_flat })
    }
}

/// The expression for a literal.
fn literal(text: &[u8]) -> Vec<u8> {
    let mut source = Vec::with_capacity(text.len() + 8);
    for &byte in text {
        if byte.is_ascii_punctuation() {
            source.push(b'\\');
        }
        source.push(byte);
    }
    source
}

/// The replacement: `$n` is a capture, and a backslash makes the next character literal.
fn parts(source: &[u8]) -> Vec<ReplacementPart> {
    let (mut parts, mut text, mut rest) = (Vec::new(), Vec::new(), source);
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'$', [digit @ b'0'..=b'9', behind @ ..]) => {
                if !text.is_empty() {
                    parts.push(ReplacementPart::Text(std::mem::take(&mut text).into()));
                }
                parts.push(ReplacementPart::Group(digit - b'0'));
                behind
            }
            (b'\\', [escaped, behind @ ..]) => {
                text.push(*escaped);
                behind
            }
            (plain, behind) => {
                text.push(*plain);
                behind
            }
        };
    }
    if !text.is_empty() {
        parts.push(ReplacementPart::Text(text.into()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::SubstituteSettings;
    use super::{LineRule, line_max, substitute};

    #[test]
    fn what_is_no_whole_substitution_is_refused() {
        let rows = [
            ("s/a/b/", true),
            ("S|a|b|nIq", true),
            ("s/a/b", true),
            ("s/a//", true),
            ("s/a", false),
            ("s//b/", false),
            ("s", false),
            ("x/a/b/", false),
            ("s/a/b/g", false),
            ("s/(/b/", false),
            ("s/(/b/n", true),
        ];
        for (text, is_good) in rows {
            assert_eq!(LineRule::parse(text.as_bytes()).is_ok(), is_good, "{text}");
        }
        assert!(LineRule::parse(b"s/\xfc+/ue/").is_ok(), "bytes that are no UTF-8");
        let mut own = SubstituteSettings::default();
        assert!(substitute(&mut own, b"\"s/a b/c d/\"").is_ok());
        assert!(substitute(&mut own, b"s/a b/c/").is_err());
        assert!(substitute(&mut own, b"").is_err());
    }

    #[test]
    fn a_length_has_a_unit_and_a_bound() {
        let rows = [
            ("10", Some(10)),
            ("2k", Some(2048)),
            ("1M", Some(1024 * 1024)),
            ("4m", Some(4 * 1024 * 1024)),
            ("5m", None),
            ("1x", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("9999999999999999g", None),
        ];
        for (text, wanted) in rows {
            let mut own = SubstituteSettings::default();
            let read = line_max(&mut own, text.as_bytes());
            assert_eq!(read.ok().and(own.line_max), wanted, "{text}");
        }
    }
}
