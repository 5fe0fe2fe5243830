//! Logs: `access_log`, `log_format`, `error_log`.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use super::syslog;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, own, value};
use crate::model::{
    AccessLog, AccessTarget, ErrorLog, Escape, LogBuffer, LogFileCache, LogFormat, LogLevel,
    LogTargetConf,
};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};
use crate::value::{self as values, Unit};
use crate::vars::{Template, TemplatePart, Var};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("access_log", Contexts::HSLIE, Args::at_least(1), access_log)
        .doc(
            "The access log: a file, whose name may have variables, or syslog, and its format. \
             The format `combined_json` writes one JSON object (RFC 8259) per line, whose members \
             are variables by their names: numbers for bytes, lengths and `request_time`, strings \
             for all others, empty where there is no value; bytes that are no UTF-8 are written \
             as U+FFFD. A `log_format` of this name takes its place.",
            "access_log logs/a.log combined buffer=32k flush=1m gzip=4 if=$http_x_log;",
        )
        .takes(
            "FILE | syslog:server=HOST[,…] | off [NAME] [buffer=SIZE] [gzip[=NUMBER]] \
         [flush=TIME] [if=TEXT]",
        )
        .default("logs/access.log combined"),
    own("log_format", Contexts::HTTP, Args::at_least(2), log_format)
        .doc("Defines a format of access logs.", "log_format short '$remote_addr $status';")
        .takes("NAME [escape=default|json|none] TEXT…")
        .without("`combined` and `combined_json` are predefined"),
    list("error_log", Contexts::MHSL, Args::at_least(1), error_log)
        .doc(
            "The error log: a file, `stderr` or syslog, and its least level.",
            "error_log syslog:server=127.0.0.1,tag=site warn;",
        )
        .takes("FILE | stderr | memory:SIZE | syslog:server=HOST[,…] [LEVEL]")
        .default("logs/error.log error"),
    flag("log_subrequest", HSL, |r| &mut r.settings().log_subrequest)
        .doc("Whether subrequests are logged too.", "log_subrequest on;"),
    value("open_log_file_cache", HSL, Args::between(1, 4), open_log_file_cache)
        .doc(
            "The cache of open logs with variables in their names; without it each write opens \
             the file.",
            "open_log_file_cache max=100 inactive=20s min_uses=2 valid=1m;",
        )
        .takes("max=NUMBER [inactive=SECONDS] [min_uses=NUMBER] [valid=SECONDS] | off")
        .default("off"),
];

/// The predefined format.
pub(crate) fn combined() -> LogFormat {
    let text = |text: &str| TemplatePart::Text(Arc::from(text.as_bytes()));
    let field = |name: &str| crate::vars::FieldName::from_variable(name);
    let parts = vec![
        TemplatePart::Var(Var::RemoteAddr),
        text(" - "),
        TemplatePart::Var(Var::RemoteUser),
        text(" ["),
        TemplatePart::Var(Var::TimeLocal),
        text("] \""),
        TemplatePart::Var(Var::Request),
        text("\" "),
        TemplatePart::Var(Var::Status),
        text(" "),
        TemplatePart::Var(Var::BodyBytesSent),
        text(" \""),
        TemplatePart::Var(Var::RequestField(field("referer"))),
        text("\" \""),
        TemplatePart::Var(Var::RequestField(field("user_agent"))),
        text("\""),
    ];
    let line = Template::new(parts);
    LogFormat { name: "combined".to_owned(), escape: Escape::Default, line }
}

/// How a member of a JSON line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonMember {
    /// In quotes.
    Text,
    /// As it is: the variable always is a JSON number.
    Number,
}

