//! Certificates from an issuer whose status others tell: stapled responses, and revocations.

use std::fs;
use std::path::Path;

use bolide_testkit::pebble::{Pebble, PebbleOptions};
use bolide_testkit::server::Home;
use bolide_testkit::{RevocationServer, TestServer, run, wait_until};

use crate::BOLIDE;
use crate::acme::{conf, issuer, root, serial, wait_served};

/// A server's directory, an issuer, and the responder that its certificates name.
fn scene(change: impl FnOnce(&mut PebbleOptions)) -> (Home, Pebble, RevocationServer) {
    let (home, responder) = (Home::new(BOLIDE), RevocationServer::start());
    let mut options = PebbleOptions::validating(home.port(0), home.port(1));
    options.responder = Some(responder.url());
    change(&mut options);
    let is_named = options.responder.is_some();
    let pebble = Pebble::start(options);
    if is_named {
        responder.sign_as(&pebble.authority());
    }
    (home, pebble, responder)
}

/// What `openssl s_client -status` says of the stapled response: the serial number and the status
/// in it; `None` without one.
fn stapled(server: &TestServer, name: &str) -> Option<(String, String)> {
    let script = format!(
        "openssl s_client -connect {} -servername {name} -status </dev/null 2>&1 || true",
        server.https()
    );
    let seen = run("sh", ["-c", &script]).text();
    let value = |word: &str| {
        let line = seen.lines().find_map(|line| line.trim().strip_prefix(word));
        line.map(|value| value.trim().to_owned())
    };
    Some((value("Serial Number:")?, value("Cert Status:")?))
}

/// The serial number of the certificate for `name`.
fn number(server: &TestServer, name: &str) -> String {
    serial(server, name).trim_start_matches("serial=").to_owned()
}

#[test]
fn an_ordered_certificate_is_stapled_and_so_is_the_next_one() {
    let (home, pebble, _responder) = scene(|options| {
        options.profiles = vec![("default".into(), 15)];
    });
    let text = conf(&issuer(&pebble, ""), "a.test", "ssl_stapling on;");
    let text = text.replacen(
        "http {",
        "http { server { listen 127.0.0.1:@HTTPS@ ssl; server_name b.test; acme_certificate ca \
         a.test; ssl_certificate $acme_certificate; \
         ssl_certificate_key $acme_certificate_key; }",
        1,
    );
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let is_stapled = || {
        let served = number(&server, "a.test");
        let found = stapled(&server, "a.test");
        // It may have been renewed in between.
        found == Some((served.clone(), "good".to_owned())) && number(&server, "a.test") == served
    };
    wait_until("its response", is_stapled);
    let first = number(&server, "a.test");
    // Another server with the same certificate does not staple it.
    assert_eq!(stapled(&server, "b.test"), None);
    wait_until("another certificate", || {
        bolide_testkit::pause(300);
        number(&server, "a.test") != first
    });
    wait_until("its response", is_stapled);
}

#[test]
fn a_restored_certificate_is_stapled_and_so_is_one_after_a_reload() {
    let (home, mut pebble, responder) = scene(|_| {});
    let text = conf(&issuer(&pebble, ""), "a.test", "ssl_stapling on;");
    let mut server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    pebble.kill();
    server.restart("TERM");
    let is_good = || stapled(&server, "a.test").is_some_and(|(_, status)| status == "good");
    wait_until("the response", is_good);
    server.rewrite(&text.replace("stapling on", "stapling off"));
    server.signal("HUP");
    wait_until("the reload", || stapled(&server, "a.test").is_none());
    // A file and a responder of the configuration: the one cannot fit, the other is asked.
    let own = format!(
        "stapling on; ssl_stapling_file none; ssl_stapling_verify on; ssl_trusted_certificate \
         all.pem; ssl_stapling_responder {}",
        responder.url()
    );
    let issuing = authorities(&server, &root);
    server.home().write("all.pem", &issuing);
    server.rewrite(&text.replace("stapling on", &own));
    server.signal("HUP");
    wait_until("the response", is_good);
    assert!(server.error_log().contains("\"ssl_stapling_file\" ignored for certificates of"));
}

/// The issuer of the certificate in use, and its root.
fn authorities(server: &TestServer, root: &Path) -> String {
    let script = format!(
        "openssl s_client -connect {} -servername a.test -showcerts </dev/null 2>/dev/null",
        server.https()
    );
    let shown = run("sh", ["-c", &script]).text();
    let issuing = shown.split("-----BEGIN").nth(2).expect("a chain");
    let issuing = issuing.split_inclusive("END CERTIFICATE-----").next().unwrap();
    format!("-----BEGIN{issuing}\n{}", fs::read_to_string(root).unwrap())
}

#[test]
fn a_certificate_without_a_responder_is_noticed_once() {
    let (home, pebble, _responder) = scene(|options| {
        (options.responder, options.profiles) = (None, vec![("default".into(), 15)]);
    });
    let text = conf(&issuer(&pebble, ""), "a.test", "ssl_stapling on;");
    let server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let first = number(&server, "a.test");
    wait_until("another certificate", || {
        bolide_testkit::pause(300);
        number(&server, "a.test") != first
    });
    server.signal("HUP");
    wait_until("the reload", || server.error_log().contains(": reconfigured"));
    let log = server.error_log();
    let lines = log.lines().filter(|line| line.contains("\"ssl_stapling\""));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("[notice]") && lines[0].contains("names no OCSP responder"), "{log}");
}

