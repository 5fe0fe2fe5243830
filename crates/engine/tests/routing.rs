//! The truth table of server and location choice.
//!
//! Every location answers with its own name, so that a row says: asked like this, this answers.

use bolide_world::FuzzWorld;

const CONFIG: &str = r#"
events {}
http {
    server { listen 80; server_name first.test; location / { return 200 "first"; } }
    server {
        listen 80 default_server;
        server_name _;
        location / { return 200 "default"; }
    }
    server {
        listen 80;
        server_name exact.test www.exact.test;
        location / { return 200 "exact"; }
    }
    server { listen 80; server_name *.exact.test; location / { return 200 "suffix"; } }
    server { listen 80; server_name *.deep.exact.test; location / { return 200 "deep"; } }
    server { listen 80; server_name .both.test; location / { return 200 "both"; } }
    server { listen 80; server_name www.*; location / { return 200 "prefix"; } }
    server { listen 80; server_name www.long.*; location / { return 200 "long"; } }
    server {
        listen 80;
        server_name ~^(?<user>[a-z]+)\.user\.test$;
        location / { return 200 "user $user"; }
    }
    server { listen 80; server_name ~^([0-9]+)\.n\.test$; location / { return 200 "n $1"; } }
    server { listen 80; server_name ~user; location / { return 200 "regex two"; } }
    server { listen 80; server_name ""; location / { return 200 "nameless"; } }
    server {
        listen 80;
        server_name loc.test;
        root /srv/www;
        location = / { return 200 "= /"; }
        location / { return 200 "/"; }
        location /pre { return 200 "/pre"; }
        location /pre/long { return 200 "/pre/long"; }
        location /pre/long/er/ { return 200 "/pre/long/er/"; }
        location = /pre/exact { return 200 "= /pre/exact"; }
        location ^~ /static/ { return 200 "^~ /static/"; }
        location ^~ /static/deep/ {
            return 200 "^~ /static/deep/";
        }
        location ~ \.php$ { return 200 "php"; }
        location ~* \.(gif|jpg)$ { return 200 "image $1"; }
        location ~ ^/pre/long/re { return 200 "re"; }
        location ~ ^/case { return 200 "case"; }
        location ~* ^/nocase { return 200 "nocase"; }
        location /nest/ {
            location /nest/a/ {
                return 200 "/nest/a/";
            }
            location = /nest/exact { return 200 "= /nest/exact"; }
            location ~ \.php$ { return 200 "nested php"; }
            location /nest/b/ {
                location ~ \.txt$ { return 200 "txt in b"; }
                return 200 "/nest/b/";
            }
            return 200 "/nest/";
        }
        location ^~ /final/ {
            location ~ \.php$ { return 200 "php in final"; }
            return 200 "^~ /final/";
        }
        location ~ ^/re/ {
            location ~ \.css$ { return 200 "css in re"; }
            return 200 "~ ^/re/";
        }
        location /cap/ {
            location ~ ^/cap/(?<first>[^/]+)/(.*)$ { return 200 "$first $2 $1"; }
            return 200 "/cap/";
        }
        location /space/a { return 200 "/space/a"; }
        location "/sp ace" { return 200 "/sp ace"; }
        location /hidden/ { internal; return 200 "hidden"; }
        location /go/ { try_files /none @named; }
        location @named { return 200 "named $uri"; }
        location /in/ { try_files /none /hidden/x; }
        location /pct%25 { return 200 "never"; }
        location /pct% { return 200 "percent"; }
    }
    server {
        listen 80;
        server_name bare.test;
        root /srv/bare;
        location /only/ { return 200 "only"; }
        location ~ \.txt$ { return 200 "txt"; }
    }
    server {
        listen 80;
        server_name whole.test;
        return 200 "whole $uri";
        location / { return 200 "never"; }
    }
    server { listen 8080; server_name exact.test; location / { return 200 "8080 exact"; } }
    server { listen 8080; server_name other.test; location / { return 200 "8080 other"; } }
    server { listen 127.0.0.2:80; location / { return 200 "127.0.0.2"; } }
    server { listen [::]:80; server_name exact.test; location / { return 200 "six"; } }
    server { listen unix:/run/b.sock; location / { return 200 "unix"; } }
    server {
        listen 8082;
        server_name slashes.test;
        merge_slashes off;
        location /a/b { return 200 "/a/b"; }
        location /a//b { return 200 "/a//b"; }
        location / { return 200 "/"; }
    }
}
"#;

