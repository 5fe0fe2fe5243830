//! LiteSpeed's directives and variables in `.htaccess`, as plugins write them: the page cache does
//! what the file says, without a word in the configuration, and live.
//!
//! The application is behind a front controller and answers with `run N`, where N counts the
//! requests for the address that was asked for; so a body shows whether it was fetched.

use std::fs;

use bolide_testkit::app::TestApp;
use bolide_testkit::server::LISTEN;
use bolide_testkit::{Response, TestServer};

use crate::http;

/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");

/// A block of a plugin with everything in it, and the front controller behind it.
const BLOCK: &str = r#"
<IfModule LiteSpeed>
RewriteEngine on
CacheLookup on
RewriteRule .* - [E=Cache-Control:no-autoflush]
RewriteRule (^|/)secret\.log$ - [F,L]

RewriteCond %{REQUEST_URI} /jobs\.php
RewriteCond %{QUERY_STRING} action=slow
RewriteRule .* - [E=noabort:1,E=noconntimeout:1]

RewriteCond %{HTTP_USER_AGENT} Mobile|Phone\ OS [NC]
RewriteRule .* - [E=Cache-Control:vary=%{ENV:LSCACHE_VARY_VALUE}+ismobile]

RewriteCond %{HTTP_COOKIE} staff_in|cart_has
RewriteRule .* - [E=Cache-Control:no-cache]

RewriteCond %{HTTP_USER_AGENT} Auditor
RewriteRule .* - [E=Cache-Control:no-cache]

RewriteRule .? - [E="Cache-Vary:login_mark,,post_pass"]

RewriteCond %{HTTP_ACCEPT} image/webp [OR]
RewriteCond %{HTTP_USER_AGENT} New/[0-9]{2}
RewriteRule .* - [E=cache-control:vary=%{ENV:LSCACHE_VARY_VALUE}+webp]

CacheKeyModify -qs:campaign
CacheKeyModify -qs:ref_*
</IfModule>
<FilesMatch "\.(woff2|ttf)$">
<IfModule mod_headers.c>
Header set Access-Control-Allow-Origin "*"
</IfModule>
</FilesMatch>
<IfModule mod_expires.c>
ExpiresActive on
ExpiresByType text/css A600
</IfModule>
"#;

pub(crate) const FRONT: &str = r"
RewriteEngine On
RewriteBase /
RewriteRule ^index\.php$ - [L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule . /index.php [L]
";

pub(crate) const PUBLIC: &str = "X-LiteSpeed-Cache-Control: public,max-age=60";
const MOBILE: &str = "User-Agent: Mobile Phone\r\n";
const WEBP: &str = "Accept: image/webp,*/*\r\n";

pub(crate) struct Shop {
    pub(crate) app: TestApp,
    pub(crate) server: TestServer,
}

impl Shop {
    /// A shop with this file in its root, and what is said of the cache in the server block.
    pub(crate) fn with(block: &str, file: &str) -> Self {
        let app = TestApp::start();
        let pass = app.address();
        let server = http(&format!(
            "server {{ {LISTEN} apache_htaccess on; index index.php; types {{ text/css css; }}
                 {block} location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; }} }}"
        ));
        fs::write(server.www("index.php"), "<?php").unwrap();
        let shop = Self { app, server };
        shop.put("", file);
        shop
    }

    /// The whole block of a plugin.
    fn new() -> Self {
        Self::with("page_cache auto;", &format!("{BLOCK}{FRONT}"))
    }

    /// Writes the `.htaccess` of a directory.
    pub(crate) fn put(&self, directory: &str, text: &str) {
        fs::create_dir_all(self.server.www(directory)).unwrap();
        let fresh = self.server.www(directory).join("fresh");
        fs::write(&fresh, text).unwrap();
        fs::rename(fresh, self.server.www(directory).join(".htaccess")).unwrap();
    }

    pub(crate) fn ask(&self, path: &str, fields: &str) -> Response {
        self.server.connect().get(path, fields)
    }

    /// The cache status and the body.
    pub(crate) fn seen(&self, path: &str, fields: &str) -> (String, String) {
        let reply = self.ask(path, fields);
        assert_eq!(reply.status, 200, "{path}: {reply:?} {}", self.server.error_log());
        (reply.header("x-litespeed-cache").unwrap_or_default().to_owned(), reply.text())
    }

    /// A parameter of the application's last request for `path`.
    fn param_of(&self, path: &str, name: &str) -> String {
        let asked = self.app.asked(path);
        asked.last().expect(path).param(name).unwrap_or_default().to_owned()
    }
}

