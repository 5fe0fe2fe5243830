//! Scripts in the real php-fpm: PHP that crashes, hangs, is missing or responds badly, clients that
//! leave, and the cost of large bodies and many slow requests.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_testkit::server::LISTEN;
use bolide_testkit::{
    CurlReply, H1TestClient, Proto, SetOnDrop, TestPhp, TestServer, run, site, wait_until,
};

use crate::{http, report};

/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");

const SCRIPTS: [(&str, &str); 14] = [
    ("hello.php", "<?php echo 'hello from php';"),
    (
        "die.php",
        "<?php header('X-Before: 1'); if (isset($_GET['first'])) { echo str_repeat('first ', 2000);
         flush(); usleep(200000); } posix_kill(getmypid(), 9); sleep(9);",
    ),
    ("slow.php", "<?php usleep((int) $_GET['ms'] * 1000); echo 'slow';"),
    ("hang.php", "<?php if (isset($_GET['first'])) { echo 'first'; flush(); } sleep(60);"),
    ("endless.php", "<?php while (true) { echo str_repeat('x', 8000); flush(); usleep(1000); }"),
    ("silent.php", "<?php while (true) { sleep(1); echo ' '; flush(); }"),
    (
        "mark.php",
        "<?php ignore_user_abort(true); usleep(700000); file_put_contents($_GET['to'], 'done');",
    ),
    (
        "sum.php",
        "<?php $sum = hash_init('sha256'); $size = 0; $in = fopen('php://input', 'r');
         while (($part = fread($in, 1 << 16)) !== '' && $part !== false) {
             hash_update($sum, $part); $size += strlen($part);
         }
         echo $size, ' ', hash_final($sum), ' ', $_SERVER['CONTENT_LENGTH'] ?? 'none', ' ',
             $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['HTTP_TRANSFER_ENCODING'] ?? '-';",
    ),
    (
        "file.php",
        "<?php $file = $_FILES['file']; echo json_encode([$file['name'], $file['size'],
         hash_file('sha256', $file['tmp_name']), $_POST]);",
    ),
    (
        "large.php",
        "<?php $n = (int) $_GET['mb']; if (isset($_GET['length']))
             header('Content-Length: ' . ($n << 20));
         for ($i = 0; $i < $n; $i++) echo str_repeat(pack('N', $i), 1 << 18);",
    ),
    ("echo.php", "<?php header('X-Echo: ' . ($_GET['x'] ?? '')); echo 'echoed';"),
    ("odd.php", "<?php header_remove(); ini_set('default_mimetype', ''); echo $_GET['x'] ?? '';"),
    (
        "early.php",
        "<?php header('Status: 103'); header('Link: </style.css>; rel=preload; as=style'); flush();
         usleep(100000);
         echo \"Status: 200\\r\\nContent-Type: text/html\\r\\nX-Late: 1\\r\\n\\r\\nthe page\";",
    ),
    ("env.php", "<?php ksort($_SERVER); echo json_encode($_SERVER);"),
];

/// A server whose scripts run in `php`, with more directives of their location and the site.
fn serve(php: &TestPhp, location: &str, more: &str) -> TestServer {
    serve_from(&php.address(), location, more)
}

fn serve_from(address: &str, location: &str, more: &str) -> TestServer {
    let server = http(&format!(
        "client_max_body_size 0;
         server {{ {LISTEN} {more}
             location ~ \\.php$ {{ {PARAMS} fastcgi_pass {address}; {location} }} }}"
    ));
    for (name, text) in SCRIPTS {
        site::write(&server.www(name), text.as_bytes());
    }
    server
}

/// The results of a path in each protocol.
fn by_each(server: &TestServer, path: &str) -> Vec<(Proto, CurlReply)> {
    Proto::TLS
        .into_iter()
        .map(|proto| (proto, server.curl(proto).attempt(&server.url(proto, path))))
        .collect()
}

fn is_idle(php: &TestPhp) -> bool {
    let status = php.status();
    status.active == 0 && status.waiting == 0
}

#[test]
fn a_script_answers_by_each_protocol() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "");
    for (proto, reply) in by_each(&server, "/hello.php?a=b") {
        assert_eq!((reply.status, &*reply.text()), (200, "hello from php"), "{proto:?}");
        assert_eq!(reply.header("content-type"), Some("text/html; charset=UTF-8"), "{proto:?}");
    }
    assert_eq!(server.get("/hello.php").text(), "hello from php");
    assert_eq!(server.fetch(Proto::H2, "/none.php").status, 404);
    assert_eq!(server.fetch(Proto::H2, "/hello.txt").body, site::HELLO);
}

