//! Upstreams: the target of a location, with its settings and parameters.

use std::ffi::OsString;
use std::time::Duration;

use bolide_conf::model::{
    Balance, Handler, Http, NextUpstream, OriginSettings, Pass, PassTo, PeerAddress, PhpProtocol,
    Protocol, Queue, RewriteOp, Upstream, UpstreamKind,
};

use crate::support::{http, location, messages, outcome};

/// The pass of a location of the first server.
fn pass<'h>(http: &'h Http, name: &str) -> &'h Pass {
    match &location(http, &http.servers[0], name).handler {
        Handler::Pass(pass) => pass,
        other => panic!("{name} has {other:?}"),
    }
}

/// The group that a location of the first server passes to.
fn group<'h>(http: &'h Http, name: &str) -> &'h Upstream {
    match pass(http, name).to {
        PassTo::Group(id) => &http.upstreams[id.index()],
        PassTo::Text(_) => panic!("{name} passes to a text"),
    }
}

/// The settings of a location of the first server.
fn origin(inside: &str, name: &str) -> OriginSettings {
    let http = http(inside);
    (*location(&http, &http.servers[0], name).settings.origin).clone()
}

/// The parameters of a location as words.
fn params(origin: &OriginSettings) -> Vec<String> {
    let shown = origin.params.iter().map(|param| {
        let mark = if param.if_not_empty { "?" } else { "" };
        format!("{}{mark}={:?}", String::from_utf8_lossy(&param.name), param.value)
    });
    shown.collect()
}

fn inet(text: &str) -> PeerAddress {
    PeerAddress::Inet(text.parse().expect("an address"))
}

fn unix(path: &str) -> PeerAddress {
    PeerAddress::Unix(std::path::Path::new(path).into())
}

#[test]
fn a_pass_names_an_address_a_socket_a_group_or_a_text() {
    let http = http(
        "server { location /a { fastcgi_pass 127.0.0.1:9000; } \
           location /b { fastcgi_pass unix:/run/php.sock; } location /c { fastcgi_pass PHP; } \
           location /d { fastcgi_pass $arg_to; } location /e { fastcgi_pass both.test:81; } \
           location /f { lsapi_pass [::1]:9000; } location /g { } } \
         upstream php { server unix:/x; }",
    );
    assert_eq!(group(&http, "/a").servers[0].addresses, [inet("127.0.0.1:9000")]);
    assert_eq!(&*group(&http, "/a").name, "127.0.0.1:9000");
    assert_eq!(group(&http, "/a").kind, UpstreamKind::Address);
    assert_eq!((group(&http, "/a").keepalive.idle_max, group(&http, "/a").queue), (0, None));
    assert_eq!(group(&http, "/b").servers[0].addresses, [unix("/run/php.sock")]);
    assert_eq!(group(&http, "/b").servers[0].addresses[0].to_string(), "unix:/run/php.sock");
    assert_eq!((&*group(&http, "/c").name, group(&http, "/c").kind), ("php", UpstreamKind::Block));
    assert!(matches!(&pass(&http, "/d").to, PassTo::Text(text) if text.vars().count() == 1));
    let both = [inet("10.0.0.1:81"), inet("10.0.0.2:81")];
    assert_eq!(group(&http, "/e").servers[0].addresses, both);
    assert_eq!(pass(&http, "/e").protocol, Protocol::FastCgi);
    assert_eq!(pass(&http, "/f").protocol, Protocol::Lsapi);
    assert_eq!(group(&http, "/f").servers[0].addresses, [inet("[::1]:9000")]);
    assert_eq!(location(&http, &http.servers[0], "/g").handler, Handler::Static);
}

#[test]
fn the_same_address_twice_is_one_group_and_another_port_is_another() {
    let http = http(
        "server { location /a { fastcgi_pass localhost:1; } \
           location /b { fastcgi_pass Localhost:1; } \
           location /c { fastcgi_pass localhost:2; } location /d { fastcgi_pass unix:/s; } \
           location /e { lsapi_pass unix:/s; } location /f { fastcgi_pass unix:/S; } }",
    );
    let to = |name: &str| &pass(&http, name).to;
    assert_eq!(to("/a"), to("/b"));
    assert_eq!(to("/d"), to("/e"));
    assert!(to("/a") != to("/c") && to("/d") != to("/f"));
    assert_eq!(http.upstreams.len(), 4);
}

