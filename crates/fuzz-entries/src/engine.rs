//! Arbitrary request heads for a fixed site, and their invariants.

use std::sync::{Arc, OnceLock};

use bolide_engine::{RequestRefusal, Site};
use bolide_files::OpenFailure;
use bolide_http::{HttpVersion, Method, RequestBody};

use bolide_world::{FuzzWorld, Say, compile, request};

/// The site of [`exchange`].
const SITE: &str = r#"
events {}
http {
    php_pool main { }
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
        location /app/ { fastcgi_pass unix:/x.sock; fastcgi_param Q $args; gzip_proxied any; }
        location /app/small/ {
            fastcgi_pass unix:/x.sock; client_max_body_size 3k; client_body_buffer_size 100;
            fastcgi_buffer_size 64; fastcgi_buffers 2 64; fastcgi_busy_buffers_size 64;
            fastcgi_intercept_errors on; fastcgi_force_ranges on;
            fastcgi_param B $request_body; fastcgi_index i.php;
        }
        location /app/stream/ {
            fastcgi_pass unix:/x.sock; fastcgi_request_buffering off; fastcgi_buffering off;
            error_page 502 503 = @app; add_header X-Up "$upstream_addr $upstream_status" always;
        }
        location @app { fastcgi_pass unix:/y.sock; }
        location /pool/ { php_pass main; }
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

/// Processes a request head made of `data`: one byte for settings, then lines for target, authority
/// and fields. The bytes after the first NUL are the upstream's response, if it is asked.
pub fn exchange(data: &[u8]) {
    let Some((&circumstances, rest)) = data.split_first() else { return };
    let (rest, says) = match memchr::memchr(0, rest) {
        Some(mark) => (&rest[..mark], &rest[mark + 1..]),
        None => (rest, &b""[..]),
    };
    let mut world = FuzzWorld::new(site().clone());
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
    world.door.fail("/srv/www/secret", OpenFailure::PermissionDenied);
    world.pull_max = 1 + usize::from(circumstances >> 4);
    world.door.put("/srv/www/pool/a.php", b"<?php");
    let methods = [Method::Get, Method::Head, Method::Post, Method::Options];
    let versions =
        [HttpVersion::Http11, HttpVersion::Http10, HttpVersion::Http2, HttpVersion::Http3];
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
    world.origin.answers = says.split(|byte| *byte == 0xff).map(script).collect();
    world.origin.disk_is_full = says.first() == Some(&0xfe);
    if circumstances & 0x10 != 0 || says.len() > 3 {
        head.body = match says.len() % 3 {
            0 if says.len() > 3 => RequestBody::Unknown,
            _ => RequestBody::Length(rest.len() as u64),
        };
        world.client_sends(rest.chunks(700));
    }
    let refusal = (circumstances & 0xe0 == 0xe0)
        .then_some(RequestRefusal { status: 494, reason: "client sent too long header line" });
    world.ask_refused(head, refusal);
    assert!(world.take_log("/srv/logs/access.log").ends_with('\n'), "every request is logged");
}

/// The parts of an upstream's response, from lines: the first byte of each is its kind.
fn script(lines: &[u8]) -> Vec<Say> {
    let mut says = Vec::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let Some((&kind, rest)) = line.split_first() else { continue };
        let text = String::from_utf8_lossy(rest).into_owned();
        let fields: Vec<&str> = text.split('|').collect();
        says.push(match kind {
            b'h' => Say::head(0, &fields),
            b'e' => Say::early(&fields),
            b'b' => Say::body(&text),
            b'.' => Say::End,
            b'f' => Say::Fail(502 + (rest.len() % 3) as u16, Some(7)),
            b'l' => Say::Log(text, None),
            b't' => Say::Tried(text, 200),
            b'w' => Say::AwaitBody,
            b'c' => Say::ClientLeaves,
            b'4' => Say::head(404, &fields),
            b'3' => Say::head(304, &fields),
            b'L' => Say::Body(vec![b'x'; 100 * (1 + rest.len())].into()),
            _ => continue,
        });
    }
    likely(says)
}

/// The same parts in the order of a real response: one head, then bodies, then an end.
fn likely(says: Vec<Say>) -> Vec<Say> {
    let mut ordered = Vec::new();
    let mut has_head = false;
    for say in says {
        let fits = match &say {
            Say::Head(..) => !std::mem::replace(&mut has_head, true),
            Say::Early(_) => !has_head,
            Say::Body(_) | Say::End => has_head,
            _ => true,
        };
        if fits {
            let is_last = matches!(say, Say::End | Say::Fail(..) | Say::ClientLeaves);
            ordered.push(say);
            if is_last {
                return ordered;
            }
        }
    }
    ordered.push(Say::Fail(504, None));
    ordered
}
