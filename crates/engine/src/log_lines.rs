//! Access-log and error-log lines, in nginx's forms.
//!
//! Owns their text; [`bolide_log`] buffers and writes them.

mod cut;
mod refusals;
mod servers;

use std::os::unix::ffi::OsStrExt as _;

use bolide_base::Now;
use bolide_conf::model::{
    AccessTarget, ErrorLog, Escape, LogFormat, LogLevel, LogTargetConf as ConfTarget, Syslog,
};
use bolide_conf::vars::{Template, TemplatePart};
use bolide_http::Name;
use bolide_http::date::DateClock;
use bolide_http::digits::push_decimal;
use bolide_http::escape::{escape_controls, push_json, push_log, push_strict_json};

use crate::answer::Answer;
use crate::ctx::{ConnInfo, StepCtx};
use crate::request::Request;
use crate::route::LocationIndex;
use crate::site::Site;
use crate::vars::{VariableScope, VariableValue, address};
use bolide_log::{LogTarget, Logs, VariableFile};

use cut::cut_line;
pub(crate) use refusals::{log_refusal, reading};

/// Writes the access-log lines of a finished request.
pub(crate) fn access(scope: &VariableScope<'_>, ctx: &mut StepCtx<'_>, scratch: &mut Vec<u8>) {
    let Some(http) = scope.site.http() else { return };
    for log in scope.location().settings.access_log.iter() {
        if let Some(condition) = &log.condition
            && !scope.is_true(condition, scratch)
        {
            continue;
        }
        let Some(format) = http.log_formats.get(log.format as usize) else { continue };
        let now = ctx.now.mono;
        match &log.target {
            AccessTarget::File(path) => {
                let target = LogTarget::File(path.as_os_str().as_bytes());
                ctx.logs.line(target, now, |out| full_line(scope, format, out));
            }
            AccessTarget::Variable(path) => variable_file(scope, path, format, ctx),
            AccessTarget::Syslog(server) => {
                ctx.logs.line(LogTarget::Syslog(server), now, |out| {
                    push_syslog(server, server.severity, scope.site, ctx.clock, out);
                    line(scope, format, out);
                });
            }
            AccessTarget::Stderr => {
                ctx.logs.line(LogTarget::Stderr, now, |out| full_line(scope, format, out));
            }
        }
    }
}

/// Writes a line to a log file whose name has variables.
#[cold]
fn variable_file(
    scope: &VariableScope<'_>,
    name: &Template,
    format: &LogFormat,
    ctx: &mut StepCtx<'_>,
) {
    let (mut path, mut root, mut context) = (Vec::new(), Vec::new(), Vec::new());
    scope.expand(name, &mut path);
    scope.push_root(scope.location(), &mut root);
    context.extend_from_slice(b" while logging request, client: ");
    address(&mut context, scope.client());
    push_circumstances(scope.request, None, scope.site, &mut context);
    push_fields(scope.request, &mut context);
    let (cache, serial) = (scope.location().settings.log_file_cache, ctx.conn.serial);
    let file = VariableFile { path: &path, root: &root, cache, context: &context, serial };
    ctx.logs.line(LogTarget::Variable(file), ctx.now.mono, |out| full_line(scope, format, out));
}

/// Appends the header of a syslog message (RFC 3164 §4.1), as nginx does.
fn push_syslog(server: &Syslog, severity: u8, site: &Site, clock: &DateClock, out: &mut Vec<u8>) {
    out.push(b'<');
    push_decimal(out, u64::from(server.facility) * 8 + u64::from(severity));
    out.push(b'>');
    out.extend_from_slice(&clock.syslog());
    out.push(b' ');
    if !server.nohostname {
        out.extend_from_slice(site.hostname().as_bytes());
        out.push(b' ');
    }
    out.extend_from_slice(server.tag.as_bytes());
    out.extend_from_slice(b": ");
}

