//! Certificates that Pebble issued and that are revoked, as a responder or a list says.

use std::path::Path;
use std::sync::Arc;

use bolide_acme::certificate::bundle;
use bolide_acme::state::file_stem;
use bolide_acme::{AcmeLogLevel, AcmeOrder, AcmeService};
use bolide_testkit::{Pebble, PebbleOptions, RevocationFault, RevocationServer, run, wait_until};

use crate::host::{TestClock, TestHost, issuer, order, plan, says, start, state_dir};

const HALF_A_DAY: u64 = 12 * 3600;

struct Scene {
    host: Arc<TestHost>,
    pebble: Pebble,
    statuses: RevocationServer,
    clock: TestClock,
    order: AcmeOrder,
    state: std::path::PathBuf,
}

impl Scene {
    fn new() -> Self {
        let (host, statuses) = (TestHost::start(), RevocationServer::start());
        let mut options = PebbleOptions::validating(host.ports.port(0), host.ports.port(1));
        options.responder = Some(statuses.url());
        let pebble = Pebble::start(options);
        statuses.sign_as(&pebble.authority());
        let (clock, order) = (TestClock::default(), order(&["a.example"]));
        Self { host, pebble, statuses, clock, order, state: state_dir() }
    }

    fn start(&self) -> AcmeService {
        let service = start(&self.host, self.clock.setting());
        let issuer = issuer(&self.pebble, Some(self.state.clone()));
        service.settle(plan(issuer, vec![self.order.clone()]));
        service
    }

    /// The serial number of the certificate in use.
    fn serial(&self) -> String {
        let (chain, _) = self.host.installed(&self.order.id).expect("a certificate");
        let block = pem::parse(chain).unwrap();
        let (_, leaf) = x509_parser::parse_x509_certificate(block.contents()).unwrap();
        let serial = leaf.raw_serial();
        let serial = serial.iter().skip_while(|byte| **byte == 0);
        serial.map(|byte| format!("{byte:02X}")).collect()
    }

    fn key(&self) -> Vec<u8> {
        self.host.installed(&self.order.id).expect("a certificate").1
    }

    /// How many log lines of this level contain a text.
    fn lines(&self, level: AcmeLogLevel, text: &str) -> usize {
        let state = self.host.state();
        state.log.iter().filter(|(known, line)| *known == level && line.contains(text)).count()
    }

    fn wait_asked(&self, times: usize) {
        wait_until("questions", || self.statuses.asked() >= times);
    }

    /// Sets the clock forward until there was another question, more than once if the last answer
    /// was still under way.
    fn later(&self) {
        let before = self.statuses.asked();
        for _ in 0..20 {
            self.clock.forward(HALF_A_DAY);
            for _ in 0..100 {
                if self.statuses.asked() > before {
                    return;
                }
                bolide_testkit::pause(30);
            }
        }
        panic!("no question in ten days");
    }

    /// Stores a certificate of another authority, which names the list, as that in use.
    fn store_listed(&self) {
        let dir = bolide_testkit::site::temp_dir();
        let args = ["-ec", LISTED, "sh", dir.to_str().unwrap(), &self.statuses.list_url()];
        let _quiet = run("sh", args).succeeded();
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
        self.statuses.sign_as(&(read("ca.pem"), read("ca.key")));
        let content = bundle((read("leaf.pem") + &read("ca.pem")).as_bytes(), &read("leaf.key"));
        let _quiet = run("mkdir", ["-m", "700", self.state.to_str().unwrap()]).succeeded();
        let name = format!("{}.pem", file_stem(&self.order.id.0));
        std::fs::write(self.state.join(name), content).unwrap();
    }
}

/// An authority, and a certificate of it for `a.example`.
const LISTED: &str = "cd \"$1\"
    new='-nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1'
    openssl req -x509 $new -days 90 -subj '/CN=authority of lists' -keyout ca.key -out ca.pem
    openssl req $new -subj /CN=a.example -keyout leaf.key -out leaf.csr
    printf 'subjectAltName=DNS:a.example\\ncrlDistributionPoints=URI:%s\\n' \"$2\" >ext
    openssl x509 -req -days 90 -in leaf.csr -CA ca.pem -CAkey ca.key -set_serial 0xFF0102 \\
        -extfile ext -out leaf.pem";

#[test]
fn a_revoked_certificate_is_replaced_by_one_with_another_key() {
    let scene = Scene::new();
    let service = scene.start();
    wait_until("a certificate", || scene.host.count() == 1);
    scene.wait_asked(1);
    let (first, key) = (scene.serial(), scene.key());
    scene.later();
    assert_eq!(scene.host.count(), 1, "it is good");
    scene.statuses.revoke(&first, "keyCompromise");
    scene.later();
    wait_until("another certificate", || scene.host.count() == 2);
    assert!(scene.serial() != first && scene.key() != key);
    let text = format!(
        "its issuer revoked the certificate in use (serial number {}, keyCompromise, since Sun, \
         01 Nov 2026",
        first.to_lowercase()
    );
    assert_eq!(scene.lines(AcmeLogLevel::Alert, &text), 1, "{}", scene.host.log_text());
    wait_until("the report", || says(&service, |report| report.revoked.is_none()));
    // The new one is asked about, and is good.
    scene.wait_asked(4);
    scene.later();
    assert_eq!(scene.host.count(), 2);
    assert_eq!(scene.lines(AcmeLogLevel::Warn, ""), 0, "{}", scene.host.log_text());
}

