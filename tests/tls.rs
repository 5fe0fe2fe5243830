//! TLS: names and certificates, versions, ALPN, tickets, cleartext on the TLS port.

use std::process::Command;

use bolide_testkit::certs::{self, CertKey};
use bolide_testkit::server::Home;
use bolide_testkit::{H1TestClient, Proto, TestServer, run};

use crate::{BOLIDE, http, site};

/// The output of `openssl s_client` on the TLS port with these arguments.
fn s_client(server: &TestServer, args: &[&str]) -> String {
    let addr = server.https().to_string();
    let mut command = Command::new(bolide_testkit::tool("openssl"));
    command.args(["s_client", "-connect", &addr]).args(args);
    let limit = std::time::Duration::from_secs(20);
    let done = bolide_testkit::tools::finish("openssl", command, limit);
    done.text() + &done.stderr
}

fn certificates(conf: &str) -> TestServer {
    let home = Home::new(BOLIDE);
    for (stem, key, names) in [
        ("one", CertKey::Ecdsa, &["one.test"][..]),
        ("two", CertKey::Ecdsa, &["two.test", "*.two.test"]),
        ("rsa", CertKey::Rsa, &["rsa.test"]),
        ("both-rsa", CertKey::Rsa, &["both.test"]),
        ("both-ec", CertKey::Ecdsa, &["both.test"]),
    ] {
        certs::make(home.dir(), stem, key, names);
    }
    let prelude = bolide_testkit::server::prelude(1);
    TestServer::start(home, &format!("{prelude}http {{ {conf} }}"))
}

const NAMES: &str = "
    server { listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
             listen 127.0.0.1:@HTTPS@ quic reuseport; http2 on;
             server_name localhost; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
             location / { return 200 default; } }
    server { listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name one.test;
             ssl_certificate @DIR@/one.pem; ssl_certificate_key @DIR@/one.key;
             location / { return 200 $ssl_server_name-one; } }
    server { listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name two.test *.two.test;
             ssl_certificate @DIR@/two.pem; ssl_certificate_key @DIR@/two.key;
             location / { return 200 $ssl_server_name-two; } }
    server { listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name rsa.test;
             ssl_certificate @DIR@/rsa.pem; ssl_certificate_key @DIR@/rsa.key;
             location / { return 200 $ssl_server_name-rsa; } }
    server { listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name both.test;
             ssl_certificate @DIR@/both-rsa.pem; ssl_certificate_key @DIR@/both-rsa.key;
             ssl_certificate @DIR@/both-ec.pem; ssl_certificate_key @DIR@/both-ec.key;
             location / { return 200 both; } }
";

#[test]
fn each_name_gets_its_certificate_and_its_server() {
    let server = certificates(NAMES);
    let port = server.https().port();
    for (name, pem, text) in [
        ("one.test", "one.pem", "one.test-one"),
        ("two.test", "two.pem", "two.test-two"),
        ("www.two.test", "two.pem", "www.two.test-two"),
        ("rsa.test", "rsa.pem", "rsa.test-rsa"),
        ("localhost", "cert.pem", "default"),
    ] {
        for proto in Proto::TLS {
            // curl verifies the certificate: another one would fail.
            let reply = bolide_testkit::Curl::new(proto)
                .trusting(&server.home().dir().join(pem))
                .args(["--resolve", &format!("{name}:{port}:127.0.0.1")])
                .get(&format!("https://{name}:{port}/"));
            assert_eq!(reply.text(), text, "{proto:?}");
        }
    }
}

#[test]
fn a_client_without_a_name_gets_the_first_server() {
    let server = certificates(NAMES);
    let seen = s_client(&server, &["-noservername"]);
    assert!(seen.contains("CN = localhost"), "{seen}");
    let seen = s_client(&server, &["-servername", "unknown.test"]);
    assert!(seen.contains("CN = localhost"), "{seen}");
}

