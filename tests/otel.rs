//! Traces: spans as an independent collector reads them, contexts to upstream servers, and
//! collectors that are slow, busy or gone.

mod contexts;

use std::collections::HashMap;

use bolide_testkit::server::LISTEN;
use bolide_testkit::tools::Companion;
use bolide_testkit::{Proto, TestServer, wait_until};

use crate::http;

const COLLECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otel_collector.py");

/// A collector that reads spans with the official messages.
pub(crate) struct Collector {
    companion: Companion,
    port: u16,
}

/// A span, its fields and attributes by name.
pub(crate) struct Span(HashMap<String, String>);

impl Span {
    fn read(line: &str) -> Self {
        let pairs = line.split('|').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A field or an attribute; `-` if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("-", String::as_str)
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or_else(|_| panic!("{name}: {}", self.get(name)))
    }
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self::with(&["0"])
    }

    fn with(args: &[&str]) -> Self {
        let companion = Companion::start(COLLECTOR, args.iter().copied());
        let port = companion.line().trim_start_matches("port ").parse().unwrap();
        Self { companion, port }
    }

    /// An `otel_exporter` that sends every span at once.
    pub(crate) fn exporter(&self) -> String {
        self.exporter_at("")
    }

    fn exporter_at(&self, path: &str) -> String {
        exporter(&format!("127.0.0.1:{}{path}", self.port), "")
    }

    /// The next line that is no head of a request.
    fn line(&self) -> String {
        loop {
            let line = self.companion.line();
            if !line.starts_with("post ") {
                return line;
            }
        }
    }

    /// The next span.
    pub(crate) fn span(&self) -> Span {
        let line = self.line();
        Span::read(line.strip_prefix("span ").unwrap_or_else(|| panic!("no span: {line}")))
    }
}

fn exporter(endpoint: &str, more: &str) -> String {
    let scheme = if endpoint.contains("://") || !endpoint.contains('/') { "" } else { "http://" };
    format!("otel_exporter {{ endpoint {scheme}{endpoint}; interval 20ms; {more} }}")
}

/// A site with this exporter, on all listeners.
pub(crate) fn traced(exporter: &str, server: &str) -> TestServer {
    http(&format!("{exporter} server {{ {LISTEN} {server} }}"))
}

#[test]
fn a_traced_request_has_a_span_over_each_protocol() {
    let collector = Collector::start();
    let server = http(&format!(
        "otel_exporter {{ endpoint localhost:{}; interval 20ms; header X-Token abc; }}
         otel_service_name shop; otel_resource_attr deployment.environment 'a b';
         server {{ {LISTEN} otel_trace on; otel_span_attr outer 1;
             location /files/ {{ alias @DIR@/www/; otel_span_attr cache $upstream_cache_status;
                                 otel_span_attr uri $uri; }}
             location = /off {{ otel_trace off; return 204; }} }}",
        collector.port
    ));
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut ids = Vec::new();
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        assert_eq!(server.curl(proto).get(&server.url(proto, "/off")).status, 204);
        let curl = server.curl(proto).args(["-A", "agent \u{e9}"]);
        let url = server.url(proto, "/files/hello.txt?q=1|2");
        assert_eq!(curl.get(&url).status, 200);
        let head = collector.companion.line();
        let host = format!("host=localhost:{}", collector.port);
        assert_eq!(
            head,
            format!("post /v1/traces content-type=application/x-protobuf x-token=abc {host}")
        );
        let span = collector.span();
        let scheme = if proto == Proto::H2c { "http" } else { "https" };
        let (flavor, port) = match proto {
            Proto::H1 => ("1.1", server.https().port()),
            Proto::H2 => ("2.0", server.https().port()),
            Proto::H2c => ("2.0", server.http().port()),
            Proto::H3 => ("3.0", server.https().port()),
        };
        let port = port.to_string();
        for (name, wanted) in [
            ("name", "/files/"),
            ("kind", "2"),
            ("status", "0"),
            ("parent", ""),
            ("state", ""),
            ("flags", "0x101"),
            ("scope", "bolide"),
            ("http.method", "GET"),
            ("http.target", "/files/hello.txt?q=1%7C2"),
            ("http.route", "/files/"),
            ("http.scheme", scheme),
            ("http.flavor", flavor),
            ("http.user_agent", "agent \u{e9}"),
            ("http.request_content_length", "-"),
            ("http.response_content_length", "14"),
            ("http.status_code", "200"),
            ("net.host.name", "localhost"),
            ("net.host.port", &port),
            ("net.sock.peer.addr", "127.0.0.1"),
            ("resource.service.name", "shop"),
            ("resource.deployment.environment", "a b"),
            ("outer", "-"),
            ("cache", ""),
            ("uri", "/files/hello.txt"),
        ] {
            assert_eq!(span.get(name), wanted, "{proto:?}: {name}");
        }
        assert!(span.number("net.sock.peer.port") > 0);
        let (start, end) = (span.number("start"), span.number("end"));
        assert!(start >= before.as_nanos() as u64 / 1_000_000_000 * 1_000_000_000);
        assert!(start <= end && end < start + 60_000_000_000, "{start} to {end}");
        assert_eq!((span.get("trace").len(), span.get("span").len()), (32, 16));
        ids.push((span.get("trace").to_owned(), span.get("span").to_owned()));
    }
    ids.sort();
    ids.dedup_by(|one, other| one.0 == other.0 || one.1 == other.1);
    assert_eq!(ids.len(), 4, "each request has its own");
}

