//! Names that are looked up while serving: `resolver` with a name server that the test plays.

mod groups;
mod halves;
mod servers;
mod serving;

use bolide_testkit::names::{A, AAAA, address, alias};
use bolide_testkit::{NameReply, Response, TestNames, TestServer, wait_until};

use crate::http;

/// Four addresses: two for A, two for AAAA.
const A1: &str = "127.0.0.1";
const A2: &str = "127.0.0.2";
const B1: &str = "::ffff:127.0.0.3";
const B2: &str = "::ffff:127.0.0.4";

/// A server that passes requests to the host in the argument `h`, whose addresses all answer:
/// `/all` with 503, so that each of them is tried.
fn serve(names: &TestNames, more: &str) -> TestServer {
    serve_with(&format!("resolver {};", names.address()), more)
}

fn serve_with(resolver: &str, more: &str) -> TestServer {
    http(&format!(
        "log_format tried '$arg_h $status $upstream_addr'; access_log @DIR@/logs/tried.log tried;
         server {{ listen 127.0.0.1:@HTTP@; {resolver}
             location / {{ proxy_pass http://$arg_h:@P2@;
                 proxy_next_upstream error timeout http_503;
                 add_header X-Up $upstream_addr always; add_header X-Host $proxy_host always; }}
             {more} }}
         server {{ listen 127.0.0.1:@P2@; listen 127.0.0.2:@P2@; listen 127.0.0.3:@P2@;
             listen 127.0.0.4:@P2@; access_log off;
             location /all {{ return 503; }}
             location / {{ return 200 '$http_host $request_uri'; }} }}"
    ))
}

/// The status, and the addresses that were tried.
fn tried(server: &TestServer, host: &str) -> (u16, Vec<String>) {
    let reply = server.get(&format!("/all?h={host}"));
    (reply.status, addresses(&reply, server))
}

fn addresses(reply: &Response, server: &TestServer) -> Vec<String> {
    let port = format!(":{}", server.home().port(2));
    let tried = reply.header("x-up").unwrap_or_default();
    let tried = tried.split(", ").filter(|text| !text.is_empty());
    tried.map(|text| text.replace(&port, "").replace(['[', ']'], "")).collect()
}

fn has_logged(server: &TestServer, text: &str) {
    wait_until(text, || server.error_log().contains(text));
}
