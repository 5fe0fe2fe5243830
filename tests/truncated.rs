//! Files too large for memory that change while they are sent, by each protocol.

use std::fs::{self, File};
use std::path::Path;

use bolide_testkit::app::AppSaid;
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Proto, TestApp, TestServer, wait_until};

use crate::{http, site};

const SIZE: usize = 6_000_000;
/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");

/// A client over `proto`, HTTP/1 in the clear if there is none, that gets a file at a pace, while
/// `change` is done to the file; how many bytes it gets, and what the error log has.
fn while_sent(
    proto: Option<Proto>,
    directives: &str,
    fields: &str,
    change: fn(&Path),
) -> (usize, String) {
    let server = site(&format!("limit_rate 2m; gzip_types text/plain; {directives}"));
    let (_exit, got) = get_while(&server, proto, "/big.txt", fields, change);
    (got.len(), server.error_log())
}

/// How curl ends, and what a client gets of `target`, while `change` is done to a file.
fn get_while(
    server: &TestServer,
    proto: Option<Proto>,
    target: &str,
    fields: &str,
    change: fn(&Path),
) -> (i32, Vec<u8>) {
    let path = server.www("big.txt");
    // What does not compress.
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    fs::write(&path, noise.take(SIZE).collect::<Vec<u8>>()).unwrap();
    let got = server.home().dir().join("got");
    let _before = fs::remove_file(&got);
    let into = got.to_str().unwrap().to_owned();
    let url = server.url(proto.unwrap_or(Proto::H2c), target);
    let curl =
        server.curl(proto.unwrap_or(Proto::H1)).field(fields).args(["--no-buffer", "-o", &into]);
    let asking = std::thread::spawn(move || curl.attempt(&url));
    let len = || fs::metadata(&got).map_or(0, |meta| meta.len());
    // The first byte may be of the page around the file, which is opened after that.
    wait_until("the first bytes of the file", || len() > 1);
    change(&path);
    let reply = asking.join().unwrap();
    (reply.exit, fs::read(&got).unwrap())
}

fn truncate(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(3_000_000).unwrap();
}

fn rewrite(path: &Path) {
    use std::io::Write;
    let mut file = File::options().write(true).open(path).unwrap();
    file.write_all(&vec![b'x'; SIZE]).unwrap();
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_is_cut_and_named_in_the_log() {
    let mut failures = Vec::new();
    let rows = [
        (None, "", "sendfile() reported that \""),
        (Some(Proto::H1), "", "pread() read only "),
        (Some(Proto::H2c), "", "pread() read only "),
        (Some(Proto::H2), "", "pread() read only "),
        (Some(Proto::H3), "", "pread() read only "),
        (None, "gzip on;", "pread() read only "),
        (None, "sub_filter xyzzy plugh; sub_filter_types *;", "pread() read only "),
    ];
    for (proto, directives, wanted) in rows {
        let (len, log) = while_sent(proto, directives, "Accept-Encoding: gzip", truncate);
        let line = log.lines().find(|line| line.contains("[alert]")).unwrap_or_default();
        let is_right = len < SIZE
            && line.contains(wanted)
            && line.contains("/big.txt\"")
            && line.contains("while sending response to client, client: ")
            && line.contains("request: \"GET /big.txt ")
            && !log.contains("prematurely");
        if !is_right {
            failures.push(format!("{proto:?} {directives}: {len} bytes, log:\n{log}"));
        }
    }
    crate::report(rows.len(), &failures);
}

#[test]
fn a_shrinking_part_aborts_its_page_unless_the_page_continues() {
    let app = TestApp::start();
    let server = http(&format!(
        "server {{ {LISTEN} limit_rate 2m;
             location / {{ {PARAMS} fastcgi_pass {}; page_cache auto; }}
             location = /big.txt {{ }} location = /ssi.html {{ ssi on; }} }}",
        app.address()
    ));
    let esi = "Surrogate-Control: content=\"ESI/1.0\"\nContent-Type: text/html";
    for (target, more) in [("/break", ""), ("/on", " onerror='continue'")] {
        let page = format!("a<esi:include src='/big.txt'{more}/>b");
        app.plan(target, vec![AppSaid::head(esi).body(page.as_bytes())]);
    }
    fs::write(server.www("ssi.html"), "a<!--#include virtual='/big.txt' -->b").unwrap();
    for target in ["/break", "/on", "/ssi.html"] {
        for proto in Proto::TLS {
            let before = server.error_log().len();
            let (exit, got) = get_while(&server, Some(proto), target, "X: y", truncate);
            let log = server.error_log().split_off(before);
            let goes_on = target == "/on";
            assert_eq!(exit == 0, goes_on, "{target} {proto:?}: {log}");
            assert!(got.len() < SIZE && got.starts_with(b"a"), "{target} {proto:?}");
            assert_eq!(got.ends_with(b"b"), goes_on, "{target} {proto:?}");
            let alerts: Vec<_> = log.lines().filter(|line| line.contains("[alert]")).collect();
            assert!(
                matches!(&alerts[..], [line] if line.contains("/big.txt\"")),
                "{target} {proto:?}: {log}"
            );
            assert!(!log.contains("prematurely"), "{target} {proto:?}: {log}");
        }
    }
}

#[test]
fn a_file_that_is_rewritten_while_it_is_sent_has_the_length_that_was_stated() {
    let mut failures = Vec::new();
    let all = [None, Some(Proto::H1), Some(Proto::H2), Some(Proto::H2c), Some(Proto::H3)];
    for proto in all {
        let (len, log) = while_sent(proto, "", "X: y", rewrite);
        if len != SIZE || log.contains("[alert]") {
            failures.push(format!("{proto:?}: {len} bytes, log:\n{log}"));
        }
    }
    crate::report(all.len(), &failures);
}
