//! Certificates whose names have variables: evaluated, read and cached during handshakes.
//!
//! Their files are read synchronously in the middle of a turn, as a first lookup of a small static
//! file is; all workers share the entries of `ssl_certificate_cache`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bolide_base::Now;
use bolide_conf::model::{CertificateCache, Pem, TlsConf};
use bolide_engine::{Site, handshake};
use bolide_tls::LoadedCertificate;

use super::certificates::{self, CertificatePart};

/// LIMIT: bytes of a certificate or key that is read while a client waits.
const FILE_MAX: u64 = 1 << 20;

/// The sources of one server's certificates.
pub(super) struct Computed {
    /// An object that lives as long as connections do, maybe longer than the site, must not hold
    /// it.
    site: Weak<Site>,
    /// The listen and the server.
    place: (usize, u32),
    conf: Arc<TlsConf>,
    files: Files,
}

/// Certificates and keys that are read during a handshake.
pub(super) struct Files {
    passwords: Vec<Vec<u8>>,
    kept: Option<Kept>,
}

impl Files {
    /// Opens keys with `passwords`, and caches files by `rules`.
    pub(super) fn new(passwords: Vec<Vec<u8>>, rules: Option<CertificateCache>) -> Self {
        Self { passwords, kept: rules.map(Kept::new) }
    }

    /// The certificate in two texts or files.
    ///
    /// # Errors
    ///
    /// In nginx's words, for the log.
    pub(super) fn load(
        &self,
        chain: &Pem,
        key: &Pem,
        now: Now,
    ) -> Result<LoadedCertificate, String> {
        let names = (chain.to_string(), key.to_string());
        let kept = self.kept.as_ref().filter(|_| is_file(chain) && is_file(key));
        if let Some(known) = kept.and_then(|kept| kept.find(&names, now)) {
            return Ok(known);
        }
        let (chain, key) = (read(CertificatePart::Chain, chain)?, read(CertificatePart::Key, key)?);
        let made = LoadedCertificate::from_pem(&chain, &key, &self.passwords).map_err(|error| {
            let text = certificates::complaint(&error, &names.0, &names.1);
            text.replacen("SSL_CTX_use", "SSL_use", 1)
        })?;
        if let Some(kept) = kept {
            kept.keep(names, &made, now);
        }
        Ok(made)
    }
}

impl Computed {
    /// # Errors
    ///
    /// In nginx's words: the pass phrases are unreadable.
    pub(super) fn new(
        site: &Arc<Site>,
        place: (usize, u32),
        conf: &Arc<TlsConf>,
    ) -> Result<Self, String> {
        let passwords = certificates::passwords(conf.password_file.as_ref())?;
        let files = Files::new(passwords, conf.certificate_cache);
        Ok(Self { site: Arc::downgrade(site), place, conf: conf.clone(), files })
    }

    /// The certificates for a client with the server name `name`.
    ///
    /// # Errors
    ///
    /// In nginx's words, for the log.
    pub(super) fn load(&self, name: Option<&str>) -> Result<Vec<LoadedCertificate>, String> {
        let now = bolide_io::process::now();
        let pairs = self.conf.certificates.iter();
        let load = |pair: &bolide_conf::model::CertificateConf| {
            let (chain, key) =
                (self.settle(&pair.chain, name, now), self.settle(&pair.key, name, now));
            self.files.load(&chain, &key, now)
        };
        pairs.map(load).collect()
    }

    /// The place of a text for this client.
    fn settle(&self, pem: &Pem, name: Option<&str>, now: Now) -> Pem {
        let Pem::Computed { template, beside } = pem else { return pem.clone() };
        let site = self.site.upgrade();
        let text = site.map(|site| handshake::expand(&site, self.place, name, now, template));
        let text = text.unwrap_or_default();
        Pem::of(&text, beside)
    }
}

const fn is_file(pem: &Pem) -> bool {
    matches!(pem, Pem::File(_))
}

fn read(part: CertificatePart, pem: &Pem) -> Result<Vec<u8>, String> {
    match pem {
        Pem::Data(text) => Ok(text.to_vec()),
        Pem::File(path) => bolide_io::file::read_small(path, FILE_MAX)
            .map_err(|error| certificates::unreadable(part, path, &error)),
        Pem::Computed { .. } => Ok(Vec::new()),
    }
}

/// Certificates and keys by the names of their files.
struct Kept {
    rules: CertificateCache,
    all: Mutex<HashMap<(String, String), Entry>>,
}

struct Entry {
    certificate: LoadedCertificate,
    read: bolide_base::Instant,
    used: bolide_base::Instant,
}

impl Kept {
    fn new(rules: CertificateCache) -> Self {
        Self { rules, all: Mutex::default() }
    }

    fn find(&self, names: &(String, String), now: Now) -> Option<LoadedCertificate> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = all.get_mut(names)?;
        let is_good = now.mono.since(entry.used) < self.rules.inactive
            && now.mono.since(entry.read) < self.rules.valid;
        entry.used = now.mono;
        is_good.then(|| entry.certificate.clone())
    }

    fn keep(&self, names: (String, String), certificate: &LoadedCertificate, now: Now) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, entry| now.mono.since(entry.used) < self.rules.inactive);
        while all.len() >= self.rules.max && !all.contains_key(&names) {
            let oldest = all.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(names, _)| names.clone()) else { break };
            all.remove(&oldest);
        }
        let entry = Entry { certificate: certificate.clone(), read: now.mono, used: now.mono };
        all.insert(names, entry);
    }
}
