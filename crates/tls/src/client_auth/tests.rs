//! Verdicts on chains that are made here. The comparison with nginx covers those that openssl can
//! make.

use std::time::Duration;

use bolide_base::client_cert::ClientCertFault;
use bolide_base::limits::{CLIENT_CERT_SIZE_MAX, CLIENT_CHAIN_MAX, CLIENT_NAMESAKES_MAX};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams,
    CustomExtension, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, NameConstraints, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, UnixTime};

use super::{ClientAuth, ClientAuthFiles, without_namesakes};

/// 2030-01-01
const NOW: u64 = 1_893_456_000;
const MAIL: [u64; 7] = [1, 2, 840, 113_549, 1, 9, 1];

/// A certificate and its signing key.
struct Made {
    params: CertificateParams,
    key: KeyPair,
    cert: Certificate,
}

fn named(name: &str, is_ca: IsCa) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = is_ca;
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(7));
    params
}

fn ca(name: &str) -> CertificateParams {
    named(name, IsCa::Ca(BasicConstraints::Unconstrained))
}

fn leaf(name: &str) -> CertificateParams {
    named(name, IsCa::ExplicitNoCa)
}

fn self_signed(params: CertificateParams) -> Made {
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    Made { params, key, cert }
}

impl Made {
    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }

    fn sign(&self, params: CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer()).unwrap();
        Self { params, key, cert }
    }

    /// A list in force in these years, with the serial numbers of all certificates here or empty.
    fn crl(&self, (since, until): (i32, i32), revokes: bool) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(7),
            revocation_time: date_time_ymd(since, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(since, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: if revokes { vec![revoked] } else { Vec::new() },
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer()).unwrap().pem().unwrap()
    }
}

fn trusting(trusted: &[&Made], crls: &[String]) -> ClientAuth {
    let pem: String = trusted.iter().map(|made| made.cert.pem()).collect();
    let crl = crls.concat();
    let files = ClientAuthFiles {
        client: None,
        trusted: Some(pem.as_bytes()),
        crl: (!crls.is_empty()).then_some(crl.as_bytes()),
    };
    ClientAuth::new(&files, 3).unwrap()
}

fn ders(chain: &[&Made]) -> Vec<CertificateDer<'static>> {
    chain.iter().map(|made| made.cert.der().clone()).collect()
}

fn fault(auth: &ClientAuth, chain: &[&Made]) -> Option<ClientCertFault> {
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    auth.judge(&ders(chain), now).unwrap().fault
}

#[test]
fn a_certificate_trusted_by_itself_authorises_no_other() {
    for is_ca in [IsCa::ExplicitNoCa, IsCa::NoCa] {
        let pinned = self_signed(named("pinned", is_ca));
        let forged = pinned.sign(leaf("forged"));
        let auth = trusting(&[&pinned], &[]);
        assert_eq!(fault(&auth, &[&pinned]), None);
        assert_eq!(fault(&auth, &[&forged]), Some(ClientCertFault::WrongPurpose));
        assert_eq!(fault(&auth, &[&forged, &pinned]), Some(ClientCertFault::WrongPurpose));
    }
    let mut silent = ca("no signing");
    silent.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let silent = self_signed(silent);
    let auth = trusting(&[&silent], &[]);
    assert_eq!(fault(&auth, &[&silent.sign(leaf("x"))]), Some(ClientCertFault::WrongPurpose));
    let good = self_signed(ca("good"));
    assert_eq!(fault(&trusting(&[&good], &[]), &[&good.sign(leaf("x"))]), None);
    let mut old = named("old", IsCa::NoCa);
    old.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let old = self_signed(old);
    assert_eq!(fault(&trusting(&[&old], &[]), &[&old.sign(leaf("x"))]), None);
}

#[test]
fn a_root_is_held_to_its_reach_and_its_purposes() {
    let short = self_signed(named("short", IsCa::Ca(BasicConstraints::Constrained(0))));
    let auth = trusting(&[&short], &[]);
    assert_eq!(fault(&auth, &[&short.sign(leaf("x"))]), None);
    let mid = short.sign(ca("mid"));
    assert_eq!(fault(&auth, &[&mid.sign(leaf("x")), &mid]), Some(ClientCertFault::PathTooLong));
    let mut servers = ca("servers");
    servers.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let servers = self_signed(servers);
    let auth = trusting(&[&servers], &[]);
    assert_eq!(fault(&auth, &[&servers.sign(leaf("x"))]), Some(ClientCertFault::WrongPurpose));
    let mut any = leaf("any");
    any.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any];
    let any = self_signed(any);
    assert_eq!(fault(&trusting(&[&any], &[]), &[&any]), Some(ClientCertFault::WrongPurpose));
}

#[test]
fn the_name_of_its_issuer_makes_no_root_of_a_certificate() {
    let real = self_signed(ca("twin"));
    let rolled = real.sign(ca("twin"));
    let client = rolled.sign(leaf("x"));
    assert!(fault(&trusting(&[&rolled], &[]), &[&client]).is_some());
    assert!(fault(&trusting(&[&rolled], &[]), &[&rolled]).is_some());
    assert_eq!(fault(&trusting(&[&real, &rolled], &[]), &[&client]), None);
}

