//! The inside of a tag: attributes, their escapes, and their meaning.
//!
//! Owns the parsing of `include` and `inline`. Quotes may be double, single or missing; inside JSON
//! strings a backslash precedes quotes and slashes. A URL that could break a request line is
//! refused.

use bolide_http::lscache::LsCacheControl;
use bytes::Bytes;

use crate::program::{Combine, EsiInclude, Inline, OnError, ProblemKind};

/// Whether a tag ends in `/>`.
#[must_use]
pub fn is_empty_element(tag: &[u8]) -> bool {
    tag.ends_with(b"/>")
}

/// The attributes of a tag: names and values as written.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    tag: &'a Bytes,
    at: usize,
    end: usize,
}

impl<'a> Attributes<'a> {
    /// The attributes after the name of a whole tag, which ends at `name_end`.
    #[must_use]
    pub fn new(tag: &'a Bytes, name_end: usize) -> Self {
        let end = tag.strip_suffix(b">").map_or(tag.len(), <[u8]>::len);
        let end = tag[..end].strip_suffix(b"/").map_or(end, <[u8]>::len);
        let end = tag[..end].strip_suffix(b"\\").map_or(end, <[u8]>::len);
        Self { tag, at: name_end.min(end), end: end.max(name_end.min(end)) }
    }

    fn peek(&self) -> Option<u8> {
        self.tag[..self.end].get(self.at).copied()
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) -> usize {
        while self.peek().is_some_and(&is_skipped) {
            self.at += 1;
        }
        self.at
    }

    fn value(&mut self) -> Bytes {
        let mut is_escaped = false;
        if self.peek() == Some(b'\\') && matches!(self.tag.get(self.at + 1), Some(b'"' | b'\'')) {
            is_escaped = true;
            self.at += 1;
        }
        let Some(quote @ (b'"' | b'\'')) = self.peek() else {
            let start = self.at;
            let end = self.skip(|byte| !byte.is_ascii_whitespace());
            return self.tag.slice(start..end);
        };
        let start = self.at + 1;
        let len = memchr::memchr(quote, &self.tag[start..self.end]);
        let close = len.map_or(self.end, |len| start + len);
        self.at = (close + 1).min(self.end);
        let is_backslash = is_escaped && close > start && self.tag[close - 1] == b'\\';
        self.tag.slice(start..if is_backslash { close - 1 } else { close })
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], Bytes);

    fn next(&mut self) -> Option<(&'a [u8], Bytes)> {
        let is_name =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.');
        let start = self.skip(|byte| !is_name(byte));
        let end = self.skip(is_name);
        if start == end {
            return None;
        }
        self.skip(|byte| byte.is_ascii_whitespace());
        let name = &self.tag[start..end];
        if self.peek() != Some(b'=') {
            return Some((name, Bytes::new()));
        }
        self.at += 1;
        self.skip(|byte| byte.is_ascii_whitespace());
        Some((name, self.value()))
    }
}

/// Reads `include`.
///
/// # Errors
///
/// The problem that makes it invalid; it then has no effect.
pub fn include(attributes: Attributes<'_>, value_max: usize) -> Result<EsiInclude, ProblemKind> {
    let mut include = EsiInclude::default();
    let mut src = None;
    for (name, value) in attributes {
        let value = || meaning(&value, value_max);
        match name {
            b"src" if src.is_none() => src = Some(value()?),
            b"alt" => include.alt = Some(address(&value()?)?),
            b"onerror" if *value()? == *b"continue" => include.onerror = OnError::Continue,
            b"cache-control" | b"cache_control" => include.control.add(&value()?),
            b"cache-tag" | b"cache_tag" => include.tags = Some(value()?),
            b"as-var" | b"as_var" => include.as_var = is_set(&value()?),
            b"test" => include.test = Some(value()?),
            b"combine" => {
                include.combine = match &*value()? {
                    b"main" => Combine::Main,
                    b"sub" => Combine::Sub,
                    _ => Combine::Alone,
                }
            }
            _ => {}
        }
    }
    include.src = address(&src.ok_or(ProblemKind::NoAddress)?)?;
    Ok(include)
}

