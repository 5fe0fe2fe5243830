//! Static files: conditional requests, ranges, directories, links, listings, changes.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bolide_testkit::site::{HELLO, HELLO_ETAG, LAST_MODIFIED, MTIME, touch};
use bolide_testkit::{H1TestClient, Proto, Response};

use crate::{report, site};

/// The effect of conditions on a request for an unchanged file.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Condition {
    Pass,
    NotModified,
    Failed,
}
use Condition::{Failed, NotModified, Pass};

const OLDER: &str = "Mon, 13 Nov 2023 22:13:20 GMT";
const NEWER: &str = "Wed, 15 Nov 2023 22:13:20 GMT";

/// `%E` is the file's entity tag, `%M` its date, `%O` and `%N` an older and a newer one.
#[rustfmt::skip]
const CONDITIONS: &[(&str, Condition)] = &[
    ("", Pass),
    ("If-None-Match: %E", NotModified),
    ("If-None-Match: W/%E", NotModified),
    ("If-None-Match: *", NotModified),
    ("If-None-Match: \"other\"", Pass),
    ("If-None-Match: \"other\", %E", NotModified),
    ("If-None-Match: \"other\",%E", NotModified),
    ("If-None-Match: junk", Pass),
    ("If-Modified-Since: %M", NotModified),
    ("If-Modified-Since: %O", Pass),
    // nginx's default is if_modified_since exact.
    ("If-Modified-Since: %N", Pass),
    ("If-Modified-Since: junk", Pass),
    ("If-None-Match: \"other\"\r\nIf-Modified-Since: %M", Pass),
    ("If-None-Match: %E\r\nIf-Modified-Since: %M", NotModified),
    ("If-Match: %E", Pass),
    ("If-Match: *", Pass),
    ("If-Match: \"other\", %E", Pass),
    ("If-Match: \"other\"", Failed),
    ("If-Match: W/%E", Failed),
    ("If-Unmodified-Since: %M", Pass),
    ("If-Unmodified-Since: %N", Pass),
    ("If-Unmodified-Since: %O", Failed),
    ("If-Match: %E\r\nIf-None-Match: %E", NotModified),
    ("If-Match: \"other\"\r\nIf-None-Match: %E", Failed),
    ("If-Unmodified-Since: %M\r\nIf-Modified-Since: %M", NotModified),
];

/// The effect of a Range field on a file of 14 bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Asked {
    Whole,
    /// First byte and the one after the last.
    Part(usize, usize),
    Parts(&'static [(usize, usize)]),
    Nothing,
}
use Asked::{Nothing, Part, Parts, Whole};

#[rustfmt::skip]
const RANGES: &[(&str, Asked)] = &[
    ("", Whole),
    ("Range: bytes=0-4", Part(0, 5)),
    ("Range: bytes=7-", Part(7, 14)),
    ("Range: bytes=-4", Part(10, 14)),
    ("Range: bytes=0-0", Part(0, 1)),
    ("Range: bytes=13-13", Part(13, 14)),
    ("Range: bytes=0-999", Part(0, 14)),
    ("Range: bytes=-999", Part(0, 14)),
    ("Range: bytes=0-1,4-5", Parts(&[(0, 2), (4, 6)])),
    ("Range: bytes=0-1, -1", Parts(&[(0, 2), (13, 14)])),
    ("Range: bytes=0-1,99-", Part(0, 2)),
    ("Range: bytes=14-", Nothing),
    ("Range: bytes=99-100", Nothing),
    ("Range: bytes=-0", Nothing),
    ("Range: bytes=5-4", Nothing),
    ("Range: bytes=abc", Nothing),
    ("Range: bytes=1-2x", Nothing),
    ("Range: items=0-4", Whole),
    // The ranges exceed the file: the whole file is cheaper.
    ("Range: bytes=0-9,0-9", Whole),
    ("Range: bytes=0-4\r\nIf-Range: %E", Part(0, 5)),
    ("Range: bytes=0-4\r\nIf-Range: %M", Part(0, 5)),
    ("Range: bytes=0-4\r\nIf-Range: \"other\"", Whole),
    ("Range: bytes=0-4\r\nIf-Range: %O", Whole),
    ("Range: bytes=0-4\r\nIf-Range: %N", Whole),
];