#[test]
fn an_issuer_whose_responder_revokes_all_gets_no_order_after_the_other() {
    let scene = Scene::new();
    scene.statuses.misbehave(Some(RevocationFault::All));
    let service = scene.start();
    // The first one is replaced at once, the second one an hour later.
    wait_until("two alerts", || scene.lines(AcmeLogLevel::Alert, "ordered") == 2);
    assert_eq!(scene.host.count(), 2);
    wait_until("the report", || says(&service, |report| report.revoked.is_some()));
    let again = format!("which is ordered in {} s", 3600);
    let soon = |n: u64| scene.lines(AcmeLogLevel::Alert, &format!("ordered in {} s", 3600 - n));
    assert_eq!(scene.lines(AcmeLogLevel::Alert, &again) + soon(1), 1, "{}", scene.host.log_text());
    // A restart does not forget it: neither the revocation nor the pause.
    drop(service);
    let service = scene.start();
    wait_until("the alert again", || scene.lines(AcmeLogLevel::Alert, "ordered in") == 2);
    bolide_testkit::pause(500);
    let installed: std::collections::BTreeSet<_> = {
        let state = scene.host.state();
        state.installed.iter().map(|(_, chain, _)| chain.clone()).collect()
    };
    assert_eq!(installed.len(), 2);
    scene.clock.forward(3700);
    wait_until("a third alert", || scene.lines(AcmeLogLevel::Alert, "in 7200 s") == 1);
    drop(service);
}

#[test]
fn a_certificate_in_a_list_is_replaced() {
    let scene = Scene::new();
    scene.store_listed();
    let service = scene.start();
    scene.wait_asked(1);
    wait_until("the report", || says(&service, |report| report.expires.is_some()));
    let first = scene.serial();
    assert_eq!(first, "FF0102");
    scene.statuses.revoke(&first, "superseded");
    // An hour is too early, half a day is not.
    scene.clock.forward(3600);
    bolide_testkit::pause(300);
    assert_eq!(scene.statuses.asked(), 1);
    scene.later();
    wait_until("another certificate", || scene.serial() != first);
    let text = "(serial number ff0102, superseded, since Sun, 01 Nov 2026";
    assert_eq!(scene.lines(AcmeLogLevel::Alert, text), 1, "{}", scene.host.log_text());
}

#[test]
fn a_hostile_responder_or_list_changes_nothing_and_is_logged_once() {
    use RevocationFault::{Garbage, Huge, OtherKey, Redirect, Slow, Stale};
    let all = [
        (Garbage, false, "d2i_OCSP_RESPONSE() failed"),
        (Huge, false, "the response broke off"),
        (Redirect, false, "status 302"),
        (OtherKey, false, "OCSP_basic_verify() failed"),
        (Garbage, true, "it is no revocation list"),
        (Huge, true, "the response broke off"),
        (Redirect, true, "status 302"),
        (OtherKey, true, "not signed by the issuer"),
        (Stale, true, "is not current"),
        (Slow, false, "no complete response in time"),
    ];
    // Beside each other, as one waits for a limit of time.
    std::thread::scope(|scope| {
        for (fault, is_list, why) in all {
            scope.spawn(move || {
                let scene = Scene::new();
                if is_list {
                    scene.store_listed();
                    scene.statuses.revoke("FF0102", "keyCompromise");
                }
                scene.statuses.misbehave(Some(fault));
                let service = scene.start();
                let lines = || scene.lines(AcmeLogLevel::Warn, "does not tell whether");
                wait_until(why, || lines() == 1);
                assert_eq!(scene.lines(AcmeLogLevel::Warn, why), 1, "{}", scene.host.log_text());
                let serial = scene.serial();
                scene.clock.forward(60);
                let before = scene.statuses.asked();
                scene.wait_asked(before + 1);
                drop(service);
                assert_eq!((lines(), scene.serial()), (1, serial), "{fault:?}");
            });
        }
    });
}

#[test]
fn the_state_of_a_revoked_certificate_is_in_its_file() {
    let scene = Scene::new();
    scene.store_listed();
    scene.statuses.revoke("FF0102", "keyCompromise");
    // The issuer refuses: the revoked one stays, loudly.
    scene.host.state().wrong.insert("a.example".to_owned());
    let service = scene.start();
    wait_until("a failed order", || {
        scene.lines(AcmeLogLevel::Error, "the certificate in use is revoked; next try in") >= 1
    });
    let file = format!("{}.state", file_stem(&scene.order.id.0));
    let state = std::fs::read_to_string(Path::new(&scene.state).join(file)).unwrap();
    assert!(state.lines().any(|line| line.starts_with("revoked ff0102 1 ")), "{state}");
    let revoked = |report: &bolide_acme::AcmeOrderReport| {
        let revoked = report.revoked.as_ref();
        revoked.is_some_and(|revoked| revoked.revocation.reason_words() == "keyCompromise")
    };
    wait_until("the report", || says(&service, revoked));
    assert_eq!(scene.serial(), "FF0102");
    assert_eq!(scene.lines(AcmeLogLevel::Alert, ""), 1, "{}", scene.host.log_text());
}
