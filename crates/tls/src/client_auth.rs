//! Client certificate verification: a server's trusted authorities, and the verdict on a client's
//! chain. The verdict never refuses a handshake: it concerns requests, as in nginx.
//!
//! Easiest to break: success requires webpki and `check_path`, or a self-signed certificate from
//! the server's own files. Everything after that only names the fault. Clients control the amount
//! of work, so it is bounded first.

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use bolide_base::ClientCert;
use bolide_base::client_cert::ClientCertFault;
use bolide_base::limits::{CLIENT_CERT_SIZE_MAX, CLIENT_CHAIN_MAX, CLIENT_NAMESAKES_MAX};
use rustls::DistinguishedName;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, TrustAnchor, UnixTime};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use webpki::{
    CertRevocationList, EndEntityCert, Error, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationOptionsBuilder, VerifiedPath, anchor_from_trusted_cert,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::time::ASN1Time;

use crate::authority::{
    CertAuthority, CertPurpose, authority, check_root, is_for, is_self_signed, may_sign_handshakes,
    may_sign_lists,
};
use crate::client_facts::describe;
use crate::der::inside;
use crate::host::is_named;
use crate::signed::{Proof, prove};

/// The settings `ssl_verify_client`, `ssl_client_certificate` and so on of one server.
pub struct ClientAuth {
    /// Self-signed certificates of the server's files, and webpki's form of them.
    roots: Vec<CertificateDer<'static>>,
    anchors: Vec<TrustAnchor<'static>>,
    /// The other ones: known, but trusted only with their root.
    known: Vec<CertificateDer<'static>>,
    hints: Vec<DistinguishedName>,
    /// The newest first: the first list of an issuer counts.
    crls: Vec<Crl>,
    depth: usize,
    digest: [u8; 32],
    purpose: CertPurpose,
}

/// A certificate revocation list.
struct Crl {
    list: CertRevocationList<'static>,
    /// The start and end of its validity, in seconds since 1970.
    since: i64,
    until: i64,
    /// Which of the roots signed it.
    signers: Vec<usize>,
}

/// Which of the inputs of [`ClientAuth::new`] is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthError {
    /// `ssl_client_certificate`
    Client,
    /// `ssl_trusted_certificate`
    Trusted,
    /// `ssl_crl`
    Crl,
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
    /// Takes authorities and revocation lists; at most `depth` certificates may lie between a
    /// client's and a root.
    ///
    /// # Errors
    ///
    /// A file contains no item of its kind, or a malformed one.
    pub fn new(files: &ClientAuthFiles<'_>, depth: u32) -> Result<Self, ClientAuthError> {
        let mut digest = Context::new(&SHA256);
        let mut auth = Self {
            roots: Vec::new(),
            anchors: Vec::new(),
            known: Vec::new(),
            hints: Vec::new(),
            crls: Vec::new(),
            depth: depth as usize,
            digest: [0; 32],
            purpose: CertPurpose::Clients,
        };
        digest.update(&depth.to_be_bytes());
        let sources = [
            (files.client, ClientAuthError::Client),
            (files.trusted, ClientAuthError::Trusted),
            (files.crl, ClientAuthError::Crl),
        ];
        for (pem, kind) in sources {
            let Some(pem) = pem else { continue };
            digest.update(&(pem.len() as u64).to_be_bytes());
            digest.update(pem);
            let taken = if kind == ClientAuthError::Crl {
                auth.take_crls(pem)
            } else {
                auth.take_authorities(pem, kind == ClientAuthError::Client)
            };
            taken.filter(|count| *count > 0).ok_or(kind)?;
        }
        auth.digest.copy_from_slice(digest.finish().as_ref());
        auth.crls.sort_by_key(|crl| Reverse(crl.since));
        Ok(auth)
    }

    fn take_authorities(&mut self, pem: &[u8], told: bool) -> Option<usize> {
        let mut count = 0;
        for der in CertificateDer::pem_slice_iter(pem) {
            let der = der.ok()?;
            let cert = parse(&der)?;
            if told {
                self.hints.push(DistinguishedName::in_sequence(inside(cert.subject().as_raw())));
            }
            if is_self_signed(&cert, &der) {
                self.anchors.push(anchor_from_trusted_cert(&der).ok()?.to_owned());
                self.roots.push(der.clone());
            } else {
                self.known.push(der.clone());
            }
            count += 1;
        }
        Some(count)
    }

    fn take_crls(&mut self, pem: &[u8]) -> Option<usize> {
        for der in CertificateRevocationListDer::pem_slice_iter(pem) {
            let der = der.ok()?;
            let list = CertRevocationList::Owned(OwnedCertRevocationList::from_der(&der).ok()?);
            let (_, read) = CertificateRevocationList::from_der(&der).ok()?;
            let signed = |root: &CertificateDer<'_>| {
                parse(root).is_some_and(|cert| {
                    inside(cert.subject().as_raw()) == list.issuer()
                        && may_sign_lists(&cert)
                        && prove(&der, cert.public_key().raw) == Proof::Good
                })
            };
            let signers = (0..self.roots.len()).filter(|at| signed(&self.roots[*at])).collect();
            let since = read.last_update().timestamp();
            let until = read.next_update()?.timestamp();
            self.crls.push(Crl { list, since, until, signers });
        }
        Some(self.crls.len())
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
        Some(Box::new(describe(&cert, leaf, self.fault(leaf, &cert, sent, now))))
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
        if let Some(fault) = self.fault(leaf, &cert, sent, now) {
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
        cert: &X509Certificate<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Option<ClientCertFault> {
        if sent.len() > CLIENT_CHAIN_MAX {
            return Some(ClientCertFault::ChainTooLong);
        }
        let verdict = self.verify(leaf, cert, sent, now);
        verdict.err().map(|error| self.explain(cert, sent, now, &error))
    }

    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        cert: &X509Certificate<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if !may_sign_handshakes(cert, self.purpose) {
            return Err(Error::CaUsedAsEndEntity);
        }
        if let Some(at) = self.roots.iter().position(|root| root == leaf) {
            return self.verify_known(at, cert, now);
        }
        let algorithms = default_provider().signature_verification_algorithms.all;
        let entity = EndEntityCert::try_from(leaf)?;
        let others: Vec<_> = without_namesakes(sent).chain(&self.known).map(borrowed).collect();
        let begun = |crl: &&Crl| crl.since <= seconds(now);
        let crls: Vec<_> = self.crls.iter().filter(begun).map(|crl| &crl.list).collect();
        if crls.is_empty() && !self.crls.is_empty() {
            return Err(Error::UnknownRevocationStatus);
        }
        let revocation = RevocationOptionsBuilder::new(&crls)
            .map(|builder| builder.with_expiration_policy(ExpirationPolicy::Enforce).build())
            .ok();
        let fits = |path: &VerifiedPath<'_>| self.check_path(path, cert, now);
        entity
            .verify_for_usage(
                algorithms,
                &self.anchors,
                &others,
                now,
                match self.purpose {
                    CertPurpose::Clients => KeyUsage::client_auth(),
                    CertPurpose::Servers => KeyUsage::server_auth(),
                },
                revocation,
                Some(&fits),
            )
            .map(|_| ())
    }

    /// A client's certificate that is itself trusted: the root at `at`.
    fn verify_known(
        &self,
        at: usize,
        cert: &X509Certificate<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if time_fault(cert, now).is_some() {
            return Err(Error::UnknownIssuer);
        }
        if !is_for(cert, self.purpose) {
            return Err(Error::EmptyEkuExtension);
        }
        self.check_lists(at, cert, now)
    }

    /// Checks the root at `at` against its own list, if there are lists: webpki checks only
    /// certificates below it, and not whether a root may sign lists.
    fn check_lists(
        &self,
        at: usize,
        cert: &X509Certificate<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.crls.is_empty() {
            return Ok(());
        }
        let issuer = inside(cert.issuer().as_raw());
        let lists = || self.crls.iter().filter(|crl| crl.list.issuer() == issuer);
        for crl in lists() {
            if crl.list.find_serial(cert.raw_serial())?.is_some() {
                return Err(Error::CertRevoked);
            }
        }
        let counts = |crl: &&Crl| {
            crl.since <= seconds(now) && crl.list.issuing_distribution_point().is_none()
        };
        let Some(crl) = lists().find(counts) else { return Err(Error::UnknownRevocationStatus) };
        if !crl.signers.contains(&at) {
            return Err(Error::InvalidCrlSignatureForPublicKey);
        }
        if crl.until <= seconds(now) {
            let until = Duration::from_secs(crl.until.unsigned_abs());
            let next_update = UnixTime::since_unix_epoch(until);
            return Err(Error::CrlExpired { time: now, next_update });
        }
        Ok(())
    }

    /// OpenSSL's requirements of a path beyond webpki's: its length, authorities that may sign, and
    /// a valid root.
    fn check_path(
        &self,
        path: &VerifiedPath<'_>,
        leaf: &X509Certificate<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let ders: Vec<_> = path.intermediate_certificates().map(|cert| cert.der()).collect();
        let between: Vec<_> = ders.iter().filter_map(parse).collect();
        let are_good = between.iter().all(|cert| authority(cert) == CertAuthority::Yes);
        if between.len() != ders.len() || !are_good {
            return Err(Error::EndEntityUsedAsCa);
        }
        if between.len() > self.depth {
            return Err(Error::MaximumPathDepthExceeded);
        }
        let mut fault = Error::UnknownIssuer;
        for (at, (root, anchor)) in self.roots.iter().zip(&self.anchors).enumerate() {
            if anchor != path.anchor() {
                continue;
            }
            let Some(root) = parse(root).filter(|root| time_fault(root, now).is_none()) else {
                continue;
            };
            let checked = check_root(&root, &between, leaf, self.purpose);
            match checked.and_then(|()| self.check_lists(at, &root, now)) {
                Ok(()) => return Ok(()),
                Err(error) => fault = error,
            }
        }
        Err(fault)
    }

    /// Names the fault of a chain that webpki refused with `error`. OpenSSL continues after each
    /// fault, and its last one counts; so this follows its order.
    fn explain(
        &self,
        leaf: &X509Certificate<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
        error: &Error,
    ) -> ClientCertFault {
        let sent: Vec<_> = sent.iter().filter_map(parse).collect();
        let trusted: Vec<_> = self.roots.iter().chain(&self.known).filter_map(parse).collect();
        let is_root =
            |cert: &X509Certificate<'_>| cert.subject().as_raw() == cert.issuer().as_raw();
        let mut path = vec![leaf];
        let mut is_trusted = trusted.iter().any(|cert| cert == leaf);
        while !is_root(path[path.len() - 1]) && path.len() < self.depth + 2 {
            let wanted = path[path.len() - 1].issuer().as_raw();
            let names = |cert: &&X509Certificate<'_>| cert.subject().as_raw() == wanted;
            let next = trusted.iter().find(names);
            is_trusted = next.is_some();
            let Some(next) = next.or_else(|| sent.iter().find(names)) else { break };
            path.push(next);
        }
        let top = path[path.len() - 1];
        let mut fault = match (is_root(top), path.len()) {
            (true, _) if is_trusted => None,
            (true, 1) => Some(ClientCertFault::SelfSigned),
            (true, _) => Some(ClientCertFault::SelfSignedInChain),
            // A chain that is too long is not examined further, and counts as unknown.
            (false, len) if len == 1 || len == self.depth + 2 => {
                Some(ClientCertFault::NoLocalIssuer)
            }
            (false, _) if is_trusted || trusted.iter().any(|cert| cert == top) => {
                Some(ClientCertFault::NoIssuer)
            }
            (false, _) => Some(ClientCertFault::NoLocalIssuer),
        };
        // For OpenSSL a self-signed authority is not a fault, unless it is the only one.
        let is_minor =
            matches!(error, Error::CaUsedAsEndEntity) && may_sign_handshakes(leaf, self.purpose);
        // For OpenSSL a certificate that is not an authority has the wrong purpose in the end.
        let is_none = |cert: &&X509Certificate<'_>| authority(cert) == CertAuthority::No;
        let inner = match inner_fault(error) {
            Some(ClientCertFault::NotAuthority) if path[1..].iter().any(is_none) => {
                Some(ClientCertFault::WrongPurpose)
            }
            inner => inner,
        };
        fault = inner.filter(|_| !is_minor || fault.is_none()).or(fault);
        if fault.is_some() && !self.crls.is_empty() && !is_root(leaf) {
            let issuer = inside(leaf.issuer().as_raw());
            if !self.crls.iter().any(|crl| crl.list.issuer() == issuer) {
                fault = Some(ClientCertFault::NoCrl);
            }
        }
        if path.len() == 1 && !is_root(leaf) {
            fault = Some(ClientCertFault::Unverified);
        }
        if is_bad_signature(error) {
            fault = Some(ClientCertFault::BadSignature);
        }
        let late = path.iter().find_map(|cert| time_fault(cert, now));
        late.or(fault).unwrap_or(ClientCertFault::Unspecified)
    }
}

