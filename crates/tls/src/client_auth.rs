//! Client certificate verification: a server's trusted authorities, and the verdict on a client's
//! chain. The verdict never refuses a handshake: it concerns requests, as in nginx.
//!
//! Easiest to break: clients control the amount of work, so it is bounded first. AWS-LC builds and
//! checks the chain (`x509`); `verdict` names what it found.

use std::collections::HashSet;
use std::fmt;

use aws_lc_rs::digest::{Context, SHA256, digest};
use bolide_base::ClientCert;
use bolide_base::client_cert::ClientCertFault;
use bolide_base::limits::{CLIENT_CERT_SIZE_MAX, CLIENT_CHAIN_MAX};
use rustls::DistinguishedName;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::client_facts::describe;
use crate::der::{cert_parts, inside};
use crate::host::is_named;
use crate::pem_text;
use crate::verdict::{CertPurpose, verdict};
use crate::x509::{X509Cert, X509List, X509Question, X509Store, verify};

/// LIMIT: certificates between a leaf and its root. Certificates of the server's files that issue
/// each other could be followed for ever.
const DEPTH_MAX: u32 = 100;

/// The settings `ssl_verify_client`, `ssl_client_certificate` and so on of one server.
pub struct ClientAuth {
    /// All certificates and revocation lists of the server's files.
    store: X509Store,
    /// The hashes of those certificates.
    trusted: HashSet<[u8; 32]>,
    hints: Vec<DistinguishedName>,
    list_count: usize,
    depth: u32,
    digest: [u8; 32],
    purpose: CertPurpose,
}

/// An input of [`ClientAuth::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthFile {
    /// `ssl_client_certificate`
    Client,
    /// `ssl_trusted_certificate`
    Trusted,
    /// `ssl_crl`
    Crl,
}

/// Why [`ClientAuth::new`] refuses an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthError {
    /// It has no section of its kind.
    Empty(ClientAuthFile),
    /// A section is malformed.
    Malformed(ClientAuthFile),
    /// There is no memory for it.
    NoMemory,
}

/// The inputs of [`ClientAuth::new`], each in PEM.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientAuthFiles<'a> {
    /// Authorities announced to clients.
    pub client: Option<&'a [u8]>,
    /// Authorities not announced.
    pub trusted: Option<&'a [u8]>,
    /// Certificate revocation lists; if there are any, one of them must cover every certificate.
    pub crl: Option<&'a [u8]>,
}

impl ClientAuth {
    /// Takes authorities and revocation lists of any version; at most `depth` certificates may lie
    /// between a client's and a root.
    ///
    /// # Errors
    ///
    /// A file contains no item of its kind, or a malformed one.
    pub fn new(files: &ClientAuthFiles<'_>, depth: u32) -> Result<Self, ClientAuthError> {
        let mut digest = Context::new(&SHA256);
        let mut auth = Self {
            store: X509Store::new().ok_or(ClientAuthError::NoMemory)?,
            trusted: HashSet::new(),
            hints: Vec::new(),
            list_count: 0,
            depth: depth.min(DEPTH_MAX),
            digest: [0; 32],
            purpose: CertPurpose::Clients,
        };
        digest.update(&depth.to_be_bytes());
        let sources = [
            (files.client, ClientAuthFile::Client),
            (files.trusted, ClientAuthFile::Trusted),
            (files.crl, ClientAuthFile::Crl),
        ];
        for (pem, file) in sources {
            let Some(pem) = pem else { continue };
            digest.update(&(pem.len() as u64).to_be_bytes());
            digest.update(pem);
            let count = match file {
                ClientAuthFile::Crl => auth.take_lists(pem),
                ClientAuthFile::Client | ClientAuthFile::Trusted => {
                    auth.take_authorities(pem, file == ClientAuthFile::Client)
                }
            };
            match count {
                Some(0) => return Err(ClientAuthError::Empty(file)),
                Some(_) => {}
                None => return Err(ClientAuthError::Malformed(file)),
            }
        }
        auth.digest.copy_from_slice(digest.finish().as_ref());
        Ok(auth)
    }

