//! Uploads that wait for the server: they take nothing from others on the same connection, and
//! their clients are not late.

use bolide_testkit::tools::python;
use bolide_testkit::{H1TestClient, TestApp, TestServer, wait_until};

use crate::http;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/held_uploads.py");

/// Uploads to `/held` wait for `app`, those to `/queued` for one another.
fn server(app: &TestApp) -> TestServer {
    http(&format!(
        "http2 on; ssl_certificate @CERT@; ssl_certificate_key @KEY@;
         client_body_timeout 2s; client_max_body_size 100m;
         upstream one {{ server 127.0.0.1:@HTTP@ max_conns=1; queue 100 timeout=60s; }}
         server {{ listen 127.0.0.1:@P3@; location / {{ return 200; }} }}
         server {{ listen 127.0.0.1:@HTTP@; location / {{ proxy_pass http://127.0.0.1:@P3@; }} }}
         server {{ listen 127.0.0.1:@HTTPS@ ssl; listen 127.0.0.1:@HTTPS@ quic;
           listen 127.0.0.1:@P2@;
           location /held {{ auth_request /question; proxy_pass http://127.0.0.1:@HTTP@; }}
           location = /question {{ internal; fastcgi_pass {}; fastcgi_param REQUEST_URI /held;
             fastcgi_read_timeout 120s; }}
           location /ok {{ proxy_pass http://127.0.0.1:@HTTP@; }}
           location /queued {{ proxy_request_buffering off; proxy_pass http://one; }} }}",
        app.address()
    ))
}

fn ask(server: &TestServer, case: &str) -> String {
    let cert = server.home().dir().join("cert.pem");
    let case = format!("{case}@{}", server.https().port());
    python(CLIENT, [cert.to_str().unwrap(), &case]).succeeded().text().trim().to_owned()
}

#[test]
fn uploads_that_are_held_take_nothing_from_others() {
    let app = TestApp::start();
    app.hold("/held");
    let server = server(&app);
    for proto in ["h2", "h3"] {
        assert_eq!(ask(&server, &format!("{proto}.held")), "200", "{proto}");
    }
    app.release();
}

#[test]
fn a_held_upload_that_is_reset_ends_at_once() {
    let app = TestApp::start();
    app.hold("/held");
    let server = server(&app);
    let cert = server.home().dir().join("cert.pem");
    let case = format!("h3.left@{}", server.https().port());
    let client = std::thread::spawn(move || {
        python(CLIENT, [cert.to_str().unwrap(), &case]).succeeded().text()
    });
    let ended = || server.access_log().matches("POST /held ").count();
    wait_until("the uploads to end", || ended() == 20);
    assert!(!client.is_finished(), "the connection is still open");
    assert_eq!(client.join().unwrap().trim(), "200 200");
    app.release();
}

#[test]
fn uploads_that_an_upstream_takes_one_by_one_are_all_taken() {
    let server = server(&TestApp::start());
    for proto in ["h2", "h3"] {
        assert_eq!(ask(&server, &format!("{proto}.queued")), ["200"; 20].join(" "), "{proto}");
    }
}

#[test]
fn a_client_that_waits_for_100_continue_is_not_late() {
    let app = TestApp::start();
    app.hold("/held");
    let server = server(&app);
    let mut client = H1TestClient::connect(server.addr(2));
    let head =
        "POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    client.send(head);
    wait_until("the question is asked", || app.count("/held") == 1);
    bolide_testkit::pause(4500);
    app.release();
    assert_eq!(client.answer().status, 100);
    // From now on it has its time.
    bolide_testkit::pause(1000);
    assert_eq!(client.send("abc").answer().status, 200);
}
