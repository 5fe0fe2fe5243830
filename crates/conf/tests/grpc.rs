//! `grpc_*`: addresses, settings and messages.

use bolide_conf::model::{DirectiveFamily, Handler, Http, PageMode, Pass, PassTo, Protocol};

use crate::support::{http, location, messages, outcome};

fn pass<'a>(http: &'a Http, name: &str) -> &'a Pass {
    match &location(http, &http.servers[0], name).handler {
        Handler::Pass(pass) => pass,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn addresses_have_a_scheme_or_none_and_share_groups() {
    let http = http(
        "upstream u { server 127.0.0.1:1; }
         server { location /a { grpc_pass 127.0.0.1:2; }
           location /b { grpc_pass GRPCS://127.0.0.1:2; }
           location /c { grpc_pass grpc://u; } location /d { grpc_pass grpcs://unix:/s; }
           location /e { grpc_pass $host; } location /f { if ($arg_a) { grpc_pass u; } } }",
    );
    for (name, secure, host) in [
        ("/a", false, "127.0.0.1:2"),
        ("/b", true, "127.0.0.1:2"),
        ("/c", false, "u"),
        ("/d", true, "localhost"),
    ] {
        let pass = pass(&http, name);
        let url = pass.url.as_ref().unwrap();
        assert_eq!((pass.protocol, url.secure), (Protocol::Http2, secure), "{name}");
        assert_eq!(&*url.host, host.as_bytes(), "{name}");
    }
    assert_eq!(pass(&http, "/a").to, pass(&http, "/b").to);
    assert!(matches!(pass(&http, "/e").to, PassTo::Text(_)) && pass(&http, "/e").url.is_none());
}

#[test]
fn nothing_is_buffered_or_cached_and_trailers_are_passed() {
    let http = http(
        "page_cache on; proxy_read_timeout 1s; grpc_read_timeout 2s; grpc_set_header A b;
         server { location / { grpc_pass 127.0.0.1:2; grpc_buffer_size 8k; } }",
    );
    let settings = &location(&http, &http.servers[0], "/").settings;
    let origin = &settings.origin;
    assert!(!origin.buffering && !origin.request_buffering && origin.proxy.pass_trailers);
    assert_eq!((origin.read_timeout.as_secs(), origin.buffer_size), (2, 8192));
    assert_eq!(origin.proxy.fields.len(), 1);
    assert_eq!(origin.proxy.tls.family, DirectiveFamily::Grpc);
    assert_eq!(settings.cache.page.mode, PageMode::Off);
}

#[test]
fn errors_have_nginx_s_words() {
    for (line, text) in [
        ("grpc_pass 127.0.0.1;", "no port in upstream \"127.0.0.1\""),
        ("grpc_pass grpcs://127.0.0.1;", "no port in upstream \"127.0.0.1\""),
        ("grpc_pass grpc://127.0.0.1:1/x;", "invalid host in upstream \"127.0.0.1:1/x\""),
        ("grpc_pass http://127.0.0.1:1;", "invalid host in upstream \"http://127.0.0.1:1\""),
        ("grpc_pass \"\";", "no host in upstream \"\""),
        ("grpc_pass grpc://;", "no host in upstream \"\""),
        ("grpc_pass 127.0.0.1:99999;", "invalid port in upstream \"127.0.0.1:99999\""),
        ("grpc_pass unix:;", "no path in the unix domain socket in upstream \"unix:\""),
        ("grpc_pass 127.0.0.1:1; grpc_pass 127.0.0.1:2;", "\"grpc_pass\" directive is duplicate"),
        (
            "limit_except GET { grpc_pass 127.0.0.1:1; }",
            "\"grpc_pass\" directive is not allowed here",
        ),
        ("grpc_next_upstream updating;", "invalid value \"updating\""),
        ("grpc_next_upstream foo;", "invalid value \"foo\""),
        ("grpc_set_header a $nope;", "unknown \"nope\" variable"),
        ("grpc_set_header :path /x;", "invalid field name \":path\""),
        ("grpc_bind x;", "invalid address \"x\""),
        ("grpc_pass_request_headers on;", "unknown directive \"grpc_pass_request_headers\""),
    ] {
        let conf = format!("events {{}} http {{ server {{ location /a/ {{ {line} }} }} }}");
        let said = messages(&outcome(&conf));
        assert!(said.iter().any(|said| said.contains(text)), "{line}: {said:?}");
    }
}
