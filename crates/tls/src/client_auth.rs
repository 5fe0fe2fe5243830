//! Whom a server trusts to say who its clients are, and the verdict on a client's chain. No
//! handshake is ever refused for a chain: the verdict is the requests' business, as in nginx.
//!
//! Easiest to break: success is only ever what webpki calls good, or a certificate that stands in
//! the server's own files. What comes after that only names the fault.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256};
use base::ClientCert;
use base::client_cert::Fault;
use rustls::DistinguishedName;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, TrustAnchor, UnixTime};
use webpki::{
    CertRevocationList, EndEntityCert, Error, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationOptionsBuilder, VerifiedPath, anchor_from_trusted_cert,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::client_facts::describe;

/// What `ssl_verify_client` and its kin of one server come to.
pub struct ClientAuth {
    /// Certificates of the server's files that signed themselves, and what webpki takes of them.
    roots: Vec<CertificateDer<'static>>,
    anchors: Vec<TrustAnchor<'static>>,
    /// The other ones: known, but trusted only with their root.
    known: Vec<CertificateDer<'static>>,
    hints: Vec<DistinguishedName>,
    crls: Vec<CertRevocationList<'static>>,
    depth: usize,
    digest: [u8; 32],
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
    /// Authorities that clients are told.
    pub client: Option<&'a [u8]>,
    /// Authorities that they are not told.
    pub trusted: Option<&'a [u8]>,
    /// Lists of what is revoked; when there are any, every certificate must be on the books of one.
    pub crl: Option<&'a [u8]>,
}

impl ClientAuth {
    /// Takes authorities and revocation lists; at most `depth` certificates may stand between a
    /// client's and a root.
    ///
    /// # Errors
    ///
    /// A file holds nothing of what it is for, or something malformed.
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
            if cert.subject().as_raw() == cert.issuer().as_raw() {
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
            let list = OwnedCertRevocationList::from_der(&der.ok()?).ok()?;
            self.crls.push(CertRevocationList::Owned(list));
        }
        Some(self.crls.len())
    }

    /// The names that clients are told.
    pub(crate) fn hints(&self) -> &[DistinguishedName] {
        &self.hints
    }

    /// Differs when anything differs that a verdict depends on.
    pub(crate) const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// What `chain`, leaf first, says and is worth at `now`; none when there is none or it cannot
    /// be read.
    #[must_use]
    pub fn judge(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Option<Box<ClientCert>> {
        let leaf = chain.first()?;
        let cert = parse(leaf)?;
        let fault = match self.verify(leaf, &cert, chain, now) {
            Ok(()) => None,
            Err(error) => Some(self.explain(&cert, chain, now, &error)),
        };
        Some(Box::new(describe(&cert, leaf, fault)))
    }

    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        cert: &X509Certificate<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if !may_sign_handshakes(cert) {
            return Err(Error::CaUsedAsEndEntity);
        }
        if self.roots.iter().any(|root| root == leaf) {
            return self.verify_known(cert, now);
        }
        let algorithms = default_provider().signature_verification_algorithms.all;
        let entity = EndEntityCert::try_from(leaf)?;
        let others: Vec<_> = chain[1..].iter().chain(&self.known).map(borrowed).collect();
        let crls: Vec<_> = self.crls.iter().collect();
        let revocation = RevocationOptionsBuilder::new(&crls)
            .map(|builder| builder.with_expiration_policy(ExpirationPolicy::Enforce).build())
            .ok();
        let fits = |path: &VerifiedPath<'_>| self.check_path(path, now);
        entity
            .verify_for_usage(
                algorithms,
                &self.anchors,
                &others,
                now,
                KeyUsage::client_auth(),
                revocation,
                Some(&fits),
            )
            .map(|_| ())
    }

    /// A client's certificate that is trusted by itself.
    fn verify_known(&self, cert: &X509Certificate<'_>, now: UnixTime) -> Result<(), Error> {
        if time_fault(cert, now).is_some() {
            return Err(Error::UnknownIssuer);
        }
        let serial = cert.raw_serial();
        for crl in &self.crls {
            let same_issuer = crl.issuer() == inside(cert.issuer().as_raw());
            if same_issuer && crl.find_serial(serial)?.is_some() {
                return Err(Error::CertRevoked);
            }
        }
        match cert.extended_key_usage() {
            Ok(Some(usage)) if !usage.value.client_auth && !usage.value.any => {
                Err(Error::CaUsedAsEndEntity)
            }
            Ok(_) => Ok(()),
            Err(_) => Err(Error::BadDer),
        }
    }

    /// What OpenSSL wants of a path beyond webpki: its length, authorities that may sign, and a
    /// root that is valid itself.
    fn check_path(&self, path: &VerifiedPath<'_>, now: UnixTime) -> Result<(), Error> {
        let mut count = 0;
        for between in path.intermediate_certificates() {
            count += 1;
            let der = between.der();
            if !parse(&der).is_some_and(|cert| may_sign_certificates(&cert)) {
                return Err(Error::EndEntityUsedAsCa);
            }
        }
        if count > self.depth {
            return Err(Error::MaximumPathDepthExceeded);
        }
        let anchor = path.anchor();
        let is_it = |at: &usize| {
            let known = &self.anchors[*at];
            known.subject == anchor.subject
                && known.subject_public_key_info == anchor.subject_public_key_info
        };
        let mut same = (0..self.roots.len()).filter(is_it);
        let good = |at: usize| {
            parse(&self.roots[at]).is_some_and(|root| {
                may_sign_certificates(&root) && time_fault(&root, now).is_none()
            })
        };
        if same.any(good) { Ok(()) } else { Err(Error::UnknownIssuer) }
    }

    /// Names the fault of a chain that webpki refused with `error`. OpenSSL goes on after each
    /// fault, and the last one it meets counts; so the order here is its order.
    fn explain(
        &self,
        leaf: &X509Certificate<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
        error: &Error,
    ) -> Fault {
        let sent: Vec<_> = chain[1..].iter().filter_map(|der| parse(der)).collect();
        let trusted: Vec<_> =
            self.roots.iter().chain(&self.known).filter_map(|der| parse(der)).collect();
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
            (true, 1) => Some(Fault::SelfSigned),
            (true, _) => Some(Fault::SelfSignedInChain),
            // One that is too deep is not looked at further, and counts as unknown.
            (false, len) if len == 1 || len == self.depth + 2 => Some(Fault::NoLocalIssuer),
            (false, _) if is_trusted || trusted.iter().any(|cert| cert == top) => {
                Some(Fault::NoIssuer)
            }
            (false, _) => Some(Fault::NoLocalIssuer),
        };
        // An authority that speaks for itself is nothing wrong to OpenSSL, unless that is all.
        let is_minor = matches!(error, Error::CaUsedAsEndEntity) && may_sign_handshakes(leaf);
        fault = inner_fault(error).filter(|_| !is_minor || fault.is_none()).or(fault);
        if fault.is_some() && !self.crls.is_empty() && !is_root(leaf) {
            let issuer = inside(leaf.issuer().as_raw());
            if !self.crls.iter().any(|crl| crl.issuer() == issuer) {
                fault = Some(Fault::NoCrl);
            }
        }
        if path.len() == 1 && !is_root(leaf) {
            fault = Some(Fault::Unverified);
        }
        if is_bad_signature(error) {
            fault = Some(Fault::BadSignature);
        }
        let late = path.iter().find_map(|cert| time_fault(cert, now));
        late.or(fault).unwrap_or(Fault::Unspecified)
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

/// What a DER value holds, without tag and length.
fn inside(der: &[u8]) -> &[u8] {
    match der.get(1) {
        Some(len) if *len < 0x80 => der.get(2..),
        Some(len) => der.get(2 + usize::from(len & 0x7f)..),
        None => None,
    }
    .unwrap_or_default()
}

fn seconds(now: UnixTime) -> i64 {
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

fn time_fault(cert: &X509Certificate<'_>, now: UnixTime) -> Option<Fault> {
    let validity = cert.validity();
    let is_before = |time: ASN1Time| time.timestamp() < seconds(now);
    if validity.not_before.timestamp() > seconds(now) {
        Some(Fault::NotYetValid)
    } else if is_before(validity.not_after) {
        Some(Fault::Expired)
    } else {
        None
    }
}

/// RFC 5280 §4.2.1.3: a certificate that says what its key is for must name this.
fn may_sign_handshakes(cert: &X509Certificate<'_>) -> bool {
    match cert.key_usage() {
        Ok(Some(usage)) => usage.value.digital_signature() || usage.value.key_agreement(),
        Ok(None) => true,
        Err(_) => false,
    }
}

fn may_sign_certificates(cert: &X509Certificate<'_>) -> bool {
    match cert.key_usage() {
        Ok(Some(usage)) => usage.value.key_cert_sign(),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Faults of a certificate that is not merely unknown or out of its time.
const fn inner_fault(error: &Error) -> Option<Fault> {
    Some(match error {
        Error::CaUsedAsEndEntity
        | Error::RequiredEkuNotFoundContext(_)
        | Error::EmptyEkuExtension => Fault::WrongPurpose,
        Error::EndEntityUsedAsCa => Fault::NotAuthority,
        Error::PathLenConstraintViolated => Fault::PathTooLong,
        Error::NameConstraintViolation => Fault::NotPermitted,
        Error::UnsupportedCriticalExtension => Fault::UnknownCritical,
        Error::CertRevoked => Fault::Revoked,
        Error::CrlExpired { .. } => Fault::CrlExpired,
        Error::UnknownRevocationStatus => Fault::NoCrl,
        Error::InvalidCrlSignatureForPublicKey => Fault::BadCrlSignature,
        _ => return None,
    })
}

const fn is_bad_signature(error: &Error) -> bool {
    matches!(error, Error::InvalidSignatureForPublicKey)
}
