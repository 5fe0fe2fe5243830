//! `sticky` of an `upstream` block: how clients are bound to a server.

use std::time::Duration;

use super::cache_zone::share;
use super::upstream::group;
use crate::ast::Node;
use crate::drafts::{SharedZone, SharedZoneUse};
use crate::model::{SAME_SITES, Sticky, StickyCookie, StickyExpires, StickyLearn};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, show};
use crate::value::{self as values, Unit};
use crate::vars::{Template, TemplatePart};

/// The smallest memory that nginx accepts: eight pages.
const SIZE_MIN: u64 = 8 * 4096;

pub(super) fn sticky(r: &mut ConfReader, node: &Node) -> ReadResult {
    let read = match node.arg(0) {
        b"cookie" if node.args_count() > 1 => cookie,
        b"route" if node.args_count() > 1 => route,
        b"learn" if node.args_count() > 1 => learn,
        other if node.args_count() > 1 => return Err(unknown(other)),
        _ => {
            let text = "invalid number of arguments in \"sticky\" directive";
            return Err(ReadFault::Text(text.to_owned()));
        }
    };
    if group(r).sticky.is_some() {
        return Err(DUPLICATE);
    }
    let sticky = read(r, node)?;
    // As in nginx, a balancing method after `sticky` causes the warning about a redefined method,
    // and chooses for clients that are not bound.
    r.http.balance_chosen = true;
    group(r).sticky = Some(sticky.into());
    Ok(())
}

/// An error about a parameter that says what is wrong with it.
fn fault(text: &str) -> ReadFault {
    ReadFault::Text(format!("\"sticky\" directive {text}"))
}

fn unknown(word: &[u8]) -> ReadFault {
    ReadFault::Text(format!("unknown parameter \"{}\"", show(word)))
}

