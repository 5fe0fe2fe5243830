//! Added fields and trailers: `add_header`, `add_trailer`, `expires`, and the inheritance of their
//! lists.

use bolide_testkit::Proto;
use bolide_testkit::server::Home;

use crate::{BOLIDE, http, report, site};

/// The message of `-t` for this `http` block.
fn refusal(block: &str) -> String {
    let home = Home::new(BOLIDE);
    let file = home.dir().join("wrong.conf");
    let end = "server { listen 127.0.0.1:@HTTP@; }";
    home.write("wrong.conf", &format!("events {{}}\nhttp {{\n{block}\n{end} }}\n"));
    home.run(&["-t", "-e", "stderr", "-c", file.to_str().unwrap()]).stderr
}

#[test]
fn trailers_follow_the_body_in_every_protocol() {
    let server = site(
        "add_trailer X-Uri $request_uri; add_trailer X-Empty $arg_none; add_trailer X-Uri again;
         location /error { add_trailer X-Safe s; return 404; }
         location /always { add_trailer X-Safe s; add_trailer X-Always a always; return 404; }
         location /empty { add_trailer X-Safe s; return 200 ''; }
         location /big.bin { add_trailer X-Status $status; }",
    );
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        let rows: [(&str, &[(&str, &str)]); 5] = [
            ("/hello.txt?a", &[("x-uri", "/hello.txt?a"), ("x-uri", "again")]),
            ("/error", &[]),
            ("/always", &[("x-always", "a")]),
            ("/empty", &[("x-safe", "s")]),
            ("/big.bin", &[("x-status", "200")]),
        ];
        for (path, wanted) in rows {
            let reply = server.curl(proto).get(&server.url(proto, path));
            let trailers: Vec<(&str, &str)> =
                reply.trailers.iter().map(|(name, value)| (&**name, &**value)).collect();
            assert_eq!(trailers, wanted, "{proto:?} {path}: {reply:?}");
            let has_length = reply.header("content-length").is_some();
            let is_chunked = proto == Proto::H1 && path != "/error";
            assert_eq!(has_length, !is_chunked, "{proto:?} {path}: {:?}", reply.headers);
        }
    }
    let mut client = server.connect();
    client.send("GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.0\r\n\r\n");
    let all = String::from_utf8(client.to_end().unwrap()).unwrap();
    let end = "\r\n0\r\nX-Uri: /hello.txt\r\nX-Uri: again\r\n\r\nHTTP/1.1 404 ";
    assert!(all.contains("e\r\nhello, bolide\n"), "{all}");
    assert!(all.contains(end), "{all}");
}

#[test]
fn answers_without_a_place_for_trailers_have_none() {
    let server = http(
        "log_format t '$status [$sent_trailer_x]';
         server {
             listen 127.0.0.1:@HTTP@; root @DIR@/www; add_trailer X v;
             access_log @DIR@/logs/access.log t;
             location /204 { return 204; }
             location /flat { chunked_transfer_encoding off; return 200 flat; } }",
    );
    for (request, has) in [
        ("GET /hello.txt HTTP/1.1", true),
        ("GET /hello.txt HTTP/1.0", false),
        ("HEAD /hello.txt HTTP/1.1", false),
        ("GET /204 HTTP/1.1", false),
        ("GET /flat HTTP/1.1", false),
    ] {
        let mut client = server.connect();
        client.send(format!("{request}\r\nHost: a\r\nConnection: close\r\n\r\n"));
        let all = String::from_utf8(client.to_end().unwrap()).unwrap();
        assert_eq!(all.contains("\r\nX: v\r\n"), has, "{request}: {all}");
        assert_eq!(all.contains("Transfer-Encoding: chunked"), has, "{request}: {all}");
    }
    let wanted = ["200 [v]", "200 [v]", "200 [-]", "204 [-]", "200 [v]"];
    assert_eq!(server.access_lines(wanted.len()), wanted);
}

#[test]
fn trailers_are_inherited_like_fields() {
    let server = site(
        "add_trailer A 1;
         location /own { add_trailer B 2; return 200 x; } location /outer { return 200 x; }
         location /merge { add_trailer B 2; add_trailer_inherit merge; return 200 x;
             location /merge/in { add_trailer C 3; return 200 x; } }
         location /off { add_trailer_inherit off; return 200 x; }
         location /if { if ($arg_a) { add_trailer D 4; return 200 x; } return 200 x; }",
    );
    let rows = [
        ("/own", "B: 2\r\n"),
        ("/outer", "A: 1\r\n"),
        ("/merge", "B: 2\r\nA: 1\r\n"),
        ("/merge/in", "C: 3\r\nB: 2\r\nA: 1\r\n"),
        ("/off", ""),
        ("/if", "A: 1\r\n"),
        ("/if?a=1", "D: 4\r\n"),
    ];
    let mut failures = Vec::new();
    for (path, wanted) in rows {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        let all = String::from_utf8(client.to_end().unwrap()).unwrap();
        let trailers = all.split_once("\r\n0\r\n").map_or("", |(_, rest)| rest);
        if trailers.trim_end() != wanted.trim_end() {
            failures.push(format!("{path}: {trailers:?}"));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn wrong_arguments_get_nginxs_messages() {
    let rows = [
        ("add_trailer A;", "invalid number of arguments in \"add_trailer\" directive in "),
        ("add_trailer A b often;", "invalid parameter \"often\" in "),
        ("add_trailer A $nothing;", "unknown \"nothing\" variable"),
        ("add_trailer_inherit both;", "invalid value \"both\" in "),
        (
            "add_trailer_inherit on; add_trailer_inherit on;",
            "\"add_trailer_inherit\" directive is duplicate in ",
        ),
        ("add_header A b often;", "invalid parameter \"often\" in "),
        ("add_header A;", "invalid number of arguments in \"add_header\" directive in "),
        ("add_header_inherit both;", "invalid value \"both\" in "),
    ];
    let mut failures = Vec::new();
    for (block, wanted) in rows {
        let said = refusal(block);
        if !said.contains(wanted) {
            failures.push(format!("{block}: {said}"));
        }
    }
    report(rows.len(), &failures);
}
