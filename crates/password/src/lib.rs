//! Checks a password against a hash, in all formats of password files.
//!
//! Pure computation; some formats are slow by design ([`PasswordCheck::is_slow`]).

use sha_crypt::PasswordVerifier as _;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use bolide_base::base64::push_base64;

mod des;
mod md5;

/// A password to be checked.
#[derive(Clone, Debug)]
pub struct PasswordCheck {
    password: Box<[u8]>,
    hash: Box<[u8]>,
}

/// The bcrypt cost (a power of two) that is computed within a turn.
const BCRYPT_COST_AT_ONCE: u32 = 4;
/// LIMIT: bytes of a password that `crypt` hashes, as in libxcrypt; a longer one never matches.
const PASSWORD_MAX: usize = 512;
/// LIMIT: the bcrypt cost of a hash; about a second.
const BCRYPT_COST_MAX: u32 = 14;
/// LIMIT: rounds of a hash of SHA-256 or SHA-512; about a second.
const SHA_ROUNDS_MAX: u64 = 1_000_000;
/// LIMIT: bytes of memory for a hash of yescrypt.
const YESCRYPT_MEMORY_MAX: u64 = 64 << 20;

impl PasswordCheck {
    /// A check whether `password` matches `hash`, in the format of a password file.
    #[must_use]
    pub fn new(password: &[u8], hash: &[u8]) -> Self {
        Self { password: password.into(), hash: hash.into() }
    }

    /// Whether it takes too long for a turn.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        match &self.hash[..] {
            [b'$', b'2', _, b'$', cost @ ..] => {
                let cost = cost.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                cost.and_then(|digits| digits.parse().ok())
                    .is_none_or(|cost: u32| cost > BCRYPT_COST_AT_ONCE)
            }
            [b'$', b'1', b'$', ..] | [b'$', b'a', b'p', b'r', b'1', b'$', ..] => false,
            [b'$', ..] => true,
            _ => false,
        }
    }

    /// Whether the hash asks for more time or memory than hashes of password files do. A check
    /// against such a hash fails: who may write a password file must not stop the server.
    #[must_use]
    pub fn is_excessive(&self) -> bool {
        let Ok(text) = std::str::from_utf8(&self.hash) else { return false };
        if let Some(rest) = text.strip_prefix("$y$") {
            return yescrypt_memory(rest).is_none_or(|memory| memory > YESCRYPT_MEMORY_MAX);
        }
        if text.starts_with("$5$") || text.starts_with("$6$") {
            let rounds = text[3..].strip_prefix("rounds=").and_then(|rest| rest.split('$').next());
            return rounds.is_some_and(|digits| {
                digits.parse().is_ok_and(|rounds: u64| rounds > SHA_ROUNDS_MAX)
                    || digits.parse::<u64>().is_err()
            });
        }
        let cost = text.strip_prefix("$2").and_then(|rest| rest.split('$').nth(1));
        cost.is_some_and(|digits| digits.parse().is_ok_and(|cost: u32| cost > BCRYPT_COST_MAX))
    }

    /// A fingerprint of password and hash that reveals neither; it depends on `secret`, so that it
    /// cannot be precomputed.
    #[must_use]
    pub fn fingerprint(&self, secret: &[u8; 32]) -> [u8; 32] {
        Sha256::new()
            .chain_update(b"password")
            .chain_update(secret)
            .chain_update((self.hash.len() as u64).to_be_bytes())
            .chain_update(&self.hash)
            .chain_update(&self.password)
            .finalize()
            .into()
    }

    /// Performs the check.
    #[must_use]
    pub fn run(&self) -> bool {
        let (password, hash) = (&self.password[..], &self.hash[..]);
        match hash {
            [b'{', b'P', b'L', b'A', b'I', b'N', b'}', plain @ ..] => same(plain, password),
            [b'{', b'S', b'S', b'H', b'A', b'}', rest @ ..] => salted(password, rest),
            [b'{', b'S', b'H', b'A', b'}', rest @ ..] => match base64(rest) {
                Some(digest) => same(&Sha1::digest(password), &digest),
                None => false,
            },
            [b'$', ..] => self.modular(),
            _ => des::crypt(password, hash).is_some_and(|computed| same(&computed, hash)),
        }
    }

    /// `$id$…`
    fn modular(&self) -> bool {
        let (password, hash) = (&self.password[..], &self.hash[..]);
        let Ok(text) = std::str::from_utf8(hash) else { return false };
        if password.len() > PASSWORD_MAX || self.is_excessive() {
            return false;
        }
        if let Some(rest) = hash.strip_prefix(b"$apr1$") {
            return same(&md5::crypt(password, rest, b"$apr1$"), hash);
        }
        if let Some(rest) = hash.strip_prefix(b"$1$") {
            return same(&md5::crypt(password, rest, b"$1$"), hash);
        }
        if text.starts_with("$5$") || text.starts_with("$6$") {
            let Ok(parsed) = sha_crypt::PasswordHashRef::new(text) else { return false };
            return sha_crypt::ShaCrypt::default().verify_password(password, parsed).is_ok();
        }
        if text.starts_with("$y$") {
            let Ok(parsed) = yescrypt::PasswordHashRef::new(text) else { return false };
            return yescrypt::Yescrypt::default().verify_password(password, parsed).is_ok();
        }
        text.starts_with("$2") && bcrypt::verify(password, text).unwrap_or(false)
    }
}