/// The members of `combined_json`, by the names of their variables.
///
/// A status may be 000 and times of upstream servers are lists: none of them is a number to JSON.
const JSON_MEMBERS: &[(&str, JsonMember)] = &[
    ("time_iso8601", JsonMember::Text),
    ("msec", JsonMember::Number),
    ("remote_addr", JsonMember::Text),
    ("remote_user", JsonMember::Text),
    ("request_id", JsonMember::Text),
    ("request_method", JsonMember::Text),
    ("scheme", JsonMember::Text),
    ("host", JsonMember::Text),
    ("server_name", JsonMember::Text),
    ("request_uri", JsonMember::Text),
    ("server_protocol", JsonMember::Text),
    ("request", JsonMember::Text),
    ("status", JsonMember::Text),
    ("bytes_sent", JsonMember::Number),
    ("body_bytes_sent", JsonMember::Number),
    ("request_length", JsonMember::Number),
    ("request_completion", JsonMember::Text),
    ("http_referer", JsonMember::Text),
    ("http_user_agent", JsonMember::Text),
    ("request_time", JsonMember::Number),
    ("upstream_addr", JsonMember::Text),
    ("upstream_status", JsonMember::Text),
    ("upstream_connect_time", JsonMember::Text),
    ("upstream_header_time", JsonMember::Text),
    ("upstream_response_time", JsonMember::Text),
    ("upstream_cache_status", JsonMember::Text),
    ("page_cache_reason", JsonMember::Text),
    ("ssl_protocol", JsonMember::Text),
    ("ssl_cipher", JsonMember::Text),
    ("connection", JsonMember::Number),
    ("connection_requests", JsonMember::Number),
];

/// The index of the format `combined_json`, which is made when it is asked for first.
fn combined_json(r: &mut ConfReader) -> Result<u32, ReadFault> {
    if let Some(index) = r.http.json_format {
        return Ok(index);
    }
    let mut text = String::new();
    for (at, (name, member)) in JSON_MEMBERS.iter().enumerate() {
        let start = if at == 0 { '{' } else { ',' };
        let quote = if *member == JsonMember::Text { "\"" } else { "" };
        text.push_str(&format!("{start}\"{name}\":{quote}${name}{quote}"));
    }
    text.push('}');
    let line = r.log_template(text.as_bytes())?;
    let index = r.http.log_formats.len() as u32;
    let name = "combined_json".to_owned();
    r.http.log_formats.push(LogFormat { name, escape: Escape::StrictJson, line });
    r.http.json_format = Some(index);
    Ok(index)
}

fn log_format(r: &mut ConfReader, node: &Node) -> ReadResult {
    let name = show(node.arg(0)).into_owned();
    if name == "combined" || r.http.format_index.contains_key(&name) {
        return Err(ReadFault::Text(format!("duplicate \"log_format\" name \"{name}\"")));
    }
    let (escape, first) = match node.arg(1).strip_prefix(b"escape=") {
        None => (Escape::Default, 1),
        Some(b"default") => (Escape::Default, 2),
        Some(b"json") => (Escape::Json, 2),
        Some(b"none") => (Escape::None, 2),
        Some(other) => {
            let shown = show(other);
            return Err(ReadFault::Text(format!("unknown log format escaping \"{shown}\"")));
        }
    };
    let mut parts = Vec::new();
    for word in node.args().skip(first) {
        parts.extend_from_slice(r.log_template(word)?.parts());
    }
    let line = Template::new(joined(parts));
    let index = r.http.log_formats.len() as u32;
    r.http.log_formats.push(LogFormat { name: name.clone(), escape, line });
    r.http.format_index.insert(name, (index, node.order));
    Ok(())
}

/// Joins neighbouring texts.
fn joined(parts: Vec<TemplatePart>) -> Vec<TemplatePart> {
    let mut out: Vec<TemplatePart> = Vec::with_capacity(parts.len());
    for part in parts {
        match (out.last_mut(), part) {
            (Some(TemplatePart::Text(before)), TemplatePart::Text(text)) => {
                *before = [&**before, &*text].concat().into();
            }
            (_, part) => out.push(part),
        }
    }
    out
}