/// Splits a parameter into its name and its value.
fn cut(word: &[u8]) -> (&[u8], Option<&[u8]>) {
    match split(word, b'=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    }
}

fn cookie(r: &mut ConfReader, node: &Node) -> Result<Sticky, ReadFault> {
    let name = node.arg(1);
    if name.is_empty() {
        return Err(fault("empty cookie name"));
    }
    let mut made = StickyCookie {
        name: name.into(),
        expires: StickyExpires::Session,
        domain: None,
        path: None,
        http_only: false,
        secure: false,
        same_site: None,
    };
    let mut said: Vec<&[u8]> = Vec::new();
    for word in node.args().skip(2) {
        let (name, value) = cut(word);
        if said.contains(&name) {
            let text = format!("parameter \"{}\" is duplicate", show(name));
            return Err(fault(&text));
        }
        let given = |value: &[u8]| match value.is_empty() {
            true => Err(fault(&format!("no value for \"{}\"", show(name)))),
            false => Ok(()),
        };
        match (name, value) {
            (b"expires", Some(value)) => made.expires = expires(value)?,
            (b"domain", Some(value)) => {
                given(value)?;
                made.domain = Some(r.template(value)?);
            }
            (b"path", Some(value)) => {
                given(value)?;
                made.path = Some(value.into());
            }
            (b"httponly", None) => made.http_only = true,
            (b"secure", None) => made.secure = true,
            (b"samesite", Some(value)) => made.same_site = Some(same_site(r, value)?),
            _ => return Err(unknown(word)),
        }
        said.push(name);
    }
    Ok(Sticky::Cookie(made))
}

fn expires(value: &[u8]) -> Result<StickyExpires, ReadFault> {
    if value == b"max" {
        return Ok(StickyExpires::Max);
    }
    let time = values::time(value, Unit::Seconds);
    let time = time.ok_or_else(|| fault("invalid \"expires\" parameter value"))?;
    Ok(StickyExpires::After(time.as_secs()))
}

fn same_site(r: &mut ConfReader, value: &[u8]) -> Result<Template, ReadFault> {
    let is_known = SAME_SITES.iter().any(|site| site.eq_ignore_ascii_case(value));
    if !is_known && !value.contains(&b'$') {
        return Err(fault("invalid \"samesite\" parameter value"));
    }
    r.template(value)
}

fn route(r: &mut ConfReader, node: &Node) -> Result<Sticky, ReadFault> {
    let variables = node.args().skip(1).map(|word| match variable(r, word)? {
        Some(variable) => Ok(variable),
        None => Err(ReadFault::Text(format!("invalid variable name \"{}\"", show(word)))),
    });
    variables.collect::<Result<_, _>>().map(Sticky::Route)
}

/// The value of a variable; `None` if `word` does not name one.
fn variable(r: &mut ConfReader, word: &[u8]) -> Result<Option<Template>, ReadFault> {
    let name = word.strip_prefix(b"$").filter(|name| !name.is_empty());
    let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { return Ok(None) };
    let part = TemplatePart::Var(r.variable(name)?);
    Ok(Some(Template::new(vec![part])))
}

fn learn(r: &mut ConfReader, node: &Node) -> Result<Sticky, ReadFault> {
    let mut made = StickyLearn {
        create: Vec::new(),
        lookup: Vec::new(),
        zone: "".into(),
        size: 0,
        timeout: Duration::from_secs(600),
        at_head: false,
    };
    for word in node.args().skip(1) {
        let (name, value) = cut(word);
        match (name, value) {
            (b"create" | b"lookup", Some(value)) => {
                let missing =
                    || fault(&format!("missing variable in the \"{}\" parameter", show(name)));
                let variable = variable(r, value)?.ok_or_else(missing)?;
                let list = if name == b"create" { &mut made.create } else { &mut made.lookup };
                list.push(variable);
            }
            (b"zone", Some(_)) if made.size > 0 => return Err(fault("duplicate zone")),
            (b"zone", Some(value)) => {
                made.size = zone(r, value)?;
                let (name, _) = split(value, b':').unwrap_or_default();
                made.zone = show(name).into();
            }
            (b"timeout", Some(value)) => {
                let time = values::time(value, Unit::Millis).filter(|time| !time.is_zero());
                made.timeout = time.ok_or_else(|| fault("invalid timeout"))?;
            }
            (b"header", None) => made.at_head = true,
            _ => return Err(unknown(word)),
        }
    }
    let given = [
        ("lookup", !made.lookup.is_empty()),
        ("create", !made.create.is_empty()),
        ("zone", made.size > 0),
    ];
    match given.iter().find(|(_, is_given)| !is_given) {
        Some((name, _)) => Err(fault(&format!("\"{name}\" parameter is not specified"))),
        None => Ok(Sticky::Learn(made)),
    }
}

/// What is before the first `mark`, and what is after it.
fn split(word: &[u8], mark: u8) -> Option<(&[u8], &[u8])> {
    let at = word.iter().position(|byte| *byte == mark)?;
    Some((&word[..at], &word[at + 1..]))
}

/// Declares the zone of `NAME:SIZE`, and returns its size.
fn zone(r: &mut ConfReader, value: &[u8]) -> Result<u64, ReadFault> {
    let (name, size) = split(value, b':').ok_or_else(|| fault("zone size is not specified"))?;
    if name.is_empty() {
        return Err(fault("zone name is not specified"));
    }
    let size = values::size(size).ok_or_else(|| fault("invalid zone size"))?;
    if size < SIZE_MIN {
        return Err(fault("zone is too small"));
    }
    share(r, name, SharedZone { size, used_by: SharedZoneUse::Sticky })?;
    let shown = show(name);
    let holder = r.http.upstreams.iter().find(|group| match group.sticky.as_deref() {
        Some(Sticky::Learn(learn)) => *learn.zone == *shown,
        _ => false,
    });
    match holder {
        Some(group) => Err(ReadFault::Text(format!(
            "sticky zone \"{shown}\" is already used in upstream \"{}\"",
            group.name
        ))),
        None => Ok(size),
    }
}