pub(crate) fn miss(run: usize) -> (String, String) {
    ("miss".to_owned(), format!("run {run}"))
}

pub(crate) fn hit(run: usize) -> (String, String) {
    ("hit".to_owned(), format!("run {run}"))
}

/// Neither stored nor a hit.
pub(crate) fn past(run: usize) -> (String, String) {
    (String::new(), format!("run {run}"))
}

#[test]
fn mobile_visitors_have_pages_of_their_own() {
    let shop = Shop::new();
    shop.app.say("/shop/tea", PUBLIC);
    assert_eq!(shop.seen("/shop/tea", ""), miss(1));
    assert_eq!(shop.seen("/shop/tea", MOBILE), miss(2));
    assert_eq!(shop.param_of("/shop/tea", "LSCACHE_VARY_VALUE"), "+ismobile");
    assert_eq!(shop.param_of("/shop/tea", "LSCACHE_VARY_COOKIE"), "login_mark,post_pass");
    assert_eq!(shop.seen("/shop/tea", ""), hit(1));
    assert_eq!(shop.seen("/shop/tea", MOBILE), hit(2));
    assert_eq!(shop.seen("/shop/tea", "User-Agent: PHONE os\r\n"), hit(2));
}

#[test]
fn clients_that_take_webp_have_pages_of_their_own() {
    let shop = Shop::new();
    shop.app.say("/shop", PUBLIC);
    assert_eq!(shop.seen("/shop", ""), miss(1));
    assert_eq!(shop.seen("/shop", WEBP), miss(2));
    assert_eq!(shop.seen("/shop", &format!("{MOBILE}{WEBP}")), miss(3));
    assert_eq!(shop.param_of("/shop", "LSCACHE_VARY_VALUE"), "+ismobile+webp");
    assert_eq!(shop.seen("/shop", MOBILE), miss(4));
    for (fields, run) in [("", 1), (WEBP, 2), (MOBILE, 4)] {
        assert_eq!(shop.seen("/shop", fields), hit(run), "{fields}");
    }
    assert_eq!(shop.seen("/shop", "User-Agent: New/77\r\n"), hit(2));
}

#[test]
fn a_login_cookie_varies_pages() {
    let shop = Shop::new();
    shop.app.say("/", PUBLIC);
    assert_eq!(shop.seen("/", ""), miss(1));
    assert_eq!(shop.seen("/", "Cookie: login_mark=a\r\n"), miss(2));
    assert_eq!(shop.seen("/", "Cookie: login_mark=b\r\n"), miss(3));
    assert_eq!(shop.seen("/", "Cookie: post_pass=b\r\n"), miss(4));
    assert_eq!(shop.seen("/", "Cookie: login_mark=a; other=1\r\n"), hit(2));
    assert_eq!(shop.seen("/", "Cookie: other=1\r\n"), hit(1));
}

#[test]
fn arguments_that_are_dropped_make_no_other_page() {
    let shop = Shop::new();
    shop.app.say("/shop?campaign=1&a=1", PUBLIC);
    assert_eq!(shop.seen("/shop?campaign=1&a=1", ""), miss(1));
    assert_eq!(shop.param_of("/shop?campaign=1&a=1", "QUERY_STRING"), "campaign=1&a=1");
    for query in ["a=1", "campaign=2&a=1", "a=1&ref_x=9&ref_=1"] {
        assert_eq!(shop.seen(&format!("/shop?{query}"), ""), hit(1), "{query}");
    }
    for query in ["a=2", "a=1&campaigns=1"] {
        shop.app.say(&format!("/shop?{query}"), PUBLIC);
        assert_eq!(shop.seen(&format!("/shop?{query}"), ""), miss(1), "{query}");
    }
    // A script without a front controller, and a directory that knows better.
    fs::create_dir(shop.server.www("deep")).unwrap();
    fs::write(shop.server.www("deep/x.php"), "<?php").unwrap();
    shop.app.say("/deep/x.php?campaign=1", PUBLIC);
    assert_eq!(shop.seen("/deep/x.php?campaign=1", ""), miss(1));
    assert_eq!(shop.seen("/deep/x.php", ""), hit(1));
    shop.put("deep", "CacheKeyModify clear -qs:other\n");
    shop.app.say("/deep/x.php?campaign=2", PUBLIC);
    assert_eq!(shop.seen("/deep/x.php?campaign=2&other=1", "").1, "run 1");
    shop.app.say("/deep/x.php?campaign=3", PUBLIC);
    assert_eq!(shop.seen("/deep/x.php?campaign=3", ""), miss(1));
    assert_eq!(shop.seen("/deep/x.php?campaign=3&other=1", ""), hit(1));
}

