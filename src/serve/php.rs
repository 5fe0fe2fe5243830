//! `bolide serve --php`: the configuration of a directory with PHP, meant to be read, printed and
//! extended.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::ServePorts;
use crate::invocation::ServeCaching;

/// Where frameworks keep their public files, below the project's directory.
const PUBLIC: [&str; 3] = ["public", "web", "pub"];

/// Private files that are often left in a document root: the reason, and an expression on the path.
/// docs/php.md has the same list. A path may contain line feeds: `.` matches one only with `(?s)`;
/// that `$` matches before a last one keeps more private.
const PRIVATE: [(&str, &str); 6] = [
    (
        "Hidden files: .git, .env, .user.ini, .htaccess. /.well-known/ is meant to be seen.",
        super::HIDDEN,
    ),
    (
        "Copies that editors and people leave, of wp-config.php above all.",
        r"(?s)~$|\.php[^/]+$|\.(?:bak|old|orig|save|sw[op]|dist)$",
    ),
    ("Scripts whose name is not spelled so that they are run.", r"(?s)\.(?!(?-i:php))php(?:/|$)"),
    (
        "Dumps, keys, logs, settings, and sources that are not run.",
        r"(?s)\.(?:sql(?:\.\w+)?|sqlite3?|db|pem|key|log|ini|conf|ya?ml|inc|phtml|phar|twig|sh)$",
    ),
    (
        "What tools read.",
        concat!(
            r"(?s)/(?:(?:composer|package(?:-lock)?|auth)\.json|[^/]*\.lock|web\.config|",
            r"Dockerfile|artisan)$",
        ),
    ),
    (
        "Nothing is run that visitors may have uploaded, or that a library brings along.",
        r"(?s)/(?:uploads|sites/[^/]+/files|storage|media|vendor|node_modules)/.*\.php(?:/|$)",
    ),
];

/// The document root: the public directory of a framework's project, or the given one.
pub(super) fn document_root(given: &Path) -> PathBuf {
    let below = PUBLIC.iter().map(|name| given.join(name));
    below.into_iter().find(|path| path.join("index.php").is_file()).unwrap_or_else(|| given.into())
}

/// What a WordPress site without a caching plugin is kept by, as
/// `conf/snippets/wordpress-cache.conf` has it.
const WORDPRESS: &str = "        # Pages of visitors who are not logged in live for a minute.
        # With the LiteSpeed Cache plugin, \"page_cache auto;\" is all there is to say instead.
        page_cache_preset wordpress ttl=60s;
        page_cache_stale 60s error=1d;

";
/// What any other application is kept by.
const AUTO: &str =
    "        # What the scripts say may be kept, by LSCache's fields or those of HTTP.
        page_cache auto;

";

/// The lines that cache, for what the directory holds.
fn caching(root: &Path, caching: ServeCaching) -> &'static str {
    let is_wordpress = root.join("wp-includes/version.php").is_file();
    let has_plugin = root.join("wp-content/plugins/litespeed-cache").is_dir();
    match caching {
        ServeCaching::Off => "",
        ServeCaching::PageCache if is_wordpress && !has_plugin => WORDPRESS,
        ServeCaching::PageCache => AUTO,
    }
}

/// `.htaccess` files, as applications bring them along.
const RULES: &str =
    "        # The rules that the application and its plugins write; a change counts at once.
        apache_htaccess on;
";

