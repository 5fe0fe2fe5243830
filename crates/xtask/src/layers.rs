//! Which crate may depend on which. Arrows only go down this table.
//!
//! A crate in `crates/NAME` is the package `bolide-NAME`, so that no name collides with one of
//! crates.io or of the standard library.

use std::fs;
use std::path::Path;

/// Product crates, lowest first, each with all it may depend on.
const TABLE: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("http", &["base"]),
    ("io", &["base"]),
    ("regex", &["base"]),
    ("esi", &["base", "http"]),
    ("ssi", &["base", "http"]),
    ("htaccess", &["base", "http", "regex"]),
    ("apache", &["htaccess"]),
    ("wire", &["base", "http"]),
    ("tls", &["base"]),
    ("quic", &["base"]),
    ("resolver", &["base"]),
    ("geoip", &["base"]),
    ("acme", &["base", "io", "tls"]),
    ("conf", &["base", "http", "htaccess", "regex"]),
    ("files", &["base", "http"]),
    ("patterns", &["conf"]),
    ("password", &["base"]),
    ("limit", &["conf"]),
    ("log", &["base", "http", "conf", "files"]),
    ("upstream", &["base", "http", "wire", "conf"]),
    ("cache", &["base", "http", "esi", "regex"]),
    ("cluster", &["cache"]),
    ("valkey", &["cluster"]),
    (
        "engine",
        &[
            "base", "http", "conf", "files", "upstream", "esi", "ssi", "cache", "geoip",
            "htaccess", "patterns", "password", "limit", "log",
        ],
    ),
    (
        "worker",
        &[
            "base", "http", "wire", "conf", "files", "upstream", "esi", "ssi", "cache", "engine",
            "io", "tls", "quic", "resolver",
        ],
    ),
    (
        "sim",
        &[
            "base", "http", "wire", "conf", "files", "upstream", "esi", "ssi", "cache", "engine",
            "io", "tls", "quic", "resolver", "worker", "testkit",
        ],
    ),
    ("world", &["base", "http", "conf", "files", "upstream", "esi", "ssi", "cache", "engine"]),
    (
        "fuzz-entries",
        &[
            "base", "http", "wire", "conf", "files", "upstream", "esi", "ssi", "cache", "cluster",
            "engine", "io", "tls", "quic", "resolver", "geoip", "htaccess", "world",
        ],
    ),
    ("testkit", &[]),
    ("xtask", &[]),
];

/// Crates for tests alone, which the server is built without.
const TESTS_ONLY: &[&str] = &["sim", "world", "fuzz-entries", "testkit", "xtask"];

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
            if !allowed.contains(&dependency) {
                problems.push(format!("crates/{name}: must not depend on {dependency}"));
            }
        }
    }
    let server = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    for dependency in dependencies(&server).filter(|name| TESTS_ONLY.contains(name)) {
        problems.push(format!("Cargo.toml: the server must not depend on {dependency}"));
    }
    problems
}

/// The prefix of our packages.
const PREFIX: &str = "bolide-";

/// Directories of our packages that the `[dependencies]` section of a manifest names.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', '=', ' ']).next()?.strip_prefix(PREFIX))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_dependency_section_counts() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\nbolide-base.workspace = true\n\
                        bolide-http = { path = \"../http\" }\nbytes = \"1\"\n\
                        [dev-dependencies]\nbolide-wire.workspace = true\n";
        assert_eq!(super::dependencies(manifest).collect::<Vec<_>>(), ["base", "http"]);
    }
}