/// Listener, host, path, and who answers (or which status).
const ROWS: &[(&str, &str, &str, &str)] = &[
    // Servers by exact name.
    ("80", "exact.test", "/", "exact"),
    ("80", "www.exact.test", "/", "exact"),
    ("80", "EXACT.Test", "/", "exact"),
    ("80", "exact.test.", "/", "exact"),
    ("80", "exact.test:80", "/", "exact"),
    ("80", "exact.test.:8080", "/", "exact"),
    ("80", "first.test", "/", "first"),
    ("80", "_", "/", "default"),
    // The default server.
    ("80", "unknown.test", "/", "default"),
    ("80", "test", "/", "default"),
    ("80", "127.0.0.1", "/", "default"),
    ("80", "[::1]", "/", "default"),
    ("80", "xexact.test", "/", "default"),
    ("80", "exact.test.evil", "/", "default"),
    // Wildcards in front.
    ("80", "a.exact.test", "/", "suffix"),
    ("80", "a.b.exact.test", "/", "suffix"),
    ("80", "deep.exact.test", "/", "suffix"),
    ("80", "x.deep.exact.test", "/", "deep"),
    ("80", "x.y.deep.exact.test", "/", "deep"),
    ("80", "A.EXACT.test", "/", "suffix"),
    ("80", "both.test", "/", "both"),
    ("80", "a.both.test", "/", "both"),
    ("80", "a.b.both.test", "/", "both"),
    ("80", "aboth.test", "/", "default"),
    // Wildcards behind.
    ("80", "www.x", "/", "prefix"),
    ("80", "www.x.y", "/", "prefix"),
    ("80", "www.long.x", "/", "long"),
    ("80", "www.long.x.y", "/", "long"),
    ("80", "www.longer.x", "/", "prefix"),
    ("80", "www.both.test", "/", "both"),
    ("80", "wwww.x", "/", "default"),
    // Regular expressions, in order.
    ("80", "bob.user.test", "/", "user bob"),
    ("80", "BOB.user.test", "/", "user bob"),
    ("80", "bob1.user.test", "/", "regex two"),
    ("80", "xuserx", "/", "regex two"),
    ("80", "42.n.test", "/", "n 42"),
    ("80", "www.user.test", "/", "prefix"),
    ("80", "a42.n.test", "/", "default"),
    // Other addresses.
    ("8080", "exact.test", "/", "8080 exact"),
    ("8080", "other.test", "/", "8080 other"),
    ("8080", "first.test", "/", "8080 exact"),
    ("8080", "unknown", "/", "8080 exact"),
    ("127.0.0.2:80", "exact.test", "/", "127.0.0.2"),
    ("127.0.0.2:80", "unknown", "/", "127.0.0.2"),
    ("[::]:80", "exact.test", "/", "six"),
    ("[::]:80", "first.test", "/", "six"),
    ("unix:/run/b.sock", "exact.test", "/", "unix"),
    // Broken hosts.
    ("80", "a..b", "/", "400"),
    ("80", "a/b", "/", "400"),
    ("80", ".", "/", "400"),
    ("80", "a b", "/", "400"),
    ("80", "exact.test:x", "/", "400"),
    ("80", "", "/", "400"),
    // Exact and prefix locations.
    ("80", "loc.test", "/", "= /"),
    ("80", "loc.test", "/?x", "= /"),
    ("80", "loc.test", "//", "= /"),
    ("80", "loc.test", "/./", "= /"),
    ("80", "loc.test", "/x/..", "= /"),
    ("80", "loc.test", "/x", "/"),
    ("80", "loc.test", "/pr", "/"),
    ("80", "loc.test", "/pre", "/pre"),
    ("80", "loc.test", "/prefixx", "/pre"),
    ("80", "loc.test", "/pre/", "/pre"),
    ("80", "loc.test", "/pre/lon", "/pre"),
    ("80", "loc.test", "/pre/long", "/pre/long"),
    ("80", "loc.test", "/pre/longer", "/pre/long"),
    ("80", "loc.test", "/pre/long/er", "/pre/long"),
    ("80", "loc.test", "/pre/long/er/", "/pre/long/er/"),
    ("80", "loc.test", "/pre/long/er/x/y", "/pre/long/er/"),
    ("80", "loc.test", "/pre/exact", "= /pre/exact"),
    ("80", "loc.test", "/pre/exact/", "/pre"),
    ("80", "loc.test", "/pre/exactx", "/pre"),
    ("80", "loc.test", "/PRE", "/"),
    // Decoding comes first.
    ("80", "loc.test", "/%70re", "/pre"),
    ("80", "loc.test", "/pre%2flong", "/pre/long"),
    ("80", "loc.test", "/x/../pre", "/pre"),
    ("80", "loc.test", "/x/%2e%2e/pre", "/pre"),
    ("80", "loc.test", "//pre", "/pre"),
    ("80", "loc.test", "/pre//long", "/pre/long"),
    ("80", "loc.test", "/sp%20ace", "/sp ace"),
    ("80", "loc.test", "/pct%25", "percent"),
    ("80", "loc.test", "/pct%2525", "never"),
    ("80", "loc.test", "/pre?/static/", "/pre"),
    ("80", "loc.test", "/pre#/static/", "/pre"),
    ("80", "loc.test", "/..", "400"),
    ("80", "loc.test", "/a/../../b", "400"),
    ("80", "loc.test", "/%00", "400"),
    ("80", "loc.test", "/%zz", "400"),
    ("80", "loc.test", "*", "400"),
    // ^~ against regular expressions.
    ("80", "loc.test", "/static/", "^~ /static/"),
    ("80", "loc.test", "/static/a.php", "^~ /static/"),
    ("80", "loc.test", "/static/a.gif", "^~ /static/"),
    ("80", "loc.test", "/static/deep/a.php", "^~ /static/deep/"),
    ("80", "loc.test", "/static", "/"),
    ("80", "loc.test", "/staticx/a.php", "php"),
    // Regular expressions in order.
    ("80", "loc.test", "/a.php", "php"),
    ("80", "loc.test", "/pre/long/er/a.php", "php"),
    ("80", "loc.test", "/a.PHP", "/"),
    ("80", "loc.test", "/a.php/x", "/"),
    ("80", "loc.test", "/a.php?x.gif", "php"),
    ("80", "loc.test", "/a.gif", "image gif"),
    ("80", "loc.test", "/a.GIF", "image GIF"),
    ("80", "loc.test", "/pre/a.jpg", "image jpg"),
    ("80", "loc.test", "/pre/long/re", "re"),
    ("80", "loc.test", "/pre/long/re.php", "php"),
    ("80", "loc.test", "/pre/exact.gif", "image gif"),
    ("80", "loc.test", "/case", "case"),
    ("80", "loc.test", "/CASE", "/"),
    ("80", "loc.test", "/nocase", "nocase"),
    ("80", "loc.test", "/NoCase", "nocase"),
    // Nesting.
    ("80", "loc.test", "/nest/", "/nest/"),
    ("80", "loc.test", "/nest", "/"),
    ("80", "loc.test", "/nest/x", "/nest/"),
    ("80", "loc.test", "/nest/exact", "= /nest/exact"),
    ("80", "loc.test", "/nest/exact.php", "nested php"),
    ("80", "loc.test", "/nest/a/", "/nest/a/"),
    ("80", "loc.test", "/nest/a/x.php", "nested php"),
    ("80", "loc.test", "/nest/a/x.gif", "image gif"),
    ("80", "loc.test", "/nest/b/x", "/nest/b/"),
    ("80", "loc.test", "/nest/b/x.txt", "txt in b"),
    ("80", "loc.test", "/nest/b/x.php", "nested php"),
    ("80", "loc.test", "/nest/x.php", "nested php"),
    ("80", "loc.test", "/nest/x.jpg", "image jpg"),
    ("80", "loc.test", "/final/x", "^~ /final/"),
    ("80", "loc.test", "/final/x.php", "php in final"),
    ("80", "loc.test", "/final/x.gif", "^~ /final/"),
    ("80", "loc.test", "/re/x", "~ ^/re/"),
    ("80", "loc.test", "/re/x.css", "css in re"),
    ("80", "loc.test", "/re/x.php", "php"),
    ("80", "loc.test", "/re/x.gif", "image gif"),
    // Captures.
    ("80", "loc.test", "/cap/a/b/c", "a b/c a"),
    ("80", "loc.test", "/cap/a", "/cap/"),
    ("80", "loc.test", "/cap/a%20b/", "a b  a b"),
    // Locations of the inside.
    ("80", "loc.test", "/hidden/x", "404"),
    ("80", "loc.test", "/go/there", "named /go/there"),
    ("80", "loc.test", "/in/", "hidden"),
    ("80", "loc.test", "/@named", "/"),
    ("80", "loc.test", "@named", "400"),
    // A server without a location for the path, and one that answers by itself.
    ("80", "bare.test", "/only/x", "only"),
    ("80", "bare.test", "/x.txt", "txt"),
    ("80", "bare.test", "/x", "404"),
    ("80", "bare.test", "/", "404"),
    ("80", "whole.test", "/x", "whole /x"),
    ("80", "whole.test", "/a/../b", "whole /b"),
    // Slashes that stay.
    ("8082", "slashes.test", "/a/b", "/a/b"),
    ("8082", "slashes.test", "/a//b", "/a//b"),
    ("8082", "slashes.test", "//a/b", "/"),
];

