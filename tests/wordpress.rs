//! Owns: WordPress in a real browser, installed and used as a person would, with the nginx
//! configuration of WordPress's handbook and with none at all. `tests/wordpress.py` is the person.

use std::path::PathBuf;

use testkit::certs::key_hash;
use testkit::{MariaDb, Php, Proto, Server, WordPress, tool, tools};

use crate::BOLIDE;

/// MariaDB, php-fpm and WordPress, without a web server.
pub(crate) struct Site {
    pub(crate) wordpress: WordPress,
    pub(crate) php: Php,
    /// Dropped last: php-fpm's children talk to it.
    _db: MariaDb,
}

impl Site {
    pub(crate) fn new(children: u32) -> Self {
        let db = MariaDb::start();
        let wordpress = WordPress::new(&db);
        let plugin = wordpress.dir().join("wp-content/plugins/writes-later.php");
        std::fs::write(plugin, PLUGIN).unwrap();
        Self { wordpress, php: Php::start(children), _db: db }
    }

    /// The handbook's configuration: one server of the upstream is not there, as in many copies.
    pub(crate) fn handbook(&self) -> String {
        HANDBOOK
            .replace("@PHP@", &self.php.address())
            .replace("@NGINX@", tools::tools_dir().join("sid/etc/nginx").to_str().unwrap())
            .replace("@ROOT@", self.wordpress.dir().to_str().unwrap())
    }
}

/// Writes a post from wp-cron, soon after it was switched on.
const PLUGIN: &str = r"<?php
/* Plugin Name: Writes later */
register_activation_hook(__FILE__, function () {
    wp_schedule_single_event(time() + 1, 'write_later');
});
add_action('write_later', function () {
    wp_insert_post(['post_title' => 'Written by wp-cron', 'post_status' => 'publish',
        'post_content' => 'It is later now.']);
});
";

const HANDBOOK: &str = r"
# Upstream to abstract backend connection(s) for php
upstream php {
    server @PHP@;
    server 127.0.0.1:@P9@ backup;
}
fastcgi_buffers 16 16k;
fastcgi_buffer_size 32k;
server {
    listen 127.0.0.1:@HTTP@;
    listen 127.0.0.1:@HTTPS@ ssl;
    listen 127.0.0.1:@HTTPS@ quic reuseport;
    http2 on;
    http3 on;
    ssl_certificate @CERT@;
    ssl_certificate_key @KEY@;
    server_name localhost;
    root @ROOT@;
    index index.php;
    client_max_body_size 64m;

    location = /favicon.ico {
        log_not_found off;
        access_log off;
    }
    location = /robots.txt {
        allow all;
        log_not_found off;
        access_log off;
        try_files $uri /index.php?$args;
    }
    # Deny all attempts to access hidden files such as .htaccess, .htpasswd, .DS_Store (Mac).
    location ~ /\. {
        deny all;
    }
    # Deny access to any files with a .php extension in the uploads directory
    location ~* /(?:uploads|files)/.*\.php$ {
        deny all;
    }
    location / {
        # This is cool because no php is touched for static content.
        try_files $uri $uri/ /index.php?$args;
    }
    location ~ \.php$ {
        #NOTE: You should have cgi.fix_pathinfo = 0; in php.ini
        try_files $uri =404;
        include @NGINX@/fastcgi_params;
        fastcgi_intercept_errors on;
        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        fastcgi_pass php;
    }
    location ~* \.(js|css|png|jpg|jpeg|gif|ico)$ {
        expires max;
        log_not_found off;
    }
}
";

/// Where pictures of the steps go: below Cargo's own directory for what tests leave.
fn pictures(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wordpress").join(name)
}

