//! What a configuration consists of, block by block, so that two of them can be compared.
//!
//! Keeps labels and hashes, and no text: an outline of the configuration in force costs eight bytes
//! for each directive.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::ast::{Node, Tree};
use crate::lex::quote;
use crate::reader::show;

/// LIMIT: names of a server that its label has.
const NAMES_SHOWN: usize = 3;
/// The block whose blocks are told of one by one.
const HTTP: &[u8] = b"http";

/// The blocks of a configuration in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    entries: Vec<OutlineEntry>,
}

/// One block with all inside it, or the directives of `main` or `http` that are not in blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OutlineEntry {
    /// Finds the same block in another configuration.
    key: u64,
    label: Box<str>,
    /// A hash of each directive with the blocks around it.
    lines: Vec<u64>,
}

/// A difference between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineChange {
    /// The block: `server shop.example`, `upstream php`, `http` for directives that are in no
    /// block of it.
    pub label: String,
    /// What became of it.
    pub kind: OutlineChangeKind,
}

/// What became of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutlineChangeKind {
    /// It is new; where it stands.
    Added {
        /// `FILE:LINE`
        place: String,
    },
    /// It is gone.
    Removed,
    /// It has other directives.
    Changed {
        /// `FILE:LINE`
        place: String,
        /// The new directives, with the blocks around them.
        added: Vec<String>,
        /// How many are gone.
        gone: usize,
    },
    /// It has the same directives, or blocks, in another order.
    Reordered,
}

impl Outline {
    /// The outline of a configuration as it was read.
    #[must_use]
    pub fn new(tree: &Tree) -> Self {
        let entry = |written: Written<'_>| OutlineEntry {
            key: written.key(),
            label: written.label().into(),
            lines: written.lines().iter().map(|line| hash(line)).collect(),
        };
        Self { entries: blocks(tree).map(entry).collect() }
    }

    /// What is different in `tree`.
    #[must_use]
    pub fn changes(&self, tree: &Tree) -> Vec<OutlineChange> {
        // Several blocks may have the same key: they are matched in their order.
        let mut known: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate().rev() {
            known.entry(entry.key).or_default().push(at);
        }
        let (mut changes, mut matched) = (Vec::new(), Vec::new());
        for written in blocks(tree) {
            let old = known.get_mut(&written.key()).and_then(Vec::pop);
            let kind = match old {
                None => Some(OutlineChangeKind::Added { place: written.place(tree) }),
                Some(at) => {
                    matched.push(at);
                    self.entries[at].difference(&written, tree)
                }
            };
            changes.extend(kind.map(|kind| OutlineChange { label: written.label(), kind }));
        }
        let mut removed: Vec<usize> = known.into_values().flatten().collect();
        removed.sort_unstable();
        changes.extend(removed.into_iter().map(|at| OutlineChange {
            label: self.entries[at].label.to_string(),
            kind: OutlineChangeKind::Removed,
        }));
        if !matched.is_sorted() {
            let label = "blocks of http".to_owned();
            changes.push(OutlineChange { label, kind: OutlineChangeKind::Reordered });
        }
        changes
    }
}

impl OutlineEntry {
    /// What is different in the same block of another configuration.
    fn difference(&self, new: &Written<'_>, tree: &Tree) -> Option<OutlineChangeKind> {
        let lines = new.lines();
        let mut left: HashMap<u64, usize> = HashMap::new();
        for line in &self.lines {
            *left.entry(*line).or_default() += 1;
        }
        let mut added = Vec::new();
        for line in &lines {
            match left.get_mut(&hash(line)) {
                Some(count @ 1..) => *count -= 1,
                _ => added.push(show(line).into_owned()),
            }
        }
        let gone = left.into_values().sum();
        if !added.is_empty() || gone > 0 {
            return Some(OutlineChangeKind::Changed { place: new.place(tree), added, gone });
        }
        let is_same = self.lines.iter().copied().eq(lines.iter().map(|line| hash(line)));
        (!is_same).then_some(OutlineChangeKind::Reordered)
    }
}

