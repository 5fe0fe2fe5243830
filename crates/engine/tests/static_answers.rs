//! The truth table of static answers: conditionals × ranges × encodings × methods.

use bolide_http::{BodyLen, Method};
use bolide_world::{FuzzWorld, request};

const CONFIG: &str = r#"
events {}
http {
    types { text/html html; text/css css; image/jpeg jpg; text/plain txt; }
    default_type application/octet-stream;
    server {
        listen 80;
        server_name plain.test;
        root /srv/www;
    }
    server {
        listen 80;
        server_name gz.test;
        root /srv/www;
        gzip on; gzip_vary on; gzip_types text/css;
        location /both/ { alias /srv/www/; brotli on; brotli_types text/css; zstd on; }
        location /novary/ { alias /srv/www/; gzip_vary off; }
        location /min/ { alias /srv/www/; gzip_min_length 10k; }
        location /old/ { alias /srv/www/; gzip_http_version 1.0; gzip_proxied any; }
        location /agent/ { alias /srv/www/; gzip_disable "Bad.*Agent"; }
    }
    server {
        listen 80;
        server_name stored.test;
        root /srv/www;
        gzip_static on; brotli_static on; zstd_static on; gzip_vary on;
        location /always/ { alias /srv/www/; gzip_static always; brotli_static off; }
    }
    server {
        listen 80;
        server_name loose.test;
        root /srv/www;
        if_modified_since before;
        location /off/ { alias /srv/www/; if_modified_since off; etag off; }
        location /one/ { alias /srv/www/; max_ranges 1; }
        location /none/ { alias /srv/www/; max_ranges 0; }
    }
}
"#;

/// Etag of the files here: their time, and 26 bytes or 2000.
const TAG: &str = "\"6553f100-1a\"";
const WEAK: &str = "W/\"6553f100-7d0\"";
const STRONG: &str = "\"6553f100-7d0\"";
const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
const LATER: &str = "Wed, 15 Nov 2023 22:13:20 GMT";
const EARLIER: &str = "Mon, 13 Nov 2023 22:13:20 GMT";
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

struct Row {
    method: Method,
    /// `host/path`
    at: &'static str,
    sent: &'static [(&'static str, &'static str)],
    status: u16,
    /// Fields that must have exactly this value; empty for absent.
    fields: &'static [(&'static str, &'static str)],
    /// The body; `None` to look at nothing but its length.
    body: Option<&'static str>,
}

const fn row(
    method: Method,
    at: &'static str,
    sent: &'static [(&'static str, &'static str)],
    status: u16,
    fields: &'static [(&'static str, &'static str)],
    body: Option<&'static str>,
) -> Row {
    Row { method, at, sent, status, fields, body }
}

const GET: Method = Method::Get;
const HEAD: Method = Method::Head;
const A: &str = "plain.test/a.txt";
const CSS: &str = "gz.test/big.css";

