//! Whether certificates and revocation lists bear a key's signature, asked outside any chain.
//!
//! Both are a sequence of what is signed, the algorithm and the signature (RFC 5280 §4.1, §5.1).
//! Whoever asks wants to know nothing else: no dates, no names, no purposes.

use rustls::crypto::aws_lc_rs::default_provider;

/// What came of looking at a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The key made it.
    Good,
    /// Another one did, or nobody.
    Bad,
    /// It is of a kind that is not known here.
    Unknown,
}

/// Looks whether `signed` was signed with the key that `spki` describes; both in DER.
pub(crate) fn prove(signed: &[u8], spki: &[u8]) -> Proof {
    let Some(parts) = Parts::read(signed, spki) else { return Proof::Bad };
    let all = default_provider().signature_verification_algorithms.all;
    if !all.iter().any(|one| *one.signature_alg_id() == *parts.algorithm) {
        return Proof::Unknown;
    }
    let made_it = all.iter().any(|one| {
        *one.signature_alg_id() == *parts.algorithm
            && *one.public_key_alg_id() == *parts.key_algorithm
            && one.verify_signature(parts.key, parts.message, parts.signature).is_ok()
    });
    if made_it { Proof::Good } else { Proof::Bad }
}

struct Parts<'a> {
    message: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
    key_algorithm: &'a [u8],
    key: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(mut signed: &'a [u8], mut spki: &'a [u8]) -> Option<Self> {
        let mut body = element(&mut signed)?.1;
        let mut key = element(&mut spki)?.1;
        Some(Self {
            message: element(&mut body)?.0,
            algorithm: element(&mut body)?.1,
            // The first byte of a string of bits counts those that the last byte lacks.
            signature: element(&mut body)?.1.strip_prefix(&[0])?,
            key_algorithm: element(&mut key)?.1,
            key: element(&mut key)?.1.strip_prefix(&[0])?,
        })
    }
}

/// Takes a value in DER from the front of `rest`: all of it, and what it holds.
fn element<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
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

/// What a DER value holds, without tag and length; nothing when it is cut off.
pub(crate) fn inside(mut der: &[u8]) -> &[u8] {
    element(&mut der).map_or(&[], |(_, inside)| inside)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::{Proof, element, inside, prove};

    #[test]
    fn values_are_taken_one_after_the_other() {
        let mut rest = &[0x04, 1, 7, 0x04, 0x81, 2, 8, 9, 0x04, 3, 0][..];
        assert_eq!(element(&mut rest), Some((&[4, 1, 7][..], &[7][..])));
        assert_eq!(element(&mut rest), Some((&[4, 0x81, 2, 8, 9][..], &[8, 9][..])));
        assert_eq!((element(&mut rest), rest), (None, &[4, 3, 0][..]));
        assert_eq!(inside(&[0x30, 0x80, 0, 0]), b"");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_prove_nothing(signed: Vec<u8>, spki: Vec<u8>) {
            assert_ne!(prove(&signed, &spki), Proof::Good);
        }
    }
}