#[test]
fn a_pass_is_not_inherited_and_a_return_comes_before_it() {
    let http = http(
        "server { location /a { fastcgi_pass unix:/s; location /a/b { } } \
           location /c { fastcgi_pass unix:/s; return 204; } \
           location /d { return 204; fastcgi_pass unix:/s; } }",
    );
    let handler = |name: &str| &location(&http, &http.servers[0], name).handler;
    assert!(matches!(handler("/a"), Handler::Pass(_)));
    assert_eq!(*handler("/a/b"), Handler::Static);
    for name in ["/c", "/d"] {
        let place = location(&http, &http.servers[0], name);
        assert!(matches!(place.rewrite[..], [RewriteOp::Return(_)]), "{name}");
    }
}

#[test]
fn a_group_has_its_servers_with_their_parameters() {
    let http = http(
        "upstream a { least_conn; \
           server 10.0.0.1 weight=5 max_fails=0 fail_timeout=1m max_conns=9; \
           server both.test:81 down; server unix:/s backup; keepalive 7; keepalive_requests 8; \
           keepalive_time 9s; keepalive_timeout 500ms; queue 6 timeout=2s; zone z 64k; \
           resolver 127.0.0.1; resolver_timeout 1s; } \
         upstream b { server 127.0.0.1:1; server unix:/t weight=99999999999999; }",
    );
    let [a, b] = &http.upstreams[..] else { panic!("two groups") };
    assert_eq!(a.balance, Balance::LeastConn);
    let first = &a.servers[0];
    assert_eq!((&*first.name, &first.addresses[..]), ("10.0.0.1", &[inet("10.0.0.1:80")][..]));
    assert_eq!((first.weight, first.max_fails, first.max_conns), (5, 0, 9));
    assert_eq!(first.fail_timeout, Duration::from_secs(60));
    assert_eq!((a.servers[1].addresses.len(), a.servers[1].down), (2, true));
    assert!(a.servers[2].backup && !a.servers[1].backup);
    assert_eq!((a.keepalive.idle_max, a.keepalive.requests), (7, 8));
    assert_eq!(a.keepalive.time, Duration::from_secs(9));
    assert_eq!(a.keepalive.timeout, Duration::from_millis(500));
    assert_eq!(a.queue, Some(Queue { len: 6, timeout: Duration::from_secs(2) }));
    assert_eq!(b.servers[1].weight, 65_535);
    let plain = &b.servers[0];
    assert_eq!((plain.weight, plain.max_fails, plain.max_conns), (1, 1, 0));
    assert_eq!(plain.fail_timeout, Duration::from_secs(10));
    assert_eq!((&b.balance, b.queue, b.keepalive.idle_max), (&Balance::RoundRobin, None, 32));
}

#[test]
fn every_way_to_balance_is_read() {
    let balance = |text: &str| {
        let http = http(&format!("upstream a {{ server unix:/s; {text} }}"));
        http.upstreams[0].balance.clone()
    };
    assert_eq!(balance("ip_hash;"), Balance::IpHash);
    assert_eq!(balance("random;"), Balance::Random { two: false });
    assert_eq!(balance("random two;"), Balance::Random { two: true });
    assert_eq!(balance("random two least_conn;"), Balance::Random { two: true });
    let Balance::Hash { key, consistent } = balance("hash $uri$arg_a consistent;") else {
        panic!("a hash")
    };
    assert!(consistent && key.vars().count() == 2);
    assert!(matches!(balance("hash a;"), Balance::Hash { consistent: false, .. }));
}

