//! Logs: `access_log`, `log_format`, `error_log`.

use std::sync::Arc;
use std::time::Duration;

use super::listen::{Number, addresses_for};
use crate::ast::Node;
use crate::directive::{Args, Contexts, Directive, flag, list, own, value};
use crate::model::{
    AccessLog, AccessTarget, ErrorLog, Escape, Level, LogFormat, LogTarget, Syslog, SyslogServer,
};
use crate::reader::{Fault, Parsed, Reader, invalid_parameter, show};
use crate::value::{self as values, Unit};
use crate::vars::{Part, Template, Var};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[Directive] = &[
    list("access_log", Contexts::HSLIE, Args::at_least(1), access_log)
        .doc("Where requests are logged, and how.", "access_log logs/a.log combined buffer=32k;"),
    own("log_format", Contexts::HTTP, Args::at_least(2), log_format)
        .doc("Names a format for access logs.", "log_format short '$remote_addr $status';"),
    list("error_log", Contexts::MHSL, Args::at_least(1), error_log)
        .doc("Where trouble is logged, and from which level on.", "error_log logs/e.log warn;"),
    flag("log_subrequest", HSL, |r| &mut r.settings().log_subrequest)
        .doc("Whether requests made inside are logged too.", "log_subrequest on;"),
    value("open_log_file_cache", HSL, Args::between(1, 4), open_log_file_cache)
        .doc("Keeps logs with variable names open.", "open_log_file_cache max=100;"),
];

/// The format that is there without being written.
pub(crate) fn combined() -> LogFormat {
    let text = |text: &str| Part::Text(Arc::from(text.as_bytes()));
    let field = |name: &str| crate::vars::FieldName::from_variable(name);
    let parts = vec![
        Part::Var(Var::RemoteAddr),
        text(" - "),
        Part::Var(Var::RemoteUser),
        text(" ["),
        Part::Var(Var::TimeLocal),
        text("] \""),
        Part::Var(Var::Request),
        text("\" "),
        Part::Var(Var::Status),
        text(" "),
        Part::Var(Var::BodyBytesSent),
        text(" \""),
        Part::Var(Var::RequestField(field("referer"))),
        text("\" \""),
        Part::Var(Var::RequestField(field("user_agent"))),
        text("\""),
    ];
    let line = Template::new(parts);
    LogFormat { name: "combined".to_owned(), escape: Escape::Default, line }
}

fn log_format(r: &mut Reader, node: &Node) -> Parsed {
    let name = show(node.arg(0)).into_owned();
    if name == "combined" || r.http.format_index.contains_key(&name) {
        return Err(Fault::Text(format!("duplicate \"log_format\" name \"{name}\"")));
    }
    let (escape, first) = match node.arg(1).strip_prefix(b"escape=") {
        None => (Escape::Default, 1),
        Some(b"default") => (Escape::Default, 2),
        Some(b"json") => (Escape::Json, 2),
        Some(b"none") => (Escape::None, 2),
        Some(other) => {
            let shown = show(other);
            return Err(Fault::Text(format!("unknown log format escaping \"{shown}\"")));
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
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (out.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => {
                *before = [&**before, &*text].concat().into();
            }
            (_, part) => out.push(part),
        }
    }
    out
}

fn access_log(r: &mut Reader, node: &Node) -> Parsed {
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
        Some(rest) => AccessTarget::Syslog(Arc::new(syslog(r, rest)?)),
        None => {
            let path = r.template(word)?;
            match path.as_text() {
                Some(text) => AccessTarget::File(Arc::new(r.below_prefix(text))),
                None => AccessTarget::Variable(path),
            }
        }
    };
    let format = format_of(r, node)?;
    let log = parameters(
        r,
        node,
        AccessLog { target, format, buffer: None, flush: None, gzip: None, condition: None },
    )?;
    check_buffer(r, word, &log)?;
    let (again, off) = (r.again, r.scope.access_log_off);
    let logs = &mut r.settings().access_log;
    if !again {
        *logs = Arc::default();
    }
    // `off` in a block silences it, whatever else the block says.
    if !off {
        Arc::make_mut(logs).push(log);
    }
    Ok(())
}

