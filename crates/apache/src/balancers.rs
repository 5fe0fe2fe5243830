//! `<Proxy balancer://…>` as `upstream`.

use crate::access;
use crate::out::ConfText;
use crate::server::Server;
use crate::tree::ApacheNode;

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
    let first = node.first();
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

/// The `upstream` that `balancer://REST` means in a server.
pub(crate) fn upstream(server: &Server<'_>, rest: &str) -> Option<String> {
    let name = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let own = label(server.own, &name, server.main.is_empty());
    own.or_else(|| label(server.main, &name, true))
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
            ("proxyset", _) if child.rest.contains("lbmethod=bybusyness") => {
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
            lower if access::is_about_access(lower) => {
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
