//! Certificates that are kept and in use, from here and from elsewhere.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use x509_parser::time::ASN1Time;

use super::{AcmeService, AcmeSetting, kept};
use crate::certificate;
use crate::host::{AcmeHost, AcmeLogLevel, Challenge};
use crate::local;
use crate::plan::{
    AccountKey, AcmeAuthority, AcmeIssuer, AcmeOrder, AcmePlan, CertificateKey, ChallengeKind,
    OrderId,
};
use crate::schedule::Validity;
use crate::state::{AcmeStore, file_stem};

struct Quiet;

impl AcmeHost for Quiet {
    fn present(&self, _: &Challenge) {}
    fn withdraw(&self, _: &Challenge) {}
    fn install(&self, _: &OrderId, _: &[u8], _: &[u8]) -> Result<(), String> {
        Ok(())
    }
    fn log(&self, _: AcmeLogLevel, _: &str) {}
}

fn issuer(state_path: std::path::PathBuf) -> AcmeIssuer {
    AcmeIssuer {
        name: "ca".to_owned(),
        authority: AcmeAuthority::Remote,
        uri: "https://ca.test/".to_owned(),
        account_key: AccountKey::Generated(CertificateKey::EcdsaP256),
        contacts: Vec::new(),
        challenge: ChallengeKind::Http01,
        external_account: None,
        preferred_chain: None,
        profile: None,
        trusted: None,
        verify: true,
        state_path: Some(state_path),
        accepts_terms: true,
    }
}

