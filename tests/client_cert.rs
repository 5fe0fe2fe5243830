//! Client certificates: in all HTTP versions, for resumed sessions, and configurations that are
//! refused. The comparison with nginx decides which certificates are valid.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use bolide_testkit::server::Home;
use bolide_testkit::{TestPhp, TestServer, run, wait_until};

use crate::BOLIDE;
use crate::htaccess::PARAMS;

const SITES: &str = "
    ssl_certificate @CERT@; ssl_certificate_key @KEY@;
    ssl_client_certificate @DIR@/clients/root.crt;
    server { listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
             listen 127.0.0.1:@HTTPS@ quic reuseport; http2 on; server_name open.test;
             error_page 421 /lost; location = /lost { return 200 \"lost at open\"; }
             location / { return 200 \"open $ssl_client_verify\"; } }
    server { listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name shut.test; ssl_verify_client on;
             error_page 421 /lost; location = /lost { return 200 \"secret of shut\"; }
             location / {
                 return 200 \"$ssl_client_verify $ssl_session_reused $ssl_client_s_dn\"; } }
    server { listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name ajar.test; ssl_verify_client optional; error_page 495 = /why;
             location / { return 200 $ssl_client_verify; }
             location = /why { return 200 \"why $ssl_client_verify\"; } }
    server { listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name files.test; ssl_verify_client optional; root @DIR@/www; index a.txt;
             apache_htaccess on; }
    server { listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name never.test; ssl_reject_handshake on; }
";

fn start() -> TestServer {
    start_with("")
}

/// The same with more servers.
fn start_with(more: &str) -> TestServer {
    let home = Home::new(BOLIDE);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nginx/client_certs.sh");
    let _made = run("sh", [Path::new(script), &home.dir().join("clients")]).succeeded();
    let prelude = bolide_testkit::server::prelude(1);
    TestServer::start(home, &format!("{prelude}http {{ {SITES} {more} }}"))
}

/// The status and body for a client with the certificate of `stem`.
fn ask(
    server: &TestServer,
    version: &str,
    name: &str,
    stem: Option<&str>,
    more: &[&str],
) -> String {
    let port = server.https().port();
    let resolve = format!("{name}:{port}:127.0.0.1");
    let url = format!("https://{name}:{port}/");
    let mut args: Vec<String> =
        ["-sk", "-m", "10", version, "--resolve", &resolve, "-w", " %{http_code}"]
            .map(str::to_owned)
            .to_vec();
    args.extend(more.iter().map(|word| (*word).to_owned()));
    if let Some(stem) = stem {
        let file = |end| server.home().dir().join(format!("clients/{stem}.{end}"));
        args.extend(["--cert".to_owned(), file("crt").display().to_string()]);
        args.extend(["--key".to_owned(), file("key").display().to_string()]);
    }
    args.push(url);
    run("curl-h3", args).text()
}

#[test]
fn ssl_verify_client_admits_only_verified_clients_in_every_version_of_http() {
    let server = start();
    for version in ["--http1.1", "--http2", "--http3-only"] {
        let ask = |name, stem| ask(&server, version, name, stem, &[]);
        let known = ask("shut.test", Some("good"));
        assert!(known.starts_with("SUCCESS . CN=Gr\\C3\\BCn"), "{version}: {known}");
        assert!(known.ends_with(" 200"), "{version}: {known}");
        let stranger = ask("shut.test", Some("wrong"));
        assert!(stranger.contains("The SSL certificate error"), "{version}: {stranger}");
        assert!(stranger.ends_with(" 400"), "{version}: {stranger}");
        let nobody = ask("shut.test", None);
        assert!(nobody.contains("No required SSL certificate was sent"), "{version}: {nobody}");
        assert!(nobody.ends_with(" 400"), "{version}: {nobody}");
        assert_eq!(ask("ajar.test", None), "NONE 200", "{version}");
        let late = ask("ajar.test", Some("expired"));
        assert_eq!(late, "why FAILED:certificate has expired 200", "{version}");
        assert_eq!(ask("open.test", Some("good")), "open NONE 200", "{version}");
        assert_eq!(ask("never.test", None), " 000", "{version}");
    }
}

#[test]
fn htaccess_files_may_require_fields_of_a_certificate() {
    let server = start();
    std::fs::create_dir_all(server.www("")).unwrap();
    std::fs::write(server.www("a.txt"), "a").unwrap();
    let good = Some("good");
    let rows = [
        ("SSLRequireSSL", good, 200),
        ("SSLRequireSSL", None, 200),
        ("SSLRequire %{SSL_CLIENT_VERIFY} eq \"SUCCESS\"", good, 200),
        ("SSLRequire %{SSL_CLIENT_VERIFY} eq \"SUCCESS\"", None, 403),
        ("SSLRequire %{SSL_CLIENT_S_DN_CN} =~ m/^Gr\u{fc}n <x>/", good, 200),
        ("SSLRequire %{SSL_CLIENT_S_DN_O} in {\"b\", \"A, B;C\"}", good, 200),
        ("SSLRequire %{SSL_CLIENT_S_DN_Email} eq \"x@a.test\"", good, 200),
        ("SSLRequire %{SSL_CLIENT_S_DN_CN} in {\"Rot\", \"b\"}", good, 403),
        ("SSLRequire %{SSL_CLIENT_S_DN_O} in {\"A, B;C\"}", None, 403),
        ("SSLRequire %{SSL_PROTOCOL} =~ m/^TLSv1\\.[23]$/ and %{HTTPS} eq \"on\"", None, 200),
        ("SSLRequire %{SSL_CIPHER_USEKEYSIZE} >= 128", None, 200),
        ("SSLRequire %{SSL_TLS_SNI} eq \"files.test\"", None, 200),
        ("SSLRequire %{SSL_CLIENT_I_DN_CN} eq \"\"", None, 200),
        ("Require expr %{SSL_CLIENT_VERIFY} == 'SUCCESS'", good, 200),
        ("Require expr %{SSL_CLIENT_VERIFY} == 'SUCCESS'", None, 403),
        ("SSLRequire %{SSL_CLIENT_S_DN_CN} eq", good, 500),
        ("Require ssl", None, 200),
        ("Require ssl-verify-client", good, 200),
        ("Require ssl-verify-client", None, 403),
        ("Require ssl now", good, 500),
        ("<IfModule mod_ssl.c>\nSSLVerifyClient require\n</IfModule>", good, 200),
        ("<IfModule mod_ssl.c>\nSSLVerifyClient require\n</IfModule>", None, 403),
        ("SSLVerifyClient require\nSatisfy Any\nRequire all granted", None, 403),
        ("SSLVerifyClient optional_no_ca", None, 200),
        ("SSLVerifyClient maybe", None, 500),
    ];
    for (text, stem, wanted) in rows {
        std::fs::write(server.www(".htaccess"), format!("{text}\n")).unwrap();
        for version in ["--http1.1", "--http2", "--http3-only"] {
            let outcome = ask(&server, version, "files.test", stem, &[]);
            assert!(
                outcome.ends_with(&format!(" {wanted}")),
                "{version} {text} {stem:?}: {outcome}"
            );
        }
    }
    let rule = "RewriteEngine on\nRewriteCond %{SSL:SSL_CLIENT_S_DN_CN} ^Gr\nRewriteRule ^ - [G]\n";
    std::fs::write(server.www(".htaccess"), rule).unwrap();
    assert!(ask(&server, "--http2", "files.test", good, &[]).ends_with(" 410"));
    assert!(ask(&server, "--http2", "files.test", None, &[]).ends_with(" 200"));
}

#[test]
fn certificate_parameters_of_an_application_are_part_of_the_key() {
    let php = TestPhp::start(1);
    let pass = php.address();
    let server = start_with(&format!(
        "server {{ listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic; http2 on;
             server_name kept.test; ssl_verify_client optional; root @DIR@/www; index a.php;
             apache_htaccess on;
             location ~ \\.php$ {{ {PARAMS} page_cache auto; fastcgi_pass {pass}; }} }}"
    ));
    std::fs::create_dir_all(server.www("")).unwrap();
    let script = "<?php header('X-LiteSpeed-Cache-Control: public,max-age=600');
                  echo 'for ' . ($_SERVER['SSL_CLIENT_S_DN_O'] ?? 'no one');";
    std::fs::write(server.www("a.php"), script).unwrap();
    std::fs::write(server.www(".htaccess"), "SSLOptions +StdEnvVars\n").unwrap();
    let ask = |stem| ask(&server, "--http2", "kept.test", stem, &[]);
    for _ in 0..3 {
        assert_eq!(ask(Some("good")), "for A, B;C 200");
        assert_eq!(ask(None), "for no one 200");
    }
}

#[test]
fn a_handshake_for_one_server_opens_no_closed_one() {
    let server = start();
    for version in ["--http1.1", "--http2", "--http3-only"] {
        let host = |name, other: &str| {
            let field = format!("Host: {other}");
            ask(&server, version, name, Some("good"), &["-H", &field])
        };
        assert_eq!(host("open.test", "shut.test"), "lost at open 421", "{version}");
        assert!(host("ajar.test", "shut.test").ends_with(" 421"), "{version}");
        assert_eq!(host("shut.test", "open.test"), "open SUCCESS 200", "{version}");
        // No server has this name: the default server requires no certificate.
        assert!(host("nobody.test", "shut.test").ends_with(" 400"), "{version}");
    }
}

#[test]
fn a_certificate_counts_only_where_its_authorities_are_trusted() {
    let home = Home::new(BOLIDE);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nginx/client_certs.sh");
    let _made = run("sh", [Path::new(script), &home.dir().join("clients")]).succeeded();
    let listen = "listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic";
    let server = TestServer::start(
        home,
        &format!(
            "{}http {{ ssl_certificate @CERT@; ssl_certificate_key @KEY@; ssl_verify_client on;
             http2 on; ssl_client_certificate @DIR@/clients/other.crt;
             server {{ listen 127.0.0.1:@HTTP@; {listen} reuseport; server_name first.test;
                 return 200 \"first $ssl_client_verify\"; }}
             server {{ {listen}; server_name same.test; return 200 \"same $ssl_client_verify\"; }}
             server {{ {listen}; server_name root.test;
                 ssl_client_certificate @DIR@/clients/root.crt; return 200 secret; }} }}",
            bolide_testkit::server::prelude(1)
        ),
    );
    for version in ["--http1.1", "--http2", "--http3-only"] {
        let host = |name: &str, other: &str, stem: &str| {
            let field = format!("Host: {other}");
            ask(&server, version, name, Some(stem), &["-H", &field])
        };
        // No server has the name, or there is none: the default server verifies.
        for name in ["unknown.test", "127.0.0.1"] {
            assert_eq!(host(name, "same.test", "wrong"), "same SUCCESS 200", "{version} {name}");
            let outcome = host(name, "root.test", "wrong");
            assert!(outcome.ends_with(" 421"), "{version} {name}: {outcome}");
            let outcome = host(name, "root.test", "good");
            assert!(outcome.ends_with(" 421"), "{version} {name}: {outcome}");
        }
        assert_eq!(host("root.test", "root.test", "good"), "secret 200", "{version}");
    }
}

#[test]
fn a_resumed_session_keeps_the_verification_result_and_is_valid_for_its_server_only() {
    let server = start();
    let dir = server.home().dir().display();
    let port = server.https().port();
    for version in ["tls1_2", "tls1_3"] {
        let ask = |name: &str, more: &str| {
            let script = format!(
                "(printf 'GET / HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n'; \
                 sleep 1) | openssl s_client -quiet -{version} -connect 127.0.0.1:{port} \
                 -servername {name} {more} 2>/dev/null || true"
            );
            run("sh", ["-c", &script]).text()
        };
        let cert =
            |stem: &str| format!("-cert {dir}/clients/{stem}.crt -key {dir}/clients/{stem}.key");
        let first = ask("shut.test", &format!("{} -sess_out {dir}/good", cert("good")));
        assert!(first.contains("SUCCESS . CN"), "{version}: {first}");
        let again = ask("shut.test", &format!("-sess_in {dir}/good"));
        assert!(again.contains("SUCCESS r CN"), "{version}: {again}");
        let elsewhere = ask("ajar.test", &format!("-sess_in {dir}/good"));
        assert!(elsewhere.contains("NONE"), "{version}: {elsewhere}");
        ask("shut.test", &format!("{} -sess_out {dir}/bad", cert("wrong")));
        let again = ask("shut.test", &format!("-sess_in {dir}/bad"));
        assert!(again.contains(" 400 "), "{version}: {again}");
        ask("open.test", &format!("-sess_out {dir}/none"));
        let again = ask("shut.test", &format!("{} -sess_in {dir}/none", cert("good")));
        assert!(again.contains("SUCCESS . CN"), "{version}: {again}");
    }
}

#[test]
fn a_reload_with_other_authorities_closes_connections_of_the_former_ones() {
    let server = start();
    let dir = server.home().dir().to_path_buf();
    let port = server.https().port();
    let prelude = bolide_testkit::server::prelude(1);
    let reload = |sites: &str| {
        server.rewrite(&format!("{prelude}http {{ {sites} }}"));
        server.signal("HUP");
    };
    let is_new = |what: &str| ask(&server, "--http1.1", "open.test", None, &[]).starts_with(what);
    let script = format!(
        "exec openssl s_client -quiet -connect 127.0.0.1:{port} -servername shut.test \
         -cert {0}/clients/good.crt -key {0}/clients/good.key 2>/dev/null",
        dir.display()
    );
    let mut client = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
    let mut read_until = |until: &[u8]| {
        let (mut received, mut byte) = (Vec::new(), [0]);
        while !received.ends_with(until) {
            assert_eq!(from.read(&mut byte).unwrap(), 1, "the server went");
            received.push(byte[0]);
        }
    };
    for text in ["open", "again"] {
        if text == "again" {
            // The same authorities: no session ends.
            reload(&SITES.replace("open $", "again $"));
            wait_until("the second configuration", || is_new("again"));
        }
        to.write_all(b"GET / HTTP/1.1\r\nHost: shut.test\r\n\r\n").unwrap();
        read_until(b"C=DE");
    }
    let other = SITES.replace("open $", "third $").replace("/root.crt", "/other.crt");
    reload(&other);
    wait_until("the third configuration", || is_new("third"));
    // Nothing responds on this connection any more.
    let _ = to.write_all(b"GET / HTTP/1.1\r\nHost: shut.test\r\nConnection: close\r\n\r\n");
    let mut rest = Vec::new();
    from.read_to_end(&mut rest).unwrap();
    assert_eq!(String::from_utf8_lossy(&rest), "");
    client.wait().unwrap();
}

#[test]
fn certificates_of_version_1_are_served_and_judged_in_every_version_of_http() {
    let home = Home::new(BOLIDE);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nginx/client_certs.sh");
    let _made = run("sh", [Path::new(script), &home.dir().join("clients")]).succeeded();
    let listen = "listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic";
    let clients = "@DIR@/clients";
    let conf = format!(
        "{}http {{ http2 on; ssl_verify_client optional; ssl_verify_depth 2;
         ssl_certificate {clients}/oldleaf.crt; ssl_certificate_key {clients}/oldleaf.key;
         ssl_client_certificate {clients}/olds.crt;
         error_page 495 =200 /why;
         server {{ listen 127.0.0.1:@HTTP@; {listen} reuseport; server_name any.test;
             location / {{ return 200 $ssl_client_verify; }} }}
         server {{ {listen}; server_name listed.test; ssl_crl {clients}/both1.crl;
             ssl_certificate {clients}/$ssl_server_name.crt;
             ssl_certificate_key {clients}/$ssl_server_name.key;
             location / {{ return 200 $ssl_client_verify; }} }} }}",
        bolide_testkit::server::prelude(1)
    );
    for end in ["crt", "key"] {
        let dir = home.dir().join("clients");
        std::fs::copy(dir.join(format!("oldown.{end}")), dir.join(format!("listed.test.{end}")))
            .unwrap();
    }
    let server = TestServer::start(home, &conf);
    let failed = |why: &str| format!("FAILED:{why} 200");
    for version in ["--http1.1", "--http2", "--http3-only"] {
        let ask = |name, stem| ask(&server, version, name, Some(stem), &[]);
        for good in ["oldleaf", "oldroot", "authority", "signer", "one", "oldgone"] {
            assert_eq!(ask("any.test", good), "SUCCESS 200", "{version} {good}");
        }
        let purpose = failed("unsuitable certificate purpose");
        assert_eq!(ask("any.test", "below"), purpose, "{version}");
        assert_eq!(ask("any.test", "mute"), purpose, "{version}");
        assert_eq!(ask("listed.test", "oldleaf"), "SUCCESS 200", "{version}");
        assert_eq!(ask("listed.test", "one"), "SUCCESS 200", "{version}");
        assert_eq!(ask("listed.test", "oldgone"), failed("certificate revoked"), "{version}");
    }
    assert!(
        ask(&server, "--tlsv1.2", "any.test", Some("oldleaf"), &["--tls-max", "1.2"])
            .starts_with("SUCCESS")
    );
}
