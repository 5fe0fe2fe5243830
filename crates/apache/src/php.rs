//! Programs: which files a handler runs, and by what. What no server here can run is refused, never
//! sent as text.

use crate::import::ConfPlace;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::{escaped, quoted};

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

/// Which files are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PhpRule {
    pub(crate) place: ConfPlace,
    /// The directory that it is about; none is everywhere.
    pub(crate) directory: Option<String>,
    /// The end of a path, as an expression.
    pub(crate) pattern: String,
    pub(crate) runner: Runner,
}

/// The runner that a handler's name means; none where it means no program.
pub(crate) fn runner(word: &str) -> Option<Runner> {
    let lower = word.to_ascii_lowercase();
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

/// What is said of a directive that has its effect by a location.
pub(crate) fn comment_of(node: &ApacheNode) -> Option<&'static str> {
    let text = "by the location for such files";
    match &node.lower[..] {
        "sethandler" => runner(&node.first()).map(|_| text),
        "addhandler" | "addtype" => runner(&node.first()).map(|_| text),
        _ => None,
    }
}

/// The rules of a server, the first that fits counts.
pub(crate) fn rules(server: &Server<'_>) -> Vec<PhpRule> {
    let mut all = Vec::new();
    for nodes in [server.main, server.own] {
        collect(nodes, None, None, &mut all);
    }
    all.reverse();
    // Deeper directories first; otherwise later ones.
    let depth = |rule: &PhpRule| {
        rule.directory.as_deref().map_or(0, |it| it.trim_end_matches('/').matches('/').count() + 1)
    };
    all.sort_by_key(|rule| std::cmp::Reverse(depth(rule)));
    let mut kept: Vec<PhpRule> = Vec::new();
    for rule in all {
        let is_new = !kept
            .iter()
            .any(|known| (&known.directory, &known.pattern) == (&rule.directory, &rule.pattern));
        if is_new {
            kept.push(rule);
        }
    }
    kept
}

fn collect(
    nodes: &[ApacheNode],
    directory: Option<&str>,
    files: Option<&str>,
    all: &mut Vec<PhpRule>,
) {
    for node in nodes {
        let words = node.words();
        let first = words.first().map_or("", String::as_str);
        match &node.lower[..] {
            "<directory" => {
                let is_plain = !first.contains(['*', '?', '[', '~']);
                collect(&node.children, is_plain.then_some(first).or(directory), files, all);
            }
            "<files" | "<filesmatch" => {
                let is_regex = node.lower == "<filesmatch" || first == "~";
                let word =
                    if first == "~" { words.get(1).map_or("", String::as_str) } else { first };
                let pattern = if is_regex { of_regex(word) } else { of_glob(word) };
                collect(&node.children, directory, Some(&pattern), all);
            }
            "<directorymatch" | "<if" | "<elseif" | "<else" | "<limit" | "<limitexcept" => {
                collect(&node.children, directory, files, all);
            }
            "<locationmatch" if first.contains("ph") => {
                collect(&node.children, directory, Some(&of_regex(first)), all);
            }
            "sethandler" => {
                if let (Some(runner), Some(pattern)) = (runner(first), files) {
                    push(all, node, directory, pattern.to_owned(), runner);
                } else if let (Some(runner), Some(_)) = (runner(first), directory) {
                    // All files of a directory: only what names a script is run.
                    let pattern = match runner {
                        Runner::Refused(_) => "/[^/]+$".to_owned(),
                        _ => r"\.ph(?:p[0-9]?|tml|ar)(?:/|$)".to_owned(),
                    };
                    push(all, node, directory, pattern, runner);
                }
            }
            "addhandler" | "addtype" => {
                if let Some(runner) = runner(first) {
                    let names: Vec<_> =
                        words[1..].iter().map(|it| escaped(it.trim_start_matches('.'))).collect();
                    // Any extension counts, not the last one alone.
                    let names = names.join("|");
                    let pattern = format!(r"\.(?:{names})(?:\.[^/]*)?(?:/|$)");
                    push(all, node, directory, pattern, runner);
                }
            }
            _ => {}
        }
    }
}

