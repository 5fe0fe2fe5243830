//! Documents must be true of the tree: paths, functions, crates, commands.
//!
//! Checks the text in backquotes, and commands in fenced blocks; prose is not checked.

use std::fs;
use std::path::Path;

/// The prefixes of words in backquotes that are paths from the root.
const PATHS: &[&str] = &[
    "crates/",
    "src/",
    "docs/",
    "tests/",
    "scripts/",
    "bench/",
    "fuzz/",
    "demo/",
    "conf/",
    "packaging/",
];

/// Appends every untrue statement of the documents below `root`.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) {
    for directory in ["docs", "docs/decisions", "docs/moving-from", "docs/recipes", "."] {
        let Ok(entries) = fs::read_dir(root.join(directory)) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                let name = name.trim_start_matches("./");
                document(root, name, &text, problems);
                links(&path, name, &text, problems);
            }
        }
    }
    types(root, problems);
    map(root, problems);
    decisions(root, problems);
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

/// Every link to a file of the tree leads to one.
fn links(path: &Path, name: &str, text: &str, problems: &mut Vec<String>) {
    let directory = path.parent().unwrap_or(path);
    for (number, line) in (1..).zip(text.lines()) {
        for after in line.split("](").skip(1) {
            let target = after.split([')', '#']).next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !target.is_empty() && !is_elsewhere && !directory.join(target).exists() {
                problems.push(format!("{name}:{number}: {target} does not exist"));
            }
        }
    }
}

/// The documents that name types and their variants.
const NAMING: &[&str] =
    &["docs/ARCHITECTURE.md", "docs/life-of-a-request.md", "docs/who-owns-what.md"];

/// Every `Type` and `Type::Variant` is defined in the sources.
fn types(root: &Path, problems: &mut Vec<String>) {
    let mut sources = Vec::new();
    read_sources(&root.join("crates"), &mut sources);
    read_sources(&root.join("src"), &mut sources);
    for name in NAMING {
        let text = fs::read_to_string(root.join(name)).unwrap_or_default();
        for (number, line) in (1..).zip(text.lines()) {
            for quoted in line.split('`').skip(1).step_by(2) {
                let wrong = missing_type(&sources, quoted);
                problems.extend(wrong.map(|why| format!("{name}:{number}: {why}")));
            }
        }
    }
}

/// Appends the text of every Rust file below `directory`.
fn read_sources(directory: &Path, sources: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.extend(fs::read_to_string(path));
        }
    }
}

/// The error in `Type` or `Type::Member`; other words are left alone.
fn missing_type(sources: &[String], quoted: &str) -> Option<String> {
    let (name, member) = match quoted.split_once("::") {
        Some((name, member)) => (name, Some(member)),
        None => (quoted, None),
    };
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // Methods and fields of HTTP begin like types; a variant makes clear what is meant.
    let is_type = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.contains(|c: char| c.is_ascii_lowercase())
        && is_word(name)
        && member.is_none_or(is_word);
    if !is_type || ELSEWHERE.contains(&name) {
        return None;
    }
    let defined = ["enum", "struct", "trait", "type"].map(|kind| format!("{kind} {name}"));
    let defines = |text: &str| {
        defined.iter().any(|line| {
            text.split(&**line).skip(1).any(|rest| !rest.starts_with(|c: char| is_word_char(c)))
        })
    };
    let found = sources.iter().find(|text| {
        defines(text) && member.is_none_or(|member| text.contains(&format!(" {member}")))
    });
    found.is_none().then(|| format!("no type {quoted} in the sources"))
}

const fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Words of HTTP and types of the standard library.
const ELSEWHERE: &[&str] = &["Arc", "Connection", "Date", "Host", "Instant", "Vary"];

/// The error in `path` or `path.rs::function`.
fn reference(root: &Path, quoted: &str) -> Option<String> {
    let is_path = PATHS.iter().any(|start| quoted.starts_with(start));
    // A blank makes it a command, but for a file and a function.
    let is_command = quoted.contains(' ') && !quoted.contains(".rs::");
    if !is_path || is_command || quoted.contains(['*', '{', '<', '…']) {
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

/// The error in a command: a missing target of `make`, test or package.
fn command(root: &Path, quoted: &str) -> Option<String> {
    if quoted.starts_with("cargo ")
        && let Some((_, rest)) = quoted.split_once(" -p ")
        && let Some(name) = rest.split_whitespace().next()
        && !is_package(root, name)
    {
        return Some(format!("there is no package {name}"));
    }
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

/// Whether the workspace has a package of this name.
fn is_package(root: &Path, name: &str) -> bool {
    let line = format!("name = \"{name}\"");
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let manifests = crates.map(|entry| entry.path().join("Cargo.toml"));
    manifests.chain([root.join("Cargo.toml")]).any(|path| {
        fs::read_to_string(path).is_ok_and(|text| text.lines().any(|known| known == line))
    })
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

/// The index of decisions names every page beside it.
fn decisions(root: &Path, problems: &mut Vec<String>) {
    const INDEX: &str = "docs/decisions/README.md";
    let text = fs::read_to_string(root.join(INDEX)).unwrap_or_default();
    let Ok(entries) = fs::read_dir(root.join("docs/decisions")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "README.md" && !text.contains(&format!("({name})")) {
            problems.push(format!("{INDEX}: {name} is not in the index"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{command, decisions, defines, document, links, missing_type};

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
        assert_eq!(command(&root, "cargo test -p xtask tidy"), None);
        assert!(command(&root, "cargo run -p nothing").is_some());
    }

    #[test]
    fn types_and_variants_that_no_source_defines_are_reported() {
        let sources = ["pub enum Wake {\n    Probed,\n}\nstruct WakeUp;\n".to_owned()];
        for known in ["Wake", "Wake::Probed", "WakeUp", "wake", "GET", "Accept-Encoding", "a/b"] {
            assert_eq!(missing_type(&sources, known), None, "{known}");
        }
        for unknown in ["Wak", "Wake::Filled", "Event::Request"] {
            assert!(missing_type(&sources, unknown).is_some(), "{unknown}");
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_reported_with_their_line() {
        let mut problems = Vec::new();
        let text = "[a](ARCHITECTURE.md#threads) [b](https://a.test/no.md) [c](#here)\n\
                    [d](../README.md), [e](decisions/none.md)\n";
        let path = crate::tidy::root().join("docs/x.md");
        links(&path, "docs/x.md", text, &mut problems);
        assert_eq!(problems, ["docs/x.md:2: decisions/none.md does not exist"]);
    }

    #[test]
    fn a_decision_that_the_index_leaves_out_is_reported() {
        let root = bolide_testkit::site::TempDir::new();
        std::fs::create_dir_all(root.join("docs/decisions")).unwrap();
        for (name, text) in [("README.md", "[1](0001-a.md)"), ("0001-a.md", ""), ("0002-b.md", "")]
        {
            std::fs::write(root.join("docs/decisions").join(name), text).unwrap();
        }
        let mut problems = Vec::new();
        decisions(&root, &mut problems);
        assert_eq!(problems, ["docs/decisions/README.md: 0002-b.md is not in the index"]);
    }
}
