//! `bolide(8)` and the completions of bash, zsh and fish in `packaging/`, made from the table of
//! commands. `BOLIDE_WRITE_REFERENCE=1 cargo test -p bolide --bin bolide manual` writes them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::help::{admin_help, help, wrapped};
use super::table::{
    ADMIN_COMMANDS, COMMANDS, CommandRow, OPTIONS, OperandKind, OptionRow, OptionTimes,
};

fn commands() -> impl Iterator<Item = &'static CommandRow> {
    COMMANDS.iter().chain(ADMIN_COMMANDS)
}

/// The spellings of an option.
fn spellings(row: &OptionRow) -> impl Iterator<Item = &'static str> {
    row.flag.split(',')
}

/// Columns of a line of a man page's source, before dashes are escaped.
const COLUMNS: usize = 60;

/// Text in the language of man pages, in lines.
fn roff(text: &str) -> String {
    let line = |text: String| {
        let text = text.replace('\\', "\\e").replace('-', "\\-");
        if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
    };
    wrapped(text, COLUMNS).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn man_option(page: &mut String, row: &OptionRow) {
    let names: Vec<_> = spellings(row).map(|name| format!("\\fB{}\\fR", roff(name))).collect();
    let value =
        if row.value.is_empty() { String::new() } else { format!(" \\fI{}\\fR", roff(row.value)) };
    let again = if row.times == OptionTimes::Many { "; may be repeated" } else { "" };
    let _ = write!(page, ".TP\n{}{value}\n{}{again}.\n", names.join(", "), roff(sentence(row.doc)));
}

/// Texts of the table end with or without a full stop.
fn sentence(text: &str) -> &str {
    text.trim_end_matches('.')
}

fn man() -> String {
    let mut page = format!(
        ".\\\" Made from src/cli/table.rs; see src/cli/manual.rs.\n\
         .TH BOLIDE 8 {} \"Bolide {}\" \"System Administration\"\n\
         .SH NAME\nbolide \\- web server for HTTP/1.1, HTTP/2 and HTTP/3\n.SH SYNOPSIS\n\
         .B bolide\n{}",
        include_str!("../../packaging/date").trim(),
        env!("CARGO_PKG_VERSION"),
        include_str!("manual/synopsis.man"),
    );
    for row in commands() {
        let _ = write!(page, ".br\n.B bolide {}\n", row.name);
        if !row.usage.is_empty() {
            let _ = writeln!(page, "{}", roff(row.usage));
        }
    }
    page.push_str(include_str!("manual/before.man"));
    page.push_str(".SH OPTIONS\n");
    OPTIONS.iter().for_each(|row| man_option(&mut page, row));
    page.push_str(".SH COMMANDS\n");
    for row in commands() {
        let _ = write!(page, ".SS bolide {}\n{}.\n", row.name, roff(sentence(row.doc)));
        row.options.iter().for_each(|row| man_option(&mut page, row));
    }
    page.push_str(include_str!("manual/after.man"));
    page
}

/// The words of the commands' first place.
fn first_words() -> Vec<&'static str> {
    let mut words: Vec<_> = commands().filter_map(|row| row.name.split(' ').next()).collect();
    words.dedup();
    words
}

/// The second words of a command that has some.
fn second_words(first: &str) -> Vec<&'static str> {
    commands().filter_map(|row| row.name.strip_prefix(first)?.strip_prefix(' ')).collect()
}

fn flags(rows: &[OptionRow]) -> String {
    let all: Vec<_> = rows.iter().flat_map(spellings).collect();
    all.join(" ")
}

fn bash() -> String {
    let mut values = String::new();
    for row in OPTIONS.iter().chain(commands().flat_map(|row| row.options)) {
        let reply = match row.kind {
            OperandKind::None => continue,
            OperandKind::File => "COMPREPLY=($(compgen -f -- \"$current\"))".to_owned(),
            OperandKind::Directory => "COMPREPLY=($(compgen -d -- \"$current\"))".to_owned(),
            OperandKind::Choice(words) => {
                format!("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", words.join(" "))
            }
            OperandKind::Text => "COMPREPLY=()".to_owned(),
        };
        let line = format!("        {}) {reply}; return ;;\n", row.flag);
        if !values.contains(&format!("        {})", row.flag)) {
            values.push_str(&line);
        }
    }
    let mut cases = String::new();
    for row in commands() {
        let more = match row.operand {
            OperandKind::File => " $(compgen -f -- \"$current\")",
            OperandKind::Directory => " $(compgen -d -- \"$current\")",
            _ => "",
        };
        let _ = writeln!(
            cases,
            "        '{}') COMPREPLY=($(compgen -W '--help {}' -- \"$current\"){more}) ;;",
            row.name,
            flags(row.options)
        );
    }
    let mut pairs = String::new();
    for first in first_words().into_iter().filter(|first| !second_words(first).is_empty()) {
        let words = second_words(first).join(" ");
        let _ = writeln!(
            cases,
            "        {first}) COMPREPLY=($(compgen -W '{words}' -- \"$current\")) ;;"
        );
        let _ = writeln!(pairs, "            '{first} '*) ;;");
        let known = format!("[[ ' {words} ' = *\" $word \"* ]]");
        let _ = writeln!(pairs, "            {first}) {known} && command=\"$command $word\" ;;");
    }
    include_str!("manual/completion.bash")
        .replace("@VALUES@", &values)
        .replace("@FIRST@", &first_words().join(" "))
        .replace("@PAIRS@", &pairs)
        .replace("@OPTIONS@", &flags(OPTIONS))
        .replace("@COMMANDS@", &cases)
}

