//! mod_proxy's directives in nginx's words: `location`, `proxy_pass`, `upstream`.

use crate::access;
use crate::body::is_line;
use crate::out::ConfText;
use crate::redirect::covers;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::{escaped, has_variable, quoted, words};

/// A path that is passed on, or one that is not (`!`).
#[derive(Clone, Debug)]
pub(crate) struct ProxyEntry<'a> {
    pub(crate) node: &'a ApacheNode,
    /// A path, or an expression.
    pub(crate) path: String,
    is_regex: bool,
    /// None for `!`.
    to: Option<String>,
    options: Vec<String>,
}

/// The paths of a server in the order in which Apache tries them.
pub(crate) fn entries<'a>(server: &Server<'a>) -> Vec<ProxyEntry<'a>> {
    let mut sections: Vec<_> =
        server.all(&["<location", "<locationmatch"]).map(|node| (node.first(), node)).collect();
    sections.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    let mut all = Vec::new();
    for (path, section) in sections {
        for node in &section.children {
            if matches!(&node.lower[..], "proxypass" | "proxypassmatch") {
                let is_regex = section.lower == "<locationmatch" || path == "~";
                let path = if path == "~" { section.words()[1..].join(" ") } else { path.clone() };
                all.extend(entry(node, Some(path), is_regex));
            }
        }
    }
    for node in server.all(&["proxypass", "proxypassmatch"]) {
        all.extend(entry(node, None, node.lower == "proxypassmatch"));
    }
    all
}

fn entry(node: &ApacheNode, path: Option<String>, is_regex: bool) -> Option<ProxyEntry<'_>> {
    let mut words = node.words().into_iter();
    let path = match path {
        Some(path) => path,
        None => words.next()?,
    };
    let to = words.next().filter(|to| to != "!");
    Some(ProxyEntry { node, path, is_regex, to, options: words.collect() })
}

/// Paths that are passed on whatever comes, as prefixes.
pub(crate) fn prefixes(entries: &[ProxyEntry<'_>]) -> Vec<String> {
    let all = entries.iter().enumerate();
    // One that is excepted before is not.
    let passed = all.filter(|(at, one)| {
        let excepted =
            |other: &ProxyEntry<'_>| other.to.is_none() && covers(&one.path, &other.path);
        one.to.is_some() && !one.is_regex && !entries[..*at].iter().any(excepted)
    });
    passed.map(|(_, one)| one.path.clone()).collect()
}

/// Whether an address that is passed on stands before this path.
pub(crate) fn takes(entries: &[ProxyEntry<'_>], path: &str) -> bool {
    let first = entries.iter().find(|one| !one.is_regex && covers(&one.path, path));
    first.is_some_and(|one| one.to.is_some())
}

/// Writes the `upstream` of each balancer.
pub(crate) fn balancers(nodes: &[&ApacheNode], out: &mut ConfText) {
    for node in nodes {
        let Some(name) = node.first().strip_prefix("balancer://").map(bare_name) else { continue };
        out.open(&node.place, format!("upstream {name}"));
        let mut has_member = false;
        for child in &node.children {
            let words = child.words();
            match (&child.lower[..], words.first()) {
                ("balancermember", Some(url)) => {
                    has_member |= member(child, url, &words[1..], out);
                }
                ("proxyset", _) if child.rest.contains("lbmethod=bybusyness") => {
                    out.put(&child.place, "least_conn;");
                }
                ("require", _) if child.rest.eq_ignore_ascii_case("all granted") => {
                    out.note(&child.place, "Require all granted");
                }
                _ => {
                    out.note(
                        &child.place,
                        format!("{} {}: not translated", child.name, child.rest),
                    );
                }
            }
        }
        if !has_member {
            // An upstream without servers is an error.
            out.own("server 127.0.0.1:9 down;");
        }
        out.close();
    }
}

fn bare_name(rest: &str) -> String {
    let name = rest.split('/').next().unwrap_or_default();
    format!(
        "balancer_{}",
        name.replace(|one: char| !one.is_ascii_alphanumeric() && one != '-', "_")
    )
}

fn member(node: &ApacheNode, url: &str, options: &[String], out: &mut ConfText) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        out.note(&node.place, format!("BalancerMember {url}: not understood"));
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default();
    let port = match (
        host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()),
        scheme,
    ) {
        (true, _) => "",
        (false, "https") => ":443",
        (false, _) => ":80",
    };
    let mut text = format!("server {host}{port}");
    for option in options {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "loadfactor" if value.parse::<u32>().is_ok() => {
                text.push_str(&format!(" weight={value}"));
            }
            "status" if value.contains('H') => text.push_str(" backup"),
            "status" if value.contains('D') => text.push_str(" down"),
            "retry" if value.parse::<u32>().is_ok() => {
                text.push_str(&format!(" fail_timeout={value}"));
            }
            _ => out.note(&node.place, format!("BalancerMember … {option}: not translated")),
        }
    }
    out.put(&node.place, format!("{text};"));
    true
}

