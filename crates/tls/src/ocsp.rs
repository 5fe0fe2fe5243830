//! OCSP for the server's own certificates (RFC 6960): the request to the responder, and the
//! conditions for stapling a response. It does no I/O and reads no clock.
//!
//! Easiest to break: no part of a response is trusted until a signature over it is verified with
//! the issuer's key, or with a key that the issuer authorises to sign responses.

use std::fmt;

use aws_lc_rs::digest;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::Oid;
use x509_parser::oid_registry::asn1_rs::oid;
use x509_parser::prelude::FromDer;

use crate::LoadedCertificate;
use crate::der::{
    ENUMERATED, INTEGER, NULL, OBJECT, OCTETS, SEQUENCE, TIME, context, element, inside, join,
    seconds, take,
};
use crate::revocation_list::Revocation;
use crate::signed::{Proof, prove};

/// LIMIT: certificates in a response that are examined.
const SIGNERS_MAX: usize = 4;
/// LIMIT: certificates from an issuer up to its root.
const CHAIN_MAX: usize = 8;
/// Seconds that clocks may differ, as nginx allows.
pub(crate) const SKEW: u64 = 300;
/// Seconds that a status without an end holds.
const AGE_MAX: u64 = 7 * 86_400;
/// `id-sha1`
const SHA1: &[u8] = &[0x2b, 0x0e, 3, 2, 0x1a];
/// `id-pkix-ocsp-basic`
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
/// `id-ad-ocsp`
const RESPONDER: Oid<'static> = oid!(1.3.6.1.5.5.7.48.1);

/// Why a response is not stapled; `Display` gives nginx's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspFault {
    /// It is not an OCSP response.
    Malformed,
    /// It reports an error: the status.
    Unsuccessful(u8),
    /// It is about other certificates.
    NotFound,
    /// It is from the future, or too old.
    Untimely,
    /// Its signature is missing, invalid, or from an unauthorised key.
    Unsigned,
    /// Its signer has no trusted root.
    Untrusted,
    /// The certificate is revoked.
    Revoked,
    /// Its authority does not know the certificate.
    Unknown,
}

impl fmt::Display for OcspFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Malformed => {
                "d2i_OCSP_RESPONSE() failed (SSL: error:0688010A:asn1 encoding routines::nested \
                 asn1 error:Type=OCSP_RESPONSE)"
            }
            Self::Unsuccessful(status) => {
                let words = match status {
                    1 => "malformedrequest",
                    2 => "internalerror",
                    3 => "trylater",
                    5 => "sigrequired",
                    6 => "unauthorized",
                    _ => "(UNKNOWN)",
                };
                return write!(f, "OCSP response not successful ({status}: {words})");
            }
            Self::NotFound => "certificate status not found in the OCSP response",
            Self::Untimely => "OCSP_check_validity() failed",
            Self::Unsigned => {
                "OCSP_basic_verify() failed (SSL: error:13800076:OCSP routines::signer \
                 certificate not found)"
            }
            Self::Untrusted => {
                "OCSP_basic_verify() failed (SSL: error:13800065:OCSP routines::certificate \
                 verify error:Verify error: self-signed certificate in certificate chain)"
            }
            Self::Revoked => "certificate status \"revoked\" in the OCSP response",
            Self::Unknown => "certificate status \"unknown\" in the OCSP response",
        };
        f.write_str(text)
    }
}

/// What an authority says about a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertStatus {
    /// It is not revoked.
    Good,
    /// It is.
    Revoked(Revocation),
    /// The authority does not know it.
    Unknown,
}

/// An OCSP request for one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcspQuestion {
    /// The CertID in DER, as in request and response.
    id: Vec<u8>,
    issuer: Vec<u8>,
    /// The result of `ssl_stapling_verify`: whether the issuer has a trusted root.
    is_trusted: bool,
}

impl OcspQuestion {
    /// The request about the leaf of `certificate`, whose issuer must be in its chain or among
    /// `trusted`; `None` if it is in neither. With `verifies`, a response is good only if the
    /// issuer's chain ends at a root among `trusted`.
    #[must_use]
    pub fn new(
        certificate: &LoadedCertificate,
        trusted: &[Vec<u8>],
        verifies: bool,
    ) -> Option<Self> {
        let der = certificate.leaf();
        let leaf = read(der)?;
        let chain = certificate.chain().skip(1);
        let all: Vec<&[u8]> = chain.chain(trusted.iter().map(Vec::as_slice)).collect();
        let issuer = issuer_of(der, &all)?;
        let key = read(issuer)?.public_key().subject_public_key.data.to_vec();
        let hash = |bytes: &[u8]| {
            let sum = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
            join(OCTETS, &[sum.as_ref()])
        };
        let sha1 = join(SEQUENCE, &[&join(OBJECT, &[SHA1]), &join(NULL, &[])]);
        let serial = join(INTEGER, &[leaf.raw_serial()]);
        let parts = [&sha1[..], &hash(leaf.issuer().as_raw()), &hash(&key), &serial];
        Some(Self {
            id: join(SEQUENCE, &parts),
            issuer: issuer.to_vec(),
            is_trusted: !verifies || has_root(issuer, &all, trusted),
        })
    }