#[test]
fn applications_get_the_variables_that_they_read() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "");
    for proto in Proto::TLS {
        let curl = server.curl(proto).field("Authorization: Basic YTpi").field("Cookie: a=b");
        let reply = curl.field("Proxy: http://evil/").get(&server.url(proto, "/env.php?x=%20y"));
        let text = reply.text().replace("\\/", "/");
        let port = server.https().port();
        for wanted in [
            "\"HTTPS\":\"on\"".to_owned(),
            "\"REQUEST_SCHEME\":\"https\"".to_owned(),
            format!("\"SERVER_PORT\":\"{port}\""),
            format!("\"HTTP_HOST\":\"localhost:{port}\""),
            "\"SERVER_NAME\":\"localhost\"".to_owned(),
            "\"REQUEST_URI\":\"/env.php?x=%20y\"".to_owned(),
            "\"QUERY_STRING\":\"x=%20y\"".to_owned(),
            "\"SCRIPT_NAME\":\"/env.php\"".to_owned(),
            "\"PHP_SELF\":\"/env.php\"".to_owned(),
            "\"PHP_AUTH_USER\":\"a\"".to_owned(),
            "\"HTTP_AUTHORIZATION\":\"Basic YTpi\"".to_owned(),
            "\"HTTP_COOKIE\":\"a=b\"".to_owned(),
            "\"REMOTE_ADDR\":\"127.0.0.1\"".to_owned(),
            "\"GATEWAY_INTERFACE\":\"CGI/1.1\"".to_owned(),
            format!(
                "\"SERVER_PROTOCOL\":\"HTTP/{}\"",
                if proto == Proto::H1 { "1.1" } else { proto.version() }
            )
            .replace("/2\"", "/2.0\"")
            .replace("/3\"", "/3.0\""),
            format!("\"DOCUMENT_ROOT\":\"{}\"", server.www("").display()).replace("/\"", "\""),
        ] {
            assert!(text.contains(&wanted), "{proto:?}: no {wanted} in {text}");
        }
        assert!(!text.contains("evil"), "{proto:?}: {text}");
    }
}

#[test]
fn php_that_is_killed_before_its_head_gives_502() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "");
    for (proto, reply) in by_each(&server, "/die.php") {
        assert_eq!((reply.exit, reply.status), (0, 502), "{proto:?}: {}", reply.stderr);
        assert!(reply.text().contains("502 Bad Gateway"));
    }
    let log = server.error_log();
    let words = ["recv() failed (104: Connection reset by peer)", "upstream prematurely closed"];
    let lines = log.lines().filter(|line| line.contains("[error]"));
    let logged = |line: &str| {
        words.iter().any(|word| line.contains(word))
            && line.contains("while reading response header from upstream, client: 127.0.0.1")
            && line.contains(&format!("upstream: \"fastcgi://{}", php.address()))
    };
    assert_eq!(lines.filter(|line| logged(line)).count(), 3, "{log}");
    wait_until("php to be well again", || php.children().len() == 2);
    assert_eq!(server.get("/hello.php").text(), "hello from php");
}

