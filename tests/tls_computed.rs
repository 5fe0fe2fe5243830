//! Certificates with variables in their names, in all HTTP versions.

use std::path::Path;

use bolide_testkit::certs::{self, CertKey};
use bolide_testkit::server::Home;
use bolide_testkit::{Proto, TestServer, run, wait_until};

use crate::BOLIDE;

fn conf(directives: &str) -> String {
    let prelude = bolide_testkit::server::prelude(1);
    format!(
        "{prelude}http {{ map $ssl_server_name $stem {{ default none; ~^(?<first>\\w+)\\. $first; }}
         map $ssl_server_name $text {{ default \"\"; told.test \"@TEXT@\"; }}
         server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
         listen 127.0.0.1:@HTTPS@ quic reuseport; http2 on; server_name all.test;
         location / {{ return 200 $ssl_server_name; }} {directives} }} }}"
    )
}

const BY_NAME: &str = "ssl_certificate $stem.pem; ssl_certificate_key $stem.key;";

fn home() -> Home {
    let home = Home::new(BOLIDE);
    certs::make(home.dir(), "one", CertKey::Ecdsa, &["one.test"]);
    certs::make(home.dir(), "two", CertKey::Rsa, &["two.test"]);
    home
}

/// The response for `name` with the certificate `pem`; empty without a handshake.
fn ask(server: &TestServer, proto: Proto, name: &str, pem: &Path) -> String {
    let port = server.https().port();
    bolide_testkit::Curl::new(proto)
        .trusting(pem)
        .args(["--resolve", &format!("{name}:{port}:127.0.0.1")])
        .attempt(&format!("https://{name}:{port}/"))
        .text()
}

#[test]
fn each_name_finds_its_files_in_every_version_of_http() {
    let server = TestServer::start(home(), &conf(BY_NAME));
    let dir = server.home().dir().to_path_buf();
    for proto in Proto::TLS {
        for stem in ["one", "two"] {
            let name = format!("{stem}.test");
            let pem = dir.join(format!("{stem}.pem"));
            assert_eq!(ask(&server, proto, &name, &pem), name, "{proto:?}");
        }
        assert_eq!(ask(&server, proto, "nope.test", &dir.join("one.pem")), "", "{proto:?}");
        // A failing name does not affect others.
        assert_eq!(ask(&server, proto, "one.test", &dir.join("one.pem")), "one.test");
    }
    // Files that come later are found.
    certs::make(&dir, "late", CertKey::Ecdsa, &["late.test"]);
    assert_eq!(ask(&server, Proto::H2, "late.test", &dir.join("late.pem")), "late.test");
}

#[test]
fn a_missing_file_fails_its_handshake_with_nginxs_message() {
    let server = TestServer::start(home(), &conf(BY_NAME));
    let script = format!(
        "openssl s_client -connect {} -servername nope.test </dev/null 2>&1 || true",
        server.https()
    );
    let seen = run("sh", ["-c", &script]).text();
    assert!(seen.contains("alert"), "{seen}");
    let line = server.home().expand(
        "cannot load certificate \"@DIR@/nope.pem\": BIO_new_file() failed (SSL: \
         error:80000002:system library::No such file or directory:calling fopen(@DIR@/nope.pem, \
         r) error:10000080:BIO routines::no such file) while SSL handshaking, client: 127.0.0.1, \
         server: 127.0.0.1:@HTTPS@",
    );
    wait_until("the line", || {
        let log = server.error_log();
        log.lines().any(|known| known.contains("[error]") && known.ends_with(&line))
            && log.contains("[info]")
            && log.contains("SSL_do_handshake() failed (SSL: error:0A000179:SSL routines::cert cb")
    });
    // Over QUIC, too.
    let before = server.error_log().matches(&line[..60]).count();
    ask(&server, Proto::H3, "nope.test", &server.home().dir().join("one.pem"));
    wait_until("the line for QUIC", || server.error_log().matches(&line[..60]).count() > before);
}