    /// The request in DER.
    #[must_use]
    pub fn request(&self) -> Vec<u8> {
        let list = join(SEQUENCE, &[&join(SEQUENCE, &[&self.id])]);
        join(SEQUENCE, &[&join(SEQUENCE, &[&list])])
    }

    /// Verifies a response at `now`, in seconds since 1970; returns until when it holds, if it
    /// says.
    ///
    /// # Errors
    ///
    /// It must not be sent along.
    pub fn judge(&self, answer: &[u8], now: u64) -> Result<Option<u64>, OcspFault> {
        let (status, (_, until)) = self.verify(answer, now)?;
        match status {
            CertStatus::Good => Ok(until),
            CertStatus::Revoked(_) => Err(OcspFault::Revoked),
            CertStatus::Unknown => Err(OcspFault::Unknown),
        }
    }

    /// Verifies a response likewise; returns the status in it, and until when it holds. One that
    /// does not say until when must be at most a week old: an older one may be replayed.
    ///
    /// # Errors
    ///
    /// It says nothing about the certificate.
    pub fn status(&self, answer: &[u8], now: u64) -> Result<(CertStatus, Option<u64>), OcspFault> {
        let (status, (from, until)) = self.verify(answer, now)?;
        match until.is_none() && from.saturating_add(AGE_MAX) < now {
            true => Err(OcspFault::Untimely),
            false => Ok((status, until)),
        }
    }

    /// The status in a response, and since and until when it holds.
    fn verify(
        &self,
        answer: &[u8],
        now: u64,
    ) -> Result<(CertStatus, (u64, Option<u64>)), OcspFault> {
        let basic = unwrap(answer)?;
        let mut body = inside(basic);
        let responses = take(&mut body, SEQUENCE).ok_or(OcspFault::Malformed)?;
        let (status, rest) = self.find(responses).ok_or(OcspFault::NotFound)?;
        let times = timely(rest, now)?;
        if !self.has_signed(basic, body, now) {
            return Err(OcspFault::Unsigned);
        }
        if !self.is_trusted {
            return Err(OcspFault::Untrusted);
        }
        Ok((status, times))
    }

    /// The status of our certificate, and the data after it.
    fn find<'a>(&self, mut responses: &'a [u8]) -> Option<(CertStatus, &'a [u8])> {
        // The version, the responder, and the time of production.
        let _ = take(&mut responses, context(0));
        element(&mut responses)?;
        take(&mut responses, TIME)?;
        let mut all = take(&mut responses, SEQUENCE)?;
        while let Some(mut single) = take(&mut all, SEQUENCE) {
            let (id, _) = element(&mut single)?;
            if same_id(id, &self.id) {
                let (status, content) = element(&mut single)?;
                let status = match status.first()? {
                    0x80 => CertStatus::Good,
                    0xa1 => CertStatus::Revoked(revocation(content)),
                    _ => CertStatus::Unknown,
                };
                return Some((status, single));
            }
        }
        None
    }

    /// Whether the issuer, or a key that it authorises, has signed. `rest` begins with the
    /// algorithm.
    fn has_signed(&self, basic: &[u8], mut rest: &[u8], now: u64) -> bool {
        let Some(issuer) = read(&self.issuer) else { return false };
        let issuer_key = issuer.public_key().raw;
        if prove(basic, issuer_key) == Proof::Good {
            return true;
        }
        let (_, _) = (element(&mut rest), element(&mut rest));
        let Some(mut signers) = take(&mut rest, context(0)).map(inside) else { return false };
        (0..SIGNERS_MAX).map_while(|_| element(&mut signers)).any(|(der, _)| {
            let Some(signer) = read(der) else { return false };
            prove(der, issuer_key) == Proof::Good
                && may_answer(&signer, now)
                && prove(basic, signer.public_key().raw) == Proof::Good
        })
    }
}

/// `RevokedInfo` (RFC 6960 §4.2.1)
fn revocation(mut content: &[u8]) -> Revocation {
    let at = take(&mut content, TIME).and_then(seconds);
    let reason = take(&mut content, context(0)).and_then(|mut inside| {
        take(&mut inside, ENUMERATED).and_then(|number| number.first().copied())
    });
    Revocation { at, reason }
}

