//! The client address behind a proxy: `set_real_ip_from` and related directives.

use bolide_testkit::app::TestApp;
use bolide_testkit::server::Home;
use bolide_testkit::{TestServer, wait_until};

use crate::{BOLIDE, http, report};

/// Path, more fields, body.
type Rows<'a> = &'a [(&'a str, &'a str, &'a str)];

fn check(server: &TestServer, rows: Rows<'_>) {
    let mut failures = Vec::new();
    for (path, fields, wanted) in rows {
        let got = server.connect().get(path, fields).text();
        if got != *wanted {
            failures.push(format!("{path} {fields:?}: {got}, want {wanted}"));
        }
    }
    report(rows.len(), &failures);
}

const SHOW: &str = "return 200 \"$remote_addr|$realip_remote_addr\";";

#[test]
fn the_field_of_a_trusted_proxy_sets_the_client_address() {
    let server = http(&format!(
        "server {{ {} set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8;
           location /real {{ {SHOW} }}
           location /port {{ return 200 $remote_addr:$remote_port; }}
         }}",
        bolide_testkit::server::LISTEN
    ));
    check(
        &server,
        &[
            ("/real", "", "127.0.0.1|127.0.0.1"),
            ("/real", "X-Real-IP: 192.0.2.7\r\n", "192.0.2.7|127.0.0.1"),
            ("/real", "X-Real-IP: 2001:db8::1\r\n", "2001:db8::1|127.0.0.1"),
            ("/real", "X-Real-IP: nobody\r\n", "127.0.0.1|127.0.0.1"),
            ("/real", "X-Forwarded-For: 192.0.2.7\r\n", "127.0.0.1|127.0.0.1"),
            ("/port", "X-Real-IP: 192.0.2.7:81\r\n", "192.0.2.7:81"),
            ("/port", "X-Real-IP: [::1]:81\r\n", "::1:81"),
            ("/port", "X-Real-IP: 192.0.2.7\r\n", "192.0.2.7:"),
        ],
    );
}

#[test]
fn an_inner_list_of_trusted_addresses_replaces_the_outer_one() {
    let server = http(&format!(
        "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For; real_ip_recursive on;
         map $remote_addr $who {{ 192.0.2.7 seven; default other; }}
         server {{ {listen} set_real_ip_from 192.0.2.1;
           location /strange {{ {SHOW} }}
           location /again {{ set_real_ip_from 127.0.0.0/8; set_real_ip_from 10.0.0.0/8;
             root /nowhere; try_files /x @show; }}
           location @show {{ {SHOW} }}
           location /deny {{ set_real_ip_from 127.0.0.1; deny 192.0.2.7; allow all;
             try_files /x @who; }}
           location @who {{ return 200 $who; }} }}",
        listen = bolide_testkit::server::LISTEN
    ));
    check(
        &server,
        &[
            ("/strange", "X-Forwarded-For: 192.0.2.7\r\n", "127.0.0.1|127.0.0.1"),
            ("/again", "X-Forwarded-For: 192.0.2.7, 10.0.0.1\r\n", "192.0.2.7|127.0.0.1"),
            ("/again", "X-Forwarded-For: 8.8.8.8, 9.9.9.9\r\n", "9.9.9.9|127.0.0.1"),
            ("/deny", "X-Forwarded-For: 192.0.2.8\r\n", "other"),
        ],
    );
    let denied = server.connect().get("/deny", "X-Forwarded-For: 192.0.2.7\r\n");
    assert_eq!(denied.status, 403);
    let forbidden = "access forbidden by rule, client: 192.0.2.7, server";
    wait_until(forbidden, || server.error_log().contains(forbidden));
    assert!(server.access_lines(5)[4].starts_with("192.0.2.7 - "), "{}", server.access_log());
}

