//! The command line: nginx's options, and Bolide's own commands.

mod admin;
mod adopt;
mod help;
#[cfg(test)]
mod manual;
mod table;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use bolide_io::signal::Signal;
use lexopt::prelude::*;

use help::help_rows;
pub(crate) use help::{CommandHelp, admin_help, help};

use crate::adopted_sockets;
use crate::invocation::{
    CheckDetail, CheckOptions, CliCommand, CliPurpose, Invocation, LOOPBACK, PREFIX, PhpCommand,
    Scripts, Serve, ServeCaching, Show, TopShape,
};

/// The configuration below the prefix, unless `-c` sets it: the first that exists.
const CONF_FILES: [&str; 3] = ["bolide.conf", "nginx.conf", "conf/nginx.conf"];

/// All addresses of this machine.
const EVERYWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

/// Reads the arguments.
///
/// # Errors
///
/// In nginx's words, where it has any.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, String> {
    let args: Vec<OsString> = args.into_iter().collect();
    // No option here allows it, and nginx treats it as the option `-`.
    if args.iter().skip(1).any(|arg| arg == "--") {
        return Err("invalid option: \"-\"".to_owned());
    }
    let mut parser = lexopt::Parser::from_iter(args);
    let mut command = None;
    let (mut globals, mut asked) = (Globals::default(), Asked::default());
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Short(letter @ ('?' | 'h' | 'v' | 'V' | 't' | 'T')) => asked.take(letter),
            Long("help") => asked.take('h'),
            Long("version") => asked.take('v'),
            Short('s') => asked.signal = Some(signal(&text(&mut parser, "-s", "parameter")?)?),
            Short(letter @ ('q' | 'p' | 'c' | 'e' | 'g')) => globals.take(letter, &mut parser)?,
            // As in nginx: a dash without a letter has no effect.
            Value(word) if word == "-" => {}
            Value(word) if command.is_none() => {
                command = Some(own_command(&word, &mut parser, &mut globals)?);
            }
            Value(name) if matches!(command, Some(CliCommand::Php(PhpCommand::Restart(None)))) => {
                let name = name.to_string_lossy().into_owned();
                command = Some(CliCommand::Php(PhpCommand::Restart(Some(name))));
            }
            Short(other) => return Err(format!("invalid option: \"{other}\"")),
            Long(other) => return Err(format!("invalid option: \"--{other}\"")),
            Value(word) => return Err(format!("invalid option: \"{}\"", word.to_string_lossy())),
        }
    }
    let Globals { prefix, conf, error_log, globals, quiet } = globals;
    let names_conf = conf.is_some();
    let directory = std::env::current_dir().map_err(|error| error.to_string())?;
    let prefix = prefix.map_or_else(|| PathBuf::from(PREFIX), |prefix| directory.join(prefix));
    // As in nginx: a relative -c starts from the prefix.
    let conf = conf.map_or_else(|| default_conf(&prefix), |conf| prefix.join(conf));
    let command = asked.command().or(command).unwrap_or(CliCommand::Run);
    let pid_file = adopted_sockets::pid_file();
    Ok(Invocation {
        directory,
        command,
        prefix,
        conf,
        names_conf,
        globals,
        error_log,
        quiet,
        pid_file,
    })
}

