//! Arbitrary request heads against a fixed site, and the world that such tests happen in.

use std::sync::{Arc, OnceLock};

use files::Failure;
use http::{Method, RequestBody, Version};

use crate::ctx::Refusal;
use crate::site::Site;

pub mod origin;
pub mod world;

pub use origin::{Got, Origin, Say};
pub use world::{Door, Reply, World, compile, request};

/// The site that [`exchange`] asks.
const SITE: &str = r#"
events {}
http {
    root /srv/www;
    gzip on; gzip_vary on; gzip_min_length 1; gzip_static on; brotli on; zstd on;
    error_page 404 /404.html;
    error_page 403 = @denied;
    error_page 500 502 http://elsewhere.test/$uri;
    add_header X-Seen "$uri|$args|$arg_a|$cookie_a|$http_x" always;
    expires 1h;
    server {
        listen 80;
        server_name a.test *.b.test c.* ~^(?<sub>.+)\.re\.test$;
        location / { try_files $uri $uri/ @named; }
        location @named { return 200 "named $uri $sub"; }
        location @denied { return 403 "denied"; }
        location /list/ { autoindex on; }
        location /alias/ { alias /srv/other/; }
        location ~ ^/re/(?<name>[a-z]+)/(.*)$ { alias /srv/www/$2; }
        location /loop { error_page 404 /loop/a; recursive_error_pages on; }
        location /hidden/ { internal; }
        location /gone { return 444; }
        location /text { return 200 "$request_uri $host $remote_addr $request_id"; }
        location /move { return 301 /moved$is_args$args; }
    }
    server { listen 80; server_name other.test; return 302 http://a.test$request_uri; }
}
"#;

fn site() -> &'static Arc<Site> {
    static COMPILED: OnceLock<Arc<Site>> = OnceLock::new();
    COMPILED.get_or_init(|| match compile(SITE) {
        Ok(site) => Arc::new(site),
        Err(messages) => panic!("{messages}"),
    })
}

/// Answers a request head made of `data`: one byte of circumstances, then lines for target,
/// authority and fields.
pub fn exchange(data: &[u8]) {
    let Some((&circumstances, rest)) = data.split_first() else { return };
    let mut world = World::new(site().clone());
    for (path, content) in [
        ("/srv/www/index.html", &b"<p>index</p>"[..]),
        ("/srv/www/404.html", b"lost"),
        ("/srv/www/list/a.txt", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ("/srv/www/a.html", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ("/srv/www/a.html.gz", b"gz"),
        ("/srv/other/x", b"x"),
    ] {
        world.door.put(path, content);
    }
    world.door.fail("/srv/www/secret", Failure::PermissionDenied);
    world.pull_max = 1 + usize::from(circumstances >> 4);
    let methods = [Method::Get, Method::Head, Method::Post, Method::Options];
    let versions = [Version::Http11, Version::Http10, Version::Http2, Version::Http3];
    let mut lines = rest.split(|byte| *byte == b'\n');
    let mut head = request(methods[usize::from(circumstances & 3)], "", "", &[]);
    head.version = versions[usize::from(circumstances >> 2 & 3)];
    head.target = lines.next().unwrap_or_default().to_vec();
    head.authority = lines.next().unwrap_or_default().to_vec();
    for line in lines {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        if !name.is_empty() && name.len() < 1000 {
            head.fields.push_text(name, value.trim_ascii());
        }
    }
    if circumstances & 0x10 != 0 {
        head.body = RequestBody::Length(rest.len() as u64);
    }
    let refusal = (circumstances & 0xe0 == 0xe0)
        .then_some(Refusal { status: 494, reason: "client sent too long header line" });
    world.ask_refused(head, refusal);
    assert!(world.take_log("/srv/logs/access.log").ends_with('\n'), "every request is logged");
}
