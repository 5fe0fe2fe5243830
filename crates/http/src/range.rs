//! `Range: bytes=…` (RFC 9110 §14) as nginx parses it, and the texts of a partial response.
//!
//! Never yields a range outside the representation. The caller decides whether a range applies at
//! all (method, status, `If-Range`).

use crate::digits::{Decimal, push_decimal};

/// Bytes `start..end` of a representation; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl ByteRange {
    /// Bytes in the range.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a byte range is never empty")]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }
}

/// The result of a `Range` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeOutcome {
    /// Ignore it and send everything (200).
    Whole,
    /// Send the ranges (206).
    Partial,
    /// No byte can be sent (416 with [`push_unsatisfied`]).
    Unsatisfiable,
}

/// The largest number nginx accepts, that of a signed file offset.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// The start of the first range of a `Range` field; `None` if it is a suffix range or not a byte
/// range.
#[must_use]
pub fn first_byte(field: &[u8]) -> Option<u64> {
    let (unit, rest) = field.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut scan = Scan(rest);
    scan.skip_blanks();
    scan.number()
}

struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn skip_blanks(&mut self) {
        while let [b' ', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    /// One or more digits; `None` also when the number is out of range.
    fn number(&mut self) -> Option<u64> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let (text, rest) = self.0.split_at(digits);
        self.0 = rest;
        let number = text.iter().try_fold(0_u64, |number, &digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        });
        number.filter(|&number| number <= OFFSET_MAX)
    }

    fn at_end_of_spec(&self) -> bool {
        matches!(self.0, [] | [b',', ..])
    }

    /// One element of the list as an unchecked `start..end`; `None` if it is malformed.
    fn spec(&mut self, length: u64) -> Option<(u64, u64)> {
        self.skip_blanks();
        if let [b'-', rest @ ..] = self.0 {
            self.0 = rest;
            let suffix = self.number()?;
            self.skip_blanks();
            return self.at_end_of_spec().then_some((length.saturating_sub(suffix), length));
        }
        let start = self.number()?;
        self.skip_blanks();
        let [b'-', rest @ ..] = self.0 else { return None };
        self.0 = rest;
        self.skip_blanks();
        if self.at_end_of_spec() {
            return Some((start, length));
        }
        let last = self.number()?;
        self.skip_blanks();
        self.at_end_of_spec().then_some((start, last.saturating_add(1).min(length)))
    }
}

/// The value of `Content-Range` (RFC 9110 §14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The first byte of the content.
    pub start: u64,
    /// One past the last byte; it may precede the first one in a malformed field.
    pub end: u64,
    /// Bytes of the whole representation, if they are known.
    pub whole: Option<u64>,
}

/// Reads `Content-Range: bytes 0-99/1000` with the blanks that nginx permits; `None` if it is
/// malformed, unsatisfied or not about bytes.
#[must_use]
pub fn parse_content_range(field: &[u8]) -> Option<ContentRange> {
    let mut scan = Scan(field.strip_prefix(b"bytes ")?);
    scan.skip_blanks();
    let start = scan.number()?;
    scan.skip_blanks();
    scan.0 = scan.0.strip_prefix(b"-")?;
    scan.skip_blanks();
    let end = scan.number()?.checked_add(1)?;
    scan.skip_blanks();
    scan.0 = scan.0.strip_prefix(b"/")?;
    scan.skip_blanks();
    let whole = match scan.0.strip_prefix(b"*") {
        Some(rest) => {
            scan.0 = rest;
            None
        }
        None => Some(scan.number()?),
    };
    scan.skip_blanks();
    scan.0.is_empty().then_some(ContentRange { start, end, whole })
}

/// Reads `field` for a representation of `length` bytes into `ranges` (cleared first).
///
/// More than `max` ranges (`max_ranges`), or ranges that together exceed the representation, select
/// the whole representation. A malformed spec, or only unsatisfiable ones, are unsatisfiable. A
/// unit other than bytes is ignored.
#[must_use]
pub fn parse(field: &[u8], length: u64, max: u32, ranges: &mut Vec<ByteRange>) -> RangeOutcome {
    ranges.clear();
    let Some((unit, specs)) = field.split_at_checked(6) else { return RangeOutcome::Whole };
    if !unit.eq_ignore_ascii_case(b"bytes=") || specs.is_empty() {
        return RangeOutcome::Whole;
    }
    let outcome = parse_specs(&mut Scan(specs), length, max, ranges);
    if outcome != RangeOutcome::Partial {
        ranges.clear();
    }
    outcome
}