/// Parses one of Bolide's own commands up to where nginx's options may follow.
fn own_command(
    word: &OsString,
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<CliCommand, String> {
    if parser.clone().raw_args().is_ok_and(|mut rest| rest.any(|arg| asks_for_help(&arg)))
        && let Some(rows) = word.to_str().and_then(help_rows)
    {
        // What else the line says does not count.
        if let Ok(rest) = parser.raw_args() {
            rest.for_each(drop);
        }
        return Ok(CliCommand::CommandHelp(rows));
    }
    Ok(match word.to_str() {
        Some("serve" | "demo") => CliCommand::Serve(serve(parser)?),
        Some("check") => CliCommand::Check(check(parser, globals)?),
        Some("import") => CliCommand::Import(import(parser)?),
        Some("adopt") => CliCommand::Adopt(adopt::adopt(parser, globals)?),
        Some("explain") => admin::explain(parser, globals)?,
        Some("cache") => admin::cache(parser, globals)?,
        Some("status") => admin::status(parser, globals)?,
        Some("reload") => admin::reload(parser, globals)?,
        Some("drain") => admin::drain(parser, globals)?,
        Some("metrics") => admin::metrics(parser, globals)?,
        Some("acme") => admin::acme(parser, globals)?,
        Some("cluster") => admin::cluster(parser, globals)?,
        Some("php") => CliCommand::Php(php(parser, globals)?),
        _ => return Err(format!("invalid option: \"{}\"", word.to_string_lossy())),
    })
}

fn asks_for_help(arg: &OsString) -> bool {
    ["--help", "-h", "-?"].iter().any(|help| *arg == **help)
}

/// nginx's options without values, and `-s`. Several may appear on one line.
#[derive(Default)]
struct Asked {
    show: Option<Show>,
    test: bool,
    dump: bool,
    signal: Option<Signal>,
}

impl Asked {
    fn take(&mut self, letter: char) {
        let show = match letter {
            'v' => Some(Show::Version),
            'V' => Some(Show::Build),
            'h' | '?' => Some(Show::Help),
            _ => None,
        };
        self.show = self.show.max(show);
        self.test |= matches!(letter, 't' | 'T');
        self.dump |= letter == 'T';
    }

    /// The resulting command. A test sends no signal, and a request for help prints nothing else.
    fn command(self) -> Option<CliCommand> {
        match (self.test, self.show, self.signal) {
            (true, show, _) => Some(CliCommand::Test { dump: self.dump, show }),
            (false, Some(show), _) => Some(CliCommand::Show(show)),
            (false, None, signal) => signal.map(CliCommand::Signal),
        }
    }
}

/// nginx's options that select the server; they may follow a command.
#[derive(Default)]
struct Globals {
    prefix: Option<PathBuf>,
    conf: Option<PathBuf>,
    error_log: Option<PathBuf>,
    globals: String,
    quiet: bool,
}

impl Globals {
    /// Parses one of these.
    fn take(&mut self, letter: char, parser: &mut lexopt::Parser) -> Result<(), String> {
        match letter {
            'p' => self.prefix = Some(path(parser, "-p", "directory name")?),
            'c' => self.conf = Some(path(parser, "-c", "file name")?),
            'e' => self.error_log = Some(path(parser, "-e", "file name")?),
            'g' => self.globals = text(parser, "-g", "parameter")?,
            _ => self.quiet = true,
        }
        Ok(())
    }
}

fn default_conf(prefix: &Path) -> PathBuf {
    let there = CONF_FILES.iter().map(|name| prefix.join(name)).find(|path| path.exists());
    there.unwrap_or_else(|| prefix.join(CONF_FILES[0]))
}

fn path(parser: &mut lexopt::Parser, option: &str, what: &str) -> Result<PathBuf, String> {
    let value = parser.value().map_err(|_| format!("option \"{option}\" requires {what}"))?;
    Ok(PathBuf::from(value))
}

fn text(parser: &mut lexopt::Parser, option: &str, what: &str) -> Result<String, String> {
    let value = parser.value().map_err(|_| format!("option \"{option}\" requires {what}"))?;
    value.into_string().map_err(|_| format!("option \"{option}\" requires valid text"))
}

fn signal(word: &str) -> Result<Signal, String> {
    match word {
        "stop" => Ok(Signal::Stop),
        "quit" => Ok(Signal::Quit),
        "reopen" => Ok(Signal::Reopen),
        "reload" => Ok(Signal::Reload),
        _ => Err(format!("invalid option: \"-s {word}\"")),
    }
}

fn check(parser: &mut lexopt::Parser, globals: &mut Globals) -> Result<CheckOptions, String> {
    let mut check = CheckOptions { file: None, detail: CheckDetail::Differences };
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Long("all") => check.detail = CheckDetail::Everything,
            Short(letter @ ('q' | 'p' | 'c' | 'e' | 'g')) => globals.take(letter, parser)?,
            Value(file) if check.file.is_none() => check.file = Some(file.into()),
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(check)
}

fn import(parser: &mut lexopt::Parser) -> Result<PathBuf, String> {
    let language = text(parser, "import", "a language")?;
    if language != "apache" {
        return Err(format!("invalid option: \"import {language}\""));
    }
    path(parser, "import apache", "file name")
}

fn php(parser: &mut lexopt::Parser, globals: &mut Globals) -> Result<PhpCommand, String> {
    let word = text(parser, "php", "a command")?;
    match word.as_str() {
        "keep" => path(parser, "php keep", "program").map(PhpCommand::Keep),
        "status" => Ok(PhpCommand::Status),
        "top" => top(parser, globals),
        "restart" => Ok(PhpCommand::Restart(None)),
        _ => Err(format!("invalid option: \"php {word}\"")),
    }
}

fn top(parser: &mut lexopt::Parser, globals: &mut Globals) -> Result<PhpCommand, String> {
    let mut shape = TopShape::Text;
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Long("json") => shape = TopShape::Json,
            Short(letter @ ('q' | 'p' | 'c' | 'e' | 'g')) => globals.take(letter, parser)?,
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(PhpCommand::Top(shape))
}

fn serve(parser: &mut lexopt::Parser) -> Result<Serve, String> {
    let mut serve = Serve {
        root: None,
        scripts: Scripts::None,
        caching: ServeCaching::Off,
        purpose: CliPurpose::Serve,
        listen: Vec::new(),
        http: None,
        https: None,
    };
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Long("listen") => listen(&text(parser, "--listen", "an address")?, &mut serve)?,
            Long("http") => serve.http = Some(port(parser, "--http")?),
            Long("https") => serve.https = Some(port(parser, "--https")?),
            Long("php") => serve.scripts = Scripts::Php,
            Long("page-cache") => {
                (serve.scripts, serve.caching) = (Scripts::Php, ServeCaching::PageCache);
            }
            Long("print-config") => serve.purpose = CliPurpose::Print,
            Value(directory) if serve.root.is_none() => serve.root = Some(directory.into()),
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(serve)
}

/// Parses `192.0.2.1`, `[::]`, `*`, and each followed by a port for http; `:8080` means all
/// addresses.
fn listen(value: &str, serve: &mut Serve) -> Result<(), String> {
    let invalid = || format!("invalid address \"{value}\" in \"--listen\"");
    let bare = value.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        serve.listen.push(address);
        return Ok(());
    }
    let (host, port) = match value.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().map_err(|_| invalid())?)),
        None => (value, None),
    };
    serve.http = port.or(serve.http);
    match host.trim_start_matches('[').trim_end_matches(']') {
        "" | "*" => serve.listen.extend(EVERYWHERE),
        "localhost" => serve.listen.extend(LOOPBACK),
        host => serve.listen.push(host.parse().map_err(|_| invalid())?),
    }
    Ok(())
}