#[test]
fn lines_of_a_field_are_one_list_if_all_of_them_count() {
    // No field of the requests says anything before a location is found.
    let trust = "set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8; real_ip_recursive on;
        real_ip_header X-None;";
    let site = |words: &str, path: &str| {
        format!("location /{path} {{ real_ip_header {words}; try_files /x @show; }}")
    };
    let server = http(&format!(
        "server {{ {} {trust} {}{}{}{} location @show {{ {SHOW} }} }}",
        bolide_testkit::server::LISTEN,
        site("X-Client", "first"),
        site("X-Client all", "all"),
        site("X-Real-IP all", "real"),
        site("X-Forwarded-For all", "forwarded"),
    ));
    let forged = "X-Client: 192.0.2.7\r\nX-Client: 192.0.2.8\r\n";
    let longer = "X-Client: 192.0.2.7, 192.0.2.8\r\nx-client: 10.1.1.1\r\n";
    let real = "X-Real-IP: 192.0.2.7\r\nX-Real-IP: 192.0.2.8\r\n";
    let unknown = "X-Client: 192.0.2.7\r\nX-Client: unknown\r\n";
    let list = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-For: 192.0.2.8\r\n";
    check(
        &server,
        &[
            ("/first", forged, "192.0.2.7|127.0.0.1"),
            ("/all", forged, "192.0.2.8|127.0.0.1"),
            ("/all", longer, "192.0.2.8|127.0.0.1"),
            ("/all", unknown, "127.0.0.1|127.0.0.1"),
            ("/all", "", "127.0.0.1|127.0.0.1"),
            ("/real", real, "192.0.2.8|127.0.0.1"),
            ("/forwarded", list, "192.0.2.8|127.0.0.1"),
        ],
    );
}

/// The cache's decisions by address when `set_real_ip_from` replaces the client's.
#[test]
fn page_cache_front_uses_the_connections_address_and_purge_access_the_clients() {
    let app = TestApp::start();
    let params = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
    let server = http(&format!(
        "set_real_ip_from 127.0.0.1; page_cache auto;
         server {{ {listen}
           location / {{ {params} fastcgi_pass {pass}; page_cache_trusted 127.0.0.1; }}
           location /pretended {{ {params} fastcgi_pass {pass}; page_cache_trusted 192.0.2.7; }}
           location /listed {{ {params} fastcgi_pass {pass};
             page_cache_purge_allow 192.0.2.0/24; }} }}",
        listen = bolide_testkit::server::LISTEN,
        pass = app.address(),
    ));
    for path in ["/", "/pretended", "/listed"] {
        app.say(path, "X-LiteSpeed-Cache-Control: public, max-age=60\nX-LiteSpeed-Tag: t");
    }
    let seven = "X-Real-IP: 192.0.2.7\r\nX-LSCACHE: 1\r\n";
    let tag = |path: &str| {
        let reply = server.connect().get(path, seven);
        reply.header("x-litespeed-tag").map(str::to_owned)
    };
    assert_eq!(tag("/").as_deref(), Some("t"), "a front hands a client's request on");
    assert_eq!(tag("/pretended"), None, "a client is no front");
    let purge = |path: &str, fields: &str| {
        let asked = format!("PURGE {path} HTTP/1.1\r\nHost: localhost\r\n{fields}");
        server.connect().ask(asked.trim_end()).status
    };
    assert_eq!(purge("/", ""), 200);
    assert_eq!(purge("/", seven), 405, "handed on by this machine, not sent by it");
    assert_eq!(purge("/listed", seven), 200);
    assert_eq!(purge("/listed", ""), 405);
}

#[test]
fn wrong_arguments_are_refused_with_nginxs_messages() {
    let home = Home::new(BOLIDE);
    let rows = [
        ("set_real_ip_from;", "invalid number of arguments in \"set_real_ip_from\" directive"),
        ("set_real_ip_from all;", "host not found in set_real_ip_from \"all\""),
        ("set_real_ip_from 1.2.3.4/33;", "host not found in set_real_ip_from \"1.2.3.4/33\""),
        ("set_real_ip_from unix:/x;", "host not found in set_real_ip_from \"unix:/x\""),
        ("real_ip_header;", "invalid number of arguments in \"real_ip_header\" directive"),
        ("real_ip_header a b;", "invalid number of arguments in \"real_ip_header\" directive"),
        (
            "real_ip_header proxy_protocol all;",
            "invalid number of arguments in \"real_ip_header\" directive",
        ),
        ("real_ip_header a; real_ip_header b;", "\"real_ip_header\" directive is duplicate"),
        (
            "real_ip_recursive yes;",
            "invalid value \"yes\" in \"real_ip_recursive\" directive, \
             it must be \"on\" or \"off\"",
        ),
    ];
    let mut failures = Vec::new();
    for (n, (conf, wanted)) in rows.iter().enumerate() {
        let file = home.write(&format!("r{n}.conf"), &format!("events {{}} http {{ {conf} }}"));
        let done = home.run(&["-t", "-c", file.to_str().unwrap()]);
        if done.code != 1 || !done.stderr.contains(wanted) {
            failures.push(format!("{conf}: {}", done.stderr));
        }
    }
    report(rows.len(), &failures);
}