/// A certificate that is its own issuer, and its key.
fn issued(name: &str, life: Validity) -> (String, String) {
    let time = |seconds: u64| {
        ASN1Time::from_timestamp(i64::try_from(seconds).unwrap()).unwrap().to_datetime()
    };
    let key = certificate::new_key(CertificateKey::EcdsaP256).unwrap();
    let mut params = certificate::params(&[name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (time(life.from), time(life.until));
    let made = params.self_signed(&rcgen::KeyPair::from_pem(&key).unwrap()).unwrap();
    (made.pem(), key)
}

#[test]
fn a_certificate_of_another_server_is_taken_over_if_it_fits_and_is_newer() {
    let order = |name: &str| AcmeOrder {
        id: OrderId("a".to_owned()),
        issuers: vec![0],
        names: vec![name.to_owned()],
        key: CertificateKey::EcdsaP256,
    };
    let issuer = issuer(bolide_testkit::site::temp_dir().join("state"));
    let plan =
        AcmePlan { issuers: vec![issuer], orders: vec![order("a.test")], demands: Vec::new() };
    let (service, _run) = AcmeService::detached(Arc::new(Quiet), AcmeSetting::default());
    service.settle(plan.clone());
    let now = (AcmeSetting::default().clock)().unix;
    let made = |name: &str, days: u64, now: u64| {
        issued(name, Validity { from: now, until: now + days * 24 * 3600 })
    };
    let take = |one: &(String, String)| {
        service.keeper().take_over(&plan.orders[0].id, one.0.as_bytes(), &one.1)
    };
    // The new one ends before the old one, which may have been revoked.
    let (old, new) = (made("a.test", 9, now - 24 * 3600), made("a.test", 5, now));
    assert_eq!(take(&old), Ok(true));
    assert_eq!(take(&old), Ok(false), "it is there");
    assert_eq!(take(&new), Ok(true));
    assert_eq!(take(&old), Ok(false), "an old one is not put back");
    // Whatever comes at once, the newest stays.
    std::thread::scope(|scope| {
        for one in [&old, &new] {
            scope.spawn(move || (0..20).for_each(|_| assert!(take(one).is_ok())));
        }
    });
    let lines = |pem: &str| pem.replace('\r', "").trim().to_owned();
    let is_new =
        |kept: super::KeptCertificate| lines(&String::from_utf8_lossy(&kept.key)) == lines(&new.1);
    assert!(kept(&plan, &plan.orders[0]).is_some_and(is_new));
    let other = made("b.test", 20, now);
    assert!(take(&other).is_err(), "of another name");
    let mixed = service.keeper().take_over(&plan.orders[0].id, new.0.as_bytes(), &other.1);
    assert!(mixed.is_err(), "of another key");
    assert!(take(&made("a.test", 5, now - 50 * 24 * 3600)).is_err(), "it has expired");
    // An authority of this server helps out.
    let (store, life) = (AcmeStore::new(None), Duration::from_secs(3600));
    let own = local::issue(&store, &plan.orders[0], life, now + 200).unwrap().issued;
    let store = service.shared.store(&plan.issuers[0]);
    let name = format!("{}.pem", file_stem("a"));
    store.write(&name, &certificate::bundle(own.chain.as_bytes(), &own.key)).unwrap();
    assert_eq!(take(&new), Ok(true));
    let unknown = OrderId("unknown".to_owned());
    let taken = service.keeper().take_over(&unknown, other.0.as_bytes(), &other.1);
    assert_eq!(taken, Ok(false));
}

/// A server that is slow to use the first certificate.
#[derive(Default)]
struct Slow {
    began: Mutex<usize>,
    used: Mutex<Vec<Vec<u8>>>,
}

impl AcmeHost for Slow {
    fn present(&self, _: &Challenge) {}
    fn withdraw(&self, _: &Challenge) {}
    fn install(&self, _: &OrderId, chain: &[u8], _: &[u8]) -> Result<(), String> {
        let mut began = self.began.lock().unwrap();
        *began += 1;
        let is_slow = *began == 1;
        drop(began);
        if is_slow {
            bolide_testkit::pause(200);
        }
        self.used.lock().unwrap().push(chain.to_vec());
        Ok(())
    }
    fn log(&self, _: AcmeLogLevel, _: &str) {}
}

#[test]
fn a_plan_puts_no_older_certificate_back_into_use() {
    let issuer = issuer(bolide_testkit::site::temp_dir().join("state"));
    let order = AcmeOrder {
        id: OrderId("a".to_owned()),
        issuers: vec![0],
        names: vec!["a.test".to_owned()],
        key: CertificateKey::EcdsaP256,
    };
    let store = AcmeStore::new(issuer.state_path.as_deref());
    let plan = AcmePlan { issuers: vec![issuer], orders: vec![order], demands: Vec::new() };
    let now = (AcmeSetting::default().clock)().unix;
    let made = |from: u64| issued("a.test", Validity { from, until: now + 7200 });
    let (old, new) = (made(now - 3600), made(now));
    let name = format!("{}.pem", file_stem("a"));
    store.write(&name, &certificate::bundle(old.0.as_bytes(), &old.1)).unwrap();
    let host = Arc::new(Slow::default());
    let (service, _run) = AcmeService::detached(host.clone(), AcmeSetting::default());
    let id = &plan.orders[0].id;
    let take = |one: &(String, String)| service.keeper().take_over(id, one.0.as_bytes(), &one.1);
    let used = || host.used.lock().unwrap().clone();
    service.settle(plan.clone());
    host.used.lock().unwrap().clear();
    // It comes while the old one, which was read of the file, is put into use.
    *host.began.lock().unwrap() = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| service.settle(plan.clone()));
        bolide_testkit::wait_until("the old one", || *host.began.lock().unwrap() > 0);
        assert_eq!(take(&new), Ok(true));
    });
    let blocks = |one: &(String, String)| certificate::leaf(one.0.as_bytes());
    let last = used().last().and_then(|chain| certificate::leaf(chain));
    assert_eq!(last, blocks(&new));
    // What is kept already is put into use again: it may not be.
    let before = used().len();
    assert_eq!(take(&new), Ok(false));
    assert_eq!(used().len(), before + 1);
    assert_eq!(take(&old), Ok(false));
    assert_eq!(used().len(), before + 1);
}
