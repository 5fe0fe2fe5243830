//! Random sites: servers, access rules, error pages, rewrites, internal locations, caches. Every
//! location with the application passes its own name (`WAY`) and its cache (`CACHE`); the
//! application knows nothing else of the configuration.
//!
//! No zone has a key that mixes audiences, because nginx would mix them, too.

use std::fmt::Write as _;

use super::Dice;

/// Session cookies by default.
pub(super) const SESSIONS: [&str; 5] = [
    "PHPSESSID",
    "wordpress_logged_in_5f2a",
    "frontend",
    "lsc_private",
    "wp_woocommerce_session_1",
];

/// The parameters of every FastCGI location.
const PARAMS: &str = "fastcgi_param REQUEST_METHOD $request_method; \
    fastcgi_param REQUEST_URI $request_uri; fastcgi_param DOCUMENT_URI $document_uri; \
    fastcgi_param QUERY_STRING $query_string; fastcgi_param SERVER_NAME $server_name; \
    fastcgi_param CONTENT_LENGTH $content_length;";

/// Directives that make a location refuse.
const ACCESS: [&str; 14] = [
    "auth_request /auth;",
    "auth_request /auth;",
    "auth_basic members; auth_basic_user_file @ROOT@/htpasswd;",
    "allow 10.0.0.0/8; deny all;",
    "satisfy any; allow 10.0.0.0/8; deny all; auth_request /auth;",
    "satisfy any; allow 10.0.0.0/8; deny all; \
     auth_basic members; auth_basic_user_file @ROOT@/htpasswd;",
    "satisfy all; allow 10.0.0.0/8; deny all; auth_request /auth;",
    "if ($cookie_member = \"\") { return 403; }",
    "if ($http_x_dev = \"\") { return 404; }",
    "if ($http_accept_language = de) { return 401; }",
    "limit_req zone=burst;",
    "limit_except GET { deny all; }",
    "deny all;",
    "",
];

/// The targets of error pages.
const ERRORS: [&str; 12] = [
    "= @login",
    "@login",
    "= @login",
    "=200 @login",
    "/err/page",
    "=200 /err/page",
    "= /err/page",
    "/pub/p0",
    "@static",
    "@again",
    "http://other.test/login",
    "=302 /pub/p1",
];

/// A random site.
#[derive(Clone, Debug)]
pub struct AudienceSite {
    /// The `http` block. `@APP@` is a FastCGI application, `@WEB@` an HTTP application, `@PORT@`
    /// the port, `@ROOT@` a directory with `htpasswd`, `@SHELF@` a cache directory.
    pub http: String,
    /// The same with another access rule.
    pub reloaded: String,
    /// Whether the cache survives the server.
    pub has_tree: bool,
    /// Whether requests are counted.
    pub counts: bool,
    /// Addresses to request.
    pub pages: Vec<String>,
    /// Hosts with a server block.
    pub hosts: Vec<String>,
    /// Login cookies of the application.
    pub(super) logins: Vec<String>,
    /// Whether the application trusts `X-Forwarded-Host`.
    pub(super) trusts_forwarded_host: bool,
    /// The seed of its pages' properties.
    pub(super) nature: u64,
}

/// A server block under construction.
struct Draft<'a> {
    dice: &'a mut Dice,
    name: &'static str,
    /// The cache mode that its locations inherit.
    mode: &'static str,
    free_zones: Vec<&'static str>,
    text: String,
    pages: Vec<String>,
}

impl AudienceSite {
    /// A random site.
    #[must_use]
    pub fn any(dice: &mut Dice) -> Self {
        let logins = [dice.below(5) as usize, dice.below(5) as usize];
        let logins = &logins[..1 + dice.below(2) as usize];
        let logins = logins.iter().map(|login| SESSIONS[*login].to_owned()).collect();
        let has_tree = dice.one_in(10);
        let tree = if has_tree { "page_cache_path @PAGES@;" } else { "" };
        let mut http = format!(
            "{tree} fastcgi_cache_path @ZONES@/f keys_zone=f:1m; \
             proxy_cache_path @ZONES@/p keys_zone=p:1m; \
             limit_req_zone $http_x_burst zone=burst:1m rate=3r/m;\n"
        );
        let (mut pages, mut hosts) = (Vec::new(), vec!["a.test".to_owned()]);
        let mut zones = vec!["f", "p"];
        server(dice, "a.test", &mut zones, &mut http, &mut pages);
        if dice.one_in(3) {
            let name = *dice.pick(&["b.test", "*.w.test"]);
            server(dice, name, &mut zones, &mut http, &mut pages);
            hosts.push(name.replace('*', "x"));
        }
        // An access rule changes: one that denied or allowed every client no longer does.
        let reloaded = match dice.below(3) {
            0 => http.replace("deny all;", "allow all;"),
            1 => http.replace("auth_request /auth;", "deny all;"),
            _ => http.clone(),
        };
        Self {
            counts: http.contains("zone=burst;"),
            http,
            reloaded,
            has_tree,
            pages,
            hosts,
            logins,
            trusts_forwarded_host: dice.one_in(3),
            nature: dice.below(u64::MAX),
        }
    }
}

