//! The Rust in `docs/recipes` must fit the tree: what it names is defined there, is a word of the
//! language or its library, or is what the recipe adds.
//!
//! Compiling it would take a copy of the tree with the recipe applied, so types are not checked.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::rust;

/// Where the recipes are.
const RECIPES: &str = "docs/recipes";
/// The words before the name of what a recipe adds.
const EXAMPLE: &str = "The worked example is `";

/// Appends every name in the recipes that nothing defines.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) {
    let mut known = HashSet::new();
    for directory in ["crates", "src", "tests"] {
        crate::tidy::walk(&root.join(directory), &mut |path| {
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path).unwrap_or_default();
                let code = rust::halves(&text).code;
                known.extend(rust::tokens(&code).iter().map(|token| token.text.to_owned()));
            }
        });
    }
    for entry in fs::read_dir(root.join(RECIPES)).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let name = format!("{RECIPES}/{}", entry.file_name().to_string_lossy());
        recipe(&name, &text, &known, problems);
    }
}

fn recipe(name: &str, text: &str, known: &HashSet<String>, problems: &mut Vec<String>) {
    let Some(example) = text.split_once(EXAMPLE).and_then(|(_, rest)| rest.split('`').next())
    else {
        if text.contains("```rust") {
            problems.push(format!("{name}: no line has \"{EXAMPLE}…`\""));
        }
        return;
    };
    let added = flat(example.split(' ').next().unwrap_or_default());
    for (line, block) in blocks(text) {
        let code = rust::halves(&block).code;
        if let Some(bracket) = unbalanced(&code) {
            problems.push(format!("{name}:{line}: the code has one {bracket} too many"));
        }
        let mut before = "";
        for token in rust::tokens(&code) {
            let is_name = token.text.starts_with(|char: char| char.is_alphabetic() || char == '_');
            let is_new = before == "fn" || flat(token.text) == added;
            if is_name && !is_new && !known.contains(token.text) && !defines(&block, token.text) {
                let line = line + token.line;
                problems.push(format!("{name}:{line}: no source has {}", token.text));
            }
            before = token.text;
        }
    }
}

/// The fenced blocks of Rust, each with the line before its first one.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match &mut open {
            None if line == "```rust" => open = Some((number, String::new())),
            None => {}
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some((_, block)) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    blocks
}

/// A name without what tells `RobotsOff`, `robots_off` and `$robots_off` apart.
fn flat(name: &str) -> String {
    name.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether the block itself has a function of this name.
fn defines(block: &str, name: &str) -> bool {
    block.contains(&format!("fn {name}("))
}

/// A bracket without its other half.
fn unbalanced(code: &str) -> Option<char> {
    let mut open = Vec::new();
    for char in code.chars() {
        let closes = match char {
            '(' | '[' | '{' => {
                open.push(char);
                continue;
            }
            ')' => '(',
            ']' => '[',
            '}' => '{',
            _ => continue,
        };
        if open.pop() != Some(closes) {
            return Some(char);
        }
    }
    open.pop()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::recipe;

    fn problems(code: &str) -> Vec<String> {
        let known = ["impl", "fn", "self", "out", "extend", "pub", "Vec", "u8", "mut"];
        let known: HashSet<String> = known.iter().map(|word| (*word).to_owned()).collect();
        let text = format!("The worked example is `upper on|off`.\n```rust\n{code}```\n");
        let mut problems = Vec::new();
        recipe("x.md", &text, &known, &mut problems);
        problems
    }

    #[test]
    fn what_the_tree_has_and_what_the_recipe_adds_is_fine() {
        let code = "impl Upper {\n    // prose is prose\n    fn feed(&self, out: &mut Vec<u8>) {\n\
                    out.extend(\"any text\"); self.feed()\n    }\n}\n";
        assert_eq!(problems(code), Vec::<String>::new());
    }

    #[test]
    fn what_was_renamed_is_reported_with_its_line() {
        let code = "impl Upper {\n    fn feed() { out.prolong(); }\n}\n";
        assert_eq!(problems(code), ["x.md:4: no source has prolong"]);
    }

    #[test]
    fn code_that_cannot_be_parsed_is_reported() {
        assert_eq!(problems("impl Upper {\n"), ["x.md:2: the code has one { too many"]);
        assert_eq!(problems("impl Upper {\n)\n"), ["x.md:2: the code has one ) too many"]);
    }

    #[test]
    fn a_recipe_with_code_says_what_it_adds() {
        let mut problems = Vec::new();
        recipe("x.md", "```rust\n```\n", &HashSet::new(), &mut problems);
        assert_eq!(problems.len(), 1);
    }
}
