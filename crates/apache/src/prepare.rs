//! What is settled before anything is translated: paths as Apache understands them, handlers that
//! `Action` binds to a program, and addresses of clients that cannot be trusted.

use std::collections::BTreeMap;

use crate::access::has_say;
use crate::early;
use crate::networks::{is_private, network};
use crate::php;
use crate::settings::PROXIES;
use crate::tree::ApacheNode;

/// Whose word about the address of a client is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// That of proxies of one's own, or of none.
    Known,
    /// That of others: Apache takes no private address from them.
    ButPrivate,
    /// That of any, or of others in private networks.
    Any,
}

/// Settles a configuration. `types` is the text of a `types` block.
pub(crate) fn prepare(nodes: &mut Vec<ApacheNode>, types: &str) {
    early::settle(nodes);
    let mut actions: BTreeMap<String, ApacheNode> = BTreeMap::new();
    for node in nodes.iter() {
        node.each(&mut |node| {
            if node.lower == "action" && php::runner(&node.first()).is_none() {
                actions.insert(node.keyword(), node.clone());
            }
        });
    }
    let trust = trust(nodes);
    for node in nodes.iter_mut() {
        each(node, &mut |node| match &node.lower[..] {
            "<directory" | "documentroot" => settle_path(node, 0),
            "alias" | "scriptalias" => settle_path(node, 1),
            "addhandler" | "sethandler" | "addtype" | "forcetype" => by_program(node, &actions),
            "require" | "allow" | "deny" | "rewritecond" | "<if" | "<elseif" => {
                by_proxy(node, trust);
            }
            _ => {}
        });
    }
    // Media types have names of files without being named in the configuration.
    for (name, action) in actions {
        let names: Vec<&str> = types
            .split([';', '{', '}'])
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                words.next().filter(|own| own.eq_ignore_ascii_case(&name)).map(|_| words)
            })
            .flatten()
            .collect();
        if !names.is_empty() {
            let rest = format!("cgi-by-action:{name} {}", names.join(" "));
            let (name, lower) = ("AddHandler".to_owned(), "addhandler".to_owned());
            nodes.push(ApacheNode { name, lower, rest, ..action });
        }
    }
}

fn each(node: &mut ApacheNode, visit: &mut dyn FnMut(&mut ApacheNode)) {
    visit(node);
    node.children.iter_mut().for_each(|child| each(child, visit));
}

/// Writes the arguments anew.
fn set_words(node: &mut ApacheNode, words: &[String]) {
    let quoted = |word: &String| format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""));
    node.rest = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
}

/// The path without dots and doubled slashes.
fn settle_path(node: &mut ApacheNode, at: usize) {
    let mut words = node.words();
    let Some(path) = words.get(at).filter(|path| path.starts_with('/')) else { return };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    let mut plain = format!("/{}", parts.join("/"));
    if path.ends_with('/') && plain.len() > 1 {
        plain.push('/');
    }
    if plain != *path {
        words[at] = plain;
        set_words(node, &words);
    }
}

/// Names the handler or type of a program as one.
fn by_program(node: &mut ApacheNode, actions: &BTreeMap<String, ApacheNode>) {
    let mut words = node.words();
    let Some(first) = words.first_mut() else { return };
    if !actions.contains_key(&first.to_ascii_lowercase()) {
        return;
    }
    *first = format!("cgi-by-action:{first}");
    if node.lower == "forcetype" {
        (node.name, node.lower) = ("SetHandler".to_owned(), "sethandler".to_owned());
    }
    set_words(node, &words);
}

/// Whose word is taken by any server of a configuration with `RemoteIPHeader`.
fn trust(nodes: &[ApacheNode]) -> Trust {
    let lists = |nodes: &[ApacheNode]| -> Vec<ApacheNode> {
        nodes.iter().filter(|node| PROXIES.contains(&&node.lower[..])).cloned().collect()
    };
    let heads = |nodes: &[ApacheNode]| nodes.iter().any(|node| node.lower == "remoteipheader");
    let main = lists(nodes);
    let of = |nodes: &[ApacheNode], inherits: bool| {
        let own = lists(nodes);
        let all = if own.is_empty() { &main } else { &own };
        let others = || all.iter().filter(|node| node.lower == "remoteiptrustedproxy");
        // A proxy on the machine itself is no network in which there are others.
        let is_network =
            |word: &String| is_private(word) && !["127.0.0.1", "::1"].contains(&&word[..]);
        match (inherits || heads(nodes), all.is_empty(), others().next()) {
            (false, ..) | (true, false, None) => Trust::Known,
            (true, true, _) => Trust::Any,
            _ if others().any(|node| node.words().iter().any(is_network)) => Trust::Any,
            _ => Trust::ButPrivate,
        }
    };
    let servers = nodes.iter().filter(|node| node.lower == "<virtualhost");
    let own = of(nodes, false);
    let all: Vec<Trust> =
        servers.map(|node| of(&node.children, heads(nodes))).chain([own]).collect();
    match (all.contains(&Trust::Any), all.contains(&Trust::ButPrivate)) {
        (true, _) => Trust::Any,
        (false, true) => Trust::ButPrivate,
        (false, false) => Trust::Known,
    }
}

/// Makes what asks for the address of a client one that is not understood, where the address may be
/// another one than in Apache.
fn by_proxy(node: &mut ApacheNode, trust: Trust) {
    if trust == Trust::Known {
        return;
    }
    let upper = node.rest.to_ascii_uppercase();
    let asks = upper.contains("REMOTE_ADDR") || upper.contains("REMOTE_HOST");
    match &node.lower[..] {
        "rewritecond" if asks => node.rest.push_str(" [ByProxy]"),
        "<if" | "<elseif" if asks && has_say(node) => {
            node.rest = format!("\"by_proxy({})\"", node.rest.replace('"', "'"));
        }
        "require" | "allow" | "deny" => {
            let words = node.words();
            let is_rule =
                node.lower != "require" || words.iter().any(|it| matches!(&it[..], "ip" | "local"));
            let is_meant = |word: &String| match trust {
                Trust::Any => word == "local" || network(word).is_some(),
                _ => word == "local" || is_private(word),
            };
            if asks || is_rule && words.iter().any(is_meant) {
                node.name = "RequireByProxy".to_owned();
                node.lower = "requirebyproxy".to_owned();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::settle_path;
    use crate::tree::ApacheNode;

    #[test]
    fn paths_are_settled() {
        let rows = [
            ("/w/./.git", "\"/w/.git\""),
            ("\"/w/x/../.svn/\"", "\"/w/.svn/\""),
            ("/w//a", "\"/w/a\""),
            ("/w/a*", "/w/a*"),
            ("~ /w/./a", "~ /w/./a"),
            ("/..", "\"/\""),
        ];
        for (rest, wanted) in rows {
            let mut node = ApacheNode {
                place: crate::ConfPlace { file: "x".into(), line: 1 },
                name: "<Directory".to_owned(),
                lower: "<directory".to_owned(),
                rest: rest.to_owned(),
                children: Vec::new(),
            };
            settle_path(&mut node, 0);
            assert_eq!(node.rest, wanted);
        }
    }
}
