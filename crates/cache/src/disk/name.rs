//! The file name of an object: 128 bits derived from its key, the first of them from its URL alone.
//!
//! INVARIANT: a name only locates a file. The head of the file decides whether it has the right
//! key.

use sha2::{Digest, Sha256};

use crate::disk::format::sum;
use crate::disk::index::{self, FileHash};

/// Bits that all variants of a URL share.
const URL_BITS: u32 = 48;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The 128-bit file name of a key.
#[must_use]
pub fn file_hash(namespace: &[u8], url: &[u8], vary: &[u8], session: &[u8]) -> FileHash {
    let mut hash = of_url(namespace, url);
    let shared = first_bits(hash.clone());
    add(&mut hash, vary);
    add(&mut hash, session);
    let rest = first_bits(hash) & (FileHash::MAX >> URL_BITS);
    let hash = shared & !(FileHash::MAX >> URL_BITS) | rest;
    let name =
        if session.is_empty() { index::public(hash) } else { index::private(hash, sum(session)) };
    debug_assert_eq!(
        shared_bits(name),
        shared_bits(shared),
        "the variants of a URL share the first bits of their names"
    );
    name
}

/// The first bits of the names of all variants of a URL.
#[must_use]
pub fn url_bits(namespace: &[u8], url: &[u8]) -> u64 {
    shared_bits(first_bits(of_url(namespace, url)))
}

/// The URL bits of a name.
#[must_use]
pub const fn shared_bits(hash: FileHash) -> u64 {
    (hash >> (128 - URL_BITS)) as u64
}

/// The smallest name with these URL bits.
pub(crate) const fn first_of(url_bits: u64) -> FileHash {
    (url_bits as FileHash) << (128 - URL_BITS)
}

fn of_url(namespace: &[u8], url: &[u8]) -> Sha256 {
    let mut hash = Sha256::new();
    add(&mut hash, namespace);
    add(&mut hash, url);
    hash
}

fn add(hash: &mut Sha256, text: &[u8]) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

fn first_bits(hash: Sha256) -> FileHash {
    hash.finalize().first_chunk::<16>().map_or(0, |first| u128::from_be_bytes(*first))
}

pub(crate) fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|byte| HEX.contains(byte))
}

pub(crate) fn hex(hash: FileHash) -> [u8; 32] {
    std::array::from_fn(|at| HEX[(hash >> (124 - at * 4)) as usize & 15])
}

pub(crate) fn parse_hex(name: &[u8]) -> Option<FileHash> {
    let name: &[u8; 32] = name.try_into().ok()?;
    name.iter().try_fold(0, |hash: FileHash, byte| {
        let digit = HEX.iter().position(|digit| digit == byte)?;
        Some(hash << 4 | digit as FileHash)
    })
}

#[cfg(test)]
mod tests {
    use super::{file_hash, shared_bits, url_bits};

    #[test]
    fn parts_of_a_key_do_not_run_together() {
        let all = [
            file_hash(b"ab", b"", b"", b""),
            file_hash(b"a", b"b", b"", b""),
            file_hash(b"", b"ab", b"", b""),
            file_hash(b"", b"a", b"b", b""),
            file_hash(b"", b"", b"ab", b""),
            file_hash(b"", b"a", b"", b"b"),
            file_hash(b"", b"", b"", b"ab"),
        ];
        let mut unique = all.to_vec();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), all.len());
    }

    #[test]
    fn copies_of_a_url_begin_alike_and_those_of_others_do_not() {
        let bits = url_bits(b"a", b"/page");
        for (vary, session) in [("", ""), ("de", ""), ("", "me"), ("de", "you")] {
            let hash = file_hash(b"a", b"/page", vary.as_bytes(), session.as_bytes());
            assert_eq!(shared_bits(hash), bits);
            assert_eq!(hash & 1 == 1, !session.is_empty());
        }
        for (namespace, url) in [("a", "/pag"), ("b", "/page"), ("a/", "page")] {
            assert_ne!(url_bits(namespace.as_bytes(), url.as_bytes()), bits);
        }
    }
}