/// What an entry's location has in it, and whether a request is changed to a WebSocket.
struct Target {
    pass: String,
    upgrades: bool,
    is_fcgi: bool,
}

fn target(to: &str) -> Option<Target> {
    let http = |pass: String, upgrades| {
        Some(Target { pass: format!("proxy_pass {};", quoted(&pass)), upgrades, is_fcgi: false })
    };
    if let Some((path, url)) = to.strip_prefix("unix:").and_then(|it| it.split_once('|')) {
        return match url.split_once("://")? {
            ("http", rest) => {
                let uri = rest.find('/').map_or("", |at| &rest[at..]);
                let uri = if uri.is_empty() { String::new() } else { format!(":{uri}") };
                http(format!("http://unix:{path}{uri}"), false)
            }
            ("fcgi", _) => {
                let pass = format!("fastcgi_pass {};", quoted(&format!("unix:{path}")));
                Some(Target { pass, upgrades: false, is_fcgi: true })
            }
            _ => None,
        };
    }
    match to.split_once("://")? {
        ("http" | "https", _) => http(to.to_owned(), false),
        ("ws", rest) => http(format!("http://{rest}"), true),
        ("wss", rest) => http(format!("https://{rest}"), true),
        ("balancer", rest) => {
            let uri = rest.find('/').map_or("", |at| &rest[at..]);
            http(format!("http://{}{uri}", bare_name(rest)), false)
        }
        ("fcgi", rest) => {
            let host = rest.split('/').next()?;
            let pass = format!("fastcgi_pass {};", quoted(host));
            Some(Target { pass, upgrades: false, is_fcgi: true })
        }
        _ => None,
    }
}

/// Writes the locations of what is passed on. `files` writes what a location without a proxy has.
pub(crate) fn write(server: &Server<'_>, entries: &[ProxyEntry<'_>], out: &mut ConfText) {
    let mut split = below(server, entries);
    for (at, one) in entries.iter().enumerate() {
        let earlier = &entries[..at];
        if !one.is_regex
            && earlier.iter().any(|known| !known.is_regex && covers(&known.path, &one.path))
        {
            out.note(&one.node.place, format!("ProxyPass {}: one before answers there", one.path));
            continue;
        }
        let Some(to) = &one.to else {
            exception(one, out);
            continue;
        };
        location(server, one, &one.path, to, out);
        let inner: Vec<String> =
            split.iter().filter(|path| takes_here(entries, at, path)).cloned().collect();
        split.retain(|path| !inner.contains(path));
        for path in inner {
            let rest = &path[one.path.trim_end_matches('/').len()..];
            let to = format!("{}{rest}", to.trim_end_matches('/'));
            location(server, one, &path, &to, out);
        }
    }
}

