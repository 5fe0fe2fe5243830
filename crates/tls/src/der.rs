//! Values in DER (X.690), taken one after the other from the front of some bytes.

/// Tags that are looked for.
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const OBJECT: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;

/// Takes a value from the front of `rest`: all of it, and what it holds.
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

/// Takes a value with this tag: what it holds. `rest` stays as it is when there is another.
pub(crate) fn take<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    (rest.first() == Some(&tag)).then(|| element(rest)).flatten().map(|(_, inside)| inside)
}

/// What a DER value holds, without tag and length; nothing when it is cut off.
pub(crate) fn inside(mut der: &[u8]) -> &[u8] {
    element(&mut der).map_or(&[], |(_, inside)| inside)
}

/// A positive number that fits.
pub(crate) fn number(inside: &[u8]) -> Option<u32> {
    (inside.len() <= 4 && inside.first()? & 0x80 == 0)
        .then(|| inside.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::{INTEGER, OCTETS, element, inside, number, take};

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
    }
}