/// A path as an argument of a directive.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The configuration. `state` has the certificate, and directories for large bodies.
pub(super) fn configuration(
    root: &Path,
    ports: &ServePorts,
    (account, kept): (Option<&str>, ServeCaching),
    state: &Path,
) -> String {
    let user = account.map(|name| format!("user {name};\n")).unwrap_or_default();
    let types = include_str!("../../conf/mime.types").lines().fold(String::new(), indented);
    let params = include_str!("../../conf/fastcgi.conf")
        .lines()
        .filter(|line| line.starts_with("fastcgi_param"))
        .fold(String::new(), |text, line| indented(text, &format!("        {line}")));
    let private = PRIVATE.iter().fold(String::new(), |mut text, (why, expression)| {
        let _ = write!(
            text,
            "        # {why}\n        location ~* \"{expression}\" {{ return 404; }}\n"
        );
        text
    });
    let listens = ports.directives().join("\n        ");
    format!(
        "# A directory with PHP, as `bolide serve --php` serves it.\n\
         {user}worker_processes auto;\n\
         error_log stderr warn;\n\
         pid {pid};\n\
         \n\
         events {{\n    worker_connections 16384;\n}}\n\
         \n\
         http {{\n\
         \x20   # PHP runs with the server: as many children as cores and memory allow.\n\
         \x20   php_pool site {{\n\
         \x20       children auto;\n\
         \x20       memory 128m;\n\
         \x20       max_requests 1000;\n\
         \x20       request_timeout 120s;\n\
         \x20       queue 128 timeout=30s;\n\
         \x20       ini upload_max_filesize 64M;\n\
         \x20       ini post_max_size 64M;\n\
         \x20   }}\n\
         \n\
         \x20   default_type application/octet-stream;\n\
         \x20   access_log off;\n\
         \x20   sendfile on;\n\
         \x20   client_max_body_size 64m;\n\
         \x20   client_body_temp_path {bodies};\n\
         \x20   fastcgi_temp_path {answers};\n\
         \x20   gzip on;\n\
         \x20   gzip_vary on;\n\
         \x20   gzip_types text/css text/javascript application/javascript application/json\n\
         \x20              application/xml application/rss+xml image/svg+xml text/plain;\n\
         \x20   ssl_certificate {cert};\n\
         \x20   ssl_certificate_key {key};\n\
         \n\
         \x20   server {{\n\
         \x20       {listens}\n\
         \x20       http2 on;\n\
         \x20       server_name localhost;\n\
         \x20       root {root};\n\
         \x20       disable_symlinks if_not_owner from=$document_root;\n\
         \x20       index index.php index.html;\n\
         {RULES}\
         \n\
         {private}\
         \n\
         {cached}\
         \x20       # A file, a directory with an index, or else the application decides.\n\
         \x20       location / {{\n\
         \x20           try_files $uri $uri/ /index.php$is_args$args;\n\
         \x20       }}\n\
         \n\
         \x20       # Only what is there is run; the rest of the path is the script's PATH_INFO.\n\
         \x20       location ~ \"(?s)^(?<script>/(?:.*/)?[^/]+\\.php)(?<path_info>/.*)?\\z\" {{\n\
         \x20           try_files $script =404;\n\
         \x20           php_pass site;\n\
         \x20           fastcgi_buffer_size 32k;\n\
         \x20           fastcgi_buffers 16 16k;\n\
         \x20           fastcgi_read_timeout 130s;\n\
         {params}\
         \x20           fastcgi_param  PATH_INFO          $path_info;\n\
         \x20       }}\n\
         \x20   }}\n\
         \n\
         {types}\
         }}\n",
        pid = quoted(&state.join("bolide.pid")),
        cert = quoted(&state.join("localhost.pem")),
        key = quoted(&state.join("localhost.key")),
        root = quoted(root),
        bodies = quoted(&state.join("client_body")),
        answers = quoted(&state.join("fastcgi")),
        cached = caching(root, kept),
    )
}

/// Appends a line one step further in; an empty one stays empty.
fn indented(mut text: String, line: &str) -> String {
    if !line.is_empty() {
        text.push_str("    ");
        text.push_str(line);
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::{AUTO, WORDPRESS, caching};
    use crate::invocation::ServeCaching;

    #[test]
    fn wordpress_without_its_plugin_has_rules_and_all_others_speak_for_themselves() {
        let root = bolide_testkit::site::temp_dir();
        let snippet = include_str!("../../conf/snippets/wordpress-cache.conf");
        let is_in = |line: &str| snippet.lines().any(|known| known == line.trim());
        let directives = WORDPRESS.lines().filter(|line| line.trim().ends_with(';'));
        assert_eq!(directives.filter(|line| is_in(line)).count(), 2);
        assert_eq!(caching(&root, ServeCaching::PageCache), AUTO);
        bolide_testkit::site::write(&root.join("wp-includes/version.php"), b"<?php");
        assert_eq!(caching(&root, ServeCaching::PageCache), WORDPRESS);
        assert_eq!(caching(&root, ServeCaching::Off), "");
        let plugin = root.join("wp-content/plugins/litespeed-cache/litespeed-cache.php");
        bolide_testkit::site::write(&plugin, b"<?php");
        assert_eq!(caching(&root, ServeCaching::PageCache), AUTO);
    }
}
