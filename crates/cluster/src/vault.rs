//! What seals secrets before they are given to Valkey: a key from a file, which Valkey never has.
//!
//! A record is bound to the cluster's name and to its own: one that is put in another's place, or
//! comes from another cluster, another version or another key, opens nothing.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use zeroize::Zeroizing;

/// What every version of a record begins with, and the version.
const MAGIC: &[u8; 8] = b"bolideK1";
/// Bytes of what names the key that seals.
const KEY_ID: usize = 8;

/// What names a key, to who has it and to others.
pub type VaultKeyId = [u8; KEY_ID];
/// Bytes before what is sealed.
const HEAD: usize = MAGIC.len() + KEY_ID + NONCE_LEN;
/// Bytes of a key.
pub const VAULT_KEY_LEN: usize = 32;

/// A secret that is wiped when it is dropped.
pub type VaultSecret = Zeroizing<[u8; VAULT_KEY_LEN]>;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultFault {
    /// They are no record of this version.
    Foreign,
    /// No key of this server has sealed them.
    OtherKey,
    /// They were changed, or belong elsewhere.
    Damaged,
}

impl VaultFault {
    /// For a log.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Foreign => "it is no record of this version",
            Self::OtherKey => "it is sealed with a key that this server has not",
            Self::Damaged => "it is damaged, or from another place",
        }
    }
}

/// What a record is for. Each purpose has a key of its own, so that what is sealed often (nonces
/// are by chance) wears out no key but its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultPurpose {
    /// Keys of TLS tickets.
    Tickets,
    /// Certificates with their keys.
    Certificates,
    /// Challenges of issuers.
    Challenges,
    /// Reports of limits.
    Limits,
    /// Accounts at issuers with their keys.
    Accounts,
}

impl VaultPurpose {
    const ALL: [Self; 5] =
        [Self::Tickets, Self::Certificates, Self::Challenges, Self::Limits, Self::Accounts];

    /// What the key is derived for.
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Tickets => b"seal tickets",
            Self::Certificates => b"seal certificates",
            Self::Challenges => b"seal challenges",
            Self::Limits => b"seal limits",
            Self::Accounts => b"seal accounts",
        }
    }
}

/// The keys of a cluster's secrets.
pub struct Vault {
    cluster: Box<[u8]>,
    keys: Vec<VaultKey>,
}

struct VaultKey {
    id: VaultKeyId,
    /// By purpose, in the order of [`VaultPurpose::ALL`].
    seals: Vec<LessSafeKey>,
    root: VaultSecret,
}

impl Vault {
    /// Whether the two have a key in common.
    #[must_use]
    pub fn shares_key(&self, other: &Self) -> bool {
        self.keys.iter().any(|own| other.keys.iter().any(|key| key.id == own.id))
    }
}

impl VaultKey {
    fn new(root: VaultSecret, cluster: &[u8]) -> Option<Self> {
        let mut id = [0; KEY_ID];
        derive(&root, b"id", cluster, &mut id);
        let seal = |purpose: VaultPurpose| {
            let mut key = VaultSecret::default();
            derive(&root, purpose.label(), cluster, &mut key[..]);
            UnboundKey::new(&AES_256_GCM, &key[..]).ok().map(LessSafeKey::new)
        };
        let seals = VaultPurpose::ALL.into_iter().map(seal).collect::<Option<_>>()?;
        Some(Self { id, seals, root })
    }

    fn seal(&self, purpose: VaultPurpose) -> Option<&LessSafeKey> {
        self.seals.get(purpose as usize)
    }
}

/// The length of a derived key in bytes.
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// Fills `out` with what follows from a secret for one purpose.
fn derive(root: &VaultSecret, purpose: &[u8], cluster: &[u8], out: &mut [u8]) {
    let root = Salt::new(HKDF_SHA256, b"bolide cluster").extract(&root[..]);
    let info = [purpose, b"\0", cluster];
    root.expand(&info, Bytes(out.len()))
        .and_then(|okm| okm.fill(out))
        .expect("HKDF yields up to 8160 bytes");
}

/// A secret by chance.
///
/// # Errors
///
/// The system's randomness fails.
pub fn fresh_secret() -> Result<VaultSecret, String> {
    let mut secret = VaultSecret::default();
    rand::fill(&mut secret[..]).map_err(|_| "the system's randomness failed".to_owned())?;
    Ok(secret)
}

impl Vault {
    /// The first key seals, all open. `None` without a key.
    #[must_use]
    pub fn new(cluster: &[u8], roots: Vec<VaultSecret>) -> Option<Self> {
        let made = roots.into_iter().map(|root| VaultKey::new(root, cluster));
        let keys = made.collect::<Option<Vec<_>>>()?;
        (!keys.is_empty()).then(|| Self { cluster: cluster.into(), keys })
    }

    /// What follows from the first key for one purpose, on all servers of the cluster.
    #[must_use]
    pub fn derived(&self, purpose: &[u8]) -> VaultSecret {
        let mut out = VaultSecret::default();
        // There is a key.
        if let Some(first) = self.keys.first() {
            derive(&first.root, purpose, &self.cluster, &mut out[..]);
        }
        out
    }

