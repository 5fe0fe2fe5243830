//! What follows `syslog:` in `access_log` and `error_log`.

use super::listen::{Number, addresses_for};
use crate::model::{Syslog, SyslogServer};
use crate::reader::{Fault, Reader, show};

const FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv",
    "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];
const SEVERITIES: &[&str] = &["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];
/// Bytes that the path of a unix socket may have.
const PATH_SIZE_MAX: usize = 107;

/// Reads what follows `syslog:`.
pub(super) fn read(r: &Reader, text: &[u8]) -> Result<Syslog, Fault> {
    let (mut server, mut facility, mut severity) = (None, None, None);
    let (mut tag, mut nohostname) = (None, false);
    let text = show(text);
    for part in text.split(',') {
        let fault = |text: String| Err(Fault::Text(text));
        let Some((name, value)) = part.split_once('=') else {
            if part != "nohostname" {
                return fault(format!("unknown syslog parameter \"{part}\""));
            }
            nohostname = true;
            continue;
        };
        let again = match name {
            "server" => server.is_some(),
            "facility" => facility.is_some(),
            "severity" => severity.is_some(),
            "tag" => tag.is_some(),
            _ => return fault(format!("unknown syslog parameter \"{part}\"")),
        };
        if again {
            return fault(format!("duplicate syslog \"{name}\""));
        }
        match name {
            "server" => server = Some(find(r, value)?),
            "facility" => facility = Some(named(FACILITIES, name, value)?),
            "severity" => severity = Some(named(SEVERITIES, name, value)?),
            _ => tag = Some(checked_tag(value)?),
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

fn named(known: &[&str], what: &str, value: &str) -> Result<u8, Fault> {
    match known.iter().position(|name| *name == value) {
        Some(number) => Ok(number as u8),
        None => Err(Fault::Text(format!("unknown syslog {what} \"{value}\""))),
    }
}

fn checked_tag(value: &str) -> Result<String, Fault> {
    if value.len() > 32 {
        return Err(Fault::Text("syslog tag length exceeds 32".to_owned()));
    }
    if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        let rest = "only allows alphanumeric characters and underscore";
        return Err(Fault::Text(format!("syslog \"tag\" {rest}")));
    }
    Ok(value.to_owned())
}

fn find(r: &Reader, text: &str) -> Result<SyslogServer, Fault> {
    let why = match text.strip_prefix("unix:") {
        Some("") => "no path in the unix domain socket",
        Some(path) if path.len() > PATH_SIZE_MAX => "too long path in the unix domain socket",
        Some(path) => return Ok(SyslogServer::Unix(path.into())),
        None if text.is_empty() => "no host",
        None => match addresses_for(r, text.as_bytes(), 514, Number::Host) {
            Ok(found) => match found.into_iter().next() {
                Some(address) => return Ok(SyslogServer::Inet(address)),
                None => "host not found",
            },
            Err(why) => why,
        },
    };
    Err(Fault::Text(format!("{why} in syslog server \"{text}\"")))
}
