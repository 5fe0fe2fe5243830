//! Certificates for tests.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SanType,
};

use crate::tools::run;

/// A certificate and its key, in PEM files.
pub struct Cert {
    /// The self-signed certificate.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The type of a key.
#[derive(Clone, Copy)]
pub enum CertKey {
    /// ECDSA on P-256.
    Ecdsa,
    /// RSA with 2048 bits.
    Rsa,
}

/// Creates `DIR/STEM.pem` and `DIR/STEM.key` for `names` and the addresses of the loopback, which
/// may sign other certificates and is valid for 30 days.
///
/// # Panics A file cannot be written, or `openssl`, which makes RSA keys, fails.
pub fn make(dir: &Path, stem: &str, key: CertKey, names: &[&str]) -> Cert {
    let made = Cert { cert: dir.join(format!("{stem}.pem")), key: dir.join(format!("{stem}.key")) };
    let pair = match key {
        CertKey::Ecdsa => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(),
        CertKey::Rsa => {
            let args =
                ["genpkey", "-quiet", "-algorithm", "rsa", "-pkeyopt", "rsa_keygen_bits:2048"];
            let pem = run("openssl", args).succeeded().text();
            KeyPair::from_pkcs8_pem_and_sign_algo(&pem, &PKCS_RSA_SHA256).unwrap()
        }
    };
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names.clone()).unwrap();
    let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    params.subject_alt_names.splice(0..0, loopback.map(SanType::IpAddress));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, names[0].as_str());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let now = SystemTime::now();
    params.not_before = now.into();
    params.not_after = (now + Duration::from_hours(30 * 24)).into();
    fs::write(&made.key, pair.serialize_pem()).unwrap();
    fs::write(&made.cert, params.self_signed(&pair).unwrap().pem()).unwrap();
    made
}

/// The base64 of the SHA-256 of the certificate's public key, for Chromium's
/// `--ignore-certificate-errors-spki-list`.
///
/// # Panics `openssl` is missing or fails.
#[must_use]
pub fn key_hash(cert: &Path) -> String {
    let script = format!(
        "openssl x509 -in '{}' -pubkey -noout | openssl pkey -pubin -outform der | \
         openssl dgst -sha256 -binary | openssl base64",
        cert.display()
    );
    run("sh", ["-ec", &script]).succeeded().text().trim().to_owned()
}
