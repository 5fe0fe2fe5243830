//! One certificate chain with its private key. It reads PEM bytes, never files.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::Error as PemError;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider as _};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::der::cert_parts;
use crate::sealed::{self, UnsealError};
use crate::{SealState, client_facts, pem_text};

/// A chain, leaf first, and the key that signs for it. Cheap to clone.
#[derive(Clone)]
pub struct LoadedCertificate {
    made: Arc<CertifiedKey>,
    /// The shared place of the same certificate with its current OCSP response.
    staple: Option<Staple>,
}

/// Certificates, leaf first. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CertChain(Arc<[CertificateDer<'static>]>);

impl CertChain {
    /// Reads the certificates of a PEM text, of any version; other sections are skipped.
    ///
    /// # Errors
    ///
    /// There is none, or one is malformed.
    pub fn from_pem(text: &[u8]) -> Result<Self, CertError> {
        let chain =
            pem_text::certificates(text).map_err(|error| CertError::BadChain(error.to_string()))?;
        if chain.is_empty() {
            return Err(CertError::NoCertificate);
        }
        if chain.iter().any(|der| cert_parts(der).is_none()) {
            return Err(CertError::BadCertificate("malformed encoding".to_owned()));
        }
        Ok(Self(chain.into()))
    }
}

/// A private key. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LoadedKey {
    key: Arc<dyn SigningKey>,
    was_sealed: bool,
}

impl LoadedKey {
    /// Reads the first key of a PEM text (PKCS#8, PKCS#1 or SEC1); an encrypted one is tried with
    /// each of `passwords`.
    ///
    /// # Errors
    ///
    /// There is none, it is malformed, or none of the pass phrases opens it.
    pub fn from_pem(text: &[u8], passwords: &[Vec<u8>]) -> Result<Self, CertError> {
        let (key, was_sealed) = read_key(text, passwords)?;
        Self::of(&key, was_sealed)
    }

    /// The same of a file of OpenSSL's store: PEM, or one key in DER.
    ///
    /// # Errors
    ///
    /// As [`Self::from_pem`].
    pub fn from_store(bytes: &[u8], passwords: &[Vec<u8>]) -> Result<Self, CertError> {
        match PrivateKeyDer::try_from(bytes) {
            Ok(key) => Self::of(&key, false),
            Err(_) => Self::from_pem(bytes, passwords),
        }
    }

    fn of(key: &PrivateKeyDer<'_>, was_sealed: bool) -> Result<Self, CertError> {
        let key = any_supported_type(key).map_err(|error| CertError::BadKey(words(&error)))?;
        Ok(Self { key, was_sealed })
    }

    /// Whether a pass phrase opened it.
    #[must_use]
    pub const fn was_sealed(&self) -> bool {
        self.was_sealed
    }
}

/// A place for the stapled OCSP response (DER) of a certificate. All clones share the place.
#[derive(Clone)]
pub struct Staple(Arc<RwLock<StapledKey>>);

struct StapledKey {
    certified: Arc<CertifiedKey>,
    /// When its response expires, in seconds since 1970 (`nextUpdate`, RFC 6960 §4.2.2.1).
    until: Option<u64>,
}

impl Staple {
    /// Sets the response to staple from now on, up to `until` in seconds since 1970, or none.
    pub fn set(&self, answer: Option<Vec<u8>>, until: Option<u64>) {
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut certified = CertifiedKey::clone(&place.certified);
        certified.ocsp = answer;
        *place = StapledKey { certified: Arc::new(certified), until };
    }

    /// The certificate with its response; none if that has expired.
    fn certified(&self) -> Option<Arc<CertifiedKey>> {
        let place = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_over = place.until.is_some_and(|until| {
            DefaultTimeProvider.current_time().is_none_or(|now| now.as_secs() >= until)
        });
        (!is_over).then(|| Arc::clone(&place.certified))
    }
}

impl fmt::Debug for Staple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Staple")
    }
}

/// Why a chain and a key do not make a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertError {
    /// The chain holds no `CERTIFICATE` section.
    NoCertificate,
    /// A section of the chain is not well-formed PEM.
    BadChain(String),
    /// The leaf is unusable.
    BadCertificate(String),
    /// The key holds no private key section.
    NoKey,
    /// The key is encrypted, and no pass phrase opens it.
    EncryptedKey(SealState),
    /// The key is malformed or of an unsupported type.
    BadKey(String),
    /// The key belongs to another certificate.
    KeyMismatch,
}

