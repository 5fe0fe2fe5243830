//! The text after `syslog:` in `access_log` and `error_log`.

use super::peer::{PeerAddressText, cut, look_up};
use crate::model::{PeerAddress, Syslog, SyslogServer};
use crate::reader::{ConfReader, ReadFault, show};

const FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv",
    "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];
const SEVERITIES: &[&str] = &["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];

/// Reads the text after `syslog:`.
pub(super) fn read(r: &ConfReader, text: &[u8]) -> Result<Syslog, ReadFault> {
    let (mut server, mut facility, mut severity) = (None, None, None);
    let (mut tag, mut nohostname) = (None, false);
    let text = show(text);
    for part in text.split(',') {
        let fault = |text: String| Err(ReadFault::Text(text));
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
        return Err(ReadFault::Text("no syslog server specified".to_owned()));
    };
    Ok(Syslog {
        server,
        facility: facility.unwrap_or(23),
        severity: severity.unwrap_or(6),
        tag: tag.unwrap_or_else(|| "nginx".to_owned()),
        nohostname,
    })
}

fn named(known: &[&str], what: &str, value: &str) -> Result<u8, ReadFault> {
    match known.iter().position(|name| *name == value) {
        Some(number) => Ok(number as u8),
        None => Err(ReadFault::Text(format!("unknown syslog {what} \"{value}\""))),
    }
}

fn checked_tag(value: &str) -> Result<String, ReadFault> {
    if value.len() > 32 {
        return Err(ReadFault::Text("syslog tag length exceeds 32".to_owned()));
    }
    if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        let rest = "only allows alphanumeric characters and underscore";
        return Err(ReadFault::Text(format!("syslog \"tag\" {rest}")));
    }
    Ok(value.to_owned())
}

fn find(r: &ConfReader, text: &str) -> Result<SyslogServer, ReadFault> {
    let server = match cut(text.as_bytes()) {
        Ok(PeerAddressText::Unix(path)) => Ok(SyslogServer::Unix(path.to_path_buf())),
        Ok(PeerAddressText::Inet { host, port }) => first_of(r, &host, port.unwrap_or(514)),
        Err(why) => Err(why),
    };
    server.map_err(|why| ReadFault::Text(format!("{why} in syslog server \"{text}\"")))
}

fn first_of(r: &ConfReader, host: &str, port: u16) -> Result<SyslogServer, &'static str> {
    match look_up(r, host, port)?.into_iter().next() {
        Some(PeerAddress::Inet(address)) => Ok(SyslogServer::Inet(address)),
        Some(PeerAddress::Unix(path)) => Ok(SyslogServer::Unix(path.to_path_buf())),
        None => Err("host not found"),
    }
}