#[test]
fn php_that_is_killed_after_its_head_cuts_the_answer_visibly() {
    let php = TestPhp::start(2);
    for (name, directives) in [("buffered", ""), ("unbuffered", "fastcgi_buffering off;")] {
        let server = serve(&php, directives, "");
        for (proto, reply) in by_each(&server, "/die.php?first=1") {
            assert_eq!(reply.status, 200, "{name} {proto:?}");
            assert_ne!(reply.exit, 0, "{name} {proto:?}: a whole answer of {}", reply.body.len());
        }
        // Plain HTTP/1.1: no last chunk, and the connection closes.
        let mut client = server.connect();
        client.send("GET /die.php?first=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let all = String::from_utf8_lossy(&client.to_end().unwrap()).into_owned();
        assert!(all.starts_with("HTTP/1.1 200") && !all.ends_with("\r\n0\r\n\r\n"), "{name}");
        wait_until("the other requests go on", || server.get("/hello.php").status == 200);
        // A connection with other streams survives the failure of one.
        let both = server.curl(Proto::H2).args(["--parallel"]);
        let url = server.url(Proto::H2, "/slow.php?ms=600");
        let reply = both.args([server.url(Proto::H2, "/die.php?first=1")]).attempt(&url);
        assert!(!reply.stderr.contains("GOAWAY"), "{name}: {}", reply.stderr);
    }
}

#[test]
fn php_that_hangs_gives_504_after_the_timeout() {
    let php = TestPhp::start(8);
    let server = serve(&php, "fastcgi_read_timeout 500ms;", "");
    for (proto, reply) in by_each(&server, "/hang.php") {
        assert_eq!((reply.exit, reply.status), (0, 504), "{proto:?}: {}", reply.stderr);
        assert!(reply.text().contains("504 Gateway Time-out"));
    }
    let words = "upstream timed out (110: Connection timed out) while reading response header";
    let logged = || server.error_log().matches(words).count();
    wait_until("a line of each", || logged() >= 3);
    assert_eq!(logged(), 3, "{}", server.error_log());
    for (proto, reply) in by_each(&server, "/hang.php?first=1") {
        assert_eq!(reply.status, 200, "{proto:?}");
        assert_ne!(reply.exit, 0, "{proto:?}: a whole answer");
    }
    assert_eq!(server.get("/hello.php").status, 200);
}

#[test]
fn a_missing_socket_gives_502_and_a_log_line_with_the_reason() {
    let dir = site::temp_dir();
    fs::write(dir.join("file"), "").unwrap();
    let refused = bolide_testkit::ports::TestPorts::claim();
    let refused = format!("127.0.0.1:{}", refused.port(0));
    let rows = [
        (format!("unix:{}/none", dir.display()), "crit", "(2: No such file or directory)", true),
        (format!("unix:{}/file", dir.display()), "error", "(111: Connection refused)", true),
        (refused, "error", "(111: Connection refused)", false),
    ];
    let mut failures = Vec::new();
    for (address, level, why, is_unix) in &rows {
        let server = serve_from(address, "", "error_page 504 /none;");
        for (proto, reply) in by_each(&server, "/hello.php") {
            if reply.status != 502 {
                failures.push(format!("{address} {proto:?}: {}", reply.status));
            }
        }
        let to = if *is_unix {
            format!("connect() to {address} failed")
        } else {
            "connect() failed".to_owned()
        };
        let end = if *is_unix { ":" } else { "" };
        let wanted = [
            format!("[{level}] "),
            format!(
                "{to} {why} while connecting to upstream, client: 127.0.0.1, server: localhost"
            ),
            format!("upstream: \"fastcgi://{address}{end}\""),
        ];
        let log = server.error_log();
        let logged =
            log.lines().filter(|line| wanted.iter().all(|part| line.contains(part))).count();
        if logged != 3 {
            failures.push(format!("{address}: {logged} of 3 lines with {wanted:?} in\n{log}"));
        }
    }
    report(rows.len(), &failures);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_answer_without_fields_is_an_answer() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "");
    for path in ["/odd.php", "/odd.php?x=text", "/odd.php?x=Status:%20404%0d%0a%0d%0ax"] {
        for (proto, reply) in by_each(&server, path) {
            assert_eq!((reply.exit, reply.status), (0, 200), "{path} {proto:?}: {}", reply.stderr);
        }
    }
}

#[test]
fn nothing_that_a_client_sends_becomes_a_field_of_the_answer() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "");
    for evil in [
        "%0d%0aX-Evil:%201",
        "%0aX-Evil:%201",
        "%0d%0a%20X-Evil:%201",
        "%0d%0a%0d%0aX-Evil",
        "%00%0d%0aX-Evil:%201",
        "%0dX-Evil:%201",
        "a%01b",
        "%7f",
        "%ff",
        "%e2%80%a8X-Evil:%201",
    ] {
        for (proto, reply) in by_each(&server, &format!("/echo.php?x={evil}")) {
            let clean = reply.header("x-evil").is_none() && reply.header(" x-evil").is_none();
            assert!(clean, "{proto:?} {evil}: {:?}", reply.headers);
            let known = [200, 500, 502].contains(&reply.status);
            assert!(
                reply.exit == 0 && known,
                "{proto:?} {evil}: {} {}",
                reply.status,
                reply.stderr
            );
        }
        let mut client = server.connect();
        let _first = client.get(&format!("/echo.php?x={evil}"), "");
        assert_eq!(client.get("/hello.php", "Connection: close\r\n").text(), "hello from php");
        assert!(client.is_closed());
    }
}