#[test]
fn a_server_with_two_keys_uses_one_that_the_client_supports() {
    let server = certificates(NAMES);
    for (algorithms, wanted) in [
        ("rsa_pss_rsae_sha256:rsa_pkcs1_sha256", "Peer signature type: RSA"),
        ("ecdsa_secp256r1_sha256", "Peer signature type: ECDSA"),
    ] {
        let seen = s_client(&server, &["-servername", "both.test", "-sigalgs", algorithms]);
        assert!(seen.contains(wanted), "{algorithms}: {seen}");
    }
    // RFC 8422 §5.1: over TLS 1.2, the groups of a client are those of certificates, too.
    for (version, groups, wanted) in [
        ("-tls1_2", "X25519:P-384", "Peer signature type: RSA"),
        ("-tls1_2", "X25519:P-256", "Peer signature type: ECDSA"),
        ("-tls1_3", "X25519:P-384", "Peer signature type: ECDSA"),
    ] {
        let seen = s_client(&server, &["-servername", "both.test", version, "-groups", groups]);
        assert!(seen.contains(wanted), "{version} {groups}: {seen}");
    }
}

#[test]
fn the_versions_are_those_of_ssl_protocols() {
    for (directive, twelve, thirteen) in [
        ("ssl_protocols TLSv1.2 TLSv1.3;", true, true),
        ("ssl_protocols TLSv1.3;", false, true),
        ("ssl_protocols TLSv1.2;", true, false),
        ("", true, true),
    ] {
        // Without QUIC, which needs 1.3.
        let server = http(&format!(
            "server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; {directive}
                      ssl_certificate @CERT@; ssl_certificate_key @KEY@; }}"
        ));
        for (flag, protocol, possible) in
            [("-tls1_2", "TLSv1.2", twelve), ("-tls1_3", "TLSv1.3", thirteen)]
        {
            let seen = s_client(&server, &[flag, "-servername", "localhost"]);
            let done = seen.contains(&format!("New, {protocol}, Cipher is"));
            assert_eq!(done, possible, "{directive:?} {flag}: {seen}");
        }
        let old = s_client(&server, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]);
        assert!(old.contains("Cipher is (NONE)"), "{old}");
    }
}

#[test]
fn a_server_without_tls_1_3_has_no_http_3() {
    let more = "listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; \
                ssl_certificate @CERT@; ssl_certificate_key @KEY@; location / { return 200 own; }";
    let server = http(&format!(
        "server {{ {} location / {{ return 200 default; }} }} \
         server {{ server_name old.test; ssl_protocols TLSv1.2; {more} }} \
         server {{ server_name new.test; {more} }} \
         server {{ server_name borrows.test; ssl_protocols TLSv1.2; \
         listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; \
         location / {{ return 200 own; }} }}",
        bolide_testkit::server::LISTEN
    ));
    let port = server.https().port();
    let ask = |proto, name: &str| {
        let at = format!("{name}:{port}:127.0.0.1");
        let client = bolide_testkit::Curl::new(proto).args(["--resolve", &at]);
        client.attempt(&format!("https://{name}:{port}/"))
    };
    for (name, has_http3) in [("old.test", false), ("new.test", true), ("borrows.test", true)] {
        let reply = ask(Proto::H3, name);
        let text = if has_http3 { "own" } else { "" };
        assert_eq!((&*reply.text(), reply.exit == 0), (text, has_http3), "{name}");
        let over_tcp = ask(Proto::H2, name);
        assert_eq!(over_tcp.text(), "own", "{name}");
        let is_told = over_tcp.headers.iter().any(|(field, _)| field == "alt-svc");
        assert_eq!(is_told, has_http3, "{name}");
    }
}

#[test]
fn alpn_chooses_a_configured_protocol() {
    let server = site("");
    for (offered, chosen) in [
        ("h2,http/1.1", Some("h2")),
        ("http/1.1,h2", Some("h2")),
        ("http/1.1", Some("http/1.1")),
        ("http/1.0,http/1.1", Some("http/1.1")),
    ] {
        let seen = s_client(&server, &["-alpn", offered]);
        let line = seen.lines().find_map(|line| line.strip_prefix("ALPN protocol: "));
        assert_eq!(line, chosen, "{offered}: {seen}");
    }
    let seen = s_client(&server, &[]);
    assert!(seen.contains("No ALPN negotiated"), "{seen}");
}

