//! What the faults mean that AWS-LC met in a chain: OpenSSL's order, in which the last one counts,
//! and its rules where the two libraries disagree. No chain is built here.
//!
//! Easiest to break: a fault may be dropped only where its whole rule is applied again here.

use aws_lc_sys as lc;
use bolide_base::client_cert::ClientCertFault as Fault;

use crate::x509::{X509Facts, X509Fault, X509Moment, X509Report};

/// Bits of security that keys and digests must have: OpenSSL's level 2, which distributions set.
const STRENGTH_MIN: u32 = 112;

/// The owner of the certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertPurpose {
    /// Our clients.
    Clients,
    /// Servers that we connect to.
    Servers,
}

/// OpenSSL's order of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CheckPhase {
    /// The strength of the leaf's key.
    LeafKey,
    /// Building the chain.
    Issuers,
    /// Purposes and extensions, leaf first.
    Extensions,
    /// Strength of authorities' keys and of signatures, leaf first.
    Strength,
    /// Revocation, leaf first.
    Lists,
    /// Signatures and dates, root first.
    Signatures,
    /// Name constraints.
    Names,
    /// A verification that was broken off.
    Broken,
}

use CheckPhase::{Broken, Extensions, Issuers, LeafKey, Lists, Names, Signatures, Strength};

/// A fault with its phase and the place of its certificate, the leaf's is 0.
type Placed = (CheckPhase, usize, Fault);

/// The fault that OpenSSL tells of this chain in the end; `None` for a good one.
pub(crate) fn verdict(report: &X509Report, purpose: CertPurpose) -> Option<Fault> {
    let chain = &report.chain;
    let mut faults: Vec<Placed> =
        report.faults.iter().filter_map(|fault| meaning(*fault, chain, purpose)).collect();
    if !report.is_complete || chain.is_empty() {
        let last = faults.last().map_or(Fault::Unspecified, |(_, _, fault)| *fault);
        faults.push((Broken, 0, last));
    }
    push_lengths(chain, &mut faults);
    push_strengths(chain, &mut faults);
    push_signers(chain, &mut faults);
    // Stable: faults of one certificate stay in their order.
    faults.sort_by_key(|(phase, place, fault)| {
        let place = match phase {
            Extensions | Strength => *place,
            Signatures => chain.len().saturating_sub(*place),
            _ => 0,
        };
        // That the issuer may not sign is found before its signature is looked at.
        (*phase, place, *fault != Fault::SignsNoCertificates)
    });
    faults.last().map(|(_, _, fault)| *fault)
}

/// A fault of the library in OpenSSL's terms; `None` where that has none.
fn meaning(found: X509Fault, chain: &[X509Facts], purpose: CertPurpose) -> Option<Placed> {
    let place = found.place;
    let cert = chain.get(place);
    let is_alone = chain.len() == 1 && cert.is_some_and(|cert| cert.is_own_issuer);
    let (phase, fault) = match found.code {
        lc::X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT => (Issuers, Fault::NoIssuer),
        lc::X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY if is_alone => {
            (Issuers, Fault::SelfSigned)
        }
        lc::X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY => (Issuers, Fault::NoLocalIssuer),
        lc::X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT => (Issuers, Fault::SelfSigned),
        lc::X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN => (Issuers, Fault::SelfSignedInChain),
        lc::X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION => (Extensions, Fault::UnknownCritical),
        lc::X509_V_ERR_INVALID_CA => {
            let is_root = place + 1 == chain.len();
            if is_root && cert.is_some_and(is_old_authority) {
                return None;
            }
            (Extensions, Fault::NotAuthority)
        }
        lc::X509_V_ERR_INVALID_PURPOSE => {
            if cert.is_some_and(|cert| fits(cert, place, purpose)) {
                return None;
            }
            (Extensions, Fault::WrongPurpose)
        }
        // `push_lengths` judges all of them.
        lc::X509_V_ERR_PATH_LENGTH_EXCEEDED => return None,
        lc::X509_V_ERR_UNABLE_TO_GET_CRL => (Lists, Fault::NoCrl),
        lc::X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER => (Lists, Fault::NoCrlIssuer),
        lc::X509_V_ERR_KEYUSAGE_NO_CRL_SIGN => (Lists, Fault::SignsNoLists),
        lc::X509_V_ERR_DIFFERENT_CRL_SCOPE => (Lists, Fault::OtherCrlScope),
        lc::X509_V_ERR_CRL_NOT_YET_VALID => (Lists, Fault::CrlNotYetValid),
        lc::X509_V_ERR_CRL_HAS_EXPIRED => (Lists, Fault::CrlExpired),
        lc::X509_V_ERR_CRL_SIGNATURE_FAILURE => (Lists, Fault::BadCrlSignature),
        lc::X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION => (Lists, Fault::UnknownCriticalCrl),
        lc::X509_V_ERR_CERT_REVOKED => (Lists, Fault::Revoked),
        lc::X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE => (Signatures, Fault::Unverified),
        lc::X509_V_ERR_CERT_SIGNATURE_FAILURE => (Signatures, Fault::BadSignature),
        lc::X509_V_ERR_CERT_NOT_YET_VALID => (Signatures, Fault::NotYetValid),
        lc::X509_V_ERR_CERT_HAS_EXPIRED => (Signatures, Fault::Expired),
        lc::X509_V_ERR_PERMITTED_VIOLATION => (Names, Fault::NotPermitted),
        lc::X509_V_ERR_EXCLUDED_VIOLATION => (Names, Fault::Excluded),
        lc::X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE => (Names, Fault::UnknownConstraint),
        lc::X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX => (Names, Fault::BadConstraint),
        lc::X509_V_ERR_UNSUPPORTED_NAME_SYNTAX => (Names, Fault::BadName),
        lc::X509_V_ERR_INVALID_EXTENSION => (Broken, Fault::BadExtension),
        _ => (Broken, Fault::Unspecified),
    };
    // A root answers for itself: OpenSSL looks for no list of its own since 3.6.
    let is_root = place + 1 == chain.len() && cert.is_some_and(|cert| cert.is_own_issuer);
    (phase != Lists || !is_root).then_some((phase, place, fault))
}