impl fmt::Display for CertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("no certificate found"),
            Self::BadChain(why) => write!(f, "malformed PEM in the certificate chain: {why}"),
            Self::BadCertificate(why) => write!(f, "unusable certificate: {why}"),
            Self::NoKey => f.write_str("no private key found"),
            Self::EncryptedKey(_) => f.write_str("the private key is encrypted with a password"),
            Self::BadKey(why) => write!(f, "unusable private key: {why}"),
            Self::KeyMismatch => f.write_str("the private key does not belong to the certificate"),
        }
    }
}

impl std::error::Error for CertError {}

impl LoadedCertificate {
    /// Reads a PEM chain (leaf first) and a PEM key (PKCS#8, PKCS#1 or SEC1); other sections of
    /// either input are skipped. An encrypted key is tried with each of `passwords`. What the
    /// certificates say is not judged: any version, dates and extensions are served.
    ///
    /// # Errors
    ///
    /// Says which of the two inputs is at fault and why.
    pub fn from_pem(chain: &[u8], key: &[u8], passwords: &[Vec<u8>]) -> Result<Self, CertError> {
        Self::join(&CertChain::from_pem(chain)?, &LoadedKey::from_pem(key, passwords)?)
    }

    /// A chain with its key.
    ///
    /// # Errors
    ///
    /// The key is another certificate's.
    pub fn join(chain: &CertChain, key: &LoadedKey) -> Result<Self, CertError> {
        let leaf = chain.0.first().and_then(|der| cert_parts(der));
        let leaf = leaf.ok_or(CertError::NoCertificate)?.public_key;
        if key.key.public_key().is_some_and(|own| own.as_ref() != leaf) {
            return Err(CertError::KeyMismatch);
        }
        let key = Arc::new(NotingKey(Arc::clone(&key.key)));
        Ok(Self { made: Arc::new(CertifiedKey::new(chain.0.to_vec(), key)), staple: None })
    }

    /// The same with a stapled OCSP response (DER).
    #[must_use]
    pub fn stapled(&self, answer: Vec<u8>) -> Self {
        let mut certified = CertifiedKey::clone(&self.made);
        certified.ocsp = Some(answer);
        Self { made: Arc::new(certified), staple: None }
    }

    /// A place for OCSP responses for this certificate; empty at first.
    #[must_use]
    pub fn with_staple(&self) -> Staple {
        Staple(Arc::new(RwLock::new(StapledKey { certified: Arc::clone(&self.made), until: None })))
    }

    /// The same with such a place.
    #[must_use]
    pub fn at_staple(&self, staple: &Staple) -> Self {
        Self { made: Arc::clone(&self.made), staple: Some(staple.clone()) }
    }

    /// The form for handshakes.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        let stapled = self.staple.as_ref().and_then(Staple::certified);
        stapled.unwrap_or_else(|| Arc::clone(&self.made))
    }

    pub(crate) fn key(&self) -> &dyn SigningKey {
        &*self.made.key
    }

    /// The certificates in DER, leaf first.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.made.cert.iter().map(AsRef::as_ref)
    }

    /// When the validity of the leaf ends: in seconds since 1970, and as nginx writes dates.
    #[must_use]
    pub fn end(&self) -> Option<(i64, String)> {
        let (_, leaf) = X509Certificate::from_der(self.leaf()).ok()?;
        let end = leaf.validity().not_after;
        Some((end.timestamp(), String::from_utf8_lossy(&client_facts::date(&end)).into_owned()))
    }

    /// The leaf in DER.
    #[must_use]
    pub fn leaf(&self) -> &[u8] {
        self.chain().next().unwrap_or_default()
    }
}

/// The certificates of a PEM text, in DER; other sections are skipped.
#[must_use]
pub fn certificates_in(text: &[u8]) -> Vec<Vec<u8>> {
    let all = pem_text::certificates(text).unwrap_or_default();
    all.into_iter().map(|der| der.to_vec()).collect()
}

/// A key that records on its thread the kind of its last signature.
#[derive(Debug)]
struct NotingKey(Arc<dyn SigningKey>);

