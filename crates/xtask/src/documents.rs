//! What documents say of the tree must be true: paths, functions, crates, commands.
//!
//! Looks at what stands in backquotes, and at commands in fenced blocks; prose is left alone.

use std::fs;
use std::path::Path;

/// How a word in backquotes begins that is meant as a path from the root.
const PATHS: &[&str] =
    &["crates/", "src/", "docs/", "tests/", "scripts/", "bench/", "fuzz/", "demo/", "conf/"];

/// Appends every untrue statement of the documents below `root`.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) {
    for directory in ["docs", "docs/decisions", "."] {
        let Ok(entries) = fs::read_dir(root.join(directory)) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                document(root, name.trim_start_matches("./"), &text, problems);
            }
        }
    }
    map(root, problems);
}

fn document(root: &Path, name: &str, text: &str, problems: &mut Vec<String>) {
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let mut judge = |quoted: &str| {
            let wrong = command(root, quoted).or_else(|| reference(root, quoted));
            problems.extend(wrong.map(|why| format!("{name}:{number}: {why}")));
        };
        if fenced {
            judge(line.split(" #").next().unwrap_or(line).trim());
        } else {
            line.split('`').skip(1).step_by(2).for_each(&mut judge);
        }
    }
}

/// What is wrong with `path` or `path.rs::function`.
fn reference(root: &Path, quoted: &str) -> Option<String> {
    let is_path = PATHS.iter().any(|start| quoted.starts_with(start));
    if !is_path || quoted.contains(['*', '{', '<', ' ', '…']) {
        return None;
    }
    let (path, function) = match quoted.split_once("::") {
        Some((path, function)) => (path, Some(function)),
        None => (quoted, None),
    };
    if !root.join(path).exists() {
        return Some(format!("{path} does not exist"));
    }
    let text = fs::read_to_string(root.join(path)).unwrap_or_default();
    let function = function.filter(|function| !defines(&text, function))?;
    Some(format!("{path} has no fn {function}"))
}

/// Whether Rust text has a function of this name.
fn defines(text: &str, function: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("fn ") {
        if after.strip_prefix(function).is_some_and(|tail| tail.starts_with(['(', '<'])) {
            return true;
        }
        rest = after;
    }
    false
}

/// What is wrong with a command: a target that `make` has not, a test that nobody wrote.
fn command(root: &Path, quoted: &str) -> Option<String> {
    let mut words = quoted.split_whitespace();
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    match (words.next()?, words.next()?) {
        ("make", target) => {
            let rule = format!("{target}:");
            let known = read("Makefile").lines().any(|line| line.starts_with(&rule));
            (!known).then(|| format!("make has no target {target}"))
        }
        ("cargo", "test") => {
            let filter = quoted.split_once("--test main ")?.1.split(' ').next()?;
            if filter == "NAME" {
                return None;
            }
            let modules = read("tests/main.rs");
            let known = modules.lines().any(|line| {
                line.strip_prefix("mod ").is_some_and(|module| module.contains(filter))
            });
            (!known).then(|| format!("tests/main.rs has no module like {filter}"))
        }
        _ => None,
    }
}

/// The map shows every crate.
fn map(root: &Path, problems: &mut Vec<String>) {
    const MAP: &str = "docs/ARCHITECTURE.md";
    let text = fs::read_to_string(root.join(MAP)).unwrap_or_default();
    let Ok(entries) = fs::read_dir(root.join("crates")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !text.contains(&format!("`crates/{name}`")) {
            problems.push(format!("{MAP}: crates/{name} is not on the map"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{command, defines, document};

    #[test]
    fn a_function_is_found_by_its_whole_name() {
        let text = "impl A { pub(crate) fn turn<T>(&self) {} }\nasync fn run() {}";
        assert!(defines(text, "turn") && defines(text, "run"));
        assert!(!defines(text, "tur") && !defines(text, "turned") && !defines("run()", "run"));
    }

    #[test]
    fn untrue_words_are_reported_with_their_line() {
        let mut problems = Vec::new();
        let text = "`src/main.rs` and `src/main.rs::main`\n`src/no.rs`\n`src/main.rs::nothing`\n\
                    `make dinner`\n```sh\nmake run  # good\nmake bed\n```\n`src/*.rs` `a/b`\n";
        document(&crate::tidy::root(), "x.md", text, &mut problems);
        let wanted = [
            "x.md:2: src/no.rs does not exist",
            "x.md:3: src/main.rs has no fn nothing",
            "x.md:4: make has no target dinner",
            "x.md:7: make has no target bed",
        ];
        assert_eq!(problems, wanted);
        let root = crate::tidy::root();
        assert_eq!(command(&root, "cargo test --test main h2"), None);
        assert!(command(&root, "cargo test --test main nothing").is_some());
    }
}
