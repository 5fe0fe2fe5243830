//! `limit_req*`, `limit_conn*`: zones that count requests, and the limits that locations set.

use std::sync::Arc;

use crate::ast::Node;
use crate::choice::chosen;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, own, value};
use crate::drafts::{SharedZone, SharedZoneUse};
use crate::model::{
    ConnLimit, LimitKind, LimitRules, LimitZone, LimitZoneId, LogLevel, RequestLimit,
};
use crate::reader::{ConfReader, ReadFault, ReadResult, bounded, invalid_parameter, show};
use crate::value as values;

use super::cache_zone::share;

const HSL: Contexts = Contexts::HSL;
/// The smallest memory that nginx accepts: eight pages.
const SIZE_MIN: u64 = 8 * 4096;
/// The parameter of zones that the servers of a cluster share.
const SHARED: &[u8] = b"shared";
/// The value of `nodelay`: more than any burst.
const NO_DELAY: u64 = u64::MAX;

pub(super) const TABLE: &[DirectiveSpec] = &[
    own("limit_req_zone", Contexts::HTTP, Args::between(3, 4), requests_zone)
        .doc(
            "A zone that counts requests by a key, and their rate. With `shared` the servers of a \
             `cluster` count together, with a delay: see [scaling.md](../scaling.md).",
            "limit_req_zone $binary_remote_addr zone=logins:1m rate=5r/m;",
        )
        .takes("TEXT zone=NAME:SIZE rate=NUMBERr/s|r/m [shared]")
        .without("none"),
    list("limit_req", HSL, Args::between(1, 3), limit_req)
        .doc(
            "Delays or refuses requests above the rate of a zone.",
            "limit_req zone=pages burst=5;",
        )
        .takes("zone=NAME [burst=NUMBER] [nodelay | delay=NUMBER]")
        .without("none"),
    value("limit_req_status", HSL, Args::ONE, |r, node| {
        limits(r).requests_terms.status = status(node)?;
        Ok(())
    })
    .doc("The status of refused requests.", "limit_req_status 429;")
    .takes("CODE (400 to 599)")
    .default("503"),
    value("limit_req_log_level", HSL, Args::ONE, |r, node| {
        limits(r).requests_terms.level = level(node)?;
        Ok(())
    })
    .doc(
        "The level at which refused requests are logged; delayed ones are one level below.",
        "limit_req_log_level warn;",
    )
    .takes("info | notice | warn | error")
    .default("error"),
    flag("limit_req_dry_run", HSL, |r| &mut limits(r).requests_terms.dry_run)
        .doc("Whether requests above the rate are only logged.", "limit_req_dry_run on;"),
    own("limit_conn_zone", Contexts::HTTP, Args::between(2, 3), conns_zone)
        .doc(
            "A zone that counts active requests by a key. With `shared` the servers of a `cluster` \
             count together, with a delay: see [scaling.md](../scaling.md).",
            "limit_conn_zone $binary_remote_addr zone=clients:1m;",
        )
        .takes("TEXT zone=NAME:SIZE [shared]")
        .without("none"),
    list("limit_conn", HSL, Args::TWO, limit_conn)
        .doc("The most active requests with the same key.", "limit_conn sites 100;")
        .takes("ZONE NUMBER")
        .without("none"),
    value("limit_conn_status", HSL, Args::ONE, |r, node| {
        limits(r).connections_terms.status = status(node)?;
        Ok(())
    })
    .doc("The status of requests beyond `limit_conn`.", "limit_conn_status 429;")
    .takes("CODE (400 to 599)")
    .default("503"),
    value("limit_conn_log_level", HSL, Args::ONE, |r, node| {
        limits(r).connections_terms.level = level(node)?;
        Ok(())
    })
    .doc(
        "The level at which requests beyond `limit_conn` are logged.",
        "limit_conn_log_level warn;",
    )
    .takes("info | notice | warn | error")
    .default("error"),
    flag("limit_conn_dry_run", HSL, |r| &mut limits(r).connections_terms.dry_run)
        .doc("Whether requests beyond `limit_conn` are only logged.", "limit_conn_dry_run on;"),
];

