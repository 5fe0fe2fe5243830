//! OCSP stapling: the responses to clients, and the requests to responders.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bolide_testkit::server::Home;
use bolide_testkit::{TestServer, run, wait_until};

use crate::BOLIDE;

/// Creates an authority with a responder certificate, and the certificates `a` (good), `gone`
/// (revoked), both with a responder on port `@P2@`, and others without one.
const AUTHORITY: &str = r#"
cat > ca.cnf <<END
[ca]
default_ca = own
[own]
dir = .
database = index.txt
serial = serial
new_certs_dir = .
certificate = ca.pem
private_key = ca.key
default_md = sha256
default_days = 30
policy = any
[any]
commonName = supplied
END
: > index.txt; echo 01 > serial
EC="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
openssl req -x509 -nodes -days 30 -subj /CN=authority $EC -keyout ca.key -out ca.pem \
  -addext basicConstraints=critical,CA:TRUE
leaf() {
  openssl req -nodes -new -subj "/CN=$1" $EC -keyout "$1.key" -out "$1.csr"
  printf "$2\n" > "$1.ext"
  openssl ca -batch -config ca.cnf -in "$1.csr" -out "$1.crt" -notext -extfile "$1.ext"
  cat "$1.crt" ca.pem > "$1.pem"
}
leaf a 'authorityInfoAccess=OCSP;URI:http://127.0.0.1:@P2@/'
leaf gone 'authorityInfoAccess=OCSP;URI:http://127.0.0.1:@P2@/'
leaf plain 'basicConstraints=CA:FALSE'
leaf safe 'authorityInfoAccess=OCSP;URI:https://127.0.0.1:@P2@/'
leaf lost 'authorityInfoAccess=OCSP;URI:http://no.such.host.invalid/'
leaf signer 'extendedKeyUsage=OCSPSigning'
openssl ca -config ca.cnf -revoke gone.crt
openssl req -x509 -nodes -days 30 -subj /CN=stranger $EC -keyout stranger.key -out stranger.crt
"#;

fn home() -> Home {
    let home = Home::new(BOLIDE);
    let script = home.expand(AUTHORITY);
    let script = format!("cd '{}' && {{ {script} }} 2>/dev/null", home.dir().display());
    let _quiet = run("bash", ["-ec", &script]).succeeded();
    home
}

/// The `openssl` program as a responder; it ends with its owner.
struct Responder(Child);

impl Responder {
    fn start(home: &Path, port: u16, signer: &str) -> Self {
        let child = Command::new(bolide_testkit::tool("openssl"))
            .current_dir(home)
            .args(["ocsp", "-index", "index.txt", "-CA", "ca.pem", "-ndays", "2", "-ignore_err"])
            .args(["-rsigner", &format!("{signer}.crt"), "-rkey", &format!("{signer}.key")])
            .args(["-port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(home.join("responder.log")).unwrap())
            .spawn()
            .unwrap();
        let responder = Self(child);
        // A test connection would block it for good.
        wait_until("the responder", || {
            let said = std::fs::read_to_string(home.join("responder.log"));
            said.is_ok_and(|said| said.contains("waiting for OCSP client connections"))
        });
        responder
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn conf(leaf: &str, directives: &str) -> String {
    let prelude = bolide_testkit::server::prelude(2);
    format!(
        "{prelude}http {{ server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
         ssl_certificate {leaf}.pem; ssl_certificate_key {leaf}.key; {directives} }} }}"
    )
}

/// The stapled status of the certificate: `good`, or nothing.
fn stapled(server: &TestServer) -> Option<String> {
    let script = format!("openssl s_client -connect {} -status </dev/null 2>&1", server.https());
    let seen = run("sh", ["-c", &script]).text();
    if seen.contains("OCSP response: no response sent") {
        return None;
    }
    assert!(seen.contains("OCSP Response Status: successful (0x0)"), "{seen}");
    let status = seen.lines().find_map(|line| line.trim().strip_prefix("Cert Status: "));
    Some(status.unwrap().to_owned())
}

fn logged(server: &TestServer, text: &str) -> bool {
    server.error_log().contains(&server.home().expand(text))
}

#[test]
fn an_answer_of_the_authority_reaches_every_client() {
    let home = home();
    let _responder = Responder::start(home.dir(), home.port(2), "signer");
    let server = TestServer::start(home, &conf("a", "ssl_stapling on;"));
    wait_until("the answer", || stapled(&server).as_deref() == Some("good"));
    // A new configuration has it from the first handshake on, without another request.
    drop(_responder);
    server.signal("HUP");
    wait_until("the reload", || logged(&server, "reconfigured"));
    assert_eq!(stapled(&server).as_deref(), Some("good"));
}