    /// What names the key that a record says it is sealed with.
    #[must_use]
    pub fn key_of(record: &[u8]) -> Option<VaultKeyId> {
        record.strip_prefix(&MAGIC[..])?.first_chunk().copied()
    }

    /// Whether this key is one of those that open.
    #[must_use]
    pub fn has_key(&self, id: &VaultKeyId) -> bool {
        self.keys.iter().any(|key| key.id == *id)
    }

    /// Whether this key is the one that seals.
    #[must_use]
    pub fn is_first(&self, id: &VaultKeyId) -> bool {
        self.keys.first().is_some_and(|key| key.id == *id)
    }

    /// Whether a record that is good is to be sealed with the first key: it is sealed with another
    /// one, which none of the servers that are there puts first any more.
    ///
    /// `firsts` are the first keys of those servers. As long as a server has another first key than
    /// the others, what it has sealed stays as it is: each would else seal anew what the other one
    /// has sealed.
    #[must_use]
    pub fn is_to_be_sealed_anew(&self, record: &[u8], firsts: &[VaultKeyId]) -> bool {
        let (Some(first), Some(by)) = (self.keys.first(), Self::key_of(record)) else {
            return false;
        };
        by != first.id && self.has_key(&by) && !firsts.contains(&by)
    }

    /// What a record of that name is bound to.
    fn bound(&self, key: &VaultKey, name: &str) -> Vec<u8> {
        let mut bound = MAGIC.to_vec();
        bound.extend_from_slice(&key.id);
        for part in [&*self.cluster, name.as_bytes()] {
            bound.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bound.extend_from_slice(part);
        }
        bound
    }

    /// The record of a secret. `None` if the system's randomness fails.
    #[must_use]
    pub fn seal(&self, purpose: VaultPurpose, name: &str, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut sealed = Zeroizing::new(plain.to_vec());
        let (bound, at) = (Aad::from(self.bound(key, name)), Nonce::assume_unique_for_key(nonce));
        let tag = key.seal(purpose)?.seal_in_place_separate_tag(at, bound, &mut sealed).ok()?;
        let mut record = Vec::with_capacity(HEAD + sealed.len() + tag.as_ref().len());
        for part in [&MAGIC[..], &key.id, &nonce, &sealed, tag.as_ref()] {
            record.extend_from_slice(part);
        }
        Some(record)
    }