/// Lets the person of `tests/wordpress.py` use the site at the server's TLS port.
fn use_it(server: &Server, proto: Proto, name: &str) {
    let base = format!("https://localhost:{}", server.https().port());
    let key = key_hash(&server.home().dir().join("cert.pem"));
    let mut args = vec![
        format!("--base={base}"),
        format!("--chromium={}", tool("chromium").display()),
        format!("--shots={}", pictures(name).display()),
        format!("--flag=--ignore-certificate-errors-spki-list={key}"),
    ];
    if proto == Proto::H3 {
        let origin = base.trim_start_matches("https://");
        args.extend(["--protocol=h3".to_owned(), "--flag=--enable-quic".to_owned()]);
        args.push(format!("--flag=--origin-to-force-quic-on={origin}"));
    } else {
        args.extend(["--protocol=h2".to_owned(), "--flag=--disable-quic".to_owned()]);
    }
    let done = tools::python(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wordpress.py"), args);
    assert_eq!(done.code, 0, "{}\n{}", done.text(), done.stderr);
}

/// What a stranger with curl finds in an installed site.
fn look_at_it(server: &Server, site: &Site) {
    std::fs::write(site.wordpress.dir().join("wp-content/uploads/evil.php"), "<?php echo 1;")
        .unwrap();
    std::fs::write(site.wordpress.dir().join(".env"), "SECRET=1").unwrap();
    let mut failures = Vec::new();
    let rows = [
        ("/", 200, "text/html; charset=UTF-8", "Bolide"),
        ("/a-post-with-a-picture/", 200, "text/html; charset=UTF-8", "über Bolide"),
        ("/a-post-with-a-picture", 301, "text/html; charset=UTF-8", ""),
        ("/index.php", 301, "text/html; charset=UTF-8", ""),
        ("/feed/", 200, "application/rss+xml; charset=UTF-8", "<rss"),
        ("/wp-json/", 200, "application/json; charset=UTF-8", "\"namespaces\""),
        ("/wp-login.php", 200, "text/html; charset=UTF-8", "user_login"),
        ("/wp-admin/", 302, "text/html; charset=UTF-8", ""),
        ("/wp-admin", 301, "text/html", ""),
        ("/wp-includes/js/jquery/jquery.min.js", 200, "application/javascript", "jQuery"),
        ("/wp-includes/css/buttons.css", 200, "text/css", ".button"),
        ("/robots.txt", 200, "text/plain; charset=utf-8", "User-agent"),
        ("/no/such/page", 404, "text/html; charset=UTF-8", "could not be found"),
        ("/no/such.php", 404, "text/html", "404"),
        ("/index.php/x.php", 404, "text/html", "404"),
        ("/wp-includes/css/buttons.css/x.php", 404, "text/html", "404"),
        ("/wp-content/uploads/evil.php", 403, "text/html", "403"),
        ("/.env", 403, "text/html", "403"),
        ("/.htaccess", 403, "text/html", "403"),
        ("/wp-content/uploads/none.jpg", 404, "text/html", "404"),
    ];
    for (path, status, kind, text) in rows {
        for proto in Proto::TLS {
            let reply = server.fetch(proto, path);
            let seen = (reply.status, reply.header("content-type").unwrap_or_default());
            if seen != (status, kind) || !reply.text().contains(text) {
                let start: String = reply.text().chars().take(200).collect();
                failures.push(format!("{proto:?} {path}: {seen:?} {start}"));
            }
        }
    }
    crate::report(rows.len() * 3, &failures);
    let reply = server.fetch(Proto::H2, "/wp-includes/css/buttons.css");
    assert_eq!(reply.header("cache-control"), Some("max-age=315360000"));
}

fn with_the_handbook(proto: Proto, name: &str) {
    let site = Site::new(4);
    let server = Server::with(BOLIDE, &site.handbook());
    use_it(&server, proto, name);
    look_at_it(&server, &site);
}

#[test]
fn wordpress_works_by_h2_with_the_configuration_of_its_handbook() {
    with_the_handbook(Proto::H2, "handbook-h2");
}

#[test]
fn wordpress_works_by_h3_with_the_configuration_of_its_handbook() {
    with_the_handbook(Proto::H3, "handbook-h3");
}
