//! Where log lines go and how they look.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::vars::Template;

/// How grave a message is; the order is nginx's, gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// `emerg`
    Emerg,
    /// `alert`
    Alert,
    /// `crit`
    Crit,
    /// `error`
    Error,
    /// `warn`
    Warn,
    /// `notice`
    Notice,
    /// `info`
    Info,
    /// `debug`
    Debug,
}

impl LogLevel {
    /// As in a log line.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Emerg => "emerg",
            Self::Alert => "alert",
            Self::Crit => "crit",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// The level that `text` names.
    #[must_use]
    pub const fn parse(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"emerg" => Self::Emerg,
            b"alert" => Self::Alert,
            b"crit" => Self::Crit,
            b"error" => Self::Error,
            b"warn" => Self::Warn,
            b"notice" => Self::Notice,
            b"info" => Self::Info,
            b"debug" => Self::Debug,
            _ => return None,
        })
    }
}

/// One `error_log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLog {
    /// Where lines go.
    pub target: LogTargetConf,
    /// The least grave level that is written.
    pub level: LogLevel,
}

/// Where an error log's lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTargetConf {
    /// Appended to a file.
    File(PathBuf),
    /// Standard error.
    Stderr,
    /// A syslog server.
    Syslog(Arc<Syslog>),
    /// `memory:`: kept for a debugger with nginx, and nowhere here.
    Memory,
}

/// A `syslog:` target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Syslog {
    /// The server.
    pub server: SyslogServer,
    /// Facility number (`kern` 0 … `local7` 23).
    pub facility: u8,
    /// Severity number (`emerg` 0 … `debug` 7).
    pub severity: u8,
    /// The tag, `nginx` by default.
    pub tag: String,
    /// Whether the host name is left out.
    pub nohostname: bool,
}

/// Where syslog datagrams go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SyslogServer {
    /// UDP.
    Inet(SocketAddr),
    /// A unix datagram socket.
    Unix(PathBuf),
}

/// A named `log_format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    /// Its name.
    pub name: String,
    /// How values of variables are escaped.
    pub escape: Escape,
    /// One line, without the line end.
    pub line: Template,
}

/// How values of variables are escaped in a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `"`, `\`, below 0x20 and from 0x7f as `\xHH`; an absent value is `-`.
    Default,
    /// As inside a JSON string; an absent value is empty.
    Json,
    /// Not at all; an absent value is empty.
    None,
}

/// The access logs of a location.
pub type AccessLogs = Arc<Vec<AccessLog>>;

/// One `access_log`. `access_log off` is an empty list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where lines go.
    pub target: AccessTarget,
    /// Index of the format in [`super::Http::log_formats`].
    pub format: u32,
    /// `if=`: log unless it is empty or `0`.
    pub condition: Option<Template>,
}

/// Where an access log's lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// A file with a fixed path (absolute).
    File(Arc<PathBuf>),
    /// A file whose absolute path holds variables.
    Variable(Template),
    /// A syslog server.
    Syslog(Arc<Syslog>),
    /// Standard error, which an empty name means.
    Stderr,
}

/// `buffer=`, `flush=` and `gzip=` of a file; they hold for every access log that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBuffer {
    /// The file.
    pub path: Arc<PathBuf>,
    /// Bytes gathered before they are written.
    pub size: usize,
    /// The longest a gathered line waits.
    pub flush: Option<Duration>,
    /// gzip level of what is written.
    pub gzip: Option<u8>,
}

/// `open_log_file_cache`: files whose names hold variables and that stay open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogFileCache {
    /// `max=`: how many.
    pub max: usize,
    /// `inactive=`: how long without a line.
    pub inactive: Duration,
    /// `valid=`: how long before it is looked whether the name means another file.
    pub valid: Duration,
    /// `min_uses=`: lines within `inactive` that make a file worth keeping.
    pub min_uses: u32,
}
