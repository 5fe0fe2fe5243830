//! Which crate may depend on which. Arrows only go down this table; nobody calls up.

use std::fs;
use std::path::Path;

/// Product crates, lowest first, each with all it may depend on.
const TABLE: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("http", &["base"]),
    ("io", &["base"]),
    ("esi", &["base", "http"]),
    ("ssi", &["base", "http"]),
    ("wire", &["base", "http"]),
    ("tls", &["base"]),
    ("quic", &["base"]),
    ("conf", &["base", "http"]),
    ("files", &["base", "http"]),
    ("upstream", &["base", "http", "wire", "conf"]),
    ("cache", &["base", "http", "esi"]),
    ("engine", &["base", "http", "conf", "files", "upstream", "esi", "ssi", "cache"]),
    (
        "worker",
        &[
            "base", "http", "wire", "conf", "files", "upstream", "esi", "ssi", "cache", "engine",
            "io", "tls", "quic",
        ],
    ),
    (
        "sim",
        &[
            "base", "http", "wire", "conf", "files", "upstream", "esi", "ssi", "cache", "engine",
            "io", "tls", "quic", "worker", "testkit",
        ],
    ),
    ("testkit", &[]),
    ("xtask", &[]),
];

/// Every edge that the table does not allow, and every crate that it does not know.
#[must_use]
pub fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let Ok(entries) = fs::read_dir(root.join("crates")) else {
        return vec!["crates/ cannot be read".to_owned()];
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((_, allowed)) = TABLE.iter().find(|(known, _)| *known == name) else {
            problems.push(format!("crates/{name}: not in the table of layers"));
            continue;
        };
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
        for dependency in dependencies(&manifest) {
            let internal = TABLE.iter().any(|(known, _)| *known == dependency);
            if internal && !allowed.contains(&dependency) {
                problems.push(format!("crates/{name}: must not depend on {dependency}"));
            }
        }
    }
    problems
}

/// Names in the `[dependencies]` section of a manifest.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_dependency_section_counts() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\nbase.workspace = true\n\
                        http = { path = \"../http\" }\n[dev-dependencies]\nwire.workspace = true\n";
        assert_eq!(super::dependencies(manifest).collect::<Vec<_>>(), ["base", "http"]);
    }
}