#[test]
fn spans_have_errors_bodies_and_the_final_location() {
    let collector = Collector::start();
    let server = traced(
        &collector.exporter(),
        "otel_trace on;
         location /502 { proxy_pass http://127.0.0.1:1; }
         location /moved { rewrite ^ /final last; }
         location /final { return 200 here; }
         location /named { otel_span_name \"$request_method of $uri\"; return 204; }
         location /444 { return 444; }
         location /page { error_page 404 /final; return 404; }
         location /late { otel_trace off; rewrite ^ /final last; }
         location /off { otel_trace off; otel_trace_context extract; rewrite ^ /final last; }
         location /sub { ssi on; ssi_types *; alias @DIR@/www/ssi.html; }",
    );
    std::fs::write(server.www("ssi.html"), "<!--#include virtual=\"/final\" -->").unwrap();
    let one = |path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let _end = server.connect().send(head).to_end();
        collector.span()
    };
    for (path, name, code, status) in [
        ("/502", "/502", "502", "2"),
        ("/moved", "/final", "200", "0"),
        ("/named", "GET of /named", "204", "0"),
        ("/444", "/444", "444", "0"),
        ("/page", "/final", "404", "0"),
        ("/late", "/final", "200", "0"),
        ("/nothing", "", "404", "0"),
        ("/sub", "/sub", "200", "0"),
        ("/named", "GET of /named", "204", "0"),
    ] {
        let span = one(path);
        let name = if name.is_empty() { "GET" } else { name };
        let found = (span.get("name"), span.get("http.status_code"), span.get("status"));
        assert_eq!(found, (name, code, status), "{path}");
        assert_eq!(span.get("http.target"), path);
    }
    // It was decided where the request entered, and redirects do not change that: the next span is
    // that of the next request.
    server.get("/off");
    let mut client = server.connect();
    client.send("POST /final HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").answer();
    let span = collector.span();
    let lengths = ["http.request_content_length", "http.response_content_length"];
    assert_eq!(span.get("http.target"), "/final");
    assert_eq!(lengths.map(|name| span.get(name).to_owned()), ["5", "4"]);
}

#[test]
fn texts_that_are_no_utf_8_reach_the_collector_as_texts() {
    let collector = Collector::start();
    let server = traced(&collector.exporter(), "otel_trace on; otel_span_attr a $http_x;");
    let head = b"GET /%ff\xff HTTP/1.1\r\nHost: a\r\nUser-Agent: \xc3(\x80\r\nX: \xff\"\t|\r\n\r\n";
    server.connect().send(head).finish().to_end().unwrap();
    let span = collector.span();
    assert_eq!(span.get("http.target"), "/%ff\u{fffd}");
    assert_eq!(span.get("http.user_agent"), "\u{fffd}(\u{fffd}");
    assert_eq!(span.get("a"), "\u{fffd}\"\t%7C");
}

#[test]
fn spans_leave_before_a_reload_and_the_end() {
    let collector = Collector::start();
    let block = |interval: &str, name: &str| {
        format!(
            "otel_exporter {{ endpoint 127.0.0.1:{}; interval {interval}; }}
             otel_service_name {name}; server {{ {LISTEN} otel_trace on; }}",
            collector.port
        )
    };
    let server = http(&block("1h", "first"));
    server.get("/hello.txt?1");
    server.get("/hello.txt?2");
    server.reload(&block("1h", "second"));
    for target in ["/hello.txt?1", "/hello.txt?2"] {
        let span = collector.span();
        assert_eq!(span.get("http.target"), target);
        assert_eq!(span.get("resource.service.name"), "first");
    }
    // The same exporter stays, and keeps what waits.
    wait_until("the new configuration", || {
        server.get("/hello.txt?3");
        server.error_log().contains("the replaced configuration is no longer in use")
    });
    server.get("/hello.txt?4");
    assert_eq!(server.stop("QUIT").code, 0);
    let mut last = collector.span();
    while last.get("http.target") == "/hello.txt?3" {
        last = collector.span();
    }
    assert_eq!(last.get("http.target"), "/hello.txt?4");
    assert_eq!(last.get("resource.service.name"), "second");
}

#[test]
fn a_successor_exports_and_the_old_process_leaves_nothing() {
    let collector = Collector::start();
    let mut server = http(&format!(
        "otel_exporter {{ endpoint 127.0.0.1:{}; interval 1h; }}
         server {{ {LISTEN} otel_trace on; otel_span_attr pid $pid; }}",
        collector.port
    ));
    server.get("/hello.txt");
    let old = server.pid();
    let pid = server.home().dir().join("logs/pid");
    server.signal("USR2");
    let read = || std::fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok();
    wait_until("a successor", || read().is_some_and(|new| new != old));
    let new = read().unwrap();
    server.signal("QUIT");
    assert_eq!(collector.span().get("pid"), old.to_string());
    let _exit = server.wait_exit();
    let reply = bolide_testkit::Curl::new(Proto::H1).get(&format!("http://{}/", server.http()));
    assert_eq!(reply.status, 200);
    let kill = std::process::Command::new("kill").args(["-QUIT", &new.to_string()]).status();
    assert!(kill.unwrap().success());
    let mut span = collector.span();
    while span.get("pid") == old.to_string() {
        span = collector.span();
    }
    assert_eq!(span.get("pid"), new.to_string());
}

#[test]
fn spans_that_a_busy_collector_refuses_are_sent_again() {
    let collector = Collector::start();
    let server = traced(&collector.exporter_at("/busy"), "otel_trace on;");
    server.get("/hello.txt");
    for _ in 0..3 {
        assert_eq!(collector.line(), "refused 503");
    }
    assert_eq!(collector.span().get("http.target"), "/hello.txt");
    assert!(server.error_log().contains("OTel export failure: the collector answered 503"));
    assert_eq!(server.error_log().matches("OTel export failure").count(), 1);
}

#[test]
fn spans_that_a_collector_does_not_understand_are_dropped() {
    let collector = Collector::start();
    let server = traced(&collector.exporter_at("/bad"), "otel_trace on;");
    server.get("/hello.txt");
    assert_eq!(collector.line(), "refused 400");
    wait_until("the drop is logged", || server.error_log().contains("OTel: 1 spans were dropped"));
}

#[test]
fn no_request_waits_for_a_collector_that_hangs_refuses_or_is_busy() {
    let collector = Collector::start();
    for (path, port) in [("/hang", collector.port), ("/never", collector.port), ("/", 1)] {
        let small = "batch_size 4; batch_count 2;";
        let server =
            traced(&exporter(&format!("http://127.0.0.1:{port}{path}"), small), "otel_trace on;");
        server.get("/hello.txt");
        wait_until("the collector is asked", || match path {
            "/" => server.error_log().contains("connect() failed (111: Connection refused)"),
            _ => collector.line() != "",
        });
        let mut client = server.connect();
        for _ in 0..100 {
            assert_eq!(client.get("/hello.txt", "").status, 200);
        }
        drop(client);
        let exit = server.stop("QUIT");
        assert_eq!(exit.code, 0);
        let dropped = exit.error_log.matches("spans were dropped").count();
        assert!(path == "/hang" || dropped > 0, "{path}: {}", exit.error_log);
    }
}

#[test]
fn a_collector_over_tls_needs_a_trusted_certificate() {
    let home = bolide_testkit::server::Home::new(crate::BOLIDE);
    let [cert, key] = ["@CERT@", "@KEY@"].map(|word| home.expand(word));
    let collector = Collector::with(&["0", &cert, &key]);
    let serve = |trusted: &str, host: &str| {
        let endpoint = format!("https://{host}:{}", collector.port);
        traced(&exporter(&endpoint, trusted), "otel_trace on;")
    };
    let server = serve(&format!("trusted_certificate {cert};"), "localhost");
    server.get("/hello.txt?1");
    assert_eq!(collector.span().get("http.target"), "/hello.txt?1");
    // The authorities of others do not vouch for it.
    let strangers = [serve("trusted_certificate @CERT@;", "localhost"), serve("", "localhost")];
    for server in strangers {
        server.get("/hello.txt?2");
        wait_until("the certificate is refused", || {
            server.error_log().contains("OTel export failure: ")
        });
        assert!(server.error_log().contains("certificate"), "{}", server.error_log());
    }
    let server = serve(&format!("trusted_certificate {cert};"), "localhost");
    server.get("/hello.txt?3");
    assert_eq!(collector.span().get("http.target"), "/hello.txt?3");
}