fn push(
    all: &mut Vec<PhpRule>,
    node: &ApacheNode,
    directory: Option<&str>,
    pattern: String,
    runner: Runner,
) {
    let directory = directory.map(str::to_owned);
    all.push(PhpRule { place: node.place.clone(), directory, pattern, runner });
}

/// An expression about names of files, as one about paths. Groups capture nothing.
fn of_regex(regex: &str) -> String {
    let mut out = String::new();
    let mut rest = regex;
    if let Some(after) = rest.strip_prefix('^') {
        out.push('/');
        rest = after;
    }
    let is_ended = rest.ends_with('$') && !rest.ends_with("\\$");
    let body = if is_ended { &rest[..rest.len() - 1] } else { rest };
    let mut escapes = false;
    let all: Vec<char> = body.chars().collect();
    for (at, one) in all.iter().enumerate() {
        out.push(*one);
        if *one == '(' && !escapes && all.get(at + 1) != Some(&'?') {
            out.push_str("?:");
        }
        escapes = *one == '\\' && !escapes;
    }
    if is_ended {
        out = if out.contains('|') { format!("(?:{out})(?:/|$)") } else { format!("{out}(?:/|$)") };
    }
    out
}

/// Wildcards about names of files, as an expression about paths.
pub(crate) fn of_glob(glob: &str) -> String {
    let mut out = String::from("/");
    for one in glob.chars() {
        match one {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' | ']' => out.push(one),
            other => out.push_str(&escaped(&other.to_string())),
        }
    }
    out.push_str("(?:/|$)");
    out
}

/// The name of the pool of an account.
pub(crate) fn pool_name(user: Option<&str>) -> String {
    let name = user.unwrap_or("apache");
    let is_part = |one: char| one.is_ascii_alphanumeric() || "_-".contains(one);
    format!("php_{}", name.replace(|one| !is_part(one), "_"))
}

/// The FastCGI parameters that describe a request to a program.
pub(crate) fn parameters(script: &str) -> Vec<String> {
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
        ("REMOTE_USER", "$remote_user"),
        ("SERVER_ADDR", "$server_addr"),
        ("SERVER_PORT", "$server_port"),
        ("SERVER_NAME", "$server_name"),
        ("REDIRECT_STATUS", "200"),
        ("HTTP_PROXY", "\"\""),
    ];
    all.iter().map(|(name, value)| format!("fastcgi_param {name} {value};")).collect()
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
    use super::{Runner, of_glob, of_regex, runner};

    #[test]
    fn handlers_are_told_apart() {
        let fcgi = |to: &str| Some(Runner::Fcgi(to.to_owned()));
        assert_eq!(runner("proxy:unix:/run/a.sock|fcgi://localhost"), fcgi("unix:/run/a.sock"));
        assert_eq!(runner("proxy:fcgi://127.0.0.1:9000"), fcgi("127.0.0.1:9000"));
        assert_eq!(runner("application/x-httpd-php81"), Some(Runner::Pool));
        assert!(matches!(runner("cgi-script"), Some(Runner::Refused(_))));
        assert!(matches!(runner("proxy:http://a/"), Some(Runner::Refused(_))));
        assert_eq!(runner("server-status"), None);
    }

    #[test]
    fn patterns_are_about_paths() {
        assert_eq!(of_regex(r"\.php$"), r"\.php(?:/|$)");
        assert_eq!(of_regex(r".+\.ph(ar|p)$"), r"(?:.+\.ph(?:ar|p))(?:/|$)");
        assert_eq!(of_regex(r"^x\(y"), r"/x\(y");
        assert_eq!(of_glob("*.php"), r"/[^/]*\.php(?:/|$)");
    }
}