thread_local! {
    static SIGNED: Cell<Option<SignatureScheme>> = const { Cell::new(None) };
}

/// Takes the kind of the last signature on this thread.
pub(crate) fn take_signature() -> Option<SignatureScheme> {
    SIGNED.take()
}

impl SigningKey for NotingKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.0.choose_scheme(offered)?;
        SIGNED.set(Some(signer.scheme()));
        Some(signer)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.0.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

impl fmt::Debug for LoadedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("chain_len", &self.made.cert.len())
            .finish_non_exhaustive()
    }
}

/// A key, and whether a pass phrase opened it.
fn read_key(
    text: &[u8],
    passwords: &[Vec<u8>],
) -> Result<(PrivateKeyDer<'static>, bool), CertError> {
    // The laxer of the two PEM readers may accept a text that the other rejects.
    let sections = pem::parse_many(text).unwrap_or_default();
    match sealed::open(&sections, passwords) {
        Some(Ok(key)) => return Ok((key, true)),
        Some(Err(UnsealError::Password(seal))) => return Err(CertError::EncryptedKey(seal)),
        Some(Err(UnsealError::Unknown(text))) => return Err(CertError::BadKey(text)),
        None => {}
    }
    let key = pem_text::private_key(text).map_err(|error| match error {
        PemError::NoItemsFound => CertError::NoKey,
        other => CertError::BadKey(other.to_string()),
    })?;
    Ok((key, false))
}

/// The library's message, without its wrapping.
fn words(error: &Error) -> String {
    match error {
        Error::General(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{CertError, LoadedCertificate};
    use crate::self_signed;

    #[test]
    fn every_fault_of_a_certificate_is_said_in_words() {
        let (chain, key) = self_signed(&["a.example"]).unwrap();
        let (_, other) = self_signed(&["a.example"]).unwrap();
        let read =
            |chain: &[u8], key: &[u8]| LoadedCertificate::from_pem(chain, key, &[]).map(|_| ());
        assert_eq!(read(chain.as_bytes(), key.as_bytes()), Ok(()));
        assert_eq!(read(b"", key.as_bytes()), Err(CertError::NoCertificate));
        assert_eq!(read(chain.as_bytes(), b"x"), Err(CertError::NoKey));
        assert_eq!(read(chain.as_bytes(), chain.as_bytes()), Err(CertError::NoKey));
        assert_eq!(read(chain.as_bytes(), other.as_bytes()), Err(CertError::KeyMismatch));
        let sealed = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        assert!(matches!(read(chain.as_bytes(), sealed.as_bytes()), Err(CertError::BadKey(_))));
        let cut = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert!(matches!(read(chain.as_bytes(), cut.as_bytes()), Err(CertError::BadKey(_))));
        let cut = "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n";
        assert!(matches!(read(cut.as_bytes(), key.as_bytes()), Err(CertError::BadChain(_))));
        let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(read(cut.as_bytes(), key.as_bytes()), Err(CertError::BadCertificate(_))));
    }

    #[test]
    fn a_response_is_stapled_until_it_expires() {
        let (chain, key) = self_signed(&["a.example"]).unwrap();
        let plain = LoadedCertificate::from_pem(chain.as_bytes(), key.as_bytes(), &[]).unwrap();
        let staple = plain.with_staple();
        let certificate = plain.at_staple(&staple);
        assert_eq!(certificate.certified().ocsp, None);
        for (until, is_sent) in [(None, true), (Some(u64::MAX), true), (Some(1), false)] {
            staple.set(Some(vec![0x30]), until);
            let sent = certificate.certified().ocsp.clone();
            assert_eq!(sent, is_sent.then(|| vec![0x30]), "{until:?}");
        }
        staple.set(None, None);
        assert_eq!(certificate.certified().ocsp, None);
    }

    #[test]
    fn a_chain_and_a_key_may_share_one_file_with_other_sections() {
        let (chain, key) = self_signed(&["a.example"]).unwrap();
        let both = format!(
            "text\n-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n\
             -----END EC PARAMETERS-----\n{key}{chain}"
        );
        assert!(LoadedCertificate::from_pem(both.as_bytes(), both.as_bytes(), &[]).is_ok());
    }
}
