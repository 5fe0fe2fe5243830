//! Verdicts on chains that are made here. The comparison with nginx covers those that openssl can
//! make.

use std::time::Duration;

use bolide_base::client_cert::ClientCertFault;
use bolide_base::limits::{CLIENT_CERT_SIZE_MAX, CLIENT_CHAIN_MAX};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams,
    CustomExtension, DnType, DnValue, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, NameConstraints, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use rustls::pki_types::{CertificateDer, UnixTime};

use super::{ClientAuth, ClientAuthError, ClientAuthFile, ClientAuthFiles};
use crate::der::{BITS, INTEGER, SEQUENCE, element, inside, join, take};

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
    let told = fault(&auth, &[&silent.sign(leaf("x"))]);
    assert_eq!(told, Some(ClientCertFault::SignsNoCertificates));
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
    // The identifier of the key that signed it is all that tells it from a root.
    let mut named = ca("twin");
    named.use_authority_key_identifier_extension = true;
    let rolled = real.sign(named);
    let mut below = leaf("x");
    below.use_authority_key_identifier_extension = true;
    let client = rolled.sign(below);
    assert!(fault(&trusting(&[&rolled], &[]), &[&client]).is_some());
    assert!(fault(&trusting(&[&rolled], &[]), &[&rolled]).is_some());
    assert_eq!(fault(&trusting(&[&real, &rolled], &[]), &[&client]), None);
}

#[test]
fn what_a_client_sends_is_looked_at_within_bounds() {
    let root = self_signed(ca("root"));
    let auth = trusting(&[&root], &[]);
    let client = root.sign(leaf("x"));
    let others: Vec<_> = (0..=CLIENT_CHAIN_MAX).map(|_| self_signed(ca("twin"))).collect();
    let mut chain = vec![&client];
    chain.extend(&others[1..]);
    assert_eq!(fault(&auth, &chain), None);
    chain.push(&others[0]);
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
    assert_eq!(judge(&[&future]), Some(ClientCertFault::CrlNotYetValid));
    // A root that is on its own list, and one that may not sign lists.
    let last = self_signed(ca("last"));
    let mut mute = ca("mute");
    mute.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let mute = self_signed(mute);
    let mut below = leaf("below");
    below.serial_number = Some(SerialNumber::from(8));
    let judge =
        |root: &Made, crl: String| fault(&trusting(&[root], &[crl]), &[&root.sign(below.clone())]);
    assert_eq!(judge(&last, last.crl((2029, 2031), false)), None);
    assert_eq!(judge(&last, last.crl((2029, 2031), true)), None);
    let lists = Made { params: ca("mute"), ..mute };
    let crl = lists.crl((2029, 2031), false);
    assert_eq!(judge(&lists, crl), Some(ClientCertFault::SignsNoLists));
}

