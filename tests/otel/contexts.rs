//! W3C Trace Context: what the server accepts from clients and sends upstream, and which requests
//! it traces.

use bolide_testkit::{Proto, TestApp, TestUpstream};

use super::{Collector, traced};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn good(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// Trace, span and flags of a context that this server wrote.
fn cut(context: &str) -> [&str; 3] {
    let parts: Vec<&str> = context.split('-').collect();
    assert_eq!((parts.len(), parts[0]), (4, "00"), "{context}");
    assert!(parts[1].len() == 32 && parts[2].len() == 16, "{context}");
    [parts[1], parts[2], parts[3]]
}

#[test]
fn upstream_servers_get_the_context_over_each_protocol() {
    let (collector, origin, app) = (Collector::start(), TestUpstream::start(), TestApp::start());
    let proxy = format!("proxy_pass http://{};", origin.address());
    let fastcgi =
        format!("fastcgi_param REQUEST_URI $request_uri; fastcgi_pass {};", app.address());
    let mut places = String::new();
    for (word, pass) in [("p", &proxy), ("f", &fastcgi)] {
        for context in ["ignore", "extract", "inject", "propagate"] {
            places +=
                &format!("location /{word}/{context} {{ otel_trace_context {context}; {pass} }}\n");
        }
    }
    let server = traced(&collector.exporter(), &format!("otel_trace on; {places}"));
    for (at, proto) in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3].into_iter().enumerate() {
        for context in ["ignore", "extract", "inject", "propagate"] {
            for word in ["p", "f"] {
                let target = format!("/{word}/{context}?{at}");
                let curl = server.curl(proto).field(&format!("TraceParent: {}", good("01")));
                let curl = curl.field("tracestate: a=1").field("tracestate: b=2");
                assert_eq!(curl.get(&server.url(proto, &target)).status, 200);
                let of = |name: &str| match word {
                    "p" => {
                        let asked = origin.asked(&target);
                        asked[0].all(name).iter().map(|one| (*one).to_owned()).collect::<Vec<_>>()
                    }
                    _ => app.asked(&target)[0].field(name).map(str::to_owned).into_iter().collect(),
                };
                let (parents, state) = (of("traceparent"), of("tracestate").join(", "));
                let span = collector.span();
                assert_eq!(span.get("http.target"), target);
                assert_eq!(parents.len(), 1, "{target}: {parents:?}");
                let is_taken = matches!(context, "extract" | "propagate");
                if matches!(context, "inject" | "propagate") {
                    let wanted = [span.get("trace"), span.get("span"), "01"];
                    assert_eq!(cut(&parents[0]), wanted, "{target}");
                } else {
                    assert_eq!(parents[0], good("01"), "{target}");
                }
                assert_eq!(state, if context == "inject" { "" } else { "a=1, b=2" }, "{target}");
                assert_eq!(span.get("trace") == TRACE, is_taken, "{target}");
                assert_eq!(span.get("parent"), if is_taken { PARENT } else { "" }, "{target}");
                let known = span.get("state").replace(", ", ",");
                assert_eq!(known, if is_taken { "a=1,b=2" } else { "" }, "{target}");
                assert_eq!(span.get("flags"), if is_taken { "0x301" } else { "0x101" });
            }
        }
    }
}