/// The status of a request, by the order of RFC 9110 §13.2.2 with nginx's exceptions.
fn status_of(method: &str, condition: Condition, asked: Asked) -> u16 {
    if method != "GET" && method != "HEAD" {
        return 405;
    }
    match (condition, asked) {
        (Failed, _) => 412,
        (NotModified, _) => 304,
        (Pass, Whole) => 200,
        (Pass, Part(..) | Parts(_)) => 206,
        (Pass, Nothing) => 416,
    }
}

fn fields(text: &str) -> String {
    let text = text.replace("%E", HELLO_ETAG).replace("%M", LAST_MODIFIED);
    let text = text.replace("%O", OLDER).replace("%N", NEWER);
    if text.is_empty() { text } else { text + "\r\n" }
}

/// Why a response is wrong.
fn verdict(method: &str, condition: Condition, asked: Asked, answer: &Response) -> Option<String> {
    let status = status_of(method, condition, asked);
    if answer.status != status {
        return Some(format!("want {status}, got {}", answer.status));
    }
    let has = |name: &str, value: Option<&str>| {
        let got = answer.header(name);
        (got != value).then(|| format!("want {name}: {value:?}, got {got:?}"))
    };
    let body = |wanted: &[u8]| {
        let wanted = if method == "HEAD" { b"" } else { wanted };
        (answer.body != wanted).then(|| format!("body {:?}", answer.text()))
    };
    let validators = || has("ETag", Some(HELLO_ETAG)).or(has("Last-Modified", Some(LAST_MODIFIED)));
    match (status, asked) {
        (200, _) => has("Content-Length", Some("14"))
            .or_else(validators)
            .or_else(|| has("Content-Range", None))
            .or_else(|| body(HELLO)),
        (206, Part(from, to)) => has("Content-Length", Some(&(to - from).to_string()))
            .or_else(validators)
            .or_else(|| has("Content-Range", Some(&format!("bytes {from}-{}/14", to - 1))))
            .or_else(|| body(&HELLO[from..to])),
        (206, Parts(parts)) => validators().or_else(|| multipart(method, parts, answer)),
        (304, _) => validators().or_else(|| has("Content-Length", None)).or_else(|| body(b"")),
        (416, _) => has("Content-Range", Some("bytes */14")),
        _ => None,
    }
}

fn multipart(method: &str, parts: &[(usize, usize)], answer: &Response) -> Option<String> {
    let kind = answer.header("Content-Type").unwrap_or_default();
    let Some(mark) = kind.strip_prefix("multipart/byteranges; boundary=") else {
        return Some(format!("content type {kind}"));
    };
    if mark.len() != 20 || !mark.bytes().all(|b| b.is_ascii_digit()) {
        return Some(format!("boundary {mark}"));
    }
    let mut body = String::new();
    for (from, to) in parts {
        let text = String::from_utf8_lossy(&HELLO[*from..*to]);
        body.push_str(&format!(
            "\r\n--{mark}\r\nContent-Type: text/plain\r\nContent-Range: bytes {from}-{}/14\r\n\r\n\
             {text}",
            to - 1
        ));
    }
    body.push_str(&format!("\r\n--{mark}--\r\n"));
    let length = answer.header("Content-Length").unwrap_or_default();
    if length != body.len().to_string() {
        return Some(format!("length {length} instead of {}", body.len()));
    }
    let wrong = method == "GET" && answer.text() != body;
    wrong.then(|| format!("body {:?}", answer.text()))
}

#[test]
fn conditions_ranges_and_methods_answer_as_their_truth_table_says() {
    let server = site("");
    let mut client = server.connect();
    let mut failures = Vec::new();
    let mut rows = 0;
    for method in ["GET", "HEAD", "POST", "DELETE"] {
        for (condition_text, condition) in CONDITIONS {
            for (range_text, asked) in RANGES {
                rows += 1;
                let more = fields(condition_text) + &fields(range_text);
                client.send(format!("{method} /hello.txt HTTP/1.1\r\nHost: a\r\n{more}\r\n"));
                let (why, closing) = match client.try_answer(method) {
                    Ok(answer) => {
                        // nginx closes after 412 without `Connection: close`.
                        let closing = answer.header("connection") != Some("keep-alive")
                            || answer.status == 412;
                        (verdict(method, *condition, *asked, &answer), closing)
                    }
                    Err(why) => (Some(why), true),
                };
                if closing {
                    client = server.connect();
                }
                if let Some(why) = why {
                    failures.push(format!("{method} {condition_text:?} {range_text:?}: {why}"));
                }
            }
        }
    }
    report(rows, &failures);
}