fn access_log(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    if word == b"off" {
        if node.args_count() > 1 {
            return Err(invalid_parameter(node.arg(1)));
        }
        r.settings().access_log = Arc::default();
        r.scope.access_log_off = true;
        return Ok(());
    }
    let target = match word.strip_prefix(b"syslog:") {
        Some(rest) => AccessTarget::Syslog(Arc::new(syslog::read(r, rest)?)),
        None if word.is_empty() => AccessTarget::Stderr,
        None => {
            let whole = r.below_prefix(word);
            let path = r.template(whole.as_os_str().as_bytes())?;
            match path.as_text() {
                Some(_) => AccessTarget::File(Arc::new(whole)),
                None => AccessTarget::Variable(path),
            }
        }
    };
    let format = format_of(r, node)?;
    let mut log = AccessLog { target, format, condition: None };
    let terms = parameters(r, node, &mut log)?;
    gather(r, word, &log, terms)?;
    let (again, off) = (r.again, r.scope.access_log_off);
    let logs = &mut r.settings().access_log;
    if !again {
        *logs = Arc::default();
    }
    // `off` in a block silences it, despite any other log of the block.
    if !off {
        Arc::make_mut(logs).push(log);
    }
    Ok(())
}

/// The index of a log's format; only formats read before it are known.
fn format_of(r: &mut ConfReader, node: &Node) -> Result<u32, ReadFault> {
    let name = if node.args_count() > 1 { show(node.arg(1)) } else { "combined".into() };
    if name == "combined" {
        return Ok(0);
    }
    match r.http.format_index.get(&*name) {
        Some((index, order)) if *order < node.order => Ok(*index),
        _ if name == "combined_json" => combined_json(r),
        _ => Err(ReadFault::Text(format!("unknown log format \"{name}\""))),
    }
}

/// Buffer size, longest wait and compression of an access log.
#[derive(Clone, Copy, Debug, Default)]
struct Terms {
    size: Option<usize>,
    flush: Option<Duration>,
    gzip: Option<u8>,
}

fn parameters(r: &mut ConfReader, node: &Node, log: &mut AccessLog) -> Result<Terms, ReadFault> {
    let mut terms = Terms::default();
    for word in node.args().skip(2) {
        let text = show(word);
        if let Some(size) = text.strip_prefix("buffer=") {
            let size = values::size(size.as_bytes()).and_then(|size| usize::try_from(size).ok());
            let size = size.filter(|size| *size > 0).ok_or_else(|| {
                ReadFault::Text(format!("invalid buffer size \"{}\"", &text["buffer=".len()..]))
            })?;
            terms.size = Some(size);
        } else if let Some(time) = text.strip_prefix("flush=") {
            let flush = values::time(time.as_bytes(), Unit::Millis);
            let flush = flush
                .filter(|flush| *flush > Duration::ZERO)
                .ok_or_else(|| ReadFault::Text(format!("invalid flush time \"{time}\"")))?;
            terms.flush = Some(flush);
        } else if text == "gzip" || text.starts_with("gzip=") {
            let level = text.strip_prefix("gzip=").unwrap_or("1");
            terms.gzip = match values::number(level.as_bytes()) {
                Some(level @ 1..=9) => Some(level as u8),
                _ => {
                    return Err(ReadFault::Text(format!("invalid compression level \"{level}\"")));
                }
            };
            terms.size = terms.size.or(Some(64 << 10));
        } else if let Some(condition) = word.strip_prefix(b"if=") {
            log.condition = Some(r.template(condition)?);
        } else {
            return Err(invalid_parameter(word));
        }
    }
    Ok(terms)
}

/// The buffer parameters of a log apply to the file, whichever logs write to it.
fn gather(r: &mut ConfReader, word: &[u8], log: &AccessLog, terms: Terms) -> ReadResult {
    let shown = show(word);
    let Terms { size, flush, gzip } = terms;
    let Some(size) = size else {
        return match flush {
            Some(_) => {
                Err(ReadFault::Text(format!("no buffer is defined for access_log \"{shown}\"")))
            }
            None => Ok(()),
        };
    };
    let path = match &log.target {
        AccessTarget::Variable(_) => {
            return Err(ReadFault::Text("buffered logs cannot have variables in name".to_owned()));
        }
        AccessTarget::Syslog(_) => {
            return Err(ReadFault::Text("logs to syslog cannot be buffered".to_owned()));
        }
        AccessTarget::File(path) => path,
        AccessTarget::Stderr => return Ok(()),
    };
    let buffer = LogBuffer { path: path.clone(), size, flush, gzip };
    match r.http.log_buffers.iter().find(|known| known.path == *path) {
        Some(known) if *known != buffer => {
            let rest = "already defined with conflicting parameters";
            Err(ReadFault::Text(format!("access_log \"{shown}\" {rest}")))
        }
        Some(_) => Ok(()),
        None => {
            r.http.log_buffers.push(buffer);
            Ok(())
        }
    }
}

