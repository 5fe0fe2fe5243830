//! What is settled before anything is translated: paths as Apache understands them, handlers that
//! `Action` binds to a program, and addresses of clients that cannot be trusted.

use std::collections::BTreeSet;

use crate::networks::is_private;
use crate::php;
use crate::settings::PROXIES;
use crate::tree::ApacheNode;

/// Settles a configuration.
pub(crate) fn prepare(nodes: &mut [ApacheNode]) {
    let mut actions = BTreeSet::new();
    for node in nodes.iter() {
        node.each(&mut |node| {
            if node.lower == "action" && php::runner(&node.first()).is_none() {
                actions.insert(node.first().to_ascii_lowercase());
            }
        });
    }
    let trusts_any = trusts_any(nodes);
    for node in nodes {
        each(node, &mut |node| match &node.lower[..] {
            "<directory" | "documentroot" => settle_path(node, 0),
            "alias" | "scriptalias" => settle_path(node, 1),
            "addhandler" | "sethandler" | "addtype" | "forcetype" => by_program(node, &actions),
            "require" | "allow" | "deny" if trusts_any => by_any_proxy(node),
            _ => {}
        });
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
fn by_program(node: &mut ApacheNode, actions: &BTreeSet<String>) {
    let mut words = node.words();
    let Some(first) = words.first_mut() else { return };
    if !actions.contains(&first.to_ascii_lowercase()) {
        return;
    }
    *first = format!("cgi-by-action:{first}");
    if node.lower == "forcetype" {
        (node.name, node.lower) = ("SetHandler".to_owned(), "sethandler".to_owned());
    }
    set_words(node, &words);
}

/// Whether a `RemoteIPHeader` counts without a list of proxies: any client is trusted then, unless
/// it names a private address.
fn trusts_any(nodes: &[ApacheNode]) -> bool {
    let main_lists = nodes.iter().any(|node| PROXIES.contains(&&node.lower[..]));
    let is_bare = |nodes: &[ApacheNode], has_lists: bool| {
        nodes.iter().any(|node| node.lower == "remoteipheader")
            && !has_lists
            && !nodes.iter().any(|node| PROXIES.contains(&&node.lower[..]))
    };
    let mut servers = nodes.iter().filter(|node| node.lower == "<virtualhost");
    is_bare(nodes, main_lists) || servers.any(|node| is_bare(&node.children, main_lists))
}

/// Makes a rule about private addresses one that is not understood.
fn by_any_proxy(node: &mut ApacheNode) {
    let words = node.words();
    let is_rule =
        node.lower != "require" || words.iter().any(|word| matches!(&word[..], "ip" | "local"));
    let is_meant = |word: &String| word == "local" || is_private(word);
    if is_rule && words.iter().any(is_meant) {
        node.name = "RequireByAnyProxy".to_owned();
        node.lower = "requirebyanyproxy".to_owned();
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
