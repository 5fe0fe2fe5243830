//! The keys of session tickets, shared by all workers and kept across reloads, and those that
//! several servers have in common.
//!
//! A ticket follows RFC 5077 §4: the name of its key, an initialisation vector, the state under
//! AES-CBC, and an HMAC over all of that. Nothing here reads a file.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::cipher::{
    AES_128, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{hmac, rand};
use rustls::TicketRotator;
use rustls::crypto::GetRandomFailed;
use rustls::server::ProducesTickets;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use zeroize::Zeroizing;

/// Bytes of a key's name, and of a vector.
const NAME: usize = 16;
/// Bytes of an HMAC-SHA256.
const PROOF: usize = 32;

/// Keys that encrypt and decrypt tickets.
pub struct Tickets(pub(crate) Arc<dyn ProducesTickets>);

impl Tickets {
    /// Fresh keys: each encrypts for `period` seconds and decrypts for twice as long. Those of
    /// `common` encrypt instead where there are some for now.
    ///
    /// # Errors
    ///
    /// As text, when the system's randomness fails.
    pub fn rotating(period: u32, common: CommonTickets) -> Result<Self, String> {
        let own = TicketRotator::new(period, fresh).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(JoinedKeys { own, common })))
    }

    /// Keys as in files of 48 bytes (AES-128) or 80 (AES-256); the first one encrypts, all decrypt.
    /// `None` when a file has another length, or there is no file.
    #[must_use]
    pub fn with_keys(files: &[Vec<u8>]) -> Option<Self> {
        let keys = files.iter().map(|bytes| TicketKey::read(bytes)).collect::<Option<Vec<_>>>()?;
        (!keys.is_empty()).then(|| Self(Arc::new(Keys(keys))))
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

/// A key that several servers have, and when it is for what, in seconds since 1970.
#[derive(Debug)]
pub struct CommonTicketKey {
    key: TicketKey,
    encrypts: Option<(u64, u64)>,
    until: u64,
}

impl CommonTicketKey {
    /// The key that follows from a secret. It encrypts in `encrypts` (from, until), and decrypts
    /// before `until`.
    #[must_use]
    pub fn new(secret: &[u8; 32], encrypts: Option<(u64, u64)>, until: u64) -> Option<Self> {
        let mut bytes = Zeroizing::new([0; 80]);
        let root = Salt::new(HKDF_SHA256, b"bolide tickets").extract(secret);
        let info = [&b"ticket"[..]];
        root.expand(&info, KeyBytes).and_then(|okm| okm.fill(&mut bytes[..])).ok()?;
        Some(Self { key: TicketKey::read(&bytes[..])?, encrypts, until })
    }
}

/// The length of a key in bytes.
struct KeyBytes;

impl KeyType for KeyBytes {
    fn len(&self) -> usize {
        80
    }
}

/// Keys that several servers have. They may be others at any time; who has a copy sees it.
#[derive(Clone, Debug, Default)]
pub struct CommonTickets(Arc<RwLock<Arc<[CommonTicketKey]>>>);

impl CommonTickets {
    /// These from now on.
    pub fn replace(&self, keys: Vec<CommonTicketKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys.into();
    }

    fn keys(&self) -> Arc<[CommonTicketKey]> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A ticket of the key that encrypts at this time, in seconds since 1970, if there is one.
    #[must_use]
    pub fn encrypt_at(&self, plain: &[u8], now: u64) -> Option<Vec<u8>> {
        let is_for_now = |(from, until): (u64, u64)| (from..until).contains(&now);
        let keys = self.keys();
        keys.iter().find(|key| key.encrypts.is_some_and(is_for_now))?.key.seal(plain)
    }

    /// What a ticket has, if one of these keys opens it at this time.
    #[must_use]
    pub fn decrypt_at(&self, ticket: &[u8], now: u64) -> Option<Vec<u8>> {
        let name = ticket.get(..NAME)?;
        let keys = self.keys();
        let mut named = keys.iter().filter(|key| key.key.name == name && now < key.until);
        named.find_map(|key| key.key.open(ticket))
    }
}

/// Keys of this server, and those that it has in common with others.
#[derive(Debug)]
struct JoinedKeys {
    own: TicketRotator,
    common: CommonTickets,
}

fn now() -> Option<u64> {
    DefaultTimeProvider.current_time().map(|now| now.as_secs())
}

impl ProducesTickets for JoinedKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.own.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let common = now().and_then(|now| self.common.encrypt_at(plain, now));
        common.or_else(|| self.own.encrypt(plain))
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let common = now().and_then(|now| self.common.decrypt_at(ticket, now));
        common.or_else(|| self.own.decrypt(ticket))
    }
}