#[test]
fn what_a_client_sends_is_looked_at_within_bounds() {
    let root = self_signed(ca("root"));
    let auth = trusting(&[&root], &[]);
    let client = root.sign(leaf("x"));
    let twins: Vec<_> = (0..=CLIENT_CHAIN_MAX).map(|_| self_signed(ca("twin"))).collect();
    let mut chain = vec![&client];
    chain.extend(&twins[1..]);
    assert_eq!(fault(&auth, &chain), None);
    assert_eq!(without_namesakes(&ders(&chain)[1..]).count(), CLIENT_NAMESAKES_MAX);
    chain.push(&twins[0]);
    assert_eq!(fault(&auth, &chain), Some(ClientCertFault::ChainTooLong));

    let mut fat = leaf("fat");
    let content = vec![0; CLIENT_CERT_SIZE_MAX];
    fat.custom_extensions = vec![CustomExtension::from_oid_content(&[1, 2, 3], content)];
    let chain = ders(&[&root.sign(fat)]);
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    let told = auth.judge(&chain, now).unwrap();
    assert_eq!(
        (told.fault, told.subject.len(), told.pem.len()),
        (Some(ClientCertFault::Unspecified), 0, 0)
    );
}

#[test]
fn the_newest_list_of_an_issuer_counts_wherever_it_stands() {
    let mut root = ca("root");
    root.serial_number = Some(SerialNumber::from(1));
    let root = self_signed(root);
    let client = root.sign(leaf("x"));
    let (clean, revoking) = (root.crl((2028, 2032), false), root.crl((2029, 2032), true));
    let future = root.crl((2031, 2033), false);
    let judge = |crls: &[&String]| {
        let crls: Vec<_> = crls.iter().map(|crl| (*crl).clone()).collect();
        fault(&trusting(&[&root], &crls), &[&client])
    };
    assert_eq!(judge(&[&clean]), None);
    assert_eq!(judge(&[&clean, &revoking]), Some(ClientCertFault::Revoked));
    assert_eq!(judge(&[&revoking, &clean]), Some(ClientCertFault::Revoked));
    assert_eq!(judge(&[&revoking, &clean, &future]), Some(ClientCertFault::Revoked));
    assert_eq!(judge(&[&clean, &future]), None);
    assert_eq!(judge(&[&future]), Some(ClientCertFault::NoCrl));
    // One that is on its own list, and one that may not sign lists.
    let last = self_signed(ca("last"));
    let mut mute = ca("mute");
    mute.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let mute = self_signed(mute);
    let mut below = leaf("below");
    below.serial_number = Some(SerialNumber::from(8));
    let judge =
        |root: &Made, crl: String| fault(&trusting(&[root], &[crl]), &[&root.sign(below.clone())]);
    assert_eq!(judge(&last, last.crl((2029, 2031), false)), None);
    assert_eq!(judge(&last, last.crl((2029, 2031), true)), Some(ClientCertFault::Revoked));
    let lists = Made { params: ca("mute"), ..mute };
    let crl = lists.crl((2029, 2031), false);
    assert_eq!(judge(&lists, crl), Some(ClientCertFault::BadCrlSignature));
}

#[test]
fn a_certificate_trusted_by_itself_needs_a_good_crl_if_there_are_crls() {
    let pinned = self_signed(leaf("pinned"));
    let (stranger, other) = (self_signed(leaf("pinned")), self_signed(ca("other")));
    let judge = |crl: String| fault(&trusting(&[&pinned], &[crl]), &[&pinned]);
    assert_eq!(judge(pinned.crl((2029, 2031), false)), None);
    assert_eq!(judge(pinned.crl((2029, 2031), true)), Some(ClientCertFault::Revoked));
    assert_eq!(judge(other.crl((2029, 2031), false)), Some(ClientCertFault::NoCrl));
    assert_eq!(judge(pinned.crl((2031, 2032), false)), Some(ClientCertFault::NoCrl));
    assert_eq!(judge(pinned.crl((2028, 2029), false)), Some(ClientCertFault::CrlExpired));
    assert_eq!(judge(stranger.crl((2029, 2031), false)), Some(ClientCertFault::BadCrlSignature));
}

#[test]
fn constraints_hold_for_names_in_subjects_too() {
    let permits = |subtree: GeneralSubtree| {
        let mut params = ca("bound");
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![subtree],
            excluded_subtrees: Vec::new(),
        });
        self_signed(params)
    };
    let mut mailed = leaf("x");
    mailed.distinguished_name.push(DnType::CustomDnType(MAIL.to_vec()), "x@a.test");
    let judge = |root: &Made, params: &CertificateParams| {
        fault(&trusting(&[root], &[]), &[&root.sign(params.clone())])
    };
    let mail = permits(GeneralSubtree::Rfc822Name("b.test".to_owned()));
    assert_eq!(judge(&mail, &mailed), Some(ClientCertFault::NotPermitted));
    assert_eq!(judge(&mail, &leaf("a.test")), None);
    let hosts = permits(GeneralSubtree::DnsName("b.test".to_owned()));
    assert_eq!(judge(&hosts, &mailed), None);
    assert_eq!(judge(&hosts, &leaf("Jane Doe")), None);
    assert_eq!(judge(&hosts, &leaf("a.test")), Some(ClientCertFault::NotPermitted));
    let mut proper = CertificateParams::new(vec!["x.b.test".to_owned()]).unwrap();
    proper.distinguished_name.push(DnType::CommonName, "a.test");
    assert_eq!(judge(&hosts, &proper), None);
    // A constraint in a client's chain applies to the certificates below as well.
    let root = self_signed(ca("root"));
    let mut params = ca("mid");
    params.name_constraints = mail.params.name_constraints;
    let mid = root.sign(params);
    let auth = trusting(&[&root], &[]);
    assert_eq!(fault(&auth, &[&mid.sign(mailed), &mid]), Some(ClientCertFault::NotPermitted));
}