/// What an entry is made of.
struct Written<'a> {
    /// `main` or `http`, for directives that are not in blocks.
    around: &'static str,
    nodes: Vec<&'a Node>,
}

impl Written<'_> {
    /// The block; `None` for directives that are in none.
    fn block(&self) -> Option<&Node> {
        self.nodes.first().copied().filter(|node| node.block.is_some())
    }

    fn label(&self) -> String {
        let Some(node) = self.block() else { return self.around.to_owned() };
        if node.name() != b"server" {
            return show(&words(node)).into_owned();
        }
        let names = said(node, b"server_name");
        let all: Vec<String> =
            names.iter().take(NAMES_SHOWN).map(|name| show(name).into()).collect();
        let more = if names.len() > NAMES_SHOWN { " …" } else { "" };
        match all.is_empty() {
            false => format!("server {}{more}", all.join(" ")),
            true => {
                let listens = said(node, b"listen");
                let first = listens.first().map_or_else(|| "80".into(), |word| show(word));
                format!("server without a name, listen {first}")
            }
        }
    }

    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.around.hash(&mut hasher);
        if let Some(node) = self.block() {
            words(node).hash(&mut hasher);
            if node.name() == b"server" {
                said(node, b"server_name").hash(&mut hasher);
                said(node, b"listen").hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Every directive with the blocks around it.
    fn lines(&self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for node in &self.nodes {
            match &node.block {
                Some(block) => flatten(&block.nodes, &mut Vec::new(), &mut lines),
                None => lines.push([&*words(node), b";"].concat()),
            }
        }
        lines
    }

    fn place(&self, tree: &Tree) -> String {
        let Some(node) = self.nodes.first() else { return String::new() };
        let file = tree.names.get(node.file as usize).map_or("", |name| name);
        format!("{file}:{}", node.line)
    }
}

/// The entries of a configuration.
fn blocks(tree: &Tree) -> impl Iterator<Item = Written<'_>> {
    let http = tree.nodes.iter().filter(|node| node.name() == HTTP);
    let inside: Vec<&Node> =
        http.filter_map(|node| node.block.as_ref()).flat_map(|block| &block.nodes).collect();
    let outside = tree.nodes.iter().filter(|node| node.name() != HTTP).collect();
    [("main", outside), ("http", inside)].into_iter().flat_map(|(around, nodes)| {
        let (blocks, plain): (Vec<_>, Vec<_>) =
            nodes.into_iter().partition(|node: &&Node| node.block.is_some());
        std::iter::once(Written { around, nodes: plain })
            .chain(blocks.into_iter().map(move |node| Written { around, nodes: vec![node] }))
    })
}

/// All arguments of the directives of this name in a block.
fn said<'a>(node: &'a Node, name: &[u8]) -> Vec<&'a [u8]> {
    let nodes = node.block.iter().flat_map(|block| &block.nodes);
    nodes.filter(|inner| inner.name() == name).flat_map(Node::args).collect()
}

fn flatten(nodes: &[Node], around: &mut Vec<Vec<u8>>, lines: &mut Vec<Vec<u8>>) {
    for node in nodes {
        let own = words(node);
        let inner = node.block.as_ref();
        if inner.is_none_or(|block| block.nodes.is_empty()) {
            let mut line = Vec::new();
            for outer in around.iter() {
                line.extend_from_slice(outer);
                line.extend_from_slice(b" { ");
            }
            line.extend_from_slice(&own);
            line.extend_from_slice(if inner.is_some() { b" { }" } else { b";" });
            line.extend(b" }".repeat(around.len()));
            lines.push(line);
        } else if let Some(block) = inner {
            around.push(own);
            flatten(&block.nodes, around, lines);
            around.pop();
        }
    }
}