#[test]
fn every_row_of_the_table_is_answered_by_the_right_location() {
    assert!(ROWS.len() >= 120, "{} rows", ROWS.len());
    let mut world = FuzzWorld::of(CONFIG);
    let listens: Vec<String> =
        world.site().listens().iter().map(|listen| listen.address.to_string()).collect();
    let mut wrong = Vec::new();
    for (listen, host, path, wanted) in ROWS {
        let address = if listen.chars().all(|c| c.is_ascii_digit()) {
            format!("0.0.0.0:{listen}")
        } else {
            (*listen).to_owned()
        };
        let index = listens.iter().position(|known| *known == address).expect("a listener");
        world.listen(index);
        let reply = world.get(host, path);
        let got = if reply.status == 200 { reply.text() } else { reply.status.to_string() };
        if got != *wanted {
            wrong.push(format!("{listen} {host} {path}: {got}, not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}

#[test]
fn a_request_without_host_goes_to_the_nameless_server_only_in_old_versions() {
    let mut world = FuzzWorld::of(CONFIG);
    let mut head = bolide_world::request(bolide_http::Method::Get, "", "/", &[]);
    head.version = bolide_http::HttpVersion::Http10;
    assert_eq!(world.ask(head).text(), "nameless");
    let mut head = bolide_world::request(bolide_http::Method::Get, "", "/", &[]);
    head.version = bolide_http::HttpVersion::Http2;
    assert_eq!(world.ask(head).status, 400);
}

#[test]
fn the_certificate_is_chosen_by_the_same_names() {
    let world = FuzzWorld::of(CONFIG);
    let site = world.site();
    let listen = bolide_conf::model::ListenId(0);
    assert_eq!(site.server_of_name(listen, Some("a.exact.test")), 3);
    assert_eq!(site.server_of_name(listen, Some("unknown.test")), 1);
    assert_eq!(site.server_of_name(listen, None), 1);
}
