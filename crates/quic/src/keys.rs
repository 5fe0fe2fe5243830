//! The secrets that all workers share. Those of connection ids survive reloads and upgrades:
//! without them a datagram could not be routed to its worker. Tokens follow the configuration.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::fill;

use crate::cipher::Cipher;

/// The keys of stateless resets, tokens and connection ids, derived from one secret.
#[derive(Clone)]
pub struct SharedKeys {
    secret: [u8; 32],
    pub(crate) reset: Arc<hmac::Key>,
    pub(crate) token: Arc<Prk>,
    pub(crate) cid: Cipher,
    /// The number of the first worker in connection ids.
    pub(crate) first: u8,
}

/// The length of a derived key in bytes.
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

impl SharedKeys {
    /// New keys, for a process that inherits none.
    ///
    /// # Errors
    ///
    /// The system's random number generator failed.
    pub fn generate() -> Result<Self, String> {
        let mut secret = [0; 32];
        fill(&mut secret).map_err(|_| "the system's randomness failed".to_owned())?;
        Ok(Self::from_secret(secret))
    }

    /// The keys of `secret`; for the successor of a running process.
    #[must_use]
    pub fn from_secret(secret: [u8; 32]) -> Self {
        let root = Salt::new(HKDF_SHA256, b"bolide quic").extract(&secret);
        let (mut reset, mut token, mut cid) = ([0; 64], [0; 64], [0; 16]);
        derive(&root, b"reset", &mut reset);
        derive(&root, b"token", &mut token);
        derive(&root, b"cid", &mut cid);
        let (words, _) = cid.as_chunks::<4>();
        let word = |at: usize| u32::from_be_bytes(words[at]);
        Self {
            secret,
            reset: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &reset)),
            token: Arc::new(Salt::new(HKDF_SHA256, &[]).extract(&token)),
            cid: Cipher::new([word(0), word(1), word(2), word(3)]),
            first: 0,
        }
    }

    /// The same keys, but with tokens (Retry, `NEW_TOKEN`) that follow from another secret, which
    /// other servers may have too. Resets stay this server's: no other one may end its connections
    /// (RFC 9000, section 21.11).
    #[must_use]
    pub fn with_tokens_of(mut self, secret: [u8; 32]) -> Self {
        self.token = Self::from_secret(secret).token;
        self
    }

    /// The same keys, but with tokens and resets of another secret: what the configuration says is
    /// in force, whatever connection ids a process has inherited.
    #[must_use]
    pub fn with_tokens_and_resets_of(mut self, secret: [u8; 32]) -> Self {
        let other = Self::from_secret(secret);
        (self.token, self.reset) = (other.token, other.reset);
        self
    }

    /// The same keys for workers with numbers from `first` on, which differ from a predecessor's.
    #[must_use]
    pub fn numbered_from(mut self, first: u8) -> Self {
        self.first = first;
        self
    }

    /// The number of the first worker in connection ids.
    #[must_use]
    pub const fn first(&self) -> u8 {
        self.first
    }

    /// The secret that a successor needs for the same keys. Keep it out of logs.
    #[must_use]
    pub const fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}

fn derive(root: &Prk, label: &[u8], out: &mut [u8]) {
    let info = [label];
    root.expand(&info, Bytes(out.len()))
        .and_then(|okm| okm.fill(out))
        .expect("HKDF yields up to 8160 bytes");
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKeys")
    }
}
