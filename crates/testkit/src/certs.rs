//! Certificates for tests, created with the `openssl` program.

use std::path::{Path, PathBuf};

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

/// Creates `DIR/STEM.pem` and `DIR/STEM.key` for `names` and the address 127.0.0.1.
///
/// # Panics `openssl` is missing or fails.
pub fn make(dir: &Path, stem: &str, key: CertKey, names: &[&str]) -> Cert {
    let made = Cert { cert: dir.join(format!("{stem}.pem")), key: dir.join(format!("{stem}.key")) };
    let mut alternatives = String::from("subjectAltName=IP:127.0.0.1,IP:::1");
    for name in names {
        alternatives.push_str(&format!(",DNS:{name}"));
    }
    let algorithm: &[&str] = match key {
        CertKey::Ecdsa => &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
        CertKey::Rsa => &["-newkey", "rsa:2048"],
    };
    let subject = format!("/CN={}", names[0]);
    let mut args = vec!["req", "-x509", "-nodes", "-days", "30", "-subj", &subject];
    args.extend(algorithm);
    args.extend(["-addext", &alternatives, "-addext", "basicConstraints=critical,CA:TRUE"]);
    args.extend(["-keyout", made.key.to_str().unwrap(), "-out", made.cert.to_str().unwrap()]);
    let _quiet = run("openssl", args).succeeded();
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
