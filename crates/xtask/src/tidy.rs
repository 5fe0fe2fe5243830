//! Style that a program can check: lengths, headers, forbidden words.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{documents, harnesses, recipes};

/// Columns of a line of Rust.
const COLUMNS_MAX: usize = 100;
/// Lines of a source file without its tests.
const LINES_MAX: usize = 800;
/// Lines of a file of tests.
const TEST_LINES_MAX: usize = 1500;
/// The only places for `unsafe`: the wrappers around system calls, those around the X.509 of the
/// cryptographic library (docs/decisions/0019), and those around PCRE (0027).
const UNSAFE_IN: [&str; 3] =
    ["crates/io/src/sys", "crates/tls/src/x509.rs", "crates/regex/src/library"];

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every offence in the sources and documents below `root`.
#[must_use]
pub fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for directory in ["src", "crates", "tests", "fuzz"] {
        walk(&root.join(directory), &mut |path| {
            if path.extension().is_some_and(|extension| extension == "rs") {
                source(root, path, &mut problems);
            }
        });
    }
    documents::check(root, &mut problems);
    recipes::check(root, &mut problems);
    harnesses::check(root, &mut problems);
    problems.sort();
    problems
}

pub(crate) fn walk(directory: &Path, visit: &mut impl FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name() != "target" {
                walk(&path, visit);
            }
        } else {
            visit(&path);
        }
    }
}

fn source(root: &Path, path: &Path, problems: &mut Vec<String>) {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let name = name.trim_start_matches("./").to_owned();
    let Ok(text) = fs::read_to_string(path) else {
        return problems.push(format!("{name}: cannot be read as text"));
    };
    if !text.starts_with("//!") && !text.starts_with("#!") {
        problems.push(format!("{name}: does not begin with what it owns (//!)"));
    }
    if path.file_name().is_some_and(|file| file == "mod.rs") {
        problems.push(format!("{name}: is a mod.rs"));
    }
    let is_test =
        name.contains("/tests/") || name.ends_with("/tests.rs") || name.starts_with("tests");
    let own = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
    let (lines, max) =
        if is_test { (text.lines().count(), TEST_LINES_MAX) } else { (own, LINES_MAX) };
    if lines > max {
        problems.push(format!("{name}: {lines} lines, {max} allowed"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        if line.chars().count() > COLUMNS_MAX && !line.contains("http") && !line.contains("r\"") {
            problems.push(format!("{name}:{number}: longer than {COLUMNS_MAX} columns"));
        }
        for word in ["TO\x44O", "FIX\x4dE", "X\x58X:"] {
            if line.contains(word) {
                problems.push(format!("{name}:{number}: {word} (do it, or file an issue)"));
            }
        }
        let code = line.split("//").next().unwrap_or("");
        let dangerous = code.contains("unsafe {") || code.contains("unsafe fn");
        let is_known = UNSAFE_IN.iter().any(|place| name.starts_with(place));
        if dangerous && !is_known && !name.contains("xtask") && !is_test {
            problems.push(format!("{name}:{number}: unsafe outside {}", UNSAFE_IN.join(", ")));
        }
    }
}
