//! The demo page in a real browser, over HTTP/2 and HTTP/3.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bolide_testkit::certs::key_hash;
use bolide_testkit::{TestServer, tool};

use crate::BOLIDE;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/demo");

/// The demo's own files, served as `bolide demo` serves them.
fn demo() -> TestServer {
    let listen = bolide_testkit::server::LISTEN.replace("root @DIR@/www;", "");
    TestServer::with(
        BOLIDE,
        &format!(
            "gzip on; gzip_types text/css application/javascript image/svg+xml;
             server {{ {listen} root {DEMO}; error_page 404 /404.html; charset utf-8; }}"
        ),
    )
}

/// The page in Chromium after its scripts ran.
fn page(server: &TestServer, more: &[String]) -> String {
    let profile = server.home().dir().join("chromium");
    let port = server.https().port();
    let mut command = Command::new(tool("chromium"));
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!(
            "--ignore-certificate-errors-spki-list={}",
            key_hash(&server.home().dir().join("cert.pem"))
        ))
        // 127.0.0.1 under the certificate's name: Chromium would also try ::1.
        .arg("--host-resolver-rules=MAP localhost 127.0.0.1")
        .args(more)
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("https://localhost:{port}/"));
    let done = bolide_testkit::tools::finish("chromium", command, Duration::from_secs(120));
    assert_eq!(done.code, 0, "{done}");
    done.text()
}

/// The protocols of the page's requests, as the page reports them.
fn protocols(page: &str) -> Vec<String> {
    page.split("data-protocol=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn chromium_shows_the_demo_by_h2() {
    let server = demo();
    let page = page(&server, &["--disable-quic".to_owned()]);
    let seen = protocols(&page);
    assert!(seen.len() >= 5 && seen.iter().all(|p| p == "h2"), "{seen:?}\n{page}");
}

#[test]
fn chromium_shows_the_demo_by_h3() {
    let server = demo();
    let origin = format!("localhost:{}", server.https().port());
    let flags = ["--enable-quic".to_owned(), format!("--origin-to-force-quic-on={origin}")];
    let page = page(&server, &flags);
    let seen = protocols(&page);
    assert!(seen.len() >= 5 && seen.iter().all(|p| p == "h3"), "{seen:?}\n{page}");
    assert!(server.access_log().contains("HTTP/3.0\" 200"), "{}", server.access_log());
}

#[test]
fn every_file_that_the_demo_names_is_there() {
    let page = fs::read_to_string(Path::new(DEMO).join("index.html")).unwrap();
    let mut named = 0;
    for mark in ["href=\"", "src=\""] {
        for rest in page.split(mark).skip(1) {
            let name = rest.split('"').next().unwrap_or_default();
            if name.starts_with("http") || name.starts_with('#') || name == "/nowhere" {
                continue;
            }
            let file = Path::new(DEMO).join(name.trim_start_matches('/'));
            assert!(file.exists(), "{name}");
            named += 1;
        }
    }
    assert!(named >= 4, "only {named} names in the page");
}
