//! Keys, certificate requests (PKCS #10), and the check of a certificate that an issuer sends: it
//! must match the key and the names, and be valid now.

use aws_lc_rs::digest::{SHA256, digest};
use pem::{EncodeConfig, LineEnding};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256, PublicKeyData as _,
    RsaKeySize,
};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use crate::plan::CertificateKey;
use crate::schedule::Validity;
use crate::statuses::{StatusSource, WatchedCertificate};

/// LIMIT: certificates of a chain.
const CHAIN_MAX: usize = 10;
/// LIMIT: bytes of a chain with its key.
pub const BUNDLE_MAX: usize = 1 << 20;
/// Seconds by which the clocks of an issuer and this machine may differ.
const SKEW: u64 = 300;
/// LIMIT: bytes of a common name (RFC 5280, appendix A.1).
const COMMON_NAME_MAX: usize = 64;

/// SHA-256 in hexadecimal.
#[must_use]
pub fn digest_hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A new key in PEM form (PKCS #8).
///
/// # Errors
///
/// Key generation failed.
pub fn new_key(kind: CertificateKey) -> Result<String, String> {
    let made = match kind {
        CertificateKey::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        CertificateKey::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        CertificateKey::EcdsaP521 => KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512),
        CertificateKey::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        CertificateKey::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
        CertificateKey::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
    };
    made.map(|key| key.serialize_pem()).map_err(|error| format!("no key could be made: {error}"))
}

/// The request for a certificate of these names with this key, in DER.
///
/// # Errors
///
/// A name or the key is unusable.
pub fn request(names: &[String], key: &str) -> Result<Vec<u8>, String> {
    let failed = |error: rcgen::Error| format!("no certificate can be requested: {error}");
    let key = KeyPair::from_pem(key).map_err(failed)?;
    Ok(params(names).and_then(|made| made.serialize_request(&key)).map_err(failed)?.der().to_vec())
}

/// The parameters of a certificate for these names.
pub(crate) fn params(names: &[String]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    let is_common =
        |name: &&String| name.len() <= COMMON_NAME_MAX && name.parse::<std::net::IpAddr>().is_err();
    if let Some(first) = names.first().filter(is_common) {
        params.distinguished_name.push(DnType::CommonName, first);
    }
    Ok(params)
}

/// Facts of a chain that matches its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFacts {
    /// The validity of the leaf.
    pub validity: Validity,
    /// The identifier for renewal information (RFC 9773, section 4.1), if the leaf permits one.
    pub renewal_id: Option<(Vec<u8>, Vec<u8>)>,
    /// The common name of the last certificate's issuer.
    pub top: Option<String>,
    /// The contents of the leaf's serial number in DER.
    pub serial: Vec<u8>,
    /// Where the issuer tells whether it revoked the leaf, if anywhere.
    pub source: Option<StatusSource>,
}

impl ChainFacts {
    /// The serial number in hexadecimal, as logs and files have it.
    #[must_use]
    pub fn serial_text(&self) -> String {
        serial_text(&self.serial)
    }

    pub(crate) fn watched(&self) -> Option<WatchedCertificate> {
        Some(WatchedCertificate { serial: self.serial.clone(), source: self.source.clone()? })
    }
}