fn limits(r: &mut ConfReader) -> &mut LimitRules {
    Arc::make_mut(&mut r.settings().limits)
}

fn status(node: &Node) -> Result<u16, ReadFault> {
    bounded(node.arg(0), 400, 599).map(|status| status as u16)
}

fn level(node: &Node) -> Result<LogLevel, ReadFault> {
    let levels = [
        ("info", LogLevel::Info),
        ("notice", LogLevel::Notice),
        ("warn", LogLevel::Warn),
        ("error", LogLevel::Error),
    ];
    chosen(node, &levels)
}

/// The number of a zone's name.
fn id(r: &mut ConfReader, name: &[u8]) -> LimitZoneId {
    let zones = &mut r.http.limit_zones;
    let known = zones.iter().position(|(known, _)| **known == *name);
    let index = known.unwrap_or_else(|| {
        zones.push((name.into(), None));
        zones.len() - 1
    });
    LimitZoneId(index as u32)
}

/// Records a zone that a directive refers to.
fn used(r: &mut ConfReader, name: &[u8], used_by: SharedZoneUse) -> Result<LimitZoneId, ReadFault> {
    share(r, name, SharedZone { size: 0, used_by })?;
    Ok(id(r, name))
}

/// Makes the zone of `zone=NAME:SIZE`.
fn declare(
    r: &mut ConfReader,
    node: &Node,
    zone: (&[u8], u64),
    kind: LimitKind,
    shared: bool,
) -> ReadResult {
    let ((name, size), directive) = (zone, show(node.name()));
    if name.is_empty() {
        return Err(ReadFault::Text(format!("\"{directive}\" must have \"zone\" parameter")));
    }
    let key_text = node.arg(0);
    let key = r.template(key_text)?;
    let used_by = match kind {
        LimitKind::Requests { .. } => SharedZoneUse::Requests,
        LimitKind::Connections => SharedZoneUse::Connections,
    };
    share(r, name, SharedZone { size, used_by })?;
    let id = id(r, name);
    let slot = &mut r.http.limit_zones[id.index()].1;
    if let Some(bound) = slot {
        let (name, key) = (show(name), show(&bound.key_text));
        let text = format!("{directive} \"{name}\" is already bound to key \"{key}\"");
        return Err(ReadFault::Text(text));
    }
    *slot =
        Some(LimitZone { name: name.into(), size, key, key_text: key_text.into(), kind, shared });
    if shared {
        let place = r.place(node);
        r.http.shared_limits.push((show(name).into_owned(), place));
    }
    Ok(())
}

/// Reads `zone=NAME:SIZE`; `rest` is the text after the `=`.
fn zone<'w>(word: &[u8], rest: &'w [u8]) -> Result<(&'w [u8], u64), ReadFault> {
    let shown = show(word);
    let invalid = || ReadFault::Text(format!("invalid zone size \"{shown}\""));
    let colon = rest.iter().position(|byte| *byte == b':').ok_or_else(invalid)?;
    let size = values::size(&rest[colon + 1..]).ok_or_else(invalid)?;
    if size < SIZE_MIN {
        return Err(ReadFault::Text(format!("zone \"{shown}\" is too small")));
    }
    Ok((&rest[..colon], size))
}

/// Whether `shared` is there beside the parameters that nginx has, of which there are so many. It
/// takes the place of none, so that whatever else is said or missing is refused as nginx does.
fn is_shared(node: &Node, most: usize) -> Result<bool, ReadFault> {
    if node.args_count() <= most {
        return Ok(false);
    }
    match node.args().skip(1).filter(|word| *word == SHARED).count() {
        1 => Ok(true),
        _ => {
            let name = show(node.name());
            let text = format!("invalid number of arguments in \"{name}\" directive");
            Err(ReadFault::Text(text))
        }
    }
}

