//! Which crates have tests and examples in their sources, and whether Cargo builds them.
//!
//! A harness without a test costs as much as one with tests: a crate that has none says so in its
//! manifest. One that says so and has some would never run them.

use std::fs;
use std::path::Path;

use crate::tidy::walk;

/// What a manifest may switch off, what a crate then lacks, and how to find it in a source file.
type HarnessSwitch = (&'static str, &'static str, fn(&str) -> bool);

const SWITCHES: [HarnessSwitch; 2] = [
    ("doctest = false", "an example in a comment", has_example),
    ("test = false", "a test", has_test),
];

/// Every crate below `root` that has what it switched off, or runs what it does not have.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) {
    let Ok(crates) = fs::read_dir(root.join("crates")) else {
        return problems.push("crates: cannot be read".to_owned());
    };
    for place in crates.flatten().map(|entry| entry.path()) {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(manifest) = fs::read_to_string(place.join("Cargo.toml")) else {
            problems.push(format!("crates/{name}/Cargo.toml: cannot be read"));
            continue;
        };
        let mut has = [false; SWITCHES.len()];
        walk(&place.join("src"), &mut |file| {
            let text = fs::read_to_string(file).unwrap_or_default();
            for ((.., finds), has) in SWITCHES.iter().zip(&mut has) {
                *has |= finds(&text);
            }
        });
        for ((switch, what, _), has) in SWITCHES.into_iter().zip(has) {
            let is_off = is_switched_off(&manifest, switch);
            if has && is_off {
                problems.push(format!("crates/{name}: has {what}, and `{switch}`"));
            }
            if !has && !is_off {
                problems.push(format!("crates/{name}: has not {what}: [lib] needs `{switch}`"));
            }
        }
    }
}

/// Whether the library of a manifest has the switch.
fn is_switched_off(manifest: &str, switch: &str) -> bool {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lib]").skip(1);
    lines.take_while(|line| !line.starts_with('[')).any(|line| line == switch)
}

fn has_test(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "#[test]")
}

/// Whether a comment of the documentation has a block that rustdoc would run.
fn has_example(text: &str) -> bool {
    let mut is_open = false;
    for line in text.lines().map(str::trim) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(kind) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else {
            continue;
        };
        is_open = !is_open;
        let is_code = kind.is_empty() || kind.starts_with("rust") || kind.contains("should_panic");
        if is_open && is_code {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{has_example, has_test, is_switched_off};

    #[test]
    fn examples_are_blocks_without_another_language() {
        assert!(has_example("/// ```\n/// let a = 1;\n/// ```\n"));
        assert!(has_example("//! ```rust,no_run\n//! ```\n"));
        assert!(has_example("/// ```text\n/// a\n/// ```\n/// ```\n/// let a = 1;\n/// ```\n"));
        assert!(!has_example("/// ```text\n/// a\n/// ```\n// ```\n"));
    }

    #[test]
    fn tests_are_attributes() {
        assert!(has_test("    #[test]\n    fn a() {}\n"));
        assert!(!has_test("// #[test]\n"));
    }

    #[test]
    fn a_switch_counts_in_the_library_only() {
        assert!(is_switched_off("[lib]\npath = \"a\"\ntest = false\n[lints]\n", "test = false"));
        assert!(!is_switched_off("[lib]\n[[bin]]\ntest = false\n", "test = false"));
        assert!(!is_switched_off("[lib]\ndoctest = false\n", "test = false"));
    }
}
