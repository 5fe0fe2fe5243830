//! mod_proxy's directives in nginx's words: `location` and `proxy_pass`.

use crate::access::{self, bare};
use crate::balancers;
use crate::expression::quoted_regex;
use crate::heads::Heads;
use crate::matching::{self, PathSet, PlacePaths, Reach};
use crate::out::ConfText;
use crate::passing;
use crate::php;
use crate::redirect::covers;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::{has_variable, quoted, with_lower_schemes};

/// A path that is passed on, or one that is not (`!`).
#[derive(Clone, Debug)]
pub(crate) struct ProxyEntry<'a> {
    pub(crate) node: &'a ApacheNode,
    /// A path, or an expression.
    pub(crate) path: String,
    is_regex: bool,
    /// Whether it stands in a `<Location>`, which is that of the request as it came.
    is_inner: bool,
    /// None for `!`.
    to: Option<String>,
    pub(crate) options: Vec<String>,
}

impl ProxyEntry<'_> {
    /// The value of an option.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option_of(option, name))
    }

    /// Whether it is about a path and all below it.
    fn finds(&self, path: &str) -> bool {
        match self.is_regex {
            true => self.to.is_some() && PLAIN.contains(&&self.path[..]),
            false => covers(&self.path, path),
        }
    }
}

/// The value of an option such as `timeout=5`, if it has this name.
pub(crate) fn option_of<'o>(option: &'o str, name: &str) -> Option<&'o str> {
    option.split_once('=').filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
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
    let is_inner = path.is_some();
    let path = match path {
        Some(path) => path,
        None => words.next()?,
    };
    let to = words.next().filter(|to| to != "!").map(|to| with_lower_schemes(&to));
    Some(ProxyEntry { node, path, is_regex, is_inner, to, options: words.collect() })
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

/// What passes on all requests for `place` that rules lead there, although Apache passes on none:
/// with `[PT]` only those count that stand in a `<Location>`.
pub(crate) fn passes<'a>(
    server: &Server<'a>,
    place: &PlacePaths,
    is_passed: bool,
) -> Option<&'a ApacheNode> {
    let (PlacePaths::One(path) | PlacePaths::Below(path)) = place;
    let entries = entries(server);
    entries
        .iter()
        .find(|one| one.finds(path))
        .filter(|one| one.to.is_some() && (one.is_inner || !is_passed))
        .map(|one| one.node)
}

/// Expressions that find every path, with the part of it that is passed on.
const PLAIN: [&str; 3] = ["^(/.*)$", "^(.*)$", "^/(.*)$"];

