//! The choice of server, location and response; nginx-semantics §2 to §9 as a table.

use bolide_testkit::TestServer;
use bolide_testkit::server::{Home, prelude};

use crate::{BOLIDE, http, report, site};

/// (Host, path, response). A host of `-` means HTTP/1.0 without Host.
type Rows<'a> = &'a [(&'a str, &'a str, &'a str)];

fn check(server: &TestServer, port: usize, rows: Rows<'_>) {
    let mut failures = Vec::new();
    for (host, path, wanted) in rows {
        let mut client = bolide_testkit::H1TestClient::connect(server.addr(port));
        let answer = match *host {
            "-" => client.ask(&format!("GET {path} HTTP/1.0")),
            host => client.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}")),
        };
        let got = match answer.status {
            200 => answer.text(),
            status => format!("{status} {}", answer.header("location").unwrap_or_default())
                .trim_end()
                .to_owned(),
        };
        if got != *wanted {
            failures.push(format!("{host} {path}: want {wanted:?}, got {got:?}"));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn the_server_is_chosen_by_address_then_name() {
    let server = http(
        r#"
        server { listen 127.0.0.1:@HTTP@; server_name first; return 200 first; }
        server { listen 127.0.0.1:@HTTP@; server_name exact.test; return 200 exact; }
        server { listen 127.0.0.1:@HTTP@; server_name *.test; return 200 star; }
        server { listen 127.0.0.1:@HTTP@; server_name *.deep.test; return 200 deepstar; }
        server { listen 127.0.0.1:@HTTP@; server_name mail.*; return 200 mail; }
        server { listen 127.0.0.1:@HTTP@; server_name mail.long.*; return 200 maillong; }
        server { listen 127.0.0.1:@HTTP@; server_name ~^re(\d+)\.; return 200 re$1; }
        server { listen 127.0.0.1:@HTTP@; server_name ~^re1; return 200 second-regex; }
        server { listen 127.0.0.1:@HTTP@; server_name "~^(?<n>x+)\.name$"; return 200 $n; }
        server { listen 127.0.0.1:@HTTP@; server_name .dot.org; return 200 dot; }
        server { listen 127.0.0.1:@HTTP@ default_server; server_name dflt; return 200 default; }
        server { listen 127.0.0.1:@HTTP@; server_name ""; return 200 nameless; }
        server { listen *:@P2@; server_name exact.test; return 200 wild-exact; }
        server { listen 127.0.0.1:@P2@; server_name other; return 200 addr; }
        server { listen 127.0.0.1:@P3@; server_name a; return 200 a; }
        server { listen 127.0.0.1:@P3@; server_name b; return 200 b; }
        "#,
    );
    check(
        &server,
        0,
        &[
            ("first", "/", "first"),
            ("FIRST", "/", "first"),
            ("first.", "/", "first"),
            ("first:9999", "/", "first"),
            ("exact.test", "/", "exact"),
            ("Exact.Test:80", "/", "exact"),
            ("a.test", "/", "star"),
            ("a.b.test", "/", "star"),
            ("test", "/", "default"),
            ("a.deep.test", "/", "deepstar"),
            ("a.b.deep.test", "/", "deepstar"),
            ("deep.test", "/", "star"),
            ("mail.anything", "/", "mail"),
            ("mail.a.b", "/", "mail"),
            ("mail.test", "/", "star"),
            ("mail.long.com", "/", "maillong"),
            ("mail.long.test", "/", "star"),
            ("mail", "/", "default"),
            ("re7.com", "/", "re7"),
            ("re1.com", "/", "re1"),
            ("re12", "/", "second-regex"),
            ("xxx.name", "/", "xxx"),
            ("dot.org", "/", "dot"),
            ("www.dot.org", "/", "dot"),
            ("a.www.dot.org", "/", "dot"),
            ("xdot.org", "/", "default"),
            ("unknown", "/", "default"),
            ("127.0.0.1", "/", "default"),
            ("[::1]", "/", "default"),
            ("-", "/", "nameless"),
        ],
    );
    // A wildcard listener is not considered where an address has a listener of its own.
    check(&server, 2, &[("exact.test", "/", "addr"), ("other", "/", "addr"), ("x", "/", "addr")]);
    check(&server, 3, &[("a", "/", "a"), ("b", "/", "b"), ("c", "/", "a"), ("-", "/", "a")]);
}

#[test]
fn the_location_is_chosen_as_nginx_chooses_it() {
    let server = http(
        r#"
        server {
            listen 127.0.0.1:@HTTP@;
            default_type text/plain;
            location / { return 200 root; }
            location = / { return 200 exact-root; }
            location = /exact { return 200 exact; }
            location /exact { return 200 prefix-of-exact; }
            location /pre { return 200 pre; }
            location /pre/longer { return 200 longer; }
            location /pre/longer/still { return 200 still; }
            location ~ \.txt$ { return 200 txt; }
            location ~ \.t..$ { return 200 second; }
            location ~* \.JPG$ { return 200 jpg; }
            location ^~ /stop { return 200 stop; }
            location /go { return 200 go; }
            location /nest/ {
                location /nest/a { return 200 nest-a; }
                location ~ ^/nest/.*\.php$ { return 200 nest-php; }
                location = /nest/exact.php { return 200 nest-exact; }
                return 200 nest;
            }
            location ~ \.php$ { return 200 php; }
            location ^~ /hard/ {
                location ~ \.php$ { return 200 hard-php; }
                return 200 hard;
            }
            location ~ ^/cap/(?<name>\w+)/(\d+) { return 200 "$name-$2"; }
            location /sp%20ace { return 200 encoded; }
            location "/sp ace" { return 200 space; }
            location /ключ { return 200 key; }
            location /internal { internal; return 200 internal; }
            location @named { return 200 named; }
            location ~ ^/deep/ {
                location ~ /b$ { return 200 deep-b; }
                return 200 deep;
            }
        }
        "#,
    );
    check(
        &server,
        0,
        &[
            ("a", "/", "exact-root"),
            ("a", "/?q", "exact-root"),
            ("a", "//", "exact-root"),
            ("a", "/x/..", "exact-root"),
            ("a", "/other", "root"),
            ("a", "/exact", "exact"),
            ("a", "/exact?x=1", "exact"),
            ("a", "/exact/", "prefix-of-exact"),
            ("a", "/exactly", "prefix-of-exact"),
            ("a", "/pre", "pre"),
            ("a", "/prefixx", "pre"),
            ("a", "/pr", "root"),
            ("a", "/pre/long", "pre"),
            ("a", "/pre/longer", "longer"),
            ("a", "/pre/longer/", "longer"),
            ("a", "/pre/longer/still/more", "still"),
            ("a", "/PRE", "root"),
            ("a", "/a.txt", "txt"),
            ("a", "/pre/a.txt", "txt"),
            ("a", "/a.tar", "second"),
            ("a", "/a.TXT", "root"),
            ("a", "/a.jpg", "jpg"),
            ("a", "/a.JpG", "jpg"),
            ("a", "/a.jpg/b", "root"),
            ("a", "/stop/a.txt", "stop"),
            ("a", "/stopping.txt", "stop"),
            ("a", "/go/a.txt", "txt"),
            ("a", "/go", "go"),
            ("a", "/nest/", "nest"),
            ("a", "/nest", "root"),
            ("a", "/nest/a", "nest-a"),
            ("a", "/nest/abc", "nest-a"),
            ("a", "/nest/b", "nest"),
            ("a", "/nest/b.php", "nest-php"),
            ("a", "/nest/a.php", "nest-php"),
            ("a", "/nest/exact.php", "nest-exact"),
            ("a", "/nest/b.txt", "txt"),
            ("a", "/x.php", "php"),
            ("a", "/hard/x.php", "hard-php"),
            ("a", "/hard/x.txt", "hard"),
            ("a", "/hard/x", "hard"),
            ("a", "/cap/ab/12", "ab-12"),
            ("a", "/cap/ab/x", "root"),
            ("a", "/sp%20ace", "space"),
            ("a", "/sp%2520ace", "encoded"),
            ("a", "/%D0%BA%D0%BB%D1%8E%D1%87", "key"),
            ("a", "/internal", "404"),
            ("a", "/@named", "root"),
            ("a", "/deep/b", "deep-b"),
            ("a", "/deep/a", "deep"),
            ("a", "/pre/./longer", "longer"),
            ("a", "/x/../pre", "pre"),
            ("a", "/pre//longer", "longer"),
            ("a", "/%70re", "pre"),
            ("a", "/pre%2flonger", "longer"),
            ("a", "/a%3Fb.txt", "txt"),
        ],
    );
}

#[test]
fn return_try_files_index_and_error_page_work_together() {
    let server = site(
        r#"
        location = /plain { return 200 "text $uri $args $request_uri"; }
        location = /empty { return 204; }
        location = /moved { return 301 /hello.txt; }
        location = /found { return http://else.test/x?$args; }
        location = /full { return 302 https://$host/y; }
        location = /close { return 444; }
        location /try/ { try_files $uri /hello.txt; }
        location /try-args/ { try_files /nothing /echo?was=$args; }
        location /try-code/ { try_files $uri =418; }
        location /try-named/ { try_files $uri @fallback; }
        location /try-dir/ { root @DIR@/www; try_files /dir/ =404; }
        location @fallback { return 200 "fallback $uri"; }
        location /echo { return 200 "echo $uri?$args"; }
        location /dir/ { index none.html index.html; }
        location /abs/ { alias @DIR@/www/bare/; index /hello.txt; }
        location /err/ { error_page 404 /hello.txt; }
        location /err-200/ { error_page 404 =200 /hello.txt; }
        location /err-same/ { error_page 404 = /hello.txt; }
        location /err-named/ { error_page 404 = @fallback; }
        location /err-away/ { error_page 404 http://else.test/gone; }
        location /err-many/ { error_page 403 404 410 /hello.txt; return 410; }
        location /loop { try_files /nothing /loop; }
        location = /secret { internal; return 200 secret; }
        location /to-secret { error_page 404 =200 /secret; }
        location /alias/ { alias @DIR@/www/dir/; }
        location ~ ^/re-alias/(.*)$ { alias @DIR@/www/dir/$1; }
        location /root/ { root @DIR@; }
        "#,
    );
    let hello = "hello, bolide\n";
    let origin = format!("http://localhost:{}", server.http().port());
    let moved = format!("301 {origin}/hello.txt");
    let to_dir = format!("301 {origin}/dir/");
    check(
        &server,
        0,
        &[
            ("localhost", "/plain?a=b", "text /plain a=b /plain?a=b"),
            ("localhost", "/%70lain", "text /plain  /%70lain"),
            ("localhost", "/empty", "204"),
            ("localhost", "/moved", &moved),
            ("localhost", "/found?z", "302 http://else.test/x?z"),
            ("localhost", "/full", "302 https://localhost/y"),
            ("localhost", "/try/none", hello),
            ("localhost", "/try-args/x?q=1", "echo /echo?was=q=1"),
            ("localhost", "/try-code/x", "418"),
            ("localhost", "/try-named/x", "fallback /try-named/x"),
            ("localhost", "/try-dir/x", &to_dir),
            ("localhost", "/dir/", "<p>dir</p>\n"),
            ("localhost", "/abs/", hello),
            ("localhost", "/err/none", "404"),
            ("localhost", "/err-200/none", hello),
            ("localhost", "/err-same/none", hello),
            ("localhost", "/err-named/none", "fallback /err-named/none"),
            ("localhost", "/err-away/none", "302 http://else.test/gone"),
            ("localhost", "/err-many/", "410"),
            ("localhost", "/loop", "500"),
            ("localhost", "/secret", "404"),
            ("localhost", "/to-secret", "secret"),
            ("localhost", "/alias/file.txt", "file\n"),
            ("localhost", "/re-alias/file.txt", "file\n"),
        ],
    );
    let answer = server.get("/err/none");
    assert_eq!((answer.status, answer.text().as_str()), (404, hello), "the status stays");
    let log = server.error_log();
    assert!(log.contains("rewrite or internal redirection cycle"), "{log}");
}

#[test]
fn add_header_and_expires_follow_the_rules_of_inheritance() {
    let server = site(
        r#"
        add_header X-Outer outer;
        add_header X-Always always always;
        location /inner/ { alias @DIR@/www/; add_header X-Inner "$uri"; }
        location /none/ { alias @DIR@/www/; }
        location /exp/ { alias @DIR@/www/; expires 1h; }
        location /neg/ { alias @DIR@/www/; expires -1; }
        location /max/ { alias @DIR@/www/; expires max; }
        location /epoch/ { alias @DIR@/www/; expires epoch; }
        "#,
    );
    let has = |path: &str, name: &str| server.get(path).header(name).map(str::to_owned);
    assert_eq!(has("/hello.txt", "X-Outer").as_deref(), Some("outer"));
    assert_eq!(has("/none/hello.txt", "X-Outer").as_deref(), Some("outer"));
    assert_eq!(has("/inner/hello.txt", "X-Outer"), None, "an inner list replaces the outer");
    assert_eq!(has("/inner/hello.txt", "X-Inner").as_deref(), Some("/inner/hello.txt"));
    assert_eq!(has("/missing", "X-Outer"), None, "not on errors");
    assert_eq!(has("/missing", "X-Always").as_deref(), Some("always"));
    assert_eq!(has("/exp/hello.txt", "Cache-Control").as_deref(), Some("max-age=3600"));
    assert!(has("/exp/hello.txt", "Expires").is_some_and(|v| v.ends_with(" GMT")));
    assert_eq!(has("/exp/missing", "Expires"), None);
    assert_eq!(has("/neg/hello.txt", "Cache-Control").as_deref(), Some("no-cache"));
    assert_eq!(has("/max/hello.txt", "Cache-Control").as_deref(), Some("max-age=315360000"));
    let max = has("/max/hello.txt", "Expires");
    assert_eq!(max.as_deref(), Some("Thu, 31 Dec 2037 23:55:55 GMT"));
    let epoch = has("/epoch/hello.txt", "Expires");
    assert_eq!(epoch.as_deref(), Some("Thu, 01 Jan 1970 00:00:01 GMT"));
}

#[test]
fn variables_have_the_values_of_nginx() {
    let server = site(
        "location /v { return 200 \"$request_method|$scheme|$host|$http_host|$server_name|\
         $server_port|$remote_addr|$server_addr|$server_protocol|$uri|$document_uri|$request_uri|\
         $args|$query_string|$is_args|$arg_b|$arg_none|$http_x_thing|$cookie_c|$document_root|\
         $request_filename|$request|$content_length|$content_type|$https\"; }\n\
         location /n { return 200 \"$nginx_version|$pid|$hostname|$msec|$time_iso8601|\
         $connection|$connection_requests|$request_id|$request_length|$bytes_sent|$status\"; }\n",
    );
    let mut client = server.connect();
    let answer = client.get(
        "/v/%78?a=1&B=2",
        "X-Thing: one\r\nX-Thing: two\r\nCookie: a=b; c=d\r\nContent-Type: t/x\r\n\
         Content-Length: 0\r\n",
    );
    let (port, dir) = (server.http().port(), server.home().dir().display().to_string());
    let wanted = format!(
        "GET|http|localhost|localhost|localhost|{port}|127.0.0.1|127.0.0.1|HTTP/1.1|/v/x|/v/x|\
         /v/%78?a=1&B=2|a=1&B=2|a=1&B=2|?|2||one, two|d|{dir}/www|{dir}/www/v/x|\
         GET /v/%78?a=1&B=2 HTTP/1.1|0|t/x|"
    );
    assert_eq!(answer.text(), wanted);
    let numbers = client.get("/n", "").text();
    let parts: Vec<&str> = numbers.split('|').collect();
    assert_eq!(parts.len(), 11, "{numbers}");
    let number = |n: usize| parts[n].parse::<f64>().is_ok_and(|x| x >= 0.0);
    assert!([1, 3, 5, 6, 8].into_iter().all(number), "{numbers}");
    assert_eq!(parts[6], "2", "the second request of its connection");
    assert_eq!((parts[7].len(), parts[10]), (32, "200"), "{numbers}");
}

#[test]
fn a_unix_socket_and_ipv6_are_listened_on() {
    let server = http(
        "server { listen 127.0.0.1:@HTTP@; listen [::1]:@HTTP@; listen unix:@DIR@/logs/s.sock;
                  root @DIR@/www; location = /address { return 200 $server_addr; } }",
    );
    let socket = server.home().dir().join("logs/s.sock");
    let by_socket = |path: &str| {
        bolide_testkit::Curl::new(bolide_testkit::Proto::H1)
            .args(["--unix-socket", socket.to_str().unwrap()])
            .get(&format!("http://localhost{path}"))
            .text()
    };
    assert_eq!(by_socket("/hello.txt"), "hello, bolide\n");
    assert_eq!(by_socket("/address"), format!("unix:{}", socket.display()));
    let six = std::net::SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, server.http().port()));
    let mut client = bolide_testkit::H1TestClient::connect(six);
    assert_eq!(client.get("/hello.txt", "").text(), "hello, bolide\n");
}

#[test]
fn requests_cannot_leave_a_root_or_an_alias() {
    let home = Home::new(BOLIDE);
    home.write("x/images/a.txt", "picture");
    home.write("x/priv/s.txt", "secret");
    home.write("x/images/sub/b.txt", "below");
    home.write("x/images/m/a.txt", "deep");
    let conf = format!(
        "{} http {{ default_type text/plain; server {{ listen 127.0.0.1:@HTTP@; root @DIR@/www;
         location /i {{ alias @DIR@/x/images/; }}
         location /t {{ alias @DIR@/x/images/; try_files $uri =404; }}
         location /f {{ alias @DIR@/x/images/; if (-f $request_filename) {{ return 200 there; }} }}
         location /d {{ alias @DIR@/x/images/; autoindex on; }}
         location ~ ^/c(?<rest>.*)$ {{ alias @DIR@/x/images/$rest; }}
         location /q {{ alias @DIR@/x/images/$arg_f; }}
         location /r {{ root @DIR@/x/$arg_d; }}
         location /w {{ rewrite ^ /$arg_f break; root @DIR@/x/images; }}
         location /n {{ root @DIR@/x/images; try_files /$arg_f =404; }}
         location /m {{ root @DIR@/x/images/../images; }}
         location /l {{ root @DIR@/x/images; try_files /../priv/s.txt =404; }} }} }}",
        prelude(1)
    );
    let server = TestServer::start(home, &conf);
    let rows = [
        ("/i/a.txt", "picture"),
        ("/isub/b.txt", "below"),
        ("/i../priv/s.txt", ""),
        ("/i%2e%2e/priv/s.txt", ""),
        ("/i..%2fpriv/s.txt", ""),
        ("/i../images/a.txt", ""),
        ("/i..", ""),
        ("/t/a.txt", "picture"),
        ("/t../priv/s.txt", ""),
        ("/f/a.txt", "there"),
        ("/f../priv/s.txt", ""),
        ("/d../priv/", ""),
        ("/c/a.txt", "picture"),
        ("/c../priv/s.txt", ""),
        ("/q?f=a.txt", "picture"),
        ("/q?f=../priv/s.txt", ""),
        ("/r/a.txt?d=../x/images", ""),
        ("/w?f=a.txt", "picture"),
        ("/w?f=../priv/s.txt", ""),
        ("/n?f=a.txt", "picture"),
        ("/n?f=../priv/s.txt", ""),
        ("/m/a.txt", "deep"),
        // The configuration itself may lead elsewhere.
        ("/l", "secret"),
    ];
    let mut failures = Vec::new();
    for (path, wanted) in rows {
        let reply = server.get(path);
        let status = if wanted.is_empty() { 404 } else { 200 };
        if reply.status != status || !wanted.is_empty() && reply.text() != wanted {
            failures.push(format!("{path}: {} {}", reply.status, reply.text()));
        }
    }
    report(rows.len(), &failures);
}