#[test]
fn malformed_contexts_are_ignored() {
    let (collector, origin) = (Collector::start(), TestUpstream::start());
    let server = traced(
        &collector.exporter(),
        &format!(
            "otel_trace on; otel_trace_context propagate; otel_span_attr p $otel_parent_id;
             otel_span_attr s $otel_parent_sampled; location / {{ proxy_pass http://{}; }}",
            origin.address()
        ),
    );
    let zeros = |len: usize| "0".repeat(len);
    let ask = |at: usize, fields: &[String]| {
        let target = format!("/{at}");
        let lines: String = fields.iter().map(|one| format!("traceparent: {one}\r\n")).collect();
        let lines = lines + "tracestate: a=1\r\n";
        assert_eq!(server.connect().get(&target, &lines).status, 200);
        (collector.span(), origin.asked(&target).remove(0))
    };
    let bad = [
        vec![],
        vec![String::new()],
        vec![good("01").to_ascii_uppercase()],
        vec![good("01").replace(TRACE, &zeros(32))],
        vec![good("01").replace(PARENT, &zeros(16))],
        vec![good("01").replace("00-", "ff-")],
        vec![good("1")],
        vec![good("001")],
        vec![good("01-more")],
        vec![good("01").replace("00-", "01-") + "more"],
        vec![good("01"), good("01")],
        vec!["junk".to_owned()],
    ];
    for (at, fields) in bad.iter().enumerate() {
        let (span, asked) = ask(at, fields);
        assert_ne!(span.get("trace"), TRACE, "{fields:?}");
        assert_eq!((span.get("parent"), span.get("p"), span.get("s")), ("", "", "0"), "{fields:?}");
        let sent = asked.all("traceparent").join(",");
        assert_eq!(cut(&sent), [span.get("trace"), span.get("span"), "01"], "{fields:?}");
        assert_eq!(asked.field("tracestate"), None, "a state without a context: {fields:?}");
    }
    let good = [
        (good("00"), "0"),
        (good("01"), "1"),
        (good("fe"), "0"),
        (good("ff"), "1"),
        (good("01").replace("00-", "cc-"), "1"),
        (good("01").replace("00-", "01-") + "-more-fields", "1"),
    ];
    for (at, (field, sampled)) in good.into_iter().enumerate() {
        let (span, asked) = ask(100 + at, std::slice::from_ref(&field));
        let known = (span.get("trace"), span.get("p"), span.get("s"));
        assert_eq!(known, (TRACE, PARENT, sampled), "{field}");
        let sent = asked.field("traceparent").unwrap().to_owned();
        assert_eq!(cut(&sent), [TRACE, span.get("span"), "01"], "{field}");
        assert_eq!(asked.field("tracestate"), Some("a=1"), "{field}");
    }
}

#[test]
fn a_variable_decides_which_requests_are_traced() {
    let (collector, origin) = (Collector::start(), TestUpstream::start());
    let server = crate::http(&format!(
        "{} split_clients $otel_trace_id $share {{ 30% on; * off; }}
         server {{ {} otel_trace_context propagate;
             location /parent {{ otel_trace $otel_parent_sampled; proxy_pass http://{origin}; }}
             location /share {{ otel_trace $share; return 200 \"$otel_trace_id $share\"; }}
             location /vars {{ return 200 \"$otel_trace_id $otel_span_id $otel_parent_id \
                                            $http_traceparent\"; }}
         }}",
        collector.exporter(),
        bolide_testkit::server::LISTEN,
        origin = origin.address(),
    ));
    let ask = |path: &str, fields: &str| server.connect().get(path, fields).text();
    for (at, flags) in ["00", "01"].into_iter().enumerate() {
        let path = format!("/parent{at}");
        ask(&path, &format!("traceparent: {}\r\n", good(flags)));
        let asked = origin.asked(&path).remove(0);
        let [trace, span, shown] = cut(asked.field("traceparent").unwrap());
        assert_eq!((trace, shown), (TRACE, flags));
        assert_ne!(span, PARENT);
    }
    assert_eq!(collector.span().get("http.target"), "/parent1");
    let mut traced = Vec::new();
    for _ in 0..60 {
        let body = ask("/share", "");
        let (trace, share) = body.split_once(' ').unwrap();
        if share == "on" {
            traced.push(trace.to_owned());
        }
    }
    assert!((1..60).contains(&traced.len()), "{}", traced.len());
    for trace in &traced {
        assert_eq!(collector.span().get("trace"), trace);
    }
    // Variables have values where nothing is traced, and the same ones all through a request.
    let body = ask("/vars", &format!("traceparent: {}\r\n", good("01")));
    let words: Vec<&str> = body.split(' ').collect();
    assert_eq!((words[0], words[2]), (TRACE, PARENT));
    assert_eq!(cut(words[3]), [TRACE, words[1], "00"]);
    ask("/parent", &format!("traceparent: {}\r\n", good("01")));
    assert_eq!(collector.span().get("http.target"), "/parent", "nothing else was traced");
}

#[test]
fn the_configuration_overrides_fields_of_a_context() {
    let (collector, origin, app) = (Collector::start(), TestUpstream::start(), TestApp::start());
    let server = traced(
        &collector.exporter(),
        &format!(
            "otel_trace_context inject;
             location /set {{ proxy_set_header Traceparent mine; proxy_pass http://{origin}; }}
             location /none {{ proxy_pass_request_headers off; proxy_pass http://{origin}; }}
             location /f {{ fastcgi_param REQUEST_URI $request_uri;
                            fastcgi_param HTTP_TRACEPARENT mine; fastcgi_pass {}; }}",
            app.address(),
            origin = origin.address(),
        ),
    );
    for path in ["/set", "/none", "/f"] {
        server.connect().get(path, &format!("traceparent: {}\r\n", good("01")));
    }
    assert_eq!(origin.asked("/set")[0].all("traceparent"), ["mine"]);
    assert_eq!(origin.asked("/none")[0].field("traceparent"), None);
    assert_eq!(app.asked("/f")[0].field("traceparent"), Some("mine"));
}