fn requests_zone(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (mut named, mut rate): ((&[u8], u64), u64) = ((b"", 0), 1000);
    let shared = is_shared(node, 3)?;
    for word in node.args().skip(1) {
        if let Some(rest) = word.strip_prefix(b"zone=") {
            named = zone(word, rest)?;
        } else if let Some(rest) = word.strip_prefix(b"rate=") {
            let (digits, seconds) = match rest {
                [digits @ .., b'r', b'/', b's'] => (digits, 1),
                [digits @ .., b'r', b'/', b'm'] => (digits, 60),
                digits => (digits, 1),
            };
            let number = count(digits)
                .ok_or_else(|| ReadFault::Text(format!("invalid rate \"{}\"", show(word))))?;
            rate = thousandths(number) / seconds;
        } else if !shared || word != SHARED {
            return Err(invalid_parameter(word));
        }
    }
    declare(r, node, named, LimitKind::Requests { rate }, shared)
}

fn conns_zone(r: &mut ConfReader, node: &Node) -> ReadResult {
    let shared = is_shared(node, 2)?;
    let word = node.args().skip(1).find(|word| !shared || *word != SHARED).unwrap_or_default();
    let rest = word.strip_prefix(b"zone=").ok_or_else(|| invalid_parameter(word))?;
    declare(r, node, zone(word, rest)?, LimitKind::Connections, shared)
}

/// A number other than 0.
fn count(digits: &[u8]) -> Option<u64> {
    values::number(digits).and_then(|number| u64::try_from(number).ok()).filter(|count| *count > 0)
}

const fn thousandths(count: u64) -> u64 {
    count.saturating_mul(1000)
}

fn limit_req(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (mut zone, mut burst, mut delay) = (None, 0, 0);
    for word in node.args() {
        let number = |name: &str, digits: &[u8]| {
            let fault = || ReadFault::Text(format!("invalid {name} value \"{}\"", show(word)));
            count(digits).map(thousandths).ok_or_else(fault)
        };
        if let Some(name) = word.strip_prefix(b"zone=") {
            zone = Some(used(r, name, SharedZoneUse::Requests)?);
        } else if let Some(digits) = word.strip_prefix(b"burst=") {
            burst = number("burst", digits)?;
        } else if let Some(digits) = word.strip_prefix(b"delay=") {
            delay = number("delay", digits)?;
        } else if word == b"nodelay" {
            delay = NO_DELAY;
        } else {
            return Err(invalid_parameter(word));
        }
    }
    let Some(zone) = zone else {
        return Err(ReadFault::Text("\"limit_req\" must have \"zone\" parameter".to_owned()));
    };
    let again = r.again;
    let list = &mut limits(r).requests;
    if !again {
        list.clear();
    }
    if list.iter().any(|limit| limit.zone == zone) {
        return Err(ReadFault::Value("is duplicate"));
    }
    list.push(RequestLimit { zone, burst, delay });
    Ok(())
}

fn limit_conn(r: &mut ConfReader, node: &Node) -> ReadResult {
    let zone = used(r, node.arg(0), SharedZoneUse::Connections)?;
    let again = r.again;
    let list = &mut limits(r).connections;
    if !again {
        list.clear();
    }
    if list.iter().any(|limit| limit.zone == zone) {
        return Err(ReadFault::Value("is duplicate"));
    }
    let Some(most) = count(node.arg(1)) else {
        let shown = show(node.arg(1));
        return Err(ReadFault::Text(format!("invalid number of connections \"{shown}\"")));
    };
    let Ok(most) = u16::try_from(most) else {
        return Err(ReadFault::Text("connection limit must be less 65536".to_owned()));
    };
    list.push(ConnLimit { zone, most: u32::from(most) });
    Ok(())
}