/// A serial number in hexadecimal, without the sign.
pub(crate) fn serial_text(serial: &[u8]) -> String {
    let digits = match serial {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks that `chain` (PEM, leaf first) is for exactly this key, of the wanted kind, and for all
/// `names`, and that each certificate is followed by its issuer.
///
/// # Errors
///
/// The mismatch, as text.
pub fn check(
    chain: &[u8],
    key: &str,
    kind: CertificateKey,
    names: &[String],
) -> Result<ChainFacts, String> {
    let key = KeyPair::from_pem(key).map_err(|error| format!("the key is unreadable: {error}"))?;
    let blocks = pem::parse_many(chain).map_err(|error| format!("the chain is no PEM: {error}"))?;
    let blocks: Vec<_> = blocks.into_iter().filter(|block| block.tag() == "CERTIFICATE").collect();
    if blocks.is_empty() || blocks.len() > CHAIN_MAX {
        return Err(format!("the chain has {} certificates", blocks.len()));
    }
    let mut parsed = Vec::new();
    for block in &blocks {
        match X509Certificate::from_der(block.contents()) {
            Ok(([], certificate)) => parsed.push(certificate),
            _ => return Err("a certificate of the chain is unreadable".to_owned()),
        }
    }
    let Some((leaf, above)) = parsed.split_first() else { return Err("no chain".to_owned()) };
    if leaf.public_key().raw != key.subject_public_key_info() {
        return Err("the certificate is for another key".to_owned());
    }
    if !is_of_kind(&key, kind, leaf) {
        return Err("the key is of another kind".to_owned());
    }
    if let Some(name) = names.iter().find(|name| !has_name(leaf, name)) {
        return Err(format!("the certificate is not for \"{name}\""));
    }
    let mut below = leaf;
    for certificate in above {
        if below.issuer() != certificate.subject() {
            return Err("the chain does not follow its issuers".to_owned());
        }
        below = certificate;
    }
    let top = below.issuer().iter_common_name().next().and_then(|name| name.as_str().ok());
    let (validity, renewal_id) = (validity(leaf), renewal_id(leaf));
    let serial = leaf.tbs_certificate.raw_serial().to_vec();
    let ders: Vec<&[u8]> = blocks.iter().map(pem::Pem::contents).collect();
    let (top, source) = (top.map(str::to_owned), source(&ders));
    Ok(ChainFacts { validity, renewal_id, top, serial, source })
}

/// Where to ask about the leaf of a chain (in DER): a responder, or else a list. Without its issuer
/// no answer could be verified.
fn source(chain: &[&[u8]]) -> Option<StatusSource> {
    bolide_tls::issuer_in(chain)?;
    let leaf = chain.first()?;
    let responder = bolide_tls::responder(leaf).filter(|url| bolide_tls::is_http(url));
    let list = || bolide_tls::list_url(leaf).map(StatusSource::List);
    responder.map(StatusSource::Responder).or_else(list)
}

fn validity(leaf: &X509Certificate<'_>) -> Validity {
    let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
    Validity {
        from: seconds(leaf.validity().not_before.timestamp()),
        until: seconds(leaf.validity().not_after.timestamp()),
    }
}

/// The validity of the leaf of a chain (PEM, leaf first); `None` if it is malformed.
#[must_use]
pub fn life(chain: &[u8]) -> Option<Validity> {
    leaf_of(chain, validity)
}

/// The leaf of a chain, in DER.
pub(crate) fn leaf(chain: &[u8]) -> Option<Vec<u8>> {
    leaf_of(chain, |leaf| leaf.as_raw().to_vec())
}

/// Reads a property of the leaf.
pub(crate) fn leaf_of<T>(chain: &[u8], what: impl FnOnce(&X509Certificate<'_>) -> T) -> Option<T> {
    let block = pem::parse(chain).ok().filter(|block| block.tag() == "CERTIFICATE")?;
    let (_, leaf) = X509Certificate::from_der(block.contents()).ok()?;
    Some(what(&leaf))
}

/// Checks that a certificate is valid now.
///
/// # Errors
///
/// It is not valid yet, or expired.
pub fn check_time(validity: Validity, now: u64) -> Result<(), String> {
    if validity.from > now.saturating_add(SKEW) {
        return Err("the certificate is not valid yet".to_owned());
    }
    if validity.until <= now || validity.until <= validity.from {
        return Err("the certificate has expired".to_owned());
    }
    Ok(())
}

fn is_of_kind(key: &KeyPair, kind: CertificateKey, leaf: &X509Certificate<'_>) -> bool {
    let bits = leaf.public_key().parsed().map_or(0, |parsed| parsed.key_size());
    let algorithm = match kind {
        CertificateKey::EcdsaP256 => return key.is_compatible(&PKCS_ECDSA_P256_SHA256),
        CertificateKey::EcdsaP384 => return key.is_compatible(&PKCS_ECDSA_P384_SHA384),
        CertificateKey::EcdsaP521 => return key.is_compatible(&PKCS_ECDSA_P521_SHA512),
        CertificateKey::Rsa2048 => 2048,
        CertificateKey::Rsa3072 => 3072,
        CertificateKey::Rsa4096 => 4096,
    };
    key.is_compatible(&PKCS_RSA_SHA256) && bits == algorithm
}

fn has_name(leaf: &X509Certificate<'_>, name: &str) -> bool {
    let Ok(Some(alternatives)) = leaf.subject_alternative_name() else { return false };
    let address: Option<Vec<u8>> = name.parse().ok().map(|ip: std::net::IpAddr| match ip {
        std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
        std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
    });
    alternatives.value.general_names.iter().any(|known| match (known, &address) {
        (GeneralName::DNSName(known), None) => known.eq_ignore_ascii_case(name),
        (GeneralName::IPAddress(known), Some(address)) => known == address,
        _ => false,
    })
}

/// Authority key identifier and serial, as they are in the leaf.
fn renewal_id(leaf: &X509Certificate<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let authority =
        leaf.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(known) => known.key_identifier.as_ref(),
            _ => None,
        })?;
    Some((authority.0.to_vec(), leaf.tbs_certificate.raw_serial().to_vec()))
}

/// Chain and key in one file, so that a crash cannot separate them.
#[must_use]
pub fn bundle(chain: &[u8], key: &str) -> Vec<u8> {
    [key.trim_end().as_bytes(), b"\n", chain].concat()
}

/// The parts of such a file: chain and key in PEM form.
#[must_use]
pub fn unbundle(content: &[u8]) -> Option<(Vec<u8>, String)> {
    let blocks = pem::parse_many(content).ok()?;
    let (keys, chain): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|block| block.tag() == "PRIVATE KEY");
    let [key] = keys.as_slice() else { return None };
    let is_chain = !chain.is_empty() && chain.iter().all(|block| block.tag() == "CERTIFICATE");
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let chain = is_chain.then(|| chain.iter().map(|one| pem::encode_config(one, lines)))?;
    let chain: String = chain.collect();
    Some((chain.into_bytes(), pem::encode_config(key, lines)))
}
