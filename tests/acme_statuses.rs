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