fn error_log(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    let target = if word == b"stderr" || word.is_empty() {
        LogTargetConf::Stderr
    } else if let Some(rest) = word.strip_prefix(b"syslog:") {
        LogTargetConf::Syslog(Arc::new(syslog::read(r, rest)?))
    } else if let Some(size) = word.strip_prefix(b"memory:") {
        check_memory(r, node, size)?;
        LogTargetConf::Memory
    } else {
        LogTargetConf::File(r.below_prefix(word))
    };
    let log = ErrorLog { target, level: level(node)? };
    let again = r.again;
    let logs = if r.scope.context == Contexts::MAIN {
        &mut r.main.error_log
    } else {
        &mut r.settings().error_log
    };
    if !again {
        *logs = Arc::default();
    }
    Arc::make_mut(logs).push(log);
    Ok(())
}

/// nginx requires room for a line of 2048 bytes and for a head that names the file.
fn check_memory(r: &ConfReader, node: &Node, word: &[u8]) -> ReadResult {
    let needed =
        "MEMLOG  :\n\0".len() + r.place(node).file.len() + 2 * "-9223372036854775808".len();
    match values::size(word) {
        Some(size) if size >= (needed + 2048) as u64 => Ok(()),
        _ => Err(ReadFault::Text(format!("invalid buffer size \"{}\"", show(word)))),
    }
}

/// The level in the words after a target. Debug levels of single modules may be several.
fn level(node: &Node) -> Result<LogLevel, ReadFault> {
    let (mut level, mut parts) = (None, false);
    for word in node.args().skip(1) {
        let fault = |what: &str| ReadFault::Text(format!("{what} log level \"{}\"", show(word)));
        match LogLevel::parse(word) {
            Some(_) if parts || level.is_some() => return Err(fault("duplicate")),
            Some(named) => level = Some(named),
            None if is_part(word) && level.is_none() => parts = true,
            None => return Err(fault("invalid")),
        }
    }
    Ok(level.unwrap_or(if parts { LogLevel::Debug } else { LogLevel::Error }))
}

/// A debug level of one module; this server has only the general one.
fn is_part(word: &[u8]) -> bool {
    let parts = ["core", "alloc", "mutex", "event", "http", "mail", "stream"];
    let part = word.strip_prefix(b"debug_");
    part.is_some_and(|part| parts.iter().any(|known| known.as_bytes() == part))
}

fn open_log_file_cache(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut cache = LogFileCache {
        max: 0,
        inactive: Duration::from_secs(10),
        valid: Duration::from_secs(60),
        min_uses: 1,
    };
    let mut is_off = false;
    for word in node.args() {
        let count = |digits: &[u8]| values::number(digits).and_then(|n| u32::try_from(n).ok());
        let time = |text: &[u8]| values::time(text, Unit::Seconds);
        let read = if let Some(digits) = word.strip_prefix(b"max=") {
            count(digits).map(|max| cache.max = max as usize)
        } else if let Some(digits) = word.strip_prefix(b"min_uses=") {
            count(digits).map(|uses| cache.min_uses = uses)
        } else if let Some(text) = word.strip_prefix(b"inactive=") {
            time(text).map(|time| cache.inactive = time)
        } else if let Some(text) = word.strip_prefix(b"valid=") {
            time(text).map(|time| cache.valid = time)
        } else {
            is_off |= word == b"off";
            is_off.then_some(())
        };
        if read.is_none() {
            let shown = show(word);
            let message = format!("invalid \"open_log_file_cache\" parameter \"{shown}\"");
            return Err(ReadFault::Text(message));
        }
    }
    if cache.max == 0 && !is_off {
        let message = "\"open_log_file_cache\" must have \"max\" parameter";
        return Err(ReadFault::Text(message.to_owned()));
    }
    debug_assert!(!r.again, "a second one is refused before it is read");
    r.settings().log_file_cache = (!is_off).then_some(cache);
    Ok(())
}