/// Appends one access-log line, its newline included.
fn full_line(scope: &VariableScope<'_>, format: &LogFormat, out: &mut Vec<u8>) {
    line(scope, format, out);
    out.push(b'\n');
}

/// Appends one access-log line without its end.
fn line(scope: &VariableScope<'_>, format: &LogFormat, out: &mut Vec<u8>) {
    for part in format.line.parts() {
        match part {
            TemplatePart::Text(text) => out.extend_from_slice(text),
            TemplatePart::Var(var) => {
                let start = out.len();
                let found = scope.write(var, out);
                match format.escape {
                    Escape::Default if found == VariableValue::No => out.push(b'-'),
                    Escape::Default => escape_since(out, start, needs_escape, push_log),
                    Escape::Json => escape_since(out, start, needs_json_escape, push_json),
                    Escape::StrictJson => {
                        escape_since(out, start, needs_strict_escape, push_strict_json);
                        debug_assert!(!out[start..].contains(&b'\n'), "a line has no end within");
                        debug_assert!(str::from_utf8(&out[start..]).is_ok(), "JSON is UTF-8");
                    }
                    Escape::None => {}
                }
            }
        }
    }
}

const fn needs_escape(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f | 0x7f..)
}

const fn needs_json_escape(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f)
}

const fn needs_strict_escape(byte: u8) -> bool {
    needs_json_escape(byte) || byte >= 0x80
}

/// Escapes everything after `start` in place; usually there is nothing to escape.
fn escape_since(
    out: &mut Vec<u8>,
    start: usize,
    needed: impl Fn(u8) -> bool,
    escape: impl FnOnce(&mut Vec<u8>, &[u8]),
) {
    debug_assert!(start <= out.len(), "variables only append");
    if out[start..].iter().any(|byte| needed(*byte)) {
        let raw = out.split_off(start);
        escape(out, &raw);
    }
}

/// Writes one error-log line about a request, if a log takes its level.
pub(crate) fn error(
    request: &Request,
    site: &Site,
    ctx: &mut StepCtx<'_>,
    level: LogLevel,
    text: impl Fn(&mut Vec<u8>),
) {
    error_about(request, None, site, ctx, level, text);
}

/// Writes an `[error]` line with the upstream server of the request.
pub(crate) fn error_at_origin(
    request: &Request,
    answer: &Answer,
    site: &Site,
    ctx: &mut StepCtx<'_>,
    text: impl Fn(&mut Vec<u8>),
) {
    let peer = answer.peer();
    let origin = peer.as_ref().map(|(scheme, peer)| (*scheme, &**peer));
    error_about(request, origin, site, ctx, LogLevel::Error, text);
}

/// As [`error`]; `origin` is the protocol and address of the upstream server.
pub(crate) fn error_about(
    request: &Request,
    origin: Option<(&str, &str)>,
    site: &Site,
    ctx: &mut StepCtx<'_>,
    level: LogLevel,
    text: impl Fn(&mut Vec<u8>),
) {
    error_within(request, (origin, LogFields::Read), site, ctx, level, text);
}

/// How much of a request was parsed, in nginx's order, at the time of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFields {
    /// Only the request line.
    Unread,
    /// The whole head.
    Read,
}

/// As [`error_about`], with as much of the head as nginx would have parsed.
pub(crate) fn error_within(
    request: &Request,
    (origin, fields): (Option<(&str, &str)>, LogFields),
    site: &Site,
    ctx: &mut StepCtx<'_>,
    level: LogLevel,
    text: impl Fn(&mut Vec<u8>),
) {
    let logs: &[ErrorLog] = match site.http() {
        Some(http) if !http.locations.is_empty() => {
            &site.location(request.location).settings.error_log
        }
        _ => &site.config().main.error_log,
    };
    let place = Place::of_request(site, ctx);
    lines(logs, level, place, ctx.logs, |out| {
        text(out);
        let end = out.len();
        out.extend_from_slice(b", client: ");
        address(out, request.client(ctx.conn));
        push_circumstances(request, origin, site, out);
        if fields == LogFields::Read {
            push_fields(request, out);
        }
        end
    });
}

