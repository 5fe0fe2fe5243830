//! Adjusts our encoded transport parameters (RFC 9000 §18): lowers one that the library has no
//! setting for.

/// `active_connection_id_limit` (RFC 9000 §18.2).
const CID_LIMIT: u64 = 0x0e;

/// Lowers the limit on the connection ids that the peer may issue. Parameters in an unexpected
/// encoding stay unchanged.
pub(crate) fn lower_cid_limit(encoded: &mut [u8], limit: u32) {
    let mut at = 0;
    while let Some((id, value, end)) = parameter(encoded, at) {
        if id == CID_LIMIT {
            // The library encodes its own limit in one byte, so a lower one fits.
            if let [own] = &mut encoded[value..end]
                && u32::from(*own) > limit
            {
                *own = limit as u8;
            }
            return;
        }
        at = end;
    }
}

/// The parameter at `at`: its id, and the bounds of its value.
fn parameter(encoded: &[u8], at: usize) -> Option<(u64, usize, usize)> {
    let (id, length_at) = varint(encoded, at)?;
    let (length, value) = varint(encoded, length_at)?;
    let end = value.checked_add(usize::try_from(length).ok()?)?;
    (end <= encoded.len()).then_some((id, value, end))
}

/// A variable-length integer (RFC 9000 §16) and the position behind it.
fn varint(encoded: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *encoded.get(at)?;
    let end = at + (1 << (first >> 6));
    let bytes = encoded.get(at + 1..end)?;
    let start = u64::from(first & 0x3f);
    Some((bytes.iter().fold(start, |number, &byte| number << 8 | u64::from(byte)), end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::lower_cid_limit;

    fn lowered(encoded: &[u8], limit: u32) -> Vec<u8> {
        let mut encoded = encoded.to_vec();
        lower_cid_limit(&mut encoded, limit);
        encoded
    }

    #[test]
    fn only_the_limit_is_lowered_and_never_raised() {
        let all = [1, 4, 0x80, 0, 0x75, 0x30, 0x0e, 1, 5, 0x0f, 2, 14, 5];
        assert_eq!(lowered(&all, 3)[8], 3);
        assert_eq!([&all[..8], &[3], &all[9..]].concat(), lowered(&all, 3));
        assert_eq!(lowered(&all, 5), all);
        assert_eq!(lowered(&all, 100), all);
        assert_eq!(lowered(&all, 0)[8], 0);
    }

    #[test]
    fn a_number_in_a_longer_encoding_is_the_same_number() {
        assert_eq!(lowered(&[0x40, 0x0e, 0x40, 1, 5], 2), [0x40, 0x0e, 0x40, 1, 2]);
    }

    #[test]
    fn a_library_that_writes_its_limit_otherwise_is_left_alone() {
        for encoded in [&[0x0e, 2, 0x40, 5][..], &[0x0e, 9, 5], &[0x0e], &[]] {
            assert_eq!(lowered(encoded, 2), encoded);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_keep_their_length_and_change_in_one_place(
            encoded in proptest::collection::vec(any::<u8>(), 0..64), limit: u32,
        ) {
            let after = lowered(&encoded, limit);
            prop_assert_eq!(after.len(), encoded.len());
            let changed = after.iter().zip(&encoded).filter(|(a, b)| a != b).count();
            prop_assert!(changed <= 1);
        }
    }
}