/// Whether requests for this path are passed on, by an expression, too.
pub(crate) fn answers(entries: &[ProxyEntry<'_>], path: &str) -> bool {
    let first = entries.iter().find(|one| one.finds(path));
    first.is_some_and(|one| one.to.is_some())
}

/// Whether an address that is passed on stands before this path.
fn takes(entries: &[ProxyEntry<'_>], path: &str) -> bool {
    let first = entries.iter().find(|one| one.finds(path));
    first.is_some_and(|one| one.to.is_some() && !one.is_regex)
}

/// What an entry's location has in it.
pub(crate) struct Target {
    pass: String,
    /// Whether a request is changed to a WebSocket.
    pub(crate) upgrades: bool,
    is_fcgi: bool,
    pub(crate) is_tls: bool,
    /// The hosts of a balancer, one of which is the name in the certificate.
    pub(crate) names: Vec<String>,
    /// `Host` for a balancer, whose own name means nothing to its members.
    pub(crate) host: Option<String>,
}

impl Target {
    fn http(pass: &str, upgrades: bool) -> Self {
        let is_tls = pass.starts_with("https:");
        let pass = format!("proxy_pass {};", quoted(pass));
        Self { pass, upgrades, is_fcgi: false, is_tls, names: Vec::new(), host: None }
    }

    fn fcgi(to: &str) -> Self {
        let pass = format!("fastcgi_pass {};", quoted(to));
        Self { pass, upgrades: false, is_fcgi: true, is_tls: false, names: Vec::new(), host: None }
    }
}

fn target(server: &Server<'_>, to: &str) -> Option<Target> {
    if let Some((path, url)) = to.strip_prefix("unix:").and_then(|it| it.split_once('|')) {
        return match url.split_once("://")? {
            ("http", rest) => {
                let uri = rest.find('/').map_or("", |at| &rest[at..]);
                let uri = if uri.is_empty() { String::new() } else { format!(":{uri}") };
                Some(Target::http(&format!("http://unix:{path}{uri}"), false))
            }
            ("fcgi", _) => Some(Target::fcgi(&format!("unix:{path}"))),
            _ => None,
        };
    }
    let (scheme, rest) = to.split_once("://")?;
    match scheme {
        "http" | "https" => Some(Target::http(to, false)),
        "ws" => Some(Target::http(&format!("http://{rest}"), true)),
        "wss" => Some(Target::http(&format!("https://{rest}"), true)),
        "balancer" => {
            let uri = rest.find('/').map_or("", |at| &rest[at..]);
            let balancer = balancers::upstream(server, rest)?;
            let scheme = if balancer.is_tls { "https" } else { "http" };
            let path = &balancer.path[..];
            // A path without a slash at its end would run into that of the request.
            let end =
                if uri.is_empty() && !path.is_empty() && !path.ends_with('/') { "/" } else { "" };
            let target = format!("{scheme}://{}{path}{uri}{end}", balancer.label);
            let host = Some(balancer.host().to_owned());
            Some(Target { names: balancer.names, host, ..Target::http(&target, false) })
        }
        "fcgi" => Some(Target::fcgi(rest.split('/').next()?)),
        _ => None,
    }
}

/// Writes the locations of what is passed on. `heads` are those that are there already.
pub(crate) fn write(
    server: &Server<'_>,
    entries: &[ProxyEntry<'_>],
    heads: &mut Heads,
    out: &mut ConfText,
) {
    let mut split = below(server, entries);
    // One with a final slash has no location for the path alone.
    let own = written(entries).filter(|one| !one.path.ends_with('/'));
    let all = split.iter().cloned().chain(own.map(|one| one.path.clone())).collect();
    let mut writer = PlaceWriter { server, entries, apart: all, heads };
    for (at, one) in entries.iter().enumerate() {
        if is_late(entries, at) {
            out.note(&one.node.place, format!("ProxyPass {}: one before answers there", one.path));
            continue;
        }
        let Some(to) = &one.to else {
            writer.exception(one, out);
            continue;
        };
        writer.location(one, &one.path, to, out);
        if one.path.ends_with('/') && !one.is_regex {
            writer.without_slash(entries, at, out);
        }
        let inner: Vec<String> =
            split.iter().filter(|path| takes_here(entries, at, path)).cloned().collect();
        split.retain(|path| !inner.contains(path));
        for path in inner {
            let rest = &path[one.path.trim_end_matches('/').len()..];
            let to = format!("{}{rest}", to.trim_end_matches('/'));
            writer.location(one, &path, &to, out);
        }
    }
}

/// Whether one before answers where entry `at` would.
fn is_late(entries: &[ProxyEntry<'_>], at: usize) -> bool {
    let one = &entries[at];
    !one.is_regex && entries[..at].iter().any(|known| known.finds(&one.path))
}

/// The entries that get locations of their own, by their paths.
fn written<'e, 'a>(entries: &'e [ProxyEntry<'a>]) -> impl Iterator<Item = &'e ProxyEntry<'a>> {
    let all = entries.iter().enumerate();
    all.filter(|(at, one)| !one.is_regex && !is_late(entries, *at)).map(|(_, one)| one)
}

/// Whether entry `at` is the one that passes `path` on.
fn takes_here(entries: &[ProxyEntry<'_>], at: usize, path: &str) -> bool {
    let first = entries.iter().position(|one| !one.is_regex && covers(&one.path, path));
    first == Some(at) && entries[at].path.trim_end_matches('/') != path.trim_end_matches('/')
}

/// Paths of `<Location>` below what is passed on, where something else holds, without a final
/// slash.
fn below(server: &Server<'_>, entries: &[ProxyEntry<'_>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for section in server.all(&["<location", "<locationmatch"]) {
        let PathSet::Below(path) = matching::paths(section) else { continue };
        let path = bare(&path);
        let is_plain = path.starts_with('/') && !path.contains("//");
        let is_own = written(entries).any(|one| bare(&one.path) == path);
        if is_plain && !is_own && takes(entries, &path) && !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// Closes the paths of a place that an entry's expression finds, if nothing else is said of it.
fn close_found(
    server: &Server<'_>,
    entry: &ProxyEntry<'_>,
    paths: &PlacePaths,
    out: &mut ConfText,
) {
    let is_said = entry.to.as_deref().is_some_and(|to| {
        target(server, to).is_some_and(|target| target.is_fcgi) || entry.finds("/")
    });
    let found = PathSet::Matching(entry.path.clone()).reach(paths);
    if entry.is_regex && !is_said && found != Reach::Nothing {
        let regex = quoted_regex(&entry.path);
        out.put(&entry.node.place, format!("if ($uri ~ {regex}) {{ return 503; }}"));
    }
}

/// Closes what expressions pass on of a place that has files.
pub(crate) fn close_passed(
    server: &Server<'_>,
    entries: &[ProxyEntry<'_>],
    paths: &PlacePaths,
    out: &mut ConfText,
) {
    for entry in entries.iter().filter(|entry| entry.to.is_some()) {
        close_found(server, entry, paths, out);
    }
}

/// Writes the locations of a server.
struct PlaceWriter<'a, 'h> {
    server: &'a Server<'a>,
    entries: &'a [ProxyEntry<'a>],
    /// Paths that have locations of their own.
    apart: Vec<String>,
    heads: &'h mut Heads,
}

impl PlaceWriter<'_, '_> {
    fn exception(&mut self, one: &ProxyEntry<'_>, out: &mut ConfText) {
        if one.is_regex {
            out.comment_closed(&one.node.place, format_args!("{} {} !", one.node.name, one.path));
            let regex = quoted_regex(&one.path);
            return out.own(format!("location ~ {regex} {{ return 503; }}"));
        }
        let is_alone = one.path.ends_with('/')
            || one.path.rsplit('/').next().is_some_and(|it| it.contains('.'));
        let heads = match is_alone {
            true => vec![quoted(&one.path)],
            false => {
                vec![format!("= {}", quoted(&one.path)), quoted(&format!("{}/", one.path))]
            }
        };
        for head in heads {
            match self.heads.take(&head) {
                true => out.put(&one.node.place, format!("location {head} {{ }}")),
                false => out.note(&one.node.place, format!("ProxyPass {} !", one.path)),
            }
        }
    }

    /// The path of an entry without its final slash: it belongs to what is above it. Without a
    /// location for it, nginx would redirect it.
    fn without_slash(&mut self, entries: &[ProxyEntry<'_>], at: usize, out: &mut ConfText) {
        let path = bare(&entries[at].path);
        if path.is_empty() {
            return;
        }
        let above = entries.iter().enumerate().find(|(other, one)| {
            *other != at && !one.is_regex && covers(&one.path, &path) && bare(&one.path) != path
        });
        let passed = above.and_then(|(_, one)| Some((one, one.to.as_deref()?)));
        if let Some((one, to)) = passed.filter(|(_, to)| target(self.server, to).is_some()) {
            let rest = &path[one.path.trim_end_matches('/').len()..];
            let to = format!("{}{rest}", to.trim_end_matches('/'));
            return self.block(one, &PlacePaths::One(path), &to, out);
        }
        let head = format!("= {}", quoted(&path));
        if self.heads.take(&head) {
            out.put(&entries[at].node.place, format!("location {head} {{ }}"));
        }
    }

    /// One path: the location of what is below it, and the one of the path alone.
    fn location(&mut self, one: &ProxyEntry<'_>, path: &str, to: &str, out: &mut ConfText) {
        let place = &one.node.place;
        let refused = target(self.server, to).is_none()
            || has_variable(to) && !one.is_regex
            || !path.starts_with(['/', '^']);
        if refused {
            out.comment_closed(place, format_args!("{} {path} {to}", one.node.name));
            let head = match one.is_regex {
                true => format!("~ {}", quoted_regex(path)),
                false if path.is_empty() => "/".to_owned(),
                false => quoted(path),
            };
            if one.is_regex || self.heads.take(&head) {
                out.own(format!("location {head} {{ return 503; }}"));
            }
            return;
        }
        if one.is_regex {
            return self.matching(one, path, to, out);
        }
        if path.ends_with('/') {
            return self.block(one, &PlacePaths::Below(path.to_owned()), to, out);
        }
        self.block(one, &PlacePaths::One(path.to_owned()), to, out);
        let to = format!("{}/", to.trim_end_matches('/'));
        self.block(one, &PlacePaths::Below(format!("{path}/")), &to, out);
    }

    /// `ProxyPassMatch`, where it says what a plain location can say.
    fn matching(&mut self, one: &ProxyEntry<'_>, path: &str, to: &str, out: &mut ConfText) {
        let place = &one.node.place;
        let head = format!("~ {}", quoted_regex(path));
        let scripts = self.server.root().map(|(_, root)| format!("{root}/$1"));
        if to.starts_with("fcgi://") || to.starts_with("unix:") && to.contains("|fcgi:") {
            let file = to.rsplit_once("://").and_then(|(_, rest)| rest.split_once('/'));
            let fits =
                file.is_none_or(|(_, file)| file.is_empty() || Some(format!("/{file}")) == scripts);
            let Some(target) = target(self.server, to).filter(|it| fits && it.is_fcgi) else {
                out.comment_closed(place, format_args!("{} {path} {to}", one.node.name));
                return out.own(format!("location {head} {{ return 503; }}"));
            };
            out.open(place, format!("location {head}"));
            // Of `<Location>` and `<If>` the rules of its files take care.
            let url = &to[..to.find('$').unwrap_or(to.len())];
            let every = PlacePaths::Below("/".to_owned());
            let mut sections = access::sections(self.server, &every, Some(url), &[]);
            sections.retain(|section| section.node.lower.starts_with("<proxy"));
            access::write(&sections, out);
            php::split_path_info(r"\.php", out);
            out.put(place, target.pass);
            return out.close();
        }
        // `^(/.*)$ http://host$1` and the like: the whole path as it is.
        let plain = PLAIN.contains(&path);
        let host = to.strip_suffix("$1").map(|it| it.trim_end_matches('/'));
        match host.filter(|host| !has_variable(host)) {
            Some(host) if plain => {
                self.block(one, &PlacePaths::Below("/".to_owned()), &format!("{host}/"), out);
            }
            _ => {
                out.comment_closed(place, format_args!("{} {path} {to}", one.node.name));
                out.own(format!("location {head} {{ return 503; }}"));
            }
        }
    }

    /// Closes what an expression before takes from an entry: its location would not be asked.
    fn excepted(&self, one: &ProxyEntry<'_>, paths: &PlacePaths, out: &mut ConfText) {
        let at = self.entries.iter().position(|other| std::ptr::eq(other.node, one.node));
        let before = &self.entries[..at.unwrap_or(self.entries.len())];
        before.iter().for_each(|other| close_found(self.server, other, paths, out));
    }

    fn block(&mut self, one: &ProxyEntry<'_>, paths: &PlacePaths, to: &str, out: &mut ConfText) {
        let place = &one.node.place;
        let (head, path) = match paths {
            PlacePaths::One(path) => (format!("= {}", quoted(path)), path),
            PlacePaths::Below(path) => (format!("^~ {}", quoted(path)), path),
        };
        // An address without a path would get the path as it came.
        let is_bare = to.rsplit_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
        let to = match paths {
            PlacePaths::One(_) if is_bare => format!("{to}/"),
            _ => to.to_owned(),
        };
        let Some(target) = target(self.server, &to) else { return };
        if !self.heads.take(&head) {
            return out.note(place, format!("ProxyPass {path}: one before answers there"));
        }
        out.open(place, format!("location {head}"));
        self.excepted(one, paths, out);
        let sections = access::sections(self.server, paths, Some(&to), &self.apart);
        access::write(&sections, out);
        out.put(place, &target.pass[..]);
        if !target.is_fcgi {
            passing::write(self.server, one, path, &target, &sections, out);
        }
        out.close();
    }
}