/// The index of the format that a log names; only formats read before it are known.
fn format_of(r: &Reader, node: &Node) -> Result<u32, Fault> {
    let name = if node.args_count() > 1 { show(node.arg(1)) } else { "combined".into() };
    if name == "combined" {
        return Ok(0);
    }
    match r.http.format_index.get(&*name) {
        Some((index, order)) if *order < node.order => Ok(*index),
        _ => Err(Fault::Text(format!("unknown log format \"{name}\""))),
    }
}

fn parameters(r: &mut Reader, node: &Node, mut log: AccessLog) -> Result<AccessLog, Fault> {
    for word in node.args().skip(2) {
        let text = show(word);
        if let Some(size) = text.strip_prefix("buffer=") {
            let size = values::size(size.as_bytes()).and_then(|size| usize::try_from(size).ok());
            let size = size.filter(|size| *size > 0).ok_or_else(|| {
                Fault::Text(format!("invalid buffer size \"{}\"", &text["buffer=".len()..]))
            })?;
            log.buffer = Some(size);
        } else if let Some(time) = text.strip_prefix("flush=") {
            let flush = values::time(time.as_bytes(), Unit::Millis);
            let flush = flush
                .filter(|flush| *flush > Duration::ZERO)
                .ok_or_else(|| Fault::Text(format!("invalid flush time \"{time}\"")))?;
            log.flush = Some(flush);
        } else if text == "gzip" || text.starts_with("gzip=") {
            let level = text.strip_prefix("gzip=").unwrap_or("1");
            log.gzip = match values::number(level.as_bytes()) {
                Some(level @ 1..=9) => Some(level as u8),
                _ => {
                    return Err(Fault::Text(format!("invalid compression level \"{level}\"")));
                }
            };
            log.buffer = log.buffer.or(Some(64 << 10));
        } else if let Some(condition) = word.strip_prefix(b"if=") {
            log.condition = Some(r.template(condition)?);
        } else {
            return Err(invalid_parameter(word));
        }
    }
    Ok(log)
}

fn check_buffer(r: &mut Reader, word: &[u8], log: &AccessLog) -> Parsed {
    let shown = show(word);
    if log.flush.is_some() && log.buffer.is_none() {
        return Err(Fault::Text(format!("no buffer is defined for access_log \"{shown}\"")));
    }
    let path = match &log.target {
        AccessTarget::Variable(_) if log.buffer.is_some() => {
            return Err(Fault::Text("buffered logs cannot have variables in name".to_owned()));
        }
        AccessTarget::Syslog(_) if log.buffer.is_some() => {
            return Err(Fault::Text("logs to syslog cannot be buffered".to_owned()));
        }
        AccessTarget::File(path) => path,
        AccessTarget::Variable(_) | AccessTarget::Syslog(_) => return Ok(()),
    };
    let terms = (log.buffer, log.flush, log.gzip);
    match r.http.buffers.get(&**path) {
        Some(known) if *known != terms && log.buffer.is_some() => {
            let path = path.display();
            let rest = "already defined with conflicting parameters";
            Err(Fault::Text(format!("access_log \"{path}\" {rest}")))
        }
        Some(_) => Ok(()),
        None => {
            if log.buffer.is_some() {
                r.http.buffers.insert(path.to_path_buf(), terms);
            }
            Ok(())
        }
    }
}