#[test]
fn a_cookie_bypasses_the_cache() {
    let shop = Shop::new();
    shop.app.say("/shop", PUBLIC);
    assert_eq!(shop.seen("/shop", "Cookie: cart_has=3\r\n"), past(1));
    assert_eq!(shop.seen("/shop", ""), miss(2));
    assert_eq!(shop.seen("/shop", "Cookie: staff_in=1\r\n"), past(3));
    assert_eq!(shop.seen("/shop", ""), hit(2));
}

#[test]
fn a_user_agent_bypasses_the_cache() {
    let shop = Shop::new();
    shop.app.say("/shop", PUBLIC);
    assert_eq!(shop.seen("/shop", "User-Agent: Auditor/2\r\n"), past(1));
    assert_eq!(shop.seen("/shop", ""), miss(2));
    assert_eq!(shop.seen("/shop", "User-Agent: Auditor/2\r\n"), past(3));
}

#[test]
fn without_lookups_responses_are_stored_and_not_served() {
    let shop = Shop::with("page_cache auto;", &format!("CacheLookup off\n{FRONT}"));
    shop.app.say("/shop", PUBLIC);
    shop.seen("/shop", "");
    assert_eq!(shop.seen("/shop", "").1, "run 2");
    shop.put("", &format!("CacheLookup public on\n{FRONT}"));
    assert_eq!(shop.seen("/shop", ""), hit(2));
    // What the file says goes before what the configuration says.
    let shop = Shop::with("page_cache auto; page_cache_lookup off;", "CacheLookup on\n");
    shop.app.say("/", PUBLIC);
    assert_eq!(shop.seen("/", ""), miss(1));
    assert_eq!(shop.seen("/", ""), hit(1));
}

#[test]
fn a_rule_excludes_an_address_whatever_the_application_sends() {
    let rule = "RewriteEngine On\nRewriteCond %{REQUEST_URI} ^/account\n\
        RewriteRule .* - [E=Cache-Control:no-cache]\n";
    let shop = Shop::with("page_cache auto;", &format!("{rule}{FRONT}"));
    for path in ["/account/x", "/shop"] {
        shop.app.say(path, PUBLIC);
    }
    assert_eq!(shop.seen("/account/x", ""), past(1));
    assert_eq!(shop.seen("/account/x", ""), past(2));
    assert_eq!(shop.seen("/shop", ""), miss(1));
    assert_eq!(shop.seen("/shop", ""), hit(1));
    // Live: the rule is gone with the next request.
    shop.put("", FRONT);
    assert_eq!(shop.seen("/account/x", ""), miss(3));
    assert_eq!(shop.seen("/account/x", ""), hit(3));
}

#[test]
fn directives_decide_which_paths_are_cached() {
    let file = format!("CacheEnable public /open\nCacheDisable /open/not\n{FRONT}");
    let shop = Shop::with("page_cache auto;", &file);
    for path in ["/open/a", "/open/not/a", "/else"] {
        shop.app.say(path, "Content-Type: text/html");
    }
    shop.app.say("/open/not/b", PUBLIC);
    assert_eq!(shop.seen("/open/a", ""), miss(1));
    assert_eq!(shop.seen("/open/a", ""), hit(1));
    assert_eq!(shop.seen("/else", ""), past(1));
    assert_eq!(shop.seen("/else", ""), past(2));
    assert_eq!(shop.seen("/open/not/b", ""), past(1));
    assert_eq!(shop.seen("/open/not/b", ""), past(2));
}

