//! Counts that may move in one direction only, beside those that `counts.toml` allows.
//!
//! Each section of that file is a `Rule`, each key a crate, a type or a name.

mod circles;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::rust::{self, Token};
use crate::tidy;

/// Where the allowed numbers stand.
const FILE: &str = "crates/xtask/counts.toml";
/// Methods in the inherent impls of a type that need no mention.
const METHODS_MAX: usize = 60;
/// Files that import each other, in one circle, that need no mention.
const CIRCLE_MAX: usize = 12;
/// Lines of a file without its tests that need no mention.
const LINES_MAX: usize = 500;
/// Crates whose invariants are asserted.
const ASSERTING: &[&str] = &["cache", "engine", "wire", "worker"];
const ASSERTIONS: &[&str] =
    &["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"];
/// Indefinite pronouns for persons: a comment names its subject.
const PRONOUNS: &[&str] = &[
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "someone",
    "anyone",
    "everyone",
    "whoever",
    "whom",
    "whomever",
    "nobody's",
    "somebody's",
    "anybody's",
    "someone's",
    "anyone's",
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rule {
    /// Indefinite pronouns in the comments of a crate.
    Pronouns,
    /// Places where a type that other files can see has the same name.
    DuplicateTypes,
    /// Methods of a type, if more than [`METHODS_MAX`].
    Methods,
    /// Files of a crate in circles of more than [`CIRCLE_MAX`].
    Circles,
    /// Files of a crate with more than [`LINES_MAX`] lines.
    LongFiles,
    /// Assertions outside tests; the only count that should rise.
    Assertions,
}

impl Rule {
    const ALL: [Self; 6] = [
        Self::Pronouns,
        Self::DuplicateTypes,
        Self::Methods,
        Self::Circles,
        Self::LongFiles,
        Self::Assertions,
    ];

    const fn section(self) -> &'static str {
        match self {
            Self::Pronouns => "indefinite_pronouns",
            Self::DuplicateTypes => "duplicate_types",
            Self::Methods => "methods_above_60",
            Self::Circles => "files_in_circles_above_12",
            Self::LongFiles => "files_above_500_lines",
            Self::Assertions => "assertions_per_10000_lines",
        }
    }
}

/// A number and where it comes from.
#[derive(Default)]
struct Count {
    value: usize,
    places: Vec<String>,
}

impl Count {
    fn add(&mut self, place: String) {
        self.value += 1;
        self.places.push(place);
    }
}

type Counts = BTreeMap<(Rule, String), Count>;

/// What the counts of a tree say beside the allowed ones.
pub struct Verdict {
    /// Counts that got worse, with names and places.
    pub problems: Vec<String>,
    /// Lines to write into the file of allowed counts, for those that got better.
    pub better: Vec<String>,
}

/// Compares the tree below `root` with the allowed counts.
#[must_use]
pub fn check(root: &Path) -> Verdict {
    let allowed = parse(&fs::read_to_string(root.join(FILE)).unwrap_or_default());
    compare(&allowed, &count(&read(root)))
}

/// Writes the counts of the tree as the allowed ones.
///
/// # Errors
/// Those of writing the file.
pub fn write(root: &Path) -> std::io::Result<()> {
    fs::write(root.join(FILE), print(&count(&read(root))))
}

fn compare(allowed: &BTreeMap<(String, String), usize>, counts: &Counts) -> Verdict {
    let mut verdict = Verdict { problems: Vec::new(), better: Vec::new() };
    let mut old = allowed.clone();
    for ((rule, key), count) in counts {
        let section = rule.section();
        let was = old.remove(&(section.to_owned(), key.clone())).unwrap_or(0);
        let (worse, better) = match rule {
            Rule::Assertions => (count.value < was, count.value > was),
            _ => (count.value > was, count.value < was),
        };
        if worse {
            let places = count.places.join("\n    ");
            let value = count.value;
            verdict
                .problems
                .push(format!("{FILE}: [{section}] {key}: {value}, {was} allowed\n    {places}"));
        }
        if better {
            verdict.better.push(format!("[{section}] {key} = {}", count.value));
        }
    }
    let gone = old.into_keys().map(|(section, key)| format!("[{section}] without {key}"));
    verdict.better.extend(gone);
    verdict
}