fn error_log(r: &mut Reader, node: &Node) -> Parsed {
    let word = node.arg(0);
    let target = if word == b"stderr" {
        LogTarget::Stderr
    } else if let Some(rest) = word.strip_prefix(b"syslog:") {
        LogTarget::Syslog(syslog(r, rest)?)
    } else if word.starts_with(b"memory:") {
        let message = "\"error_log memory:\" is not implemented yet";
        return Err(Fault::Text(message.to_owned()));
    } else {
        LogTarget::File(r.below_prefix(word))
    };
    let level = level_of(node)?;
    let (log, again) = (ErrorLog { target, level }, r.again);
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

/// The level behind the target: one, or parts of debugging.
fn level_of(node: &Node) -> Result<Level, Fault> {
    let (mut level, mut in_parts) = (None, false);
    for word in node.args().skip(1) {
        let fault = |what| Err(Fault::Text(format!("{what} log level \"{}\"", show(word))));
        match (Level::parse(word), debug_level(word)) {
            (Some(_), _) if level.is_some() => return fault("duplicate"),
            (Some(read), _) => level = Some(read),
            (None, Some(read)) if level.is_none() || in_parts => {
                (level, in_parts) = (Some(read), true);
            }
            (None, _) => return fault("invalid"),
        }
    }
    Ok(level.unwrap_or(Level::Error))
}

/// Debugging of one part of nginx; we know only all of it.
fn debug_level(word: &[u8]) -> Option<Level> {
    let parts = ["core", "alloc", "mutex", "event", "http", "mail", "stream"];
    let part = word.strip_prefix(b"debug_")?;
    parts.iter().any(|known| known.as_bytes() == part).then_some(Level::Debug)
}

const FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv",
    "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];
const SEVERITIES: &[&str] = &["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];

/// Reads what follows `syslog:`.
fn syslog(r: &Reader, text: &[u8]) -> Result<Syslog, Fault> {
    let (mut server, mut facility, mut severity) = (None, None, None);
    let (mut tag, mut nohostname) = (None, false);
    let text = show(text);
    for part in text.split(',') {
        let fault = |text: String| Err(Fault::Text(text));
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let again = match name {
            "server" => server.is_some(),
            "facility" => facility.is_some(),
            "severity" => severity.is_some(),
            "tag" => tag.is_some(),
            _ => false,
        };
        if again {
            return fault(format!("duplicate syslog \"{name}\""));
        }
        match name {
            "server" => server = Some(syslog_server(r, value)?),
            "facility" => match FACILITIES.iter().position(|known| *known == value) {
                Some(number) => facility = Some(number as u8),
                None => return fault(format!("unknown syslog facility \"{value}\"")),
            },
            "severity" => match SEVERITIES.iter().position(|known| *known == value) {
                Some(number) => severity = Some(number as u8),
                None => return fault(format!("unknown syslog severity \"{value}\"")),
            },
            "tag" if value.len() > 32 => {
                return fault("syslog tag length exceeds 32".to_owned());
            }
            "tag" if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
                let rest = "only allows alphanumeric characters and underscore";
                return fault(format!("syslog \"tag\" {rest}"));
            }
            "tag" => tag = Some(value.to_owned()),
            "nohostname" if value.is_empty() => nohostname = true,
            _ => return fault(format!("unknown syslog parameter \"{part}\"")),
        }
    }
    let Some(server) = server else {
        return Err(Fault::Text("no syslog server specified".to_owned()));
    };
    Ok(Syslog {
        server,
        facility: facility.unwrap_or(23),
        severity: severity.unwrap_or(6),
        tag: tag.unwrap_or_else(|| "nginx".to_owned()),
        nohostname,
    })
}

fn syslog_server(r: &Reader, text: &str) -> Result<SyslogServer, Fault> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(SyslogServer::Unix(path.into()));
    }
    let address = addresses_for(r, text.as_bytes(), 514, Number::Host);
    let why = match address {
        Ok(found) => match found.into_iter().next() {
            Some(address) => return Ok(SyslogServer::Inet(address)),
            None => "host not found",
        },
        Err(why) => why,
    };
    Err(Fault::Text(format!("{why} in syslog server \"{text}\"")))
}

fn open_log_file_cache(r: &mut Reader, node: &Node) -> Parsed {
    let (mut has_max, mut is_off) = (false, false);
    for word in node.args() {
        let is_number = |digits: &[u8]| values::number(digits).is_some_and(|number| number > 0);
        let is_time = |text: &[u8]| values::time(text, Unit::Seconds).is_some();
        let fits = if let Some(digits) = word.strip_prefix(b"max=") {
            has_max = true;
            is_number(digits)
        } else if let Some(digits) = word.strip_prefix(b"min_uses=") {
            is_number(digits)
        } else if let Some(time) =
            word.strip_prefix(b"inactive=").or_else(|| word.strip_prefix(b"valid="))
        {
            is_time(time)
        } else {
            is_off |= word == b"off";
            word == b"off"
        };
        if !fits {
            let shown = show(word);
            let message = format!("invalid \"open_log_file_cache\" parameter \"{shown}\"");
            return Err(Fault::Text(message));
        }
    }
    if !has_max && !is_off {
        let message = "\"open_log_file_cache\" must have \"max\" parameter";
        return Err(Fault::Text(message.to_owned()));
    }
    debug_assert!(!r.again, "a second one is refused before it is read");
    Ok(())
}