#[test]
fn a_client_that_leaves_frees_the_child() {
    let php = TestPhp::start(4);
    let server = serve(&php, "", "");
    for path in ["/endless.php", "/silent.php"] {
        for proto in Proto::TLS {
            let curl = server.curl(proto).args(["--max-time", "1"]);
            let reply = curl.attempt(&server.url(proto, path));
            assert_eq!(reply.exit, 28, "{path} {proto:?}: {}", reply.stderr);
            wait_until("the child to be free", || is_idle(&php));
        }
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        wait_until("a child at work", || php.status().active == 1);
        drop(client);
        wait_until("the child to be free", || is_idle(&php));
    }
}

#[test]
fn ignore_client_abort_lets_a_script_finish() {
    let php = TestPhp::start(2);
    let server = serve(&php, "fastcgi_ignore_client_abort on;", "");
    let mark = server.home().dir().join("mark");
    for proto in [Proto::H1, Proto::H2] {
        let path = format!("/mark.php?to={}", mark.display());
        let curl = server.curl(proto).args(["--max-time", "0.3"]);
        assert_eq!(curl.attempt(&server.url(proto, &path)).exit, 28);
        wait_until("the script to end", || mark.exists());
        fs::remove_file(&mark).unwrap();
    }
}

#[test]
fn a_client_that_stops_reading_holds_php_back_and_is_sent_away() {
    let php = TestPhp::start(4);
    let limits = "send_timeout 2s;";
    let server = serve(&php, "fastcgi_max_temp_file_size 0;", limits);
    let (before, accepted) = (server.resident_kib(), php.status().accepted);
    let mut clients: Vec<H1TestClient> = (0..2).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("GET /large.php?mb=200 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    wait_until("two requests", || php.status().accepted == accepted + 2);
    let peak = peak_while(&server, || wait_until("free children", || is_idle(&php)));
    assert!(peak.saturating_sub(before) < 16_000, "grew from {before} to {peak} KiB");
    // A slow client does not keep a child busy.
    assert_eq!(server.get("/hello.php").status, 200);
}

#[test]
fn one_log_line_reports_an_aborted_or_refused_client() {
    let php = TestPhp::start(2);
    let server = serve(&php, "fastcgi_max_temp_file_size 0;", "send_timeout 1s;");
    let logged = || {
        let log = server.error_log();
        let about = |line: &&str| ["client prem", "client timed"].iter().any(|w| line.contains(w));
        log.lines().filter(about).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut before = 0;
    for proto in Proto::TLS {
        let curl = server.curl(proto).args(["--max-time", "0.5"]);
        assert_eq!(curl.attempt(&server.url(proto, "/slow.php?ms=1200")).exit, 28);
        wait_until("the child to be free", || is_idle(&php));
        wait_until("a line", || logged().len() > before);
        bolide_testkit::pause(200);
        let lines = logged();
        assert_eq!(lines.len(), before + 1, "{proto:?}: {lines:#?}");
        assert!(lines[before].contains("client prematurely closed connection"), "{lines:#?}");
        before += 1;
    }
    let mut client = server.connect();
    client.send("GET /large.php?mb=50 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_until("a child at work", || php.status().active == 1);
    wait_until("a line", || logged().len() > before);
    wait_until("the child to be free", || is_idle(&php));
    bolide_testkit::pause(200);
    let lines = logged();
    assert_eq!(lines.len(), before + 1, "{lines:#?}");
    assert!(lines[before].contains("client timed out"), "{lines:#?}");
}

#[test]
fn a_stream_that_takes_nothing_is_sent_away_though_its_neighbour_waits_for_php() {
    let php = TestPhp::start(2);
    let server = serve(&php, "fastcgi_max_temp_file_size 0;", "send_timeout 1s;");
    let text = "<?php while (!file_exists($_GET['to'])) { usleep(10000); clearstatcache(); }";
    site::write(&server.www("until.php"), text.as_bytes());
    for (number, proto) in [Proto::H2, Proto::H3].into_iter().enumerate() {
        let mark = server.home().dir().join(format!("mark{number}"));
        let waiting = server.url(proto, &format!("/until.php?to={}", mark.display()));
        let stalled = server.url(proto, "/large.php?mb=200");
        let before = php.status().accepted;
        std::thread::scope(|scope| {
            let curl =
                server.curl(proto).args(["--max-time", "12", "-Z", "--limit-rate", "1", &waiting]);
            let client = scope.spawn(|| curl.attempt(&stalled));
            // Both may be at work for a second only, which a busy machine does not see.
            wait_until("two requests", || php.status().accepted == before + 2);
            wait_until("the stalled one to be free", || php.status().active == 1);
            assert!(!client.is_finished(), "{proto:?}: the connection goes on");
            fs::write(&mark, "").unwrap();
            wait_until("both to be free", || is_idle(&php));
        });
    }
}

/// The maximum resident memory (KiB) of the server during `work`.
fn peak_while(server: &TestServer, work: impl FnOnce()) -> u64 {
    let (over, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(server.resident_kib(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let _over = SetOnDrop(&over);
        work();
    });
    peak.into_inner()
}

/// A file of `size` bytes without equal blocks, and its SHA-256.
fn upload(size: u64) -> (PathBuf, String) {
    let path = site::temp_dir().join("upload");
    let mut file = fs::File::create(&path).unwrap();
    let mut block = site::noise(1 << 20, 3);
    for n in 0..size >> 20 {
        block[..8].copy_from_slice(&n.to_le_bytes());
        file.write_all(&block).unwrap();
    }
    file.write_all(&block[..(size % (1 << 20)) as usize]).unwrap();
    let sum = run("sha256sum", [&path]).succeeded().text();
    (path, sum.split(' ').next().unwrap().to_owned())
}

fn send_large(proto: Proto, size: u64, location: &str, more: &[&str]) {
    let php = TestPhp::start(2);
    let server = serve(&php, location, "");
    assert_eq!(server.get("/hello.php").status, 200);
    let (path, sum) = upload(size);
    let before = server.resident_kib();
    let mut reply = CurlReply::default();
    let peak = peak_while(&server, || {
        let curl = server.curl(proto).args(["-T", path.to_str().unwrap(), "--max-time", "300"]);
        reply = curl.args(more.iter().copied()).get(&server.url(proto, "/sum.php"));
    });
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let length =
        if more.is_empty() || location.is_empty() { size.to_string() } else { String::new() };
    let wanted = format!("{size} {sum} {length}");
    assert!(reply.text().starts_with(&wanted), "{}\ninstead of {wanted}", reply.text());
    assert!(peak.saturating_sub(before) <= 32 * 1024, "from {before} to {peak} KiB");
    wait_until("the temporary file to go", || is_idle(&php));
}

const CHUNKED: [&str; 2] = ["-H", "Transfer-Encoding: chunked"];
/// Six times the memory that an upload may take, where it is kept in a file first.
const LARGE: u64 = 192 << 20;

#[test]
fn a_large_file_is_uploaded_with_flat_memory_by_h1() {
    send_large(Proto::H1, LARGE, "", &[]);
}

#[test]
fn a_large_file_is_uploaded_with_flat_memory_by_h2() {
    send_large(Proto::H2, LARGE, "", &[]);
}

#[test]
fn a_gigabyte_is_uploaded_with_flat_memory_unbuffered() {
    send_large(Proto::H1, 1 << 30, "fastcgi_request_buffering off;", &[]);
}

#[test]
fn large_uploads_arrive_whole_by_each_protocol_and_framing() {
    let size = (60 << 20) + 4321;
    for location in ["", "fastcgi_request_buffering off;"] {
        send_large(Proto::H2, size, location, &[]);
        send_large(Proto::H3, size, location, &[]);
    }
    send_large(Proto::H1, size, "", &CHUNKED);
}

#[test]
fn small_uploads_arrive_whole_by_each_protocol_and_framing() {
    let php = TestPhp::start(2);
    let mut failures = Vec::new();
    for location in ["", "fastcgi_request_buffering off;", "client_body_buffer_size 1k;"] {
        let server = serve(&php, location, "");
        for size in [0, 1, 1023, 1025, 16_384, 65_535, 65_536, 200_000] {
            let (path, sum) = upload(size);
            for proto in Proto::TLS {
                for framing in [&[][..], &CHUNKED] {
                    // php-fpm reads the declared length: as with nginx, nothing of
                    // what is streamed without one.
                    let is_declared = framing.is_empty() || !location.contains("request_buffering");
                    if !is_declared || proto != Proto::H1 && !framing.is_empty() {
                        continue;
                    }
                    let curl = server.curl(proto).args(["-T", path.to_str().unwrap()]);
                    let reply =
                        curl.args(framing.iter().copied()).get(&server.url(proto, "/sum.php"));
                    if !reply.text().starts_with(&format!("{size} {sum} ")) {
                        failures.push(format!(
                            "{location} {proto:?} {size} {framing:?}: {}",
                            reply.text()
                        ));
                    }
                }
                let form = server.curl(proto).args(["-F", &format!("file=@{}", path.display())]);
                let reply = form.args(["-F", "a=b c"]).get(&server.url(proto, "/file.php"));
                let wanted = format!("[\"upload\",{size},\"{sum}\",{{\"a\":\"b c\"}}]");
                if reply.text() != wanted {
                    failures.push(format!("{location} {proto:?} form {size}: {}", reply.text()));
                }
            }
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
        }
    }
    report(144, &failures);
}

#[test]
fn a_body_over_its_limit_gets_413_and_reaches_no_script() {
    let php = TestPhp::start(2);
    let server = serve(&php, "client_max_body_size 100k;", "");
    let (path, _) = upload(200_000);
    let accepted = php.status().accepted;
    for proto in Proto::TLS {
        for framing in [&[][..], &CHUNKED] {
            if proto != Proto::H1 && !framing.is_empty() {
                continue;
            }
            let curl = server.curl(proto).args(["-T", path.to_str().unwrap()]);
            let reply = curl.args(framing.iter().copied()).attempt(&server.url(proto, "/sum.php"));
            assert_eq!(reply.status, 413, "{proto:?} {framing:?}: {}", reply.stderr);
        }
    }
    assert_eq!(php.status().accepted, accepted);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn two_hundred_slow_requests_cost_forty_kilobytes_each_at_most() {
    let php = TestPhp::start(8);
    let server = serve(&php, "", "");
    let warm = |count: usize| {
        let mut clients: Vec<H1TestClient> = (0..count).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send("GET /slow.php?ms=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        }
        clients.iter_mut().for_each(|client| assert_eq!(client.answer().status, 200));
    };
    warm(4);
    let before = server.resident_kib();
    let mut clients: Vec<H1TestClient> = (0..200).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("GET /slow.php?ms=150 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let peak = peak_while(&server, || {
        for client in &mut clients {
            assert_eq!(client.answer().text(), "slow");
        }
    });
    let each = peak.saturating_sub(before) / 200;
    assert!(each <= 40, "{each} KiB each: from {before} to {peak}");
}

#[test]
fn large_answers_arrive_whole_with_flat_memory() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "");
    assert_eq!(server.get("/hello.php").status, 200);
    let before = server.resident_kib();
    let megabytes = 64_u32;
    let peak = peak_while(&server, || {
        for (proto, query) in Proto::TLS.into_iter().flat_map(|p| [(p, ""), (p, "&length=1")]) {
            let path = format!("/large.php?mb={megabytes}{query}");
            let curl = server.curl(proto).args(["--limit-rate", "60m"]);
            let reply = curl.get(&server.url(proto, &path));
            assert_eq!(reply.body.len(), (megabytes << 20) as usize, "{proto:?} {query}");
            let right = reply
                .body
                .chunks(1 << 20)
                .zip(0_u32..)
                .all(|(block, n)| block == n.to_be_bytes().repeat(block.len() / 4));
            assert!(right, "{proto:?} {query}");
        }
    });
    assert!(peak.saturating_sub(before) <= 32 * 1024, "from {before} to {peak} KiB");
}

#[test]
fn an_early_hint_is_sent_before_the_answer() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "early_hints on;");
    let mut client = server.connect();
    client.send("GET /early.php HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let early = client.try_answer("HEAD").unwrap();
    assert_eq!(early.status, 103);
    assert_eq!(early.header("link"), Some("</style.css>; rel=preload; as=style"));
    let late = client.answer();
    assert_eq!((late.status, &*late.text()), (200, "the page"));
    assert_eq!(late.header("x-late"), Some("1"));
    for (proto, reply) in by_each(&server, "/early.php") {
        assert_eq!((reply.status, &*reply.text()), (200, "the page"), "{proto:?}");
        let [early] = &reply.before[..] else { panic!("{proto:?}: {:?}", reply.before) };
        assert!(early.contains(" 103"), "{proto:?}: {early}");
        let link = "link: </style.css>; rel=preload; as=style";
        assert_eq!(early.to_ascii_lowercase().matches(link).count(), 1, "{proto:?}: {early}");
        assert_eq!((reply.header("link"), reply.header("x-late")), (None, Some("1")), "{proto:?}");
    }
}

/// A real lsphp on its own socket; it ends with the test.
pub(crate) struct Lsphp {
    child: std::process::Child,
    dir: PathBuf,
}

impl Lsphp {
    pub(crate) fn start() -> Self {
        let dir = site::temp_dir();
        let child = Command::new(bolide_testkit::tool("lsphp"))
            .arg("-b")
            .arg(dir.join("ls.sock"))
            .env("PHP_LSAPI_CHILDREN", "2")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(dir.join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let lsphp = Self { child, dir };
        wait_until("lsphp to listen", || lsphp.socket().exists());
        lsphp
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("ls.sock")
    }
}

impl Drop for Lsphp {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _gone = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
        let _gone = self.child.wait();
        let _gone = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn lsphp_answers_by_each_protocol_and_gets_bodies_and_variables() {
    let lsphp = Lsphp::start();
    let server = http(&format!(
        "client_max_body_size 0;
         server {{ {LISTEN} location ~ \\.php$ {{
             {PARAMS} lsapi_pass unix:{}; fastcgi_read_timeout 2s; }} }}",
        lsphp.socket().display()
    ));
    for (name, text) in SCRIPTS {
        site::write(&server.www(name), text.as_bytes());
    }
    for (proto, reply) in by_each(&server, "/hello.php?a=b") {
        assert_eq!((reply.status, &*reply.text()), (200, "hello from php"), "{proto:?}");
    }
    let env = server.curl(Proto::H2).field("X-Own: y").get(&server.url(Proto::H2, "/env.php?q=1"));
    for wanted in ["\"QUERY_STRING\":\"q=1\"", "\"HTTP_X_OWN\":\"y\"", "\"HTTPS\":\"on\""] {
        assert!(env.text().contains(wanted), "{wanted}: {}", env.text());
    }
    const TYPE: &str = "Content-Type: application/octet-stream";
    let (file, sum) = upload(3_000_000);
    for proto in Proto::TLS {
        let data = format!("@{}", file.display());
        let url = server.url(proto, "/sum.php");
        let reply = server.curl(proto).args(["--data-binary", &data]).field(TYPE).get(&url);
        assert_eq!(reply.text(), format!("3000000 {sum} 3000000 POST -"), "{proto:?}");
        let reply = server.curl(proto).attempt(&server.url(proto, "/large.php?mb=3"));
        assert_eq!((reply.exit, reply.status, reply.body.len()), (0, 200, 3 << 20), "{proto:?}");
    }
    assert_eq!(server.get("/slow.php?ms=5000").status, 504);
    let echoed = server.get("/echo.php?x=a%0d%0aX-Evil:1");
    assert!(echoed.header("x-evil").is_none(), "{echoed:?}");
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
    let text = b"<?php header('Status: 503 Not Now'); echo 'later';";
    site::write(&server.www("status.php"), text);
    for (proto, reply) in by_each(&server, "/status.php") {
        assert_eq!((reply.status, reply.header("status")), (503, None), "{proto:?}");
    }
    let text = "<?php echo str_repeat('begun', 20000); flush(); usleep(200000);
        shell_exec('kill -9 ' . getmypid());";
    site::write(&server.www("end.php"), text.as_bytes());
    for (proto, reply) in by_each(&server, "/end.php") {
        assert!(reply.exit != 0, "{proto:?}: a cut answer looks complete: {}", reply.status);
    }
    wait_until("another child", || server.get("/hello.php").text() == "hello from php");
}

#[test]
fn slow_scripts_do_not_hold_files_up() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "");
    let mut slow: Vec<H1TestClient> = (0..3).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send("GET /slow.php?ms=700 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    wait_until("a child at work", || php.status().active == 1);
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(server.get("/hello.txt").body, site::HELLO);
    }
    // Three scripts in sequence take two seconds; the files were sent long before.
    assert_eq!(php.status().active, 1, "{:?}", start.elapsed());
    slow.iter_mut().for_each(|client| assert_eq!(client.answer().text(), "slow"));
}
