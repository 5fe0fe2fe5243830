//! The texts of `--help`, from the table of commands.

use std::fmt::Write as _;

use super::table::{ADMIN_COMMANDS, COMMANDS, CommandRow, OPTIONS, OptionRow, SHARED};

/// Columns of a terminal that a line may take.
const WIDTH: usize = 79;
/// The column of the texts.
const TEXT: usize = 18;

/// nginx's help, with our name and commands.
pub(crate) fn help() -> String {
    let mut text = "Usage: bolide [-?hvVtTq] [-s signal] [-p prefix]\n              \
                    [-e filename] [-c filename] [-g directives]\n"
        .to_owned();
    for row in COMMANDS {
        usage(&mut text, "       ", row);
    }
    for words in [
        "explain URL | --request ID",
        "cache list | stats | purge | ban | bans | warm",
        "reload",
        "drain",
        "status",
        "metrics",
        "acme rollover ISSUER",
    ] {
        let _ = writeln!(text, "       bolide {words}");
    }
    text.push_str("\nOptions:\n");
    for row in OPTIONS {
        entry(&mut text, &format!("  {} {}", row.flag, row.value), row.doc);
    }
    text.push_str("\nCommands:\n");
    for row in COMMANDS {
        command(&mut text, row);
    }
    for row in ADMIN_COMMANDS {
        entry(
            &mut text,
            &format!("  {}", row.name),
            row.doc.split([':', '.']).next().unwrap_or(""),
        );
    }
    text.push_str("\nbolide COMMAND --help has the options of a command.\n");
    text
}

/// The rows of one command, or of all that begin with its word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandHelp(&'static str);

/// The rows of a command that is no command for a running server.
pub(super) fn help_rows(word: &str) -> Option<CommandHelp> {
    let first = |row: &CommandRow| row.name.split(' ').next();
    COMMANDS.iter().filter_map(first).find(|first| *first == word).map(CommandHelp)
}

impl CommandHelp {
    /// Synopsis, texts and options.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        let rows = || COMMANDS.iter().filter(|row| row.name.split(' ').next() == Some(self.0));
        for (n, row) in rows().enumerate() {
            usage(&mut text, if n == 0 { "Usage: " } else { "       " }, row);
        }
        text.push('\n');
        rows().for_each(|row| command(&mut text, row));
        text
    }
}

/// The help of the commands for a running server.
pub(crate) fn admin_help() -> String {
    let mut text = String::new();
    for (n, row) in ADMIN_COMMANDS.iter().enumerate() {
        usage(&mut text, if n == 0 { "Usage: " } else { "       " }, row);
    }
    text.push_str(
        "\nEach of them contacts the running server, which is found as by bolide -s: by\n\
         the pid file of the configuration (-c, -p), or with --pid PID. Only its owner\n\
         and root may. They exit with 0, or with 1 and an error on standard error.\n\n",
    );
    for row in ADMIN_COMMANDS {
        command(&mut text, row);
    }
    for row in SHARED {
        option(&mut text, row);
    }
    text
}

/// A command with those of its options that others lack.
fn command(text: &mut String, row: &CommandRow) {
    entry(text, &format!("  {}", row.name), row.doc);
    for one in row.options.iter().filter(|one| SHARED.iter().all(|row| row.flag != one.flag)) {
        option(text, one);
    }
}

fn option(text: &mut String, row: &OptionRow) {
    entry(text, &format!("    {}", row.flag), row.doc);
}

/// `  name          : text`, with the text in lines below each other.
fn entry(text: &mut String, name: &str, doc: &str) {
    let name = name.trim_end();
    let column = TEXT - 2;
    let lines = wrapped(doc, WIDTH - TEXT);
    for (n, line) in lines.iter().enumerate() {
        let _ = match n {
            0 if name.len() > column => write!(text, "{name}\n{:column$}: {line}", ""),
            0 => write!(text, "{name:column$}: {line}"),
            _ => write!(text, "{:TEXT$}{line}", ""),
        };
        text.push('\n');
    }
}

fn usage(text: &mut String, lead: &str, row: &CommandRow) {
    let name = format!("{lead}bolide {} ", row.name);
    for (n, line) in wrapped(row.usage, WIDTH - name.len()).iter().enumerate() {
        let lead = if n == 0 { name.clone() } else { " ".repeat(name.len()) };
        let _ = writeln!(text, "{}", format!("{lead}{line}").trim_end());
    }
}

/// Words in lines of at most `width` columns; what brackets and quotes hold stays together.
pub(super) fn wrapped(words: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let (mut piece, mut depth) = (String::new(), 0_i32);
    for word in words.split(' ') {
        depth += word.matches('[').count() as i32 - word.matches(']').count() as i32;
        if !piece.is_empty() {
            piece.push(' ');
        }
        piece.push_str(word);
        if depth > 0 {
            continue;
        }
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] = std::mem::take(&mut piece);
        } else if lines[last].len() + 1 + piece.len() <= width {
            lines[last] = format!("{} {}", lines[last], std::mem::take(&mut piece));
        } else {
            lines.push(std::mem::take(&mut piece));
        }
    }
    lines
}