#[test]
fn a_denied_client_gets_nothing_from_the_cache() {
    let shop = Shop::new();
    shop.app.say("/shop", PUBLIC);
    assert_eq!(shop.seen("/shop", ""), miss(1));
    shop.put("", &format!("SetEnvIf User-Agent Bad BAD\nDeny from env=BAD\n{BLOCK}{FRONT}"));
    assert_eq!(shop.ask("/shop", "User-Agent: Bad\r\n").status, 403);
    assert_eq!(shop.seen("/shop", "User-Agent: Good\r\n"), hit(1));
}

#[test]
fn the_rest_of_the_block_has_its_effect() {
    let shop = Shop::new();
    fs::write(shop.server.www("a.css"), "css").unwrap();
    fs::write(shop.server.www("a.woff2"), "font").unwrap();
    fs::write(shop.server.www("secret.log"), "secret").unwrap();
    assert_eq!(shop.ask("/secret.log", "").status, 403);
    assert_eq!(shop.ask("/a.css", "").header("cache-control"), Some("max-age=600"));
    let font = shop.ask("/a.woff2", "");
    assert_eq!(font.header("access-control-allow-origin"), Some("*"));
    // A POST drops nothing that is kept for its session.
    let session = "Cookie: lsc_private=aaaaaaaaaaaaaaaa\r\n";
    shop.app.say("/mine", "X-LiteSpeed-Cache-Control: private,max-age=60");
    shop.seen("/mine", session);
    let post = format!("POST /order HTTP/1.1\r\nHost: localhost\r\n{session}Content-Length: 0");
    assert_eq!(shop.server.connect().ask(&post).status, 200);
    assert_eq!(shop.seen("/mine", session), ("hit,private".to_owned(), "run 1".to_owned()));
    // Variables for the cache are no variables for the application.
    assert_eq!(shop.param_of("/mine", "Cache_Control"), "");
    assert_eq!(shop.param_of("/mine", "REDIRECT_Cache_Control"), "");
    assert_eq!(shop.param_of("/mine", "X-LSCACHE"), "on,crawler,esi,combine");
}

#[test]
fn directives_that_mean_nothing_are_refused_with_their_line() {
    let rows = [
        ("CacheLookup perhaps", "CacheLookup must be On or Off"),
        ("CacheLookup shared on", "'shared' is neither public nor private"),
        ("CacheEnable public shop", "CacheEnable takes a path with a slash"),
        ("CacheMaxExpire soon", "CacheMaxExpire requires a number of seconds"),
        ("RewriteRule .* - [E=Cache-Control:private,maxage=3]", "unknown flag 'maxage'"),
        ("RewriteRule .* - [E=other:private,max-age=3]", "unknown flag 'max-age'"),
        ("CacheKeyModify +qs:a", "CacheKeyModify: '+qs:a' is not known"),
        ("CacheEngine perhaps", "CacheEngine must be On or Off"),
        ("LiteMage", "LiteMage takes one argument"),
    ];
    for (line, why) in rows {
        let shop = Shop::with("page_cache auto;", &format!("\n{line}\n"));
        assert_eq!(shop.ask("/", "").status, 500, "{line}");
        let log = shop.server.error_log();
        assert!(log.contains("/.htaccess:2: ") && log.contains(why), "{line}: {log}");
    }
}

#[test]
fn litemage_gets_its_environment_variable() {
    let shop = Shop::with("page_cache auto;", "<IfModule LiteSpeed>\nLiteMage on\n</IfModule>\n");
    shop.ask("/", "");
    assert_eq!(shop.param_of("/", "X-LITEMAGE"), "1");
}

#[test]
fn vary_rules_of_the_configuration_and_of_the_file_both_count() {
    let rule = "RewriteEngine On\nRewriteCond %{HTTP_ACCEPT} image/webp\n\
        RewriteRule .* - [E=Cache-Control:vary=+webp]\n";
    let block = "page_cache auto; page_cache_vary value=$arg_skin; page_cache_drop_query skin;";
    let shop = Shop::with(block, &format!("{rule}{FRONT}"));
    let mut run = 0;
    for path in ["/shop?skin=dark", "/shop?skin=light"] {
        shop.app.say(path, PUBLIC);
        for fields in ["", WEBP] {
            run = 1 + run % 2;
            assert_eq!(shop.seen(path, fields), miss(run), "{path} {fields}");
        }
    }
    for path in ["/shop?skin=dark", "/shop?skin=light"] {
        assert_eq!(shop.seen(path, ""), hit(1), "{path}");
        assert_eq!(shop.seen(path, WEBP), hit(2), "{path}");
    }
}

