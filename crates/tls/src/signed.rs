//! Whether a key signed a certificate or an OCSP response, outside any chain, or a handshake.
//!
//! The first two are a sequence of the signed data, the algorithm and the signature (RFC 5280 §4.1,
//! RFC 6960 §4.2.1). Dates, names, versions and purposes are not read here.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer};
use rustls::{CertificateError, DigitallySignedStruct, Error};
use webpki::RawPublicKeyEntity;

use crate::der::{cert_parts, element};

/// Checks that the key of a certificate of any version signed a handshake of TLS 1.2; the library
/// itself reads version 3 only.
///
/// # Errors
///
/// It did not, or the certificate or the signature is of an unknown kind.
pub(crate) fn check_tls12(
    message: &[u8],
    cert: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    known: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = key_of(cert)?;
    let entity = RawPublicKeyEntity::try_from(&key)
        .map_err(|_| Error::from(CertificateError::BadEncoding))?;
    let mut fitting = known.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
    let is_good = fitting.any(|(_, algorithms)| {
        let verify = |algorithm: &&'static dyn SignatureVerificationAlgorithm| {
            entity.verify_signature(*algorithm, message, signed.signature()).is_ok()
        };
        algorithms.iter().any(verify)
    });
    match is_good {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(CertificateError::BadSignature.into()),
    }
}

/// The same for TLS 1.3.
///
/// # Errors
///
/// As [`check_tls12`].
pub(crate) fn check_tls13(
    message: &[u8],
    cert: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    known: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    verify_tls13_signature_with_raw_key(message, &key_of(cert)?, signed, known)
}

fn key_of<'a>(cert: &'a CertificateDer<'_>) -> Result<SubjectPublicKeyInfoDer<'a>, Error> {
    let parts = cert_parts(cert).ok_or(CertificateError::BadEncoding)?;
    Ok(SubjectPublicKeyInfoDer::from(parts.public_key))
}

/// The result of checking a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The key made it.
    Good,
    /// Made by another key, or invalid.
    Bad,
    /// It is of an unknown kind.
    Unknown,
}

/// Checks whether `signed` was signed with the key that `spki` describes; both in DER.
pub(crate) fn prove(signed: &[u8], spki: &[u8]) -> Proof {
    let Some(parts) = Parts::read(signed, spki) else { return Proof::Bad };
    let all = default_provider().signature_verification_algorithms.all;
    if !all.iter().any(|one| *one.signature_alg_id() == *parts.algorithm) {
        return Proof::Unknown;
    }
    let made_it = all.iter().any(|one| {
        *one.signature_alg_id() == *parts.algorithm
            && *one.public_key_alg_id() == *parts.key_algorithm
            && one.verify_signature(parts.key, parts.message, parts.signature).is_ok()
    });
    if made_it { Proof::Good } else { Proof::Bad }
}

struct Parts<'a> {
    message: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
    key_algorithm: &'a [u8],
    key: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(mut signed: &'a [u8], mut spki: &'a [u8]) -> Option<Self> {
        let mut body = element(&mut signed)?.1;
        let mut key = element(&mut spki)?.1;
        Some(Self {
            message: element(&mut body)?.0,
            algorithm: element(&mut body)?.1,
            // The first byte of a bit string counts the unused bits of its last byte.
            signature: element(&mut body)?.1.strip_prefix(&[0])?,
            key_algorithm: element(&mut key)?.1,
            key: element(&mut key)?.1.strip_prefix(&[0])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::{Proof, prove};

    proptest! {
        #[test]
        fn arbitrary_bytes_prove_nothing(signed: Vec<u8>, spki: Vec<u8>) {
            assert_ne!(prove(&signed, &spki), Proof::Good);
        }
    }
}
