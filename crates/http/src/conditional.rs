//! Preconditions (RFC 9110 §13) against a validator: full response, 304 or 412.
//!
//! Owns the comparison and nginx's order: `If-Unmodified-Since`, `If-Match` (strong), then
//! `If-None-Match` (weak), whose presence makes `If-Modified-Since` irrelevant (RFC 9110 §13.1.3).
//! As in nginx, a response without `Last-Modified` evaluates no preconditions, and an
//! `If-Unmodified-Since` that is not a date fails.

use crate::{FieldMap, Name, NameSet, date};

/// How `If-Modified-Since` is compared (`if_modified_since`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModifiedSince {
    /// Not at all: everything counts as modified.
    Off,
    /// Not modified only if the times are equal.
    #[default]
    Exact,
    /// Not modified if the time is that of the response or later.
    Before,
}

/// The validators that the response would carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validator<'a> {
    /// The `ETag`, quotes and a leading `W/` included.
    pub etag: Option<&'a [u8]>,
    /// `Last-Modified` in seconds since 1970.
    pub last_modified: Option<u64>,
}

/// The result of the preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Respond as if there were none.
    Proceed,
    /// 304
    NotModified,
    /// 412
    PreconditionFailed,
}

/// The request fields of conditional and range requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions<'a> {
    /// `If-Match`
    pub if_match: Option<&'a [u8]>,
    /// `If-None-Match`
    pub if_none_match: Option<&'a [u8]>,
    /// `If-Modified-Since`
    pub if_modified_since: Option<&'a [u8]>,
    /// `If-Unmodified-Since`
    pub if_unmodified_since: Option<&'a [u8]>,
    /// `If-Range`
    pub if_range: Option<&'a [u8]>,
    /// `Range`
    pub range: Option<&'a [u8]>,
}

impl<'a> Conditions<'a> {
    /// The first field of each kind.
    #[must_use]
    #[inline]
    pub fn of(fields: &'a FieldMap) -> Self {
        const NAMES: NameSet = NameSet::of(&[
            Name::IfMatch,
            Name::IfNoneMatch,
            Name::IfModifiedSince,
            Name::IfUnmodifiedSince,
            Name::IfRange,
            Name::Range,
        ]);
        if fields.lacks(NAMES) {
            return Self::default();
        }
        Self {
            if_match: fields.get(Name::IfMatch),
            if_none_match: fields.get(Name::IfNoneMatch),
            if_modified_since: fields.get(Name::IfModifiedSince),
            if_unmodified_since: fields.get(Name::IfUnmodifiedSince),
            if_range: fields.get(Name::IfRange),
            range: fields.get(Name::Range),
        }
    }

    /// Evaluates the preconditions of a request whose response would be a 200 with `validator`.
    #[must_use]
    pub fn evaluate(&self, validator: Validator<'_>, since: ModifiedSince) -> Precondition {
        let Some(modified) = validator.last_modified else { return Precondition::Proceed };
        if let Some(text) = self.if_unmodified_since
            && date::parse(text).is_none_or(|date| date < modified)
        {
            return Precondition::PreconditionFailed;
        }
        if let Some(list) = self.if_match
            && !matches(list, validator.etag, Comparison::Strong)
        {
            return Precondition::PreconditionFailed;
        }
        let is_fresh = match (self.if_none_match, self.if_modified_since) {
            (Some(list), _) => matches(list, validator.etag, Comparison::Weak),
            (None, Some(text)) => is_unmodified(text, modified, since),
            (None, None) => false,
        };
        if is_fresh { Precondition::NotModified } else { Precondition::Proceed }
    }

    /// Whether `Range` applies: `If-Range` is absent or names exactly this validator.
    #[must_use]
    pub fn range_applies(&self, validator: Validator<'_>) -> bool {
        let Some(wanted) = self.if_range else { return true };
        if wanted.len() >= 2 && wanted.last() == Some(&b'"') {
            // RFC 9110 §13.1.5: a weak validator never matches here.
            return validator.etag == Some(wanted) && !wanted.starts_with(b"W/");
        }
        validator.last_modified.is_some() && validator.last_modified == date::parse(wanted)
    }
}

fn is_unmodified(text: &[u8], modified: u64, since: ModifiedSince) -> bool {
    match (since, date::parse(text)) {
        (ModifiedSince::Off, _) | (_, None) => false,
        (ModifiedSince::Exact, Some(date)) => date == modified,
        (ModifiedSince::Before, Some(date)) => date >= modified,
    }
}

/// How two entity tags are compared (RFC 9110 §8.8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal, and neither is weak.
    Strong,
    /// Equal apart from `W/`.
    Weak,
}

/// Whether `list`, `*` or a list of entity tags, contains `etag`. `*` matches always, even without
/// an `etag`.
#[must_use]
pub fn matches(list: &[u8], etag: Option<&[u8]>, comparison: Comparison) -> bool {
    if list.trim_ascii() == b"*" {
        return true;
    }
    let Some(etag) = etag else { return false };
    let (is_weak, opaque) = split_weak(etag);
    if is_weak && comparison == Comparison::Strong {
        return false;
    }
    let mut rest = list;
    while let Some(candidate) = next_tag(&mut rest) {
        let (is_weak, candidate) = split_weak(candidate);
        if candidate == opaque && !(is_weak && comparison == Comparison::Strong) {
            return true;
        }
    }
    false
}

fn split_weak(etag: &[u8]) -> (bool, &[u8]) {
    etag.strip_prefix(b"W/").map_or((false, etag), |opaque| (true, opaque))
}

/// Removes the next list element from `rest`; commas inside quotes do not separate.
fn next_tag<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
    let text = &rest[start..];
    let mut quoted = false;
    let end = text.iter().position(|&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    });
    let end = end.unwrap_or(text.len());
    *rest = &text[end..];
    Some(text[..end].trim_ascii_end())
}

#[cfg(test)]
mod tests;