impl fmt::Debug for ClientAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAuth")
            .field("roots", &self.roots.len())
            .field("known", &self.known.len())
            .field("crls", &self.crls.len())
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    let (rest, cert) = X509Certificate::from_der(der.as_ref()).ok()?;
    rest.is_empty().then_some(cert)
}

fn borrowed<'a>(der: &'a CertificateDer<'_>) -> CertificateDer<'a> {
    CertificateDer::from(der.as_ref())
}

/// The client's certificates, with few of those that have the same subject.
fn without_namesakes<'a, 'd>(
    sent: &'a [CertificateDer<'d>],
) -> impl Iterator<Item = &'a CertificateDer<'d>> {
    let mut subjects = Vec::new();
    sent.iter().filter(move |der| {
        let der: &'a CertificateDer<'d> = der;
        let Some(cert) = parse(der) else { return false };
        let subject = cert.tbs_certificate.subject.as_raw();
        let namesakes = subjects.iter().filter(|known| **known == subject).count();
        subjects.push(subject);
        namesakes < CLIENT_NAMESAKES_MAX
    })
}

fn seconds(now: UnixTime) -> i64 {
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

fn time_fault(cert: &X509Certificate<'_>, now: UnixTime) -> Option<ClientCertFault> {
    let validity = cert.validity();
    let is_before = |time: ASN1Time| time.timestamp() < seconds(now);
    if validity.not_before.timestamp() > seconds(now) {
        Some(ClientCertFault::NotYetValid)
    } else if is_before(validity.not_after) {
        Some(ClientCertFault::Expired)
    } else {
        None
    }
}

/// Faults of a certificate other than being unknown or expired.
const fn inner_fault(error: &Error) -> Option<ClientCertFault> {
    Some(match error {
        Error::CaUsedAsEndEntity
        | Error::RequiredEkuNotFoundContext(_)
        | Error::EmptyEkuExtension => ClientCertFault::WrongPurpose,
        Error::EndEntityUsedAsCa => ClientCertFault::NotAuthority,
        Error::PathLenConstraintViolated => ClientCertFault::PathTooLong,
        Error::NameConstraintViolation => ClientCertFault::NotPermitted,
        Error::UnsupportedCriticalExtension => ClientCertFault::UnknownCritical,
        Error::CertRevoked => ClientCertFault::Revoked,
        Error::CrlExpired { .. } => ClientCertFault::CrlExpired,
        Error::UnknownRevocationStatus => ClientCertFault::NoCrl,
        Error::InvalidCrlSignatureForPublicKey => ClientCertFault::BadCrlSignature,
        _ => return None,
    })
}

const fn is_bad_signature(error: &Error) -> bool {
    matches!(error, Error::InvalidSignatureForPublicKey)
}

#[cfg(test)]
mod tests;
