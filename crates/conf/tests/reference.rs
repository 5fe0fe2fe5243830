//! `docs/reference/` is what the tables say, and every example in it is read without a complaint.
//!
//! `BOLIDE_WRITE_REFERENCE=1 cargo test -p conf reference` writes the pages anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use conf::directive::{Contexts, Directive, Inherit};
use conf::{Options, Source, directives};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the file of a feature says it owns.
fn title(family: &str) -> String {
    let path = root().join("crates/conf/src/directives").join(format!("{family}.rs"));
    let text = fs::read_to_string(&path).expect("a feature has a file");
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn arguments(row: &Directive) -> String {
    let (min, max) = (row.args.min, row.args.max);
    match (min, max) {
        (0, 0) => "none".to_owned(),
        (_, usize::MAX) => format!("{min} or more"),
        _ if min == max => min.to_string(),
        _ => format!("{min} to {max}"),
    }
}

fn page(family: &str, rows: &[Directive]) -> String {
    let mut page = format!("# {}\n\n{}\n", family.replace('_', " "), title(family));
    for row in rows {
        let places: Vec<_> = row.contexts.names().collect();
        let inherited = match row.inherit {
            Inherit::Value => "the innermost value holds; a second one in a block is an error",
            Inherit::List => "the first one in a block drops the outer list, more add to it",
            Inherit::Own => "belongs to its block alone",
        };
        let block = if row.is_block() { " and a block" } else { "" };
        let _ = write!(page, "\n## {}\n\n{}\n", row.name, row.doc);
        if row.has_no_effect() {
            page.push_str("\nIt is read and checked; nothing follows from it.\n");
        }
        let _ = write!(
            page,
            "\n- in: {}\n- arguments: {}{block}\n- inheritance: {inherited}\n- since: {}\n",
            places.join(", "),
            arguments(row),
            row.since,
        );
        let _ = write!(page, "\n```nginx\n{}\n```\n", row.example);
    }
    page
}

fn index() -> String {
    let mut page = "# Directives\n\nEvery directive that is understood, by feature. The pages are \
                    made from the tables in\n`crates/conf/src/directives/`; \
                    `cargo test -p conf reference` compares them and reads\nevery example. \
                    `bolide check` tells what becomes of a whole configuration.\n"
        .to_owned();
    for (family, rows) in directives::families() {
        let _ = write!(page, "\n## [{}]({family}.md)\n\n", family.replace('_', " "));
        let mut names: Vec<_> = rows.iter().map(|row| format!("`{}`", row.name)).collect();
        names.dedup();
        page.push_str(&names.join(", "));
        page.push('\n');
    }
    page
}

#[test]
fn the_pages_are_what_the_tables_say() {
    let directory = root().join("docs/reference");
    let mut pages = vec![("README.md".to_owned(), index())];
    for (family, rows) in directives::families() {
        pages.push((format!("{family}.md"), page(family, rows)));
    }
    if std::env::var_os("BOLIDE_WRITE_REFERENCE").is_some() {
        fs::create_dir_all(&directory).unwrap();
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            fs::remove_file(entry.path()).unwrap();
        }
        for (name, text) in &pages {
            fs::write(directory.join(name), text).unwrap();
        }
    }
    for (name, text) in &pages {
        let written = fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert!(
            written == *text,
            "docs/reference/{name} is out of date: \
             BOLIDE_WRITE_REFERENCE=1 cargo test -p conf reference"
        );
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), pages.len(), "a page of no feature");
}

/// One file.
struct Text(String);

impl Source for Text {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.ends_with("nginx.conf") {
            true => Ok(self.0.clone().into_bytes()),
            false => Err(io::Error::from_raw_os_error(2)),
        }
    }

    fn list(&self, _: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        Ok(Vec::new())
    }

    fn resolve(&self, _: &str) -> Vec<std::net::IpAddr> {
        vec![[127, 0, 0, 1].into()]
    }
}

/// What must stand in `http`, and in the same block, for an example to make sense.
fn beside(name: &str) -> (&'static str, &'static str) {
    match name {
        "fastcgi_buffer_size" | "fastcgi_busy_buffers_size" => ("", "fastcgi_buffers 8 16k;"),
        "proxy_buffer_size" | "proxy_busy_buffers_size" => ("", "proxy_buffers 8 16k;"),
        "fastcgi_cache" => ("fastcgi_cache_path /c keys_zone=PHP:1m;", ""),
        "proxy_cache" => ("proxy_cache_path /c keys_zone=PHP:1m;", ""),
        "fastcgi_cache_bypass" | "fastcgi_no_cache" | "proxy_cache_bypass" | "proxy_no_cache" => {
            ("map $uri $skip_cache { }", "")
        }
        "limit_conn" => ("limit_conn_zone $server_name zone=sites:1m;", ""),
        "limit_req" => ("limit_req_zone $uri zone=pages:1m rate=9r/s;", ""),
        "listen" => ("", "ssl_certificate a.crt; ssl_certificate_key a.key;"),
        "page_cache_control" => ("map $uri $device { }", ""),
        "php_pass" => ("php_pool main { }", ""),
        "ssl_certificate" => ("", "ssl_certificate_key a.key;"),
        _ => ("", ""),
    }
}

/// The example inside the blocks that it belongs into.
fn whole(row: &Directive, context: Contexts) -> String {
    let (http, here) = beside(row.name);
    let line = format!("{here} {}", row.example);
    if context == Contexts::MAIN {
        return if row.name == "events" { line } else { format!("{line} events {{}}") };
    }
    if context == Contexts::EVENTS {
        return format!("events {{ {line} }}");
    }
    let inside = match context {
        Contexts::HTTP => line,
        Contexts::SERVER => format!("server {{ {line} }}"),
        Contexts::LOCATION => format!("server {{ location / {{ {line} }} }}"),
        Contexts::UPSTREAM => format!("upstream u {{ server 127.0.0.1:9000; {line} }}"),
        Contexts::PHP_POOL => format!("php_pool p {{ {line} }}"),
        Contexts::IF => format!("server {{ location / {{ if ($args) {{ {line} }} }} }}"),
        Contexts::LIMIT_EXCEPT => {
            format!("server {{ location / {{ limit_except GET {{ {line} }} }} }}")
        }
        _ => format!("server {{ if ($args) {{ {line} }} }}"),
    };
    format!("events {{}} http {{ {http} {inside} }}")
}

#[test]
fn every_example_is_read_wherever_it_may_stand() {
    let options = Options { prefix: "/conf".into(), privileged: true, ..Options::default() };
    let (mut read, mut wrong) = (0, Vec::new());
    for row in directives::all() {
        for context in Contexts::EACH.map(|(context, _)| context) {
            if !row.contexts.contains(context) {
                continue;
            }
            let text = whole(row, context);
            let outcome = conf::parse(&Text(text.clone()), Path::new("nginx.conf"), &options);
            let fatal = outcome.diagnostics.iter().filter(|diagnostic| diagnostic.is_fatal());
            wrong.extend(fatal.map(|diagnostic| format!("{text}\n    {diagnostic}")));
            read += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {read}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(read > 500, "only {read}");
}
