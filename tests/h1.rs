//! HTTP/1 over a plain socket: responses, refusals, and connections that stay open.

use bolide_testkit::site::HELLO;

use crate::{report, site};

/// What the server does with the connection after the response.
#[derive(Clone, Copy, PartialEq, Debug)]
enum After {
    Open,
    Closed,
    Any,
}
use After::{Any, Closed, Open};

const HOST: &str = "Host: localhost\r\n";

/// (name, request; `%H` is a Host field, `%N` a NUL, status, connection)
#[rustfmt::skip]
const REQUESTS: &[(&str, &str, u16, After)] = &[
    // Well-formed, or accepted by nginx.
    ("plain", "GET / HTTP/1.1\r\n%H\r\n", 200, Open),
    ("bare LF line ends", "GET / HTTP/1.1\nHost: localhost\n\n", 200, Open),
    ("empty line first", "\r\nGET / HTTP/1.1\r\n%H\r\n", 200, Open),
    ("1.0 without Host", "GET / HTTP/1.0\r\n\r\n", 200, Closed),
    ("1.0 with keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, Open),
    ("close asked for", "GET / HTTP/1.1\r\n%HConnection: close\r\n\r\n", 200, Closed),
    ("minor version 2", "GET / HTTP/1.2\r\n%H\r\n", 200, Open),
    ("absolute form", "GET http://localhost/hello.txt HTTP/1.1\r\n%H\r\n", 200, Open),
    ("absolute form without path", "GET http://localhost HTTP/1.1\r\n%H\r\n", 200, Open),
    ("absolute form, https", "GET https://localhost/hello.txt HTTP/1.1\r\n%H\r\n", 200, Open),
    ("query", "GET /hello.txt?a=b&c HTTP/1.1\r\n%H\r\n", 200, Open),
    ("encoded path", "GET /%68ello.txt HTTP/1.1\r\n%H\r\n", 200, Open),
    ("encoded slash", "GET /dir%2ffile.txt HTTP/1.1\r\n%H\r\n", 200, Open),
    ("dots inside the root", "GET /dir/../hello.txt HTTP/1.1\r\n%H\r\n", 200, Open),
    ("merged slashes", "GET //dir///file.txt HTTP/1.1\r\n%H\r\n", 200, Open),
    ("encoded blank", "GET /with%20space.txt HTTP/1.1\r\n%H\r\n", 200, Open),
    ("fragment", "GET /hello.txt#x HTTP/1.1\r\n%H\r\n", 200, Open),
    ("Host with port", "GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n", 200, Open),
    ("Host IPv6", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200, Open),
    ("Host with final dot", "GET / HTTP/1.1\r\nHost: localhost.\r\n\r\n", 200, Open),
    ("empty field value", "GET / HTTP/1.1\r\n%HX-Empty:\r\n\r\n", 200, Open),
    ("no blank after colon", "GET / HTTP/1.1\r\nHost:localhost\r\n\r\n", 200, Open),
    ("blanks around a value", "GET / HTTP/1.1\r\nHost:  localhost  \r\n\r\n", 200, Open),
    ("bytes above 127 in a value", "GET / HTTP/1.1\r\n%HX: \u{e9}\r\n\r\n", 200, Open),
    ("GET with a body", "GET / HTTP/1.1\r\n%HContent-Length: 3\r\n\r\nabc", 200, Open),
    ("GET with a chunked body",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, Open),
    ("chunk extension",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n", 200, Open),
    ("trailer",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n", 200, Open),
    ("coding in capitals",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", 200, Open),
    // Methods.
    ("POST to a file", "POST /hello.txt HTTP/1.1\r\n%HContent-Length: 3\r\n\r\nabc", 405, Open),
    ("PUT", "PUT /hello.txt HTTP/1.1\r\n%HContent-Length: 0\r\n\r\n", 405, Open),
    ("DELETE", "DELETE /hello.txt HTTP/1.1\r\n%H\r\n", 405, Open),
    ("OPTIONS", "OPTIONS /hello.txt HTTP/1.1\r\n%H\r\n", 405, Open),
    ("PATCH", "PATCH /hello.txt HTTP/1.1\r\n%H\r\n", 405, Open),
    ("TRACE", "TRACE / HTTP/1.1\r\n%H\r\n", 405, Any),
    ("CONNECT", "CONNECT localhost:80 HTTP/1.1\r\n%H\r\n", 405, Any),
    ("unknown method", "FROB /hello.txt HTTP/1.1\r\n%H\r\n", 405, Open),
    ("lower-case method", "get / HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("method with a sign", "G@T / HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("no method", " / HTTP/1.1\r\n%H\r\n", 400, Closed),
    // Request lines.
    ("version 2.5", "GET / HTTP/2.5\r\n%H\r\n", 505, Closed),
    ("version 3.0", "GET / HTTP/3.0\r\n%H\r\n", 505, Closed),
    ("version without minor", "GET / HTTP/1\r\n%H\r\n", 400, Closed),
    ("version with letters", "GET / HTTP/1.x\r\n%H\r\n", 400, Closed),
    ("not HTTP", "GET / HTPP/1.1\r\n%H\r\n", 400, Closed),
    ("text after the version", "GET / HTTP/1.1 x\r\n%H\r\n", 400, Closed),
    ("blank in the path", "GET /a b HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("tab in the path", "GET /a\tb HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("control character in the path", "GET /a\u{1}b HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("NUL in the path", "GET /a%Nb HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("encoded NUL", "GET /a%00b HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("half an escape", "GET /a%4 HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("not an escape", "GET /a%zz HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("out of the root", "GET /../hello.txt HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("out of the root, encoded", "GET /dir/%2e%2e/%2e%2e/x HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("path without slash", "GET hello.txt HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("asterisk", "GET * HTTP/1.1\r\n%H\r\n", 400, Closed),
    ("absolute form without host", "GET http:/// HTTP/1.1\r\n%H\r\n", 400, Closed),
    // Host.
    ("1.1 without Host", "GET / HTTP/1.1\r\n\r\n", 400, Closed),
    ("empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, Closed),
    ("two Hosts", "GET / HTTP/1.1\r\n%H%H\r\n", 400, Closed),
    ("two different Hosts", "GET / HTTP/1.1\r\n%HHost: b\r\n\r\n", 400, Closed),
    ("Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, Closed),
    ("Host with a NUL", "GET / HTTP/1.1\r\nHost: a%Nb\r\n\r\n", 400, Closed),
    ("Host with two dots", "GET / HTTP/1.1\r\nHost: a..b\r\n\r\n", 400, Closed),
    // Fields.
    ("blank before the colon", "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", 400, Closed),
    ("blank in a name", "GET / HTTP/1.1\r\n%HX Y: z\r\n\r\n", 400, Closed),
    ("folded field", "GET / HTTP/1.1\r\n%HX: y\r\n folded\r\n\r\n", 400, Closed),
    ("blank first", "GET / HTTP/1.1\r\n X: y\r\n%H\r\n", 400, Closed),
    ("NUL in a value", "GET / HTTP/1.1\r\n%HX: a%Nb\r\n\r\n", 400, Closed),
    ("NUL in a name", "GET / HTTP/1.1\r\n%HX%NY: b\r\n\r\n", 400, Closed),
    ("bare CR in a value", "GET / HTTP/1.1\r\n%HX: a\rb\r\n\r\n", 400, Closed),
    ("line without colon", "GET / HTTP/1.1\r\n%Hjunk\r\n\r\n", 400, Closed),
    ("colon first", "GET / HTTP/1.1\r\n%H: y\r\n\r\n", 400, Closed),
    // Two declarations of the body length.
    ("length and chunked",
     "POST / HTTP/1.1\r\n%HContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400, Closed),
    ("chunked and length",
     "POST / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
     400, Closed),
    ("two equal lengths",
     "POST / HTTP/1.1\r\n%HContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, Closed),
    ("two different lengths",
     "POST / HTTP/1.1\r\n%HContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400, Closed),
    ("list of lengths", "POST / HTTP/1.1\r\n%HContent-Length: 3, 3\r\n\r\nabc", 400, Closed),
    ("signed length", "POST / HTTP/1.1\r\n%HContent-Length: +3\r\n\r\nabc", 400, Closed),
    ("negative length", "POST / HTTP/1.1\r\n%HContent-Length: -3\r\n\r\n", 400, Closed),
    ("hexadecimal length", "POST / HTTP/1.1\r\n%HContent-Length: 0x3\r\n\r\nabc", 400, Closed),
    ("empty length", "POST / HTTP/1.1\r\n%HContent-Length:\r\n\r\n", 400, Closed),
    ("length with a blank", "POST / HTTP/1.1\r\n%HContent-Length: 1 2\r\n\r\n", 400, Closed),
    ("length beyond 64 bits",
     "POST / HTTP/1.1\r\n%HContent-Length: 99999999999999999999999\r\n\r\n", 400, Closed),
    ("length beyond the limit",
     "POST / HTTP/1.1\r\n%HContent-Length: 99999999\r\n\r\n", 413, Closed),
    ("unknown coding", "POST / HTTP/1.1\r\n%HTransfer-Encoding: gzip\r\n\r\n", 501, Closed),
    ("identity coding", "POST / HTTP/1.1\r\n%HTransfer-Encoding: identity\r\n\r\n", 501, Closed),
    ("misspelt coding", "POST / HTTP/1.1\r\n%HTransfer-Encoding: xchunked\r\n\r\n", 501, Closed),
    ("two codings",
     "POST / HTTP/1.1\r\n%HTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, Closed),
    ("chunked twice in one field",
     "POST / HTTP/1.1\r\n%HTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501, Closed),
    ("chunked in two fields",
     "POST / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n\
      0\r\n\r\n", 400, Closed),
    ("chunked in 1.0",
     "POST / HTTP/1.0\r\n%HTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, Closed),
    // Chunks.
    ("chunk size with a sign",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n", 400, Closed),
    ("chunk size 0x3",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 400, Closed),
    ("no chunk size",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n", 400, Closed),
    ("chunk size beyond 64 bits",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n",
     400, Closed),
    ("chunk longer than said",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400, Closed),
    ("letters for a size",
     "GET / HTTP/1.1\r\n%HTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", 400, Closed),
];

#[test]
fn each_request_line_field_and_body_gets_nginxs_answer() {
    let server = site("");
    let mut failures = Vec::new();
    for (what, request, status, after) in REQUESTS {
        let mut client = server.connect();
        client.send(request.replace("%H", HOST).replace("%N", "\0"));
        let method = request.trim_start().split(' ').next().unwrap_or_default();
        let got = match client.try_answer(method) {
            Ok(answer) => answer,
            Err(why) => {
                failures.push(format!("{what}: want {status}, got no answer ({why})"));
                continue;
            }
        };
        if got.status != *status {
            failures.push(format!("{what}: want {status}, got {}", got.status));
            continue;
        }
        let closing = got.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
        if *after != Any && closing != (*after == Closed) {
            failures.push(format!("{what}: want {after:?}, got Connection: close = {closing}"));
        } else if closing && !client.is_closed() {
            failures.push(format!("{what}: said close, but did not"));
        } else if !closing && *after != Any && client.get("/hello.txt", "").body != HELLO {
            failures.push(format!("{what}: the next request got another answer"));
        }
    }
    report(REQUESTS.len(), &failures);
    assert_eq!(server.get("/hello.txt").body, HELLO, "the server still serves");
}

#[test]
fn a_request_without_version_gets_a_body_without_head() {
    let server = site("");
    let mut client = server.connect();
    client.send("GET /hello.txt\r\n");
    assert_eq!(client.to_end().unwrap(), HELLO);
}

#[test]
fn a_connection_carries_many_requests() {
    let server = site("");
    let mut client = server.connect();
    for _ in 0..100 {
        let answer = client.get("/hello.txt", "");
        assert_eq!((answer.status, &answer.body[..]), (200, HELLO));
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = site("");
    let mut client = server.connect();
    let paths = ["/hello.txt", "/missing", "/style.css", "/dir/file.txt", "/page.html"];
    let mut all = String::new();
    for n in 0..200 {
        all.push_str(&format!("GET {} HTTP/1.1\r\n{HOST}\r\n", paths[n % paths.len()]));
    }
    client.send(all);
    let expected: Vec<_> = paths.iter().map(|path| server.get(path)).collect();
    for n in 0..200 {
        let answer = client.answer();
        let wanted = &expected[n % paths.len()];
        assert_eq!((answer.status, &answer.body), (wanted.status, &wanted.body), "answer {n}");
    }
}

#[test]
fn responses_before_a_request_that_gets_none_are_not_lost() {
    let server = site("location /silent { return 444; }");
    let mut client = server.connect();
    let get = |path| format!("GET {path} HTTP/1.1\r\n{HOST}\r\n");
    let more = get("/big.bin");
    client.send([get("/hello.txt"), get("/big.bin"), get("/silent"), more].concat());
    assert_eq!(client.answer().body, HELLO);
    assert_eq!(client.answer().body, server.get("/big.bin").body);
    assert!(client.is_closed(), "444 closes without an answer");
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let server = site("");
    let mut client = server.connect();
    for byte in "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\r\n".bytes() {
        client.send([byte]);
    }
    assert_eq!(client.answer().body, HELLO);
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    let server = site("");
    for path in ["/hello.txt", "/big.bin", "/missing", "/dir"] {
        let mut client = server.connect();
        let get = client.get(path, "");
        let head = client.ask(&format!("HEAD {path} HTTP/1.1\r\nHost: localhost"));
        let fields = |r: &bolide_testkit::Response| -> Vec<_> {
            r.headers.iter().filter(|(n, _)| n != "Date").cloned().collect()
        };
        assert_eq!((head.status, fields(&head)), (get.status, fields(&get)), "{path}");
        assert_eq!(client.get("/hello.txt", "").body, HELLO, "the connection is in step");
    }
}

#[test]
fn a_plain_answer_has_the_usual_fields() {
    let server = site("");
    let answer = server.connect().get("/hello.txt", "");
    assert_eq!(answer.status_line, "HTTP/1.1 200 OK");
    for (name, value) in [
        ("Content-Type", "text/plain"),
        ("Content-Length", "14"),
        ("Last-Modified", bolide_testkit::site::LAST_MODIFIED),
        ("ETag", bolide_testkit::site::HELLO_ETAG),
        ("Accept-Ranges", "bytes"),
        ("Connection", "keep-alive"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    let date = answer.header("Date").unwrap();
    assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
    let name = server.home().name().trim_end_matches(':');
    let software = answer.header("Server").unwrap();
    assert!(software.starts_with(name) && software.contains('/'), "{software}");
}

#[test]
fn a_1_0_answer_is_closed_and_never_chunked() {
    let server = site("gzip on; gzip_http_version 1.0; gzip_types text/plain;");
    let mut client = server.connect();
    client.send("GET /page.html HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn absolute_form_beats_host() {
    let server = crate::http(
        "server { listen 127.0.0.1:@HTTP@; server_name a; return 200 a; }
         server { listen 127.0.0.1:@HTTP@; server_name b; return 200 b; }",
    );
    let answer = server.connect().ask("GET http://b/ HTTP/1.1\r\nHost: a");
    assert_eq!(answer.text(), "b");
}

#[test]
fn an_unread_upload_leaves_the_connection_in_step_or_closed() {
    let server = site("client_max_body_size 10m;");
    for size in [1usize, 1_000, 100_000, 2_000_000] {
        let mut client = server.connect();
        client.send(format!("POST /hello.txt HTTP/1.1\r\n{HOST}Content-Length: {size}\r\n\r\n"));
        client.send(vec![b'x'; size]);
        in_step_or_closed(&mut client, &format!("{size} bytes"));
        let mut client = server.connect();
        client.send(format!("POST /hello.txt HTTP/1.1\r\n{HOST}"));
        client.send("Transfer-Encoding: chunked\r\n\r\n");
        for chunk in vec![b'y'; size].chunks(7_777) {
            client.send(format!("{:x}\r\n", chunk.len())).send(chunk).send("\r\n");
        }
        client.send("0\r\n\r\n");
        in_step_or_closed(&mut client, &format!("{size} bytes, chunked"));
    }
}

/// Reads a 405 that came before its body was read. The server drains a short body; for a long one
/// it may close, and says so.
fn in_step_or_closed(client: &mut bolide_testkit::H1TestClient, what: &str) {
    let answer = client.try_answer("POST").unwrap_or_else(|why| panic!("{what}: {why}"));
    assert_eq!(answer.status, 405, "{what}");
    if answer.header("connection") == Some("close") {
        assert!(what.starts_with("2000000") && client.is_closed(), "{what}");
    } else {
        client.send(format!("GET /hello.txt HTTP/1.1\r\n{HOST}\r\n"));
        let next = client.try_answer("GET").unwrap_or_else(|why| panic!("{what}, next: {why}"));
        assert_eq!(next.body, HELLO, "{what}");
    }
}

#[test]
fn a_chunked_upload_beyond_the_limit_is_refused() {
    let server = site("client_max_body_size 1k; location /up { return 200 ok; }");
    let mut client = server.connect();
    client.send(format!("POST /hello.txt HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"));
    client.send("1000\r\n").send(vec![b'x'; 0x1000]).send("\r\n0\r\n\r\n");
    let status = client.answer().status;
    assert!([405, 413].contains(&status), "{status}");
}

#[test]
fn a_client_that_expects_100_gets_an_answer_without_sending_its_body() {
    let server = site("");
    let mut client = server.connect();
    client.send(format!("POST /hello.txt HTTP/1.1\r\n{HOST}Content-Length: 3\r\n"));
    client.send("Expect: 100-continue\r\n\r\n");
    let first = client.answer();
    let last = if first.status == 100 { client.send("abc").answer() } else { first };
    assert_eq!(last.status, 405);
}

#[test]
fn error_pages_look_like_nginxs() {
    let server = site("location /denied { return 403; }");
    let name = server.home().name().trim_end_matches(':').to_owned();
    for (path, title) in [("/missing", "404 Not Found"), ("/denied", "403 Forbidden")] {
        let answer = server.get(path);
        let page = answer.text();
        let head = format!(
            "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n\
             <center><h1>{title}</h1></center>\r\n<hr><center>{name}"
        );
        assert!(page.starts_with(&head), "{page}");
        assert!(page.ends_with("</center>\r\n</body>\r\n</html>\r\n"), "{page}");
        assert_eq!(answer.header("content-type"), Some("text/html"));
    }
}

#[test]
fn a_large_file_arrives_whole() {
    let server = site("");
    let big = std::fs::read(server.www("big.bin")).unwrap();
    let mut client = server.connect();
    for _ in 0..5 {
        assert!(client.get("/big.bin", "").body == big);
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_disturbs_no_other() {
    let server = site("");
    let mut steady = server.connect();
    for _ in 0..50 {
        let mut leaver = server.connect();
        leaver.send(format!("GET /big.bin HTTP/1.1\r\n{HOST}\r\n"));
        leaver.take(100).unwrap();
        drop(leaver);
        assert_eq!(steady.get("/hello.txt", "").body, HELLO);
    }
}

#[test]
fn a_half_closed_client_gets_its_answer() {
    let server = site("");
    let mut client = server.connect();
    client.send(format!("GET /hello.txt HTTP/1.1\r\n{HOST}\r\n"));
    client.finish();
    assert_eq!(client.answer().body, HELLO);
}
