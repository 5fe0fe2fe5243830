//! Certificates whose names have variables: evaluated, read and cached during handshakes.
//!
//! Their files are read synchronously in the middle of a turn, as a first lookup of a small static
//! file is.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Weak};

use bolide_base::Now;
use bolide_conf::model::{IssuedId, Pem, TlsConf};
use bolide_engine::{Site, handshake};
use bolide_tls::{CertChain, CertComplaint, CertError, LoadedCertificate, StapleKey};

use super::certificates::{self, CertificatePart, CertificateReader};
use crate::acme::IssuedPlace;

use super::CertificateDraft;
use super::kept_objects::{CertObject, KeptObjects, KnownObject, ReadFile};

/// LIMIT: bytes of a certificate or key that is read while a client waits.
const FILE_MAX: u64 = 1 << 20;

/// The sources of one server's certificates.
pub(super) struct Computed {
    /// Weak: an object that lives as long as connections, perhaps longer than the site, must not
    /// hold it.
    site: Weak<Site>,
    /// The listen and the server.
    place: (usize, u32),
    conf: Arc<TlsConf>,
    files: Files,
    /// The slots of issued certificates.
    issued: Vec<(IssuedId, IssuedPlace)>,
    /// Names their staples, if there are any.
    staples: Option<StapleKey>,
}

/// Certificates and keys that are read during a handshake.
pub(super) struct Files {
    passwords: Vec<Vec<u8>>,
    kept: Option<Arc<KeptObjects>>,
}

/// An object, and whether it was cached.
type FoundObject = (CertObject, bool);

impl Files {
    /// Decrypts keys with `passwords`, and caches objects in `kept`.
    pub(super) const fn new(passwords: Vec<Vec<u8>>, kept: Option<Arc<KeptObjects>>) -> Self {
        Self { passwords, kept }
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
        let (made, was_kept) = self.join(chain, key, now)?;
        let made = match (made, &self.kept) {
            // One of the files was replaced since the other one was read.
            (Err(CertError::KeyMismatch), Some(kept)) if was_kept => {
                kept.forget(&(CertificatePart::Chain, chain.to_string()));
                kept.forget(&(CertificatePart::Key, key.to_string()));
                self.join(chain, key, now)?.0
            }
            (made, _) => made,
        };
        made.map_err(|error| words(&error, chain, key))
    }

    /// Both, and whether one of them was cached.
    fn join(
        &self,
        chain: &Pem,
        key: &Pem,
        now: Now,
    ) -> Result<(Result<LoadedCertificate, CertError>, bool), String> {
        let read = |pem: &Pem, part| {
            self.object(part, pem, now, |text| match part {
                CertificatePart::Chain => CertChain::from_pem(text).map(CertObject::Chain),
                CertificatePart::Key => {
                    certificates::key_of(pem, text, &self.passwords).map(CertObject::Key)
                }
            })
        };
        let (CertObject::Chain(certs), was_kept) = read(chain, CertificatePart::Chain)? else {
            return Err("a key is no certificate".to_owned());
        };
        let (CertObject::Key(signer), key_was_kept) = read(key, CertificatePart::Key)? else {
            return Err("a certificate is no key".to_owned());
        };
        Ok((LoadedCertificate::join(&certs, &signer), was_kept || key_was_kept))
    }

    fn object(
        &self,
        part: CertificatePart,
        pem: &Pem,
        now: Now,
        parse: impl Fn(&[u8]) -> Result<CertObject, CertError>,
    ) -> Result<FoundObject, String> {
        let name = (part, pem.to_string());
        match self.kept.as_ref().and_then(|kept| Some((kept, kept.find(&name, now)?))) {
            Some((_, KnownObject::Fresh(object))) => return Ok((object, true)),
            Some((kept, KnownObject::Stale(object, file))) => {
                if file_of(pem) == Some(file) {
                    kept.refresh(&name, now);
                    return Ok((object, true));
                }
                kept.forget(&name);
            }
            None => {}
        }
        // Before it is read: a change in between is seen at the next check.
        let file = file_of(pem);
        let object = parse(&read(part, pem)?).map_err(|error| words(&error, pem, pem))?;
        let is_secret = matches!(&object, CertObject::Key(key) if key.was_sealed());
        let is_known = file.is_some() || matches!(pem, Pem::Data(_));
        if let Some(kept) = self.kept.as_ref().filter(|_| is_known && !is_secret) {
            kept.keep(name, object.clone(), file, now);
        }
        Ok((object, false))
    }
}