#[test]
fn a_root_needs_no_list_of_its_own_and_is_on_none() {
    let pinned = self_signed(leaf("pinned"));
    let (stranger, other) = (self_signed(leaf("pinned")), self_signed(ca("other")));
    let judge = |crl: String| fault(&trusting(&[&pinned], &[crl]), &[&pinned]);
    assert_eq!(judge(pinned.crl((2029, 2031), false)), None);
    assert_eq!(judge(pinned.crl((2029, 2031), true)), None);
    assert_eq!(judge(other.crl((2029, 2031), false)), None);
    // What a stranger's key signed says nothing about others, either.
    let root = self_signed(ca("root"));
    let client = root.sign(leaf("x"));
    let judge = |crl: String| fault(&trusting(&[&root], &[crl]), &[&client]);
    assert_eq!(judge(root.crl((2031, 2032), false)), Some(ClientCertFault::CrlNotYetValid));
    assert_eq!(judge(root.crl((2028, 2029), false)), Some(ClientCertFault::CrlExpired));
    // It names its signer's key, or not.
    let strange = Made { params: ca("root"), ..self_signed(ca("root")) };
    let strange_list = strange.crl((2029, 2031), false);
    assert_eq!(judge(strange_list.clone()), Some(ClientCertFault::NoCrl));
    assert_eq!(judge(list_1(&strange_list, &strange.key)), Some(ClientCertFault::BadCrlSignature));
    assert_eq!(judge(stranger.crl((2029, 2031), false)), Some(ClientCertFault::NoCrl));
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
    let address = DnValue::Ia5String("x@a.test".try_into().unwrap());
    let mut mailed = leaf("x");
    mailed.distinguished_name.push(DnType::CustomDnType(MAIL.to_vec()), address);
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

/// A signed value in DER with a body of the caller's, signed anew with `key`.
fn signed_again(der: &[u8], key: &KeyPair, body: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    use rcgen::SigningKey as _;
    let mut parts = inside(der);
    let signed = join(SEQUENCE, &[&body(take(&mut parts, SEQUENCE).unwrap())]);
    let algorithm = element(&mut parts).unwrap().0;
    let signature = [&[0], &key.sign(&signed).unwrap()[..]].concat();
    join(SEQUENCE, &[&signed, algorithm, &join(BITS, &[&signature])])
}

/// The same certificate in version 1: no version, no extensions.
fn version_1(cert: &CertificateDer<'_>, key: &KeyPair) -> CertificateDer<'static> {
    let body = |mut body: &[u8]| {
        element(&mut body).unwrap();
        (0..6).flat_map(|_| element(&mut body).unwrap().0.to_vec()).collect()
    };
    signed_again(cert, key, body).into()
}

/// The same list in version 1, in PEM.
fn list_1(pem: &str, key: &KeyPair) -> String {
    let body = |mut body: &[u8]| {
        take(&mut body, INTEGER).unwrap();
        let mut out = Vec::new();
        // Its algorithm, issuer, dates, and entries if there are any; never its extensions.
        while body.first().is_some_and(|tag| *tag != 0xa0) {
            out.extend_from_slice(element(&mut body).unwrap().0);
        }
        out
    };
    let der = pem::parse(pem).unwrap();
    let der = signed_again(der.contents(), key, body);
    pem::encode(&pem::Pem::new("X509 CRL", der))
}

fn pem_of(ders: &[&CertificateDer<'_>]) -> String {
    let one = |der: &&CertificateDer<'_>| pem::encode(&pem::Pem::new("CERTIFICATE", der.to_vec()));
    ders.iter().map(one).collect()
}

/// The fault of a chain in DER below these trusted ones, at this depth.
fn fault_of(
    trusted: &[&CertificateDer<'_>],
    crl: Option<&str>,
    depth: u32,
    chain: &[&CertificateDer<'_>],
) -> Option<ClientCertFault> {
    let pem = pem_of(trusted);
    let files = ClientAuthFiles {
        client: None,
        trusted: Some(pem.as_bytes()),
        crl: crl.map(str::as_bytes),
    };
    let auth = ClientAuth::new(&files, depth).unwrap();
    let chain: Vec<_> = chain.iter().map(|der| (*der).clone()).collect();
    auth.judge(&chain, UnixTime::since_unix_epoch(Duration::from_secs(NOW))).unwrap().fault
}

#[test]
fn the_version_of_a_certificate_says_nothing_by_itself() {
    let root = self_signed(ca("root"));
    let mid = root.sign(ca("mid"));
    let client = mid.sign(leaf("x"));
    let (root_1, mid_1) =
        (version_1(root.cert.der(), &root.key), version_1(mid.cert.der(), &root.key));
    let client_1 = version_1(client.cert.der(), &mid.key);
    let (root_3, mid_3, client_3) = (root.cert.der(), mid.cert.der(), client.cert.der());
    for root in [root_3, &root_1] {
        for client in [client_3, &client_1] {
            assert_eq!(fault_of(&[root, mid_3], None, 1, &[client]), None);
            assert_eq!(fault_of(&[root], None, 1, &[client, mid_3]), None);
            let told = fault_of(&[root, &mid_1], None, 1, &[client]);
            assert_eq!(told, Some(ClientCertFault::WrongPurpose));
        }
        // A root that a client shows itself is good at any depth.
        assert_eq!(fault_of(&[root], None, 0, &[root]), None);
        assert_eq!(fault_of(&[root], None, 0, &[mid_3]), None);
    }
    let lone = version_1(self_signed(leaf("lone")).cert.der(), &root.key);
    assert!(fault_of(&[root_3], None, 1, &[&lone]).is_some());
}

#[test]
fn an_authority_is_a_good_leaf_and_the_depth_counts_what_lies_between() {
    let root = self_signed(ca("root"));
    let mid = root.sign(ca("mid"));
    let mut signing = ca("leaf");
    signing.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    let last = mid.sign(signing);
    let (root, mid, last) = (root.cert.der(), mid.cert.der(), last.cert.der());
    for depth in [1, 2] {
        assert_eq!(fault_of(&[root, mid], None, depth, &[last]), None);
    }
    assert_eq!(fault_of(&[root, mid], None, 0, &[mid]), None);
    assert!(fault_of(&[root, mid], None, 0, &[last]).is_some());
    // What is in the files and did not sign itself leads to a root, and is none.
    assert_eq!(fault_of(&[mid], None, 2, &[last]), Some(ClientCertFault::NoIssuer));
    assert!(fault_of(&[mid], None, 2, &[mid]).is_some());
}

#[test]
fn a_leaf_has_the_usages_that_its_extensions_name() {
    let root = self_signed(ca("root"));
    let judge = |change: &dyn Fn(&mut CertificateParams)| {
        let mut params = leaf("x");
        change(&mut params);
        fault_of(&[root.cert.der()], None, 1, &[root.sign(params).cert.der()])
    };
    use ExtendedKeyUsagePurpose::{Any, ClientAuth as Client, ServerAuth};
    use KeyUsagePurpose::{DigitalSignature, KeyAgreement, KeyCertSign, KeyEncipherment};
    for (usages, is_good) in [
        (vec![Client], true),
        (vec![ServerAuth, Client], true),
        (vec![ServerAuth], false),
        (vec![Any], false),
    ] {
        let told = judge(&|params| params.extended_key_usages = usages.clone());
        assert_eq!(told.is_none(), is_good, "{usages:?}");
    }
    for (usages, is_good) in [
        (vec![DigitalSignature], true),
        (vec![KeyAgreement], true),
        (vec![KeyCertSign], false),
        (vec![KeyEncipherment], false),
    ] {
        let told = judge(&|params| params.key_usages = usages.clone());
        assert_eq!(told.is_none(), is_good, "{usages:?}");
    }
}

#[test]
fn lists_of_every_version_count_for_every_certificate_and_the_last_fault_is_told() {
    // Serial number 7 is on those lists that revoke.
    let numbered = |mut params: CertificateParams, number: u64| {
        params.serial_number = Some(SerialNumber::from(number));
        params
    };
    let root = self_signed(numbered(ca("root"), 1));
    let mid = root.sign(ca("mid"));
    let client = mid.sign(numbered(leaf("x"), 9));
    let files = [root.cert.der(), mid.cert.der()];
    let years = (2029, 2031);
    for old in [false, true] {
        let list = |made: &Made, revokes| {
            let pem = made.crl(years, revokes);
            if old { list_1(&pem, &made.key) } else { pem }
        };
        let judge = |lists: &[String], chain: &Made| {
            fault_of(
                &files,
                Some(&format!("text\n{}", lists.join("between\n"))),
                2,
                &[chain.cert.der()],
            )
        };
        let clean = list(&root, false);
        assert_eq!(judge(std::slice::from_ref(&clean), &mid), None);
        assert_eq!(judge(std::slice::from_ref(&clean), &client), Some(ClientCertFault::NoCrl));
        assert_eq!(judge(&[list(&mid, false), clean], &client), None);
        let revoking = [list(&root, true)];
        assert_eq!(judge(&revoking, &mid), Some(ClientCertFault::Revoked));
        assert_eq!(judge(&revoking, &client), Some(ClientCertFault::Revoked));
    }
}

#[test]
fn a_file_without_a_section_is_told_from_a_malformed_one() {
    let root = self_signed(ca("root")).cert.pem();
    let broken = "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n";
    for (crl, fault) in [
        ("text", ClientAuthError::Empty(ClientAuthFile::Crl)),
        (&root, ClientAuthError::Empty(ClientAuthFile::Crl)),
        (broken, ClientAuthError::Malformed(ClientAuthFile::Crl)),
    ] {
        let files = ClientAuthFiles {
            client: Some(root.as_bytes()),
            trusted: None,
            crl: Some(crl.as_bytes()),
        };
        assert_eq!(ClientAuth::new(&files, 1).err(), Some(fault));
    }
}