#[test]
fn every_setting_of_an_origin_is_read() {
    let o = origin(
        "server { location / { fastcgi_connect_timeout 1; fastcgi_send_timeout 2; \
           fastcgi_read_timeout 3; fastcgi_next_upstream error http_503 non_idempotent; \
           fastcgi_next_upstream_tries 4; fastcgi_next_upstream_timeout 5; fastcgi_buffering off; \
           fastcgi_buffer_size 8k; fastcgi_buffers 4 16k; fastcgi_busy_buffers_size 24k; \
           fastcgi_max_temp_file_size 0; fastcgi_temp_file_write_size 20k; \
           fastcgi_temp_path t 1 2; fastcgi_request_buffering off; fastcgi_ignore_client_abort on; \
           fastcgi_intercept_errors on; fastcgi_keep_conn on; fastcgi_pass_request_headers off; \
           fastcgi_pass_request_body off; fastcgi_socket_keepalive on; fastcgi_force_ranges on; \
           fastcgi_limit_rate 10k; fastcgi_hide_header X-A; fastcgi_hide_header x-b; \
           fastcgi_pass_header Status; fastcgi_ignore_headers vary Set-Cookie; \
           fastcgi_ignore_headers X-Accel-Redirect; fastcgi_index i.php; \
           fastcgi_split_path_info ^(a)(b)$; fastcgi_catch_stderr 'PHP Fatal'; \
           fastcgi_socket_rcvbuf 1k; fastcgi_socket_sndbuf 1k; } }",
        "/",
    );
    let seconds = Duration::from_secs;
    assert_eq!((o.connect_timeout, o.send_timeout), (seconds(1), seconds(2)));
    assert_eq!((o.read_timeout, o.next_upstream_timeout), (seconds(3), seconds(5)));
    let next = NextUpstream { error: true, http_503: true, ..NextUpstream::default() };
    assert_eq!(o.next_upstream, NextUpstream { non_idempotent: true, ..next });
    assert_eq!(o.next_upstream_tries, 4);
    assert!(!o.buffering && !o.request_buffering && o.ignore_client_abort && o.intercept_errors);
    assert!(o.keep_conn && !o.pass_request_headers && !o.pass_request_body);
    assert!(o.socket_keepalive && o.force_ranges);
    assert_eq!((o.buffer_size, o.buffers, o.busy_buffers_size), (8192, (4, 16384), 24576));
    assert_eq!((o.max_temp_file_size, o.temp_file_write_size), (0, 20480));
    assert_eq!(o.temp_path.path.to_str(), Some("/conf/t"));
    assert_eq!(o.limit_rate.unwrap().as_text(), Some(&b"10240"[..]));
    assert_eq!(o.hide_headers[..], [Box::from(*b"x-a"), Box::from(*b"x-b")]);
    assert_eq!(o.pass_headers[..], [Box::from(*b"status")]);
    assert!(o.ignore_headers.vary && o.ignore_headers.set_cookie && o.ignore_headers.redirect);
    assert!(!o.ignore_headers.expires);
    assert_eq!(o.index.as_deref(), Some(&b"i.php"[..]));
    assert!(o.split_path_info.unwrap().is_match(b"ab"));
    assert_eq!(o.catch_stderr[..], [Box::from(*b"PHP Fatal")]);
}

#[test]
fn default_sizes_follow_configured_ones() {
    let inside = "fastcgi_buffer_size 12k; server { location /a { } \
        location /b { fastcgi_buffers 8 32k; location /b/c { fastcgi_busy_buffers_size 40k; } } \
        location /d { fastcgi_busy_buffers_size 28k; location /d/e { fastcgi_buffers 16 8k; } } }";
    let sizes = |name: &str| {
        let o = origin(inside, name);
        (o.busy_buffers_size >> 10, o.temp_file_write_size >> 10)
    };
    assert_eq!(sizes("/a"), (24, 24));
    assert_eq!(sizes("/b"), (64, 64));
    assert_eq!(sizes("/b/c"), (40, 64));
    assert_eq!(sizes("/d"), (28, 24));
    assert_eq!(sizes("/d/e"), (28, 24));
}

