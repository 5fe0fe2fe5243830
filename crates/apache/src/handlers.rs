//! Handlers: their lines stay in Apache's words, and the server finds the handler of each file as
//! Apache does; here are the locations that answer for them. A line whose handler none answers for
//! closes its files.

use crate::body::SectionLines;
use crate::import::ConfPlace;
use crate::out::ConfText;
use crate::php::{self, Runner};
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::quoted;

/// What runs files with handlers of these names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandlerRunner {
    pub(crate) place: ConfPlace,
    pub(crate) runner: Runner,
    /// In lower case, with their first line.
    names: Vec<(ConfPlace, String)>,
}

/// Whether a directive gives files a handler, or a type that is one.
pub(crate) fn is_line(node: &ApacheNode) -> bool {
    matches!(&node.lower[..], "sethandler" | "addhandler" | "addtype" | "forcetype")
}

/// Whether a media type is a handler, as the server knows them.
fn is_script_type(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let runs = ["application/x-httpd-", "application/x-php", "application/x-lsphp"];
    runs.iter().any(|start| lower.starts_with(start))
}

/// The programs of a server.
pub(crate) fn programs(server: &Server<'_>) -> Vec<HandlerRunner> {
    let mut all: Vec<HandlerRunner> = Vec::new();
    let nodes = || server.main.iter().chain(server.own);
    for node in nodes() {
        node.each(&mut |node| {
            if is_line(node) {
                add(node, &workers(server), &mut all);
            }
        });
    }
    // Names count in any case, and addresses do not.
    let is_unclear = |name: &str, all: &[HandlerRunner]| {
        all.iter().filter(|one| one.names.iter().any(|(_, own)| own == name)).count() > 1
    };
    let known = all.clone();
    for one in &mut all {
        one.names.retain(|(_, name)| !is_unclear(name, &known));
    }
    all.retain(|one| !one.names.is_empty());
    all
}

fn add(node: &ApacheNode, workers: &[(String, String)], all: &mut Vec<HandlerRunner>) {
    let word = node.first();
    let Some(runner) = php::runner(&word).filter(|it| !matches!(it, Runner::Refused(_))) else {
        return;
    };
    let name = word.to_ascii_lowercase();
    let worker = workers.iter().rfind(|(url, _)| {
        let rest = name.strip_prefix("proxy:").and_then(|name| name.strip_prefix(&url[..]));
        rest.is_some_and(|rest| rest.is_empty() || url.ends_with('/') || rest.starts_with('/'))
    });
    let runner = worker.map_or(runner, |(_, socket)| Runner::Fcgi(socket.clone()));
    let at = match all.iter().position(|one| one.runner == runner) {
        Some(at) => at,
        None => {
            all.push(HandlerRunner { place: node.place.clone(), runner, names: Vec::new() });
            all.len() - 1
        }
    };
    if !all[at].names.iter().any(|(_, own)| *own == name) {
        all[at].names.push((node.place.clone(), name));
    }
}

/// The sockets of `<Proxy "unix:PATH|fcgi://NAME">`, by `fcgi://NAME`.
fn workers(server: &Server<'_>) -> Vec<(String, String)> {
    let sections = server.main.iter().chain(server.own).filter(|node| node.lower == "<proxy");
    let all = sections.filter_map(|node| {
        let first = node.first();
        let (path, url) = first.strip_prefix("unix:")?.split_once('|')?;
        let url = url.trim_end_matches('/').to_ascii_lowercase();
        url.starts_with("fcgi://").then(|| (url, format!("unix:{path}")))
    });
    all.collect()
}

/// The locations of a server's programs, and which handlers they answer for.
pub(crate) fn write(programs: &[HandlerRunner], pool: &str, out: &mut ConfText) {
    for (at, one) in programs.iter().enumerate() {
        let location = format!("@apache_handler_{}", at + 1);
        for (place, name) in &one.names {
            out.put(place, format!("apache_handler {} {location};", quoted(name)));
        }
        out.open(&one.place, format!("location {location}"));
        out.put(&one.place, php::runs(&one.runner, pool));
        out.close();
    }
}

