//! With Pebble: validations, renewals, refusals, many names.

use std::os::unix::fs::MetadataExt;

use bolide_acme::{AcmeLogLevel, AcmeService, CertificateKey, ChallengeKind, kept};
use bolide_testkit::{Pebble, PebbleOptions, run, wait_until};

use crate::host::{
    TestClock, TestHost, check_installed, issuer, order, plan, says, start, state_dir,
};

fn options(host: &TestHost) -> PebbleOptions {
    PebbleOptions::validating(host.ports.port(0), host.ports.port(1))
}

#[test]
fn http_01_with_half_of_the_nonces_rejected() {
    let host = TestHost::start();
    let pebble = Pebble::start(PebbleOptions { bad_nonces: 50, ..options(&host) });
    let dir = state_dir();
    let wanted = order(&["a.example", "b.example"]);
    let service = start(&host, TestClock::default().setting());
    let plan = plan(issuer(&pebble, Some(dir.clone())), vec![wanted.clone()]);
    service.settle(plan.clone());
    wait_until("a certificate", || host.count() == 1);
    check_installed(&host, &wanted, Some(&pebble.root(0)));
    wait_until("the report", || says(&service, |report| report.expires.is_some()));
    let report = service.report().remove(0);
    assert_eq!((report.failures, report.last_error), (0, None), "{}", host.log_text());
    let (chain, key) = host.installed(&wanted.id).unwrap();
    let found = kept(&plan, &wanted).unwrap();
    assert!(found.chain == chain && found.key == key);
    assert_eq!(std::fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", entry.path());
        assert!(!entry.path().to_string_lossy().ends_with(".pending"), "{:?}", entry.path());
    }
}

#[test]
fn tls_alpn_01_and_every_kind_of_key() {
    let host = TestHost::start();
    let pebble = Pebble::start(options(&host));
    let kinds = [
        CertificateKey::EcdsaP384,
        CertificateKey::EcdsaP521,
        CertificateKey::Rsa2048,
        CertificateKey::Rsa3072,
    ];
    let orders: Vec<_> = (kinds.into_iter().enumerate())
        .map(|(n, key)| {
            let name = format!("k{n}.example");
            bolide_acme::AcmeOrder { key, ..order(&[&name]) }
        })
        .collect();
    let mut issuer = issuer(&pebble, Some(state_dir()));
    issuer.challenge = ChallengeKind::TlsAlpn01;
    let service = start(&host, TestClock::default().setting());
    service.settle(plan(issuer, orders.clone()));
    wait_until("certificates", || host.count() == orders.len());
    for order in &orders {
        check_installed(&host, order, Some(&pebble.root(0)));
    }
    assert_eq!(host.log_text().matches("Error").count(), 0, "{}", host.log_text());
}

#[test]
fn a_failed_validation_is_told_and_tried_again_after_a_pause() {
    let host = TestHost::start();
    let pebble = Pebble::start(options(&host));
    let clock = TestClock::default();
    host.state().wrong.insert("bad.example".to_owned());
    let (bad, good) = (order(&["bad.example"]), order(&["good.example"]));
    let service = start(&host, clock.setting());
    service.settle(plan(issuer(&pebble, Some(state_dir())), vec![bad.clone(), good.clone()]));
    wait_until("the other certificate", || host.installed(&good.id).is_some());
    wait_until("a failure", || says(&service, |report| report.failures == 1));
    let report = service.report().remove(0);
    let why = report.last_error.unwrap();
    assert!(why.contains("bad.example") && why.contains("unauthorized"), "{why}");
    let is_loud = |(level, text): &(AcmeLogLevel, String)| {
        *level == AcmeLogLevel::Error && text.contains("there is no certificate")
    };
    assert!(host.state().log.iter().any(is_loud), "{}", host.log_text());
    assert!(host.installed(&bad.id).is_none());
    // Hours of failures: five of them an hour, and no more.
    clock.forward(3600);
    wait_until("a second failure", || says(&service, |report| report.failures >= 2));
    host.state().wrong.clear();
    clock.forward(6 * 3600);
    wait_until("the certificate", || host.installed(&bad.id).is_some());
    check_installed(&host, &bad, Some(&pebble.root(0)));
    wait_until("the report", || says(&service, |report| report.failures == 0));
}

