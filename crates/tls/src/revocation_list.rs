//! Revocation lists (RFC 5280 §5) about the server's own certificates: whether a list is the
//! issuer's and current, and which certificates it names. It does no I/O and reads no clock.
//!
//! Easiest to break: nothing of a list is believed before its signature is verified.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use x509_parser::extensions::{DistributionPointName, GeneralName, ParsedExtension};

use crate::der::{
    BITS, BOOLEAN, ENUMERATED, INTEGER, OBJECT, OCTETS, SEQUENCE, context, element, take, take_time,
};
use crate::ocsp::{SKEW, read};
use crate::signed::{Proof, prove};

/// `id-ce-cRLReasons`
const REASON: &[u8] = &[0x55, 0x1d, 0x15];
/// `id-ce-issuingDistributionPoint`
const SHARD: &[u8] = &[0x55, 0x1d, 0x1c];
/// `removeFromCRL` (RFC 5280 §5.3.1)
const REMOVED: u8 = 8;

/// What an authority says about a certificate that it revoked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revocation {
    /// When, in seconds since 1970.
    pub at: Option<u64>,
    /// The CRLReason (RFC 5280 §5.3.1), if there is one.
    pub reason: Option<u8>,
}

impl Revocation {
    /// The reason in the words of RFC 5280 §5.3.1.
    #[must_use]
    pub fn reason_words(self) -> &'static str {
        match self.reason {
            Some(1) => "keyCompromise",
            Some(2) => "cACompromise",
            Some(3) => "affiliationChanged",
            Some(4) => "superseded",
            Some(5) => "cessationOfOperation",
            Some(6) => "certificateHold",
            Some(9) => "privilegeWithdrawn",
            Some(10) => "aACompromise",
            _ => "unspecified",
        }
    }
}

/// Why a list says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFault {
    /// It is not a revocation list.
    Malformed,
    /// It is another authority's.
    OtherIssuer,
    /// The issuer has not signed it, or may not sign lists.
    Unsigned,
    /// It is from the future, or a newer one should exist.
    Untimely,
    /// It is not complete by itself, or speaks of other authorities' certificates.
    Partial,
    /// It is a shard that the certificates do not name.
    OtherShard,
}

impl fmt::Display for ListFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is no revocation list",
            Self::OtherIssuer => "the revocation list is of another issuer",
            Self::Unsigned => "the revocation list is not signed by the issuer",
            Self::Untimely => "the revocation list is not current",
            Self::Partial => "the revocation list has unknown critical extensions",
            Self::OtherShard => "the revocation list is published for another URL",
        })
    }
}

/// The URL over HTTP where the issuer of a certificate in DER publishes its list, if any. A list of
/// another authority (`cRLIssuer`) is none.
#[must_use]
pub fn list_url(leaf: &[u8]) -> Option<String> {
    let leaf = read(leaf)?;
    leaf.extensions().iter().find_map(|extension| {
        let ParsedExtension::CRLDistributionPoints(points) = extension.parsed_extension() else {
            return None;
        };
        let own = points.iter().filter(|point| point.crl_issuer.is_none());
        let names = own.filter_map(|point| match &point.distribution_point {
            Some(DistributionPointName::FullName(names)) => Some(names),
            _ => None,
        });
        names.flatten().find_map(|name| match name {
            GeneralName::URI(uri) if is_http(uri) => Some((*uri).to_owned()),
            _ => None,
        })
    })
}

/// Whether a URL in a certificate can be requested over HTTP.
#[must_use]
pub fn is_http(url: &str) -> bool {
    let is_http = url.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("http://"));
    is_http && url.len() > 7 && url.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The certificates of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedCertificates {
    /// Those of the serial numbers in question that are revoked.
    pub revoked: BTreeMap<Vec<u8>, Revocation>,
    /// When a newer list will exist, in seconds since 1970.
    pub until: u64,
}

/// Which of the certificates with these serial numbers (contents of INTEGERs), which `issuer` (in
/// DER) signed and for which they name `url`, the list names as revoked at `now`.
///
/// # Errors
///
/// The list says nothing about them.
pub fn listed(
    list: &[u8],
    issuer: &[u8],
    url: &str,
    serials: &BTreeSet<Vec<u8>>,
    now: u64,
) -> Result<ListedCertificates, ListFault> {
    let parts = Parts::read(list).ok_or(ListFault::Malformed)?;
    let authority = read(issuer).ok_or(ListFault::OtherIssuer)?;
    if parts.issuer != authority.subject().as_raw() {
        return Err(ListFault::OtherIssuer);
    }
    // RFC 5280 §6.3.3 (f)
    let may_sign = authority.key_usage().ok().flatten().is_none_or(|usage| usage.value.crl_sign());
    if !may_sign || prove(list, authority.public_key().raw) != Proof::Good {
        return Err(ListFault::Unsigned);
    }
    if parts.from > now.saturating_add(SKEW) || parts.until.saturating_add(SKEW) < now {
        return Err(ListFault::Untimely);
    }
    let mut is_asked = true;
    check_extensions(parts.extensions, |id, value| {
        is_asked &= id != SHARD || is_published_at(value, url);
        may_be_critical(id, value)
    })?;
    if !is_asked {
        return Err(ListFault::OtherShard);
    }
    let mut revoked = BTreeMap::new();
    let mut entries = parts.entries;
    while !entries.is_empty() {
        let entry = take(&mut entries, SEQUENCE).ok_or(ListFault::Malformed)?;
        let (serial, revocation) = entry_of(entry)?;
        if revocation.reason != Some(REMOVED) && serials.contains(serial) {
            revoked.insert(serial.to_vec(), revocation);
        }
    }
    Ok(ListedCertificates { revoked, until: parts.until })
}