    fn take_authorities(&mut self, pem: &[u8], is_announced: bool) -> Option<usize> {
        let ders = pem_text::certificates(pem).ok()?;
        for der in &ders {
            let cert = X509Cert::parse(der)?;
            self.store.trust(&cert)?;
            self.trusted.insert(sha256(der));
            if is_announced {
                let subject = inside(cert_parts(der)?.subject);
                self.hints.push(DistinguishedName::in_sequence(subject));
            }
        }
        Some(ders.len())
    }

    fn take_lists(&mut self, pem: &[u8]) -> Option<usize> {
        let ders = pem_text::sections::<CertificateRevocationListDer<'static>>(pem).ok()?;
        for der in &ders {
            self.store.add_list(&X509List::parse(der)?)?;
        }
        self.list_count = ders.len();
        Some(ders.len())
    }

    /// The names announced to clients.
    pub(crate) fn hints(&self) -> &[DistinguishedName] {
        &self.hints
    }

    /// Differs when any input of a verdict differs.
    pub(crate) const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The facts and the verdict for `chain`, leaf first, at `now`; `None` when it is empty or
    /// unreadable. A certificate that is too large gives only the fault.
    #[must_use]
    pub fn judge(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Option<Box<ClientCert>> {
        let (leaf, sent) = chain.split_first()?;
        if leaf.len() > CLIENT_CERT_SIZE_MAX {
            let fault = Some(ClientCertFault::Unspecified);
            return Some(Box::new(ClientCert { fault, ..ClientCert::default() }));
        }
        let cert = parse(leaf)?;
        Some(Box::new(describe(&cert, leaf, self.fault(leaf, sent, now))))
    }

    /// The same for certificates of servers.
    #[must_use]
    pub(crate) const fn for_servers(mut self) -> Self {
        self.purpose = CertPurpose::Servers;
        self
    }

    /// Why `chain`, leaf first, does not prove a trusted host, in nginx's words.
    pub(crate) fn judge_host(&self, chain: &[CertificateDer<'_>], host: &[u8]) -> Option<String> {
        let now = DefaultTimeProvider.current_time();
        let leaf = chain.split_first().and_then(|(leaf, sent)| Some((leaf, parse(leaf)?, sent)));
        let (Some((leaf, cert, sent)), Some(now)) = (leaf, now) else {
            return Some("upstream SSL certificate cannot be read".to_owned());
        };
        if let Some(fault) = self.fault(leaf, sent, now) {
            return Some(fault.complaint().replacen("client", "upstream", 1));
        }
        if is_named(&cert, host) {
            return None;
        }
        let host = String::from_utf8_lossy(host);
        Some(format!("upstream SSL certificate does not match \"{host}\""))
    }

    fn fault(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Option<ClientCertFault> {
        if sent.len() > CLIENT_CHAIN_MAX {
            return Some(ClientCertFault::ChainTooLong);
        }
        let Some(cert) = X509Cert::parse(leaf) else { return Some(ClientCertFault::Unspecified) };
        let sent: Vec<_> = sent.iter().filter_map(|der| X509Cert::parse(der)).collect();
        let report = verify(&X509Question {
            store: &self.store,
            leaf: &cert,
            sent: &sent,
            is_trusted: self.trusted.contains(&sha256(leaf)),
            is_server: self.purpose == CertPurpose::Servers,
            depth: self.depth,
            needs_lists: self.list_count > 0,
            now: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
        });
        verdict(&report, self.purpose)
    }
}

impl fmt::Debug for ClientAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAuth")
            .field("trusted", &self.trusted.len())
            .field("lists", &self.list_count)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    let (rest, cert) = X509Certificate::from_der(der.as_ref()).ok()?;
    rest.is_empty().then_some(cert)
}

#[cfg(test)]
mod tests;