/// The context (`client`, `server`, `request` …) for lines about a request that may be over by
/// then.
pub(crate) fn circumstances(request: &Request, site: &Site, ctx: &StepCtx<'_>) -> Vec<u8> {
    let mut out = b", client: ".to_vec();
    address(&mut out, request.client(ctx.conn));
    push_circumstances(request, None, site, &mut out);
    push_fields(request, &mut out);
    out
}

/// What later log lines need to know of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedConn {
    /// Its number.
    serial: u64,
    floor: LevelFloor,
}

impl LoggedConn {
    /// Extracts it from a connection.
    pub(crate) fn of(conn: &ConnInfo, site: &Site) -> Self {
        Self { serial: conn.serial, floor: LevelFloor::of(conn, site) }
    }
}

/// Writes a line to the logs of a location, with the connection's number.
pub(crate) fn error_at(
    site: &Site,
    (location, conn): (LocationIndex, LoggedConn),
    level: LogLevel,
    now: Now,
    clock: &DateClock,
    logs: &mut Logs,
    text: &[u8],
) {
    let place = Place { site, clock, now, serial: Some(conn.serial), floor: conn.floor };
    let targets: &[ErrorLog] = &site.location(location).settings.error_log;
    lines(targets, level, place, logs, |out| push_message(text, out));
}

/// Appends a message and returns where it ends.
fn push_message(text: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(text);
    out.len()
}

/// Writes one `[debug]` line about a request; as in nginx, no context follows its text.
pub(crate) fn debug(
    request: &Request,
    site: &Site,
    ctx: &mut StepCtx<'_>,
    text: impl Fn(&mut Vec<u8>),
) {
    let logs: &[ErrorLog] = &site.location(request.location).settings.error_log;
    let place = Place::of_request(site, ctx);
    lines(logs, LogLevel::Debug, place, ctx.logs, |out| {
        text(out);
        out.len()
    });
}

/// Which levels a log takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LevelFloor {
    /// Those of its own level and above.
    Own,
    /// All levels: `debug_connection` names the client.
    Debug,
}

impl LevelFloor {
    fn of(conn: &ConnInfo, site: &Site) -> Self {
        if site.debugs_client(conn.remote) { Self::Debug } else { Self::Own }
    }
}

/// The time and process of an error-log line.
#[derive(Clone, Copy)]
struct Place<'a> {
    site: &'a Site,
    clock: &'a DateClock,
    now: Now,
    /// The number of the connection, if there is one.
    serial: Option<u64>,
    floor: LevelFloor,
}

impl<'a> Place<'a> {
    fn of_request(site: &'a Site, ctx: &StepCtx<'a>) -> Self {
        let LoggedConn { serial, floor } = LoggedConn::of(ctx.conn, site);
        Self { site, clock: ctx.clock, now: ctx.now, serial: Some(serial), floor }
    }
}

/// Writes one line to each of `logs` that takes `level`. `text` appends the message, and returns
/// where it ends and where its context begins.
fn lines(
    logs: &[ErrorLog],
    level: LogLevel,
    place: Place<'_>,
    out: &mut Logs,
    text: impl Fn(&mut Vec<u8>) -> usize,
) {
    let (pid, tid) = (out.pid(), out.tid());
    let gets = |log: &&ErrorLog| level <= log.level || place.floor == LevelFloor::Debug;
    for log in logs.iter().filter(gets) {
        let target = match &log.target {
            ConfTarget::File(path) => LogTarget::File(path.as_os_str().as_bytes()),
            ConfTarget::Stderr => LogTarget::Stderr,
            ConfTarget::Syslog(server) => LogTarget::Syslog(server),
            ConfTarget::Memory => continue,
        };
        out.line(target, place.now.mono, |out| {
            let start = out.len();
            if let LogTarget::Syslog(server) = target {
                push_syslog(server, level as u8, place.site, place.clock, out);
            }
            let begin = out.len();
            out.extend_from_slice(place.clock.error_log());
            out.extend_from_slice(b" [");
            out.extend_from_slice(level.text().as_bytes());
            out.extend_from_slice(b"] ");
            push_decimal(out, u64::from(pid));
            out.push(b'#');
            push_decimal(out, u64::from(tid));
            out.extend_from_slice(b": ");
            if let Some(serial) = place.serial {
                out.push(b'*');
                push_decimal(out, serial);
                out.push(b' ');
            }
            let end = text(out);
            cut_line(out, begin, end);
            // Clients and applications influence the text, so control characters are escaped.
            escape_controls(out, start);
            if !matches!(target, LogTarget::Syslog(_)) {
                out.push(b'\n');
            }
        });
    }
}