fn server(
    dice: &mut Dice,
    name: &'static str,
    zones: &mut Vec<&'static str>,
    http: &mut String,
    pages: &mut Vec<String>,
) {
    let mode = *dice.pick(&["auto", "auto", "auto", "on", "off"]);
    let mut draft = Draft {
        dice,
        name,
        mode,
        free_zones: std::mem::take(zones),
        text: String::new(),
        pages: std::mem::take(pages),
    };
    draft.server_words();
    draft.locations();
    let _ = write!(
        http,
        "server {{ listen @PORT@; server_name {name}{}; root @ROOT@;\n\
         set_real_ip_from 192.0.2.0/24; set_real_ip_from 127.0.0.1; \
         real_ip_header X-Real-IP;\n{}}}\n",
        if name == "a.test" { " www.a.test" } else { "" },
        draft.text
    );
    (*zones, *pages) = (draft.free_zones, draft.pages);
}

impl Draft<'_> {
    fn server_words(&mut self) {
        let mode = self.mode;
        let _ = write!(self.text, "page_cache {mode}; page_cache_purge_allow all; ");
        if mode != "off" {
            let preset = mode == "auto" && self.dice.one_in(8);
            let words: &[(u64, &str)] = &[
                (6, "page_cache_vary cookie=role;"),
                (8, "page_cache_vary header=X-Dev;"),
                (8, "page_cache_vary value=$http_x_dev;"),
                (8, "page_cache_drop_query tracking;"),
                (10, "page_cache_private off;"),
                (8, "page_cache_default_ttl 3s;"),
                (8, "page_cache_stale 30s;"),
                (8, "page_cache_valid 403 404 1m;"),
                (10, "page_cache_respect_request on;"),
                (10, "page_cache_esi on;"),
                (10, "page_cache_autoflush off;"),
            ];
            for (n, word) in words {
                if self.dice.one_in(*n) {
                    let _ = write!(self.text, "{word} ");
                }
            }
            if preset {
                self.text.push_str("page_cache_preset wordpress; ");
            }
        }
        if self.dice.one_in(3) {
            self.text.push_str("gzip on; gzip_min_length 1; gzip_types text/plain; ");
        }
        if self.dice.one_in(6) {
            self.text.push_str("fastcgi_intercept_errors on; proxy_intercept_errors on; ");
        }
        if self.dice.one_in(8) {
            self.text.push_str("recursive_error_pages on; ");
        }
        if self.dice.one_in(2) {
            let errors = self.errors();
            self.text.push_str(&errors);
        }
        self.text.push('\n');
    }

    fn errors(&mut self) -> String {
        let codes = *self.dice.pick(&["401 403 404 429 503", "401", "401 403", "403 404", "404"]);
        format!("error_page {codes} {}; ", self.dice.pick(&ERRORS))
    }

    fn access(&mut self) -> String {
        let mut text = (*self.dice.pick(&ACCESS)).to_owned();
        if text.contains("limit_req") && self.dice.one_in(2) {
            text.push_str(" limit_req_status 429;");
        }
        if self.dice.one_in(2) {
            text.push(' ');
            text.push_str(&self.errors());
        }
        text
    }

    /// The directives that pass requests to the application with the name `way`.
    fn app(&mut self, way: &str) -> String {
        let way = format!("{}:{way}", self.name.replace("*.", ""));
        let is_web = self.dice.one_in(4);
        let (own, zone) = if is_web { ("proxy", "p") } else { ("fastcgi", "f") };
        let mut host = *self.dice.pick(&[
            "$http_host",
            "$host",
            "$host$is_request_port$request_port",
            "$host$is_request_port$request_port",
        ]);
        let (cache, words) = match self.dice.below(10) {
            0 => ("page", "page_cache auto;".to_owned()),
            1 => ("page", "page_cache on;".to_owned()),
            2 => ("off", "page_cache off;".to_owned()),
            3 | 4 if self.free_zones.contains(&zone) => {
                // A zone belongs to one location, whose name is thus part of every key.
                self.free_zones.retain(|free| *free != zone);
                host = "$host";
                let key = *self.dice.pick(&[
                    "$scheme$request_method$host$request_uri",
                    "$scheme://$host$request_uri",
                ]);
                let words = format!(
                    "{own}_cache {zone}; {own}_cache_key {key}$uri; {own}_cache_valid 200 1m; \
                     {own}_cache_valid 404 10s;"
                );
                ("zone", words)
            }
            _ if self.mode == "off" => ("off", String::new()),
            _ => ("page", String::new()),
        };
        if is_web {
            return format!(
                "proxy_pass http://@WEB@; proxy_set_header Host {host}; \
                 proxy_set_header X-Way {way}; proxy_set_header X-Cache {cache}; \
                 proxy_set_header X-Server $server_name; \
                 proxy_set_header X-Address $request_uri; {words}"
            );
        }
        format!(
            "fastcgi_pass @APP@; {PARAMS} fastcgi_param HTTP_HOST {host}; \
             fastcgi_param WAY {way}; fastcgi_param CACHE {cache}; {words}"
        )
    }

    fn location(&mut self, name: &str, words: &str) {
        let _ = writeln!(self.text, "location {name} {{ {words} }}");
    }

    fn locations(&mut self) {
        let public = self.app("pub");
        self.location("/pub/", &public);
        let auth = self.app("auth");
        let internal = if self.dice.one_in(2) { "internal;" } else { "" };
        self.location("= /auth", &format!("{internal} {auth}"));
        let login = match self.dice.below(6) {
            0 => "return 200 \"log in\";".to_owned(),
            1 => "rewrite ^ /pub/p2 last;".to_owned(),
            _ => self.app("login"),
        };
        self.location("@login", &login);
        self.location("@static", "return 403 \"no\";");
        let again = match self.dice.below(3) {
            0 => "try_files /none @login;".to_owned(),
            1 => format!("rewrite ^/(.*)$ /pub/$1 break; {}", self.app("again")),
            _ => self.app("again"),
        };
        self.location("@again", &again);
        let internal = if self.dice.one_in(2) { "internal;" } else { "" };
        let page = self.app("err");
        self.location("/err/", &format!("{internal} {page}"));
        let protected = self.app("protected");
        self.location("/protected/", &format!("internal; {protected}"));
        self.wish("/pub/");
        let (members, app) = (self.access(), self.app("members"));
        self.location("/members/", &format!("{members} {app}"));
        self.wish("/members/");
        if self.dice.one_in(2) {
            let (access, app) = (self.some_access(), self.app("acc"));
            self.location("/acc/", &format!("{access} {app}"));
            self.wish("/acc/");
        }
        if self.dice.one_in(2) {
            self.rewriting();
        }
        if self.dice.one_in(3) {
            self.trying();
        }
    }

    fn some_access(&mut self) -> String {
        if self.dice.one_in(4) { self.access() } else { String::new() }
    }

    fn rewriting(&mut self) {
        let app = self.app("rw");
        let test = *self.dice.pick(&[
            "$http_x_dev",
            "$cookie_role = admin",
            "$http_accept_language = de",
            "$cookie_member",
        ]);
        let to = *self.dice.pick(&["protected", "pub", "members", "err"]);
        let words = match self.dice.below(6) {
            0 | 1 => format!("if ({test}) {{ rewrite ^/rw/(.*)$ /{to}/$1 last; }} {app}"),
            2 => format!("rewrite ^/rw/(.*)$ /{to}/$1 last;"),
            3 => format!("if ({test}) {{ rewrite ^/rw/(.*)$ /{to}/$1 break; }} {app}"),
            4 => format!("if ({test}) {{ rewrite ^/rw/(.*)$ /{to}/$1 redirect; }} {app}"),
            _ => format!(
                "if ({test}) {{ rewrite ^/rw/(.*)$ /{to}/$1 last; }} \
                 rewrite ^/rw/(.*)$ /pub/$1 last;"
            ),
        };
        let access = self.some_access();
        self.location("/rw/", &format!("{access} {words}"));
        self.wish("/rw/");
    }

    fn trying(&mut self) {
        let files = *self.dice.pick(&[
            "try_files $uri @login;",
            "try_files $uri /index.php?q=$uri;",
            "try_files $uri @again;",
            "try_files $uri /members/p0;",
            "try_files $uri =403;",
        ]);
        let access = self.some_access();
        self.location("/try/", &format!("{access} {files}"));
        let app = self.app("index");
        self.location("= /index.php", &app);
        self.wish("/try/");
    }

    fn wish(&mut self, prefix: &str) {
        self.pages.push(prefix.to_owned());
    }
}
