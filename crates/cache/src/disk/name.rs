//! The file name of an object: 128 bits derived from its key, the first of them from its URL alone.
//!
//! In a zone, whose keys the configuration makes, the object without variants has the name that
//! nginx gives it: the MD5 of the key's text. Who purges by deleting files computes it.
//!
//! INVARIANT: a name only locates a file. The head of the file decides whether it has the right
//! key.

use md5::Md5;
use sha2::{Digest, Sha256};

use crate::disk::format::sum;
use crate::disk::index::{self, FileHash};

/// Bits that all variants of a URL share.
const URL_BITS: u32 = 48;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The names of namespaces of zones begin with this.
pub const ZONE: &[u8] = b"zone:";

/// The 128-bit file name of a key.
#[must_use]
pub fn file_hash(namespace: &[u8], url: &[u8], vary: &[u8], session: &[u8]) -> FileHash {
    let shared = of_url(namespace, url);
    if is_zone(namespace) && vary.is_empty() && session.is_empty() {
        return shared;
    }
    let mut hash = Sha256::new();
    for part in [namespace, url, vary, session] {
        add(&mut hash, part);
    }
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
    shared_bits(of_url(namespace, url))
}

/// Whether two files of a URL are both public, or belong to sessions of the same group. The names
/// of a zone do not tell, and a zone has no sessions.
pub(crate) fn has_same_owner(namespace: &[u8], a: FileHash, b: FileHash) -> bool {
    is_zone(namespace) || index::has_same_owner(a, b)
}

fn is_zone(namespace: &[u8]) -> bool {
    namespace.starts_with(ZONE)
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

fn of_url(namespace: &[u8], url: &[u8]) -> FileHash {
    if is_zone(namespace) {
        return FileHash::from_be_bytes(Md5::digest(url).into());
    }
    let mut hash = Sha256::new();
    add(&mut hash, namespace);
    add(&mut hash, url);
    first_bits(hash)
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
    use super::{file_hash, has_same_owner, hex, shared_bits, url_bits};

    #[test]
    fn the_page_of_a_zone_has_the_name_that_nginx_gives_it() {
        let page = file_hash(b"zone:one", b"httpGETa/page", b"", b"");
        assert_eq!(&hex(page), b"5d20cfe7473a9f29f8bef96a1b12eeb5");
        let variant = file_hash(b"zone:one", b"httpGETa/page", b"de", b"");
        assert_ne!(variant, page);
        assert_eq!(shared_bits(variant), shared_bits(page));
        assert!(has_same_owner(b"zone:one", variant, page));
        assert_ne!(file_hash(b"page:one", b"httpGETa/page", b"", b""), page);
    }

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