#[test]
fn renewal_comes_after_two_thirds_and_an_issuer_that_is_down_changes_nothing() {
    let host = TestHost::start();
    let mut pebble = Pebble::start(options(&host));
    let clock = TestClock::default();
    let wanted = order(&["a.example"]);
    let plan = plan(issuer(&pebble, Some(state_dir())), vec![wanted.clone()]);
    let service = start(&host, clock.setting());
    service.settle(plan.clone());
    wait_until("a certificate", || host.count() == 1);
    wait_until("the report", || says(&service, |report| !report.is_ordering));
    let day = 24 * 3600;
    clock.forward(56 * day);
    wait_until("the next look", || says(&service, |report| report.next_attempt > 0));
    assert_eq!(host.count(), 1);
    pebble.kill();
    clock.forward(5 * day);
    wait_until("a failure", || says(&service, |report| report.failures > 0));
    assert_eq!(host.count(), 1);
    let is_told = |(_, text): &(AcmeLogLevel, String)| text.contains("in use expires in");
    assert!(host.state().log.iter().any(is_told), "{}", host.log_text());
    // A restart begins with the kept certificate, before anything is asked.
    drop(service);
    let service = start(&host, clock.setting());
    service.settle(plan);
    assert_eq!(host.count(), 2);
    // The issuer is back, and has forgotten the account.
    pebble.restart();
    clock.forward(day);
    wait_until("the account to be found unknown", || {
        host.log_text().contains("accountDoesNotExist")
    });
    clock.forward(day);
    wait_until("a new certificate", || host.count() == 3);
    check_installed(&host, &wanted, Some(&pebble.root(0)));
}

