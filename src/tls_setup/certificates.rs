//! Certificates with their keys, read with nginx's error messages; pass phrases for encrypted keys.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bolide_conf::model::{CertificateCache, CertificateConf as Pair, Pem, SourcePlace, TlsConf};
use bolide_tls::{CertChain, CertError, LoadedCertificate, LoadedKey, SealState};

use super::expiry::CertificateEnds;
use super::kept_objects::KeptObjects;

/// Certificates with their keys, by the names of both.
pub(crate) type ReadCertificates = HashMap<(String, String), LoadedCertificate>;

/// The files read for one configuration, so that each is read once.
#[derive(Debug, Default)]
pub(crate) struct CertificateReader {
    known: ReadCertificates,
    /// Certificates of an earlier reader, which replace the files.
    earlier: ReadCertificates,
    /// By their directives.
    caches: HashMap<u32, Arc<KeptObjects>>,
    pub(crate) ends: CertificateEnds,
}

impl CertificateReader {
    /// A reader that takes certificates from `earlier` instead of their files.
    pub(crate) fn knowing(earlier: ReadCertificates) -> Self {
        Self { earlier, ..Self::default() }
    }

    /// All that it has read.
    pub(crate) fn read_so_far(&self) -> ReadCertificates {
        self.known.clone()
    }

    /// The certificates of one server.
    ///
    /// # Errors
    ///
    /// In nginx's words: a file is unreadable, contains nothing of its kind, or does not match.
    pub(super) fn read(&mut self, conf: &TlsConf) -> Result<Vec<LoadedCertificate>, String> {
        let passwords = passwords(conf.password_file.as_ref())?;
        conf.certificates.iter().map(|pair| self.certificate(pair, &passwords)).collect()
    }

    /// One certificate.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(super) fn certificate(
        &mut self,
        pair: &Pair,
        passwords: &[Vec<u8>],
    ) -> Result<LoadedCertificate, String> {
        let names = (pair.chain.to_string(), pair.key.to_string());
        if let Some(known) = self.known.get(&names) {
            return Ok(known.clone());
        }
        let made = match self.earlier.get(&names) {
            Some(earlier) => earlier.clone(),
            None => Self::load(pair, &names, passwords)?,
        };
        if let Some(place) = &pair.place {
            self.ends.add(&names.0, place, &made);
        }
        self.known.insert(names, made.clone());
        Ok(made)
    }

    fn load(
        pair: &Pair,
        names: &(String, String),
        passwords: &[Vec<u8>],
    ) -> Result<LoadedCertificate, String> {
        let text = |what: CertificatePart, pem: &Pem| match pem {
            Pem::Data(data) => Ok(data.to_vec()),
            Pem::File(path) | Pem::Store(path) => {
                std::fs::read(path).map_err(|error| unreadable(what, path, &error))
            }
            Pem::Issued(_) | Pem::Computed { .. } => Ok(Vec::new()),
        };
        let (chain, key) =
            (text(CertificatePart::Chain, &pair.chain)?, text(CertificatePart::Key, &pair.key)?);
        CertChain::from_pem(&chain)
            .and_then(|chain| LoadedCertificate::join(&chain, &key_of(&pair.key, &key, passwords)?))
            .map_err(|error| complaint(&error, &names.0, &names.1))
    }

    /// The cache that a directive sets up.
    pub(super) fn cache(&mut self, rules: CertificateCache) -> Arc<KeptObjects> {
        let made = || Arc::new(KeptObjects::new(rules));
        self.caches.entry(rules.directive).or_insert_with(made).clone()
    }
}

/// The key in this text of the configuration.
///
/// # Errors
///
/// As [`LoadedKey::from_pem`].
pub(super) fn key_of(
    place: &Pem,
    text: &[u8],
    passwords: &[Vec<u8>],
) -> Result<LoadedKey, CertError> {
    match place {
        Pem::Store(_) => LoadedKey::from_store(text, passwords),
        _ => LoadedKey::from_pem(text, passwords),
    }
}

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CertificatePart {
    Chain,
    Key,
}

impl CertificatePart {
    fn cannot(self, name: &dyn std::fmt::Display, why: &dyn std::fmt::Display) -> String {
        let part = if matches!(self, Self::Key) { " key" } else { "" };
        format!("cannot load certificate{part} \"{name}\": {why}")
    }
}