/// The keys and numbers of the file, by section.
fn parse(text: &str) -> BTreeMap<(String, String), usize> {
    let mut section = "";
    let mut allowed = BTreeMap::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        }
        let pair =
            line.split_once(" = ").map(|(key, value)| (key.trim_matches('"'), value.parse()));
        if let Some((key, Ok(value))) = pair {
            allowed.insert((section.to_owned(), key.to_owned()), value);
        }
    }
    allowed
}

fn print(counts: &Counts) -> String {
    let mut text = "# What `cargo x tidy` allows; `cargo x tidy --write` writes what it counts.\n\
                    # The numbers fall, those of the assertions rise.\n"
        .to_owned();
    for rule in Rule::ALL {
        let _ = write!(text, "\n[{}]\n", rule.section());
        for ((_, key), count) in counts.iter().filter(|((of, _), _)| *of == rule) {
            let bare = key.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
            let quote = if bare { "" } else { "\"" };
            let _ = writeln!(text, "{quote}{key}{quote} = {}", count.value);
        }
    }
    text
}

/// One file of a crate.
struct SourceFile {
    krate: String,
    path: String,
    /// Without comments, literals and items under `cfg(test)`.
    code: String,
    comments: String,
    /// Lines before the tests.
    lines: usize,
    /// Paths without extension of modules that exist in tests only.
    test_modules: Vec<String>,
    is_test: bool,
}

impl SourceFile {
    fn new(path: &str, text: &str) -> Self {
        let rust::Halves { mut code, comments } = rust::halves(text);
        let directory = match path.rsplit_once('/') {
            Some((directory, "lib.rs" | "main.rs")) => directory,
            _ => path.trim_end_matches(".rs"),
        };
        let modules = rust::remove_tests(&mut code);
        let krate = path.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
        let root = if path.starts_with("src/") { "bolide" } else { "tests" };
        Self {
            krate: krate.unwrap_or(root).to_owned(),
            path: path.to_owned(),
            code,
            comments,
            lines: text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count(),
            test_modules: modules.iter().map(|name| format!("{directory}/{name}")).collect(),
            is_test: !path.contains("src/")
                || path.contains("/tests/")
                || path.ends_with("/tests.rs"),
        }
    }

    fn tokens(&self) -> Vec<Token<'_>> {
        rust::tokens(&self.code)
    }
}

