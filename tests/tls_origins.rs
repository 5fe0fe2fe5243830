//! TLS to upstreams: server names and verification, client certificates, negotiation, session
//! reuse, and failing handshakes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bolide_testkit::server::{Home, LISTEN};
use bolide_testkit::{Proto, TestServer, run, wait_until};

use crate::BOLIDE;

/// A directory with an authority, the certificates `origin` (origin.test, *.wild.test), `old` (of
/// version 1, without other names than old.test), `client` and a list that revokes the first.
fn home() -> Home {
    let home = Home::new(BOLIDE);
    let script = "ec='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
        openssl req -x509 $ec -keyout ca.key -out ca.crt -days 9 -subj '/CN=Test CA'
        sign() { openssl x509 -req -in $1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 9 \
            -out $1.crt $2 $3; }
        for name in origin client old; do
            openssl req $ec -keyout $name.key -out $name.csr -subj /CN=$name.test; done
        echo 'subjectAltName=DNS:origin.test,DNS:*.wild.test,IP:127.0.0.1' > names
        sign origin -extfile names; sign client -extfile names; sign old
        openssl ec -in client.key -aes256 -passout pass:secret -out sealed.key
        echo secret > words
        touch index; echo 01 > number
        printf '[ca]\\ndefault_ca=a\\n[a]\\ndatabase=index\\ncrlnumber=number\\n\
            default_md=sha256\\n' > ca.cnf
        openssl ca -config ca.cnf -keyfile ca.key -cert ca.crt -revoke origin.crt
        openssl ca -config ca.cnf -keyfile ca.key -cert ca.crt -gencrl -crldays 9 -out revoked.pem";
    let script = format!("cd '{}' && {{ {script}; }} >/dev/null 2>&1", home.dir().display());
    let _quiet = run("sh", ["-ec", &script]).succeeded();
    home
}

/// Upstreams with Python's `ssl` and the certificate of this name.
struct Origins {
    child: Child,
    ask: ChildStdin,
    ports: BufReader<ChildStdout>,
}