#[test]
fn the_responder_and_the_issuer_are_configurable() {
    let home = home();
    let _responder = Responder::start(home.dir(), home.port(2), "signer");
    let directives = "ssl_stapling on; ssl_stapling_verify on; ssl_trusted_certificate ca.pem;
        ssl_stapling_responder http://127.0.0.1:@P2@/;";
    let own = conf("plain", directives).replace("plain.pem", "plain.crt");
    let server = TestServer::start(home, &own);
    wait_until("the answer", || stapled(&server).as_deref() == Some("good"));
}

#[test]
fn an_invalid_ocsp_response_is_not_stapled() {
    for (leaf, signer, directives, why) in [
        ("gone", "signer", "", "certificate status \"revoked\" in the OCSP response"),
        ("a", "stranger", "", "OCSP_basic_verify() failed"),
        ("a", "plain", "", "OCSP_basic_verify() failed"),
        ("a", "signer", "ssl_stapling_verify on;", "OCSP_basic_verify() failed"),
    ] {
        let home = home();
        let _responder = Responder::start(home.dir(), home.port(2), signer);
        let server =
            TestServer::start(home, &conf(leaf, &format!("ssl_stapling on; {directives}")));
        let context = format!(
            "while requesting certificate status, responder: 127.0.0.1, peer: 127.0.0.1:@P2@, \
             certificate: \"@DIR@/{leaf}.pem\""
        );
        wait_until("the complaint", || logged(&server, why) && logged(&server, &context));
        assert_eq!(stapled(&server), None, "{leaf} {signer}");
    }
}

#[test]
fn a_failing_responder_breaks_no_handshake_and_is_tried_again() {
    let home = home();
    let port = home.port(2);
    let server = TestServer::start(home, &conf("a", "ssl_stapling on;"));
    wait_until("the refusal", || {
        logged(&server, "connect() failed (111: Connection refused) while requesting certificate")
    });
    assert_eq!(stapled(&server), None);
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    // It retries by itself.
    let (mut client, _) = listener.accept().unwrap();
    assert!(client.read(&mut [0; 4096]).unwrap() > 0);
    client.write_all(b"HTTP/1.0 404 Not Found\r\nContent-Type: text/html\r\n\r\nno").unwrap();
    drop((client, listener));
    wait_until("the complaint", || {
        logged(&server, "OCSP responder sent invalid \"Content-Type\" header: \"text/html\"")
    });
    let _responder = Responder::start(server.home().dir(), port, "signer");
    server.signal("HUP");
    wait_until("the answer", || stapled(&server).as_deref() == Some("good"));
}

#[test]
fn a_certificate_without_a_usable_responder_is_warned_of() {
    let home = home();
    for (leaf, directives, why) in [
        ("plain", "", "no OCSP responder URL in the certificate \"@DIR@/plain.pem\""),
        (
            "safe",
            "",
            "invalid URL prefix in OCSP responder \"https://127.0.0.1:@P2@/\" in the certificate \
             \"@DIR@/safe.pem\"",
        ),
        (
            "lost",
            "",
            "host not found in OCSP responder \"no.such.host.invalid/\" in the certificate \
             \"@DIR@/lost.pem\"",
        ),
        ("cert", "", "issuer certificate not found for certificate \"@DIR@/cert.pem\""),
        (
            "plain",
            "ssl_stapling_responder http://127.0.0.1:x/;",
            "invalid port in OCSP responder \"127.0.0.1:x/\" in the certificate \
             \"@DIR@/plain.pem\"",
        ),
    ] {
        home.write("a", &conf(leaf, &format!("ssl_stapling on; {directives}")));
        let done = home.run(&["-t", "-c", &format!("{}/a", home.dir().display())]);
        let why = home.expand(&format!("[warn] \"ssl_stapling\" ignored, {why}\n"));
        assert_eq!(done.code, 0, "{leaf}: {}", done.stderr);
        assert!(done.stderr.contains(&why), "{leaf}: {}\n{why}", done.stderr);
    }
    for (directives, why) in [
        ("ssl_stapling maybe;", "invalid value \"maybe\" in \"ssl_stapling\" directive, it must"),
        ("ssl_stapling on; ssl_stapling on;", "\"ssl_stapling\" directive is duplicate in"),
        ("ssl_stapling on; ssl_stapling_file none;", "BIO_new_file(\"@DIR@/none\") failed"),
        ("ssl_stapling on; ssl_stapling_file ca.pem;", "d2i_OCSP_RESPONSE_bio(\"@DIR@/ca.pem\")"),
        (
            "ssl_stapling on; ssl_certificate_compression on;",
            "\"ssl_stapling\" is incompatible with \"ssl_certificate_compression\"",
        ),
    ] {
        home.write("a", &conf("a", directives));
        let done = home.run(&["-t", "-c", &format!("{}/a", home.dir().display())]);
        assert_eq!(done.code, 1, "{directives}");
        assert!(done.stderr.contains(&home.expand(why)), "{directives}: {}", done.stderr);
    }
}