fn push_circumstances(
    request: &Request,
    origin: Option<(&str, &str)>,
    site: &Site,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b", server: ");
    if site.http().is_some_and(|http| !http.servers.is_empty()) {
        out.extend_from_slice(site.server(request.server).name.as_bytes());
    }
    if !request.head().line.is_empty() {
        out.extend_from_slice(b", request: \"");
        out.extend_from_slice(&request.head().line);
        out.push(b'"');
    }
    if request.role.auth().is_some() || request.role.is_inside() {
        let uri = &request.uri;
        out.extend_from_slice(b", subrequest: \"");
        out.extend_from_slice(uri);
        out.push(b'"');
    }
    let last = request.last_origin.borrow();
    let last = last.as_ref().map(|(scheme, peer)| (*scheme, &**peer));
    if let Some((scheme, peer)) = origin.or(last) {
        push_origin(scheme, peer, &request.origin_target, out);
    }
}

fn push_fields(request: &Request, out: &mut Vec<u8>) {
    let quoted: [(&[u8], Option<&[u8]>); 2] = [
        (b", host: \"", request.head().fields.get(Name::Host)),
        (b", referrer: \"", request.head().fields.get(Name::Referer)),
    ];
    for (label, value) in quoted {
        if let Some(value) = value {
            out.extend_from_slice(label);
            out.extend_from_slice(value);
            out.push(b'"');
        }
    }
}

/// As nginx has it: a path ends in a colon.
fn push_origin(scheme: &str, peer: &str, target: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b", upstream: \"");
    out.extend_from_slice(scheme.as_bytes());
    out.extend_from_slice(b"://");
    out.extend_from_slice(peer.as_bytes());
    if peer.starts_with("unix:") {
        out.push(b':');
    }
    out.extend_from_slice(target);
    out.push(b'"');
}

/// Appends `(2: No such file or directory)`.
pub(crate) fn push_errno(out: &mut Vec<u8>, errno: i32) {
    out.push(b'(');
    out.extend_from_slice(bolide_base::errno::reason(errno).as_bytes());
    out.push(b')');
}

impl Request {
    /// Writes an `[error]` line.
    pub(crate) fn log_error(
        &self,
        site: &Site,
        ctx: &mut StepCtx<'_>,
        text: impl Fn(&mut Vec<u8>),
    ) {
        error(self, site, ctx, LogLevel::Error, text);
    }
}

#[cfg(test)]
mod tests {
    use super::{escape_since, needs_escape, push_errno, push_log};

    #[test]
    fn only_hostile_values_are_rewritten() {
        let mut out = b"\"kept\" ".to_vec();
        let start = out.len();
        out.extend_from_slice(b"a\"b");
        escape_since(&mut out, start, needs_escape, push_log);
        assert_eq!(out, b"\"kept\" a\\x22b");
    }

    #[test]
    fn an_error_number_is_told_with_its_words() {
        let mut out = Vec::new();
        push_errno(&mut out, 2);
        assert_eq!(out, b"(2: No such file or directory)");
    }
}