#[test]
fn lists_are_inherited_whole_or_not_at_all() {
    let inside = "fastcgi_param A 1; fastcgi_param B $uri if_not_empty; fastcgi_hide_header a; \
        fastcgi_pass_header b; fastcgi_ignore_headers Vary; fastcgi_catch_stderr x; \
        fastcgi_next_upstream http_500; fastcgi_index i; fastcgi_read_timeout 9; \
        server { location /same { } \
          location /other { fastcgi_param C 3; fastcgi_hide_header c; fastcgi_pass_header d; \
            fastcgi_ignore_headers Expires; fastcgi_catch_stderr y; \
            fastcgi_next_upstream off; fastcgi_next_upstream error; fastcgi_index ''; } }";
    let same = origin(inside.trim_end(), "/same");
    assert_eq!(params(&same), ["A=\"1\"", "B?=\"${Uri}\""]);
    assert_eq!((same.hide_headers.len(), same.pass_headers.len()), (1, 1));
    assert!(same.ignore_headers.vary && same.next_upstream.http_500 && !same.next_upstream.error);
    assert_eq!(same.index.as_deref(), Some(&b"i"[..]));
    let other = origin(inside, "/other");
    assert_eq!(params(&other), ["C=\"3\""]);
    assert_eq!(other.hide_headers[..], [Box::from(*b"c")]);
    assert_eq!(other.pass_headers[..], [Box::from(*b"d")]);
    assert_eq!(other.catch_stderr[..], [Box::from(*b"y")]);
    assert!(other.ignore_headers.expires && !other.ignore_headers.vary);
    assert_eq!(other.next_upstream, NextUpstream::default());
    assert_eq!(other.index, None);
    assert_eq!(other.read_timeout, Duration::from_secs(9));
}

#[test]
fn defaults_for_origins_are_those_of_nginx() {
    let o = origin("server { location / { fastcgi_pass unix:/s; } }", "/");
    let minute = Duration::from_secs(60);
    assert_eq!((o.connect_timeout, o.send_timeout, o.read_timeout), (minute, minute, minute));
    let next = NextUpstream { error: true, timeout: true, ..NextUpstream::default() };
    assert_eq!((o.next_upstream, o.next_upstream_tries), (next, 0));
    assert_eq!((o.buffer_size, o.buffers, o.busy_buffers_size), (4096, (8, 4096), 8192));
    assert_eq!((o.max_temp_file_size, o.temp_file_write_size), (1 << 30, 8192));
    assert!(o.buffering && o.request_buffering && o.pass_request_headers && o.pass_request_body);
    assert!(!o.keep_conn && !o.intercept_errors && !o.ignore_client_abort);
    assert!(o.params.is_empty() && o.index.is_none() && o.split_path_info.is_none());
}

#[test]
fn a_pool_is_a_group_with_one_socket_and_as_many_turns_as_children() {
    let http = http(
        "server { location /a { php_pass Site-1; } location /b { php_pass ls; } } \
         php_pool site-1 { user www adm; children 5; memory 64m; max_requests 7; \
           request_timeout 8s; queue 9 timeout=3s; ini a.b 1; ini c 'x y'; env K v; } \
         php_pool ls { binary /usr/bin/lsphp8.4; group adm; children auto; }",
    );
    let [pool, ls] = &http.php_pools[..] else { panic!("two pools") };
    assert_eq!((&*pool.name, pool.protocol), ("site-1", PhpProtocol::FastCgi));
    assert_eq!((pool.user.as_deref(), pool.group.as_deref()), (Some("www"), Some("adm")));
    assert_eq!((pool.children, pool.memory, pool.max_requests), (Some(5), 64 << 20, 7));
    assert_eq!(pool.request_timeout, Duration::from_secs(8));
    let queue = Queue { len: 9, timeout: Duration::from_secs(3) };
    assert_eq!(pool.queue, queue);
    assert_eq!(pool.ini, [("a.b".into(), "1".into()), ("c".into(), OsString::from("x y"))]);
    assert_eq!(pool.env, [("K".into(), OsString::from("v"))]);
    assert_eq!(
        (ls.protocol, ls.children, ls.group.as_deref()),
        (PhpProtocol::Lsapi, None, Some("adm"))
    );
    assert_eq!(ls.binary.as_deref(), Some(std::path::Path::new("/usr/bin/lsphp8.4")));
    let to = group(&http, "/a");
    assert_eq!((to.kind, &*to.name), (UpstreamKind::Pool(0), "site-1"));
    assert_eq!(to.servers[0].addresses, [unix("/run/bolide/php-site-1.sock")]);
    assert_eq!((to.servers[0].max_conns, to.servers[0].max_fails), (5, 0));
    assert_eq!((to.queue, to.keepalive.idle_max), (Some(queue), 0));
    assert_eq!(pass(&http, "/a").protocol, Protocol::FastCgi);
    assert_eq!(pass(&http, "/b").protocol, Protocol::Lsapi);
    assert_eq!(group(&http, "/b").servers[0].max_conns, 0);
}