const ROWS: &[Row] = &[
    // Whole answers and methods.
    row(
        GET,
        A,
        &[],
        200,
        &[
            ("Content-Type", "text/plain"),
            ("ETag", TAG),
            ("Last-Modified", DATE),
            ("Accept-Ranges", "bytes"),
            ("Vary", ""),
            ("Content-Encoding", ""),
            ("Server", "bolide/0.1.0"),
        ],
        Some(LETTERS),
    ),
    row(HEAD, A, &[], 200, &[("ETag", TAG), ("Accept-Ranges", "bytes")], Some("")),
    row(GET, "plain.test/a.txt?q", &[], 200, &[("Content-Type", "text/plain")], Some(LETTERS)),
    row(GET, "plain.test/empty.txt", &[], 200, &[("ETag", "\"6553f100-0\"")], Some("")),
    row(GET, "plain.test/noext", &[], 200, &[("Content-Type", "application/octet-stream")], None),
    row(GET, "plain.test/A.JPG", &[], 200, &[("Content-Type", "image/jpeg")], None),
    row(Method::Post, A, &[], 405, &[("Content-Type", "text/html")], None),
    row(Method::Put, A, &[], 405, &[], None),
    row(Method::Delete, A, &[], 405, &[], None),
    row(Method::Options, A, &[], 405, &[("Allow", "GET, HEAD")], None),
    row(Method::Patch, A, &[], 405, &[], None),
    row(Method::Trace, A, &[], 405, &[], None),
    row(Method::Connect, A, &[], 405, &[], None),
    row(Method::Other, A, &[], 405, &[], None),
    row(Method::Post, "plain.test/missing", &[], 404, &[], None),
    row(Method::Put, "plain.test/missing", &[], 405, &[], None),
    row(HEAD, "plain.test/missing", &[], 404, &[("Content-Type", "text/html")], Some("")),
    row(GET, "plain.test/missing", &[], 404, &[("ETag", ""), ("Accept-Ranges", "")], None),
    row(GET, "plain.test/a.txt/x", &[], 404, &[], None),
    row(GET, "plain.test/secret.txt", &[], 403, &[], None),
    row(GET, "plain.test/broken.txt", &[], 500, &[], None),
    row(GET, "plain.test/device", &[], 404, &[], None),
    // If-None-Match.
    row(
        GET,
        A,
        &[("If-None-Match", TAG)],
        304,
        &[("ETag", TAG), ("Last-Modified", DATE), ("Content-Type", ""), ("Accept-Ranges", "")],
        Some(""),
    ),
    row(HEAD, A, &[("If-None-Match", TAG)], 304, &[("ETag", TAG)], Some("")),
    row(GET, A, &[("If-None-Match", "W/\"6553f100-1a\"")], 304, &[], Some("")),
    row(GET, A, &[("If-None-Match", "\"x\", \"6553f100-1a\"")], 304, &[], Some("")),
    row(GET, A, &[("If-None-Match", "*")], 304, &[], Some("")),
    row(GET, A, &[("If-None-Match", "\"x\"")], 200, &[], Some(LETTERS)),
    row(
        GET,
        A,
        &[("If-None-Match", "\"x\""), ("If-Modified-Since", DATE)],
        200,
        &[],
        Some(LETTERS),
    ),
    row(GET, A, &[("If-None-Match", TAG), ("If-Modified-Since", EARLIER)], 304, &[], Some("")),
    row(GET, "plain.test/missing", &[("If-None-Match", "*")], 404, &[], None),
    // If-Modified-Since.
    row(GET, A, &[("If-Modified-Since", DATE)], 304, &[("ETag", TAG)], Some("")),
    row(GET, A, &[("If-Modified-Since", LATER)], 200, &[], Some(LETTERS)),
    row(GET, A, &[("If-Modified-Since", EARLIER)], 200, &[], Some(LETTERS)),
    row(GET, A, &[("If-Modified-Since", "nonsense")], 200, &[], Some(LETTERS)),
    row(GET, "loose.test/a.txt", &[("If-Modified-Since", LATER)], 304, &[], Some("")),
    row(GET, "loose.test/a.txt", &[("If-Modified-Since", DATE)], 304, &[], Some("")),
    row(GET, "loose.test/a.txt", &[("If-Modified-Since", EARLIER)], 200, &[], Some(LETTERS)),
    row(GET, "loose.test/off/a.txt", &[("If-Modified-Since", DATE)], 200, &[("ETag", "")], None),
    row(GET, "loose.test/off/a.txt", &[("If-None-Match", TAG)], 200, &[("ETag", "")], None),
    // If-Match and If-Unmodified-Since.
    row(GET, A, &[("If-Match", TAG)], 200, &[], Some(LETTERS)),
    row(GET, A, &[("If-Match", "*")], 200, &[], Some(LETTERS)),
    row(GET, A, &[("If-Match", "\"x\"")], 412, &[("Content-Type", "text/html")], None),
    row(GET, A, &[("If-Match", "W/\"6553f100-1a\"")], 412, &[], None),
    row(HEAD, A, &[("If-Match", "\"x\"")], 412, &[], Some("")),
    row(GET, A, &[("If-Unmodified-Since", DATE)], 200, &[], Some(LETTERS)),
    row(GET, A, &[("If-Unmodified-Since", LATER)], 200, &[], Some(LETTERS)),
    row(GET, A, &[("If-Unmodified-Since", EARLIER)], 412, &[], None),
    row(GET, A, &[("If-Match", TAG), ("If-None-Match", TAG)], 304, &[], Some("")),
    row(GET, A, &[("If-Match", "\"x\""), ("If-None-Match", TAG)], 412, &[], None),
    // One range.
    row(
        GET,
        A,
        &[("Range", "bytes=0-3")],
        206,
        &[
            ("Content-Range", "bytes 0-3/26"),
            ("Content-Type", "text/plain"),
            ("ETag", TAG),
            ("Last-Modified", DATE),
            ("Accept-Ranges", ""),
        ],
        Some("abcd"),
    ),
    row(HEAD, A, &[("Range", "bytes=0-3")], 206, &[("Content-Range", "bytes 0-3/26")], Some("")),
    row(
        GET,
        A,
        &[("Range", "bytes=20-")],
        206,
        &[("Content-Range", "bytes 20-25/26")],
        Some("uvwxyz"),
    ),
    row(GET, A, &[("Range", "bytes=-2")], 206, &[("Content-Range", "bytes 24-25/26")], Some("yz")),
    row(
        GET,
        A,
        &[("Range", "bytes=20-99")],
        206,
        &[("Content-Range", "bytes 20-25/26")],
        Some("uvwxyz"),
    ),
    row(
        GET,
        A,
        &[("Range", "bytes=-99")],
        206,
        &[("Content-Range", "bytes 0-25/26")],
        Some(LETTERS),
    ),
    row(GET, A, &[("Range", "bytes=26-")], 416, &[("Content-Range", "bytes */26")], None),
    row(GET, A, &[("Range", "bytes=x")], 416, &[("Content-Range", "bytes */26")], None),
    row(GET, A, &[("Range", "lines=0-3")], 200, &[("Content-Range", "")], Some(LETTERS)),
    row(GET, A, &[("Range", "bytes=0-3"), ("If-Range", TAG)], 206, &[], Some("abcd")),
    row(GET, A, &[("Range", "bytes=0-3"), ("If-Range", "\"x\"")], 200, &[], Some(LETTERS)),
    row(GET, A, &[("Range", "bytes=0-3"), ("If-Range", "W/\"6553f100-1a\"")], 200, &[], None),
    row(GET, A, &[("Range", "bytes=0-3"), ("If-Range", DATE)], 206, &[], Some("abcd")),
    row(GET, A, &[("Range", "bytes=0-3"), ("If-Range", LATER)], 200, &[], Some(LETTERS)),
    row(
        GET,
        A,
        &[("Range", "bytes=0-3"), ("If-None-Match", TAG)],
        304,
        &[("Content-Range", "")],
        Some(""),
    ),
    row(GET, A, &[("Range", "bytes=0-3"), ("If-Match", "\"x\"")], 412, &[], None),
    row(GET, "plain.test/missing", &[("Range", "bytes=0-3")], 404, &[("Content-Range", "")], None),
    row(GET, "plain.test/empty.txt", &[("Range", "bytes=0-")], 200, &[], Some("")),
    // Several ranges.
    row(GET, A, &[("Range", "bytes=0-1,4-5")], 206, &[("Content-Range", ""), ("ETag", TAG)], None),
    row(GET, A, &[("Range", "bytes=0-20,4-25")], 200, &[], Some(LETTERS)),
    row(
        GET,
        A,
        &[("Range", "bytes=0-1,99-")],
        206,
        &[("Content-Range", "bytes 0-1/26")],
        Some("ab"),
    ),
    row(GET, "loose.test/one/a.txt", &[("Range", "bytes=0-1")], 206, &[], Some("ab")),
    row(GET, "loose.test/one/a.txt", &[("Range", "bytes=0-1,4-5")], 200, &[], Some(LETTERS)),
    row(
        GET,
        "loose.test/none/a.txt",
        &[("Range", "bytes=0-1")],
        200,
        &[("Accept-Ranges", "")],
        None,
    ),
    // Codings made on the fly.
    row(
        GET,
        CSS,
        &[("Accept-Encoding", "gzip")],
        200,
        &[
            ("Content-Encoding", "gzip"),
            ("ETag", WEAK),
            ("Vary", "Accept-Encoding"),
            ("Accept-Ranges", ""),
            ("Last-Modified", DATE),
            ("Content-Type", "text/css"),
        ],
        None,
    ),
    row(
        GET,
        CSS,
        &[],
        200,
        &[
            ("Content-Encoding", ""),
            ("ETag", STRONG),
            ("Vary", "Accept-Encoding"),
            ("Accept-Ranges", "bytes"),
        ],
        None,
    ),
    row(HEAD, CSS, &[("Accept-Encoding", "gzip")], 200, &[("Content-Encoding", "gzip")], Some("")),
    row(GET, CSS, &[("Accept-Encoding", "gzip;q=0")], 200, &[("Content-Encoding", "")], None),
    row(GET, CSS, &[("Accept-Encoding", "br, zstd")], 200, &[("Content-Encoding", "")], None),
    row(GET, CSS, &[("Accept-Encoding", "*")], 200, &[("Content-Encoding", "")], None),
    row(
        GET,
        CSS,
        &[("Accept-Encoding", "gzip"), ("Range", "bytes=0-3")],
        200,
        &[("Content-Encoding", "gzip"), ("Content-Range", "")],
        None,
    ),
    row(
        GET,
        CSS,
        &[("Range", "bytes=0-3")],
        206,
        &[("Content-Range", "bytes 0-3/2000")],
        Some("aaaa"),
    ),
    row(
        GET,
        CSS,
        &[("Accept-Encoding", "gzip"), ("If-None-Match", WEAK)],
        304,
        &[("Content-Encoding", "")],
        Some(""),
    ),
    row(GET, CSS, &[("Accept-Encoding", "gzip"), ("If-None-Match", STRONG)], 304, &[], Some("")),
    row(GET, CSS, &[("Accept-Encoding", "gzip"), ("If-Modified-Since", DATE)], 304, &[], Some("")),
    row(GET, CSS, &[("Accept-Encoding", "gzip"), ("If-Match", "\"x\"")], 412, &[], None),
    row(
        GET,
        CSS,
        &[("Accept-Encoding", "gzip"), ("Via", "1.1 x")],
        200,
        &[("Content-Encoding", "")],
        None,
    ),
    row(
        GET,
        "gz.test/old/big.css",
        &[("Accept-Encoding", "gzip"), ("Via", "1.1 x")],
        200,
        &[("Content-Encoding", "gzip")],
        None,
    ),
    row(
        GET,
        "gz.test/agent/big.css",
        &[("Accept-Encoding", "gzip"), ("User-Agent", "Bad old Agent")],
        200,
        &[("Content-Encoding", "")],
        None,
    ),
    row(
        GET,
        "gz.test/agent/big.css",
        &[("Accept-Encoding", "gzip"), ("User-Agent", "Good")],
        200,
        &[("Content-Encoding", "gzip")],
        None,
    ),
    row(
        GET,
        "gz.test/big.html",
        &[("Accept-Encoding", "gzip")],
        200,
        &[("Content-Encoding", "gzip")],
        None,
    ),
    row(
        GET,
        "gz.test/big.jpg",
        &[("Accept-Encoding", "gzip")],
        200,
        &[("Content-Encoding", ""), ("Vary", "")],
        None,
    ),
    row(
        GET,
        "gz.test/min/big.css",
        &[("Accept-Encoding", "gzip")],
        200,
        &[("Content-Encoding", ""), ("Vary", "")],
        None,
    ),
    row(
        GET,
        "gz.test/novary/big.css",
        &[("Accept-Encoding", "gzip")],
        200,
        &[("Content-Encoding", "gzip"), ("Vary", "")],
        None,
    ),
    row(
        GET,
        "gz.test/both/big.css",
        &[("Accept-Encoding", "gzip, br")],
        200,
        &[("Content-Encoding", "br"), ("ETag", WEAK)],
        None,
    ),
    row(
        GET,
        "gz.test/both/big.css",
        &[("Accept-Encoding", "gzip, deflate")],
        200,
        &[("Content-Encoding", "gzip")],
        None,
    ),
    row(
        GET,
        "gz.test/both/big.html",
        &[("Accept-Encoding", "gzip, zstd")],
        200,
        &[("Content-Encoding", "zstd")],
        None,
    ),
    row(
        GET,
        "gz.test/both/big.html",
        &[("Accept-Encoding", "gzip, deflate, br, zstd")],
        200,
        &[("Content-Encoding", "br")],
        None,
    ),
    row(
        GET,
        "gz.test/both/big.css",
        &[("Accept-Encoding", "zstd")],
        200,
        &[("Content-Encoding", "")],
        None,
    ),
    // Files compressed beforehand.
    row(
        GET,
        "stored.test/big.css",
        &[("Accept-Encoding", "gzip")],
        200,
        &[
            ("Content-Encoding", "gzip"),
            ("ETag", "\"6553f100-8\""),
            ("Accept-Ranges", "bytes"),
            ("Content-Type", "text/css"),
            ("Vary", "Accept-Encoding"),
        ],
        Some("gz bytes"),
    ),
    row(
        GET,
        "stored.test/big.css",
        &[("Accept-Encoding", "gzip, br")],
        200,
        &[("Content-Encoding", "br")],
        Some("br bytes!"),
    ),
    row(
        GET,
        "stored.test/big.css",
        &[],
        200,
        &[("Content-Encoding", ""), ("Vary", "Accept-Encoding"), ("Accept-Ranges", "bytes")],
        None,
    ),
    row(
        GET,
        "stored.test/a.txt",
        &[("Accept-Encoding", "gzip")],
        200,
        &[("Content-Encoding", ""), ("Vary", "")],
        Some(LETTERS),
    ),
    row(
        HEAD,
        "stored.test/big.css",
        &[("Accept-Encoding", "gzip")],
        200,
        &[("Content-Encoding", "gzip")],
        Some(""),
    ),
    row(
        GET,
        "stored.test/big.css",
        &[("Accept-Encoding", "gzip"), ("Range", "bytes=0-1")],
        206,
        &[("Content-Range", "bytes 0-1/8")],
        Some("gz"),
    ),
    row(
        GET,
        "stored.test/big.css",
        &[("Accept-Encoding", "gzip"), ("If-None-Match", "\"6553f100-8\"")],
        304,
        &[],
        Some(""),
    ),
    row(
        GET,
        "stored.test/always/big.css",
        &[],
        200,
        &[("Content-Encoding", "gzip")],
        Some("gz bytes"),
    ),
    row(
        GET,
        "stored.test/always/only.css",
        &[],
        200,
        &[("Content-Encoding", "gzip")],
        Some("alone"),
    ),
    row(GET, "stored.test/only.css", &[], 404, &[], None),
    row(
        GET,
        "stored.test/only.css",
        &[("Accept-Encoding", "gzip")],
        200,
        &[("Content-Encoding", "gzip")],
        Some("alone"),
    ),
];