impl Origins {
    fn start(home: &Home, name: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls_origins/origin.py");
        let file = |name: &str| home.dir().join(name);
        let mut child = Command::new("python3")
            .arg(script)
            .args([file(&format!("{name}.crt")), file(&format!("{name}.key")), file("ca.crt")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 is installed");
        let (ask, ports) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, ask, ports: BufReader::new(ports) }
    }

    /// The address of a new upstream of this kind.
    fn open(&mut self, kind: &str) -> String {
        writeln!(self.ask, "{kind}").unwrap();
        let mut port = String::new();
        self.ports.read_line(&mut port).unwrap();
        format!("127.0.0.1:{}", port.trim())
    }
}

impl Drop for Origins {
    fn drop(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }
}

/// A server with these locations and more directives around them.
fn serve(home: Home, around: &str, locations: &str) -> TestServer {
    let prelude = bolide_testkit::server::prelude(1);
    let full = format!(
        "{prelude}http {{ proxy_connect_timeout 2s; {around} server {{ {LISTEN} \
         client_max_body_size 0; {locations} }} }}\n"
    );
    TestServer::start(home, &full)
}

fn get(server: &TestServer, path: &str) -> String {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", server.error_log());
    answer.text()
}

/// Checks for this text in the error log after a request that fails with 502.
fn complaint(server: &TestServer, path: &str, text: &str) {
    assert_eq!(server.get(path).status, 502, "{path}");
    wait_until(text, || server.error_log().contains(text));
}

#[test]
fn proxy_ssl_server_name_sends_sni() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("good");
    let pass = format!("proxy_pass https://{at}/;");
    let port = at.split(':').nth(1).unwrap();
    let server = serve(
        home,
        "proxy_ssl_server_name on;",
        &format!(
            "location /off/ {{ {pass} proxy_ssl_server_name off; proxy_ssl_name a.test; }}
             location /address/ {{ {pass} }}
             location /localhost/ {{ proxy_pass https://localhost:{port}/; }}
             location /name/ {{ {pass} proxy_ssl_name a.test:99; }}
             location /variable/ {{ {pass} proxy_ssl_name $arg_n; }}
             location /late/ {{ set $to {at}; proxy_pass https://$to/x?y; }}
             location /scheme/ {{ set $s https; proxy_pass $s://localhost:{port}; }}"
        ),
    );
    for (path, name) in [
        ("/off/", "None"),
        ("/address/", "None"),
        ("/localhost/", "localhost"),
        ("/name/", "a.test"),
        ("/variable/?n=b.test", "b.test"),
        ("/variable/", "None"),
        ("/late/", "None"),
    ] {
        let text = get(&server, path);
        assert!(text.starts_with(&format!("sni={name} version=TLSv1.3 ")), "{path}: {text}");
    }
    assert!(get(&server, "/late/").ends_with(&format!("Host: {at} /x?y\n")));
    assert!(get(&server, "/address/b?c").ends_with(&format!("Host: {at} /b?c\n")));
}

#[test]
fn proxy_ssl_verify_checks_the_upstreams_certificate() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("good");
    let pass = format!("proxy_pass https://{at};");
    let server = serve(
        home,
        "proxy_ssl_trusted_certificate ca.crt;",
        &format!(
            "proxy_ssl_verify on; proxy_ssl_name origin.test;
             location /good {{ {pass} }}
             location /wild {{ {pass} proxy_ssl_name a.wild.test; }}
             location /variable {{ {pass} proxy_ssl_name $arg_n; }}
             location /address {{ {pass} proxy_ssl_name 127.0.0.1; }}
             location /stranger {{ {pass} proxy_ssl_trusted_certificate cert.pem; }}
             location /revoked {{ {pass} proxy_ssl_crl revoked.pem; }}
             location /unasked {{ {pass} proxy_ssl_verify off; proxy_ssl_name no.test; }}
             location /short {{ {pass} proxy_ssl_verify_depth 0; }}"
        ),
    );
    for path in ["/good", "/good", "/wild", "/variable?n=ORIGIN.test", "/unasked", "/short"] {
        let _proven = get(&server, path);
    }
    let matches = |name: &str| {
        format!(
            "upstream SSL certificate does not match \"{name}\" while SSL handshaking to upstream"
        )
    };
    complaint(&server, "/variable?n=no.test", &matches("no.test"));
    complaint(&server, "/variable", &matches(""));
    complaint(&server, "/variable?n=a.b.wild.test", &matches("a.b.wild.test"));
    complaint(&server, "/address", &matches("127.0.0.1"));
    let error = |fault: &str| format!("upstream SSL certificate verify error: ({fault}) while SSL");
    complaint(&server, "/stranger", &error("21:unable to verify the first certificate"));
    complaint(&server, "/revoked", &error("23:certificate revoked"));
    assert!(server.error_log().contains(&format!("upstream: \"https://{at}/revoked\"")));
}

#[test]
fn proxy_ssl_certificate_is_sent_to_an_upstream_that_requests_one() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("asks");
    let pass = format!("proxy_pass https://{at};");
    let shown = "proxy_ssl_certificate client.crt; proxy_ssl_certificate_key";
    // Workers without root's rights read the files that variables name.
    let dir = home.dir().display().to_string();
    let _readable = run("chmod", ["644", &format!("{dir}/client.key")]).succeeded();
    let server = serve(
        home,
        "",
        &format!(
            "{shown} client.key;
             location /inherited {{ {pass} }}
             location /none {{ {pass} proxy_ssl_certificate ''; }}
             location /sealed {{ {pass} {shown} sealed.key; proxy_ssl_password_file words; }}
             location /variable {{ {pass} proxy_ssl_certificate $arg_c.crt;
                 proxy_ssl_certificate_key $arg_c.key; proxy_ssl_certificate_cache max=2; }}
             location /empty {{ {pass} proxy_ssl_certificate $arg_c;
                 proxy_ssl_certificate_key $arg_c; }}"
        ),
    );
    for (path, name) in [
        ("/inherited", "client.test"),
        ("/none", "None"),
        ("/sealed", "client.test"),
        ("/variable?c=client", "client.test"),
        ("/variable?c=client", "client.test"),
        ("/empty", "None"),
    ] {
        let text = get(&server, path);
        // Python prints a missing certificate as None.
        let name = if name == "None" { "-" } else { name };
        assert!(text.contains(&format!(" cert={name} ")), "{path}: {text}");
    }
    assert_eq!(server.get("/variable?c=none").status, 500);
    let text = "none.crt\": BIO_new_file() failed (SSL: error:80000002:system library::No such \
                file or directory";
    wait_until("the complaint", || server.error_log().contains(text));
    assert!(server.error_log().contains("no such file) while connecting to upstream"));
}

#[test]
fn versions_and_ciphers_are_those_of_the_location() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let (at, old) = (origins.open("good"), origins.open("tls12"));
    let server = serve(
        home,
        "proxy_ssl_protocols TLSv1.2;",
        &format!(
            "location /12 {{ proxy_pass https://{at}; }}
             location /cipher {{ proxy_pass https://{at};
                 proxy_ssl_ciphers ECDHE-ECDSA-CHACHA20-POLY1305; }}
             location /13 {{ proxy_pass https://{at}; proxy_ssl_protocols TLSv1.2 TLSv1.3;
                 proxy_ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256; }}
             location /min {{ proxy_pass https://{at}; proxy_ssl_protocols TLSv1.2 TLSv1.3;
                 proxy_ssl_conf_command MaxProtocol TLSv1.2; }}
             location /old {{ proxy_pass https://{old}; }}
             location /new {{ proxy_pass https://{old}; proxy_ssl_protocols TLSv1.3; }}"
        ),
    );
    for (path, text) in [
        ("/12", "version=TLSv1.2 cipher=ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("/cipher", "version=TLSv1.2 cipher=ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("/13", "version=TLSv1.3 cipher=TLS_CHACHA20_POLY1305_SHA256"),
        ("/min", "version=TLSv1.2"),
        ("/old", "version=TLSv1.2"),
    ] {
        assert!(get(&server, path).contains(text), "{path}: {}", get(&server, path));
    }
    let text = "SSL_do_handshake() failed (SSL: error:0A00042E:SSL routines::tlsv1 alert protocol \
                version:SSL alert number 70) while SSL handshaking to upstream";
    complaint(&server, "/new", text);
}

#[test]
fn suwsgi_is_uwsgi_over_tls() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("uwsgi");
    let silent = origins.open("gone");
    let port = at.split(':').nth(1).unwrap();
    let server = serve(
        home,
        "uwsgi_ssl_server_name on; uwsgi_param A b;",
        &format!(
            "location /plain {{ uwsgi_pass {at}; }}
             location /tls {{ uwsgi_pass suwsgi://localhost:{port}; }}
             location /var {{ set $s suwsgi; uwsgi_pass $s://{at}; }}
             location /gone {{ uwsgi_pass suwsgi://{silent}; }}"
        ),
    );
    for (path, name) in [("/tls", "localhost"), ("/var", "None")] {
        let text = get(&server, path);
        assert!(text.contains(&format!("sni={name} version=TLSv1.3")), "{path}: {text}");
        assert!(text.contains("size="), "{path}: {text}");
    }
    complaint(&server, "/plain", &format!("upstream: \"uwsgi://{at}\""));
    complaint(&server, "/gone", &format!("upstream: \"suwsgi://{silent}\""));
}

#[test]
fn uwsgi_ssl_directives_apply_where_the_innermost_block_has_them() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("uwsgi asks");
    let pass = format!("uwsgi_pass suwsgi://{at};");
    let own = "uwsgi_ssl_certificate client.crt; uwsgi_ssl_certificate_key client.key;";
    let server = serve(
        home,
        "uwsgi_ssl_name outer.test; uwsgi_ssl_server_name on; uwsgi_ssl_session_reuse off;
         uwsgi_ssl_protocols TLSv1.2; uwsgi_ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384;
         uwsgi_ssl_conf_command Curves P-256; uwsgi_ssl_verify off; uwsgi_ssl_verify_depth 1;
         uwsgi_ssl_trusted_certificate client.crt; uwsgi_ssl_crl revoked.pem;
         uwsgi_ssl_certificate_cache off; uwsgi_ssl_password_file words;
         uwsgi_ssl_certificate '';",
        &format!(
            "location /outer {{ {pass} }}
             location /name {{ {pass} uwsgi_ssl_name inner.test; {own} }}
             location /quiet {{ {pass} uwsgi_ssl_server_name off;
                uwsgi_ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256; }}
             location /new {{ {pass} uwsgi_ssl_protocols TLSv1.3; uwsgi_ssl_session_reuse on;
                uwsgi_ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256; }}
             location /revoked {{ {pass} uwsgi_ssl_verify on; uwsgi_ssl_name origin.test;
                uwsgi_ssl_trusted_certificate ca.crt; uwsgi_ssl_verify_depth 2;
                location /revoked/again {{ {pass} uwsgi_ssl_crl revoked.pem; }} }}
             location /sealed {{ {pass} uwsgi_ssl_certificate $arg_c;
                uwsgi_ssl_certificate_key sealed.key; uwsgi_ssl_password_file words;
                uwsgi_ssl_certificate_cache max=3; }}"
        ),
    );
    let told = |path: &str| get(&server, path);
    let outer = told("/outer");
    let suite = "sni=outer.test version=TLSv1.2 cipher=ECDHE-ECDSA-AES256-GCM-SHA384";
    assert!(outer.contains(suite) && outer.contains("cert=-"), "{outer}");
    let named = told("/name");
    assert!(named.contains("sni=inner.test") && named.contains("cert=client.test"), "{named}");
    let quiet = told("/quiet");
    assert!(quiet.contains("sni=None version=TLSv1.2 cipher=ECDHE-ECDSA-AES128"), "{quiet}");
    let new = "version=TLSv1.3 cipher=TLS_CHACHA20_POLY1305_SHA256 reused=";
    assert!(told("/new").contains(&format!("{new}False")));
    assert!(told("/new").contains(&format!("{new}True")), "its session is used again");
    assert!(told("/outer").contains("reused=False"));
    assert!(told("/sealed?c=client.crt").contains("cert=client.test"));
    complaint(&server, "/revoked", "upstream SSL certificate verify error");
    complaint(&server, "/revoked/again", "upstream SSL certificate verify error");
}

#[test]
fn grpc_ssl_directives_apply_where_the_innermost_block_has_them() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("grpc asks");
    let pass = format!("grpc_pass grpcs://{at};");
    let own = "grpc_ssl_certificate client.crt; grpc_ssl_certificate_key client.key;";
    let server = serve(
        home,
        "grpc_ssl_name outer.test; grpc_ssl_server_name on; grpc_ssl_session_reuse off;
         grpc_ssl_protocols TLSv1.2; grpc_ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384;
         grpc_ssl_conf_command Curves P-256; grpc_ssl_verify off; grpc_ssl_verify_depth 1;
         grpc_ssl_trusted_certificate client.crt; grpc_ssl_crl revoked.pem;
         grpc_ssl_certificate_cache off; grpc_ssl_password_file words;
         grpc_ssl_certificate '';",
        &format!(
            "location /outer {{ {pass} }}
             location /name {{ {pass} grpc_ssl_name inner.test; {own} }}
             location /quiet {{ {pass} grpc_ssl_server_name off;
                grpc_ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256; }}
             location /new {{ {pass} grpc_ssl_protocols TLSv1.3; grpc_ssl_session_reuse on;
                grpc_ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256; }}
             location /revoked {{ {pass} grpc_ssl_verify on; grpc_ssl_name origin.test;
                grpc_ssl_trusted_certificate ca.crt; grpc_ssl_verify_depth 2;
                location /revoked/again {{ {pass} grpc_ssl_crl revoked.pem; }} }}
             location /sealed {{ {pass} grpc_ssl_certificate $arg_c;
                grpc_ssl_certificate_key sealed.key; grpc_ssl_password_file words;
                grpc_ssl_certificate_cache max=3; }}"
        ),
    );
    let told = |path: &str| get(&server, path);
    let outer = told("/outer");
    let suite = "sni=outer.test version=TLSv1.2 cipher=ECDHE-ECDSA-AES256-GCM-SHA384";
    assert!(outer.contains(suite) && outer.contains("cert=-"), "{outer}");
    assert!(outer.contains("alpn=h2"), "{outer}");
    let named = told("/name");
    assert!(named.contains("sni=inner.test") && named.contains("cert=client.test"), "{named}");
    let quiet = told("/quiet");
    assert!(quiet.contains("sni=None version=TLSv1.2 cipher=ECDHE-ECDSA-AES128"), "{quiet}");
    let new = "version=TLSv1.3 cipher=TLS_CHACHA20_POLY1305_SHA256 reused=";
    assert!(told("/new").contains(&format!("{new}False")));
    assert!(told("/new").contains(&format!("{new}True")), "its session is used again");
    assert!(told("/outer").contains("reused=False"));
    assert!(told("/sealed?c=client.crt").contains("cert=client.test"));
    complaint(&server, "/revoked", "upstream SSL certificate verify error");
    complaint(&server, "/revoked/again", "upstream SSL certificate verify error");
}

#[test]
fn sessions_are_used_again_unless_that_is_off() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    for kind in ["good", "tls12"] {
        let home = self::home();
        let at = origins.open(kind);
        let server = serve(
            home,
            "",
            &format!(
                "location /on {{ proxy_pass https://{at}; }}
                 location /off {{ proxy_pass https://{at}; proxy_ssl_session_reuse off; }}"
            ),
        );
        for (path, reused) in [
            ("/on", "False"),
            ("/on", "True"),
            ("/on", "True"),
            ("/off", "False"),
            ("/off", "False"),
        ] {
            let text = get(&server, path);
            assert!(text.contains(&format!(" reused={reused} ")), "{kind} {path}: {text}");
        }
    }
}

#[test]
fn connections_are_shared_only_by_equal_settings() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("good");
    let server = serve(
        home,
        &format!("upstream app {{ server {at}; keepalive 8; }} proxy_ssl_server_name on;"),
        "location / { proxy_pass https://app; }
         location /name { proxy_pass https://app; proxy_ssl_name $arg_n; }
         location /strict { proxy_pass https://app; proxy_ssl_protocols TLSv1.2; }
         location /clear { proxy_pass http://app; }",
    );
    let number = |path: &str| {
        let text = get(&server, path);
        let (_, rest) = text.split_once("connection=").unwrap();
        rest.split('\n').next().unwrap().split("Host").next().unwrap().trim().to_owned()
    };
    let plain = [number("/"), number("/"), number("/")];
    assert_eq!(plain, ["1", "1", "1"]);
    assert_eq!([number("/name?n=a.test"), number("/name?n=a.test")], ["2", "2"]);
    assert_eq!(number("/name?n=b.test"), "3");
    assert_eq!(number("/name?n=app"), "4", "other settings, though they say the same");
    assert_eq!(number("/strict"), "5");
    // A kept TLS connection is never used in cleartext.
    assert_eq!(server.get("/clear").status, 502);
    assert_eq!([number("/"), number("/name?n=a.test")], ["1", "2"]);
}

#[test]
fn bodies_pass_whole_both_ways_and_by_each_protocol() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("good");
    let server = serve(home, "", &format!("location / {{ proxy_pass https://{at}; }}"));
    for proto in Proto::TLS {
        let reply = server.fetch(proto, "/big/3000000");
        assert_eq!((reply.status, reply.body.len()), (200, 3_000_000), "{proto:?}");
        assert!(reply.body.iter().all(|byte| *byte == b'x'), "{proto:?}");
    }
    let len = 2_000_000;
    let head = format!("POST /p HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n\r\n");
    let answer = server.connect().send(head + &"y".repeat(len)).answer();
    assert!(answer.text().ends_with(&format!("/p\nbody={len}\n")), "{}", answer.text());
}

#[test]
fn a_tunnel_over_tls_works_and_ends() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("good");
    let server = serve(
        home,
        "",
        &format!(
            "location / {{ proxy_pass https://{at}; proxy_set_header Upgrade $http_upgrade;
                 proxy_set_header Connection upgrade; }}"
        ),
    );
    let mut client = server.connect();
    client.send(
        "GET /t HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nearly",
    );
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(client.take(1).unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    assert_eq!(client.take(5).unwrap(), b"EARLY");
    for _ in 0..3 {
        client.send("hello");
        assert_eq!(client.take(5).unwrap(), b"HELLO");
    }
    client.finish();
    assert!(client.is_closed());
}

#[test]
fn an_upstream_with_a_failed_handshake_gives_502_or_the_next_server() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let kinds = ["plain", "leaves", "resets", "gone", "speaks", "silent", "good"];
    let at = kinds.map(|kind| origins.open(kind));
    let groups: Vec<_> = kinds
        .iter()
        .zip(&at)
        .map(|(kind, address)| {
            format!(
                "upstream {kind}-first {{ server {address}; server {} backup; }}\n",
                at[kinds.len() - 1]
            )
        })
        .collect();
    let locations: Vec<_> = kinds
        .iter()
        .zip(&at)
        .map(|(kind, address)| {
            format!(
                "location /{kind} {{ proxy_pass https://{address}; }}
                 location /next/{kind} {{ proxy_pass https://{kind}-first; }}"
            )
        })
        .collect();
    let server = serve(home, &groups.concat(), &locations.concat());
    let text = "SSL_do_handshake() failed (SSL: error:0A00010B:SSL routines::wrong version \
                number) while SSL handshaking to upstream";
    complaint(&server, "/plain", text);
    let text = "peer closed connection in SSL handshake while SSL handshaking to upstream";
    complaint(&server, "/leaves", text);
    let text = "peer closed connection in SSL handshake (104: Connection reset by peer) while SSL";
    complaint(&server, "/resets", text);
    assert_eq!((server.get("/gone").status, server.get("/speaks").status), (502, 502));
    assert_eq!(server.get("/silent").status, 504);
    let text = "upstream timed out (110: Connection timed out) while SSL handshaking to upstream";
    wait_until(text, || server.error_log().contains(text));
    for kind in kinds {
        assert!(get(&server, &format!("/next/{kind}")).starts_with("sni=None "), "{kind}");
    }
}

#[test]
fn a_response_without_close_notify_ends_by_its_length() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = ["rude", "half", "short"].map(|kind| (kind, origins.open(kind)));
    let locations: Vec<_> = at
        .iter()
        .map(|(kind, address)| format!("location /{kind} {{ proxy_pass https://{address}; }}\n"))
        .collect();
    let server = serve(home, "", &locations.concat());
    assert!(get(&server, "/rude").ends_with(" /rude\n"));
    assert!(get(&server, "/half").ends_with(" /half\n"));
    let mut client = server.connect();
    client.send("GET /short HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.try_answer("GET").is_err(), "it is cut");
    let text = "upstream prematurely closed connection while reading upstream";
    wait_until(text, || server.error_log().contains(text));
}

#[test]
fn a_response_that_ends_without_close_notify_is_not_stored() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let (half, unsaid) = (origins.open("half"), origins.open("unsaid"));
    let cache = home.dir().join("kept");
    let around = format!("proxy_cache_path {} keys_zone=z:1m;", cache.display());
    let server = serve(
        home,
        &around,
        &format!(
            "proxy_cache z; proxy_cache_valid 1m; add_header Cached $upstream_cache_status;
             proxy_store_access user:rw;
             location /half {{ proxy_pass https://{half}; }}
             location /unsaid {{ proxy_pass https://{unsaid}; }}
             location /file {{ proxy_cache off; proxy_store on; proxy_pass https://{half}; }}"
        ),
    );
    let cached = |path: &str| {
        let reply = server.get(path);
        assert!(reply.status == 200 && reply.text().ends_with(&format!(" {path}\n")), "{path}");
        reply.header("cached").unwrap_or_default().to_owned()
    };
    assert_eq!([cached("/half"), cached("/half")], ["MISS", "MISS"], "it may have been cut");
    assert_eq!([cached("/unsaid"), cached("/unsaid")], ["MISS", "HIT"], "it is whole");
    cached("/file");
    assert!(!server.www("file").exists(), "it may have been cut");
}

#[test]
fn a_complete_response_counts_whatever_follows_but_its_connection_is_not_reused() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("alarmed");
    let server = serve(
        home,
        &format!("upstream app {{ server {at}; keepalive 8; }} proxy_read_timeout 2s;"),
        "location / { proxy_pass https://app; proxy_next_upstream off; }",
    );
    for number in 1..=3 {
        let text = get(&server, "/");
        assert!(text.ends_with(&format!("connection={number}\n")), "{text}");
    }
}

#[test]
fn a_response_that_arrives_with_the_handshake_counts() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("eager");
    let location = format!("location / {{ proxy_pass https://{at}; proxy_read_timeout 2s; }}");
    let server = serve(home, "", &location);
    assert!(get(&server, "/").contains("version=TLSv1.2"));
}

#[test]
fn variables_have_the_attempt_and_the_default_port_is_443() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("good");
    let server = serve(
        home,
        &format!("upstream app {{ server {at}; }}"),
        "add_header X-Told '$proxy_host $proxy_port $upstream_addr $upstream_status
             $upstream_bytes_sent' always;
         location /app { proxy_pass https://app; }
         location /usual { proxy_pass https://127.0.0.1; }
         location /unusual { proxy_pass https://127.0.0.1:80; }",
    );
    let shown = |path: &str| {
        let shown = server.get(path).header("x-told").unwrap().to_owned();
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let sent = "GET /app HTTP/1.1\r\nHost: app\r\n\r\n".len();
    assert_eq!(shown("/app"), format!("app 443 {at} 200 {sent}"));
    let usual = shown("/usual");
    assert!(usual.starts_with("127.0.0.1 443 127.0.0.1:443 50"), "{usual}");
    let unusual = shown("/unusual");
    assert!(unusual.starts_with("127.0.0.1:80 80 127.0.0.1:80 50"), "{unusual}");
}

#[test]
fn old_certificates_are_accepted_without_verification() {
    let home = home();
    let mut origins = Origins::start(&home, "old");
    let (at, old) = (origins.open("good"), origins.open("tls12"));
    let server = serve(
        home,
        "",
        &format!(
            "location /13 {{ proxy_pass https://{at}; }}
             location /12 {{ proxy_pass https://{old}; }}"
        ),
    );
    assert!(get(&server, "/13").contains("TLSv1.3"));
    assert!(get(&server, "/12").contains("TLSv1.2"));
}

#[test]
fn a_reload_changes_tls_settings_of_upstreams() {
    let home = home();
    let mut origins = Origins::start(&home, "origin");
    let at = origins.open("good");
    let prelude = bolide_testkit::server::prelude(1);
    let conf = |more: &str| {
        format!(
            "{prelude}http {{ upstream app {{ server {at}; keepalive 4; }} server {{ {LISTEN} location / {{ \
             proxy_pass https://app; proxy_ssl_name origin.test; {more} }} }} }}\n"
        )
    };
    let server = TestServer::start(home, &conf(""));
    let reload = |more: &str| {
        server.rewrite(&conf(more));
        server.signal("HUP");
    };
    let _kept = get(&server, "/");
    reload("proxy_ssl_verify on; proxy_ssl_trusted_certificate cert.pem;");
    wait_until("the new settings to hold", || server.get("/").status == 502);
    reload("proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.crt;");
    wait_until("the right authority to be known", || server.get("/").status == 200);
}

#[test]
fn wrong_tls_arguments_are_refused_with_nginxs_messages() {
    let home = home();
    let dir = home.dir().display().to_string();
    let bio = |name: &str| {
        format!(
            "\"{dir}/{name}\": BIO_new_file() failed (SSL: error:80000002:system library::No such \
             file or directory:calling fopen({dir}/{name}, r) error:10000080:BIO routines::no such \
             file)"
        )
    };
    let rows = [
        ("proxy_ssl_verify on;", "no proxy_ssl_trusted_certificate for proxy_ssl_verify".into()),
        (
            "proxy_ssl_verify on; proxy_ssl_trusted_certificate none;",
            format!("cannot load certificate {}", bio("none")),
        ),
        (
            "proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.crt; proxy_ssl_crl none;",
            format!("cannot load CRL {}", bio("none")),
        ),
        (
            "proxy_ssl_certificate client.crt;",
            "no \"proxy_ssl_certificate_key\" is defined for certificate \"client.crt\"".into(),
        ),
        (
            "proxy_ssl_certificate $host.crt;",
            "no \"proxy_ssl_certificate_key\" is defined for certificate \"$host.crt\"".into(),
        ),
        (
            "proxy_ssl_certificate client.crt; proxy_ssl_certificate_key origin.key;",
            format!(
                "SSL_CTX_use_PrivateKey(\"{dir}/origin.key\") failed (SSL: error:05800074:x509 \
                 certificate routines::key values mismatch)"
            ),
        ),
        (
            "proxy_ssl_certificate none; proxy_ssl_certificate_key client.key;",
            format!("cannot load certificate {}", bio("none")),
        ),
        (
            "proxy_ssl_password_file none;",
            format!("open() \"{dir}/none\" failed (2: No such file or directory) in {dir}/a:"),
        ),
        ("proxy_ssl_protocols TLSv1.9;", format!("invalid value \"TLSv1.9\" in {dir}/a:")),
        (
            "proxy_ssl_ciphers foo;",
            "SSL_CTX_set_cipher_list(\"foo\") failed (SSL: error:0A0000B9:SSL routines::no cipher \
             match)"
                .into(),
        ),
        (
            "proxy_ssl_conf_command Foo bar;",
            "SSL_CONF_cmd(\"Foo\", \"bar\") failed (SSL: error:0A000182:SSL routines::unknown cmd \
             name:cmd=Foo)"
                .into(),
        ),
        (
            "proxy_ssl_conf_command VerifyMode Peer;",
            "\"proxy_ssl_conf_command VerifyMode\" is not implemented yet".into(),
        ),
        (
            "proxy_ssl_verify maybe;",
            "invalid value \"maybe\" in \"proxy_ssl_verify\" directive, it must be \"on\" or \
             \"off\""
                .into(),
        ),
        ("proxy_ssl_verify_depth x;", "\"proxy_ssl_verify_depth\" directive invalid number".into()),
        (
            "proxy_ssl_session_reuse x;",
            "invalid value \"x\" in \"proxy_ssl_session_reuse\" directive".into(),
        ),
        ("proxy_ssl_server_name x;", "invalid value \"x\" in \"proxy_ssl_server_name\"".into()),
        ("proxy_ssl_name;", "invalid number of arguments in \"proxy_ssl_name\" directive".into()),
        ("proxy_ssl_name a; proxy_ssl_name b;", "\"proxy_ssl_name\" directive is duplicate".into()),
        ("proxy_ssl_name $nope;", "unknown \"nope\" variable".into()),
        ("proxy_ssl_certificate_cache max=0;", "invalid parameter \"max=0\"".into()),
        (
            "proxy_ssl_certificate_cache valid=1s;",
            "\"proxy_ssl_certificate_cache\" must have the \"max\" parameter".into(),
        ),
        (
            "if ($arg_a) { proxy_ssl_verify on; }",
            "\"proxy_ssl_verify\" directive is not allowed here".into(),
        ),
    ];
    let conf = |location: &str| {
        let prelude = bolide_testkit::server::prelude(1).replace('\n', " ");
        format!("{prelude}http {{ server {{ {LISTEN} location / {{ {location} }} }} }}\n")
    };
    for (directives, text) in rows {
        home.write("a", &conf(&format!("proxy_pass https://127.0.0.1:9; {directives}")));
        let done = home.run(&["-t", "-c", "a"]);
        assert_eq!(done.code, 1, "{directives}");
        assert!(done.stderr.contains(&text), "{directives}: {}", done.stderr);
    }
    // A file that no upstream uses is not checked, unless variables may select it.
    let unused = "proxy_ssl_verify on; proxy_ssl_certificate none;";
    for (pass, code) in [("http://127.0.0.1:9", 0), ("http://$host", 1), ("https://a.$host", 1)] {
        home.write("a", &conf(&format!("proxy_pass {pass}; {unused}")));
        assert_eq!(home.run(&["-t", "-c", "a"]).code, code, "{pass}");
    }
}