/// A line about handlers, for `apache_directory`: as it is, or so that its files are closed.
pub(crate) fn line(node: &ApacheNode, out: &mut ConfText) -> SectionLines {
    let words = node.words();
    let first = words.first().map_or("", String::as_str);
    let is_type = matches!(&node.lower[..], "addtype" | "forcetype");
    let rest = words.get(1..).unwrap_or_default().iter().map(|word| quoted_word(word));
    let rest: Vec<String> = rest.collect();
    let said = |name: &str, word: &str| {
        let line = [&[name.to_owned(), quoted_word(word)][..], &rest].concat().join(" ");
        vec![(node.place.clone(), line)]
    };
    match php::runner(first) {
        Some(Runner::Fcgi(_) | Runner::Pool) if !is_type || is_script_type(first) => {
            said(&node.name, first)
        }
        None if is_type || is_plain(node) => said(&node.name, first),
        None if node.lower == "addhandler" && node.keyword() == "type-map" => {
            out.note(&node.place, format!("{} {}: no names are negotiated", node.name, node.rest));
            SectionLines::new()
        }
        _ => {
            out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
            let name = if is_set(node) { "SetHandler" } else { "AddHandler" };
            said(name, &format!("cgi-closed:{first}"))
        }
    }
}

/// Whether it is about all files of a place.
fn is_set(node: &ApacheNode) -> bool {
    matches!(&node.lower[..], "sethandler" | "forcetype")
}

/// Whether a handler means the file itself.
fn is_plain(node: &ApacheNode) -> bool {
    matches!(&node.keyword()[..], "none" | "default-handler")
}

fn quoted_word(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether a section is a status page at one path, which has a location of its own.
pub(crate) fn is_status(section: &ApacheNode, node: &ApacheNode) -> bool {
    let path = section.first();
    node.lower == "sethandler"
        && section.lower == "<location"
        && path.starts_with('/')
        && !path.contains(['*', '?', '['])
        && node.keyword() == "server-status"
}

#[cfg(test)]
mod tests {
    use super::{is_line, line};
    use crate::out::ConfText;
    use crate::tree::ApacheNode;

    fn said(text: &str) -> Vec<String> {
        let (name, rest) = text.split_once(' ').unwrap();
        let node = ApacheNode {
            place: crate::ConfPlace { file: "x".into(), line: 1 },
            name: name.to_owned(),
            lower: name.to_ascii_lowercase(),
            rest: rest.to_owned(),
            children: Vec::new(),
        };
        assert!(is_line(&node));
        line(&node, &mut ConfText::default()).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn lines_are_kept_or_close() {
        let rows = [
            ("SetHandler \"proxy:unix:/s|fcgi://l\"", "SetHandler \"proxy:unix:/s|fcgi://l\""),
            ("AddHandler php-script .php", "AddHandler \"php-script\" \".php\""),
            ("AddType application/x-httpd-php .x", "AddType \"application/x-httpd-php\" \".x\""),
            ("AddType text/x .x", "AddType \"text/x\" \".x\""),
            ("AddType php5 .x", "AddHandler \"cgi-closed:php5\" \".x\""),
            (
                "ForceType application/x-httpd-php-source",
                "SetHandler \"cgi-closed:application/x-httpd-php-source\"",
            ),
            ("SetHandler None", "SetHandler \"None\""),
            ("SetHandler mystery", "SetHandler \"cgi-closed:mystery\""),
            ("SetHandler server-info", "SetHandler \"cgi-closed:server-info\""),
            (
                "SetHandler proxy:unix:%{X}|fcgi://l",
                "SetHandler \"cgi-closed:proxy:unix:%{X}|fcgi://l\"",
            ),
            (
                "AddHandler cgi-script .cgi .pl",
                "AddHandler \"cgi-closed:cgi-script\" \".cgi\" \".pl\"",
            ),
        ];
        for (text, wanted) in rows {
            assert_eq!(said(text), [wanted], "{text}");
        }
        assert!(said("AddHandler type-map var").is_empty());
    }
}