/// Text within single quotes of a specification of zsh's.
fn zsh_text(text: &str) -> String {
    text.replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:")
}

fn zsh_options(rows: &[OptionRow]) -> String {
    let mut lines = String::new();
    for row in rows {
        for name in spellings(row) {
            let again = if row.times == OptionTimes::Many { "*" } else { "" };
            let value = match row.kind {
                OperandKind::None => String::new(),
                OperandKind::File => format!(":{}:_files", zsh_text(row.value)),
                OperandKind::Directory => format!(":{}:_files -/", zsh_text(row.value)),
                OperandKind::Choice(words) => format!(":{}:({})", row.value, words.join(" ")),
                OperandKind::Text => format!(":{}: ", zsh_text(row.value)),
            };
            let _ = write!(lines, " \\\n        '{again}{name}[{}]{value}'", zsh_text(row.doc));
        }
    }
    lines
}

fn zsh_command(row: &CommandRow) -> String {
    let operand = match row.operand {
        OperandKind::File => " \\\n        '::file:_files'",
        OperandKind::Directory => " \\\n        '::directory:_files -/'",
        OperandKind::Text => " \\\n        '*::word: '",
        OperandKind::None | OperandKind::Choice(_) => "",
    };
    format!("_arguments{}{operand}", zsh_options(row.options))
}

fn zsh() -> String {
    let mut script =
        "#compdef bolide\n# Completion of bolide(8) for zsh. Made from src/cli/table.rs.\n\n\
                      _bolide() {\n    local state line\n    _arguments -C"
            .to_owned();
    script.push_str(&zsh_options(OPTIONS));
    let _ = write!(
        script,
        " \\\n        '1:command:({})' \\\n        '*::argument:->arguments'\n    \
         [[ $state = arguments ]] || return\n    case $words[1] in\n",
        first_words().join(" ")
    );
    for first in first_words() {
        let second = second_words(first);
        let row = |name: &str| commands().find(|row| row.name == name);
        let body = match row(first) {
            Some(row) => zsh_command(row),
            None => {
                let mut body = format!(
                    "if (( CURRENT == 2 )); then\n        compadd -- {}\n        return\n    \
                     fi\n    \
                     shift words; (( CURRENT-- ))\n    case $words[1] in\n",
                    second.join(" ")
                );
                for word in second {
                    let row = row(&format!("{first} {word}")).expect("a row of the table");
                    let _ = writeln!(body, "    {word}) {} ;;", zsh_command(row));
                }
                body + "    esac"
            }
        };
        let _ = writeln!(script, "    {first}) {body} ;;");
    }
    script + "    esac\n}\n\n_bolide \"$@\"\n"
}

fn fish_option(script: &mut String, condition: &str, row: &OptionRow) {
    for name in spellings(row) {
        let name = match name.strip_prefix("--") {
            Some(long) => format!("-l {long}"),
            None => format!("-s '{}'", name.trim_start_matches('-')),
        };
        let value = match row.kind {
            OperandKind::None => String::new(),
            OperandKind::File => " -r -F".to_owned(),
            OperandKind::Directory => " -x -a '(__fish_complete_directories)'".to_owned(),
            OperandKind::Choice(words) => format!(" -x -a '{}'", words.join(" ")),
            OperandKind::Text => " -x".to_owned(),
        };
        let doc = row.doc.replace('\'', "\\'");
        let _ = writeln!(script, "complete -c bolide -n '{condition}' {name}{value} -d '{doc}'");
    }
}