/// The bytes of memory that yescrypt needs by the parameters behind `$y$`. None if they are not the
/// three of password files: threads and further passes cost more than memory.
fn yescrypt_memory(rest: &str) -> Option<u64> {
    let parameters = rest.split('$').next().filter(|text| text.len() == 3)?;
    let parsed: yescrypt::Params = parameters.parse().ok()?;
    parsed.n().checked_mul(128)?.checked_mul(parsed.r().into())
}

/// `{SSHA}`: SHA-1 of password and salt, then the salt.
fn salted(password: &[u8], rest: &[u8]) -> bool {
    const DIGEST_SIZE: usize = 20;
    let Some(decoded) = base64(rest) else { return false };
    let Some((digest, salt)) = decoded.split_at_checked(DIGEST_SIZE) else { return false };
    same(&Sha1::new().chain_update(password).chain_update(salt).finalize(), digest)
}

/// Constant-time equality.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Decodes base64; none if it is invalid.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    push_base64(text, &mut out).then_some(out)
}

/// The alphabet of crypt's hashes.
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

#[cfg(test)]
mod tests {
    use super::PasswordCheck;

    #[test]
    fn a_hash_that_costs_too_much_matches_nothing_at_once() {
        let salt = "$LdJMENpBABJJ3hIHjB1Bi.$HboGM6qPrsK.StKYGt6KErmUYtioHreJd98oIugoNB6";
        for (hash, is_excessive) in [
            ("$2y$15$..............................".to_owned(), true),
            ("$2y$31$..............................".to_owned(), true),
            ("$2y$12$..............................".to_owned(), false),
            ("$6$rounds=999999999$salt$x".to_owned(), true),
            ("$6$rounds=99999999999999999999999$salt$x".to_owned(), true),
            ("$5$rounds=500000$salt$x".to_owned(), false),
            ("$6$salt$x".to_owned(), false),
            (format!("$y$jfT{salt}"), true),
            (format!("$y$jLT{salt}"), true),
            (format!("$y$j9T{salt}"), false),
            (format!("$y$jBT{salt}"), false),
            (format!("$y$jCT{salt}"), true),
            ("$y$".to_owned(), true),
            (format!("$y$j9T0{salt}"), true),
            ("$1$salt$x".to_owned(), false),
            ("plain".to_owned(), false),
        ] {
            let check = PasswordCheck::new(b"pw", hash.as_bytes());
            assert_eq!(check.is_excessive(), is_excessive, "{hash}");
            assert!(!is_excessive || !check.run(), "{hash}");
        }
        let long = PasswordCheck::new(&[b'a'; 513], b"$6$salt$x");
        assert!(!long.run());
    }

    #[test]
    fn a_fingerprint_depends_on_hash_password_and_secret() {
        let of = |password: &[u8], hash: &[u8], secret| {
            PasswordCheck::new(password, hash).fingerprint(&[secret; 32])
        };
        let one = of(b"pw", b"$6$x", 1);
        assert_eq!(one, of(b"pw", b"$6$x", 1));
        let others = [of(b"pW", b"$6$x", 1), of(b"pw", b"$6$y", 1), of(b"pw", b"$6$x", 2)];
        assert!(!others.contains(&one));
        assert_ne!(of(b"xpw", b"$6$", 1), one, "what belongs to which is told apart");
    }

    #[test]
    fn every_form_of_hash_knows_its_password_and_no_other() {
        let hashes = [
            "{PLAIN}pw",
            "{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=",
            "{SSHA}K/qCHdTzr1rftXNEV4Ob7XsySBlzYWx0",
            "abzlUXK5ed5rs",
            "$1$abc$Kb85XxsXB.VXinPhbS4431",
            "$apr1$abcdefgh$5VEbMkemELfbhC5ck.U.z1",
            "$5$rounds=1000$abc$zdUXQ3de2d3x/8MYX1t30oZjPfJThZR5heHeVDYi8j6",
            "$6$abc$MtSdWSZbhct2oe.SOqOUM2M/GA/uj5.vyVtJgRHgKi9uqXuWuJqOYE7H/YlsYGVg/\
             YYzDV0xt3fEIwYt580.5.",
            "$2y$05$abcdefghijklmnopqrstuuHIrMEWpUCQe2YqFR3sXwQ75u4od..9q",
            "$y$j9T$abcdefgh$UGYCVcUwcoG0k8SZZ.Uz3i0RYQNy1YmYj4I4poBPer2",
        ];
        for hash in hashes {
            assert!(PasswordCheck::new(b"pw", hash.as_bytes()).run(), "{hash}");
            assert!(!PasswordCheck::new(b"pW", hash.as_bytes()).run(), "{hash}");
            assert!(!PasswordCheck::new(b"", hash.as_bytes()).run(), "{hash}");
            for cut in [0, 1, 2, 5, 9, hash.len() - 1] {
                let part = &hash.as_bytes()[..cut];
                let is_whole = hash.starts_with('{');
                assert!(is_whole || !PasswordCheck::new(b"pw", part).run(), "{hash} {cut}");
            }
        }
    }
}
