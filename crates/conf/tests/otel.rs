//! What is read of `otel_*`, and what is refused.

use std::time::Duration;

use bolide_conf::model::OtelContext;

use crate::support::{messages, outcome};

const EXPORTER: &str = "otel_exporter { endpoint a:4318; }";

fn told(http: &str) -> Vec<String> {
    messages(&outcome(&format!("events {{}} http {{ {http} }}")))
}

#[test]
fn blocks_inherit_what_they_do_not_say() {
    let text = "events {} http { otel_exporter { endpoint https://[::1]:9/x; interval 250ms; \
         batch_size 7; batch_count 2; header A b; header C d; trusted_certificate ca.pem; } \
         otel_service_name s; otel_resource_attr a 1; otel_resource_attr b 2; otel_trace on; \
         otel_span_attr x 1; server { otel_trace_context inject; otel_span_name $uri; \
         location / { otel_span_attr y 1; otel_span_attr z $uri; otel_trace off; } \
         location /in { otel_trace_context propagate; } } }";
    let config = outcome(text).config.expect("a configuration");
    let http = config.http.expect("http");
    let exporter = http.otel.exporter.as_ref().expect("an exporter");
    let endpoint = &exporter.endpoint;
    assert_eq!((endpoint.secure, &*endpoint.host, endpoint.port), (true, "::1", 9));
    assert_eq!((exporter.batch_size, exporter.batch_count), (7, 2));
    assert_eq!(exporter.interval, Duration::from_millis(250));
    assert_eq!(exporter.headers.len() + http.otel.resource.len(), 4);
    assert!(exporter.trusted_certificate.as_ref().is_some_and(|path| path.is_absolute()));
    let of = |name: &[u8]| {
        let found = http.locations.iter().find(|location| *location.name == *name);
        found.map(|location| location.settings.otel.clone()).expect("a location")
    };
    let (outer, inner) = (of(b"/"), of(b"/in"));
    let names = |all: &[(std::sync::Arc<str>, bolide_conf::Template)]| {
        all.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>().join(",")
    };
    assert_eq!((outer.trace.is_some(), outer.context), (false, OtelContext::Inject));
    assert_eq!((inner.trace.is_some(), inner.context), (true, OtelContext::Propagate));
    assert_eq!((names(&outer.span_attrs), names(&inner.span_attrs)), ("y,z".into(), "x".into()));
    assert!(outer.span_name.is_some() && inner.span_name == outer.span_name);
}

#[test]
fn what_leads_nowhere_is_refused_or_warned_of() {
    for (http, wanted) in [
        ("server { otel_trace on; }", "[emerg] \"otel_exporter\" block is missing"),
        (EXPORTER, "[warn] \"otel_exporter\" has nothing to send: no \"otel_trace\" is on"),
        ("otel_exporter { interval 1s; }", "[emerg] \"otel_exporter\" requires \"endpoint\""),
        ("otel_exporter { endpoint a; }", "[emerg] invalid endpoint \"a\""),
        ("otel_exporter { endpoint a:1; header Host x; }", "[emerg] the header \"Host\" is set"),
        ("otel_exporter { endpoint a:1; header 'a b' x; }", "[emerg] invalid header \"a b\""),
        ("otel_exporter { endpoint a:1; batch_size 0; }", "[emerg] \"interval\", \"batch_size\""),
        ("otel_exporter { endpoint a:1; listen 80; }", "[emerg] \"listen\" directive is not"),
        ("endpoint a:1;", "[emerg] \"endpoint\" directive is not allowed here"),
        ("otel_trace maybe;", "[emerg] invalid value \"maybe\" in \"otel_trace\""),
        ("otel_trace $uri$args;", "[emerg] invalid value \"$uri$args\" in \"otel_trace\""),
        ("otel_trace_context all;", "[emerg] invalid value \"all\""),
    ] {
        let said = told(http);
        assert!(said.iter().any(|one| one.starts_with(wanted)), "{http}: {said:?}");
    }
    let twice = told(&format!("{EXPORTER} {EXPORTER}"));
    assert!(twice[0].contains("\"otel_exporter\" directive is duplicate"), "{twice:?}");
    let good = format!("{EXPORTER} server {{ otel_trace $otel_parent_sampled; }}");
    assert_eq!(told(&good), [""; 0]);
    let module = "load_module modules/ngx_otel_module.so; events {}";
    assert_eq!(messages(&outcome(module)), [""; 0]);
}