/// Accept-Encoding, the coding of the response, whether ranges are possible.
const CODINGS: &[(&str, Option<&str>)] = &[
    ("", None),
    ("Accept-Encoding: gzip", Some("gzip")),
    ("Accept-Encoding: gzip;q=0", None),
    ("Accept-Encoding: identity", None),
];

#[test]
fn conditions_and_ranges_hold_for_coded_answers() {
    let server = site("gzip on; gzip_types text/plain text/css; gzip_min_length 1;");
    let mut client = server.connect();
    let plain = fs::read(server.www("style.css")).unwrap();
    let etag = client.get("/style.css", "").header("ETag").unwrap().to_owned();
    let mut failures = Vec::new();
    let mut rows = 0;
    for (accept, coding) in CODINGS {
        let weak = if coding.is_some() { format!("W/{etag}") } else { etag.clone() };
        for (condition, status) in [
            (String::new(), 200),
            (format!("If-None-Match: {etag}"), 304),
            (format!("If-None-Match: {weak}"), 304),
            ("If-None-Match: \"other\"".to_owned(), 200),
            (format!("If-Modified-Since: {LAST_MODIFIED}"), 304),
            (format!("If-Match: {etag}"), 200),
            ("If-Match: \"other\"".to_owned(), 412),
            // A range selects bytes of the identity coding; a compressed response has none.
            ("Range: bytes=0-9".to_owned(), if coding.is_some() { 200 } else { 206 }),
        ] {
            rows += 1;
            let line =
                |text: &str| if text.is_empty() { String::new() } else { format!("{text}\r\n") };
            let answer = client.get("/style.css", &(line(accept) + &line(&condition)));
            let row = format!("{accept:?} {condition:?}");
            if answer.header("connection") != Some("keep-alive") || status == 412 {
                client = server.connect();
            }
            if answer.status != status {
                failures.push(format!("{row}: want {status}, got {}", answer.status));
                continue;
            }
            if status == 412 {
                continue;
            }
            let coded = status == 200 && coding.is_some();
            let want = coding.filter(|_| coded);
            if answer.header("Content-Encoding") != want {
                failures.push(format!("{row}: coding {:?}", answer.header("Content-Encoding")));
            }
            if coded && (answer.header("Accept-Ranges").is_some() || answer.body.len() > 200) {
                failures.push(format!("{row}: {:?}", answer.headers));
            }
            if coded && answer.header("ETag") != Some(&weak) {
                failures.push(format!("{row}: ETag {:?}", answer.header("ETag")));
            }
            if status == 200 && !coded && answer.body != plain {
                failures.push(format!("{row}: not the file"));
            }
        }
    }
    report(rows, &failures);
}

#[test]
fn h2_and_h3_answer_conditions_and_ranges_too() {
    let server = site("");
    let mut failures = Vec::new();
    let mut rows = 0;
    for proto in [Proto::H2, Proto::H3] {
        let cases: [(&[&str], u16, &[u8]); 9] = [
            (&[], 200, HELLO),
            (&["-H", "If-None-Match: \"6553f100-e\""], 304, b""),
            (&["-H", "If-Match: \"other\""], 412, b""),
            (&["-r", "0-4"], 206, &HELLO[..5]),
            (&["-r", "-4"], 206, &HELLO[10..]),
            (&["-r", "99-"], 416, b""),
            (&["-I"], 200, b""),
            (&["-d", "x"], 405, b""),
            (&["-X", "DELETE"], 405, b""),
        ];
        for (args, status, body) in cases {
            rows += 1;
            let reply = server.curl(proto).args(args.iter().copied());
            let reply = reply.get(&server.url(proto, "/hello.txt"));
            // With -I curl writes the fields where the body would be.
            let same_body = status >= 400 || args == ["-I"] || reply.body == body;
            if reply.status != status || !same_body {
                failures.push(format!("{proto:?} {args:?}: {} {:?}", reply.status, reply.text()));
            }
        }
    }
    report(rows, &failures);
}