/// nginx's message for an unreadable file.
pub(super) fn unreadable(part: CertificatePart, path: &Path, error: &std::io::Error) -> String {
    part.cannot(&path.display(), &openssl_words(path, error))
}

/// nginx's message about a certificate or a key, in OpenSSL's words where it has some.
pub(super) fn complaint(error: &CertError, chain: &str, key: &str) -> String {
    let pem = |call: &str, text: &str| format!("PEM_read_bio_{call}() failed (SSL: {text})");
    match error {
        CertError::NoCertificate => CertificatePart::Chain.cannot(
            &chain,
            &pem(
                "X509_AUX",
                "error:0480006C:PEM routines::no start line:Expecting: \
                              TRUSTED CERTIFICATE",
            ),
        ),
        CertError::BadChain(_) | CertError::BadCertificate(_) => {
            CertificatePart::Chain.cannot(&chain, error)
        }
        CertError::NoKey => CertificatePart::Key.cannot(
            &key,
            &pem(
                "PrivateKey",
                "error:1E08010C:DECODER routines::unsupported:No supported data \
                                to decode. Input type: PEM",
            ),
        ),
        CertError::EncryptedKey(SealState::Pkcs8) => {
            const WRONG: &str = "error:1C800064:Provider routines::bad decrypt \
                                 error:11800074:PKCS12 routines::pkcs12 cipherfinal \
                                 error:maybe wrong password";
            CertificatePart::Key.cannot(&key, &pem("PrivateKey", &format!("{WRONG} {WRONG}")))
        }
        CertError::EncryptedKey(SealState::Headers) => CertificatePart::Key.cannot(
            &key,
            &pem(
                "PrivateKey",
                "error:1C800064:Provider routines::bad decrypt \
                                error:04800065:PEM routines::bad decrypt",
            ),
        ),
        CertError::KeyMismatch => format!(
            "SSL_CTX_use_PrivateKey(\"{key}\") failed (SSL: error:05800074:x509 certificate \
             routines::key values mismatch)"
        ),
        CertError::BadKey(_) => CertificatePart::Key.cannot(&key, error),
    }
}

/// The pass phrases of `ssl_password_file`, one per line; empty lines are skipped.
///
/// # Errors
///
/// In nginx's words: the file is unreadable.
pub(super) fn passwords(file: Option<&(PathBuf, SourcePlace)>) -> Result<Vec<Vec<u8>>, String> {
    let Some((path, place)) = file else { return Ok(Vec::new()) };
    let text = std::fs::read(path).map_err(|error| {
        let call = if path.is_dir() { "read" } else { "open" };
        let why = bolide_base::errno::describe(&error);
        format!("{call}() \"{}\" failed ({why}) in {}:{}", path.display(), place.file, place.line)
    })?;
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    Ok(lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
}

/// A file that cannot be opened, in the words that OpenSSL gives nginx.
pub(crate) fn openssl_words(path: &Path, error: &std::io::Error) -> String {
    let number = error.raw_os_error().unwrap_or(0);
    let words = bolide_base::errno::words(error);
    let path = path.display();
    let reason = if number == 2 { "no such file" } else { "system lib" };
    let code = if number == 2 { "10000080" } else { "10080002" };
    format!(
        "BIO_new_file() failed (SSL: error:8000{number:04X}:system library::{words}:calling \
         fopen({path}, r) error:{code}:BIO routines::{reason})"
    )
}

/// Checks the file that `ssl_dhparam` names; its contents are unused.
///
/// # Errors
///
/// In nginx's words: the file is unreadable or contains nothing of the kind.
pub(super) fn check_dhparam(conf: &TlsConf) -> Result<(), String> {
    let Some(path) = &conf.dhparam else { return Ok(()) };
    let text = std::fs::read(path).map_err(|error| {
        let words = openssl_words(path, &error);
        words.replacen("BIO_new_file()", &format!("BIO_new_file(\"{}\")", path.display()), 1)
    })?;
    // `openssl dhparam` writes the second, as do tools that convert DSA parameters.
    let starts = ["-----BEGIN DH PARAMETERS-----", "-----BEGIN X9.42 DH PARAMETERS-----"];
    let has = |start: &str| text.windows(start.len()).any(|window| window == start.as_bytes());
    if starts.into_iter().any(has) {
        return Ok(());
    }
    Err(format!(
        "PEM_read_bio_DHparams(\"{}\") failed (SSL: error:0480006C:PEM routines::no start \
         line:Expecting: DH PARAMETERS)",
        path.display()
    ))
}
