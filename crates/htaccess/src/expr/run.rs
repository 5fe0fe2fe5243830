//! Evaluates expressions.

use super::{Expr, ExprWord, GlobKind, TextFunction, WordTest};
use crate::effort::Effort;
use crate::pattern::{Groups, fits_within};
use crate::world::{Evaluation, Stop};

/// Whether each component of a path matches that of `glob`.
fn path_fits(glob: &[u8], text: &[u8], effort: &Effort) -> Result<bool, Stop> {
    let (mut globs, mut parts) = (glob.split(is_slash), text.split(is_slash));
    loop {
        match (globs.next(), parts.next()) {
            (Some(glob), Some(part)) if fits_within(glob, part, effort)? => {}
            (None, None) => return Ok(true),
            _ => return Ok(false),
        }
    }
}

const fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

impl Expr {
    /// Whether it holds.
    pub(crate) fn holds(&self, by: &mut Evaluation<'_>) -> Result<bool, Stop> {
        self.holds_with(by, &mut Groups::default())
    }

    /// As [`Self::holds`]; `groups` has the captures of the last match.
    pub(crate) fn holds_with(
        &self,
        by: &mut Evaluation<'_>,
        groups: &mut Groups,
    ) -> Result<bool, Stop> {
        by.effort.spend_part()?;
        let holds = self.judge(by, groups)?;
        // A comparison with a text that could not be generated means nothing.
        by.effort.check()?;
        Ok(holds)
    }

    fn judge(&self, by: &mut Evaluation<'_>, groups: &mut Groups) -> Result<bool, Stop> {
        Ok(match self {
            Self::True => true,
            Self::False => false,
            Self::Not(inner) => !inner.holds_with(by, groups)?,
            Self::And(all) => {
                for one in all {
                    if !one.holds_with(by, groups)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Or(all) => {
                for one in all {
                    if one.holds_with(by, groups)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Text(left, order, right) => {
                let (left, right) = (left.value(by, groups), right.value(by, groups));
                order.holds(left.cmp(&right))
            }
            Self::Sized(left, order, right) => {
                let (left, right) = (left.value(by, groups), right.value(by, groups));
                order.holds((left.len(), left).cmp(&(right.len(), right)))
            }
            Self::Number(left, order, right) => {
                let number = |text: &[u8]| leading_number(text);
                let (left, right) = (left.value(by, groups), right.value(by, groups));
                order.holds(number(&left).cmp(&number(&right)))
            }
            Self::Match { word, pattern, negated } => {
                let text = word.value(by, groups);
                pattern.find(&text, groups, by.effort)? != *negated
            }
            Self::In(word, list) => {
                let text = word.value(by, groups);
                list.iter().any(|one| one.value(by, groups) == text)
            }
            Self::Address(word, network) => {
                let text = word.value(by, groups);
                let address = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
                address.is_some_and(|address| network.contains(address))
            }
            Self::Client(network) => {
                by.world.client().is_some_and(|address| network.contains(address))
            }
            Self::Glob { word, glob, kind } => {
                let (mut text, mut glob) = (word.value(by, groups), glob.value(by, groups));
                if *kind == GlobKind::AnyCase {
                    text.make_ascii_lowercase();
                    glob.make_ascii_lowercase();
                }
                match kind {
                    GlobKind::Exact | GlobKind::AnyCase => fits_within(&glob, &text, by.effort)?,
                    GlobKind::Path => path_fits(&glob, &text, by.effort)?,
                }
            }
            Self::Is(test, word) => {
                let text = word.value(by, groups);
                match test {
                    WordTest::Empty => text.is_empty(),
                    WordTest::NotEmpty => !text.is_empty(),
                    WordTest::Truth => {
                        let lower = text.to_ascii_lowercase();
                        !matches!(&lower[..], b"" | b"0" | b"off" | b"false" | b"no")
                    }
                    WordTest::File(test) => by.world.test(*test, &text)?,
                }
            }
        })
    }
}

impl ExprWord {
    /// Its value.
    pub(crate) fn value(&self, by: &mut Evaluation<'_>, groups: &Groups) -> Vec<u8> {
        let mut out = Vec::new();
        self.push(by, groups, &mut out);
        out
    }

    fn push(&self, by: &mut Evaluation<'_>, groups: &Groups, out: &mut Vec<u8>) {
        // The caller notices that no steps were left.
        if by.effort.spend_part().is_err() {
            return;
        }
        let start = out.len();
        self.push_some(by, groups, out);
        by.effort.spend(out.len() - start);
    }

    fn push_some(&self, by: &mut Evaluation<'_>, groups: &Groups, out: &mut Vec<u8>) {
        match self {
            Self::Fixed(text) => out.extend_from_slice(text),
            Self::Group(number) => out.extend_from_slice(groups.of(usize::from(*number))),
            Self::Join(parts) => parts.iter().for_each(|part| part.push(by, groups, out)),
            Self::ContentType => {
                if let Some(response) = &by.response {
                    out.extend_from_slice(&response.media_type);
                }
            }
            Self::Status => {
                let status = by.response.as_ref().map_or(200, |response| response.status);
                out.extend_from_slice(status.to_string().as_bytes());
            }
            Self::Of(variable) => {
                if let Some(name) = variable.header() {
                    by.vary_by(name);
                }
                variable.push(by, out);
            }
            Self::Call(function, word) => {
                let argument = word.value(by, groups);
                match function {
                    TextFunction::Header => {
                        by.vary_by(&argument);
                        by.world.header(&argument, out);
                    }
                    TextFunction::HeaderUnvaried => {
                        by.world.header(&argument, out);
                    }
                    TextFunction::ResponseField => {
                        // As in Apache, the type is no field yet.
                        if let Some(response) = &by.response
                            && !argument.eq_ignore_ascii_case(b"content-type")
                        {
                            let lines: Vec<&[u8]> = response.fields.all_text(&argument).collect();
                            out.extend_from_slice(&lines.join(&b", "[..]));
                        }
                    }
                    TextFunction::Env => {
                        out.extend_from_slice(by.env.of(&argument).unwrap_or_default());
                    }
                    TextFunction::ToLower => out.extend(argument.to_ascii_lowercase()),
                    TextFunction::ToUpper => out.extend(argument.to_ascii_uppercase()),
                    TextFunction::Escape => crate::escape::push_hex(
                        &argument,
                        |byte| byte.is_ascii_alphanumeric() || b"$-_.+!*'(),:@&=/~".contains(&byte),
                        out,
                    ),
                    TextFunction::Unescape => crate::escape::push_decoded(&argument, out),
                }
            }
        }
    }
}

/// The number at the start of `text`, as C's `atoi` parses it.
pub(crate) fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let size = digits
        .fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    if negative { -size } else { size }
}