fn port(parser: &mut lexopt::Parser, option: &str) -> Result<u16, String> {
    let value = text(parser, option, "a port")?;
    value.parse().map_err(|_| format!("invalid port \"{value}\" in \"{option}\""))
}

#[cfg(test)]
mod tests {
    use super::{CheckDetail, CheckOptions, CliCommand, PhpCommand, TopShape, parse};
    use std::path::Path;

    fn args(words: &[&str]) -> Result<super::Invocation, String> {
        parse(std::iter::once("bolide").chain(words.iter().copied()).map(Into::into))
    }

    #[test]
    fn nginx_options_are_understood_in_clusters_and_apart() {
        let all = args(&["-tq", "-c", "a.conf", "-p", "/x", "-g", "daemon off;"]).unwrap();
        assert!(matches!(all.command, CliCommand::Test { dump: false, .. }) && all.quiet);
        assert_eq!(all.conf, Path::new("/x/a.conf"));
        assert_eq!(all.globals, "daemon off;");
        let absolute = args(&["-T", "-t", "-c", "/etc/a.conf"]).unwrap();
        assert!(matches!(absolute.command, CliCommand::Test { dump: true, .. }));
        assert_eq!(absolute.conf, Path::new("/etc/a.conf"));
    }

    #[test]
    fn pools_are_commanded_one_or_all() {
        let php = |words: &[&str]| match args(words).unwrap().command {
            CliCommand::Php(php) => php,
            other => panic!("{other:?}"),
        };
        assert_eq!(php(&["php", "status"]), PhpCommand::Status);
        assert_eq!(php(&["php", "top"]), PhpCommand::Top(TopShape::Text));
        let json = ["php", "top", "--json", "-c", "/x"];
        assert_eq!(php(&json), PhpCommand::Top(TopShape::Json));
        assert_eq!(php(&["php", "restart", "-p", "/x"]), PhpCommand::Restart(None));
        assert_eq!(
            php(&["-p", "/x", "php", "restart", "www"]),
            PhpCommand::Restart(Some("www".into()))
        );
        assert_eq!(args(&["php"]).unwrap_err(), "option \"php\" requires a command");
        assert_eq!(args(&["php", "stop"]).unwrap_err(), "invalid option: \"php stop\"");
    }

