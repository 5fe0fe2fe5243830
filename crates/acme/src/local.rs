//! An authority of this server for names that public issuers do not certify: a root stored beside
//! the certificates, and leaves that last days. It needs no network and has no revocation.
//!
//! Easiest to break: people have to trust a new root by hand, so the stored one is replaced only if
//! it is damaged or about to expire.

use std::path::PathBuf;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData as _,
};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::time::ASN1Time;

use crate::certificate::{self, BUNDLE_MAX, digest_hex};
use crate::client::IssuedCertificate;
use crate::plan::{AcmeAuthority, AcmeIssuer, AcmeOrder};
use crate::state::AcmeStore;

/// Key and certificate of the root, in one file.
const AUTHORITY: &str = "authority.pem";
/// The certificate of the root alone, for import into clients.
pub(crate) const ROOT: &str = "root.pem";
/// The prefix of the names of roots.
const NAME: &str = "Bolide local authority";
/// The lifetime of a root, in seconds: ten years.
const ROOT_LIFE: u64 = 3650 * DAY;
/// Seconds before its end at which the next root is made; no leaf lasts longer.
const ROOT_LAST: u64 = 90 * DAY;
/// LIMIT: seconds by which clocks of clients may be behind.
const EARLIER_MAX: u64 = HOUR;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The file of the root certificate, if the issuer is this server and stores one.
pub(crate) fn root(issuer: &AcmeIssuer) -> Option<PathBuf> {
    let is_local = matches!(issuer.authority, AcmeAuthority::Local { .. });
    issuer.state_path.as_ref().filter(|_| is_local).map(|path| path.join(ROOT))
}

/// Whether a chain (PEM, leaf first) is of such an authority, of this server or another one.
/// Clients of one server do not trust the root of another.
#[must_use]
pub fn is_local(chain: &[u8]) -> bool {
    let is_named = |name: &str| name.starts_with(NAME);
    let is_ours = certificate::leaf_of(chain, |leaf| {
        leaf.issuer().iter_common_name().filter_map(|name| name.as_str().ok()).any(is_named)
    });
    is_ours.unwrap_or(false)
}

/// A root with its key.
struct Authority {
    name: String,
    key: KeyPair,
    /// In PEM form.
    certificate: String,
}

/// A certificate for an order, and a message about its root.
#[derive(Debug)]
pub(crate) struct IssuedHere {
    pub(crate) issued: IssuedCertificate,
    /// Why the root was replaced.
    pub(crate) new_root: Option<String>,
}

/// Issues a certificate. The caller holds the lock of the directory, so no other process makes a
/// root.
///
/// # Errors
///
/// The root can neither be read nor made, or a name is invalid.
pub(crate) fn issue(
    store: &AcmeStore,
    order: &AcmeOrder,
    lifetime: Duration,
    now: u64,
) -> Result<IssuedHere, String> {
    let (authority, new_root) = match kept(store, now)? {
        Ok(kept) => (kept, None),
        Err(why) => (make(store, now)?, Some(why)),
    };
    if store.read(ROOT, BUNDLE_MAX)?.as_deref() != Some(authority.certificate.as_bytes()) {
        store.write(ROOT, authority.certificate.as_bytes())?;
    }
    let key = certificate::new_key(order.key)?;
    let chain = authority.sign(&order.names, &key, lifetime, now)?;
    let facts = certificate::check(chain.as_bytes(), &key, order.key, &order.names)?;
    Ok(IssuedHere { issued: IssuedCertificate { chain, key, facts }, new_root })
}

/// The stored root, or why another one has to be made.
fn kept(store: &AcmeStore, now: u64) -> Result<Result<Authority, String>, String> {
    // A file that cannot be read now may be valid.
    let Some(content) = store.read(AUTHORITY, BUNDLE_MAX)? else {
        return Ok(Err("there was none".to_owned()));
    };
    match Authority::read(&content) {
        Some((_, until)) if until.saturating_sub(ROOT_LAST) <= now => {
            Ok(Err("the old one comes to its end".to_owned()))
        }
        Some((authority, _)) => Ok(Ok(authority)),
        None => {
            store.set_aside(AUTHORITY)?;
            Ok(Err("the old one is damaged".to_owned()))
        }
    }
}

fn make(store: &AcmeStore, now: u64) -> Result<Authority, String> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| failed(&error))?;
    // Servers have different names, to be distinct in the lists of browsers.
    let name = format!("{NAME} {}", &digest_hex(&key.subject_public_key_info())[..8]);
    let mut params = root_params(&name);
    params.not_before = time(now.saturating_sub(EARLIER_MAX))?.to_datetime();
    params.not_after = time(now.saturating_add(ROOT_LIFE))?.to_datetime();
    let certificate = params.self_signed(&key).map_err(|error| failed(&error))?.pem();
    let authority = Authority { name, key, certificate };
    let both =
        certificate::bundle(authority.certificate.as_bytes(), &authority.key.serialize_pem());
    store.write(AUTHORITY, &both)?;
    Ok(authority)
}

fn root_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    // RFC 5280 §4.2.1.9: it issues leaves only.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut all = DistinguishedName::new();
    all.push(DnType::CommonName, name);
    all
}

