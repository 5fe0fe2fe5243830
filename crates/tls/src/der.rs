//! Values in DER (X.690), taken one after the other from the front of a slice.

/// Tags in use.
pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BITS: u8 = 0x03;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OBJECT: u8 = 0x06;
pub(crate) const ENUMERATED: u8 = 0x0a;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;

/// The context-specific constructed tag of this number.
pub(crate) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// Takes a value from the front of `rest`: the whole of it, and its contents.
pub(crate) fn element<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (start, len) = match usize::from(*rest.get(1)?) {
        len @ ..=0x7f => (2, len),
        count @ 0x81..=0x84 => {
            let end = 2 + (count & 0x7f);
            let bytes = rest.get(2..end)?;
            (end, bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
        }
        _ => return None,
    };
    let (whole, behind) = rest.split_at_checked(start.checked_add(len)?)?;
    *rest = behind;
    Some((whole, &whole[start..]))
}

/// Takes a value with this tag and returns its contents. With another tag `rest` stays unchanged.
pub(crate) fn take<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    (rest.first() == Some(&tag)).then(|| element(rest)).flatten().map(|(_, inside)| inside)
}

/// The contents of a DER value, without tag and length; empty when it is truncated.
pub(crate) fn inside(mut der: &[u8]) -> &[u8] {
    element(&mut der).map_or(&[], |(_, inside)| inside)
}

/// Parts of a certificate, each with its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CertParts<'a> {
    pub(crate) subject: &'a [u8],
    pub(crate) public_key: &'a [u8],
}

/// The parts of a certificate of any version, which `der` is all of (RFC 5280 §4.1).
pub(crate) fn cert_parts(mut der: &[u8]) -> Option<CertParts<'_>> {
    let mut cert = take(&mut der, SEQUENCE)?;
    let mut signed = take(&mut cert, SEQUENCE)?;
    take(&mut cert, SEQUENCE)?;
    take(&mut cert, BITS)?;
    if !der.is_empty() || !cert.is_empty() {
        return None;
    }
    // Version 1 names none.
    let _ = take(&mut signed, context(0));
    take(&mut signed, INTEGER)?;
    let mut part = || (signed.first() == Some(&SEQUENCE)).then(|| element(&mut signed)).flatten();
    let [_algorithm, _issuer, _validity, subject, public_key] =
        [part()?.0, part()?.0, part()?.0, part()?.0, part()?.0];
    Some(CertParts { subject, public_key })
}

/// A positive number that fits.
pub(crate) fn number(inside: &[u8]) -> Option<u32> {
    (inside.len() <= 4 && inside.first()? & 0x80 == 0)
        .then(|| inside.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Takes a time of either form (RFC 5280 §4.1.2.5), in seconds since 1970.
pub(crate) fn take_time(rest: &mut &[u8]) -> Option<u64> {
    if let Some(text) = take(rest, TIME) {
        return seconds(text);
    }
    let text = take(rest, UTC_TIME)?;
    // Two digits of the year: 1950 to 2049.
    let century = if text.first()? < &b'5' { b"20" } else { b"19" };
    seconds(&[&century[..], text].concat())
}

/// Seconds since 1970 of `YYYYMMDDHHMMSSZ`, the only form that RFC 5280 §4.1.2.5.2 allows.
pub(crate) fn seconds(text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z").filter(|digits| digits.len() == 14)?;
    let number = |at: usize, len: usize| {
        digits[at..at + len].iter().try_fold(0_u64, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(4, 2)?, number(6, 2)?);
    let (hour, minute, second) = (number(8, 2)?, number(10, 2)?, number(12, 2)?);
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month);
    // RFC 5280 has no leap seconds, and after the last second of 9999 no date can be written.
    if !is_date || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years that begin in March, so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Appends a value with this tag and these contents.
pub(crate) fn push(out: &mut Vec<u8>, tag: u8, inside: &[u8]) {
    out.push(tag);
    match inside.len() {
        len @ ..=0x7f => out.push(len as u8),
        len @ 0x80..=0xff => out.extend_from_slice(&[0x81, len as u8]),
        len => out.extend_from_slice(&[0x82, (len >> 8) as u8, len as u8]),
    }
    out.extend_from_slice(inside);
}

/// A value with this tag that contains `parts`, one after the other.
pub(crate) fn join(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, tag, &parts.concat());
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::{
        INTEGER, OCTETS, SEQUENCE, TIME, UTC_TIME, element, inside, join, number, push, seconds,
        take, take_time,
    };

    #[test]
    fn values_are_taken_one_after_the_other() {
        let mut rest = &[0x04, 1, 7, 0x04, 0x81, 2, 8, 9, 0x04, 3, 0][..];
        assert_eq!(element(&mut rest), Some((&[4, 1, 7][..], &[7][..])));
        assert_eq!(take(&mut rest, INTEGER), None);
        assert_eq!(take(&mut rest, OCTETS), Some(&[8, 9][..]));
        assert_eq!((element(&mut rest), rest), (None, &[4, 3, 0][..]));
        assert_eq!(inside(&[0x30, 0x80, 0, 0]), b"");
        assert_eq!(number(&[8, 0]), Some(2048));
        assert_eq!((number(&[0x80]), number(&[]), number(&[1; 5])), (None, None, None));
        assert_eq!(join(SEQUENCE, &[&[5, 0], &[4, 0]]), [0x30, 4, 5, 0, 4, 0]);
    }

    #[test]
    fn times_are_seconds_since_1970() {
        assert_eq!(seconds(b"19700101000000Z"), Some(0));
        assert_eq!(seconds(b"20000229235959Z"), Some(951_868_799));
        assert_eq!(seconds(b"20261121181234Z"), Some(1_795_284_754));
        assert_eq!(seconds(b"99991231235959Z"), Some(253_402_300_799));
        for text in [
            "20261321181234Z",
            "20261121181234",
            "2026112118123Z",
            "x0261121181234Z",
            "99991231235960Z",
        ] {
            assert_eq!(seconds(text.as_bytes()), None, "{text}");
        }
        for (text, time) in [("000229235959Z", 951_868_799), ("700101000000Z", 0)] {
            let value = join(UTC_TIME, &[text.as_bytes()]);
            assert_eq!(take_time(&mut &value[..]), Some(time));
        }
        let value = join(TIME, &[b"20261121181234Z"]);
        assert_eq!(take_time(&mut &value[..]), Some(1_795_284_754));
        assert_eq!(take_time(&mut &[UTC_TIME, 0][..]), None);
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_taken(bytes: Vec<u8>, repeat in 1..400_usize) {
            let bytes: Vec<u8> = bytes.repeat(repeat).into_iter().take(60_000).collect();
            let mut out = Vec::new();
            push(&mut out, OCTETS, &bytes);
            let mut rest = &out[..];
            assert_eq!(take(&mut rest, OCTETS), Some(&bytes[..]));
            assert_eq!(rest, b"");
        }
    }
}
