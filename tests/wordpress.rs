//! WordPress in a real browser, installed and used like a person would, with the nginx
//! configuration of WordPress's handbook and without any. `tests/wordpress.py` is the person.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bolide_testkit::certs::key_hash;
use bolide_testkit::ports::TestPorts;
use bolide_testkit::{
    Curl, CurlReply, MariaDb, Proto, TestPhp, TestServer, WordPress, run, tool, tools, wait_until,
};

use crate::BOLIDE;

/// MariaDB, php-fpm and WordPress, without a web server.
pub(crate) struct Site {
    pub(crate) wordpress: WordPress,
    pub(crate) php: TestPhp,

    pub(crate) db: MariaDb,
}

impl Site {
    pub(crate) fn new(children: u32) -> Self {
        let db = MariaDb::start();
        let wordpress = WordPress::new(&db);
        let plugin = wordpress.dir().join("wp-content/plugins/writes-later.php");
        fs::write(plugin, PLUGIN).unwrap();
        Self { wordpress, php: TestPhp::start(children), db }
    }

    /// The handbook's configuration: one server of the upstream does not exist, as in many copies.
    pub(crate) fn handbook(&self) -> String {
        HANDBOOK
            .replace("@PHP@", &self.php.address())
            .replace("@NGINX@", tools::tools_dir().join("sid/etc/nginx").to_str().unwrap())
            .replace("@ROOT@", self.wordpress.dir().to_str().unwrap())
    }
}