fn fresh() -> Result<Box<dyn ProducesTickets>, GetRandomFailed> {
    let mut bytes = Zeroizing::new([0; 80]);
    rand::fill(&mut bytes[..]).map_err(|_| GetRandomFailed)?;
    let key = TicketKey::read(&bytes[..]).ok_or(GetRandomFailed)?;
    Ok(Box::new(Keys(vec![key])))
}

/// One key of tickets.
struct TicketKey {
    name: [u8; NAME],
    seal: PaddedBlockEncryptingKey,
    open: PaddedBlockDecryptingKey,
    proof: hmac::Key,
}

impl TicketKey {
    /// The layouts of nginx's files: name, AES key, HMAC key of 16 bytes each; or name, HMAC key
    /// and AES key of 16, 32 and 32.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (name, rest) = bytes.split_first_chunk::<NAME>()?;
        let (algorithm, cipher, proof): (&'static Algorithm, _, _) = match bytes.len() {
            48 => (&AES_128, &rest[..16], &rest[16..]),
            80 => (&AES_256, &rest[32..], &rest[..32]),
            _ => return None,
        };
        let key = || UnboundCipherKey::new(algorithm, cipher).ok();
        Some(Self {
            name: *name,
            seal: PaddedBlockEncryptingKey::cbc_pkcs7(key()?).ok()?,
            open: PaddedBlockDecryptingKey::cbc_pkcs7(key()?).ok()?,
            proof: hmac::Key::new(hmac::HMAC_SHA256, proof),
        })
    }

    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = plain.to_vec();
        let DecryptionContext::Iv128(vector) = self.seal.encrypt(&mut sealed).ok()? else {
            return None;
        };
        let mut ticket = Vec::with_capacity(2 * NAME + sealed.len() + PROOF);
        ticket.extend_from_slice(&self.name);
        ticket.extend_from_slice(vector.as_ref());
        ticket.extend_from_slice(&sealed);
        let proof = hmac::sign(&self.proof, &ticket);
        ticket.extend_from_slice(proof.as_ref());
        Some(ticket)
    }

    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (signed, proof) = ticket.split_last_chunk::<PROOF>()?;
        // Before anything is decrypted, and in constant time.
        hmac::verify(&self.proof, signed, proof).ok()?;
        let (vector, sealed) = signed.get(NAME..)?.split_first_chunk::<NAME>()?;
        let vector = DecryptionContext::Iv128(FixedLength::from(vector));
        let mut sealed = sealed.to_vec();
        let plain = self.open.decrypt(&mut sealed, vector).ok()?.len();
        sealed.truncate(plain);
        Some(sealed)
    }
}

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKey")
    }
}

/// Keys, the encrypting one first.
struct Keys(Vec<TicketKey>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.0.len()).finish()
    }
}