/// Whether entry `at` is the one that passes `path` on.
fn takes_here(entries: &[ProxyEntry<'_>], at: usize, path: &str) -> bool {
    let first = entries.iter().position(|one| !one.is_regex && covers(&one.path, path));
    first == Some(at) && entries[at].path.trim_end_matches('/') != path.trim_end_matches('/')
}

/// Paths of `<Location>` below what is passed on, where something else holds.
fn below(server: &Server<'_>, entries: &[ProxyEntry<'_>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for section in server.all(&["<location"]) {
        let path = section.first();
        let is_plain = path.starts_with('/') && !path.contains(['*', '?', '[']);
        let is_own =
            entries.iter().any(|one| one.path.trim_end_matches('/') == path.trim_end_matches('/'));
        if is_plain && !is_own && takes(entries, &path) && !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

fn exception(one: &ProxyEntry<'_>, out: &mut ConfText) {
    if one.is_regex {
        out.note_closed(&one.node.place, format_args!("{} {} !", one.node.name, one.path));
        out.own(format!("location ~ {} {{ return 503; }}", crate::words::in_quotes(&one.path)));
    } else if one.path.ends_with('/')
        || one.path.rsplit('/').next().is_some_and(|it| it.contains('.'))
    {
        out.put(&one.node.place, format!("location {} {{ }}", quoted(&one.path)));
    } else {
        out.put(&one.node.place, format!("location = {} {{ }}", quoted(&one.path)));
        out.put(&one.node.place, format!("location {} {{ }}", quoted(&format!("{}/", one.path))));
    }
}

/// One path: the location of what is below it, and the one of the path alone.
fn location(server: &Server<'_>, one: &ProxyEntry<'_>, path: &str, to: &str, out: &mut ConfText) {
    let place = &one.node.place;
    let refused =
        target(to).is_none() || has_variable(to) && !one.is_regex || !path.starts_with(['/', '^']);
    if refused {
        out.note_closed(place, format_args!("{} {path} {to}", one.node.name));
        let head = if one.is_regex {
            format!("~ {}", crate::words::in_quotes(path))
        } else {
            quoted(path)
        };
        let head = if head.is_empty() { "/".to_owned() } else { head };
        return out.own(format!("location {head} {{ return 503; }}"));
    }
    if one.is_regex {
        return matching(server, one, path, to, out);
    }
    if path.ends_with('/') {
        block(server, one, &format!("^~ {}", quoted(path)), path, to, out);
        return;
    }
    block(server, one, &format!("= {}", quoted(path)), path, to, out);
    let to = format!("{}/", to.trim_end_matches('/'));
    block(server, one, &format!("^~ {}", quoted(&format!("{path}/"))), path, &to, out);
}

/// `ProxyPassMatch`, where it says what a plain location can say.
fn matching(server: &Server<'_>, one: &ProxyEntry<'_>, path: &str, to: &str, out: &mut ConfText) {
    let place = &one.node.place;
    let head = format!("~ {}", crate::words::in_quotes(path));
    let scripts = server.root().map(|(_, root)| format!("{root}/$1"));
    if to.starts_with("fcgi://") || to.starts_with("unix:") && to.contains("|fcgi:") {
        let file = to.rsplit_once("://").and_then(|(_, rest)| rest.split_once('/'));
        let fits =
            file.is_none_or(|(_, file)| file.is_empty() || Some(format!("/{file}")) == scripts);
        let Some(target) = target(to).filter(|it| fits && it.is_fcgi) else {
            out.note_closed(place, format_args!("{} {path} {to}", one.node.name));
            return out.own(format!("location {head} {{ return 503; }}"));
        };
        out.open(place, format!("location {head}"));
        out.own("fastcgi_split_path_info ^(.+?\\.php)(/.*)$;");
        out.put(place, target.pass);
        return out.close();
    }
    // `^(/.*)$ http://host$1` and the like: the whole path as it is.
    let plain = ["^(/.*)$", "^(.*)$", "^/(.*)$"].contains(&path);
    let host = to.strip_suffix("$1").map(|it| it.trim_end_matches('/'));
    match host.filter(|host| !has_variable(host)) {
        Some(host) if plain => block(server, one, "^~ /", "/", &format!("{host}/"), out),
        _ => {
            out.note_closed(place, format_args!("{} {path} {to}", one.node.name));
            out.own(format!("location {head} {{ return 503; }}"));
        }
    }
}

fn block(
    server: &Server<'_>,
    one: &ProxyEntry<'_>,
    head: &str,
    path: &str,
    to: &str,
    out: &mut ConfText,
) {
    let place = &one.node.place;
    let Some(target) = target(to) else { return };
    out.open(place, format!("location {head}"));
    let sections: Vec<&ApacheNode> = sections(server, path);
    access::write(&sections, out);
    out.put(place, target.pass);
    if !target.is_fcgi {
        settings(server, one, path, target.upgrades, &sections, out);
    }
    out.close();
}

/// Sections that have a say about a path.
pub(crate) fn sections<'a>(server: &Server<'a>, path: &str) -> Vec<&'a ApacheNode> {
    let own = server.main.iter().chain(server.own);
    let all = own.filter(|node| match &node.lower[..] {
        "<location" => {
            let own = node.first();
            own.contains(['*', '?', '[', '~']) || covers(&own, path)
        }
        "<locationmatch" => true,
        "<proxy" | "<proxymatch" => !node.first().starts_with("balancer://"),
        _ => false,
    });
    all.collect()
}

fn settings(
    server: &Server<'_>,
    one: &ProxyEntry<'_>,
    path: &str,
    upgrades: bool,
    sections: &[&ApacheNode],
    out: &mut ConfText,
) {
    let inner = sections.iter().flat_map(|section| &section.children);
    let all: Vec<&ApacheNode> = server.main.iter().chain(server.own).chain(inner).collect();
    let last = |name: &str| all.iter().rfind(|node| node.lower == name).copied();
    let is_on =
        |name| last(name).is_some_and(|node: &ApacheNode| node.first().eq_ignore_ascii_case("on"));
    if let Some(node) = last("proxypreservehost").filter(|_| is_on("proxypreservehost")) {
        out.put(&node.place, "proxy_set_header Host $http_host;");
    }
    if last("proxyaddheaders").is_none() || is_on("proxyaddheaders") {
        out.own("proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;");
        out.own("proxy_set_header X-Forwarded-Host $http_host;");
        out.own("proxy_set_header X-Forwarded-Server $server_name;");
    }
    let is_upgrade = upgrades || one.options.iter().any(|it| it.starts_with("upgrade="));
    if is_upgrade {
        out.own("proxy_http_version 1.1;");
        out.own("proxy_set_header Upgrade $http_upgrade;");
        out.own("proxy_set_header Connection $apache_connection;");
    }
    let timeout = one.options.iter().find_map(|it| it.strip_prefix("timeout=").map(str::to_owned));
    let timeout = timeout.map(|time| (&one.node.place, time));
    let timeout = timeout.or_else(|| last("proxytimeout").map(|node| (&node.place, node.first())));
    if let Some((place, time)) = timeout.filter(|(_, time)| time.parse::<u32>().is_ok()) {
        out.put(place, format!("proxy_read_timeout {time}s;"));
        out.put(place, format!("proxy_send_timeout {time}s;"));
    }
    for option in &one.options {
        if !["timeout=", "upgrade="].iter().any(|start| option.starts_with(start)) {
            out.note(&one.node.place, format!("ProxyPass … {option}: not translated"));
        }
    }
    reverse(&all, path, out);
    fields(&all, out);
    if let Some(node) = last("sslproxyverify").filter(|node| node.first() == "require") {
        out.put(&node.place, "proxy_ssl_verify on;");
        if let Some(file) = last("sslproxycacertificatefile") {
            out.put(
                &file.place,
                format!("proxy_ssl_trusted_certificate {};", quoted(&file.first())),
            );
        }
    }
}

/// `ProxyPassReverse` and its kin.
fn reverse(all: &[&ApacheNode], path: &str, out: &mut ConfText) {
    let mut has_one = false;
    for node in all {
        let words = words(&node.rest);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (&node.lower[..], &words[..]) {
            ("proxypassreverse", [from, to]) if covers(path, from) || covers(from, path) => {
                let to = to.replace("balancer://", "http://");
                out.put(&node.place, format!("proxy_redirect {} {};", quoted(&to), quoted(from)));
                has_one = true;
            }
            ("proxypassreverse", [to]) => {
                out.put(&node.place, format!("proxy_redirect {} {};", quoted(to), quoted(path)));
                has_one = true;
            }
            ("proxypassreversecookiepath", [from, to]) => {
                let regex = format!("~^{}(.*)$", escaped(from));
                let to = format!("{to}$1");
                out.put(
                    &node.place,
                    format!("proxy_cookie_path {} {};", quoted(&regex), quoted(&to)),
                );
            }
            ("proxypassreversecookiedomain", [from, to]) => {
                out.put(
                    &node.place,
                    format!("proxy_cookie_domain {} {};", quoted(from), quoted(to)),
                );
            }
            _ => {}
        }
    }
    if !has_one {
        out.own("proxy_redirect off;");
    }
}

/// `RequestHeader` and `Header` for what has no files.
fn fields(all: &[&ApacheNode], out: &mut ConfText) {
    for node in all.iter().filter(|node| matches!(&node.lower[..], "requestheader" | "header")) {
        let mut words = node.words();
        words.retain(|word| !word.eq_ignore_ascii_case("always") && word != "onsuccess");
        let plain = |text: &str| !text.contains(['%', '$', '\\']);
        let is_request = node.lower == "requestheader";
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let lower = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        match (is_request, &lower[..], &words[1.min(words.len())..]) {
            (true, "set", [name, value]) if plain(value) => {
                out.put(
                    &node.place,
                    format!(
                        "proxy_set_header {} {};",
                        quoted(name.trim_end_matches(':')),
                        quoted(value)
                    ),
                );
            }
            (true, "unset", [name]) => {
                out.put(
                    &node.place,
                    format!("proxy_set_header {} \"\";", quoted(name.trim_end_matches(':'))),
                );
            }
            // What a client says for itself must not get through in its place.
            (true, _, [name, ..]) => {
                out.note(
                    &node.place,
                    format!("RequestHeader {}: the field is taken away", node.rest),
                );
                out.put(
                    &node.place,
                    format!("proxy_set_header {} \"\";", quoted(name.trim_end_matches(':'))),
                );
            }
            (false, "set", [name, value]) if plain(value) => {
                let text = format!("{}: {value}", name.trim_end_matches(':'));
                out.put(&node.place, format!("more_set_headers {};", quoted(&text)));
            }
            (false, "unset", [name]) => {
                out.put(&node.place, format!("more_clear_headers {};", quoted(name)));
            }
            (false, "append" | "add" | "merge", [name, value]) if plain(value) => {
                let text =
                    format!("{} {} always;", quoted(name.trim_end_matches(':')), quoted(value));
                out.put(&node.place, format!("add_header {text}"));
            }
            _ if is_line(node) => {
                out.note(&node.place, format!("{} {}: not for the proxy", node.name, node.rest));
            }
            _ => out.note(&node.place, format!("{} {}: not translated", node.name, node.rest)),
        }
    }
}
