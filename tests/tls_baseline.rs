//! The TLS offer: hardened presets in three strengths, versions and ciphers per server name, the
//! client's offer as variables.

use bolide_testkit::certs::{self, CertKey};
use bolide_testkit::server::Home;
use bolide_testkit::{Proto, TestServer, run};

use crate::BOLIDE;

const SITE: &str = "
    server { listen 127.0.0.1:@HTTP@ default_server; server_name _;
             return 301 https://$host$request_uri; }
    server { listen 127.0.0.1:@HTTPS@ ssl default_server;
             listen 127.0.0.1:@HTTPS@ quic reuseport default_server;
             http2 on; server_name localhost;
             add_header Strict-Transport-Security \"max-age=63072000\" always;
             add_header Alt-Svc 'h3=\":443\"; ma=86400';
             ssl_certificate @CERT@; ssl_certificate_key @KEY@;
             location / { return 200 \"$ssl_protocol $ssl_cipher\"; } }
";
const MODERN: &str = "ssl_protocols TLSv1.3; ssl_ecdh_curve X25519:prime256v1:secp384r1;
    ssl_prefer_server_ciphers off; ssl_session_timeout 1d; ssl_session_cache shared:Own:10m;
    ssl_stapling on; ssl_stapling_verify on; resolver 127.0.0.1;";
const INTERMEDIATE: &str = "ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:\
ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:\
DHE-RSA-CHACHA20-POLY1305;
    ssl_ecdh_curve X25519:prime256v1:secp384r1; ssl_prefer_server_ciphers off; ssl_dhparam dh.pem;
    ssl_session_timeout 1d; ssl_session_cache shared:Own:10m; ssl_session_tickets off;";
const OLD: &str = "ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_ciphers @SECLEVEL=0:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:\
ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA:AES128-SHA256:AES256-SHA:DES-CBC3-SHA;
    ssl_prefer_server_ciphers on; ssl_dhparam dh.pem; ssl_session_timeout 1d;
    ssl_session_cache shared:Own:10m;";

fn start(directives: &str, site: &str) -> TestServer {
    let home = Home::new(BOLIDE);
    certs::make(home.dir(), "rsa", CertKey::Rsa, &["localhost"]);
    home.write(
        "dh.pem",
        // The group of RFC 7919 §A.1.
        "-----BEGIN DH PARAMETERS-----
MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz
+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a
87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7
YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi
7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD
ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==
-----END DH PARAMETERS-----
",
    );
    let prelude = bolide_testkit::server::prelude(1);
    TestServer::start(home, &format!("{prelude}http {{ {directives} {site} }}"))
}

/// The negotiated version and cipher with these arguments; `None` without a handshake.
fn agreed(server: &TestServer, args: &str) -> Option<(String, String)> {
    let script = format!(
        "openssl s_client -connect {} {args} </dev/null 2>/dev/null || true",
        server.https()
    );
    let seen = run("sh", ["-c", &script]).text();
    let line = seen.lines().find_map(|line| line.strip_prefix("New, "))?;
    let (version, cipher) = line.split_once(", Cipher is ")?;
    (cipher != "(NONE)").then(|| (version.to_owned(), cipher.to_owned()))
}

#[test]
fn hardened_configurations_start_and_answer_in_every_version_of_http() {
    for (directives, twelve) in [(MODERN, false), (INTERMEDIATE, true), (OLD, true)] {
        let server = start(directives, SITE);
        for proto in Proto::TLS {
            let reply = server.fetch(proto, "/");
            assert_eq!(reply.status, 200, "{directives} {proto:?}");
            assert!(reply.text().starts_with("TLSv1.3 TLS_"), "{}", reply.text());
        }
        let seen = agreed(&server, "-tls1_2 -servername localhost");
        assert_eq!(seen.is_some(), twelve, "{directives}: {seen:?}");
        // Older versions are never negotiated, whatever is configured.
        let old = "-tls1_1 -cipher ALL:@SECLEVEL=0 -servername localhost";
        assert_eq!(agreed(&server, old), None, "{directives}");
        if twelve {
            let args = "-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305";
            let seen = agreed(&server, args).unwrap();
            assert_eq!(seen.1, "ECDHE-ECDSA-CHACHA20-POLY1305");
        }
    }
}

#[test]
fn the_clients_order_of_ciphers_counts_unless_the_servers_is_preferred() {
    let list = "ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384;";
    let offer = "-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256";
    for (directives, wanted) in [
        ("ssl_prefer_server_ciphers on;", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("ssl_prefer_server_ciphers off;", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ] {
        let server = start(&format!("{list} {directives}"), SITE);
        assert_eq!(agreed(&server, offer).unwrap().1, wanted, "{directives}");
    }
}

#[test]
fn versions_and_ciphers_are_those_of_the_requested_server() {
    let server = start(
        "ssl_certificate @CERT@; ssl_certificate_key @KEY@;",
        "server { listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; server_name a.test; }
         server { listen 127.0.0.1:@HTTPS@ ssl; server_name b.test; ssl_protocols TLSv1.3; }
         server { listen 127.0.0.1:@HTTPS@ ssl; server_name c.test; ssl_protocols TLSv1.2;
                  ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384; }
         server { listen 127.0.0.1:@HTTPS@ ssl; server_name d.test;
                  ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256; }",
    );
    let ask = |name: &str, version: &str| agreed(&server, &format!("-servername {name} {version}"));
    for name in ["a.test", "d.test", "unknown.test"] {
        assert_eq!(ask(name, "-tls1_2").unwrap().0, "TLSv1.2", "{name}");
    }
    assert_eq!(ask("b.test", "-tls1_2"), None);
    assert_eq!(ask("b.test", "-tls1_3").unwrap().0, "TLSv1.3");
    assert_eq!(ask("c.test", "-tls1_3"), None);
    assert_eq!(ask("c.test", "-tls1_2").unwrap().1, "ECDHE-ECDSA-AES256-GCM-SHA384");
    assert_eq!(ask("d.test", "-tls1_3").unwrap().1, "TLS_CHACHA20_POLY1305_SHA256");
}

#[test]
fn handshake_variables_have_the_offered_and_used_algorithms() {
    let server = start(
        "",
        "server { listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; server_name localhost;
         ssl_certificate @CERT@; ssl_certificate_key @KEY@; location / { return 200
         \"$ssl_ciphers|$ssl_curves|$ssl_sigalg|$ssl_client_sigalg|$ssl_session_id|\";
         } }",
    );
    let script = format!(
        "(printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n'; \
         sleep 0.5) | openssl s_client -quiet -connect {} -tls1_2 -groups X25519:P-256:P-521 \
         -cipher ECDHE-ECDSA-AES128-GCM-SHA256:AES128-SHA 2>/dev/null",
        server.https()
    );
    let seen = run("sh", ["-c", &script]).text();
    let wanted = "ECDHE-ECDSA-AES128-GCM-SHA256:AES128-SHA:TLS_EMPTY_RENEGOTIATION_INFO_SCSV|\
                  X25519:prime256v1:secp521r1|ecdsa_secp256r1_sha256|||";
    assert!(seen.ends_with(wanted), "{seen}");
}

#[test]
fn cipher_names_unknown_to_openssl_are_refused_and_unsupported_ones_warned_about() {
    let home = Home::new(BOLIDE);
    home.write("junk", "junk\n");
    let no_match = "failed (SSL: error:0A0000B9:SSL routines::no cipher match)\n";
    for (directives, message) in [
        ("ssl_ciphers bogus;", format!("SSL_CTX_set_cipher_list(\"bogus\") {no_match}")),
        ("ssl_ciphers \"\";", format!("SSL_CTX_set_cipher_list(\"\") {no_match}")),
        ("ssl_ciphers @STRENGTH;", format!("SSL_CTX_set_cipher_list(\"@STRENGTH\") {no_match}")),
        (
            "ssl_ciphers HIGH:@BOGUS;",
            "SSL_CTX_set_cipher_list(\"HIGH:@BOGUS\") failed (SSL: error:0A000118:SSL \
             routines::invalid command)\n"
                .into(),
        ),
        (
            "ssl_ecdh_curve X25519:bogus;",
            "SSL_CTX_set1_curves_list(\"X25519:bogus\") failed\n".into(),
        ),
        (
            "ssl_conf_command bogus x;",
            "SSL_CONF_cmd(\"bogus\", \"x\") failed (SSL: error:0A000182:SSL routines::unknown cmd \
             name:cmd=bogus)\n"
                .into(),
        ),
        (
            "ssl_conf_command Ciphersuites bogus;",
            "SSL_CONF_cmd(\"Ciphersuites\", \"bogus\") failed (SSL: error:0A0000B9:SSL \
             routines::no cipher match error:0A000180:SSL routines::bad value:cmd=Ciphersuites, \
             value=bogus)\n"
                .into(),
        ),
        (
            "ssl_conf_command Options Bogus;",
            "SSL_CONF_cmd(\"Options\", \"Bogus\") failed (SSL: error:0A000180:SSL routines::bad \
             value:cmd=Options, value=Bogus)\n"
                .into(),
        ),
        (
            "ssl_dhparam none;",
            "BIO_new_file(\"@DIR@/none\") failed (SSL: error:80000002:system library::No such \
             file or directory:calling fopen(@DIR@/none, r) error:10000080:BIO routines::no such \
             file)\n"
                .into(),
        ),
        (
            "ssl_dhparam junk;",
            "PEM_read_bio_DHparams(\"@DIR@/junk\") failed (SSL: error:0480006C:PEM routines::no \
             start line:Expecting: DH PARAMETERS)\n"
                .into(),
        ),
        ("ssl_protocols bogus;", "invalid value \"bogus\" in @DIR@/a:7\n".into()),
        ("ssl_protocols TLSv1.2; ssl_ciphers AES128-SHA;", "no TLS version with a usable".into()),
        ("ssl_protocols TLSv1 TLSv1.1;", "no TLS version with a usable cipher".into()),
        ("ssl_prefer_server_ciphers x;", "invalid value \"x\" in \"ssl_prefer_server".into()),
        ("ssl_buffer_size x;", "\"ssl_buffer_size\" directive invalid value in".into()),
        ("ssl_ech_file x;", String::new()),
        ("ssl_ciphers AES128-SHA;", "[warn] no cipher of \"ssl_ciphers\" is supported".into()),
        ("ssl_ecdh_curve X25519:secp521r1;", "[warn] \"secp521r1\" in \"ssl_ecdh_curve\"".into()),
        ("ssl_ecdh_curve X25519:?bogus;", "[warn] \"bogus\" in \"ssl_ecdh_curve\" is not".into()),
    ] {
        let prelude = bolide_testkit::server::prelude(1);
        home.write(
            "a",
            &format!(
                "{}\n\n\n\n\nhttp {{ server {{ listen 127.0.0.1:@HTTPS@ ssl; ssl_certificate @CERT@;
                 ssl_certificate_key @KEY@; {directives} }} }}",
                prelude.replace('\n', " ")
            ),
        );
        let done = home.run(&["-t", "-c", &format!("{}/a", home.dir().display())]);
        let message = home.expand(&message);
        let is_fine = message.is_empty() || message.starts_with("[warn]");
        assert_eq!(done.code == 0, is_fine, "{directives}: {}", done.stderr);
        assert!(done.stderr.contains(&message), "{directives}: {}", done.stderr);
    }
}
