//! Circles of modules in one crate: files that reach each other by `crate::`, `super::` and
//! paths to child modules. A name that a module re-exports leads to the file it comes from.

use std::collections::BTreeMap;

use super::SourceFile;
use crate::rust::Token;

/// How many re-exports a path may lead through.
const REEXPORTS_MAX: usize = 8;

/// A module's path from the root of its crate; the root's is empty.
type Module = Vec<String>;

/// The groups of files of a crate that import each other, as indices; without single files.
pub(super) fn circles(files: &[&SourceFile]) -> Vec<Vec<usize>> {
    let graph = Graph::new(files);
    let edges: Vec<Vec<usize>> = graph.modules.iter().map(|module| graph.edges(module)).collect();
    let reached: Vec<Vec<bool>> = (0..files.len()).map(|from| reach(&edges, from)).collect();
    let mut circles: Vec<Vec<usize>> = (0..files.len())
        .map(|a| (0..files.len()).filter(|&b| reached[a][b] && reached[b][a]).collect())
        .filter(|circle: &Vec<usize>| circle.len() > 1)
        .collect();
    circles.sort();
    circles.dedup();
    circles
}

/// Which files `from` reaches, over any number of edges.
fn reach(edges: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for &to in &edges[file] {
            if !std::mem::replace(&mut reached[to], true) {
                next.push(to);
            }
        }
    }
    reached
}

struct Graph {
    /// The module that each file is, by index.
    modules: Vec<Module>,
    files: BTreeMap<Module, usize>,
    /// Every path that a file names.
    paths: Vec<Vec<Path>>,
}

/// `crate::a::b` or `use super::c as d`.
struct Path {
    segments: Vec<String>,
    /// The name that a `use` binds.
    binding: Option<String>,
}

impl Graph {
    fn new(files: &[&SourceFile]) -> Self {
        let modules: Vec<Module> = files.iter().map(|file| module(&file.path)).collect();
        let by_module = modules.iter().cloned().zip(0..).collect();
        let paths = files.iter().map(|file| paths(&file.tokens())).collect();
        Self { modules, files: by_module, paths }
    }

    fn edges(&self, module: &Module) -> Vec<usize> {
        let Some(&from) = self.files.get(module) else { return Vec::new() };
        let ends = self.paths[from].iter().filter_map(|path| {
            self.resolve(module, &path.segments, REEXPORTS_MAX).filter(|&to| to != from)
        });
        ends.collect()
    }

    /// The file in which a path that `module` names ends; nothing if it leaves the crate.
    fn resolve(&self, module: &Module, segments: &[String], reexports: usize) -> Option<usize> {
        let mut at = module.clone();
        let mut rest = segments;
        let mut is_ours = false;
        while let Some((first, after)) = rest.split_first() {
            let mut child = at.clone();
            child.push(first.clone());
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                _ if self.files.contains_key(&child) => at = child,
                _ => break,
            }
            is_ours = true;
            rest = after;
        }
        if !is_ours {
            return None;
        }
        let file = *self.files.get(&at)?;
        let reexport = rest.first().filter(|_| reexports > 0 && at != *module).and_then(|name| {
            self.paths[file].iter().find(|path| path.binding.as_ref() == Some(name))
        });
        let target = reexport.and_then(|path| self.resolve(&at, &path.segments, reexports - 1));
        target.or(Some(file))
    }
}

/// The module of `crates/x/src/a/b.rs` is `a::b`.
fn module(path: &str) -> Module {
    let inner = path.rsplit_once("src/").map_or(path, |(_, inner)| inner).trim_end_matches(".rs");
    let segments = inner.split('/').map(str::to_owned);
    if matches!(inner, "lib" | "main") { Vec::new() } else { segments.collect() }
}

fn paths(tokens: &[Token<'_>]) -> Vec<Path> {
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_use = tokens[at].text == "use";
        at += usize::from(is_use);
        let is_path = tokens.get(at + 1).is_some_and(|next| next.text == "::");
        if is_use || is_path && is_name(tokens[at].text) {
            at = tree(tokens, at, &[], is_use, &mut paths).max(at + 1);
        } else {
            at += 1;
        }
    }
    paths
}

/// Reads `a::b::{c, d as e}` from `at` on; returns where it ends.
fn tree(
    tokens: &[Token<'_>],
    mut at: usize,
    prefix: &[String],
    is_use: bool,
    paths: &mut Vec<Path>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut segments = prefix.to_vec();
    while is_name(text(at)) {
        segments.push(text(at).to_owned());
        at += 1;
        if text(at) != "::" {
            break;
        }
        at += 1;
    }
    if is_use && text(at) == "{" {
        while !matches!(text(at), "}" | ";" | "") {
            at = tree(tokens, at + 1, &segments, is_use, paths);
        }
        return at + 1;
    }
    let is_renamed = is_use && text(at) == "as";
    let name = if is_renamed { Some(text(at + 1).to_owned()) } else { segments.last().cloned() };
    at += if is_renamed { 2 } else { usize::from(text(at) == "*") };
    if segments.len() > prefix.len() || segments.len() > 1 {
        paths.push(Path { segments, binding: name.filter(|_| is_use) });
    }
    at
}

fn is_name(text: &str) -> bool {
    text.starts_with(|char: char| char.is_alphabetic() || char == '_') && text != "as"
}

#[cfg(test)]
mod tests {
    use super::super::SourceFile;
    use super::circles;

    #[test]
    fn files_that_reach_each_other_are_a_circle() {
        let files = [
            SourceFile::new("crates/x/src/lib.rs", "mod a; mod b; mod c; mod d;\npub use a::A;"),
            SourceFile::new("crates/x/src/a.rs", "mod e; use crate::b::{self, B as C};"),
            SourceFile::new("crates/x/src/b.rs", "fn f() { let _ = super::c::g(std::mem::drop); }"),
            SourceFile::new("crates/x/src/c.rs", "use {crate::{A, d::D}, std::fmt};"),
            SourceFile::new(
                "crates/x/src/d.rs",
                "// use crate::a;\nconst TEXT: &str = \"super::a\";",
            ),
            SourceFile::new("crates/x/src/a/e.rs", "use super::super::d;"),
        ];
        let files: Vec<_> = files.iter().collect();
        assert_eq!(circles(&files), [vec![1, 2, 3]]);
    }
}