fn parse_specs(
    scan: &mut Scan<'_>,
    length: u64,
    max: u32,
    out: &mut Vec<ByteRange>,
) -> RangeOutcome {
    let mut size = 0_u64;
    let mut left = max;
    loop {
        let Some((start, end)) = scan.spec(length) else { return RangeOutcome::Unsatisfiable };
        if start < end {
            if left == 0 {
                return RangeOutcome::Whole;
            }
            left -= 1;
            size = size.saturating_add(end - start);
            // LIMIT: once the total is too long the list is only read for its errors.
            if size <= length {
                out.push(ByteRange { start, end });
            }
        } else if start == 0 {
            return RangeOutcome::Whole;
        }
        match scan.0 {
            [b',', rest @ ..] => scan.0 = rest,
            _ => break,
        }
    }
    if size == 0 {
        RangeOutcome::Unsatisfiable
    } else if size > length {
        RangeOutcome::Whole
    } else {
        RangeOutcome::Partial
    }
}

/// Appends the value of `Content-Range` for one range: `bytes 0-99/1234`.
pub fn push_content_range(out: &mut Vec<u8>, range: ByteRange, length: u64) {
    out.extend_from_slice(b"bytes ");
    push_decimal(out, range.start);
    out.push(b'-');
    push_decimal(out, range.end - 1);
    out.push(b'/');
    push_decimal(out, length);
}

/// Appends the value of `Content-Range` for a 416: `bytes */1234`.
pub fn push_unsatisfied(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"bytes */");
    push_decimal(out, length);
}

/// The framing of a `multipart/byteranges` body.
#[derive(Clone, Copy, Debug)]
pub struct Multipart<'a> {
    /// Twenty random digits, practically never part of the content.
    pub boundary: Boundary,
    /// The `Content-Type` of each part; empty to omit it.
    pub content_type: &'a [u8],
    /// Bytes of the whole representation.
    pub length: u64,
}

/// A boundary between parts.
#[derive(Clone, Copy, Debug)]
pub struct Boundary(Decimal);

impl Boundary {
    /// The boundary for the random number `chance`.
    #[must_use]
    pub const fn new(chance: u64) -> Self {
        Self(Decimal::new(chance))
    }

    /// Its digits.
    #[must_use]
    pub const fn digits(&self) -> &[u8; 20] {
        self.0.padded()
    }

    /// Appends the `Content-Type` of the response.
    pub fn push_content_type(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"multipart/byteranges; boundary=");
        out.extend_from_slice(self.digits());
    }
}

impl Multipart<'_> {
    /// Appends the head of the part for `range`.
    pub fn push_part(&self, out: &mut Vec<u8>, range: ByteRange) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary.digits());
        if !self.content_type.is_empty() {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(self.content_type);
        }
        out.extend_from_slice(b"\r\nContent-Range: ");
        push_content_range(out, range, self.length);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends the end of the multipart body.
    pub fn push_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary.digits());
        out.extend_from_slice(b"--\r\n");
    }

    /// Bytes of the whole body with these parts.
    #[must_use]
    pub fn body_len(&self, ranges: &[ByteRange]) -> u64 {
        let fixed = match self.content_type.len() {
            0 => 0,
            len => 16 + len,
        };
        // "\r\n--" + boundary, "\r\nContent-Range: bytes ", "-", "/", "\r\n\r\n".
        let fixed = (24 + fixed + 23 + 2 + 4) as u64;
        let digits = |number: u64| Decimal::new(number).as_bytes().len() as u64;
        let total = digits(self.length);
        let part = |range: &ByteRange| {
            fixed + digits(range.start) + digits(range.end - 1) + total + range.len()
        };
        ranges.iter().map(part).sum::<u64>() + 28
    }
}

#[cfg(test)]
mod tests;
