//! Arguments and cookies by name.

use bolide_http::{FieldMap, Name};

/// The first argument called `name`, in any case.
pub(crate) fn argument<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    if name.is_empty() {
        return None;
    }
    args.split(|byte| *byte == b'&').find_map(|pair| {
        let mark = memchr::memchr(b'=', pair)?;
        pair[..mark].eq_ignore_ascii_case(name).then_some(&pair[mark + 1..])
    })
}

/// The first cookie called `name`.
pub(super) fn cookie<'a>(fields: &'a FieldMap, name: &[u8]) -> Option<&'a [u8]> {
    fields.all(Name::Cookie).find_map(|line| cookie_in(line, name))
}

/// The first cookie called `name` of one field.
pub(crate) fn cookie_in<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    line.split(|byte| *byte == b';').find_map(|pair| {
        let pair = trim_blanks(pair);
        let (start, rest) = pair.split_at_checked(name.len())?;
        // As in nginx, blanks may stand around the mark.
        let value = trim_blanks(rest).strip_prefix(b"=")?;
        start.eq_ignore_ascii_case(name).then(|| trim_blanks(value))
    })
}

const fn trim_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = text {
        text = rest;
    }
    text
}