#[test]
fn a_large_file_is_the_same_by_every_protocol() {
    let server = site("");
    let big = fs::read(server.www("big.bin")).unwrap();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        let reply = server.fetch(proto, "/big.bin");
        assert!(reply.body == big, "{proto:?}: {} bytes", reply.body.len());
        let tail = server.curl(proto).args(["-r", "999990-"]).get(&server.url(proto, "/big.bin"));
        assert!(tail.body == big[999_990..], "{proto:?}");
    }
}

#[test]
fn paths_lead_where_nginx_leads_them() {
    let server = site("location /al/ { alias @DIR@/www/dir/; }");
    symlink(server.www("hello.txt"), server.www("dir/abs.txt")).unwrap();
    let port = server.http().port();
    let mut failures = Vec::new();
    let rows: &[(&str, u16, &str)] = &[
        ("/", 200, "<!DOCTYPE html>\n<title>index</title>\n<p>It works.</p>\n"),
        ("/index.html", 200, "<!DOCTYPE html>\n<title>index</title>\n<p>It works.</p>\n"),
        ("/dir/", 200, "<p>dir</p>\n"),
        ("/dir/file.txt", 200, "file\n"),
        ("/dir/file.txt/", 404, ""),
        ("/dir/file.txt/more", 404, ""),
        ("/hello.txt?query", 200, "hello, bolide\n"),
        ("/link.txt", 200, "hello, bolide\n"),
        ("/dir/abs.txt", 200, "hello, bolide\n"),
        ("/linkdir/file.txt", 200, "file\n"),
        ("/dangling", 404, ""),
        ("/missing", 404, ""),
        ("/missing/", 404, ""),
        ("/bare/", 403, ""),
        ("/empty.txt", 200, ""),
        ("/with%20space.txt", 200, "space\n"),
        ("/%2e%2e/hello.txt", 400, ""),
        ("/dir/..%2fhello.txt", 200, "hello, bolide\n"),
        ("/dir/./file.txt", 200, "file\n"),
        ("/dir//file.txt", 200, "file\n"),
        ("/al/file.txt", 200, "file\n"),
        ("/al/", 200, "<p>dir</p>\n"),
        ("/HELLO.TXT", 404, ""),
    ];
    for (path, status, body) in rows {
        let answer = server.get(path);
        let same = *status != 200 || answer.text() == *body;
        if answer.status != *status || !same {
            failures.push(format!(
                "{path}: want {status}, got {} {:?}",
                answer.status,
                answer.text()
            ));
        }
    }
    for (path, target) in [
        ("/dir", "/dir/"),
        ("/dir?a=b", "/dir/?a=b"),
        ("/linkdir", "/linkdir/"),
        ("/bare", "/bare/"),
    ] {
        let answer = server.get(path);
        // Host: localhost has no port; nginx adds the one it listens on.
        let wanted = format!("http://localhost:{port}{target}");
        if answer.status != 301 || answer.header("Location") != Some(&wanted) {
            failures.push(format!("{path}: {} {:?}", answer.status, answer.header("Location")));
        }
    }
    report(rows.len() + 4, &failures);
}

#[test]
fn redirects_to_directories_obey_their_directives() {
    for (directives, location) in [
        ("absolute_redirect off;", "/dir/".to_owned()),
        ("port_in_redirect off;", "http://localhost/dir/".to_owned()),
        ("port_in_redirect host;", "http://localhost/dir/".to_owned()),
    ] {
        let server = site(directives);
        let answer = server.get("/dir");
        assert_eq!(answer.header("Location"), Some(location.as_str()), "{directives}");
    }
    let server = site("");
    let wanted = format!("https://localhost:{}/dir/", server.https().port());
    for proto in Proto::TLS {
        let reply = server.fetch(proto, "/dir");
        assert_eq!((reply.status, reply.header("location")), (301, Some(wanted.as_str())));
    }
}

