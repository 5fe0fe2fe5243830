//! `docs/reference/` matches the tables, and every example in it is a valid configuration.
//!
//! `BOLIDE_WRITE_REFERENCE=1 cargo test -p bolide-conf reference` rewrites the pages.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use bolide_conf::directive::{Contexts, DirectiveSpec, Inheritance};
use bolide_conf::model::{DirectiveFamily as Family, LocationSettings};
use bolide_conf::reference::{self, Default as Unwritten};
use bolide_conf::{ConfSource, Config, LoadOptions, directives};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The header of a feature's file.
fn title(family: &str) -> String {
    let path = root().join("crates/conf/src/directives").join(format!("{family}.rs"));
    let text = fs::read_to_string(&path).expect("a feature has a file");
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn arguments(row: &DirectiveSpec) -> String {
    let (min, max) = (row.args.min, row.args.max);
    match (min, max) {
        (0, 0) => "none".to_owned(),
        (_, usize::MAX) => format!("{min} or more"),
        _ if min == max => min.to_string(),
        _ => format!("{min} to {max}"),
    }
}

/// A row's arguments, as one line of code.
fn syntax(row: &DirectiveSpec) -> String {
    let words = reference::syntax(row).unwrap_or_default();
    let end = if row.is_block() { " { … }" } else { ";" };
    let words = words.trim_start_matches("{ TYPE");
    match words {
        _ if words.len() < reference::syntax(row).unwrap_or_default().len() => {
            format!("`{} {{ TYPE{words}`", row.name)
        }
        "" => format!("`{}{end}`", row.name),
        _ => format!("`{} {words}{end}`", row.name),
    }
}

fn default(row: &DirectiveSpec) -> String {
    match reference::default(row) {
        Some(Unwritten::Words(words)) => format!("`{words}`"),
        Some(Unwritten::Described(sentence)) => sentence,
        None => String::new(),
    }
}

fn page(family: &str, rows: &[DirectiveSpec]) -> String {
    let mut page = format!("# {}\n\n{}\n", family.replace('_', " "), title(family));
    page.push_str(
        "\nWords in capitals are [explained in the index](README.md#words-in-capitals).\n",
    );
    for row in rows {
        let places: Vec<_> = row.contexts.names().collect();
        let inherited = match row.inherit {
            Inheritance::Value => {
                "the innermost value applies; a second one in a block is an error"
            }
            Inheritance::List => {
                "the first one in a block drops the outer list, further ones append"
            }
            Inheritance::Added => "those of outer blocks hold as well, and come first",
            Inheritance::Own => "applies to its block only",
        };
        let block = if row.is_block() { " and a block" } else { "" };
        let _ = write!(page, "\n## {}\n\n{}\n", row.name, row.doc);
        if row.has_no_effect() {
            page.push_str("\nIt is read and checked; nothing follows from it.\n");
        }
        let _ = write!(
            page,
            "\n- syntax: {}\n- default: {}\n- in: {}\n- arguments: {}{block}\n\
             - inheritance: {inherited}\n- since: {}\n",
            syntax(row),
            default(row),
            places.join(", "),
            arguments(row),
            row.since,
        );
        let _ = write!(page, "\n```nginx\n{}\n```\n", row.example);
    }
    page
}

fn index() -> String {
    let mut page =
        "# Directives\n\nEvery supported directive, by feature. The pages are generated \
                    from the tables in\n`crates/conf/src/directives/`; \
                    `cargo test -p bolide-conf reference` compares them, reads\nevery example, and \
                    checks that writing a default changes nothing. `bolide check` reports\n\
                    the support of a whole configuration.\n\n## Words in capitals\n\n\
                    `|` separates alternatives, `[ ]` encloses optional parts.\n\n\
                    | word | meaning |\n|---|---|\n"
            .to_owned();
    for (word, meaning) in reference::PLACEHOLDERS {
        let _ = writeln!(page, "| {word} | {meaning} |");
    }
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
             BOLIDE_WRITE_REFERENCE=1 cargo test -p bolide-conf reference"
        );
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), pages.len(), "a page of no feature");
}