/// The responder's URL in a certificate in DER, if any.
#[must_use]
pub fn responder(leaf: &[u8]) -> Option<String> {
    let leaf = read(leaf)?;
    leaf.extensions().iter().find_map(|extension| {
        let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else {
            return None;
        };
        access.accessdescs.iter().find_map(|one| match &one.access_location {
            GeneralName::URI(uri) if one.access_method == RESPONDER => Some((*uri).to_owned()),
            _ => None,
        })
    })
}

pub(crate) fn read(der: &[u8]) -> Option<X509Certificate<'_>> {
    X509Certificate::from_der(der).ok().map(|(_, cert)| cert)
}

/// The certificate in a chain (in DER, leaf first) whose key has signed the leaf.
#[must_use]
pub fn issuer_in<'a>(chain: &[&'a [u8]]) -> Option<&'a [u8]> {
    let (leaf, above) = chain.split_first()?;
    issuer_of(leaf, above)
}

/// Of `all`, the certificate whose key has signed `der`, other than itself.
fn issuer_of<'a>(der: &[u8], all: &[&'a [u8]]) -> Option<&'a [u8]> {
    let cert = read(der)?;
    all.iter().copied().find(|other| {
        *other != der
            && read(other).is_some_and(|other| {
                other.subject().as_raw() == cert.issuer().as_raw()
                    && prove(der, other.public_key().raw) == Proof::Good
            })
    })
}

/// Whether the issuers of `der` lead to a root among `trusted`.
fn has_root(der: &[u8], all: &[&[u8]], trusted: &[Vec<u8>]) -> bool {
    let mut der = der;
    for _ in 0..CHAIN_MAX {
        let Some(cert) = read(der) else { return false };
        let is_root = cert.subject().as_raw() == cert.issuer().as_raw()
            && prove(der, cert.public_key().raw) == Proof::Good;
        if is_root {
            return trusted.iter().any(|known| known == der);
        }
        match issuer_of(der, all) {
            Some(issuer) => der = issuer,
            None => return false,
        }
    }
    false
}

/// RFC 6960 §4.2.2.2: the certificate of a delegated responder must say so.
fn may_answer(signer: &X509Certificate<'_>, now: u64) -> bool {
    let validity = signer.validity();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let is_valid = validity.not_before.timestamp() <= now && now <= validity.not_after.timestamp();
    let usage = signer.extended_key_usage();
    is_valid && matches!(usage, Ok(Some(usage)) if usage.value.ocsp_signing)
}

/// The signed part of a response, in DER.
fn unwrap(mut answer: &[u8]) -> Result<&[u8], OcspFault> {
    let mut whole = take(&mut answer, SEQUENCE).ok_or(OcspFault::Malformed)?;
    match take(&mut whole, ENUMERATED) {
        Some([0]) => {}
        Some([status]) => return Err(OcspFault::Unsuccessful(*status)),
        _ => return Err(OcspFault::Malformed),
    }
    let mut basic = || {
        let mut wrapped = take(&mut whole, context(0))?;
        let mut bytes = take(&mut wrapped, SEQUENCE)?;
        (take(&mut bytes, OBJECT)? == BASIC).then(|| take(&mut bytes, OCTETS)).flatten()
    };
    let mut basic = basic().ok_or(OcspFault::Malformed)?;
    let is_one = basic.first() == Some(&SEQUENCE);
    let whole = is_one.then(|| element(&mut basic)).flatten();
    whole.map(|(whole, _)| whole).ok_or(OcspFault::Malformed)
}

/// Whether two algorithm identifiers are the same; parameters may be absent.
fn same_id(one: &[u8], other: &[u8]) -> bool {
    let parts = |der: &'_ [u8]| -> Option<(Vec<u8>, Vec<u8>)> {
        let mut rest = inside(der);
        let mut algorithm = take(&mut rest, SEQUENCE)?;
        Some((take(&mut algorithm, OBJECT)?.to_vec(), rest.to_vec()))
    };
    parts(one).is_some_and(|one| Some(one) == parts(other))
}

/// Whether the response after a status holds at `now`; since and until when.
fn timely(mut single: &[u8], now: u64) -> Result<(u64, Option<u64>), OcspFault> {
    let from = take(&mut single, TIME).and_then(seconds).ok_or(OcspFault::Malformed)?;
    let until = match take(&mut single, context(0)) {
        None => None,
        Some(mut until) => {
            let until = take(&mut until, TIME).and_then(seconds);
            Some(until.ok_or(OcspFault::Malformed)?)
        }
    };
    let is_over = until.is_some_and(|until| until.saturating_add(SKEW) < now);
    if from > now.saturating_add(SKEW) || is_over {
        Err(OcspFault::Untimely)
    } else {
        Ok((from, until))
    }
}

#[cfg(test)]
mod tests;