    #[test]
    fn a_site_listens_on_the_given_addresses() {
        let listen = |words: &[&str]| match args(words).map(|all| all.command) {
            Ok(CliCommand::Serve(serve)) => {
                let all: Vec<String> = serve.listen.iter().map(ToString::to_string).collect();
                Ok((all.join(" "), serve.http))
            }
            other => Err(format!("{other:?}")),
        };
        let expected = |text: &str, port| Ok((text.to_owned(), port));
        assert_eq!(listen(&["serve"]), expected("", None));
        assert_eq!(listen(&["serve", "--listen", "192.0.2.1"]), expected("192.0.2.1", None));
        assert_eq!(listen(&["serve", "--listen", "*"]), expected("0.0.0.0 ::", None));
        assert_eq!(listen(&["serve", "--listen", ":80", "."]), expected("0.0.0.0 ::", Some(80)));
        assert_eq!(listen(&["serve", "--listen", "[::1]:81"]), expected("::1", Some(81)));
        assert_eq!(listen(&["serve", "--listen", "::1"]), expected("::1", None));
        assert!(listen(&["serve", "--listen", "here"]).is_err());
        assert!(listen(&["serve", "--listen", "192.0.2.1:x"]).is_err());
    }

    #[test]
    fn a_file_to_check_stands_behind_the_command() {
        let check = |words: &[&str]| match args(words).unwrap().command {
            CliCommand::Check(check) => check,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            check(&["check"]),
            CheckOptions { file: None, detail: CheckDetail::Differences }
        );
        let all = CheckOptions { file: Some("a.conf".into()), detail: CheckDetail::Everything };
        assert_eq!(check(&["check", "-p", "/x", "--all", "a.conf"]), all);
        assert!(args(&["check", "a", "b"]).is_err() && args(&["check", "--some"]).is_err());
    }

    #[test]
    fn each_command_tells_its_options() {
        let help = |words: &[&str]| match args(words).unwrap().command {
            CliCommand::CommandHelp(rows) => rows.text(),
            other => panic!("{other:?}"),
        };
        let serve = help(&["serve", "--php", "--help", "anything"]);
        assert!(serve.starts_with("Usage: bolide serve [--php] [--page-cache]"), "{serve}");
        assert!(serve.contains("    --page-cache"), "{serve}");
        assert!(help(&["check", "-h"]).contains("--all"));
        let php = help(&["php", "restart", "-?"]);
        assert!(php.contains("bolide php status") && php.contains("bolide php restart"), "{php}");
        assert!(matches!(args(&["explain", "--help"]).unwrap().command, CliCommand::AdminHelp));
    }

    #[test]
    fn mistakes_are_named_in_nginx_words() {
        assert_eq!(args(&["-x"]).unwrap_err(), "invalid option: \"x\"");
        assert_eq!(args(&["-c"]).unwrap_err(), "option \"-c\" requires file name");
        assert_eq!(args(&["-s", "run"]).unwrap_err(), "invalid option: \"-s run\"");
        assert_eq!(args(&["file"]).unwrap_err(), "invalid option: \"file\"");
    }
}
