//! A warm hit, of a file or of a kept answer, allocates nothing from its start to its log line.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bolide_http::Method;
use bolide_world::{FuzzWorld, Say, request};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[allow(unsafe_code, reason = "an allocator that counts has to be an allocator")]
// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CONFIG: &str = r#"
events {}
http {
    types { text/html html; text/css css; }
    root /srv/www; gzip on; gzip_vary on; gzip_types text/css; gzip_min_length 10;
    server { listen 80; server_name a.test; location /static/ { expires 1h; } }
    server { listen 80; server_name b.test; add_header X-Frame-Options DENY; charset utf-8; }
    server { listen 80; server_name c.test; root /srv/held; apache_htaccess on; }
}
"#;

#[test]
fn a_warm_hit_allocates_nothing() {
    let mut world = FuzzWorld::of(CONFIG);
    world.door.put("/srv/www/index.html", &[b'i'; 1000]);
    world.door.put("/srv/www/static/a.css", &[b'a'; 1000]);
    world.door.put("/srv/held/d/e/a.css", &[b'a'; 1000]);
    let held = b"Options -Indexes\n<Files *.bak>\nRequire all denied\n</Files>\n";
    for path in ["/srv/held/.htaccess", "/srv/held/d/.htaccess", "/srv/held/d/e/.htaccess"] {
        world.door.put(path, held);
    }
    let browser = [
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("Accept-Encoding", "gzip, deflate, br"),
    ];
    let validated = [("If-None-Match", "\"6553f100-3e8\"")];
    let ranged = [("Range", "bytes=0-99")];
    let cases = [
        ("a.test", "/index.html", &[][..]),
        ("a.test", "/static/a.css?v=1", &browser),
        ("a.test", "/", &browser),
        ("b.test", "/index.html", &browser),
        ("b.test", "/index.html", &validated),
        ("b.test", "/static/a.css", &ranged),
        ("a.test", "/%69ndex.html", &[]),
        ("c.test", "/d/e/a.css", &browser),
    ];
    for (host, path, fields) in cases {
        for warm in [false, false, true] {
            let head = request(Method::Get, host, path, fields);
            let allocated = world.count(head, || COUNT.with(Cell::get));
            assert!(!warm || allocated == 0, "{host}{path} allocates {allocated} times");
        }
    }
}

const KEEPING: &str = r#"
events {}
http {
    types { text/html html; }
    root /srv/www; gzip on; gzip_vary on; gzip_min_length 10;
    fastcgi_cache_path /srv/zone keys_zone=z:1m;
    server {
        listen 80; server_name zone.test;
        location / {
            fastcgi_pass unix:/run/x.sock; fastcgi_cache z; fastcgi_cache_valid 1h;
            fastcgi_cache_key $scheme$host$request_uri; fastcgi_cache_bypass $cookie_admin;
        }
    }
    server {
        listen 80; server_name page.test;
        page_cache auto; cache_status on; page_cache_vary cookie=currency;
        location / { fastcgi_pass unix:/run/x.sock; add_header X-One 1; }
    }
    server {
        listen 80; server_name shop.test; magento_cache on; page_cache_esi off;
        location / { fastcgi_pass unix:/run/x.sock; }
    }
    server {
        listen 80; server_name front.test; page_cache auto;
        location / { try_files $uri /index.php; }
        location ~ \.php$ { fastcgi_pass unix:/run/x.sock; }
    }
}
"#;

#[test]
fn a_warm_hit_of_a_kept_answer_allocates_nothing() {
    let mut world = FuzzWorld::keeping(KEEPING);
    world.door.put("/srv/www/index.php", b"<?php");
    let body = "a page of which there is enough to be compressed ".repeat(100);
    let head = [
        "Content-Type: text/html",
        "Cache-Control: public, max-age=600",
        "Vary: X-Device",
        "ETag: \"x\"",
        "X-LiteSpeed-Tag: a,b",
    ];
    world.origin.answers = vec![vec![Say::head(200, &head), Say::body(&body), Say::End]];
    let gzip = [("Accept-Encoding", "gzip")];
    let cookies =
        [("Accept-Encoding", "gzip"), ("Cookie", "currency=EUR; PHPSESSID=abcdefghijklmnopqrst")];
    let validated = [("If-None-Match", "\"x\"")];
    let variant = [("Cookie", "PHPSESSID=abcdefghijklmnopqrst; X-Magento-Vary=sha")];
    let cases = [
        ("zone.test", "/p?a=1", &[][..]),
        ("zone.test", "/p?a=1", &gzip),
        ("page.test", "/p", &gzip),
        ("page.test", "/p", &cookies),
        ("front.test", "/p", &cookies),
        ("front.test", "/p", &validated),
        ("shop.test", "/p%20q?a=1&b=2", &variant),
        ("shop.test", "/p?utm_source=x&b=2&a=1", &variant),
    ];
    for (host, path, fields) in cases {
        let first = world.ask(request(Method::Get, host, path, fields));
        assert!(first.status < 400);
        let asked = world.origin.got.len();
        for warm in [false, false, false, true] {
            let head = request(Method::Get, host, path, fields);
            let allocated = world.count(head, || COUNT.with(Cell::get));
            assert!(!warm || allocated == 0, "{host}{path} allocates {allocated} times");
        }
        assert_eq!(world.origin.got.len(), asked, "{host}{path} is answered without the origin");
    }
}
