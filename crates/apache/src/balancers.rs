//! `<Proxy balancer://…>` as `upstream`.

use crate::access;
use crate::out::ConfText;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::{has_variable, with_lower_schemes};

/// Writes the `upstream` of each balancer: of the main server, and of each of the others, which may
/// have one of the same name.
pub(crate) fn write<'a>(
    main: &'a [ApacheNode],
    others: impl Iterator<Item = &'a [ApacheNode]>,
    out: &mut ConfText,
) {
    for (nodes, is_main) in std::iter::once((main, true)).chain(others.map(|own| (own, false))) {
        let mut done: Vec<String> = Vec::new();
        for section in nodes {
            let Some(name) = name_of(section).filter(|name| !done.contains(name)) else { continue };
            let all: Vec<&ApacheNode> =
                nodes.iter().filter(|node| name_of(node).as_ref() == Some(&name)).collect();
            match label(nodes, &name, is_main) {
                Some(label) => balancer(&all, &label, out),
                None => all.iter().for_each(|section| notes(section, out)),
            }
            done.push(name);
        }
    }
}

/// The name of the balancer that a section is about.
fn name_of(node: &ApacheNode) -> Option<String> {
    let first = with_lower_schemes(&node.first());
    let name = first.strip_prefix("balancer://").filter(|_| node.lower == "<proxy")?;
    Some(name.split('/').next().unwrap_or_default().to_ascii_lowercase())
}

/// The name of the `upstream` for a balancer; none without members.
fn label(nodes: &[ApacheNode], name: &str, is_main: bool) -> Option<String> {
    let first = nodes.iter().find(|node| {
        name_of(node).as_deref() == Some(name)
            && node.children.iter().any(|child| child.lower == "balancermember")
    })?;
    let own = match is_main {
        true => String::new(),
        false => format!("_{}_{}", first.place.file, first.place.line),
    };
    let is_other = |one: char| !one.is_ascii_alphanumeric() && one != '-';
    Some(format!("balancer_{name}{own}").replace(is_other, "_"))
}

/// An `upstream` as it is passed to.
#[derive(Debug)]
pub(crate) struct Balancer {
    pub(crate) label: String,
    pub(crate) is_tls: bool,
    /// The names of its members, without ports.
    pub(crate) names: Vec<String>,
    /// The path that all members have, which precedes that of requests.
    pub(crate) path: String,
    /// The addresses of its members, with their paths.
    pub(crate) members: Vec<String>,
}

impl Balancer {
    /// What backends get as `Host`: the first member's, where they have several.
    pub(crate) fn host(&self) -> &str {
        let first = self.members.first().and_then(|url| url.split_once("://"));
        first.map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default())
    }
}

/// What `balancer://REST` means in a server; none where some members have TLS and others not, where
/// their paths differ, or where one is reached otherwise than by HTTP.
pub(crate) fn upstream(server: &Server<'_>, rest: &str) -> Option<Balancer> {
    let name = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let own = label(server.own, &name, server.main.is_empty()).map(|it| (it, server.own));
    let found = own.or_else(|| label(server.main, &name, true).map(|it| (it, server.main)));
    let (label, nodes) = found?;
    let sections = nodes.iter().filter(|node| name_of(node).as_ref() == Some(&name));
    let members = sections.flat_map(|section| &section.children);
    let mut own =
        Balancer { label, is_tls: false, names: vec![], path: String::new(), members: vec![] };
    for node in members.filter(|node| node.lower == "balancermember") {
        let url = with_lower_schemes(&node.first());
        let (scheme, rest) = url.split_once("://")?;
        let is_tls = has_tls(scheme);
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        let is_first = own.members.is_empty();
        let is_same = is_tls == own.is_tls && path == own.path;
        if !is_http(scheme) || has_variable(path) || !is_first && !is_same {
            return None;
        }
        (own.is_tls, own.path) = (is_tls, path.to_owned());
        let host = host_of(rest).0.to_owned();
        if !own.names.contains(&host) {
            own.names.push(host);
        }
        if !own.members.contains(&url) {
            own.members.push(url);
        }
    }
    (!own.members.is_empty()).then_some(own)
}

/// Whether a scheme of Apache's is one of HTTP.
fn is_http(scheme: &str) -> bool {
    ["http", "https", "ws", "wss"].iter().any(|it| scheme.eq_ignore_ascii_case(it))
}

/// Whether a scheme of Apache's is one with TLS.
fn has_tls(scheme: &str) -> bool {
    ["https", "wss"].iter().any(|it| scheme.eq_ignore_ascii_case(it))
}

/// The host of what follows a scheme, and whether it has a port.
fn host_of(rest: &str) -> (&str, bool) {
    let whole = rest.split('/').next().unwrap_or_default();
    match whole.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, true),
        _ => (whole, false),
    }
}

/// One `upstream`.
fn balancer(sections: &[&ApacheNode], label: &str, out: &mut ConfText) {
    let Some(first) = sections.first() else { return };
    out.open(&first.place, format!("upstream {label}"));
    let mut has_member = false;
    for child in sections.iter().flat_map(|section| &section.children) {
        let words = child.words();
        match (&child.lower[..], words.first()) {
            ("balancermember", Some(url)) => {
                has_member |= member(child, url, &words[1..], out);
            }
            ("proxyset", _) if child.rest.to_ascii_lowercase().contains("lbmethod=bybusyness") => {
                out.put(&child.place, "least_conn;");
            }
            _ => {}
        }
    }
    if !has_member {
        // An upstream without servers is an error.
        out.own("server 127.0.0.1:9 down;");
    }
    sections.iter().for_each(|section| notes(section, out));
    out.close();
}

/// Tells of what a section has besides its members.
fn notes(section: &ApacheNode, out: &mut ConfText) {
    for child in &section.children {
        let text = format!("{} {}", child.name, child.rest);
        match &child.lower[..] {
            "balancermember" => {}
            lower if access::is_about_access(lower) || lower.starts_with("sslproxy") => {
                out.note(&child.place, format!("{text}: where it is passed on"));
            }
            _ => out.note(&child.place, format!("{text}: not translated")),
        }
    }
}

fn member(node: &ApacheNode, url: &str, options: &[String], out: &mut ConfText) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        out.note(&node.place, format!("BalancerMember {url}: not understood"));
        return false;
    };
    if !is_http(scheme) {
        out.note(&node.place, format!("BalancerMember {url}: not reached by HTTP"));
        return false;
    }
    let host = rest.split('/').next().unwrap_or_default();
    let port = match (host_of(rest).1, has_tls(scheme)) {
        (true, _) => "",
        (false, true) => ":443",
        (false, false) => ":80",
    };
    let mut text = format!("server {host}{port}");
    for option in options {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let flags = value.to_ascii_uppercase();
        match &name.to_ascii_lowercase()[..] {
            "loadfactor" if value.parse::<u32>().is_ok() => {
                text.push_str(&format!(" weight={value}"));
            }
            "status" if flags.contains('H') => text.push_str(" backup"),
            "status" if flags.contains('D') => text.push_str(" down"),
            "retry" if value.parse::<u32>().is_ok() => {
                text.push_str(&format!(" fail_timeout={value}"));
            }
            _ => out.note(&node.place, format!("BalancerMember … {option}: not translated")),
        }
    }
    out.put(&node.place, format!("{text};"));
    true
}