#[test]
fn text_and_fixed_names_work_beside_computed_ones() {
    let home = home();
    let chain = home.read("one.pem");
    let key = home.read("one.key");
    let text = conf("ssl_certificate data:$text; ssl_certificate_key one.key;");
    let server = TestServer::start(home, &text.replace("@TEXT@", &chain));
    let pem = server.home().dir().join("one.pem");
    // The certificate is one.test's: the test needs only that one is sent.
    let script = |name: &str| {
        let addr = server.https();
        let script = format!(
            "openssl s_client -connect {addr} -servername {name} </dev/null 2>/dev/null || true"
        );
        run("sh", ["-c", &script]).text()
    };
    assert!(script("told.test").contains("subject=CN = one.test"), "{}", script("told.test"));
    assert!(!script("other.test").contains("subject="));
    assert!(key.contains("PRIVATE KEY") && pem.exists());
    wait_until("the line", || {
        server.error_log().contains("cannot load certificate \"data:\": PEM")
    });
}

#[test]
fn cached_certificates_are_read_again_after_their_validity() {
    let serial = |server: &TestServer| {
        let script = format!(
            "openssl s_client -connect {} -servername one.test </dev/null 2>/dev/null | \
             openssl x509 -noout -serial",
            server.https()
        );
        run("sh", ["-c", &script]).text()
    };
    let kept = format!("{BY_NAME} ssl_certificate_cache max=2 valid=1h inactive=1h;");
    for (directives, is_kept) in [
        (kept.as_str(), true),
        (BY_NAME, false),
        (&format!("{BY_NAME} ssl_certificate_cache off;"), false),
        (&format!("{BY_NAME} ssl_certificate_cache max=2 valid=0;"), false),
        (&format!("{BY_NAME} ssl_certificate_cache max=1;"), false),
        // What was not used for long goes when another one comes, as in nginx.
        (&format!("{BY_NAME} ssl_certificate_cache max=2 inactive=0;"), true),
    ] {
        let server = TestServer::start(home(), &conf(directives));
        let first = serial(&server);
        certs::make(server.home().dir(), "one", CertKey::Ecdsa, &["one.test"]);
        assert_eq!(serial(&server) == first, is_kept, "{directives}");
        if is_kept {
            server.signal("HUP");
            wait_until("the new certificate", || serial(&server) != first);
        }
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let home = home();
    for (directives, message) in [
        ("ssl_certificate $nonesuch.pem; ssl_certificate_key one.key;", "unknown \"nonesuch\" var"),
        (
            "ssl_certificate $stem.pem;",
            "no \"ssl_certificate_key\" is defined for certificate \"$stem.pem\"",
        ),
        ("ssl_certificate_cache max=0;", "invalid parameter \"max=0\" in"),
        ("ssl_certificate_cache max=9 valid=x;", "invalid parameter \"valid=x\" in"),
        ("ssl_certificate_cache max=9 inactive=x;", "invalid parameter \"inactive=x\" in"),
        ("ssl_certificate_cache bogus;", "invalid parameter \"bogus\" in"),
        (
            "ssl_certificate_cache inactive=9s;",
            "\"ssl_certificate_cache\" must have the \"max\" parameter in",
        ),
        ("ssl_certificate_cache;", "invalid number of arguments in \"ssl_certificate_cache\""),
        ("ssl_certificate_cache off; ssl_certificate_cache off;", "directive is duplicate in"),
    ] {
        home.write(
            "a",
            &conf(&format!("{BY_NAME} {directives}").replacen(
                if directives.starts_with("ssl_certificate $") { BY_NAME } else { "\0" },
                "",
                1,
            )),
        );
        let done = home.run(&["-t", "-c", "a"]);
        assert_eq!(done.code, 1, "{directives}");
        assert!(done.stderr.contains(message), "{directives}: {}", done.stderr);
    }
}