#[test]
fn media_types_and_charset_follow_the_configuration() {
    let server = site("charset utf-8; location /plain { charset off; alias @DIR@/www/hello.txt; }");
    for (path, kind) in [
        ("/index.html", "text/html; charset=utf-8"),
        ("/hello.txt", "text/plain; charset=utf-8"),
        ("/style.css", "text/css"),
        ("/photo.jpg", "image/jpeg"),
        ("/noext", "application/octet-stream"),
        ("/big.bin", "application/octet-stream"),
    ] {
        assert_eq!(server.get(path).header("Content-Type"), Some(kind), "{path}");
    }
}

#[test]
fn a_precompressed_file_is_sent_to_clients_that_accept_it() {
    let server = site("gzip_static on; brotli_static on; zstd_static on;");
    for (accept, coding, body) in [
        ("gzip", Some("gzip"), &b"\x1f\x8b-the-gzip-file"[..]),
        ("br", Some("br"), b"-the-brotli-file"),
        ("zstd", Some("zstd"), b"\x28\xb5\x2f\xfd-the-zstd-file"),
        ("gzip;q=0", None, b""),
        ("identity", None, b""),
        ("gzip;q=0, br", Some("br"), b"-the-brotli-file"),
    ] {
        let answer = server.connect().get("/pre.txt", &format!("Accept-Encoding: {accept}\r\n"));
        assert_eq!((answer.status, answer.header("Content-Encoding")), (200, coding), "{accept}");
        assert_eq!(answer.header("Content-Type"), Some("text/plain"));
        match coding {
            Some(_) => assert_eq!(answer.body, body, "{accept}"),
            None => assert_eq!(answer.body.len(), 23 * 60, "{accept}"),
        }
    }
    let mut client = server.connect();
    let part = client.get("/pre.txt", "Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n");
    assert_eq!((part.status, &part.body[..]), (206, &b"\x1f\x8b"[..]), "ranges of the coded file");
    let other = client.get("/hello.txt", "Accept-Encoding: gzip, br, zstd\r\n");
    assert_eq!((other.header("Content-Encoding"), &other.body[..]), (None, HELLO));
}

#[test]
fn a_listing_has_all_entries() {
    let server = site("autoindex on;");
    let answer = server.get("/list/");
    assert_eq!((answer.status, answer.header("Content-Type")), (200, Some("text/html")));
    let page = answer.text();
    let start = "<html>\r\n<head><title>Index of /list/</title></head>\r\n<body>\r\n\
                 <h1>Index of /list/</h1><hr><pre><a href=\"../\">../</a>\r\n\
                 <a href=\"sub/\">sub/</a>";
    assert!(page.starts_with(start), "{page}");
    assert!(page.contains("<a href=\"a.txt\">a.txt</a>"), "{page}");
    assert!(page.contains("<a href=\"b%20%3Cb%3E.txt\">b &lt;b&gt;.txt</a>"), "{page}");
    assert!(page.contains("14-Nov-2023 22:13"), "{page}");
    assert!(page.ends_with("</pre><hr></body>\r\n</html>\r\n"), "{page}");
}

#[test]
fn a_listing_can_be_json_xml_or_jsonp() {
    let server = site(
        "location /list/ { autoindex on; autoindex_format json; }
         location /x/ { alias @DIR@/www/list/; autoindex on; autoindex_format xml; }
         location /p/ { alias @DIR@/www/list/; autoindex on; autoindex_format jsonp; }",
    );
    let json = server.get("/list/");
    assert_eq!(json.header("Content-Type"), Some("application/json"));
    let file =
        r#"{ "name":"a.txt", "type":"file", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT", "size":2 }"#;
    let text = json.text();
    assert!(text.starts_with("[\r\n{ \"name\":\"sub\", \"type\":\"directory\", "), "{text}");
    assert!(text.contains(file) && text.ends_with("\r\n]"), "{text}");
    let xml = server.get("/x/");
    assert_eq!(xml.header("Content-Type"), Some("text/xml; charset=utf-8"));
    let text = xml.text();
    assert!(text.starts_with("<?xml version=\"1.0\"?>\r\n<list>\r\n<directory mtime=\""), "{text}");
    let file = "<file mtime=\"2023-11-14T22:13:20Z\" size=\"2\">a.txt</file>";
    assert!(text.contains(file) && text.contains("b &lt;b&gt;.txt"), "{text}");
    let jsonp = server.get("/p/?callback=show");
    assert_eq!(jsonp.header("Content-Type"), Some("application/javascript"));
    let text = jsonp.text();
    assert!(
        text.starts_with("/* callback */\r\nshow([\r\n{ ") && text.ends_with("\r\n]);"),
        "{text}"
    );
}

