//! Open connections across a reload: a request belongs to a configuration whose rules its
//! connection has met.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use bolide_testkit::server::{LISTEN, prelude};
use bolide_testkit::{H1TestClient, TestServer, run, wait_until};

use crate::{BOLIDE, http};

const READY: &str = "server { listen 127.0.0.1:@HTTP@; return 200 ready; }";

/// A site on another port, with these directives.
fn other(directives: &str) -> String {
    format!("server {{ listen 127.0.0.1:@P2@ {directives} }}")
}

fn reload(server: &TestServer, sites: &str, generation: &str) {
    let sites = sites.replace("ready", generation);
    server.reload(&sites);
    wait_until("the new configuration", || server.get("/").text() == generation);
}

#[test]
fn a_connection_in_plain_text_gets_nothing_of_a_site_that_became_tls() {
    let server = http(&format!("{READY}{}", other("; return 200 old;")));
    let mut clients: Vec<_> = (0..4).map(|_| H1TestClient::connect(server.addr(2))).collect();
    let secret = " ssl; ssl_certificate @CERT@; ssl_certificate_key @KEY@; ssl_verify_client on;
                  ssl_client_certificate @CERT@; return 200 secret;";
    reload(&server, &format!("{READY}{}", other(secret)), "second");
    for client in &mut clients {
        let reply = client.get("/", "");
        // The worker may have closed it before it saw a byte.
        assert_eq!((reply.status, &*reply.text()), (200, "old"));
        assert!(client.is_closed(), "it is closed behind its request");
    }
}

#[test]
fn connections_of_an_address_that_is_gone_are_closed_behind_one_more_request() {
    let server = http(&format!("{READY}{}", other("; return 200 old;")));
    for (at, sites) in [
        READY.to_owned(),
        // The same port by another address.
        format!("{READY}{}", other("; deny all;").replace("127.0.0.1:@P2@", "*:@P2@")),
    ]
    .into_iter()
    .enumerate()
    {
        let mut used = H1TestClient::connect(server.addr(2));
        assert_eq!(used.get("/", "").text(), "old");
        let mut fresh = H1TestClient::connect(server.addr(2));
        reload(&server, &sites, &format!("gone{at}"));
        // One more request, because it may be on its way; its response says that it is the last.
        for client in [&mut used, &mut fresh] {
            let reply = client.get("/", "");
            assert_eq!((&*reply.text(), reply.header("connection")), ("old", Some("close")));
            assert!(client.is_closed(), "{sites}");
        }
        reload(&server, &format!("{READY}{}", other("; return 200 old;")), &format!("back{at}"));
    }
}

// A head of which a part has come is read to its end under the new configuration.
#[test]
fn the_rest_of_an_answered_body_does_not_count_as_the_last_request() {
    let server = http(&format!("{READY}{}", other("; return 200 old;")));
    let mut client = H1TestClient::connect(server.addr(2));
    // It is answered before its body has come.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nbody");
    assert_eq!(client.answer().text(), "old");
    reload(&server, READY, "gone");
    client.send("rest");
    // The next request is on its way, perhaps later than the rest.
    bolide_testkit::pause(200);
    let reply = client.get("/", "");
    assert_eq!((&*reply.text(), reply.header("connection")), ("old", Some("close")));
    assert!(client.is_closed());
}

#[test]
fn a_head_in_two_parts_survives_a_reload_to_fewer_servers() {
    let many = format!(
        "server {{ {LISTEN} server_name a.test; client_header_buffer_size 2k; return 200 ready; }}
         server {{ listen 127.0.0.1:@HTTP@; server_name c.test; client_header_buffer_size 8k;
             large_client_header_buffers 2 16k; return 200 c; }}"
    );
    let server = http(&many);
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: c.test\r\n");
    }
    bolide_testkit::pause(200);
    reload(&server, &format!("server {{ {LISTEN} return 200 ready; }}"), "one");
    for client in &mut clients {
        client.send("X: y\r\n");
        client.send("\r\n");
        assert_eq!(client.answer().text(), "one");
    }
    assert!(!server.error_log().contains("panicked"));
}

/// The verdict on a client's certificate counts for the configuration that made it.
#[test]
fn a_certificate_that_an_old_configuration_accepted_opens_no_new_site() {
    let home = bolide_testkit::server::Home::new(BOLIDE);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nginx/client_certs.sh");
    let clients = home.dir().join("clients");
    let _made = run("sh", [std::path::Path::new(script), &clients]).succeeded();
    let tls = |name: &str, authority: &str, text: &str| {
        format!(
            "server {{ listen 127.0.0.1:@HTTPS@ ssl; server_name {name}; ssl_certificate @CERT@;
                 ssl_certificate_key @KEY@; ssl_verify_client on;
                 ssl_client_certificate @DIR@/clients/{authority}.crt; return 200 \"{text}\"; }}"
        )
    };
    let both = tls("a.test", "root", "a") + &tls("b.test", "other", "b");
    let conf = |sites: &str| format!("{}http {{ {READY} {sites} }}", prelude(1));
    let server = TestServer::start(home, &conf(&both));
    let script = format!(
        "exec openssl s_client -brief -connect 127.0.0.1:{} -servername a.test \
         -cert {dir}/good.crt -key {dir}/good.key 2>&1",
        server.https().port(),
        dir = clients.display()
    );
    let mut client = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ESTABLISHED") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "no handshake");
    }
    server.rewrite(&conf(&tls("b.test", "other", "secret")).replace("ready", "second"));
    server.signal("HUP");
    wait_until("the new configuration", || server.get("/").text() == "second");
    let mut to = client.stdin.take().unwrap();
    to.write_all(b"GET / HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    lines.read_to_string(&mut reply).unwrap();
    client.wait().unwrap();
    assert!(!reply.contains("secret") && reply.contains(" 421 "), "{reply}");
}