/// The words of a directive; those that need it in quotes.
fn words(node: &Node) -> Vec<u8> {
    let mut text = Vec::new();
    for (at, word) in std::iter::once(node.name()).chain(node.args()).enumerate() {
        if at > 0 {
            text.push(b' ');
        }
        let is_special =
            |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b';' | b'{' | b'}' | b'"');
        match word.is_empty() || word.iter().any(is_special) {
            true => quote(word, &mut text),
            false => text.extend_from_slice(word),
        }
    }
    text
}

fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io;
    use std::net::IpAddr;
    use std::path::Path;

    use super::{Outline, OutlineChangeKind};
    use crate::ast::{Tree, load};
    use crate::source::ConfSource;

    /// A source of one file.
    struct OneFile<'a>(&'a str);

    impl ConfSource for OneFile<'_> {
        fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
            Ok(self.0.as_bytes().to_vec())
        }

        fn list(&self, _: &Path) -> io::Result<Vec<OsString>> {
            Ok(Vec::new())
        }

        fn resolve(&self, _: &str) -> Vec<IpAddr> {
            Vec::new()
        }
    }

    fn tree(text: &str) -> Tree {
        load(&OneFile(text), Path::new("/a.conf"), "")
    }

    const OLD: &str = "user www; events { }
        http {
            gzip on;
            upstream a { server 127.0.0.1:1; }
            server { listen 80; server_name a b; location / { root /x; } location /y { } }
            server { listen 81; return 200; }
        }";

    fn changes(from: &str, to: &str) -> Vec<(String, String)> {
        let old = OLD.replace(from, to);
        let all = Outline::new(&tree(OLD)).changes(&tree(&old));
        let text = |kind: OutlineChangeKind| match kind {
            OutlineChangeKind::Added { place } => format!("added {place}"),
            OutlineChangeKind::Removed => "removed".to_owned(),
            OutlineChangeKind::Reordered => "reordered".to_owned(),
            OutlineChangeKind::Changed { place, added, gone } => {
                format!("{place} -{gone} {}", added.join(" + "))
            }
        };
        all.into_iter().map(|change| (change.label, text(change.kind))).collect()
    }

    #[test]
    fn the_same_configuration_is_no_change_however_it_is_laid_out() {
        assert!(changes("", "").is_empty());
        assert!(changes("gzip on;", "gzip   \"on\" ;\n# with a remark\n").is_empty());
    }

    #[test]
    fn each_block_is_told_of_by_what_became_of_it() {
        let one = |label: &str, text: &str| vec![(label.to_owned(), text.to_owned())];
        assert_eq!(changes("user www", "user me"), one("main", "/a.conf:1 -1 user me;"));
        assert_eq!(changes("gzip on", "gzip off"), one("http", "/a.conf:3 -1 gzip off;"));
        let added = one("server a b", "/a.conf:5 -1 location / { root \"/z y\"; }");
        assert_eq!(changes("root /x", "root '/z y'"), added);
        assert_eq!(changes("location /y { }", ""), one("server a b", "/a.conf:5 -1 "));
        let new = one("server without a name, listen 82", "added /a.conf:6");
        assert_eq!(changes("server { listen 81", "server { listen 82; } server { listen 81"), new);
        assert_eq!(changes("upstream a { server 127.0.0.1:1; }", ""), one("upstream a", "removed"));
        let servers =
            "server { listen 80; server_name a b; location / { root /x; } location /y { } }
            server { listen 81; return 200; }";
        let (first, second) = servers.split_once('\n').unwrap();
        let turned = format!("{second}\n{first}");
        assert_eq!(changes(servers, &turned), one("blocks of http", "reordered"));
        let locations = "location / { root /x; } location /y { }";
        let turned = "location /y { } location / { root /x; }";
        assert_eq!(changes(locations, turned), one("server a b", "reordered"));
    }
}