/// One worker reads them in pieces, one after the other, and goes on serving; a client that leaves
/// takes nothing along.
#[test]
fn large_directories_are_listed_whole_beside_other_requests() {
    const FILES: usize = 20_000;
    let server = site("location /many/ { autoindex on; autoindex_format json; }");
    fs::create_dir(server.www("many")).unwrap();
    for n in 0..FILES {
        fs::write(server.www(&format!("many/f{n:05}")), "").unwrap();
    }
    for _ in 0..3 {
        let mut hasty = server.connect();
        hasty.send(b"GET /many/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    }
    let names = |server: &bolide_testkit::TestServer| {
        let answer = server.get("/many/");
        let text = answer.text();
        let rows = text.split("\"name\":\"").skip(1).map(|row| row[..6].to_owned());
        rows.collect::<Vec<_>>()
    };
    let expected: Vec<_> = (0..FILES).map(|n| format!("f{n:05}")).collect();
    thread::scope(|scope| {
        let listings: Vec<_> = (0..4).map(|_| scope.spawn(|| names(&server))).collect();
        for _ in 0..100 {
            assert_eq!(server.get("/hello.txt").body, HELLO);
        }
        for listing in listings {
            assert!(listing.join().unwrap() == expected, "each name once, in order");
        }
    });
}

#[test]
fn special_files_are_not_found() {
    let server = site("");
    // Opening a pipe would block until it has a writer.
    let _quiet = bolide_testkit::run("mkfifo", [server.www("pipe")]).succeeded();
    assert_eq!(server.get("/pipe").status, 404);
    assert_eq!(server.get("/hello.txt").body, HELLO);
}

/// Requests `path` repeatedly until told to stop; each body must pass `check`.
fn keep_asking(
    server: &bolide_testkit::TestServer,
    path: &'static str,
    stop: &Arc<AtomicBool>,
    check: fn(&Response) -> Result<(), String>,
) -> thread::JoinHandle<Result<usize, String>> {
    let (addr, stop) = (server.http(), Arc::clone(stop));
    thread::spawn(move || {
        let mut asked = 0;
        let mut client = H1TestClient::connect(addr);
        while !stop.load(Ordering::Relaxed) {
            if asked % 500 == 499 {
                client = H1TestClient::connect(addr);
            }
            client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            match client.try_answer("GET") {
                Ok(answer) => check(&answer)?,
                // Truncated, and the client can see it.
                Err(_) => client = H1TestClient::connect(addr),
            }
            asked += 1;
        }
        Ok(asked)
    })
}

fn one_version(answer: &Response) -> Result<(), String> {
    let Some(first) = answer.body.first() else {
        return Ok(());
    };
    let wanted = if *first == b'a' { 200_000 } else { 300_000 };
    let pure = answer.body.iter().all(|byte| byte == first);
    let tag = answer.header("ETag").unwrap_or_default();
    let tag_fits = tag.ends_with(&format!("-{wanted:x}\""));
    if answer.status == 200 && pure && answer.body.len() == wanted && tag_fits {
        return Ok(());
    }
    Err(format!("mixed: {} bytes, pure {pure}, {tag}, first {first}", answer.body.len()))
}

fn one_small_version(answer: &Response) -> Result<(), String> {
    // A file is empty for a moment while it is rewritten in place.
    let known: [&[u8]; 3] = [b"", &[b'a'; 1000], &[b'b'; 3000]];
    if answer.status == 200 && known.contains(&&answer.body[..]) {
        return Ok(());
    }
    Err(format!("mixed: {} {:.20}… {}", answer.status, answer.text(), answer.body.len()))
}

#[test]
fn a_file_replaced_under_load_is_never_mixed() {
    let server = site("");
    let (a, b) = (vec![b'a'; 200_000], vec![b'b'; 300_000]);
    let path = server.www("changing.txt");
    fs::write(&path, &a).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> =
        (0..2).map(|_| keep_asking(&server, "/changing.txt", &stop, one_version)).collect();
    for n in 0..300 {
        let next = server.www("next.txt");
        fs::write(&next, if n % 2 == 0 { &b } else { &a }).unwrap();
        fs::rename(&next, &path).unwrap();
        bolide_testkit::pause(5);
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.join().unwrap().unwrap() > 0);
    }
}

#[test]
fn a_file_rewritten_in_place_under_load_is_never_mixed() {
    let server = site("");
    let path = server.www("changing.txt");
    fs::write(&path, [b'a'; 1000]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> =
        (0..2).map(|_| keep_asking(&server, "/changing.txt", &stop, one_small_version)).collect();
    for n in 0..300 {
        let content: &[u8] = if n % 2 == 0 { &[b'b'; 3000] } else { &[b'a'; 1000] };
        fs::write(&path, content).unwrap();
        bolide_testkit::pause(5);
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.join().unwrap().unwrap() > 0);
    }
}

#[test]
fn a_file_in_memory_is_served_unchanged_while_it_is_rewritten_in_place() {
    // The cache says that what was read at first may be old; it comes from memory where the
    // descriptor leads to other bytes by now.
    let server = site("open_file_cache max=100; open_file_cache_valid 3600s;");
    let path = server.www("kept.txt");
    fs::write(&path, [b'a'; 200_000]).unwrap();
    touch(&path, MTIME);
    let check = |when: &str| {
        assert_eq!(server.get("/kept.txt").body, [b'a'; 200_000], "in the clear, {when}");
        for proto in Proto::TLS {
            assert_eq!(server.fetch(proto, "/kept.txt").body, [b'a'; 200_000], "{proto:?} {when}");
        }
    };
    check("before");
    fs::write(&path, [b'b'; 100_000]).unwrap();
    check("after");
}

#[test]
fn a_changed_file_is_served_changed_after_its_time() {
    let server = site("");
    let path = server.www("note.txt");
    fs::write(&path, "one").unwrap();
    touch(&path, MTIME);
    assert_eq!(server.get("/note.txt").text(), "one");
    fs::write(&path, "two").unwrap();
    bolide_testkit::wait_until("the new content", || server.get("/note.txt").text() == "two");
    fs::remove_file(&path).unwrap();
    bolide_testkit::wait_until("the file to be gone", || server.get("/note.txt").status == 404);
    fs::write(&path, "three").unwrap();
    bolide_testkit::wait_until("the file to be back", || server.get("/note.txt").text() == "three");
}

#[test]
fn several_ranges_of_a_file_outside_of_memory_are_complete() {
    let server = site("");
    let text: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 3 % 251) as u8).collect();
    fs::write(server.www("large.bin"), &text).unwrap();
    let mut failures = Vec::new();
    let ranges = ["0-10,20-30", "5-5,999999-", "0-400000,500000-900000,-7"];
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        for range in ranges {
            let curl = server.curl(proto).args(["-r", range, "--max-time", "60"]);
            let reply = curl.attempt(&server.url(proto, "/large.bin"));
            let parts = range.split(',').map(|part| match part.split_once('-').unwrap() {
                ("", last) => &text[text.len() - last.parse::<usize>().unwrap()..],
                (first, "") => &text[first.parse().unwrap()..],
                (first, last) => &text[first.parse().unwrap()..=last.parse().unwrap()],
            });
            let has_all = parts.into_iter().all(|part| contains(&reply.body, part));
            let length = reply.header("content-length").and_then(|text| text.parse().ok());
            if reply.status != 206 || !has_all || length != Some(reply.body.len()) {
                failures.push(format!("{proto:?} {range}: {} {}", reply.status, reply.body.len()));
            }
        }
    }
    report(12, &failures);
}

/// Whether `part` is somewhere in `text`.
fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