/// Publishes a post from wp-cron, soon after its activation. WordPress keeps all events in one
/// option, which parallel requests overwrite for one another: an event that got lost that way is
/// scheduled again by the next visit.
const PLUGIN: &str = r"<?php
/* Plugin Name: Writes later */
add_action('init', function () {
    if (!get_option('written_later') && !wp_next_scheduled('write_later')) {
        wp_schedule_single_event(time() + 1, 'write_later');
    }
});
add_action('write_later', function () {
    update_option('written_later', 'yes');
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

/// The directory for screenshots, below Cargo's own directory for test output.
fn pictures(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wordpress").join(name)
}

/// The address of a site, whatever serves it.
struct Place {
    port: u16,
    cert: PathBuf,
    /// The status of hidden files.
    hidden: u16,
}

impl Place {
    fn of(server: &TestServer) -> Self {
        let cert = server.home().dir().join("cert.pem");
        Self { port: server.https().port(), cert, hidden: 403 }
    }

    fn fetch(&self, proto: Proto, path: &str) -> CurlReply {
        let url = format!("https://localhost:{}{path}", self.port);
        Curl::new(proto).trusting(&self.cert).get(&url)
    }
}

/// Runs the person of `tests/wordpress.py` on the site, by HTTP/3, or by HTTP/2 as the browsers of
/// `wordpress_cache` do.
fn use_it(place: &Place, name: &str) {
    let by_h2 = std::env::var("BOLIDE_WORDPRESS_BY").is_ok_and(|protocol| protocol == "h2");
    let base = format!("https://localhost:{}", place.port);
    let key = key_hash(&place.cert);
    let mut args = vec![
        format!("--base={base}"),
        format!("--chromium={}", tool("chromium").display()),
        format!("--shots={}", pictures(name).display()),
        format!("--flag=--ignore-certificate-errors-spki-list={key}"),
    ];
    if by_h2 {
        args.extend(["--protocol=h2".to_owned(), "--flag=--disable-quic".to_owned()]);
    } else {
        let origin = base.trim_start_matches("https://");
        args.extend(["--protocol=h3".to_owned(), "--flag=--enable-quic".to_owned()]);
        args.push(format!("--flag=--origin-to-force-quic-on={origin}"));
    }
    let done = tools::python(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wordpress.py"), args);
    assert_eq!(done.code, 0, "{}\n{}", done.text(), done.stderr);
}

/// Requests an installed site with curl, as a stranger.
fn look_at_it(place: &Place, root: &Path) {
    fs::write(root.join("wp-content/uploads/evil.php"), "<?php echo 1;").unwrap();
    fs::write(root.join(".env"), "SECRET=1").unwrap();
    let mut failures = Vec::new();
    let hidden = place.hidden;
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
        ("/wp-includes/js/jquery/jquery.min.js", 200, "", "jQuery"),
        ("/wp-includes/css/buttons.css", 200, "text/css", ".button"),
        ("/robots.txt", 200, "text/plain; charset=utf-8", "User-agent"),
        ("/no/such/page", 404, "text/html; charset=UTF-8", "could not be found"),
        ("/no/such.php", 404, "text/html", "404"),
        ("/index.php/x.php", 404, "text/html", "404"),
        ("/wp-includes/css/buttons.css/x.php", 404, "text/html", "404"),
        ("/wp-content/uploads/evil.php", hidden, "text/html", ""),
        ("/.env", hidden, "text/html", ""),
        ("/.htaccess", hidden, "text/html", ""),
    ];
    for (path, status, kind, text) in rows {
        for proto in Proto::TLS {
            let reply = place.fetch(proto, path);
            let seen = (reply.status, reply.header("content-type").unwrap_or_default());
            let right = seen.0 == status && (kind.is_empty() || seen.1 == kind);
            if !right || !reply.text().contains(text) || reply.text().contains("SECRET") {
                let start: String = reply.text().chars().take(200).collect();
                failures.push(format!("{proto:?} {path}: {seen:?} {start}"));
            }
        }
    }
    crate::report(rows.len() * 3, &failures);
}

fn with_the_handbook(name: &str) {
    let site = Site::new(4);
    let server = TestServer::with(BOLIDE, &site.handbook());
    let place = Place::of(&server);
    use_it(&place, name);
    look_at_it(&place, site.wordpress.dir());
    let reply = place.fetch(Proto::H2, "/wp-includes/css/buttons.css");
    assert_eq!(reply.header("cache-control"), Some("max-age=315360000"));
}

#[test]
fn wordpress_works_by_h3_with_the_configuration_of_its_handbook() {
    with_the_handbook("handbook");
}

/// `bolide serve --php` in its own directory.
struct Served {
    child: Child,
    home: PathBuf,
    ports: TestPorts,
}

impl Served {
    fn start(root: &Path) -> Self {
        let (home, ports) = (bolide_testkit::site::temp_dir(), TestPorts::claim());
        let log = fs::File::create(home.join("stderr")).unwrap();
        let child = Command::new(BOLIDE)
            .args(["serve", "--php", "--http", &ports.port(0).to_string()])
            .args(["--https", &ports.port(1).to_string()])
            .arg(root)
            .env("HOME", &home)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_RUNTIME_DIR", &home)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let served = Self { child, home, ports };
        let up = || std::net::TcpStream::connect(("127.0.0.1", served.ports.port(1))).is_ok();
        wait_until("the server to listen", up);
        served
    }

    fn place(&self) -> Place {
        let found = run("find", [self.home.to_str().unwrap(), "-name", "localhost.pem"]).text();
        Place { port: self.ports.port(1), cert: found.trim().into(), hidden: 404 }
    }

    fn stop(&mut self) {
        let _quiet = run("kill", [&self.child.id().to_string()]);
        wait_until("the server to end", || self.child.try_wait().unwrap().is_some());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _quiet = run("kill", [&self.child.id().to_string()]);
            let _ended = self.child.wait();
        }
        if std::thread::panicking() {
            let log = fs::read_to_string(self.home.join("stderr")).unwrap_or_default();
            let text = format!("--- bolide serve\n{log}\n---\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn without_configuration(name: &str) {
    let db = MariaDb::start();
    let wordpress = WordPress::new(&db);
    let root = wordpress.dir();
    fs::write(root.join("wp-content/plugins/writes-later.php"), PLUGIN).unwrap();
    // Started by root, PHP runs as Debian's user for web servers.
    let _only_root_may = run("chown", ["-R", "www-data", root.to_str().unwrap()]);
    let mut served = Served::start(root);
    let place = served.place();
    use_it(&place, name);
    look_at_it(&place, root);
    served.stop();
}

#[test]
fn wordpress_works_by_h3_without_any_configuration() {
    without_configuration("serve");
}
