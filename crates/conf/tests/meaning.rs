//! The meaning of configurations.

use std::time::Duration;

use bolide_conf::Var;
use bolide_conf::model::{
    Fallback, Handler, ListenAddress, ListenTransport, Mapping, Matcher, ReturnBody, RewriteOp,
    ServerName, TcpKeepAlive, Workers,
};

use crate::support::{config, http, location};

#[test]
fn the_main_block_is_read() {
    let config = config(
        "worker_processes auto; user www adm; pid run/x.pid; worker_rlimit_nofile 9; \
         error_log /e.log warn; error_log stderr; worker_shutdown_timeout 5s; \
         events { worker_connections 7; multi_accept on; }",
    );
    let main = &config.main;
    assert_eq!(main.worker_processes, Workers::Auto);
    assert_eq!((main.user.as_deref(), main.group.as_deref()), (Some("www"), Some("adm")));
    assert_eq!(main.pid.to_str(), Some("/conf/run/x.pid"));
    assert_eq!(main.worker_rlimit_nofile, Some(9));
    assert_eq!(main.error_log.len(), 2);
    assert_eq!(config.events.worker_connections, 7);
    assert!(config.http.is_none());
}

#[test]
fn addresses_are_merged_over_servers() {
    let http = http(
        "server { listen 80; listen [::]:80 ipv6only=off; listen 443 quic reuseport; \
           listen 443 ssl; ssl_reject_handshake on; } \
         server { listen *:80 default_server; listen unix:/s; listen 443 ssl; listen 443 quic; \
           ssl_reject_handshake on; } \
         server { listen localhost:80 so_keepalive=30s::5 backlog=9; listen both.test:81; }",
    );
    let shown: Vec<_> = http.listens.iter().map(|l| (l.address.to_string(), l.transport)).collect();
    let (tcp, quic) = (ListenTransport::Tcp, ListenTransport::Quic);
    let expected = [
        ("0.0.0.0:80", tcp),
        ("[::]:80", tcp),
        ("0.0.0.0:443", quic),
        ("0.0.0.0:443", tcp),
        ("unix:/s", tcp),
        ("127.0.0.1:80", tcp),
        ("10.0.0.1:81", tcp),
        ("10.0.0.2:81", tcp),
    ]
    .map(|(text, transport)| (text.to_owned(), transport));
    assert_eq!(shown, expected);
    let first = &http.listens[0];
    assert_eq!((first.default_server.index(), first.servers.len()), (1, 2));
    assert!(first.address.is_wildcard() && !first.tls);
    assert!(!http.listens[1].options.ipv6only);
    assert!(http.listens[2].options.reuseport && http.listens[2].tls && http.listens[3].tls);
    assert_eq!(http.listens[3].default_server.index(), 0);
    assert_eq!(http.listens[4].address, ListenAddress::Unix("/s".into()));
    let TcpKeepAlive::On { idle, interval, count } = http.listens[5].options.so_keepalive else {
        panic!("keepalive is on");
    };
    assert_eq!((idle.map(|t| t.as_secs()), interval, count), (Some(30), None, Some(5)));
    assert_eq!(http.listens[5].options.backlog, Some(9));
}

#[test]
fn ssl_quic_and_http2_hold_for_the_socket_and_no_listen_means_port_80() {
    let http = http("server { listen 1 ; } server { listen 1 http2; } server { }");
    assert!(http.listens[0].http2);
    assert_eq!(http.listens[1].address.to_string(), "0.0.0.0:80");
}

#[test]
fn server_names_have_their_kinds() {
    let http = http(
        "server { server_name A.com .b.com *.c.com d.* ~^(?<sub>.+)\\.E\\.com$ $hostname; } \
         server { }",
    );
    let names = &http.servers[0].names;
    assert_eq!(names[0], ServerName::Exact("a.com".into()));
    assert_eq!(names[1], ServerName::SuffixOrSelf(".b.com".into()));
    assert_eq!(names[2], ServerName::Suffix(".c.com".into()));
    assert_eq!(names[3], ServerName::Prefix("d.".into()));
    let ServerName::Regex(regex) = &names[4] else { panic!("a regex") };
    assert!(regex.is_match(b"x.e.com"));
    assert_eq!(names[5], ServerName::Exact("box.test".into()));
    assert_eq!(&*http.servers[0].primary_name, "a.com");
    assert_eq!(http.servers[1].names, [ServerName::Exact("".into())]);
    assert_eq!(http.named, ["sub"]);
}

#[test]
fn locations_have_their_matchers_and_their_tree() {
    let http = http(
        "server { location = /e { } location ^~ /s/ { location ~ \\.png$ { } } \
           location ~* \\.PHP$ { } location @n { return 404; } \
           location /p { location /p/q { internal; } } }",
    );
    let server = &http.servers[0];
    let root = http.location(server.root);
    assert_eq!((root.nested.len(), &root.matcher), (5, &Matcher::Root));
    let exact = location(&http, server, "/e");
    assert!(matches!(&exact.matcher, Matcher::Exact(path) if **path == *b"/e"));
    let stop = location(&http, server, "/s/");
    assert!(matches!(stop.matcher, Matcher::Prefix { no_regex: true, .. }));
    let inner = http.location(stop.nested[0]);
    assert!(matches!(&inner.matcher, Matcher::Regex(regex) if regex.is_match(b"/s/a.png")));
    assert!(matches!(location(&http, server, "@n").matcher, Matcher::Named(_)));
    assert!(location(&http, server, "/p/q").internal && !location(&http, server, "/p").internal);
    let [RewriteOp::Return(made)] = &location(&http, server, "@n").rewrite[..] else {
        panic!("a return")
    };
    assert_eq!((made.status, &made.body), (404, &ReturnBody::None));
}