#[test]
fn php_gets_default_parameters() {
    let inside = "php_pool p { } server { \
        location /a { php_pass p; location /a/b { fastcgi_pass unix:/s; } } \
        location /c { lsapi_pass unix:/s; } \
        location /d { php_pass p; fastcgi_param A 1; fastcgi_index i; \
          fastcgi_split_path_info ^(x)(y)$; } }";
    let php = origin(inside, "/a");
    let list = params(&php);
    assert!(list.contains(&"SCRIPT_FILENAME=\"${DocumentRoot}${FastcgiScriptName}\"".to_owned()));
    assert!(list.contains(&"PATH_INFO=\"${FastcgiPathInfo}\"".to_owned()));
    assert!(list.contains(&"HTTPS?=\"${Https}\"".to_owned()));
    assert!(list.contains(&"REDIRECT_STATUS=\"200\"".to_owned()));
    assert!(list.contains(&"HTTP_PROXY=\"\"".to_owned()));
    assert_eq!(php.index.as_deref(), Some(&b"index.php"[..]));
    let split = php.split_path_info.as_ref().unwrap();
    assert!(split.is_match(b"/a.php/x") && !split.is_match(b"/a.php"));
    assert!(origin(inside, "/a/b").params.is_empty());
    assert_eq!(params(&origin(inside, "/c")), list);
    let own = origin(inside, "/d");
    assert_eq!((params(&own).len(), own.index.as_deref()), (1, Some(&b"i"[..])));
    assert!(own.split_path_info.unwrap().is_match(b"xy"));
    let inherited =
        origin("php_pool p { } fastcgi_param A 1; server { location / { php_pass p; } }", "/");
    assert_eq!(params(&inherited), ["A=\"1\""]);
}

#[test]
fn the_shipped_parameters_are_those_that_php_gets() {
    let implied = origin("php_pool p { } server { location / { php_pass p; } }", "/");
    let file = include_str!("../../../conf/fastcgi.conf");
    let shipped = origin(&format!("server {{ location / {{ {file} }} }}"), "/");
    let sorted = |origin: &OriginSettings| {
        let mut list = params(origin);
        list.sort();
        list
    };
    let with_path_info =
        format!("server {{ location / {{ {file} fastcgi_param PATH_INFO $fastcgi_path_info; }} }}");
    assert_eq!(sorted(&origin(&with_path_info, "/")), sorted(&implied));
    let params_file = include_str!("../../../conf/fastcgi_params");
    let plain = origin(&format!("server {{ location / {{ {params_file} }} }}"), "/");
    let without_script: Vec<_> =
        params(&shipped).into_iter().filter(|p| !p.starts_with("SCRIPT_FILENAME")).collect();
    assert_eq!(params(&plain), without_script);
}