fn world() -> FuzzWorld {
    let mut world = FuzzWorld::of(CONFIG);
    let big = vec![b'a'; 2000];
    for (path, content) in [
        ("a.txt", LETTERS.as_bytes()),
        ("empty.txt", b""),
        ("noext", b"x"),
        ("A.JPG", b"x"),
        ("big.css", &big),
        ("big.html", &big),
        ("big.jpg", &big),
        ("big.css.gz", b"gz bytes"),
        ("big.css.br", b"br bytes!"),
        ("only.css.gz", b"alone"),
    ] {
        world.door.put(&format!("/srv/www/{path}"), content);
    }
    world.door.fail("/srv/www/secret.txt", bolide_files::OpenFailure::PermissionDenied);
    world.door.fail("/srv/www/broken.txt", bolide_files::OpenFailure::Other(5));
    world.door.put_special("/srv/www/device");
    world
}

fn check(world: &mut FuzzWorld, row: &Row) -> Result<(), String> {
    let (host, path) = row.at.split_once('/').expect("host/path");
    let reply = world.ask(request(row.method, host, &format!("/{path}"), row.sent));
    if reply.status != row.status {
        return Err(format!("status {}", reply.status));
    }
    for (name, value) in row.fields {
        if reply.field(name) != *value {
            return Err(format!("{name} is {:?}", reply.field(name)));
        }
    }
    match row.body {
        Some(body) if reply.text() != body => Err(format!("body {:?}", reply.text())),
        _ => Ok(()),
    }
}