/// One file.
struct Text(String);

impl ConfSource for Text {
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

/// The directives that an example needs in `http`, and in its own block.
fn beside(name: &str) -> (String, String) {
    let families = [Family::Application, Family::Proxy, Family::Uwsgi, Family::Scgi];
    let prefix = families.map(Family::prefix).into_iter().find(|prefix| name.starts_with(prefix));
    let (http, here) = match name.strip_prefix(prefix.unwrap_or_default()).unwrap_or(name) {
        "buffer_size" | "busy_buffers_size" if prefix.is_some() => ("", "@buffers 8 16k;"),
        "cache" if prefix.is_some() => ("@cache_path /c keys_zone=PHP:1m;", ""),
        "cache_bypass" | "no_cache" if prefix.is_some() => ("map $uri $skip_cache { }", ""),
        _ => beside_alone(name),
    };
    let own = |text: &str| text.replace('@', prefix.unwrap_or_default());
    (own(http), own(here))
}

/// The same for directives of no such family.
fn beside_alone(name: &str) -> (&'static str, &'static str) {
    match name {
        "acme_certificate" => ("acme_issuer a { uri https://a.com/d; }", "server_name a.com;"),
        "limit_conn" => ("limit_conn_zone $server_name zone=sites:1m;", ""),
        "limit_req" => ("limit_req_zone $uri zone=pages:1m rate=9r/s;", ""),
        "listen" => ("", "ssl_certificate a.crt; ssl_certificate_key a.key;"),
        "page_cache_control" => ("map $uri $device { }", ""),
        "memcached_pass" => ("map $uri $memcached_key { }", ""),
        "objects_timeout" | "objects_lease_time" | "objects_max_size" | "objects_min_uses" => {
            ("", "objects public;")
        }
        "otel_trace" => ("otel_exporter { endpoint a:4318; }", ""),
        "php_pass" => ("php_pool main { }", ""),
        "ssl_certificate" => ("", "ssl_certificate_key a.key;"),
        _ => ("", ""),
    }
}

/// A line of a directive inside the blocks that it belongs in.
fn whole(row: &DirectiveSpec, context: Contexts, line: &str) -> String {
    let (http, here) = beside(row.name);
    let line = format!("{here} {line}");
    let password = if row.name == "user" { "password p;" } else { "" };
    if context == Contexts::MAIN {
        return if row.name == "events" { line } else { format!("{line} events {{}}") };
    }
    if context == Contexts::EVENTS {
        return format!("events {{ {line} }}");
    }
    let inside = match context {
        Contexts::SERVER if row.name == "auto_https" => {
            format!("server {{ server_name a.com; {line} }}")
        }
        Contexts::ACME_ISSUER if matches!(row.name, "uri" | "local") => {
            format!("acme_issuer i {{ {line} }}")
        }
        Contexts::ACME_ISSUER => format!("acme_issuer i {{ uri https://a.com/d; {line} }}"),
        Contexts::HTTP => line,
        Contexts::SERVER => format!("server {{ {line} }}"),
        Contexts::LOCATION => format!("server {{ location / {{ {line} }} }}"),
        Contexts::UPSTREAM => format!("upstream u {{ server 127.0.0.1:9000; {line} }}"),
        Contexts::PHP_POOL => format!("php_pool p {{ {line} }}"),
        Contexts::OTEL_EXPORTER if row.name == "endpoint" => {
            format!("otel_exporter {{ {line} }} otel_trace on;")
        }
        Contexts::OTEL_EXPORTER => {
            format!("otel_exporter {{ endpoint a:4318; {line} }} otel_trace on;")
        }
        Contexts::CLUSTER => format!("cluster valkeys://a {{ {password} {line} }}"),
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
    let options = LoadOptions {
        prefix: "/conf".into(),
        privileged: true,
        reads_unbuilt: true,
        ..LoadOptions::default()
    };
    let (mut read, mut wrong) = (0, Vec::new());
    for row in directives::all() {
        for context in Contexts::EACH.map(|(context, _)| context) {
            if !row.contexts.contains(context) {
                continue;
            }
            let text = whole(row, context, row.example);
            let outcome =
                bolide_conf::parse(&Text(text.clone()), Path::new("nginx.conf"), &options);
            let fatal = outcome.diagnostics.iter().filter(|diagnostic| diagnostic.is_fatal());
            wrong.extend(fatal.map(|diagnostic| format!("{text}\n    {diagnostic}")));
            read += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {read}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(read > 500, "only {read}");
}

#[test]
fn every_directive_says_its_words_and_what_holds_without_it() {
    let silent = directives::families().flat_map(|(family, rows)| {
        let says = |row: &&DirectiveSpec| {
            reference::syntax(row).is_some() && reference::default(row).is_some()
        };
        rows.iter().filter(move |row| !says(row)).map(move |row| format!("{family}: {}", row.name))
    });
    let silent: Vec<_> = silent.collect();
    assert!(silent.is_empty(), "use takes, default or without for: {silent:#?}");
}

#[test]
fn words_in_capitals_are_explained() {
    let known: Vec<_> =
        reference::PLACEHOLDERS.iter().flat_map(|(words, _)| words.split(", ")).collect();
    let mut strange = Vec::new();
    for row in directives::all() {
        let syntax = reference::syntax(row).unwrap_or_default();
        // Versions, HTTP methods and field names are literals.
        let words = syntax.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '@');
        let capitals =
            words.filter(|word| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase()));
        let unknown = capitals.filter(|word| !known.contains(word) && !METHODS.contains(word));
        strange.extend(unknown.map(|word| format!("{}: {word}", row.name)));
    }
    assert!(strange.is_empty(), "{strange:#?}");
}

const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "DEFAULT"];

/// The meaning of a configuration without its text: values to compare, and the rest as debug
/// output.
type Meaning = (Vec<Arc<LocationSettings>>, String);

fn meaning(config: &Config) -> Meaning {
    let Some(http) = &config.http else {
        return (Vec::new(), format!("{:?} {:?}", config.main, config.events));
    };
    let inner = http.locations.iter().map(|location| Arc::clone(&location.settings));
    let settings = std::iter::once(Arc::clone(&http.settings)).chain(inner);
    let servers = http.servers.iter().map(|server| {
        let names = (server.names.clone(), server.http2, server.http3);
        format!("{names:?} {:?} {:?}", server.tls, server.settings)
    });
    let servers: Vec<_> = servers.collect();
    let rest = (&http.upstreams, &http.php_pools, &http.page_store, &http.log_formats);
    let rest =
        (rest, &http.cluster, &http.otel, &http.acme, &http.listens, &config.main, &config.events);
    (settings.collect(), format!("{servers:?} {rest:?}"))
}

#[test]
fn a_default_that_is_written_changes_nothing() {
    let options = LoadOptions {
        prefix: "/conf".into(),
        privileged: true,
        reads_unbuilt: true,
        ..LoadOptions::default()
    };
    let read = |text: &str| {
        let outcome = bolide_conf::parse(&Text(text.to_owned()), Path::new("nginx.conf"), &options);
        outcome.config.as_ref().map(meaning).ok_or_else(|| format!("{:?}", outcome.diagnostics))
    };
    let (mut compared, mut wrong) = (0, Vec::new());
    for row in directives::all() {
        let Some(Unwritten::Words(words)) = reference::default(row) else { continue };
        let (place, before) = match row.name {
            "proxy_redirect" => (Contexts::LOCATION, "proxy_pass http://127.0.0.1;"),
            _ => {
                let places = Contexts::EACH.map(|(context, _)| context);
                let place = places.into_iter().find(|one| row.contexts.contains(*one));
                (place.expect("a directive has a place"), "")
            }
        };
        let with = whole(row, place, &format!("{before} {} {words};", row.name));
        let (with_it, without) = (read(&with), read(&whole(row, place, before)));
        if with_it != without || with_it.is_err() {
            wrong.push(format!("{with} {}", with_it.err().unwrap_or_default()));
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 240, "only {compared}");
}
