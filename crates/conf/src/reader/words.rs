//! Values of one or two arguments, and the messages about invalid ones.

use std::borrow::Cow;

use crate::ast::Node;
use crate::directive::DirectiveForm;
use crate::value::{self, Unit};

/// Why a directive was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadFault {
    /// `"NAME" directive TEXT in FILE:LINE`
    Value(&'static str),
    /// `TEXT in FILE:LINE`
    Text(String),
}

/// Whether a directive was accepted.
pub(crate) type ReadResult = Result<(), ReadFault>;

/// `invalid value`, the message of most value readers.
pub(crate) const INVALID: ReadFault = ReadFault::Value("invalid value");
/// A duplicate in the same block.
pub(crate) const DUPLICATE: ReadFault = ReadFault::Value("is duplicate");

/// Bytes as messages show them.
pub(crate) fn show(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A message about an invalid argument.
pub(crate) fn invalid_parameter(word: &[u8]) -> ReadFault {
    ReadFault::Text(format!("invalid parameter \"{}\"", show(word)))
}

/// A message about an unknown value.
pub(crate) fn invalid_value(word: &[u8]) -> ReadFault {
    ReadFault::Text(format!("invalid value \"{}\"", show(word)))
}

/// `on` or `off`, in any case.
pub(crate) fn flag(name: &str, word: &[u8]) -> Result<bool, ReadFault> {
    if word.eq_ignore_ascii_case(b"on") {
        return Ok(true);
    }
    if word.eq_ignore_ascii_case(b"off") {
        return Ok(false);
    }
    let word = show(word);
    let rest = "it must be \"on\" or \"off\"";
    Err(ReadFault::Text(format!("invalid value \"{word}\" in \"{name}\" directive, {rest}")))
}

/// A number between bounds.
pub(crate) fn bounded(word: &[u8], min: u32, max: u32) -> Result<u32, ReadFault> {
    let number = value::number(word).ok_or(ReadFault::Value("invalid number"))?;
    match u32::try_from(number) {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ if max == u32::MAX && min > 0 => {
            Err(ReadFault::Text(format!("value must be equal to or greater than {min}")))
        }
        // Too large a number counts as the largest.
        _ if max == u32::MAX => Ok(u32::MAX),
        _ => Err(ReadFault::Text(format!("value must be between {min} and {max}"))),
    }
}

/// Bytes in memory.
pub(crate) fn size(word: &[u8]) -> Result<usize, ReadFault> {
    value::size(word).and_then(|size| usize::try_from(size).ok()).ok_or(INVALID)
}

/// Number and size of buffers.
pub(crate) fn buffers(node: &Node) -> Result<(u32, usize), ReadFault> {
    let count = value::number(node.arg(0));
    let size = size(node.arg(1))?;
    match count {
        // Too large a count counts as the largest.
        Some(count) if count > 0 && size > 0 => {
            Ok((u32::try_from(count).unwrap_or(u32::MAX), size))
        }
        _ => Err(INVALID),
    }
}

pub(super) fn check_form(name: &str, form: DirectiveForm, word: &[u8]) -> ReadResult {
    let fits = match form {
        DirectiveForm::Any | DirectiveForm::Check(_) => true,
        DirectiveForm::Flag => return flag(name, word).map(|_| ()),
        DirectiveForm::Number => return bounded(word, 0, u32::MAX).map(|_| ()),
        DirectiveForm::Size => value::size(word).is_some(),
        DirectiveForm::Offset => value::offset(word).is_some(),
        DirectiveForm::Millis => value::time(word, Unit::Millis).is_some(),
        DirectiveForm::OneOf(words) => {
            let known = words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
            return if known { Ok(()) } else { Err(invalid_value(word)) };
        }
    };
    if fits { Ok(()) } else { Err(INVALID) }
}