#[test]
fn a_session_is_resumed_by_its_ticket_whichever_worker_made_it() {
    let block = format!("server {{ {} }}", bolide_testkit::server::LISTEN);
    let server = TestServer::workers(BOLIDE, 4, &block);
    let ticket = server.home().dir().join("ticket");
    let ticket = ticket.to_str().unwrap();
    for version in ["-tls1_2", "-tls1_3"] {
        // With the request the client reads the ticket, which in 1.3 comes after the handshake.
        let script = format!(
            "(printf 'GET / HTTP/1.0\\r\\n\\r\\n'; sleep 1) | openssl s_client -connect {} \
             {version} -servername localhost -ign_eof -sess_out {ticket}",
            server.https()
        );
        let first = run("sh", ["-c", &script]);
        assert!(first.text().contains("New, TLSv"), "{first}");
        for _ in 0..8 {
            let again =
                s_client(&server, &[version, "-servername", "localhost", "-sess_in", ticket]);
            assert!(again.contains("Reused, TLSv"), "{version}: {again}");
        }
    }
}

#[test]
fn keys_change_whenever_the_client_wants_them_to() {
    let server = site("");
    // "K" requests new keys of ours, "k" only announces the client's own.
    // Each is typed when the one before was carried out, however long that takes.
    let script = format!(
        "out=$(mktemp); await() {{ for i in $(seq 600); do
             [ $(grep -c \"$1\" $out) -ge $2 ] && return; sleep 0.1; done; }}
         (await 'Verify return code' 1; n=0
          for key in K k K; do echo $key; n=$((n + 1)); await KEYUPDATE $n; done
          printf 'GET /hello.txt HTTP/1.0\\r\\n\\r\\n'; await closed 1) |
         openssl s_client -connect {} -tls1_3 -servername localhost >$out 2>&1; cat $out; rm $out",
        server.https()
    );
    let seen = run("sh", ["-c", &script]);
    assert_eq!(seen.text().matches("KEYUPDATE").count(), 3, "{seen}");
    assert!(seen.text().contains("HTTP/1.1 200 OK"), "{seen}");
    // The server sent close_notify: s_client prints `closed` for it, and an error for a bare end.
    assert!(seen.text().contains("\nclosed"), "{seen}");
}

#[test]
fn tickets_can_be_switched_off() {
    let server = site("ssl_session_tickets off; ssl_session_cache off;");
    let seen = s_client(&server, &["-tls1_2", "-servername", "localhost"]);
    assert!(!seen.contains("TLS session ticket:"), "{seen}");
}

#[test]
fn the_hybrid_post_quantum_exchange_is_spoken() {
    let server = site("");
    for proto in Proto::TLS {
        let reply = server
            .curl(proto)
            .args(["--curves", "X25519MLKEM768"])
            .get(&server.url(proto, "/hello.txt"));
        assert_eq!(reply.status, 200);
    }
}

#[test]
fn plain_http_on_the_tls_port_gets_400() {
    let server = site("");
    let mut client = H1TestClient::connect(server.https());
    let answer = client.get("/hello.txt", "");
    assert_eq!(answer.status, 400);
    let page = answer.text();
    assert!(page.contains("<title>400 The plain HTTP request was sent to HTTPS port</title>"));
    assert!(client.is_closed());
}

#[test]
fn plain_http_on_the_tls_port_can_be_redirected() {
    let server = site("error_page 497 =301 https://$host:$server_port$request_uri;");
    let answer = H1TestClient::connect(server.https()).get("/x?y", "");
    let wanted = format!("https://localhost:{}/x?y", server.https().port());
    assert_eq!((answer.status, answer.header("location")), (301, Some(wanted.as_str())));
}

#[test]
fn noise_on_the_tls_port_disturbs_no_client() {
    let server = site("");
    for seed in 1..60 {
        let mut client = H1TestClient::connect(server.https());
        let mut noise = bolide_testkit::site::noise(1 + seed as usize * 40, seed);
        if seed % 3 == 0 {
            // The start of a real record.
            noise[..1].copy_from_slice(&[22]);
        }
        client.send(noise).finish();
        let _whatever = client.to_end();
    }
    assert_eq!(server.fetch(Proto::H2, "/hello.txt").status, 200);
}

#[test]
fn a_misdirected_request_gets_421() {
    let server = certificates(NAMES);
    let port = server.https().port();
    // One connection by the name one.test, a request for another: RFC 9110 §15.5.20.
    let reply = bolide_testkit::Curl::new(Proto::H2)
        .args(["--resolve", &format!("one.test:{port}:127.0.0.1")])
        .args(["-H", "Host: two.test"])
        .attempt(&format!("https://one.test:{port}/"));
    assert!([200, 421].contains(&reply.status), "{}", reply.status);
}
