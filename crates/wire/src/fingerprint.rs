//! A short fingerprint of a message, to see whether the same message came before. It is no hash for
//! tables: a peer that chooses the bytes can make two collide, so callers compare the bytes where
//! equality matters.

/// A 64-bit fingerprint of `block`; not collision-resistant.
pub(crate) fn fingerprint(block: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut print = block.len() as u64;
    let (words, rest) = block.as_chunks::<8>();
    for word in words {
        print = (print.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    }
    for &byte in rest {
        print = (print.rotate_left(5) ^ u64::from(byte)).wrapping_mul(FACTOR);
    }
    print
}
