//! Parses the arguments of `bolide explain`, `bolide cache`, `bolide reload`, `bolide drain`,
//! `bolide status` and `bolide metrics`.

use lexopt::prelude::*;

use super::table::{self, CommandRow, OperandKind, OptionTimes};
use super::{Globals, text};
use crate::admin::cluster;
use crate::admin::drain::{COMMAND as DRAIN_COMMAND, after as drain_after};
use crate::admin::line_protocol::Words;
use crate::admin::metrics::COMMAND as METRICS_COMMAND;
use crate::admin::reload::COMMAND as RELOAD_COMMAND;
use crate::admin::rollover::COMMAND as ROLLOVER_COMMAND;
use crate::admin::status::COMMAND;
use crate::admin::warm::Warm;
use crate::invocation::{Admin, CliCommand};

/// The parsed part of a command.
enum Read {
    Words(Words, Option<u32>),
    Help,
}

/// Reads the rest of `bolide explain`.
pub(super) fn explain(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    let Read::Words(words, pid) = read("explain", &table::EXPLAIN, parser, globals)? else {
        return Ok(CliCommand::AdminHelp);
    };
    if words.has("url") == words.has("request") {
        return Err("\"explain\" requires a URL, or --request ID".to_owned());
    }
    if words.all("url").count() > 1 {
        return Err("\"explain\" takes one URL".to_owned());
    }
    Ok(CliCommand::Admin(Admin::Ask { words, pid }))
}

/// Reads the rest of `bolide status`.
pub(super) fn status(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    plain(COMMAND, &table::STATUS, parser, globals)
}

/// Reads the rest of `bolide metrics`.
pub(super) fn metrics(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    plain(METRICS_COMMAND, &table::METRICS, parser, globals)
}

/// Reads the rest of `bolide acme`.
pub(super) fn acme(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    match parser.next().map_err(|error| error.to_string())? {
        Some(Value(word)) if word == "rollover" => {}
        Some(Short('?' | 'h') | Long("help")) => return Ok(CliCommand::AdminHelp),
        _ => return Err("\"acme\" requires the word rollover".to_owned()),
    }
    let Read::Words(words, pid) = read(ROLLOVER_COMMAND, &table::ROLLOVER, parser, globals)? else {
        return Ok(CliCommand::AdminHelp);
    };
    if words.all("url").count() != 1 {
        return Err("\"acme rollover\" requires one issuer".to_owned());
    }
    Ok(CliCommand::Admin(Admin::Ask { words, pid }))
}

/// Reads the rest of `bolide cluster`.
pub(super) fn cluster(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    let wanted = "\"cluster\" requires one of status, peers and purges";
    let Some(word) = second_word(parser, wanted)? else { return Ok(CliCommand::AdminHelp) };
    let (command, row) = match word.as_str() {
        "status" => (cluster::STATUS, &table::CLUSTER_STATUS),
        "peers" => (cluster::PEERS, &table::CLUSTER_PEERS),
        "purges" => (cluster::PURGES, &table::CLUSTER_PURGES),
        _ => return Err(format!("invalid option: \"cluster {word}\"")),
    };
    plain(command, row, parser, globals)
}

/// Reads the rest of `bolide reload`.
pub(super) fn reload(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    plain(RELOAD_COMMAND, &table::RELOAD, parser, globals)
}

/// Reads the rest of `bolide drain`.
pub(super) fn drain(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    Ok(match read(DRAIN_COMMAND, &table::DRAIN, parser, globals)? {
        Read::Words(words, pid) => {
            drain_after(&words)?;
            CliCommand::Admin(Admin::Ask { words, pid })
        }
        Read::Help => CliCommand::AdminHelp,
    })
}

/// Reads the rest of `bolide cache`.
pub(super) fn cache(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    let wanted = "\"cache\" requires one of list, stats, purge, ban, bans and warm";
    let Some(word) = second_word(parser, wanted)? else { return Ok(CliCommand::AdminHelp) };
    let options = match word.as_str() {
        "list" => &table::LIST,
        "stats" => &table::STATS,
        "purge" => &table::PURGE,
        "ban" => &table::BAN,
        "bans" => &table::BANS,
        "warm" => &table::WARM,
        _ => return Err(format!("invalid option: \"cache {word}\"")),
    };
    let Read::Words(words, pid) = read(&format!("cache-{word}"), options, parser, globals)? else {
        return Ok(CliCommand::AdminHelp);
    };
    if word == "warm" {
        return Warm::new(&words, pid).map(|warm| CliCommand::Admin(Admin::Warm(warm)));
    }
    let words = if word == "list" { prefix_of_list(&words) } else { words };
    Ok(CliCommand::Admin(Admin::Ask { words, pid }))
}

/// The server's word for `list --url` is `prefix`.
fn prefix_of_list(words: &Words) -> Words {
    let mut said = Words::new(&words.command);
    for name in ["json", "limit", "tag", "vhost", "zone"] {
        words.all(name).for_each(|value| said.push(name, value));
    }
    words.all("url").for_each(|value| said.push("prefix", value));
    said
}

/// The second word of a command; `None` if it asks for help. Without one, the error is `wanted`.
fn second_word(parser: &mut lexopt::Parser, wanted: &str) -> Result<Option<String>, String> {
    match parser.next().map_err(|error| error.to_string())? {
        Some(Value(word)) => Ok(Some(word.to_string_lossy().into_owned())),
        Some(Short('?' | 'h') | Long("help")) => Ok(None),
        _ => Err(wanted.to_owned()),
    }
}

/// Parses the rest of a command that is sent to the server unchanged.
fn plain(
    command: &str,
    row: &CommandRow,
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    Ok(match read(command, row, parser, globals)? {
        Read::Words(words, pid) => CliCommand::Admin(Admin::Ask { words, pid }),
        Read::Help => CliCommand::AdminHelp,
    })
}

fn read(
    command: &str,
    row: &CommandRow,
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<Read, String> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut words = Words::new(command);
    let mut pid = None;
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        let name = match arg {
            Short('?' | 'h') | Long("help") => return Ok(Read::Help),
            Short(letter @ ('q' | 'p' | 'c' | 'e' | 'g')) => {
                globals.take(letter, parser)?;
                continue;
            }
            Short(letter) => return Err(format!("invalid option: \"{letter}\"")),
            Value(word) => match row.operand {
                OperandKind::Text => {
                    words.push("url", word.as_bytes());
                    continue;
                }
                _ => {
                    let word = word.to_string_lossy();
                    return Err(format!("invalid option: \"{word}\""));
                }
            },
            Long(name) => name.to_owned(),
        };
        let known = row.options.iter().find(|row| row.name() == name);
        let Some(option) = known else { return Err(format!("invalid option: \"--{name}\"")) };
        if name == "pid" {
            let value = text(parser, "--pid", "a process")?;
            pid = Some(value.parse().map_err(|_| format!("invalid process \"{value}\""))?);
        } else if option.kind == OperandKind::None {
            words.push(&name, "");
        } else {
            if option.times == OptionTimes::Once && words.has(&name) {
                return Err(format!("option \"--{name}\" is given twice"));
            }
            let value =
                parser.value().map_err(|_| format!("option \"--{name}\" requires a value"))?;
            words.push(&name, value.as_bytes());
        }
    }
    Ok(Read::Words(words, pid))
}