const fn has(cert: &X509Facts, flag: i32) -> bool {
    cert.flags & flag.cast_unsigned() != 0
}

const fn may(usage: u32, bits: i32) -> bool {
    usage & bits.cast_unsigned() != 0
}

/// Without basicConstraints, a key that signs certificates makes an authority; the library asks for
/// the extension.
const fn is_old_authority(cert: &X509Facts) -> bool {
    !has(cert, lc::EXFLAG_BCONS)
        && has(cert, lc::EXFLAG_KUSAGE)
        && may(cert.key_usage, lc::X509v3_KU_KEY_CERT_SIGN)
}

/// Whether OpenSSL lets a certificate pass whose purpose the library refused: authorities without
/// basicConstraints, and servers with the extended usages of step-up cryptography.
const fn fits(cert: &X509Facts, place: usize, purpose: CertPurpose) -> bool {
    let is_server = matches!(purpose, CertPurpose::Servers);
    let wanted = if is_server { lc::XKU_SSL_SERVER | lc::XKU_SGC } else { lc::XKU_SSL_CLIENT };
    if !may(cert.extended_usage, wanted) {
        return false;
    }
    if place > 0 {
        let is_authority = has(cert, lc::EXFLAG_CA)
            && may(cert.key_usage, lc::X509v3_KU_KEY_CERT_SIGN)
            || is_old_authority(cert);
        return is_authority;
    }
    let serves = lc::X509v3_KU_DIGITAL_SIGNATURE
        | lc::X509v3_KU_KEY_ENCIPHERMENT
        | lc::X509v3_KU_KEY_AGREEMENT;
    is_server && may(cert.key_usage, serves) && !has(cert, lc::EXFLAG_NSCERT)
}

/// RFC 5280 §4.2.1.9. The library does not hold roots to it.
fn push_lengths(chain: &[X509Facts], faults: &mut Vec<Placed>) {
    let mut between = 0;
    for (place, cert) in chain.iter().enumerate().skip(1) {
        if place > 1 && cert.path_len.is_some_and(|len| between > len) {
            faults.push((Extensions, place, Fault::PathTooLong));
        }
        between += i64::from(!has(cert, lc::EXFLAG_SI));
    }
}

/// The library has no levels of security.
fn push_strengths(chain: &[X509Facts], faults: &mut Vec<Placed>) {
    for (place, cert) in chain.iter().enumerate() {
        if cert.key_strength < STRENGTH_MIN {
            let leaf = (LeafKey, place, Fault::WeakKey);
            faults.push(if place == 0 { leaf } else { (Strength, place, Fault::WeakAuthority) });
        }
        let is_last = place + 1 == chain.len();
        if !is_last && cert.digest_strength.is_some_and(|strength| strength < STRENGTH_MIN) {
            faults.push((Strength, place, Fault::WeakDigest));
        }
    }
}

/// Issuers whose keys are not for certificates, and the dates of a leaf without an issuer, at which
/// the library does not look.
fn push_signers(chain: &[X509Facts], faults: &mut Vec<Placed>) {
    for (place, issuer) in chain.iter().enumerate().skip(1) {
        if !may(issuer.key_usage, lc::X509v3_KU_KEY_CERT_SIGN) {
            faults.push((Signatures, place - 1, Fault::SignsNoCertificates));
        }
    }
    if faults.iter().any(|(_, _, fault)| *fault == Fault::Unverified) {
        match chain.first().map(|leaf| leaf.moment) {
            Some(X509Moment::Before) => faults.push((Signatures, 0, Fault::NotYetValid)),
            Some(X509Moment::Behind) => faults.push((Signatures, 0, Fault::Expired)),
            _ => {}
        }
    }
}