#[test]
fn words_of_cache_control_need_no_quotes() {
    let rules = [
        "[E=cache-control:private,max-age=300]",
        "[E=Cache-Control:private,max-age=300,E=x:1]",
        "[NC,E=cache-ctrl:no-vary,private,max-age=300,L]",
    ];
    for flags in rules {
        let rule = format!("RewriteEngine on\nRewriteRule .* - {flags}\n");
        let shop = Shop::with("page_cache auto;", &format!("{rule}{FRONT}"));
        fs::write(shop.server.www("a.php"), "<?php").unwrap();
        shop.app.say("/a.php", "Content-Type: text/html");
        let session = |name| format!("Cookie: PHPSESSID={name}aaaaaaaaaaaaaaaa\r\n");
        assert_eq!(shop.seen("/a.php", &session("a")), miss(1), "{flags}");
        let own = ("hit,private".to_owned(), "run 1".to_owned());
        assert_eq!(shop.seen("/a.php", &session("a")), own, "{flags}");
        assert_eq!(shop.seen("/a.php", &session("b")), miss(2), "{flags}");
    }
    let rule =
        "RewriteEngine on\nRewriteRule .* - [E=Cache-Vary:one,two,E=cache-key-mod:-qs:a,-qs:b]\n";
    let shop = Shop::with("page_cache auto;", &format!("{rule}{FRONT}"));
    shop.app.say("/?a=1&b=1", PUBLIC);
    shop.app.say("/?b=2", PUBLIC);
    shop.app.say("/", PUBLIC);
    assert_eq!(shop.seen("/?a=1&b=1", ""), miss(1));
    assert_eq!(shop.seen("/?b=2", ""), hit(1));
    assert_eq!(shop.seen("/", "Cookie: two=1\r\n"), miss(1));
    assert_eq!(shop.seen("/", "Cookie: one=1\r\n"), miss(2));
}

#[test]
fn directives_of_litespeeds_server_are_known_and_what_restricts_counts() {
    let unused = [
        "CacheRoot /srv/cache",
        "CacheEngine on esi crawler",
        "CacheIgnoreCacheControl On",
        "CacheStoreNoStore On",
        "CacheStorePrivate On",
        "CacheDefaultExpire 60",
    ];
    for line in unused {
        let file = format!("<IfModule LiteSpeed>\n{line}\n</IfModule>\n");
        let shop = Shop::with("page_cache auto;", &file);
        shop.app.say("/", "Cache-Control: private, no-store");
        for run in 1..4 {
            assert_eq!(shop.seen("/", ""), past(run), "{line}");
        }
        let log = shop.server.error_log();
        let name = line.split(' ').next().unwrap();
        let told = format!("/.htaccess:2: {name} has no effect in this place");
        assert_eq!(log.matches(&told).count(), 1, "{line}: {log}");
    }
    let off = [
        "CacheEngine off",
        "CacheDisable public",
        "CacheDisable /",
        "CacheMaxExpire 0\nCacheStaleAge 0",
    ];
    for line in off {
        let shop = Shop::with("page_cache auto;", &format!("{line}\n"));
        shop.app.say("/", PUBLIC);
        for run in 1..4 {
            assert_eq!(shop.seen("/", "").1, format!("run {run}"), "{line}");
        }
    }
    let shop = Shop::with("page_cache auto;", "CacheEnable public\nCacheMaxExpire 600\n");
    shop.app.say("/", "Content-Type: text/html");
    assert_eq!(shop.seen("/", ""), miss(1));
    assert_eq!(shop.seen("/", ""), hit(1));
}

#[test]
fn a_file_shortens_lifetimes_and_lengthens_none() {
    let shop = Shop::with("page_cache auto;", "CacheMaxExpire 1\nCacheStaleAge 0\n");
    shop.app.say("/", PUBLIC);
    assert_eq!(shop.seen("/", ""), miss(1));
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert_eq!(shop.seen("/", ""), miss(2));
    let shop = Shop::with(
        "page_cache auto; page_cache_max_ttl 1s; page_cache_stale 0;",
        "CacheMaxExpire 600\nCacheStaleAge 600\n",
    );
    shop.app.say("/", PUBLIC);
    assert_eq!(shop.seen("/", ""), miss(1));
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert_eq!(shop.seen("/", ""), miss(2));
}
