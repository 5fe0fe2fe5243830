//! What the command line asked for, as values.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use bolide_io::signal::Signal;

use crate::admin::line_protocol::Words;
use crate::admin::warm::Warm;
use crate::cli::CommandHelp;

/// The base of relative paths, unless `-p` sets it.
pub(crate) const PREFIX: &str = "/etc/bolide";
/// The addresses that only this machine reaches.
pub(crate) const LOOPBACK: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// The command to run.
#[derive(Clone, Debug)]
pub(crate) enum CliCommand {
    /// Print the requested information and exit.
    Show(Show),
    /// Check the configuration; also print it. The output of `-v` and similar options comes first.
    Test { dump: bool, show: Option<Show> },
    /// Send a signal to the running server.
    Signal(Signal),
    /// Serve by a configuration file.
    Run,
    /// Serve a directory without a configuration file.
    Serve(Serve),
    /// Report the treatment of a configuration.
    Check(CheckOptions),
    /// Print the translation of this Apache configuration.
    Import(PathBuf),
    /// Take over from a running nginx.
    Adopt(AdoptOptions),
    /// Send a command to the php pools of the running server.
    Php(PhpCommand),
    /// Send a command to the running server.
    Admin(Admin),
    /// Print the help of these commands.
    AdminHelp,
    /// Print the help of one command.
    CommandHelp(CommandHelp),
}

/// Information about the program, in order of length; each includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Show {
    /// The version.
    Version,
    /// How it was built.
    Build,
    /// The help.
    Help,
}

/// Commands for the php pools of a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PhpCommand {
    /// Report the state.
    Status,
    /// Report what pools do and cost.
    Top(TopShape),
    /// Restart: the one with this name, or all.
    Restart(Option<String>),
    /// Internal: run between the server and this lsphp.
    Keep(PathBuf),
}

/// The output format of `php top`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopShape {
    Text,
    Json,
}

/// Whether `serve` runs scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scripts {
    /// Files only.
    None,
    /// PHP.
    Php,
}

/// Whether `serve` caches responses of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServeCaching {
    /// Every request is answered by a script.
    Off,
    /// In the page cache.
    PageCache,
}

/// The purpose of the configuration that `serve` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliPurpose {
    /// Serves by it.
    Serve,
    /// Prints it.
    Print,
}

/// `serve` and `demo`.
#[derive(Clone, Debug)]
pub(crate) struct Serve {
    pub(crate) root: Option<PathBuf>,
    pub(crate) scripts: Scripts,
    pub(crate) caching: ServeCaching,
    pub(crate) purpose: CliPurpose,
    /// The listening addresses; the default is the loopback.
    pub(crate) listen: Vec<IpAddr>,
    /// The ports, if given.
    pub(crate) http: Option<u16>,
    pub(crate) https: Option<u16>,
}

/// The command with all options.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    /// The directory in which the program was started: relative arguments begin there.
    pub(crate) directory: PathBuf,
    pub(crate) command: CliCommand,
    pub(crate) prefix: PathBuf,
    pub(crate) conf: PathBuf,
    /// Whether `-c` was there.
    pub(crate) names_conf: bool,
    pub(crate) globals: String,
    pub(crate) error_log: Option<PathBuf>,
    pub(crate) quiet: bool,
    /// The pid file in place of the configuration's.
    pub(crate) pid_file: Option<PathBuf>,
}

/// The part to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckDetail {
    /// The differences from nginx.
    Differences,
    /// Every directive.
    Everything,
}

/// `check` as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckOptions {
    /// The file, relative to the working directory; otherwise that of `-c`.
    pub(crate) file: Option<PathBuf>,
    pub(crate) detail: CheckDetail,
}

/// Whether `adopt` takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdoptPurpose {
    TakeOver,
    /// Print what would be done.
    Preview,
}

/// `adopt` as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdoptOptions {
    /// nginx's pid file; otherwise that of the configuration, or a usual one.
    pub(crate) nginx_pid: Option<PathBuf>,
    pub(crate) purpose: AdoptPurpose,
    /// How long our server is watched before nginx is ended.
    pub(crate) watch: Duration,
}

/// A command for a running server.
#[derive(Clone, Debug)]
pub(crate) enum Admin {
    /// It answers these words itself.
    Ask { words: Words, pid: Option<u32> },
    /// It gets requests for pages.
    Warm(Warm),
}
