//! Inheritance, as the sheet of semantics has it.

use std::time::Duration;

use crate::support::{http, location};
use bolide_conf::model::{Expires, ExpiresRule, LocationSettings, Precompressed, TypeSet};

fn settings(inside: &str, name: &str) -> LocationSettings {
    let http = http(inside);
    (*location(&http, &http.servers[0], name).settings).clone()
}

#[test]
fn the_innermost_value_holds_wherever_it_stands_in_its_block() {
    let inside = "gzip on; keepalive_timeout 5; server { \
                  location /a { gzip off; location /a/b { } } location /c { } \
                  keepalive_timeout 9 7; expires 1h; } etag off;";
    let a = settings(inside, "/a/b");
    assert!(!a.gzip.on && !a.etag);
    let c = settings(inside, "/c");
    assert!(c.gzip.on);
    assert_eq!(c.keepalive_timeout, Duration::from_secs(9));
    assert_eq!(c.keepalive_header, Some(Duration::from_secs(7)));
    assert_eq!(*c.expires, Expires::Fixed(ExpiresRule::After(3600)));
}

#[test]
fn one_entry_in_an_inner_block_drops_the_whole_outer_list() {
    let inside = "add_header A 1; add_header B 2; error_page 404 /x; index a b; \
                  gzip_types text/css; access_log l1; error_log e1; types { text/x x; } \
                  server { location /same { } location /other { add_header C 3; error_page 500 /y; \
                  index c; gzip_types *; access_log l2; error_log e2; types { text/y y; } } }";
    let same = settings(inside, "/same");
    assert_eq!((same.add_headers.len(), same.error_pages.len(), same.index.len()), (2, 1, 2));
    assert!(same.gzip.types.contains(b"text/css") && same.gzip.types.contains(b"text/html"));
    assert!(same.types.contains_key(&b"x"[..]));
    let other = settings(inside, "/other");
    assert_eq!((other.add_headers.len(), other.error_pages.len(), other.index.len()), (1, 1, 1));
    assert_eq!((other.access_log.len(), other.error_log.len()), (1, 1));
    assert_eq!(other.gzip.types, TypeSet::All);
    assert!(!other.types.contains_key(&b"x"[..]) && other.types.contains_key(&b"y"[..]));
}

#[test]
fn a_list_in_one_block_grows() {
    let inside = "server { location / { add_header A 1; add_header A 2 always; \
                  error_page 404 405 /x; error_page 500 =200 /y; \
                  types { a/b c; } types { d/e f; } } }";
    let s = settings(inside, "/");
    assert_eq!(s.add_headers.iter().map(|h| h.always).collect::<Vec<_>>(), [false, true]);
    assert_eq!(s.error_pages.len(), 3);
    assert_eq!(s.types.len(), 2);
}

#[test]
fn defaults_are_those_of_nginx() {
    let s = settings("server { location / { } }", "/");
    assert_eq!(s.keepalive_timeout, Duration::from_secs(75));
    assert_eq!((s.keepalive_requests, s.client_max_body_size), (1000, 1 << 20));
    assert_eq!((s.gzip.level, s.gzip.min_length, s.gzip.on), (1, 20, false));
    assert_eq!(s.gzip.precompressed, Precompressed::Off);
    assert!(s.etag && s.absolute_redirect && !s.sendfile && s.tcp_nodelay);
    assert_eq!(s.types.get(&b"html"[..]).map(|kind| &**kind), Some(&b"text/html"[..]));
    assert_eq!(s.access_log.len(), 1);
}

#[test]
fn server_settings_come_from_http_and_stay_in_their_server() {
    let http = http(
        "client_header_timeout 3s; http2 on; server { merge_slashes off; } \
         server { http2 off; large_client_header_buffers 2 16k; http3 off; }",
    );
    let [first, second] = &http.servers[..] else { panic!("two servers") };
    assert_eq!(first.settings.client_header_timeout, Duration::from_secs(3));
    assert_eq!(second.settings.client_header_timeout, Duration::from_secs(3));
    assert!(!first.settings.merge_slashes && second.settings.merge_slashes);
    assert!(first.http2 && !second.http2 && first.http3 && !second.http3);
    assert_eq!(second.settings.large_client_header_buffer_size, 16 << 10);
}