fn read(root: &Path) -> Vec<SourceFile> {
    let mut files = Vec::new();
    for directory in ["src", "crates", "tests"] {
        tidy::walk(&root.join(directory), &mut |path| {
            let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
            if let Some(text) = fs::read_to_string(path).ok().filter(|_| name.ends_with(".rs")) {
                files.push(SourceFile::new(name.trim_start_matches("./"), &text));
            }
        });
    }
    let modules: Vec<String> =
        files.iter_mut().flat_map(|file| std::mem::take(&mut file.test_modules)).collect();
    for file in &mut files {
        file.is_test |= modules.iter().any(|module| {
            file.path.strip_prefix(module.as_str()).is_some_and(|rest| rest.starts_with(['.', '/']))
        });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn count(files: &[SourceFile]) -> Counts {
    let mut counts = Counts::new();
    for file in files {
        pronouns(file, &mut counts);
    }
    let product: Vec<&SourceFile> = files.iter().filter(|file| !file.is_test).collect();
    let mut definitions = Definitions::new();
    for file in &product {
        types(file, &mut counts, &mut definitions);
    }
    let mut methods = Counts::new();
    for file in &product {
        inherent_methods(file, &definitions, &mut methods);
        if file.lines > LINES_MAX {
            let place = format!("{}: {} lines", file.path, file.lines);
            counts.entry((Rule::LongFiles, file.krate.clone())).or_default().add(place);
        }
    }
    counts.extend(methods.into_iter().filter(|(_, count)| count.value > METHODS_MAX));
    counts.retain(|(rule, _), count| *rule != Rule::DuplicateTypes || count.value > 1);
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for &file in &product {
        crates.entry(&file.krate).or_default().push(file);
    }
    for (krate, files) in crates {
        for circle in circles::circles(&files) {
            for index in circle.iter().filter(|_| circle.len() > CIRCLE_MAX) {
                let count = counts.entry((Rule::Circles, krate.to_owned())).or_default();
                count.add(files[*index].path.clone());
            }
        }
        if ASSERTING.contains(&krate) {
            counts.insert((Rule::Assertions, krate.to_owned()), assertions(&files));
        }
    }
    counts
}

fn pronouns(file: &SourceFile, counts: &mut Counts) {
    for (number, line) in (1..).zip(file.comments.lines()) {
        let words = line.split(|char: char| !char.is_alphabetic() && char != '\'');
        for word in words.map(str::to_lowercase).filter(|word| PRONOUNS.contains(&word.as_str())) {
            let count = counts.entry((Rule::Pronouns, file.krate.clone())).or_default();
            count.add(format!("{}:{number}: {word}", file.path));
        }
    }
}

/// The files that define a type, by crate and name.
type Definitions<'a> = BTreeMap<(&'a str, String), Vec<&'a str>>;

/// Types of a file; those with `pub`, whatever it is restricted to, are counted.
fn types<'a>(file: &'a SourceFile, counts: &mut Counts, definitions: &mut Definitions<'a>) {
    let tokens = file.tokens();
    for at in 1..tokens.len().saturating_sub(1) {
        let (before, name) = (&tokens[at - 1], &tokens[at + 1]);
        let is_kind = matches!(tokens[at].text, "struct" | "enum" | "union" | "trait" | "type");
        if !is_kind || !name.text.starts_with(char::is_uppercase) {
            continue;
        }
        definitions.entry((&file.krate, name.text.to_owned())).or_default().push(&file.path);
        if matches!(before.text, "pub" | ")") {
            let count = counts.entry((Rule::DuplicateTypes, name.text.to_owned())).or_default();
            count.add(format!("{}:{}", file.path, name.line));
        }
    }
}

/// A type's name, with its file where its crate has several of that name: that file which lies
/// nearest to the one of the impl.
fn qualified(file: &SourceFile, name: &str, definitions: &Definitions<'_>) -> String {
    let places = definitions.get(&(file.krate.as_str(), name.to_owned()));
    let Some(places) = places.filter(|places| places.len() > 1) else {
        return format!("{}::{name}", file.krate);
    };
    let near = |path: &str| path.bytes().zip(file.path.bytes()).take_while(|(a, b)| a == b).count();
    let nearest = places.iter().max_by_key(|path| near(path.trim_end_matches(".rs")));
    format!("{}::{name}", nearest.unwrap_or(&""))
}

fn inherent_methods(file: &SourceFile, definitions: &Definitions<'_>, counts: &mut Counts) {
    let tokens = file.tokens();
    for at in 0..tokens.len() {
        let begins = at == 0 || matches!(tokens[at - 1].text, "}" | "{" | ";" | "]" | "unsafe");
        if tokens[at].text != "impl" || !begins {
            continue;
        }
        let Some((name, body)) = inherent_impl(&tokens[at + 1..]) else { continue };
        let mut depth = 0_usize;
        let mut methods = 0;
        for token in body {
            match token.text {
                "{" => depth += 1,
                "}" if depth == 1 => break,
                "}" => depth -= 1,
                "fn" if depth == 1 => methods += 1,
                _ => {}
            }
        }
        let key = (Rule::Methods, qualified(file, name, definitions));
        let count = counts.entry(key).or_default();
        count.value += methods;
        count.places.push(format!("{}:{}: {methods}", file.path, tokens[at].line));
    }
}