#[test]
fn every_row_of_the_table_is_answered_cold_warm_and_in_small_pulls() {
    for pull_max in [64 * 1024, 3] {
        let mut world = world();
        world.pull_max = pull_max;
        let mut wrong = Vec::new();
        for pass in ["cold", "warm"] {
            for row in ROWS {
                if let Err(why) = check(&mut world, row) {
                    let Row { method, at, sent, .. } = row;
                    wrong.push(format!("{pass} {method:?} {at} {sent:?}: {why}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[test]
fn a_head_answer_tells_the_length_of_the_get_answer() {
    let mut world = world();
    for (path, fields) in [
        ("/a.txt", &[][..]),
        ("/a.txt", &[("Range", "bytes=0-1")]),
        ("/a.txt", &[("Range", "bytes=0-1,4-5")]),
        ("/missing", &[]),
    ] {
        let get = world.ask(request(GET, "plain.test", path, fields));
        let head = world.ask(request(HEAD, "plain.test", path, fields));
        assert_eq!(get.len, head.len, "{path}");
        assert_eq!(get.len, BodyLen::Exact(get.body.len() as u64));
    }
}

#[test]
fn several_ranges_come_as_parts_with_their_own_fields() {
    let mut world = world();
    let reply = world.ask(request(GET, "plain.test", "/a.txt", &[("Range", "bytes=0-1, -2")]));
    let content_type = reply.field("Content-Type");
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").expect("parts");
    assert!(boundary.len() == 20 && boundary.bytes().all(|byte| byte.is_ascii_digit()));
    let part = |range: &str, body: &str| {
        format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/26\
             \r\n\r\n{body}"
        )
    };
    let wanted = format!("{}{}\r\n--{boundary}--\r\n", part("0-1", "ab"), part("24-25", "yz"));
    assert_eq!(reply.text(), wanted);
}

#[test]
fn a_compressed_form_is_made_once_and_is_what_it_says() {
    let mut world = world();
    let ask = |world: &mut FuzzWorld| {
        world.ask(request(GET, "gz.test", "/big.css", &[("Accept-Encoding", "gzip")]))
    };
    let first = ask(&mut world);
    let probes = world.door.probes;
    let second = ask(&mut world);
    assert_eq!((world.door.probes, &first.body), (probes, &second.body));
    assert_eq!(first.len, BodyLen::Exact(first.body.len() as u64));
    assert!(first.body.starts_with(&[0x1f, 0x8b]) && first.body.len() < 200);
    let made =
        bolide_files::compress(bolide_http::negotiate::Coding::Gzip, 1, &[b'a'; 2000]).unwrap();
    assert_eq!(first.body, made);
}

#[test]
fn a_large_file_is_described_and_not_read() {
    let mut world = world();
    let (reader, _writer) = std::io::pipe().unwrap();
    let file = bolide_base::FileRef::new(reader.into());
    let content: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
    world.door.put_open("/srv/www/large.bin", file, &content);
    assert_eq!(world.get("plain.test", "/large.bin").body, content);
    let ask = |world: &mut FuzzWorld, range| {
        world.ask(request(GET, "plain.test", "/large.bin", &[("Range", range)]))
    };
    assert_eq!(ask(&mut world, "bytes=100000-100009").body, content[100_000..100_010]);
    let parts = ask(&mut world, "bytes=0-0,100000-100009");
    assert!(parts.body.windows(10).any(|window| *window == content[100_000..100_010]));
}

#[test]
fn a_large_file_is_compressed_while_it_leaves() {
    let mut world = world();
    let (reader, _writer) = std::io::pipe().unwrap();
    let file = bolide_base::FileRef::new(reader.into());
    let content: Vec<u8> = (0..300_000_u32).map(|n| b'a' + (n / 7 % 20) as u8).collect();
    world.door.put_open("/srv/www/large.css", file, &content);
    let fields = [("Accept-Encoding", "gzip")];
    let reply = world.ask(request(GET, "gz.test", "/large.css", &fields));
    assert_eq!((reply.len, reply.field("Content-Encoding")), (BodyLen::Unknown, "gzip"));
    assert_eq!(reply.field("ETag"), "W/\"6553f100-493e0\"");
    let mut encoder =
        bolide_files::CodingEncoder::new(bolide_http::negotiate::Coding::Gzip, 1).unwrap();
    let mut wanted = Vec::new();
    encoder.feed(&content, &mut wanted).unwrap();
    encoder.finish(&mut wanted).unwrap();
    assert!(reply.body == wanted && wanted.len() < 100_000);
    let reply = world.ask(request(HEAD, "gz.test", "/large.css", &fields));
    assert_eq!((reply.len, reply.field("Content-Encoding")), (BodyLen::None, "gzip"));
    let ranged = [("Range", "bytes=0-1")];
    assert_eq!(world.ask(request(GET, "gz.test", "/large.css", &ranged)).body, b"aa");
}

#[test]
fn a_file_that_changed_is_seen_after_a_second_and_not_before() {
    let mut world = world();
    assert_eq!(world.get("plain.test", "/a.txt").text(), LETTERS);
    world.door.put("/srv/www/a.txt", b"new");
    assert_eq!(world.get("plain.test", "/a.txt").text(), LETTERS);
    world.pass(std::time::Duration::from_secs(1));
    assert_eq!(world.get("plain.test", "/a.txt").text(), "new");
}