/// Reads `inline`, without its body.
///
/// # Errors
///
/// The problem that makes it invalid; it then has no effect.
pub fn inline(attributes: Attributes<'_>, value_max: usize) -> Result<Inline, ProblemKind> {
    let mut inline = Inline::default();
    let mut uri = None;
    for (name, value) in attributes {
        let value = || meaning(&value, value_max);
        match name {
            b"name" if uri.is_none() => uri = Some(value()?),
            b"cache-control" | b"cache_control" => inline.control = LsCacheControl::of(&value()?),
            b"cache-tag" | b"cache_tag" => inline.tags = Some(value()?),
            _ => {}
        }
    }
    inline.name = address(&uri.ok_or(ProblemKind::NoAddress)?)?;
    Ok(inline)
}

fn is_set(value: &[u8]) -> bool {
    !matches!(value, b"" | b"0" | b"false" | b"off" | b"no")
}

/// A URL fit for a request line: bytes outside ASCII are percent-encoded.
fn address(text: &Bytes) -> Result<Bytes, ProblemKind> {
    let start = text.len() - text.trim_ascii_start().len();
    let trimmed = text.slice(start..start + text.trim_ascii().len());
    if trimmed.is_empty() {
        return Err(ProblemKind::NoAddress);
    }
    if trimmed.iter().any(|&byte| byte <= 0x20 || byte == 0x7f) {
        return Err(ProblemKind::BadAddress);
    }
    if trimmed.is_ascii() {
        return Ok(trimmed);
    }
    let mut out = Vec::with_capacity(trimmed.len() * 2);
    for &byte in &trimmed {
        if byte.is_ascii() {
            out.push(byte);
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'%', high, low]);
        }
    }
    Ok(out.into())
}

/// A value without the escapes of HTML and JSON.
fn meaning(value: &Bytes, value_max: usize) -> Result<Bytes, ProblemKind> {
    if value.len() > value_max {
        return Err(ProblemKind::AttributeTooLong);
    }
    if memchr::memchr2(b'&', b'\\', value).is_none() {
        return Ok(value.clone());
    }
    let mut out = Vec::with_capacity(value.len());
    let mut rest = &value[..];
    while let Some(at) = memchr::memchr2(b'&', b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (byte, len) = match rest {
            [b'\\', b'/', ..] => (b'/', 2),
            [b'&', ..] => entity(rest).unwrap_or((b'&', 1)),
            _ => (rest[0], 1),
        };
        out.push(byte);
        rest = &rest[len..];
    }
    out.extend_from_slice(rest);
    Ok(out.into())
}

/// The ASCII character of the entity at the beginning of `text`, and its length.
fn entity(text: &[u8]) -> Option<(u8, usize)> {
    /// LIMIT: bytes of an entity that are examined: `&#0000038;` and a little.
    const ENTITY_MAX: usize = 12;
    let end = memchr::memchr(b';', &text[..text.len().min(ENTITY_MAX)])?;
    let byte = match &text[1..end] {
        b"amp" => b'&',
        b"lt" => b'<',
        b"gt" => b'>',
        b"quot" => b'"',
        b"apos" => b'\'',
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
        [b'#', digits @ ..] => number(digits, 10)?,
        _ => return None,
    };
    Some((byte, end + 1))
}

fn number(digits: &[u8], radix: u32) -> Option<u8> {
    let number = digits.iter().try_fold(0_u32, |sum, &digit| {
        Some(sum.saturating_mul(radix).saturating_add(char::from(digit).to_digit(radix)?))
    })?;
    u8::try_from(number).ok().filter(|byte| byte.is_ascii() && !digits.is_empty())
}
