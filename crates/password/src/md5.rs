//! The MD5 scheme of FreeBSD and Apache: `$1$` and `$apr1$`.

use md5::{Digest as _, Md5};

use super::ALPHABET;

const SALT_MAX: usize = 8;
const ROUNDS: usize = 1000;

/// The whole hash of `password` with the salt that `rest` begins with, under `magic`.
pub(super) fn crypt(password: &[u8], rest: &[u8], magic: &[u8]) -> Vec<u8> {
    let salt = rest.split(|byte| *byte == b'$').next().unwrap_or_default();
    let salt = &salt[..salt.len().min(SALT_MAX)];
    let mixed = Md5::new().chain_update(password).chain_update(salt).chain_update(password);
    let mixed = mixed.finalize();
    let mut first = Md5::new().chain_update(password).chain_update(magic).chain_update(salt);
    for at in (0..password.len()).step_by(16) {
        first.update(&mixed[..(password.len() - at).min(16)]);
    }
    let mut len = password.len();
    while len > 0 {
        // The scheme was written so: a zero byte, or the password's first.
        first.update(if len & 1 == 1 { &[0][..] } else { &password[..1] });
        len >>= 1;
    }
    let mut digest = first.finalize();
    for round in 0..ROUNDS {
        let mut next = Md5::new();
        if round & 1 == 1 {
            next.update(password);
        } else {
            next.update(digest);
        }
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        if round & 1 == 1 {
            next.update(digest);
        } else {
            next.update(password);
        }
        digest = next.finalize();
    }
    let mut out = [magic, salt, b"$"].concat();
    for [a, b, c] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        let group = u32::from(digest[a]) << 16 | u32::from(digest[b]) << 8 | u32::from(digest[c]);
        push(&mut out, group, 4);
    }
    push(&mut out, u32::from(digest[11]), 2);
    out
}

/// Appends so many digits, the lowest first.
fn push(out: &mut Vec<u8>, mut value: u32, digits: usize) {
    for _ in 0..digits {
        out.push(ALPHABET[(value & 63) as usize]);
        value >>= 6;
    }
}