/// The parts of a list, each the contents of its value.
struct Parts<'a> {
    /// With its tag.
    issuer: &'a [u8],
    from: u64,
    until: u64,
    entries: &'a [u8],
    extensions: &'a [u8],
}

impl<'a> Parts<'a> {
    /// RFC 5280 §5.1: `nextUpdate` is mandatory.
    fn read(mut list: &'a [u8]) -> Option<Self> {
        let mut whole = take(&mut list, SEQUENCE)?;
        let mut signed = take(&mut whole, SEQUENCE)?;
        let outer = take(&mut whole, SEQUENCE)?;
        take(&mut whole, BITS)?;
        let _version = take(&mut signed, INTEGER);
        let inner = take(&mut signed, SEQUENCE)?;
        let issuer = (signed.first() == Some(&SEQUENCE)).then(|| element(&mut signed))??.0;
        let (from, until) = (take_time(&mut signed)?, take_time(&mut signed)?);
        let entries = take(&mut signed, SEQUENCE).unwrap_or_default();
        let mut extensions = take(&mut signed, context(0)).unwrap_or_default();
        let extensions = match extensions.is_empty() {
            true => extensions,
            false => take(&mut extensions, SEQUENCE).filter(|_| extensions.is_empty())?,
        };
        let is_whole = list.is_empty() && whole.is_empty() && signed.is_empty();
        (is_whole && inner == outer).then_some(Self { issuer, from, until, entries, extensions })
    }
}

/// The serial number of an entry, and what the list says about it.
fn entry_of(mut entry: &[u8]) -> Result<(&[u8], Revocation), ListFault> {
    let serial = take(&mut entry, INTEGER).ok_or(ListFault::Malformed)?;
    let at = Some(take_time(&mut entry).ok_or(ListFault::Malformed)?);
    let extensions = take(&mut entry, SEQUENCE).unwrap_or_default();
    if !entry.is_empty() {
        return Err(ListFault::Malformed);
    }
    let mut reason = None;
    check_extensions(extensions, |id, mut value| {
        if id == REASON {
            reason = take(&mut value, ENUMERATED).and_then(|number| number.first().copied());
        }
        id == REASON
    })?;
    Ok((serial, Revocation { at, reason }))
}

/// RFC 5280 §5.2, §5.3: a list with a critical extension that is not understood says nothing.
/// `knows` gets the identifier and value of each.
fn check_extensions(
    mut extensions: &[u8],
    mut knows: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), ListFault> {
    while !extensions.is_empty() {
        let mut one = take(&mut extensions, SEQUENCE).ok_or(ListFault::Malformed)?;
        let id = take(&mut one, OBJECT).ok_or(ListFault::Malformed)?;
        let is_critical = take(&mut one, BOOLEAN).is_some_and(|value| value != [0]);
        let value = take(&mut one, OCTETS).ok_or(ListFault::Malformed)?;
        if !knows(id, value) && is_critical {
            return Err(ListFault::Partial);
        }
    }
    Ok(())
}

/// Whether the list of this `issuingDistributionPoint` is the one of `url`
/// (RFC 5280 §6.3.3 (b)(2)); one that has no URL over HTTP is for all.
fn is_published_at(mut value: &[u8], url: &str) -> bool {
    const URI: u8 = 0x86;
    let mut shard = take(&mut value, SEQUENCE).unwrap_or_default();
    let mut point = take(&mut shard, context(0)).unwrap_or_default();
    let mut names = take(&mut point, context(0)).unwrap_or_default();
    let mut is_other = false;
    while let Some(&tag) = names.first() {
        let Some((_, name)) = element(&mut names) else { return false };
        if tag == URI && name == url.as_bytes() {
            return true;
        }
        is_other |= tag == URI && std::str::from_utf8(name).is_ok_and(is_http);
    }
    !is_other
}

/// A shard (RFC 5280 §5.2.5) may cover any part of the issuer's certificates: a name in it is
/// revoked. One of several authorities (`indirectCRL`) has serial numbers of others.
fn may_be_critical(id: &[u8], mut value: &[u8]) -> bool {
    /// `[2] onlyContainsCACerts`, `[4] indirectCRL`, `[5] onlyContainsAttributeCerts`
    const OTHERS: [u8; 3] = [0x82, 0x84, 0x85];
    /// `[3] onlySomeReasons`
    const REASONS: u8 = 0x83;
    let Some(mut shard) = take(&mut value, SEQUENCE).filter(|_| id == SHARD) else { return false };
    while !shard.is_empty() {
        let tag = shard.first().copied();
        match element(&mut shard) {
            Some(_) if tag == Some(REASONS) => return false,
            Some((_, value)) if tag.is_none_or(|tag| !OTHERS.contains(&tag)) || value == [0] => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