/// The type's name and the tokens from the body's brace on; nothing for the impl of a trait.
fn inherent_impl<'a, 'b>(tokens: &'b [Token<'a>]) -> Option<(&'a str, &'b [Token<'a>])> {
    let mut angles = 0_usize;
    let mut name = "";
    let mut is_named = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "<" => angles += 1,
            ">" => angles = angles.saturating_sub(1),
            "{" => return Some((name, &tokens[at..])),
            "for" if angles == 0 && !is_named => return None,
            "where" => is_named = true,
            word if angles == 0 && !is_named && word.starts_with(char::is_alphabetic) => {
                name = word;
            }
            _ => {}
        }
    }
    None
}

/// Assertions of a crate per 10,000 lines; entries for fuzzers are tests.
fn assertions(files: &[&SourceFile]) -> Count {
    let files = files.iter().filter(|file| !file.path.contains("fuzz"));
    let (mut lines, mut found) = (0, 0);
    for file in files {
        lines += file.lines;
        let tokens = file.tokens();
        let calls = tokens.windows(2).filter(|pair| pair[1].text == "!");
        found += calls.filter(|pair| ASSERTIONS.contains(&pair[0].text)).count();
    }
    let value = found * 10_000 / lines.max(1);
    Count { value, places: vec![format!("{found} assertions in {lines} lines")] }
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, compare, count, parse, print};

    fn counted(files: &[(&str, &str)]) -> super::Counts {
        count(&files.iter().map(|(path, text)| SourceFile::new(path, text)).collect::<Vec<_>>())
    }

    #[test]
    fn each_count_finds_its_offences_and_nothing_else() {
        let methods = "fn m(&self) { fn inner() {} }\n".repeat(61);
        let text = format!(
            "// Whom nobody's dog bit; \"who\" is fine.\npub struct Twin;\n\
             const S: &str = \"nobody\";\n\
             impl<T: Fn() -> u8> Big<T> {{\n{methods}}}\nimpl Clone for Twin {{ fn a() {{}} }}\n\
             fn f() {{ assert!(true); }}\n#[cfg(test)]\nmod tests {{ pub struct Twin; }}\n{}",
            "\n".repeat(500)
        );
        let long = format!("pub(crate) enum Twin {{}}\n{}", "\n".repeat(500));
        let counts = counted(&[("crates/wire/src/a.rs", &text), ("src/b.rs", &long)]);
        let text = print(&counts);
        let wanted = "\n[indefinite_pronouns]\nwire = 2\n\n[duplicate_types]\nTwin = 2\n\n\
                      [methods_above_60]\n\"wire::Big\" = 61\n\n[files_in_circles_above_12]\n\n\
                      [files_above_500_lines]\nbolide = 1\n\n\
                      [assertions_per_10000_lines]\nwire = 147\n";
        assert!(text.ends_with(wanted), "{text}");
        let verdict = compare(&parse(&text), &counts);
        assert!(verdict.problems.is_empty() && verdict.better.is_empty());
    }

    #[test]
    fn a_worse_count_names_its_places_and_a_better_one_its_line() {
        let counts = counted(&[("crates/wire/src/a.rs", "// nobody\nfn f() { assert!(true); }")]);
        let old = "[indefinite_pronouns]\nio = 1\n[assertions_per_10000_lines]\nwire = 4000\n";
        let verdict = compare(&parse(old), &counts);
        let worse = "crates/xtask/counts.toml: [indefinite_pronouns] wire: 1, 0 allowed\n    \
                     crates/wire/src/a.rs:1: nobody";
        assert_eq!(verdict.problems, [worse]);
        let better =
            ["[assertions_per_10000_lines] wire = 5000", "[indefinite_pronouns] without io"];
        assert_eq!(verdict.better, better);
        let old = old.replace("4000", "6000");
        assert_eq!(compare(&parse(&old), &counts).problems.len(), 2);
    }
}