impl Authority {
    /// Key and certificate of a file, and the last second of the certificate; `None` if it is
    /// damaged.
    fn read(content: &[u8]) -> Option<(Self, u64)> {
        let (chain, key) = certificate::unbundle(content)?;
        let key = KeyPair::from_pem(&key).ok()?;
        let block = pem::parse(&chain).ok()?;
        let (_, root) = X509Certificate::from_der(block.contents()).ok()?;
        let name = root.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
        if !root.is_ca() || root.public_key().raw != key.subject_public_key_info() {
            return None;
        }
        let until = u64::try_from(root.validity().not_after.timestamp()).unwrap_or(0);
        Some((Self { name, key, certificate: String::from_utf8(chain).ok()? }, until))
    }

    fn sign(
        &self,
        names: &[String],
        key: &str,
        lifetime: Duration,
        now: u64,
    ) -> Result<String, String> {
        let key = KeyPair::from_pem(key).map_err(|error| failed(&error))?;
        let mut params = certificate::params(names).map_err(|error| failed(&error))?;
        let life = lifetime.as_secs();
        // Backdating must not make the renewal due.
        let earlier = (life / 30).min(EARLIER_MAX);
        params.not_before = time(now.saturating_sub(earlier))?.to_datetime();
        params.not_after = time(now.saturating_add(life))?.to_datetime();
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let root = root_params(&self.name);
        let issuer = Issuer::from_params(&root, &self.key);
        Ok(params.signed_by(&key, &issuer).map_err(|error| failed(&error))?.pem())
    }
}

fn failed(error: &rcgen::Error) -> String {
    format!("the local authority cannot issue: {error}")
}

/// A time for a certificate, from seconds since 1970.
fn time(seconds: u64) -> Result<ASN1Time, String> {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    ASN1Time::from_timestamp(seconds).map_err(|_| "the clock is wrong".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::check_time;
    use crate::plan::{CertificateKey, OrderId};

    const NOW: u64 = 1_700_000_000;

    fn order(names: &[&str], key: CertificateKey) -> AcmeOrder {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        AcmeOrder { id: OrderId("x".into()), issuers: vec![0], names, key }
    }

    fn issued(store: &AcmeStore, now: u64) -> IssuedHere {
        let order = order(&["localhost", "*.localhost", "::1"], CertificateKey::EcdsaP256);
        issue(store, &order, Duration::from_secs(7 * DAY), now).unwrap()
    }

    fn root(store: &AcmeStore) -> Vec<u8> {
        store.read(ROOT, BUNDLE_MAX).unwrap().unwrap()
    }

    #[test]
    fn one_root_issues_until_it_comes_to_its_end() {
        let store = AcmeStore::new(None);
        assert_eq!(issued(&store, NOW).new_root.as_deref(), Some("there was none"));
        let first = root(&store);
        assert!(is_local(issued(&store, NOW).issued.chain.as_bytes()));
        assert!(!is_local(b"") && !is_local(b"no PEM"));
        assert_eq!(issued(&store, NOW + 9 * 365 * DAY).new_root, None);
        assert_eq!(root(&store), first);
        let late = NOW + ROOT_LIFE - ROOT_LAST;
        assert_eq!(issued(&store, late).new_root.as_deref(), Some("the old one comes to its end"));
        assert_ne!(root(&store), first);
    }

    #[test]
    fn a_damaged_root_is_set_aside_and_the_copy_for_people_mended() {
        let store = AcmeStore::new(None);
        let _first = issued(&store, NOW);
        let first = root(&store);
        store.write(ROOT, b"x").unwrap();
        assert_eq!(issued(&store, NOW).new_root, None);
        assert_eq!(root(&store), first);
        for damage in [&b"x"[..], &first] {
            store.write(AUTHORITY, damage).unwrap();
            let new_root = issued(&store, NOW).new_root;
            assert_eq!(new_root.as_deref(), Some("the old one is damaged"));
        }
    }

    #[test]
    fn openssl_verifies_every_kind_of_key_and_name() {
        let dir = bolide_testkit::site::temp_dir();
        let store = AcmeStore::new(Some(&dir.join("state")));
        let now = bolide_io::process::now().unix_seconds();
        for kind in [CertificateKey::EcdsaP384, CertificateKey::Rsa2048] {
            let order = order(&["nas", "*.home.arpa", "192.168.0.1"], kind);
            let made = issue(&store, &order, Duration::from_secs(DAY), now).unwrap().issued;
            check_time(made.facts.validity, now).unwrap();
            std::fs::write(dir.join("leaf.pem"), &made.chain).unwrap();
            let (root, leaf) = (dir.join("state").join(ROOT), dir.join("leaf.pem"));
            let paths = [root.to_str().unwrap(), leaf.to_str().unwrap()];
            for (flag, name) in [
                ("-verify_hostname", "nas"),
                ("-verify_hostname", "a.home.arpa"),
                ("-verify_ip", "192.168.0.1"),
            ] {
                let args = ["verify", "-x509_strict", "-purpose", "sslserver", flag, name];
                let args = [&args[..], &["-CAfile", paths[0], paths[1]]].concat();
                let _quiet = bolide_testkit::run("openssl", args).succeeded();
            }
        }
    }
}