#[test]
fn what_only_this_server_has_is_refused_in_clear_words() {
    let rows = [
        ("php_pool a { }", "ok"),
        ("php_pool a/b { }", "invalid php_pool name \"a/b\""),
        ("php_pool .a { }", "invalid php_pool name \".a\""),
        ("php_pool a { } php_pool A { }", "duplicate upstream \"A\""),
        ("php_pool a { } upstream a { server unix:/s; }", "duplicate upstream \"a\""),
        ("php_pool a { children 0; }", "\"children\" directive invalid value"),
        ("php_pool a { children x; }", "\"children\" directive invalid number"),
        ("php_pool a { memory x; }", "\"memory\" directive invalid value"),
        ("php_pool a { max_requests x; }", "\"max_requests\" directive invalid number"),
        ("php_pool a { request_timeout x; }", "\"request_timeout\" directive invalid value"),
        ("php_pool a { queue x; }", "\"queue\" directive invalid value"),
        ("php_pool a { queue 1 for=2; }", "invalid parameter \"for=2\""),
        ("php_pool a { user a; user b; }", "\"user\" directive is duplicate"),
        ("php_pool a { ini a; }", "invalid number of arguments in \"ini\" directive"),
        ("php_pool a { listen 80; }", "\"listen\" directive is not allowed here"),
        ("server { location / { php_pass a; } }", "unknown php_pool \"a\""),
        (
            "upstream a { server unix:/s; } server { location / { php_pass a; } }",
            "unknown php_pool \"a\"",
        ),
        (
            "php_pool a { } server { location / { fastcgi_pass a; } }",
            "\"a\" is a php_pool, use the \"php_pass\" directive",
        ),
        (
            "php_pool a { } server { location / { php_pass a; php_pass a; } }",
            "\"php_pass\" directive is duplicate",
        ),
        (
            "upstream a { zone z 64k; server a.b resolve; }",
            "no resolver defined to resolve names at run time in upstream \"a\"",
        ),
        ("upstream a { zone z 64k; resolver 127.0.0.1; server a.b resolve; }", "ok"),
        ("upstream a { zone z 64k; server a..b:81 resolve; } resolver 127.0.0.1;", "ok"),
        ("upstream a { server 127.0.0.1 resolve; server unix:/s resolve; }", "ok"),
        ("upstream a { server a/b resolve; }", "invalid host in upstream \"a/b\""),
        (
            "upstream a { server a service=x; }",
            "service upstream \"a\" requires \"resolve\" parameter",
        ),
        ("upstream a { server a service= resolve; }", "service is empty"),
        (
            "upstream a { server a:1 service=x resolve; }",
            "service upstream \"a:1\" may not have port",
        ),
        (
            "upstream a { server unix:/s service=x resolve; }",
            "service upstream \"unix:/s\" may not have port",
        ),
        (
            "upstream a { server [::1] service=x resolve; }",
            "service upstream \"[::1]\" requires domain name",
        ),
        (
            "upstream a { server localhost service=x resolve; }",
            "parameter \"service\" is not implemented yet",
        ),
        ("upstream a { server unix:/s; queue 1 timeout=x; }", "invalid parameter \"timeout=x\""),
        ("proxy_store on; server { proxy_store off; }", "ok"),
        ("fastcgi_store \"\";", "empty path"),
        (
            "proxy_cache z; proxy_store on;",
            "\"proxy_store\" directive is incompatible with \"proxy_cache\"",
        ),
        (
            "fastcgi_store on; fastcgi_cache z;",
            "\"fastcgi_cache\" directive is incompatible with \"fastcgi_store\"",
        ),
        ("fastcgi_bind off;", "ok"),
        ("proxy_bind $remote_addr;", "ok"),
    ];
    for (text, expected) in rows {
        let found = messages(&outcome(&format!("events {{}} http {{ {text} }}")));
        let expected = match expected {
            "ok" => Vec::new(),
            message => vec![format!("[emerg] {message} in /conf/nginx.conf:1")],
        };
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn names_that_are_looked_up_while_serving_need_a_zone() {
    let found = messages(&outcome("events {} http { upstream a { server a.b resolve; } }"));
    let text = "[emerg] resolving names at run time requires upstream \"a\" in \
                /conf/nginx.conf:1 to be in shared memory";
    assert_eq!(found, [text]);
}