fn fish() -> String {
    let mut script = "# Completion of bolide(8) for fish. Made from src/cli/table.rs.\n\n\
                      complete -c bolide -f\n"
        .to_owned();
    OPTIONS.iter().for_each(|row| fish_option(&mut script, "__fish_use_subcommand", row));
    for row in commands() {
        let doc = row.doc.split([':', '.']).next().unwrap_or_default().replace('\'', "\\'");
        let (first, seen) = match row.name.split_once(' ') {
            None => {
                let _ = writeln!(
                    script,
                    "complete -c bolide -n __fish_use_subcommand -a {} -d '{doc}'",
                    row.name
                );
                (row.name, String::new())
            }
            Some((first, second)) => {
                let others = second_words(first).join(" ");
                let _ = writeln!(
                    script,
                    "complete -c bolide -n __fish_use_subcommand -a {first}\ncomplete -c bolide -n \
                     '__fish_seen_subcommand_from {first}; and not __fish_seen_subcommand_from \
                     {others}' -a {second} -d '{doc}'"
                );
                (first, format!("; and __fish_seen_subcommand_from {second}"))
            }
        };
        let condition = format!("__fish_seen_subcommand_from {first}{seen}");
        if matches!(row.operand, OperandKind::File | OperandKind::Directory) {
            let _ = writeln!(script, "complete -c bolide -n '{condition}' -F");
        }
        row.options.iter().for_each(|row| fish_option(&mut script, &condition, row));
    }
    script
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A path in the tree, and what makes its text.
type MadeFile = (&'static str, fn() -> String);

const FILES: [MadeFile; 4] = [
    ("packaging/man/bolide.8", man),
    ("packaging/completions/bolide", bash),
    ("packaging/completions/_bolide", zsh),
    ("packaging/completions/bolide.fish", fish),
];

#[test]
fn the_manual_and_the_completions_are_what_the_table_says() {
    for (name, make) in FILES {
        let path = root().join(name);
        if std::env::var_os("BOLIDE_WRITE_REFERENCE").is_some() {
            std::fs::create_dir_all(path.parent().expect("a directory")).unwrap();
            std::fs::write(&path, make()).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == make(), "{name}: BOLIDE_WRITE_REFERENCE=1 cargo test -p bolide manual");
    }
}

#[test]
fn every_command_and_option_is_in_each_text() {
    let texts: Vec<_> = FILES.iter().map(|(name, make)| (*name, make())).collect();
    let plain = texts[0].1.replace("\\-", "-");
    let helps = help() + &admin_help();
    for row in commands() {
        for text in [&plain, &helps] {
            assert!(text.contains(&format!("bolide {}", row.name)), "{} in {text}", row.name);
        }
        for word in row.name.split(' ') {
            texts.iter().for_each(|(name, text)| assert!(text.contains(word), "{word} in {name}"));
        }
        for name in row.options.iter().flat_map(spellings) {
            assert!(plain.contains(name) && helps.contains(name), "{name}");
            assert!(row.usage.contains(name) || name == "--pid", "{name} in {}", row.usage);
        }
    }
    for row in OPTIONS {
        let named = spellings(row).all(|name| plain.contains(name) && helps.contains(name));
        assert!(named && helps.contains(row.value), "{}", row.flag);
    }
}

/// What the parser is given for an option.
fn words_of(row: &OptionRow) -> Vec<String> {
    let value = match (row.kind, row.value) {
        (OperandKind::None, _) => return vec![row.flag.to_owned()],
        (OperandKind::Choice(words), _) => words[0],
        (_, "ADDRESS") => "127.0.0.1",
        (_, "NAME: VALUE") => "a: b",
        (_, "NAME=VALUE") => "a=b",
        _ => "7",
    };
    vec![row.flag.to_owned(), value.to_owned()]
}

#[test]
fn the_parser_takes_what_the_table_has() {
    for row in commands() {
        for option in row.options {
            let mut words = vec!["bolide".to_owned()];
            words.extend(row.name.split(' ').map(str::to_owned));
            words.extend(words_of(option));
            if let Err(text) = super::parse(words.iter().map(Into::into)) {
                assert!(text.contains("requires"), "{words:?}: {text}");
            }
        }
    }
    for option in OPTIONS {
        for flag in spellings(option) {
            let row = OptionRow { flag, ..*option };
            let words = ["bolide".to_owned()].into_iter().chain(words_of(&row));
            assert!(super::parse(words.map(Into::into)).is_ok(), "{flag}");
        }
    }
}

#[test]
fn the_table_has_what_the_parser_takes() {
    let code = include_str!("../cli.rs").split("#[cfg(test)]\nmod tests").next().unwrap();
    let known: Vec<_> = commands().flat_map(|row| row.options).map(OptionRow::name).collect();
    let longs = code.split("Long(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let longs: Vec<_> = longs.filter(|name| !["help", "version"].contains(name)).collect();
    assert!(longs.len() > 5 && longs.iter().all(|name| known.contains(name)), "{longs:?}");
    let shorts: String = OPTIONS.iter().flat_map(spellings).collect();
    let letters = code.split("Short(").skip(1).filter_map(|rest| rest.split(')').next());
    let letters = letters.flat_map(|part| part.split('\'').skip(1).step_by(2));
    assert!(letters.clone().count() > 5);
    letters.for_each(|letter| assert!(shorts.contains(&format!("-{letter}")), "{letter}"));
}

#[test]
fn tools_that_read_these_files_find_nothing_to_complain_of() {
    let kept = |name: &str| root().join(name);
    let check = |program: &str, args: &[&str], name: &str| {
        let mut command = Command::new(program);
        let done = command.args(args).arg(kept(name)).output();
        let done = done.unwrap_or_else(|error| panic!("missing: {program} ({error})"));
        let said = [done.stdout, done.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(done.status.success() && said.is_empty(), "{program} {name}: {said}");
    };
    check("bash", &["-n"], "packaging/completions/bolide");
    check("zsh", &["-n"], "packaging/completions/_bolide");
    check("fish", &["-n"], "packaging/completions/bolide.fish");
    for page in ["packaging/man/bolide.8", "packaging/man/bolide.conf.5"] {
        check("mandoc", &["-T", "lint", "-W", "style"], page);
    }
}