    /// What a record of that name has.
    ///
    /// # Errors
    ///
    /// It is none of this cluster, of that name, or of a key that is known.
    pub fn open(
        &self,
        purpose: VaultPurpose,
        name: &str,
        record: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, VaultFault> {
        let rest = record.strip_prefix(&MAGIC[..]).ok_or(VaultFault::Foreign)?;
        let (id, rest) = rest.split_first_chunk::<KEY_ID>().ok_or(VaultFault::Damaged)?;
        let (nonce, sealed) = rest.split_first_chunk().ok_or(VaultFault::Damaged)?;
        let key = self.keys.iter().find(|key| key.id == *id).ok_or(VaultFault::OtherKey)?;
        let mut plain = Zeroizing::new(sealed.to_vec());
        let (bound, at) = (Aad::from(self.bound(key, name)), Nonce::assume_unique_for_key(*nonce));
        let seal = key.seal(purpose).ok_or(VaultFault::OtherKey)?;
        let opened = seal.open_in_place(at, bound, &mut plain);
        let length = opened.map_err(|_| VaultFault::Damaged)?.len();
        plain.truncate(length);
        Ok(plain)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl PartialEq for Vault {
    fn eq(&self, other: &Self) -> bool {
        let roots =
            |vault: &Self| vault.keys.iter().map(|key| key.root.clone()).collect::<Vec<_>>();
        self.cluster == other.cluster && roots(self) == roots(other)
    }
}

impl Eq for Vault {}

/// The key in the text of a file: 64 hexadecimal digits in its first line.
#[must_use]
pub fn read_vault_key(text: &[u8]) -> Option<VaultSecret> {
    let line = text.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let mut key = VaultSecret::default();
    if line.len() != 2 * VAULT_KEY_LEN {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    for (out, pair) in key.iter_mut().zip(line.as_chunks::<2>().0) {
        *out = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::VaultPurpose::{Limits, Tickets};
    use super::{Vault, VaultFault, VaultPurpose, VaultSecret, read_vault_key};

    fn vault(cluster: &[u8], seeds: &[u8]) -> Vault {
        let roots = seeds.iter().map(|seed| VaultSecret::new([*seed; 32])).collect();
        Vault::new(cluster, roots).unwrap()
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let (old, both, new) = (vault(b"a", &[1]), vault(b"a", &[2, 1]), vault(b"a", &[2]));
        let record = old.seal(Tickets, "x", b"plain").unwrap();
        assert_eq!(both.open(Tickets, "x", &record).unwrap().as_slice(), b"plain");
        assert_eq!(new.open(Tickets, "x", &record), Err(VaultFault::OtherKey));
        let record = both.seal(Tickets, "x", b"plain").unwrap();
        assert_eq!(new.open(Tickets, "x", &record).unwrap().as_slice(), b"plain");
        assert!(Vault::new(b"a", Vec::new()).is_none());
    }

    /// Servers are given a new first key one after the other, and all look after each step.
    #[test]
    fn a_record_is_sealed_anew_once_and_when_all_servers_have_the_new_key_first() {
        let seal = |one: &Vault| one.seal(Tickets, "x", b"plain").unwrap();
        let both = |is_new: bool| vault(b"a", if is_new { &[2, 1] } else { &[1, 2] });
        for by_new in [false, true] {
            let mut record = seal(&both(by_new));
            let mut times = 0;
            for done in 1..=3 {
                let servers: Vec<Vault> = (0..3).map(|at| both(at < done)).collect();
                let firsts: Vec<_> =
                    servers.iter().map(|one| Vault::key_of(&seal(one)).unwrap()).collect();
                for one in servers.iter().chain(servers.iter().rev()) {
                    if one.is_to_be_sealed_anew(&record, &firsts) {
                        record = seal(one);
                        times += 1;
                    }
                }
                assert!(done == 3 || times == 0, "{done}");
            }
            assert_eq!(times, usize::from(!by_new));
            assert!(vault(b"a", &[2]).open(Tickets, "x", &record).is_ok(), "the old key may go");
        }
        let (old, new) = (vault(b"a", &[1]), vault(b"a", &[2]));
        assert!(!new.is_to_be_sealed_anew(&seal(&old), &[]), "it cannot be opened");
        assert!(!old.is_to_be_sealed_anew(&seal(&old), &[]));
        let record = seal(&old);
        assert!(both(true).is_to_be_sealed_anew(&record, &[]));
        assert!(!both(true).is_to_be_sealed_anew(&record[..15], &[]));
        assert!(!both(true).is_to_be_sealed_anew(b"", &[]));
    }

    #[test]
    fn a_record_is_of_one_cluster_and_one_name() {
        let (one, other) = (vault(b"a", &[1]), vault(b"b", &[1]));
        let record = one.seal(Tickets, "x", b"plain").unwrap();
        assert_eq!(one.open(Tickets, "y", &record), Err(VaultFault::Damaged));
        assert_eq!(other.open(Tickets, "x", &record), Err(VaultFault::OtherKey));
        assert_ne!(one.seal(Tickets, "x", b"plain").unwrap(), record, "no two are the same");
        assert!(!record.windows(5).any(|part| part == b"plain"));
        assert_ne!(one.derived(b"p"), other.derived(b"p"));
        assert_ne!(one.derived(b"p"), one.derived(b"q"));
        assert_eq!(one.derived(b"p"), vault(b"a", &[1, 2]).derived(b"p"));
    }

    #[test]
    fn each_purpose_has_a_key_of_its_own() {
        let vault = vault(b"a", &[1]);
        for (at, one) in VaultPurpose::ALL.into_iter().enumerate() {
            assert_eq!(one as usize, at, "the order of the keys");
            let record = vault.seal(one, "x", b"plain").unwrap();
            for other in VaultPurpose::ALL {
                let opened = vault.open(other, "x", &record);
                assert_eq!(opened.is_ok(), one == other, "{one:?} {other:?}");
            }
        }
        let labels = VaultPurpose::ALL.map(VaultPurpose::label);
        assert!(labels.iter().all(|label| labels.iter().filter(|one| *one == label).count() == 1));
        let record = vault.seal(Limits, "x", b"plain").unwrap();
        assert_eq!(vault.open(Tickets, "x", &record), Err(VaultFault::Damaged));
    }

    #[test]
    fn a_key_is_64_digits() {
        let text = "0123456789abcdefABCDEF".repeat(3);
        let key = read_vault_key(format!("{}\nmore", &text[..64]).as_bytes()).unwrap();
        assert_eq!(key[..4], [0x01, 0x23, 0x45, 0x67]);
        for bad in [&text[..63], &text[..65], &text.replace('0', "g")[..64], ""] {
            assert!(read_vault_key(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_record_opens_nothing(plain: Vec<u8>, at: usize, bit in 0..8_u8, cut: usize) {
            let vault = vault(b"a", &[1]);
            let mut record = vault.seal(Tickets, "x", &plain).unwrap();
            let opened = vault.open(Tickets, "x", &record).unwrap();
            prop_assert_eq!(&opened[..], &plain[..]);
            prop_assert!(vault.open(Tickets, "x", &record[..cut % record.len()]).is_err());
            let at = at % record.len();
            record[at] ^= 1 << bit;
            prop_assert!(vault.open(Tickets, "x", &record).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_no_record(bytes: Vec<u8>) {
            prop_assert!(vault(b"a", &[1]).open(Tickets, "x", &bytes).is_err());
        }
    }
}
