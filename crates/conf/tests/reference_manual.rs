//! `bolide.conf(5)` matches the tables. `BOLIDE_WRITE_REFERENCE=1 cargo test -p bolide-conf
//! reference` writes it together with the pages of `docs/reference`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bolide_conf::directive::DirectiveSpec;
use bolide_conf::directives;
use bolide_conf::reference::{self, Default as Unwritten};

/// Columns of a line of its source, before dashes are escaped.
const COLUMNS: usize = 54;

/// Markdown of the tables in the language of man pages, in lines.
fn roff(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if lines.last().is_some_and(|line| line.len() + word.len() >= COLUMNS) {
            lines.push(String::new());
        }
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let text = lines.join("\n").replace('\\', "\\e").replace('-', "\\-").replace('…', "...");
    let mut out = String::new();
    for (n, piece) in text.split('`').enumerate() {
        if n > 0 {
            out.push_str(if n % 2 == 1 { "\\fB" } else { "\\fR" });
        }
        out.push_str(piece);
    }
    let guarded = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    out.lines().map(guarded).collect::<Vec<_>>().join("\n")
}

fn entry(page: &mut String, row: &DirectiveSpec) {
    let words = reference::syntax(row).unwrap_or_default();
    let words = words.trim_start_matches("{ TYPE").trim();
    let end = if row.is_block() { " { ... }" } else { ";" };
    let _ = writeln!(page, ".TP\n.B {}", row.name);
    let syntax = format!("{words}{end}");
    let _ = writeln!(page, "{}\n.br\n{}", roff(&syntax), roff(row.doc));
    let places: Vec<_> = row.contexts.names().collect();
    let _ = writeln!(page, ".br\nIn: {}.", places.join(", "));
    match reference::default(row) {
        Some(Unwritten::Words(words)) => {
            let _ = writeln!(page, "Default:\n{}.", roff(&format!("`{words}`")));
        }
        Some(Unwritten::Described(text)) => {
            let _ = writeln!(page, "Default:\n{}.", roff(text.trim_end_matches('.')));
        }
        None => {}
    }
}

const BEFORE: &str = "\
.SH NAME
bolide.conf \\- configuration of the web server bolide
.SH DESCRIPTION
The file
.I /etc/bolide/bolide.conf
has the language of nginx.
A directive is a name with words behind it, and ends with a semicolon or a block
in braces.
.I #
begins a comment, quotes enclose words with blanks, and
.I $name
is a variable.
.PP
.B bolide \\-t
tests the file,
.B bolide \\-s reload
puts it in force, and
.B bolide check
says what becomes of each line of a configuration of nginx.
.SH WORDS IN CAPITALS
";

const AFTER: &str = "\
.SH FILES
.TP
.I /etc/bolide/bolide.conf
The configuration.
.TP
.I /etc/bolide/conf.d/*.conf\\fR, \\fI/etc/bolide/sites\\-enabled/*
The sites that it includes.
.SH SEE ALSO
.BR bolide (8)
";

fn manual() -> String {
    let date = include_str!("../../../packaging/date").trim();
    let mut page = format!(
        ".\\\" Made from crates/conf/src/directives; see crates/conf/tests/reference_manual.rs.\n\
         .TH BOLIDE.CONF 5 {date} \"Bolide {}\" \"File Formats\"\n{BEFORE}",
        env!("CARGO_PKG_VERSION")
    );
    for (word, meaning) in reference::PLACEHOLDERS {
        let _ = writeln!(page, ".TP\n{}\n{}", roff(word), roff(meaning));
    }
    page.push_str(".SH DIRECTIVES\n");
    for (family, rows) in directives::families() {
        let _ = writeln!(page, ".SS {}", family.replace('_', " "));
        rows.iter().for_each(|row| entry(&mut page, row));
    }
    page + AFTER
}

#[test]
fn the_man_page_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/man/bolide.conf.5");
    let page = manual();
    if std::env::var_os("BOLIDE_WRITE_REFERENCE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "packaging/man/bolide.conf.5 is out of date: \
         BOLIDE_WRITE_REFERENCE=1 cargo test -p bolide-conf reference"
    );
}