#[test]
fn return_and_try_files_belong_to_their_block_alone() {
    let http = http(
        "server { return 301 https://$host$request_uri; location / { } \
           location /a { try_files $uri $uri/ @f; location /a/b { } } \
           location /c { try_files x =403; } location /d { try_files x /i?$args; return 200 hi; } \
           location /e { return https://e/; } }",
    );
    let server = &http.servers[0];
    let [RewriteOp::Return(made)] = &http.location(server.root).rewrite[..] else {
        panic!("a return")
    };
    let ReturnBody::Location(to) = &made.body else { panic!("a redirect") };
    assert_eq!(to.vars().collect::<Vec<_>>(), [&Var::Host, &Var::RequestUri]);
    assert_eq!(location(&http, server, "/").handler, Handler::Static);
    assert!(location(&http, server, "/").rewrite.is_empty());
    let tries = location(&http, server, "/a").try_files.as_ref().unwrap();
    assert_eq!(tries.files.iter().map(|file| file.directory).collect::<Vec<_>>(), [false, true]);
    assert_eq!(tries.fallback, Fallback::Named((*b"@f").into()));
    assert!(location(&http, server, "/a/b").try_files.is_none());
    let tries = location(&http, server, "/c").try_files.as_ref().unwrap();
    assert_eq!(tries.fallback, Fallback::Status(403));
    let [RewriteOp::Return(made)] = &location(&http, server, "/e").rewrite[..] else {
        panic!("a return")
    };
    assert_eq!(made.status, 302);
}

#[test]
fn roots_are_absolute_and_aliases_know_their_prefix() {
    let http = http(
        "server { root html/; location /a/ { alias /x/; location ~ \\.t$ { } } \
           location ~ ^/b/(.*)$ { alias /y/$1; } location /c { root $document_uri/z/; } \
           location = /d { alias d; } location /e { } }",
    );
    let server = &http.servers[0];
    let root = |name: &str| {
        let root = &location(&http, server, name).settings.root;
        (format!("{:?}", root.path), root.mapping)
    };
    assert_eq!(root("/e"), ("\"/conf/html\"".to_owned(), Mapping::Whole));
    assert_eq!(root("/a/"), ("\"/x/\"".to_owned(), Mapping::Without(3)));
    // A nested location inherits the alias with the prefix of the outer one.
    assert_eq!(root("\\.t$"), root("/a/"));
    assert_eq!(root("^/b/(.*)$").1, Mapping::Nothing);
    assert_eq!(root("/d"), ("\"/conf/d\"".to_owned(), Mapping::Without(2)));
    assert_eq!(location(&http, server, "/c").settings.root.path.vars().count(), 1);
}

#[test]
fn certificates_are_paired_and_relative_to_the_main_file() {
    let http = http(
        "ssl_certificate o; ssl_certificate_key ok; ssl_protocols TLSv1 TLSv1.3; \
         server { listen 1 ssl; ssl_certificate a; ssl_certificate b; ssl_certificate_key /ak; \
           ssl_certificate_key bk; } server { listen 1 ssl; ssl_session_cache shared:S:1m; }",
    );
    let pairs = |server: usize| {
        let list = http.servers[server].tls.certificates.iter();
        list.map(|pair| format!("{} {}", pair.chain, pair.key)).collect::<Vec<_>>()
    };
    assert_eq!(pairs(0), ["/conf/a /ak", "/conf/b /conf/bk"]);
    assert_eq!(pairs(1), ["/conf/o /conf/ok"]);
    let protocols = http.servers[1].tls.protocols;
    assert!(protocols.tls13 && !protocols.tls12 && protocols.obsolete);
}

#[test]
fn log_formats_are_known_by_number_and_combined_is_the_first() {
    let http = http(
        "log_format j escape=json '{\"a\":' '$status' '}'; \
         access_log a.log j buffer=8k flush=1m if=$arg_l; \
         server { location /off { access_log off; } location /v { access_log /l/$host.log; } }",
    );
    assert_eq!(http.log_formats[0].name, "combined");
    assert_eq!(format!("{:?}", http.log_formats[1].line), "\"{\\\"a\\\":${Status}}\"");
    let server = &http.servers[0];
    let log = &http.location(server.root).settings.access_log[0];
    assert_eq!(log.format, 1);
    let buffer = &http.log_buffers[0];
    assert_eq!((buffer.size, buffer.flush), (8192, Some(Duration::from_secs(60))));
    assert!(location(&http, server, "/off").settings.access_log.is_empty());
    assert_eq!(location(&http, server, "/v").settings.access_log[0].format, 0);
}

#[test]
fn templates_know_captures_and_names() {
    let http = http(
        "server { location ~ (?<Tail>x) { return 200 $1${tail}$http_User_Agent$arg_Q-$; } }"
            .replace("-$;", "-x;")
            .as_str(),
    );
    let server = &http.servers[0];
    let [RewriteOp::Return(made)] = &location(&http, server, "(?<Tail>x)").rewrite[..] else {
        panic!("a return")
    };
    let ReturnBody::Text(text) = &made.body else { panic!("a text") };
    let shown = format!("{text:?}");
    let expected = "\"${Capture(1)}${Named(0)}${RequestField(user-agent)}${Arg(\"q\")}-x\"";
    assert_eq!(shown, expected);
    assert_eq!(http.named, ["tail"]);
}