/// The public key of the certificate for `name`.
fn public_key(server: &TestServer, name: &str) -> String {
    let script = format!(
        "openssl s_client -connect {} -servername {name} </dev/null 2>/dev/null \
         | openssl x509 -noout -pubkey 2>/dev/null || true",
        server.https()
    );
    run("sh", ["-c", &script]).text()
}

/// The lines of the error log about revocations.
fn alerts(server: &TestServer) -> Vec<String> {
    let log = server.error_log();
    let lines = log.lines().filter(|line| line.contains("[alert]") && line.contains("revoked"));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_revoked_certificate_is_replaced_within_seconds() {
    let (home, pebble, responder) = scene(|_| {});
    let text = conf(&issuer(&pebble, ""), "a.test", "ssl_stapling on;");
    let mut server = TestServer::start(home, &text);
    let root = root(&server, &pebble);
    wait_served(&server, "a.test", &root);
    let (first, key) = (number(&server, "a.test"), public_key(&server, "a.test"));
    responder.revoke(&first, "keyCompromise");
    // It is asked about at the start, as for the first time.
    server.restart("TERM");
    wait_until("another certificate", || {
        let now = number(&server, "a.test");
        !now.is_empty() && now != first
    });
    assert_ne!(public_key(&server, "a.test"), key);
    let good = Some((number(&server, "a.test"), "good".to_owned()));
    wait_until("its response", || stapled(&server, "a.test") == good);
    let alerts = alerts(&server);
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let why = format!("serial number {}, keyCompromise", first.to_lowercase());
    assert!(alerts[0].contains(&why), "{alerts:?}");
    let status = status(&server);
    assert!(status.contains("certificate a.test of ca") && !status.contains("revoked"), "{status}");
}

/// What `bolide status` says.
fn status(server: &TestServer) -> String {
    let conf = server.home().dir().join("nginx.conf");
    server.home().run(&["status", "-c", conf.to_str().unwrap()]).succeeded().text()
}

/// An authority of the test, and a certificate of it that must be stapled.
const OWN: &str = "cd \"$1\"
    new='-nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1'
    openssl req -x509 $new -days 90 -subj /CN=own -keyout own.key -out own.pem
    openssl req $new -subj /CN=a.test -keyout leaf.key -out leaf.csr
    printf 'subjectAltName=DNS:a.test\\n%b' \"$2\" >ext
    openssl x509 -req -days 90 -in leaf.csr -CA own.pem -CAkey own.key -set_serial 0x2A01 \\
        -extfile ext -out leaf.pem
    cat leaf.key leaf.pem own.pem >\"$(ls state/ca*.pem)\"";

/// Puts such a certificate with these extensions in the place of the one that was ordered.
fn replace(server: &TestServer, statuses: &RevocationServer, extensions: &str) {
    let dir = server.home().dir().to_str().unwrap();
    let _quiet = run("sh", ["-ec", OWN, "sh", dir, extensions]).succeeded();
    let read = |name: &str| server.home().read(name);
    statuses.sign_as(&(read("own.pem"), read("own.key")));
}

#[test]
fn a_certificate_that_must_be_stapled_is_stapled() {
    let (home, pebble, statuses) = scene(|options| options.responder = None);
    let text = conf(&issuer(&pebble, ""), "a.test", "ssl_stapling on;");
    let server = TestServer::start(home, &text);
    wait_served(&server, "a.test", &root(&server, &pebble));
    let extensions =
        format!("tlsfeature=status_request\\nauthorityInfoAccess=OCSP;URI:{}\\n", statuses.url());
    replace(&server, &statuses, &extensions);
    let good = Some(("2A01".to_owned(), "good".to_owned()));
    wait_until("its response", || stapled(&server, "a.test") == good);
}

#[test]
fn a_certificate_in_a_revocation_list_is_replaced_and_served_until_then() {
    let (home, mut pebble, statuses) = scene(|options| options.responder = None);
    let text = conf(&issuer(&pebble, ""), "a.test", "");
    let mut server = TestServer::start(home, &text);
    wait_served(&server, "a.test", &root(&server, &pebble));
    statuses.revoke("2A01", "superseded");
    let extensions = format!("crlDistributionPoints=URI:{}\\n", statuses.list_url());
    let first = number(&server, "a.test");
    replace(&server, &statuses, &extensions);
    wait_until("the alert", || alerts(&server).len() == 1);
    assert!(alerts(&server)[0].contains("serial number 2a01, superseded"));
    wait_until("another certificate", || {
        let now = number(&server, "a.test");
        !now.is_empty() && now != "2A01" && now != first
    });
    assert!(!status(&server).contains("revoked by its issuer"));
    // Without the issuer it stays. A new process fetches the list at once.
    pebble.kill();
    replace(&server, &statuses, &extensions);
    server.restart("TERM");
    wait_until("the alert", || alerts(&server).len() == 2);
    wait_until("its status", || status(&server).contains("revoked by its issuer (superseded)"));
    assert_eq!(number(&server, "a.test"), "2A01");
}
