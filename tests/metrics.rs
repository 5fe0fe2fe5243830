//! `metrics`: what a real Prometheus reads of it, counts after known traffic, the list of all
//! figures and the dashboard.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bolide_testkit::server::LISTEN;
use bolide_testkit::tools::{ToolRun, finish, tool};
use bolide_testkit::{Proto, TestPhp, TestServer, TestUpstream, wait_until};

use crate::explain::ask;
use crate::{BOLIDE, http};

/// A location with figures for the clients of these tests.
const METRICS: &str = "location = /metrics { metrics on; allow 127.0.0.1; deny all; }";
/// What Prometheus sends.
const OPEN: &str = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5,*/*;q=0.1";

/// Samples by name and labels as they are written.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.rsplit_once(' ').unwrap());
    let mut all = BTreeMap::new();
    for (name, value) in parts {
        let value = value.parse().unwrap_or_else(|why| panic!("{name} {value}: {why}"));
        assert!(all.insert(name.to_owned(), value).is_none(), "{name} occurs twice");
    }
    all
}

/// What the command prints.
fn values(server: &TestServer) -> BTreeMap<String, f64> {
    let pid = server.pid().to_string();
    samples(&server.home().run(&["metrics", "--pid", &pid]).succeeded().text())
}

fn value(all: &BTreeMap<String, f64>, name: &str) -> f64 {
    all.get(name).copied().unwrap_or(0.0)
}

/// A sample of requests to `localhost`.
fn requests(location: &str, class: &str, protocol: &str) -> String {
    format!(
        "bolide_http_requests_total{{server=\"localhost\",location=\"{location}\",\
         code_class=\"{class}\",protocol=\"{protocol}\"}}"
    )
}

#[test]
fn requests_are_counted_exactly_over_all_workers_and_protocols() {
    let block = format!(
        "server {{ {LISTEN} {METRICS}
             location /none {{ return 404; location /none/in {{ return 301 /; }} }}
             location ~ \\.\"q$ {{ return 200 x; }}
             location /if {{ if ($arg_a) {{ return 503; }} return 204; }}
             location @named {{ return 200 named; }}
             location /to {{ try_files /nothing @named; }} }}
         server {{ listen 127.0.0.1:@P2@; location / {{ return 200 x; }} }}"
    );
    let server = TestServer::workers(BOLIDE, 3, &block);
    let ports = [Proto::H1, Proto::H2, Proto::H3];
    let before = values(&server);
    for (times, proto) in (3..).zip(ports) {
        for _ in 0..times {
            for (path, status) in [
                ("/hello.txt", 200),
                ("/none/a", 404),
                ("/none/in", 301),
                ("/a.%22q", 200),
                ("/if", 204),
                ("/if?a=1", 503),
                ("/to", 200),
            ] {
                assert_eq!(server.fetch(proto, path).status, status, "{path}");
            }
        }
    }
    let mut plain = bolide_testkit::H1TestClient::connect(server.addr(2));
    for _ in 0..5 {
        assert_eq!(plain.get("/", "").status, 200);
    }
    let posted = plain.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0").status;
    plain.send("GARBAGE\r\n\r\n");
    assert_eq!((posted, plain.answer().status), (200, 400));
    let mut expected = BTreeMap::new();
    for (times, protocol) in (3..).zip(["h1", "h2", "h3"]) {
        for (location, class) in [
            ("(server)", "2xx"),
            ("/none", "4xx"),
            ("/none/in", "3xx"),
            ("~ \\\\.\\\"q$", "2xx"),
            ("/if", "2xx"),
            ("/if", "5xx"),
            ("@named", "2xx"),
        ] {
            expected.insert(requests(location, class, protocol), f64::from(times));
        }
    }
    let nameless = |location: &str, class: &str| {
        requests(location, class, "h1").replace("\"localhost\"", "\"_\"")
    };
    expected.insert(nameless("/", "2xx"), 6.0);
    expected.insert(nameless("(server)", "4xx"), 1.0);
    let mut found = BTreeMap::new();
    wait_until("everything is counted", || {
        let after = values(&server);
        found = after
            .iter()
            .filter(|(name, _)| name.starts_with("bolide_http_requests_total"))
            .map(|(name, count)| (name.clone(), count - value(&before, name)))
            .filter(|(_, count)| *count > 0.0)
            .collect();
        found.values().sum::<f64>() >= expected.values().sum()
    });
    assert_eq!(found, expected);
    let all = values(&server);
    let of = |name: &str| value(&all, name);
    assert_eq!(of("bolide_http_request_duration_seconds_count{server=\"_\"}"), 7.0);
    assert_eq!(of("bolide_http_request_duration_seconds_bucket{server=\"_\",le=\"+Inf\"}"), 7.0);
    assert!(of("bolide_http_response_bytes_total{server=\"_\"}") > 7.0 * 50.0);
    assert!(of("bolide_http_request_bytes_total{server=\"_\"}") > 5.0 * 20.0);
    assert_eq!(of("bolide_workers"), 3.0);
    for worker in 0..3 {
        assert!(of(&format!("bolide_worker_turns_total{{worker=\"{worker}\"}}")) > 0.0);
    }
    for protocol in ["h1", "h2", "h3"] {
        let name = format!("bolide_connections_settled_total{{protocol=\"{protocol}\"}}");
        assert!(of(&name) >= 3.0, "{name} {all:?}");
    }
    let quic = "bolide_tls_handshakes_total{transport=\"quic\",version=\"TLSv1.3\",resumed=\"no\"}";
    assert!(of(quic) >= 5.0 * 7.0, "{all:?}");
    for direction in ["received", "sent"] {
        assert!(of(&format!("bolide_quic_datagrams_total{{direction=\"{direction}\"}}")) > 35.0);
    }
}

#[test]
fn metrics_include_connection_states_and_handshakes() {
    let server = http(&format!("server {{ {LISTEN} {METRICS} }}"));
    let idle: Vec<_> = (0..4)
        .map(|_| {
            let mut client = server.connect();
            assert_eq!(client.get("/hello.txt", "").status, 200);
            client
        })
        .collect();
    let mut half = server.connect();
    half.send("GET / HT");
    let conns = |state: &str| format!("bolide_connections{{protocol=\"h1\",state=\"{state}\"}}");
    wait_until("they are where they are", || {
        let all = values(&server);
        let of = |state: &str| value(&all, &conns(state));
        (of("active"), of("reading"), of("waiting"), of("writing")) == (5.0, 1.0, 4.0, 0.0)
    });
    drop((idle, half));
    wait_until("all have left", || value(&values(&server), &conns("active")) == 0.0);
    let mut wrong = bolide_testkit::H1TestClient::connect(server.https());
    // The beginning of a handshake with nothing behind it.
    wrong.send([22, 3, 1, 0, 5, 1, 0, 0, 1, 0]);
    let _ = wrong.to_end();
    assert_eq!(server.fetch(Proto::H2, "/hello.txt").status, 200);
    wait_until("handshakes are counted", || {
        let all = values(&server);
        let good = "bolide_tls_handshakes_total{transport=\"tcp\",version=\"TLSv1.3\",\
                    resumed=\"no\"}";
        let failed = "bolide_tls_handshake_failures_total{transport=\"tcp\",\
                      cause=\"abandoned\"}";
        (value(&all, good), value(&all, failed)) == (1.0, 1.0)
    });
}

#[test]
fn the_format_is_negotiated_and_never_cached() {
    let php = TestPhp::start(1);
    let server = crate::cache::serve(
        &php,
        "",
        &format!(
            "page_cache auto; }} page_cache on; expires 1d; gzip on; gzip_min_length 1; \
                  gzip_types text/plain; {METRICS} location /x {{ "
        ),
    );
    let plain = "text/plain; version=0.0.4; charset=utf-8";
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    for proto in Proto::TLS {
        for (accept, kind) in [("Accept:", plain), (OPEN, open), ("Accept: text/plain", plain)] {
            let reply = server.curl(proto).field(accept).get(&server.url(proto, "/metrics"));
            assert_eq!((reply.status, reply.header("content-type")), (200, Some(kind)));
            let fields = reply.headers.iter().filter(|(name, _)| name == "cache-control");
            assert_eq!(fields.map(|(_, value)| &**value).collect::<Vec<_>>(), ["no-store"]);
            assert!(reply.headers.contains(&("vary".to_owned(), "Accept".to_owned())));
            assert_eq!(reply.text().ends_with("# EOF\n"), kind == open);
            assert!(!reply.text().is_empty() && reply.header("x-litespeed-cache").is_none());
        }
        let head = server
            .curl(proto)
            .args(["--head", "--output", "/dev/null"])
            .get(&server.url(proto, "/metrics"));
        // curl writes the head of such a response where a body would go.
        assert!(head.status == 200 && !head.text().contains("# HELP"), "{head:?}");
        assert!(head.header("content-length").is_some_and(|length| length.len() > 3));
        for field in [
            "Range: bytes=0-9",
            "If-None-Match: \"a\"",
            "If-Modified-Since: \
                       Thu, 01 Jan 2099 00:00:00 GMT",
        ] {
            let reply = server.curl(proto).field(field).get(&server.url(proto, "/metrics"));
            assert_eq!(reply.status, 200, "{field}");
            assert!(reply.header("etag").is_none() && reply.header("last-modified").is_none());
        }
        let posted = server.curl(proto).args(["-d", "x"]).get(&server.url(proto, "/metrics"));
        assert_eq!(posted.status, 405);
    }
    let coded = server.connect().get("/metrics", "Accept-Encoding: gzip\r\n");
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    let kept = ask(&server, &["cache", "list"]).succeeded().text();
    assert_eq!(kept, "no matching entries\n");
}

#[test]
fn metrics_include_the_cache_and_upstream_servers() {
    let (php, bad, good) = (TestPhp::start(1), TestUpstream::start(), TestUpstream::start());
    good.say("/up", bolide_testkit::origin::answer("", "ok"));
    let server = crate::cache::serve(
        &php,
        &format!(
            "upstream mine {{ server {} max_fails=1; server {} backup; }}",
            bad.address(),
            good.address()
        ),
        &format!(
            "page_cache auto; }} {METRICS} location /up {{ proxy_pass http://mine; }} location /x {{ "
        ),
    );
    bad.vanish();
    let page = "/count.php?n=1&h[]=X-LiteSpeed-Cache-Control:public,max-age=60";
    for _ in 0..4 {
        assert_eq!(server.get(page).status, 200);
    }
    assert_eq!(server.get("/count.php?n=2").status, 200);
    for _ in 0..2 {
        assert_eq!(server.get("/up").text(), "ok");
    }
    let cache = |result: &str| {
        format!(
            "bolide_cache_requests_total{{kind=\"vhost\",space=\"localhost\",result=\"{result}\"}}"
        )
    };
    let peer = |name: &str, address: &str| {
        format!("bolide_upstream_{name}{{upstream=\"mine\",peer=\"{address}\"}}")
    };
    let expected = [
        (cache("hit"), 3.0),
        (cache("miss"), 2.0),
        ("bolide_cache_decisions_total{result=\"hit\",reason=\"asked\"}".to_owned(), 3.0),
        // The second response shows that a page is not storable.
        ("bolide_cache_inserted_objects_total".to_owned(), 2.0),
        ("bolide_cache_space_objects{kind=\"vhost\",space=\"localhost\"}".to_owned(), 2.0),
        (peer("requests_total", &bad.address()), 1.0),
        (peer("failures_total", &bad.address()), 1.0),
        (peer("up", &bad.address()), 0.0),
        (peer("requests_total", &good.address()), 2.0),
        (peer("failures_total", &good.address()), 0.0),
        (peer("up", &good.address()), 1.0),
        (peer("active_requests", &good.address()), 0.0),
    ];
    let all = values(&server);
    for (name, count) in expected {
        assert_eq!(all.get(&name), Some(&count), "{name} in {all:#?}");
    }
}

#[test]
fn metrics_include_reloads_and_certificates() {
    let block = format!("server {{ {LISTEN} {METRICS} location /a {{ return 200; }} }}");
    let server = http(&block);
    assert_eq!(server.get("/a").status, 200);
    let all = values(&server);
    let file = server.home().expand("@CERT@");
    let ends = format!(
        "bolide_certificate_not_after_timestamp_seconds{{server=\"localhost\",file=\"{file}\"}}"
    );
    let now = value(&all, "bolide_config_last_reload_success_timestamp_seconds");
    assert!(value(&all, &ends) > now && now > 1.7e9, "{all:?}");
    assert_eq!(value(&all, "bolide_config_last_reload_successful"), 1.0);
    server.rewrite("wrong");
    server.signal("HUP");
    let refused = "bolide_config_reloads_total{result=\"failure\"}";
    wait_until("it is refused", || value(&values(&server), refused) == 1.0);
    assert_eq!(value(&values(&server), "bolide_config_last_reload_successful"), 0.0);
    server.reload(&format!("{block} server {{ listen 127.0.0.1:@P2@; }}"));
    let good = "bolide_config_reloads_total{result=\"success\"}";
    wait_until("it is in force", || value(&values(&server), good) == 1.0);
    let all = values(&server);
    assert_eq!(value(&all, "bolide_config_last_reload_successful"), 1.0);
    assert_eq!(value(&all, "bolide_config_generation"), 2.0);
    // Counters go on.
    assert_eq!(server.get("/a").status, 200);
    wait_until("it is counted", || value(&values(&server), &requests("/a", "2xx", "h1")) == 2.0);
}

#[test]
fn a_location_that_every_client_may_read_is_warned_of_with_its_line() {
    for (inner, is_open) in [
        ("", true),
        ("satisfy any;", true),
        ("auth_basic off;", true),
        ("allow 127.0.0.1; deny all;", false),
        ("auth_basic x; auth_basic_user_file f;", false),
        ("auth_request /a;", false),
        ("internal;", false),
    ] {
        let home = bolide_testkit::server::Home::new(BOLIDE);
        let conf = format!(
            "events {{}}\nhttp {{ server {{ listen 127.0.0.1:@HTTP@;\nlocation /m {{ {inner}\nmetrics \
             on;\n}} }} }}"
        );
        home.write("nginx.conf", &conf);
        let run = home.run(&["-t", "-c", "nginx.conf"]);
        let line = run.stderr.lines().find(|line| line.contains("every client may read"));
        assert_eq!((run.code, line.is_some()), (0, is_open), "{inner}: {run}");
        assert!(line.is_none_or(|line| line.contains("[warn]") && line.ends_with(":4")), "{run}");
    }
    let off = http(&format!("server {{ {LISTEN} location /m {{ metrics off; return 204; }} }}"));
    assert_eq!(off.get("/m").status, 204);
    let closed = http(&format!("server {{ {LISTEN} location /m {{ metrics on; deny all; }} }}"));
    assert_eq!(closed.get("/m").status, 403);
}

/// A Prometheus that reads the metrics of one server. Dropping it kills it.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    fn start(server: &TestServer) -> Self {
        let (home, port) = (server.home(), server.home().port(9));
        let target = server.http();
        let conf = home.write(
            "prometheus.yml",
            &format!(
                "global: {{ scrape_interval: 200ms, scrape_timeout: 200ms }}\nscrape_configs:\n- \
                 job_name: bolide\n  static_configs:\n  - targets: ['{target}']\n"
            ),
        );
        let log = File::create(home.dir().join("prometheus.log")).unwrap();
        let child = Command::new(tool("prometheus"))
            .arg(format!("--config.file={}", conf.display()))
            .arg(format!("--storage.tsdb.path={}", home.dir().join("series").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, port }
    }

    /// Its answer to a query, as JSON.
    fn query(&self, query: &str) -> String {
        let mut curl = Command::new(tool("curl"));
        let url = format!("http://127.0.0.1:{}/api/v1/query", self.port);
        curl.args(["-sS", "--get", "--data-urlencode"]).arg(format!("query={query}")).arg(url);
        finish("curl", curl, Duration::from_secs(60)).text()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `promtool check metrics` says of a text.
fn check(server: &TestServer, text: &str) -> ToolRun {
    let file = server.home().write("metrics.txt", "");
    std::fs::write(&file, text).unwrap();
    let mut shell = Command::new("sh");
    let promtool = tool("promtool");
    shell.arg("-c").arg(format!("{} check metrics <{}", promtool.display(), file.display()));
    finish("promtool", shell, Duration::from_secs(60))
}

/// A server with a cache and an upstream group, so that it has all metrics.
fn everything() -> TestServer {
    http(&format!(
        "upstream mine {{ server 127.0.0.1:@P3@; }}
         server {{ {LISTEN} {METRICS} location /up {{ page_cache on; proxy_pass http://mine; }} }}"
    ))
}

#[test]
fn prometheus_reads_the_metrics_and_the_dashboard_queries_existing_ones() {
    let server = everything();
    for _ in 0..7 {
        assert_eq!(server.get("/hello.txt").status, 200);
    }
    let reply = server.get("/metrics");
    let run = check(&server, &reply.text());
    assert!(run.code == 0 && run.stderr.trim().is_empty(), "{run}\n{}", reply.text());
    let broken = check(&server, &format!("{}a{{ 1\n", reply.text()));
    assert_ne!(broken.code, 0, "what is wrong is found");
    let prometheus = Prometheus::start(&server);
    let query = requests("(server)", "2xx", "h1");
    wait_until("it knows the requests", || prometheus.query(&query).contains(",\"7\"]}]"));
    assert!(prometheus.query("up").contains(",\"1\"]}]"));
    let known: BTreeSet<String> = values(&server)
        .keys()
        .map(|name| name.split('{').next().unwrap().to_owned())
        .chain(families(&reply.text()).into_keys())
        .collect();
    let board = include_str!("../contrib/grafana/bolide.json");
    let asked: Vec<String> = board
        .split("\"expr\": \"")
        .skip(1)
        .map(|rest| rest.split("\"\n").next().unwrap().replace("\\\"", "\""))
        .collect();
    assert!(asked.len() > 15, "{asked:?}");
    for expression in asked {
        let names = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names =
            names.filter(|word| word.starts_with("bolide_") || word.starts_with("process_"));
        let unknown: Vec<&str> = names.clone().filter(|name| !known.contains(*name)).collect();
        assert!(unknown.is_empty() && names.count() > 0, "{expression}: {unknown:?}");
        let query = expression.replace("$__rate_interval", "1m").replace("$server", ".*");
        let values = prometheus.query(&query);
        assert!(values.starts_with("{\"status\":\"success\""), "{query}: {values}");
    }
}

/// The families of a text: kind and meaning by the name of their samples.
fn families(text: &str) -> BTreeMap<String, (String, String)> {
    let heads = text.split("# HELP ").skip(1);
    heads
        .map(|head| {
            let mut lines = head.lines();
            let (name, help) = lines.next().unwrap().split_once(' ').unwrap();
            let kind = lines.next().unwrap().rsplit(' ').next().unwrap();
            (name.to_owned(), (kind.to_owned(), help.to_owned()))
        })
        .collect()
}

#[test]
fn the_document_lists_all_metrics_of_the_server() {
    let server = everything();
    assert_eq!(server.get("/hello.txt").status, 200);
    let text = ask(&server, &["metrics"]).succeeded().text();
    let found = families(&text);
    let document = include_str!("../docs/metrics.md");
    let (_, tables) = document.split_once("## The figures").unwrap();
    let rows = tables.lines().filter(|line| line.starts_with("| `"));
    let mut listed = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, kind, unit, labels, help] = cells[..] else { panic!("{row}") };
        let name = name.trim_matches('`');
        let is_of = |unit: &str| name.trim_end_matches("_total").ends_with(unit);
        let expected = ["seconds", "bytes"].into_iter().find(|unit| is_of(unit)).unwrap_or("–");
        assert_eq!(unit, expected, "{row}");
        listed.insert(name.to_owned(), (kind.to_owned(), help.to_owned()));
        let wanted: Vec<&str> = labels.split(", ").map(|label| label.trim_matches('`')).collect();
        for sample in samples(&text).keys() {
            let Some((of, inside)) = sample.trim_end_matches('}').split_once('{') else { continue };
            if of == name {
                let names: Vec<&str> =
                    inside.split("\",").map(|label| label.split('=').next().unwrap()).collect();
                assert_eq!(names, wanted, "{sample}");
            }
        }
    }
    assert_eq!(listed, found);
    let open = ask(&server, &["metrics", "--openmetrics"]).succeeded().text();
    assert!(open.ends_with("\n# EOF\n"), "{open}");
    let elsewhere = ask(&server, &["metrics", "--json"]);
    assert!(elsewhere.code == 1 && elsewhere.stderr.contains("invalid option: \"--json\""));
}
