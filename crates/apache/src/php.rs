//! Programs: what a handler's name means, and what a program is told. What no server here can run
//! is refused, never sent as text.

use crate::expression::quoted_regex;
use crate::out::ConfText;
use crate::server::Server;
use crate::words::quoted;

/// Who runs a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// Who listens there.
    Fcgi(String),
    /// A pool of ours.
    Pool,
    /// Nothing that is there.
    Refused(String),
}

/// The runner that a handler's name means; none where it means no program.
pub(crate) fn runner(word: &str) -> Option<Runner> {
    let lower = word.to_ascii_lowercase();
    if lower.starts_with("expr=") || word.contains("%{") {
        return Some(Runner::Refused(format!("a handler {word}")));
    }
    if lower.starts_with("proxy:") {
        let to = &word["proxy:".len()..];
        return Some(match to.strip_prefix("unix:").and_then(|it| it.split_once('|')) {
            Some((path, url)) if url.starts_with("fcgi:") => Runner::Fcgi(format!("unix:{path}")),
            None if to.starts_with("fcgi://") => {
                let host = to["fcgi://".len()..].split('/').next().unwrap_or_default();
                let port = if host.contains(':') { "" } else { ":8000" };
                Runner::Fcgi(format!("{host}{port}"))
            }
            _ => Runner::Refused(format!("a handler {word}")),
        });
    }
    let is_php = ["application/x-httpd-", "application/x-php", "application/x-lsphp", "php"];
    if lower.ends_with("-source") {
        return Some(Runner::Refused("text of scripts".to_owned()));
    }
    if lower.starts_with("application/x-httpd-") && !lower.contains("php") {
        return Some(Runner::Refused(format!("a handler {word}")));
    }
    if is_php.iter().any(|start| lower.starts_with(start)) {
        return Some(Runner::Pool);
    }
    let programs =
        ["cgi", "fcgid", "fastcgi", "suphp", "x-httpd", "perl", "wsgi", "mod_python", "lua"];
    programs
        .iter()
        .any(|start| lower.starts_with(start))
        .then(|| Runner::Refused(format!("a handler {word}")))
}

/// The name of the pool of an account.
pub(crate) fn pool_name(user: Option<&str>) -> String {
    let name = user.unwrap_or("apache");
    let is_part = |one: char| one.is_ascii_alphanumeric() || "_-".contains(one);
    format!("php_{}", name.replace(|one| !is_part(one), "_"))
}

/// The FastCGI parameters that describe a request to a program.
pub(crate) fn parameters(script: &str, server: &Server<'_>) -> Vec<String> {
    let name = if server.is_on("usecanonicalname") { "$server_name" } else { "$host" };
    let all = [
        ("SCRIPT_FILENAME", script),
        ("PATH_INFO", "$fastcgi_path_info"),
        ("QUERY_STRING", "$query_string"),
        ("REQUEST_METHOD", "$request_method"),
        ("CONTENT_TYPE", "$content_type"),
        ("CONTENT_LENGTH", "$content_length"),
        ("SCRIPT_NAME", "$fastcgi_script_name"),
        ("REQUEST_URI", "$request_uri"),
        ("DOCUMENT_URI", "$document_uri"),
        ("DOCUMENT_ROOT", "$document_root"),
        ("SERVER_PROTOCOL", "$server_protocol"),
        ("REQUEST_SCHEME", "$scheme"),
        ("HTTPS", "$https if_not_empty"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_SOFTWARE", "\"bolide/$nginx_version (nginx compatible)\""),
        ("REMOTE_ADDR", "$remote_addr"),
        ("REMOTE_PORT", "$remote_port"),
        ("REMOTE_USER", "$authenticated_user if_not_empty"),
        ("SERVER_ADDR", "$server_addr"),
        ("SERVER_PORT", "$server_port"),
        ("SERVER_NAME", name),
        ("REDIRECT_STATUS", "200"),
        ("HTTP_PROXY", "\"\""),
    ];
    all.iter().map(|(name, value)| format!("fastcgi_param {name} {value};")).collect()
}

/// Tells a script's path, whose name ends as `ending` says, from what is behind it.
pub(crate) fn split_path_info(ending: &str, out: &mut ConfText) {
    let regex = quoted_regex(&format!("^(.+?{ending})(/.*)$"));
    out.own(format!("fastcgi_split_path_info {regex};"));
}

/// What a location for scripts has in it.
pub(crate) fn runs(runner: &Runner, pool: &str) -> String {
    match runner {
        Runner::Fcgi(address) => format!("fastcgi_pass {};", quoted(address)),
        Runner::Pool => format!("php_pass {pool};"),
        Runner::Refused(_) => "return 503;".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Runner, runner};

    #[test]
    fn handlers_are_told_apart() {
        let fcgi = |to: &str| Some(Runner::Fcgi(to.to_owned()));
        assert_eq!(runner("proxy:unix:/run/a.sock|fcgi://localhost"), fcgi("unix:/run/a.sock"));
        assert_eq!(runner("proxy:fcgi://127.0.0.1:9000"), fcgi("127.0.0.1:9000"));
        assert_eq!(runner("application/x-httpd-php81"), Some(Runner::Pool));
        assert!(matches!(runner("cgi-script"), Some(Runner::Refused(_))));
        assert!(matches!(runner("proxy:http://a/"), Some(Runner::Refused(_))));
        assert!(matches!(runner("proxy:unix:%{X}|fcgi://a"), Some(Runner::Refused(_))));
        assert!(matches!(runner("application/x-httpd-cgi"), Some(Runner::Refused(_))));
        assert_eq!(runner("server-status"), None);
    }
}
