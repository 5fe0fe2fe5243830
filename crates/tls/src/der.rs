//! Values in DER (X.690), taken one after the other from the front of a slice.

/// Tags in use.
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BITS: u8 = 0x03;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OBJECT: u8 = 0x06;
pub(crate) const ENUMERATED: u8 = 0x0a;
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

    use super::{INTEGER, OCTETS, SEQUENCE, element, inside, join, number, push, take};

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
