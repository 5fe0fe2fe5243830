//! The names and plain-text formats of certificates and challenges in Valkey.

use bolide_acme::{AccountName, Challenge, OrderId};
use zeroize::Zeroizing;

use crate::acme::FleetCertificate;

/// The prefix of a lease to create an account. The name of an order begins with the name of an
/// issuer, which has no such byte.
const ACCOUNT: &str = "\0account ";

/// The hash of an order in keys.
fn digest(text: &str) -> String {
    hex(&bolide_tls::secret_of(text.as_bytes()))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn certificate_name(order: &OrderId) -> String {
    format!("certificate:{}", digest(&order.0))
}

pub(super) fn account_name(name: &AccountName) -> String {
    format!("account:{}", digest(&name.0))
}

/// The lease to create an account, in the form of an order.
pub(super) fn account_order(name: &AccountName) -> OrderId {
    OrderId(format!("{ACCOUNT}{}", name.0))
}

/// Whether this is such a lease.
pub(super) fn is_of_account(order: &OrderId) -> bool {
    order.0.starts_with(ACCOUNT)
}

pub(super) fn lease_name(order: &OrderId) -> String {
    format!("order:{}", digest(&order.0))
}

/// The name of a challenge in the table: two servers may have equal challenges, and each removes
/// its own.
pub(super) fn challenge_field(life: u64, challenge: &Challenge) -> Vec<u8> {
    let digest = bolide_tls::secret_of(&written(challenge, 0));
    format!("{life:016x}{}", hex(&digest[..16])).into_bytes()
}

pub(super) fn challenge_name(field: &[u8]) -> String {
    format!("challenge:{}", String::from_utf8_lossy(field))
}

fn push(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u32).to_le_bytes());
    out.extend_from_slice(part);
}

fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

pub(super) fn certificate(opened: &[u8]) -> Option<FleetCertificate> {
    // The leaf certificate determines the validity; the number before it is not needed.
    let (_until, rest) = opened.split_first_chunk::<8>()?;
    let (chain, key) = take(rest)?;
    FleetCertificate::of(chain, key)
}

pub(super) fn plain(certificate: &FleetCertificate) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(certificate.validity.until.to_le_bytes().to_vec());
    push(&mut out, &certificate.chain);
    out.extend_from_slice(certificate.key.as_bytes());
    out
}

pub(super) fn written(challenge: &Challenge, until: u64) -> Vec<u8> {
    let mut out = until.to_le_bytes().to_vec();
    match challenge {
        Challenge::Http01 { name, token, key_authorization } => {
            out.push(1);
            push(&mut out, name.as_bytes());
            push(&mut out, token.as_bytes());
            push(&mut out, key_authorization.as_bytes());
        }
        Challenge::TlsAlpn01 { name, digest } => {
            out.push(2);
            push(&mut out, name.as_bytes());
            out.extend_from_slice(digest);
        }
    }
    out
}

pub(super) fn read(bytes: &[u8]) -> Option<(u64, Challenge)> {
    let (until, rest) = bytes.split_first_chunk()?;
    let (kind, rest) = rest.split_first()?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let (name, rest) = take(rest)?;
    let name = text(name)?;
    let challenge = match kind {
        1 => {
            let (token, rest) = take(rest)?;
            let (key_authorization, rest) = take(rest)?;
            let (token, key_authorization) = (text(token)?, text(key_authorization)?);
            rest.is_empty().then_some(Challenge::Http01 { name, token, key_authorization })?
        }
        2 => Challenge::TlsAlpn01 { name, digest: rest.try_into().ok()? },
        _ => return None,
    };
    Some((u64::from_le_bytes(*until), challenge))
}

#[cfg(test)]
mod tests {
    use super::{Challenge, challenge_field, read, written};

    #[test]
    fn a_challenge_is_read_as_it_was_written() {
        let text = str::to_owned;
        for challenge in [
            Challenge::Http01 {
                name: text("a.test"),
                token: text("t"),
                key_authorization: text("t.k"),
            },
            Challenge::TlsAlpn01 { name: text("a.test"), digest: [7; 32] },
        ] {
            let bytes = written(&challenge, 9);
            let again = challenge.clone();
            assert_eq!(read(&bytes), Some((9, challenge)));
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end]), None, "{end}");
            }
            assert_eq!(read(&[&bytes[..], b"x"].concat()), None);
            assert_ne!(challenge_field(1, &again), challenge_field(2, &again));
        }
    }
}