impl ProducesTickets for Keys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.first()?.seal(plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let name = ticket.get(..NAME)?;
        self.0.iter().filter(|key| key.name == name).find_map(|key| key.open(ticket))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::{CommonTicketKey, CommonTickets, Tickets};

    fn file(len: usize, seed: u8) -> Vec<u8> {
        (0..len).map(|at| seed.wrapping_add(at as u8)).collect()
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let (small, large) = (file(48, 1), file(80, 99));
        let old = Tickets::with_keys(std::slice::from_ref(&small)).unwrap().0;
        let new = Tickets::with_keys(&[large.clone(), small]).unwrap().0;
        let alone = Tickets::with_keys(&[large]).unwrap().0;
        let ticket = old.encrypt(b"what is kept").unwrap();
        assert_eq!(new.decrypt(&ticket).as_deref(), Some(&b"what is kept"[..]));
        assert_eq!(alone.decrypt(&ticket), None);
        let ticket = new.encrypt(b"and again").unwrap();
        assert_eq!(alone.decrypt(&ticket).as_deref(), Some(&b"and again"[..]));
        assert_eq!(old.decrypt(&ticket), None);
        assert!(ticket.starts_with(&file(16, 99)));
    }

    #[test]
    fn keys_have_48_or_80_bytes() {
        for len in [0, 1, 47, 49, 79, 81] {
            assert!(Tickets::with_keys(&[file(48, 0), file(len, 0)]).is_none(), "{len}");
        }
        assert!(Tickets::with_keys(&[]).is_none());
    }

    #[test]
    fn fresh_keys_open_what_they_sealed() {
        let tickets = Tickets::rotating(60, CommonTickets::default()).unwrap().0;
        let ticket = tickets.encrypt(b"x").unwrap();
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"x"[..]));
    }

    #[test]
    fn servers_with_common_keys_open_what_the_others_sealed() {
        let key = || CommonTicketKey::new(&[7; 32], Some((0, u64::MAX)), u64::MAX).unwrap();
        let server = || {
            let common = CommonTickets::default();
            let tickets = Tickets::rotating(60, common.clone()).unwrap().0;
            (common, tickets)
        };
        let ((one, sealer), (other, opener)) = (server(), server());
        let alone = sealer.encrypt(b"alone").unwrap();
        one.replace(vec![key()]);
        let common = sealer.encrypt(b"common").unwrap();
        assert_eq!(opener.decrypt(&common), None, "it has no such key yet");
        other.replace(vec![key()]);
        assert_eq!(opener.decrypt(&common).as_deref(), Some(&b"common"[..]));
        assert_eq!(opener.decrypt(&alone), None);
        assert_eq!(sealer.decrypt(&alone).as_deref(), Some(&b"alone"[..]), "its own still open");
        one.replace(Vec::new());
        assert_eq!(sealer.decrypt(&common), None, "what is no longer common opens nothing");
        assert!(sealer.encrypt(b"x").is_some(), "without them it goes on alone");
    }

    #[test]
    fn a_common_key_has_its_time() {
        let common = CommonTickets::default();
        common.replace(vec![
            CommonTicketKey::new(&[1; 32], Some((100, 200)), 300).unwrap(),
            CommonTicketKey::new(&[2; 32], None, 300).unwrap(),
        ]);
        assert_eq!(common.encrypt_at(b"x", 99), None);
        assert_eq!(common.encrypt_at(b"x", 200), None);
        let ticket = common.encrypt_at(b"x", 199).unwrap();
        assert_eq!(common.decrypt_at(&ticket, 299).as_deref(), Some(&b"x"[..]));
        assert_eq!(common.decrypt_at(&ticket, 300), None);
    }

    proptest! {
        #[test]
        fn a_changed_ticket_opens_nothing(
            plain: Vec<u8>, at: usize, bit in 0..8_u8,
        ) {
            let keys = Tickets::with_keys(&[file(80, 3), file(48, 7)]).unwrap().0;
            let mut ticket = keys.encrypt(&plain).unwrap();
            assert_eq!(keys.decrypt(&ticket), Some(plain));
            let at = at % ticket.len();
            ticket[at] ^= 1 << bit;
            assert_eq!(keys.decrypt(&ticket), None);
        }

        #[test]
        fn arbitrary_bytes_are_no_ticket(bytes: Vec<u8>) {
            let keys = Tickets::with_keys(&[file(80, 3)]).unwrap().0;
            assert_eq!(keys.decrypt(&bytes), None);
            let mut named = file(16, 3);
            named.extend(bytes);
            assert_eq!(keys.decrypt(&named), None);
        }
    }
}
