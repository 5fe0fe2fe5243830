//! The words of `bolide explain`, `bolide cache` and `bolide status`.

use lexopt::prelude::*;

use super::{Globals, text};
use crate::admin::line_protocol::Words;
use crate::admin::status::COMMAND;
use crate::admin::warm::Warm;
use crate::invocation::{Admin, CliCommand};

/// The text of `--help` after one of these commands.
pub(crate) const ADMIN_HELP: &str = "\
Usage: bolide explain [--json] [--method NAME] [--cookie NAME=VALUE]...
                      [--header 'NAME: VALUE']... [--from ADDRESS]
                      [--listen ADDRESS] URL
       bolide explain [--json] --request ID
       bolide cache list  [--json] [--vhost NAME]... [--zone NAME]...
                          [--tag TAG] [--url PREFIX] [--limit N]
       bolide cache stats [--json] [--vhost NAME]... [--zone NAME]...
       bolide cache purge [--json] [--stale] [--vhost NAME]... [--zone NAME]...
                          (--url URL | --tag TAG | --prefix PREFIX)... | --all
       bolide cache warm  [--json] [--concurrency N] [--rate N] [--header
                          'NAME: VALUE']... [--sitemap FILE|URL]... [URL]...
       bolide status [--json]

Each of them contacts the running server, which is found as by bolide -s: by
the pid file of the configuration (-c, -p), or with --pid PID. Only its owner
and root may. They exit with 0, or with 1 and an error on standard error.

explain        : show how a request would be answered now, and why: server,
                 location, rewriting, the key, the stored objects, the
                 decision, and what would have to change for a hit. Nothing is
                 sent and nothing changes. With -c and without a server, the
                 configuration alone is used.
  --method     : the method, instead of GET
  --cookie     : a cookie of the request
  --header     : a header of the request
  --from       : the client's address, instead of 127.0.0.1
  --listen     : the listening address or port, instead of the URL's
  --request    : show the decision about the request that logs show as
                 $request_id; a prefix of it is enough
cache list     : show the cached objects
  --tag        : with this tag; a final * matches any suffix
  --url        : with this prefix of the URL, or of the path
  --limit      : the most entries; default 100
cache stats    : show figures of the store and its spaces
cache purge    : drop objects, and print how many
  --url        : all copies of this page
  --tag        : everything with this tag; a final * matches any suffix
  --prefix     : everything with this prefix of the URL, or of the path
  --all        : everything
  --stale      : keep serving it stale while one request refreshes it
cache warm     : request pages from the running server, so that they are cached
  --sitemap    : the pages of a sitemap
  --concurrency: concurrent requests; default 2
  --rate       : the most requests per second
status         : the resources of the server: connections, requests, deadlines
                 and slots of each worker, descriptors, memory, the cache, PHP
--vhost        : only in the space of the server with this first name
--zone         : only in this zone of fastcgi_cache_path
--json         : print JSON
";

/// The options of a command: those with a value, those without, those that may repeat.
struct Options {
    values: &'static [&'static str],
    flags: &'static [&'static str],
    repeated: &'static [&'static str],
    /// The name of a bare word.
    bare: Option<&'static str>,
}

const EXPLAIN: Options = Options {
    values: &["method", "from", "listen", "request"],
    flags: &["json"],
    repeated: &["cookie", "header"],
    bare: Some("url"),
};
const LIST: Options = Options {
    values: &["tag", "url", "limit"],
    flags: &["json"],
    repeated: &["vhost", "zone"],
    bare: None,
};
const STATS: Options =
    Options { values: &[], flags: &["json"], repeated: &["vhost", "zone"], bare: None };
const STATUS: Options = Options { values: &[], flags: &["json"], repeated: &[], bare: None };
const PURGE: Options = Options {
    values: &["listen"],
    flags: &["json", "all", "stale"],
    repeated: &["vhost", "zone", "url", "tag", "prefix"],
    bare: None,
};
const WARM: Options = Options {
    values: &["concurrency", "rate"],
    flags: &["json"],
    repeated: &["header", "sitemap", "url"],
    bare: Some("url"),
};

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
    let Read::Words(words, pid) = read("explain", &EXPLAIN, parser, globals)? else {
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
    Ok(match read(COMMAND, &STATUS, parser, globals)? {
        Read::Words(words, pid) => CliCommand::Admin(Admin::Ask { words, pid }),
        Read::Help => CliCommand::AdminHelp,
    })
}

/// Reads the rest of `bolide cache`.
pub(super) fn cache(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    let word = match parser.next().map_err(|error| error.to_string())? {
        Some(Value(word)) => word.to_string_lossy().into_owned(),
        Some(Short('?' | 'h') | Long("help")) => return Ok(CliCommand::AdminHelp),
        _ => return Err("\"cache\" requires one of list, stats, purge and warm".to_owned()),
    };
    let options = match word.as_str() {
        "list" => &LIST,
        "stats" => &STATS,
        "purge" => &PURGE,
        "warm" => &WARM,
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

fn read(
    command: &str,
    options: &Options,
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
            Value(word) => match options.bare {
                Some(bare) => {
                    words.push(bare, word.as_bytes());
                    continue;
                }
                None => {
                    let word = word.to_string_lossy();
                    return Err(format!("invalid option: \"{word}\""));
                }
            },
            Long(name) => name.to_owned(),
        };
        let is = |known: &[&str]| known.contains(&name.as_str());
        if name == "pid" {
            let value = text(parser, "--pid", "a process")?;
            pid = Some(value.parse().map_err(|_| format!("invalid process \"{value}\""))?);
        } else if is(options.flags) {
            words.push(&name, "");
        } else if is(options.values) || is(options.repeated) {
            if is(options.values) && words.has(&name) {
                return Err(format!("option \"--{name}\" is given twice"));
            }
            let value =
                parser.value().map_err(|_| format!("option \"--{name}\" requires a value"))?;
            words.push(&name, value.as_bytes());
        } else {
            return Err(format!("invalid option: \"--{name}\""));
        }
    }
    Ok(Read::Words(words, pid))
}
