//! The keys of session tickets, shared by all workers and kept across reloads.
//!
//! A ticket follows RFC 5077 §4: the name of its key, an initialisation vector, the state under
//! AES-CBC, and an HMAC over all of that. Nothing here reads a file.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::cipher::{
    AES_128, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{hmac, rand};
use rustls::TicketRotator;
use rustls::crypto::GetRandomFailed;
use rustls::server::ProducesTickets;

/// Bytes of a key's name, and of a vector.
const NAME: usize = 16;
/// Bytes of an HMAC-SHA256.
const PROOF: usize = 32;

/// Keys that encrypt and decrypt tickets.
pub struct Tickets(pub(crate) Arc<dyn ProducesTickets>);

impl Tickets {
    /// Fresh keys: each encrypts for `period` seconds and decrypts for twice as long.
    ///
    /// # Errors
    ///
    /// As text, when the system's randomness fails.
    pub fn rotating(period: u32) -> Result<Self, String> {
        let rotator = TicketRotator::new(period, fresh).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(rotator)))
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

fn fresh() -> Result<Box<dyn ProducesTickets>, GetRandomFailed> {
    let mut bytes = [0; 80];
    rand::fill(&mut bytes).map_err(|_| GetRandomFailed)?;
    let key = TicketKey::read(&bytes).ok_or(GetRandomFailed)?;
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
        let (told, proof) = ticket.split_last_chunk::<PROOF>()?;
        // Before anything is decrypted, and in constant time.
        hmac::verify(&self.proof, told, proof).ok()?;
        let (vector, sealed) = told.get(NAME..)?.split_first_chunk::<NAME>()?;
        let vector = DecryptionContext::Iv128(FixedLength::from(vector));
        let mut sealed = sealed.to_vec();
        let plain = self.open.decrypt(&mut sealed, vector).ok()?.len();
        sealed.truncate(plain);
        Some(sealed)
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

    use super::Tickets;

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
        let tickets = Tickets::rotating(60).unwrap().0;
        let ticket = tickets.encrypt(b"x").unwrap();
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"x"[..]));
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