/// The log message for a single connection.
fn words(error: &CertError, chain: &Pem, key: &Pem) -> String {
    let text = certificates::complaint(error, &chain.to_string(), &key.to_string());
    text.replacen("SSL_CTX_use", "SSL_use", 1)
}

/// The identity of a file's content.
fn file_of(pem: &Pem) -> Option<ReadFile> {
    let (Pem::File(path) | Pem::Store(path)) = pem else { return None };
    let about = std::fs::metadata(path).ok()?;
    Some(ReadFile { inode: about.ino(), modified: (about.mtime(), about.mtime_nsec()) })
}

impl Computed {
    /// # Errors
    ///
    /// In nginx's words: the pass phrases are unreadable.
    pub(super) fn new(
        site: &Arc<Site>,
        place: (usize, u32),
        conf: &Arc<TlsConf>,
        (reader, draft): (&mut CertificateReader, &mut CertificateDraft<'_>),
        warnings: &mut Vec<String>,
    ) -> Result<Self, String> {
        let passwords = certificates::passwords(conf.password_file.as_ref())?;
        let kept = conf.certificate_cache.map(|rules| reader.cache(rules));
        let files = Files::new(passwords, kept);
        let ids = conf.certificates.iter().filter_map(|pair| match pair.chain {
            Pem::Issued(id) => Some(id),
            _ => None,
        });
        let issued: Vec<_> = ids.map(|id| (id, draft.issued.place(id))).collect();
        let staples = match issued.is_empty() {
            true => None,
            false => draft.staple_issued(conf, warnings)?,
        };
        Ok(Self { site: Arc::downgrade(site), place, conf: conf.clone(), files, issued, staples })
    }

    /// The certificates for a client with the server name `name`.
    ///
    /// # Errors
    ///
    /// In nginx's words, for the log.
    pub(super) fn load(&self, name: Option<&str>) -> Result<Vec<LoadedCertificate>, CertComplaint> {
        let now = bolide_io::process::now();
        let pairs = self.conf.certificates.iter();
        let load = |pair: &bolide_conf::model::CertificateConf| {
            if let Pem::Issued(id) = pair.chain {
                let slot = self.issued.iter().find(|(known, _)| *known == id);
                let none = || CertComplaint::from("no certificate of an issuer".to_owned());
                let (_, place) = slot.ok_or_else(none)?;
                return place.certificate(name, self.staples).ok_or_else(|| place.complaint(name));
            }
            let chain = self.settle(&pair.chain, name, now, Pem::of);
            let key = self.settle(&pair.key, name, now, Pem::of_key);
            Ok(self.files.load(&chain, &key, now)?)
        };
        pairs.map(load).collect()
    }

    /// The text or file for this client.
    fn settle(&self, pem: &Pem, name: Option<&str>, now: Now, of: fn(&[u8], &Path) -> Pem) -> Pem {
        let Pem::Computed { template, beside } = pem else { return pem.clone() };
        let site = self.site.upgrade();
        let text = site.map(|site| handshake::expand(&site, self.place, name, now, template));
        let text = text.unwrap_or_default();
        of(&text, beside)
    }
}

fn read(part: CertificatePart, pem: &Pem) -> Result<Vec<u8>, String> {
    match pem {
        Pem::Data(text) => Ok(text.to_vec()),
        Pem::File(path) | Pem::Store(path) => bolide_io::file::read_small(path, FILE_MAX)
            .map_err(|error| certificates::unreadable(part, path, &error)),
        Pem::Issued(_) | Pem::Computed { .. } => Ok(Vec::new()),
    }
}
