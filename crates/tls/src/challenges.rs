//! `tls-alpn-01` (RFC 8737): certificates that prove to an issuer who holds a name.
//!
//! Owns the names that are to be proved now. It decides nothing about other handshakes.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use rcgen::{CertificateParams, CustomExtension, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::server::ClientHello;
use rustls::sign::CertifiedKey;

use crate::LoadedCertificate;

/// The application protocol of such handshakes.
pub const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";

/// What proves one name: of each order its digest and certificate, the newest last. Two orders may
/// have one digest, and each takes away its own.
type Proofs = Vec<([u8; 32], Arc<CertifiedKey>)>;

/// The certificates by server name. All clones share the table; only handshakes that offer nothing
/// but [`CHALLENGE_PROTOCOL`] look into it.
#[derive(Clone, Default)]
pub struct TlsChallenges(Arc<RwLock<HashMap<String, Proofs>>>);

impl TlsChallenges {
    /// From now on a handshake for `name` (a DNS name or an IP address) proves that `digest`, the
    /// SHA-256 of the key authorization, is known here. Of several digests it is the newest one
    /// that was not withdrawn, as a handshake has one certificate.
    ///
    /// # Errors
    ///
    /// As text: the name is none, or randomness fails.
    pub fn present(&self, name: &str, digest: &[u8; 32]) -> Result<(), String> {
        let made = certificate(name, digest)?.certified();
        self.write(|all| all.entry(asked_for(name)).or_default().push((*digest, made)));
        Ok(())
    }

    /// The name is proved by this digest, or given up.
    pub fn withdraw(&self, name: &str, digest: &[u8; 32]) {
        let name = asked_for(name);
        self.write(|all| {
            let Some(proofs) = all.get_mut(&name) else { return };
            if let Some(own) = proofs.iter().rposition(|(other, _)| other == digest) {
                proofs.remove(own);
            }
            if proofs.is_empty() {
                all.remove(&name);
            }
        });
    }

    /// What proves a name now.
    fn newest(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name)?.last().map(|(_, made)| made.clone())
    }

    fn write<T>(&self, change: impl FnOnce(&mut HashMap<String, Proofs>) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The certificate for a hello; `None` if it asks for no proof, `Some(None)` if it does for a
    /// name that is not to be proved.
    pub(crate) fn answer(&self, hello: &ClientHello<'_>) -> Option<Option<Arc<CertifiedKey>>> {
        let mut offered = hello.alpn()?;
        // RFC 8737 §3: the list must have this protocol and no other.
        if offered.next() != Some(CHALLENGE_PROTOCOL) || offered.next().is_some() {
            return None;
        }
        let name = hello.server_name().map(str::to_ascii_lowercase);
        Some(name.and_then(|name| self.newest(&name)))
    }
}

impl fmt::Debug for TlsChallenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("TlsChallenges").field(&all.keys()).finish()
    }
}

/// RFC 8737 §3: self-signed, with that name and the digest in a critical extension.
fn certificate(name: &str, digest: &[u8; 32]) -> Result<LoadedCertificate, String> {
    let mut params =
        CertificateParams::new(vec![name.to_owned()]).map_err(|error| error.to_string())?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| error.to_string())?;
    let made = params.self_signed(&key).map_err(|error| error.to_string())?;
    LoadedCertificate::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes(), &[])
        .map_err(|error| error.to_string())
}

/// The server name of handshakes about `name`. RFC 8738 §6: of an address, its name in the tree of
/// reverse look-ups.
fn asked_for(name: &str) -> String {
    match name.parse() {
        Ok(IpAddr::V4(ip)) => {
            let [a, b, c, d] = ip.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        Ok(IpAddr::V6(ip)) => {
            let bytes = ip.octets().into_iter().rev();
            let labels = bytes.map(|byte| format!("{:x}.{:x}.", byte & 15, byte >> 4));
            format!("{}ip6.arpa", labels.collect::<String>())
        }
        Err(_) => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::certificate::X509Certificate;
    use x509_parser::prelude::FromDer as _;

    use super::{TlsChallenges, asked_for, certificate};

    #[test]
    fn orders_of_one_name_keep_and_withdraw_their_own_proofs() {
        let all = TlsChallenges::default();
        let proven = || {
            let made = all.newest("a.example")?;
            let (_, leaf) = X509Certificate::from_der(&made.cert[0]).unwrap();
            let own =
                leaf.extensions().iter().find(|one| one.oid.to_id_string() == "1.3.6.1.5.5.7.1.31");
            own.map(|own| own.value[2])
        };
        for digest in [1, 2, 2, 3] {
            all.present("A.example", &[digest; 32]).unwrap();
            assert_eq!(proven(), Some(digest), "the newest one");
        }
        for (withdrawn, left) in [(1, Some(3)), (9, Some(3)), (3, Some(2)), (2, Some(2)), (2, None)]
        {
            all.withdraw("a.Example", &[withdrawn; 32]);
            assert_eq!(proven(), left, "{withdrawn}");
        }
        all.withdraw("a.example", &[2; 32]);
        assert!(all.0.read().unwrap().is_empty());
    }

    #[test]
    fn the_proof_is_the_digest_in_a_critical_extension() {
        let made = certificate("a.example", &[7; 32]).unwrap();
        let (_, leaf) = X509Certificate::from_der(made.leaf()).unwrap();
        let own =
            leaf.extensions().iter().find(|one| one.oid.to_id_string() == "1.3.6.1.5.5.7.1.31");
        let own = own.expect("the extension");
        assert!(own.critical);
        assert_eq!(own.value, [&[4, 32][..], &[7; 32]].concat());
        let names = leaf.subject_alternative_name().unwrap().expect("names");
        assert_eq!(names.value.general_names.len(), 1);
        assert!(certificate("b\u{fc}.example", &[7; 32]).is_err());
    }

    #[test]
    fn an_address_is_asked_for_by_its_name_in_the_reverse_tree() {
        assert_eq!(asked_for("A.example"), "a.example");
        assert_eq!(asked_for("192.0.2.1"), "1.2.0.192.in-addr.arpa");
        let reverse = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(asked_for("2001:db8::1"), reverse);
    }
}