#[test]
fn a_thousand_names() {
    let _alone = crate::HEAVY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let host = TestHost::start();
    let pebble = Pebble::start(options(&host));
    let orders: Vec<_> = (0..10)
        .map(|n| {
            let names: Vec<String> = (0..100).map(|m| format!("h{m}.s{n}.example")).collect();
            order(&names.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .collect();
    let service = start(&host, TestClock::default().setting());
    service.settle(plan(issuer(&pebble, Some(state_dir())), orders.clone()));
    for n in 1..=10 {
        wait_until("one more certificate", || {
            let log = host.log_text();
            assert!(!log.contains("Error") && !log.contains("Warn"), "{log}");
            host.count() >= n
        });
    }
    for order in &orders {
        check_installed(&host, order, None);
    }
    assert!(host.state().presented_most <= 500, "five orders at a time");
    assert_eq!(host.log_text().matches("Error").count(), 0, "{}", host.log_text());
}

#[test]
fn an_issuer_moves_a_renewal_and_a_restart_remembers_it() {
    let host = TestHost::start();
    let pebble = Pebble::start(options(&host));
    let clock = TestClock::default();
    let wanted = order(&["a.example"]);
    let plan = plan(issuer(&pebble, Some(state_dir())), vec![wanted.clone()]);
    let service = start(&host, clock.setting());
    service.settle(plan.clone());
    wait_until("a certificate", || host.count() == 1);
    let (chain, _) = host.installed(&wanted.id).unwrap();
    let chain = String::from_utf8(chain).unwrap();
    let end = "-----END CERTIFICATE-----\n";
    let leaf = format!("{}{end}", chain.split(end).next().unwrap());
    let next =
        |service: &AcmeService| service.report().first().map_or(0, |report| report.next_attempt);
    let now = || (clock.setting().clock)().unix;
    let day = 24 * 3600;
    wait_until("the usual time", || next(&service) > now() + 50 * day);
    let (from, until) = (now() + 10 * day, now() + 11 * day);
    let said = |time: u64| run("date", ["-u", &format!("-d@{time}"), "+%Y-%m-%dT%H:%M:%SZ"]).text();
    let json = format!(
        "{{\"suggestedWindow\":{{\"start\":\"{}\",\"end\":\"{}\"}},\
         \"explanationURL\":\"https://a.example/why\"}}",
        said(from).trim(),
        said(until).trim()
    );
    pebble.suggest_renewal(&leaf, &json);
    clock.forward(2 * day);
    wait_until("the time that the issuer wants", || (from..until).contains(&next(&service)));
    let told = host.log_text();
    assert!(told.contains("its issuer wants it renewed in") && told.contains("/why"), "{told}");
    let before = next(&service);
    drop(service);
    let service = start(&host, clock.setting());
    service.settle(plan);
    wait_until("the same time", || next(&service) == before);
    assert_eq!(host.count(), 2, "it is installed anew, and not ordered");
    clock.forward(9 * day);
    wait_until("another certificate", || host.count() == 3);
    assert_ne!(host.installed(&wanted.id).unwrap().0, chain.into_bytes());
    check_installed(&host, &wanted, Some(&pebble.root(0)));
}

#[test]
fn an_account_whose_key_is_a_file_keeps_it_and_an_unknown_issuer_is_told() {
    let host = TestHost::start();
    let pebble = Pebble::start(options(&host));
    let mut issuer = issuer(&pebble, Some(state_dir()));
    issuer.account_key = bolide_acme::AccountKey::File("/nowhere/own.key".into());
    let setting = TestClock::default().setting();
    let service = start(&host, setting.clone());
    service.settle(plan(issuer, Vec::new()));
    let told = |name: &str| setting.inbox.roll_over(name).recv().unwrap().unwrap_err();
    // The plan may still be on its way to the thread.
    wait_until("the plan", || told("pebble") != "no issuer \"pebble\" is in use");
    assert_eq!(told("pebble"), "the key of the account is the file \"/nowhere/own.key\"");
    assert_eq!(told("other"), "no issuer \"other\" is in use");
}

/// The only copy of a key that the issuer knows is not given up for one that it does not know, and
/// never without a copy.
#[test]
fn an_account_of_another_server_is_used_if_the_issuer_knows_it() {
    let host = TestHost::start();
    let pebble = Pebble::start(options(&host));
    let state = state_dir();
    let issuer = issuer(&pebble, Some(state.clone()));
    let orders = [order(&["a.example"]), order(&["b.example"]), order(&["c.example"])];
    let setting = TestClock::default().setting();
    let service = start(&host, setting.clone());
    let settle = |count: usize| {
        service.settle(plan(issuer.clone(), orders[..count].to_vec()));
        wait_until("a certificate", || host.installed(&orders[count - 1].id).is_some());
        wait_until("the report", || says(&service, |report| !report.is_ordering));
    };
    let files = |end: &str| -> Vec<Vec<u8>> {
        let all = std::fs::read_dir(&state).unwrap().flatten().map(|entry| entry.path());
        let is_one = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("account-") && name.ends_with(end)
        };
        all.filter(is_one).map(|path| std::fs::read(path).unwrap()).collect()
    };
    settle(1);
    let first = files(".json");
    setting.inbox.roll_over("pebble").recv().unwrap().unwrap();
    let second = files(".json");
    assert_ne!(first, second);
    // Another server has still the key from before.
    host.state().common = Some(first[0].clone());
    settle(2);
    assert_eq!(files(".json"), second, "{}", host.log_text());
    assert_eq!(host.state().over, first);
    // It has an account of its own, which the issuer knows as well.
    let text = serde_json::from_slice::<serde_json::Value>(&second[0]).unwrap().to_string();
    host.state().common = Some(format!("{text} ").into_bytes());
    settle(3);
    assert_eq!(files(".json"), [format!("{text} ").into_bytes()]);
    assert_eq!(files(".old"), second);
}
