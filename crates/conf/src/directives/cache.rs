//! nginx's cache of upstream responses: the common part of `fastcgi_cache*` and its kin, and their
//! zones.

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, millis, number, own, value};
use crate::model::{
    AccessRule, AccessVerdict, CacheMethods, CachePurge, CacheSettings, CacheValid, CacheZoneId,
    UseStale, ZoneUse,
};
use crate::reader::{
    ConfReader, DUPLICATE, ReadFault, ReadResult, invalid_parameter, invalid_value, show,
};
use crate::value::{self as values, Unit};
use crate::vars::Template;

const HSL: Contexts = Contexts::HSL;

/// The rows of every family.
macro_rules! rows {
    ($family:literal) => {
        &[
            own(
                concat!($family, "_cache_path"),
                Contexts::HTTP,
                Args::at_least(2),
                super::cache_zone::path,
            )
            .doc(
                "A cache zone: its directory, its name and its limits.",
                concat!(
                    $family,
                    "_cache_path /var/cache/php levels=1:2 keys_zone=PHP:100m inactive=60m;"
                ),
            )
            .takes(
                "DIRECTORY keys_zone=NAME:SIZE [levels=1:2] [inactive=SECONDS] [max_size=BYTES] \
                 [min_free=BYTES] [PARAMETER…]",
            )
            .without(
                "none; `levels` defaults to no directories, `inactive` to 10m, and the size is not \
                 limited",
            ),
            value(concat!($family, "_cache"), HSL, Args::ONE, cache)
                .doc("The zone that caches responses, or `off`.", concat!($family, "_cache PHP;"))
                .takes("ZONE | off")
                .default("off"),
            value(concat!($family, "_cache_key"), HSL, Args::ONE, |r, node| {
                r.cache().key = Some(r.template(node.arg(0))?);
                Ok(())
            })
            .doc(
                "The cache key.",
                concat!($family, "_cache_key \"$scheme$request_method$host$request_uri\";"),
            )
            .takes("TEXT")
            .without(
            "the URL that `proxy_pass` requests; for applications scheme, host and request \
             target, with a warning",
            ),
            list(concat!($family, "_cache_valid"), HSL, Args::at_least(1), valid).doc(
            "The freshness lifetime of responses with these statuses; without a status 200, 301 \
             and 302.",
                concat!($family, "_cache_valid 200 301 302 60m;"),
            )
            .takes("[CODE… | any] SECONDS")
            .without("none: the fields of the response decide"),
            list(concat!($family, "_cache_methods"), HSL, Args::at_least(1), methods).doc(
                "The methods whose responses are cached; GET and HEAD always are.",
                concat!($family, "_cache_methods POST;"),
            )
            .takes("GET | HEAD | POST…")
            .default("GET HEAD"),
            number(concat!($family, "_cache_min_uses"), HSL, |r| &mut r.cache().min_uses).doc(
                "The number of requests after which a response is cached.",
                concat!($family, "_cache_min_uses 2;"),
            ),
            list(concat!($family, "_cache_bypass"), HSL, Args::at_least(1), |r, node| {
                let texts = texts(r, node)?;
                extend(r, |cache| &mut cache.bypass, texts);
                Ok(())
            })
            .doc(
                "The cache is not used for lookup when one of these is neither empty nor `0`.",
                concat!($family, "_cache_bypass $skip_cache;"),
            )
            .takes("TEXT…")
            .without("none"),
            list(concat!($family, "_no_cache"), HSL, Args::at_least(1), |r, node| {
                let texts = texts(r, node)?;
                extend(r, |cache| &mut cache.no_cache, texts);
                Ok(())
            })
            .doc(
                "The response is not stored when one of these is neither empty nor `0`.",
                concat!($family, "_no_cache $skip_cache;"),
            )
            .takes("TEXT…")
            .without("none"),
            flag(concat!($family, "_cache_lock"), HSL, |r| &mut r.cache().lock).doc(
                "Whether concurrent misses for one key are coalesced into one upstream request.",
                concat!($family, "_cache_lock on;"),
            ),
            millis(concat!($family, "_cache_lock_age"), HSL, |r| &mut r.cache().lock_age)
                .doc(
                    "How long that request may take before another one goes upstream.",
                    concat!($family, "_cache_lock_age 5s;"),
                ),
            millis(concat!($family, "_cache_lock_timeout"), HSL, |r| &mut r.cache().lock_timeout)
                .doc(
            "How long requests wait for that one; afterwards they go upstream, and are not \
             cached.",
                    concat!($family, "_cache_lock_timeout 5s;"),
                ),
            list(concat!($family, "_cache_use_stale"), HSL, Args::at_least(1), use_stale).doc(
                "When a stale response is served.",
                concat!($family, "_cache_use_stale error timeout updating http_500;"),
            )
            .takes(
                "error | timeout | invalid_header | updating | http_500 | http_502 | http_503 | \
                 http_504 | http_403 | http_404 | http_429 | off…",
            )
            .default("off"),
            flag(concat!($family, "_cache_background_update"), HSL, |r| {
                &mut r.cache().background_update
            })
            .doc(
                "Whether a stale response is updated by a background request.",
                concat!($family, "_cache_background_update on;"),
            ),
            flag(concat!($family, "_cache_revalidate"), HSL, |r| &mut r.cache().revalidate).doc(
                "Whether stale responses are revalidated with conditional requests.",
                concat!($family, "_cache_revalidate on;"),
            ),
            value(concat!($family, "_cache_max_range_offset"), HSL, Args::ONE, |r, node| {
                let bytes = values::offset(node.arg(0)).ok_or(crate::reader::INVALID)?;
                r.cache().max_range_offset = Some(bytes);
                Ok(())
            })
            .doc(
            "The largest offset of a range request that is cached; ranges that begin later are \
             passed.",
                concat!($family, "_cache_max_range_offset 10m;"),
            )
            .takes("BYTES")
            .without("no limit: the whole response is fetched"),
            list(concat!($family, "_cache_purge"), HSL, Args::at_least(1), purge).doc(
                "Purge requests: by a condition, by a method and client address, or by a key.",
                concat!($family, "_cache_purge PURGE from 127.0.0.1;"),
            )
            .takes("TEXT… | METHOD [from CLIENTS…] | ZONE TEXT")
            .without("no request purges"),
        ]
    };
}

/// `fastcgi_cache*`, which apply to `lsapi_pass` and `php_pass` as well.
pub(super) const TABLE: &[DirectiveSpec] = rows!("fastcgi");
/// `proxy_cache*`
pub(super) const PROXY: &[DirectiveSpec] = rows!("proxy");
/// `uwsgi_cache*`
pub(super) const UWSGI: &[DirectiveSpec] = rows!("uwsgi");
/// `scgi_cache*`
pub(super) const SCGI: &[DirectiveSpec] = rows!("scgi");

/// Texts of which one decides.
pub(super) fn texts(r: &mut ConfReader, node: &Node) -> Result<Vec<Template>, ReadFault> {
    node.args().map(|word| r.template(word)).collect()
}

/// Appends to a list, which starts empty with the first directive of a block.
pub(super) fn extend<T: Clone>(
    r: &mut ConfReader,
    slot: fn(&mut CacheSettings) -> &mut Arc<Vec<T>>,
    more: impl IntoIterator<Item = T>,
) {
    let again = r.again;
    let items = slot(r.cache());
    if !again {
        *items = Arc::default();
    }
    Arc::make_mut(items).extend(more);
}

fn cache(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    if word == b"off" {
        r.cache().zone = ZoneUse::Off;
        return Ok(());
    }
    let text = r.template(word)?;
    super::store::exclude(r, node, b"cache", b"store")?;
    // What an outer block says of files gives way.
    r.origin().store = None;
    r.cache().zone = match text.as_text() {
        Some(_) => ZoneUse::Zone(zone(r, word)?),
        None => ZoneUse::Text(text),
    };
    Ok(())
}

/// The zone of a name, which may be defined later.
fn zone(r: &mut ConfReader, name: &[u8]) -> Result<CacheZoneId, ReadFault> {
    if !name.is_empty() {
        super::cache_zone::declare(r, name, 0)?;
    }
    Ok(super::cache_zone::id(r, name))
}

fn valid(r: &mut ConfReader, node: &Node) -> ReadResult {
    let made = valids(node)?;
    extend(r, |cache| &mut cache.valid, made);
    Ok(())
}

/// Reads statuses and the freshness lifetime of their responses.
pub(super) fn valids(node: &Node) -> Result<Vec<CacheValid>, ReadFault> {
    let last = node.args_count() - 1;
    let word = node.arg(last);
    let time = values::time(word, Unit::Seconds)
        .ok_or_else(|| ReadFault::Text(format!("invalid time value \"{}\"", show(word))))?;
    let mut made = Vec::new();
    for word in node.args().take(last) {
        let status = match values::number(word) {
            _ if word == b"any" => None,
            Some(status @ 100..=599) => Some(status as u16),
            _ => return Err(ReadFault::Text(format!("invalid status \"{}\"", show(word)))),
        };
        made.push(CacheValid { status, time });
    }
    if made.is_empty() {
        made.extend([200, 301, 302].map(|status| CacheValid { status: Some(status), time }));
    }
    Ok(made)
}

const METHODS: [&str; 3] = ["GET", "HEAD", "POST"];
const STALE: [&str; 13] = [
    "error",
    "timeout",
    "invalid_header",
    "updating",
    "http_500",
    "http_503",
    "http_403",
    "http_404",
    "http_429",
    "non_idempotent",
    "off",
    "http_502",
    "http_504",
];
/// Words of [`STALE`] that `fastcgi_cache_use_stale` has.
const STALE_APPLICATION: usize = 11;

/// The set of `node`'s words, each by its index in `known`, added to `set`; a repeated word gets a
/// warning.
fn words(r: &mut ConfReader, node: &Node, known: &[&str], mut set: u16) -> Result<u16, ReadFault> {
    for word in node.args() {
        let place = known.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(word));
        let bit = 1 << place.ok_or_else(|| invalid_value(word))?;
        if set & bit != 0 {
            r.warn(format!("duplicate value \"{}\"", show(word)));
        }
        set |= bit;
    }
    Ok(set)
}

fn methods(r: &mut ConfReader, node: &Node) -> ReadResult {
    let before = if r.again { r.cache_draft().methods } else { 0 };
    let set = words(r, node, &METHODS, before)?;
    r.cache_draft().methods = set;
    r.cache().methods = CacheMethods { post: set & 4 != 0 };
    Ok(())
}

fn use_stale(r: &mut ConfReader, node: &Node) -> ReadResult {
    let before = if r.again { r.cache_draft().stale } else { 0 };
    let has_gateways = r.family.has_gateway_statuses();
    let known = if has_gateways { &STALE[..] } else { &STALE[..STALE_APPLICATION] };
    let set = words(r, node, known, before)?;
    r.cache_draft().stale = set;
    let has = |place: u16| set & (1 << 10) == 0 && set & (1 << place) != 0;
    r.cache().use_stale = UseStale {
        error: has(0),
        timeout: has(1),
        invalid_header: has(2),
        updating: has(3),
        http_500: has(4),
        http_502: has(11),
        http_503: has(5),
        http_504: has(12),
        http_403: has(6),
        http_404: has(7),
        http_429: has(8),
    };
    Ok(())
}

fn purge(r: &mut ConfReader, node: &Node) -> ReadResult {
    let first = node.arg(0);
    let made = if first.contains(&b'$') {
        let mut made = texts(r, node)?;
        if let (true, CachePurge::When(before)) = (r.again, &r.cache().purge) {
            made.splice(0..0, before.iter().cloned());
        }
        CachePurge::When(Arc::new(made))
    } else if r.again {
        return Err(DUPLICATE);
    } else if first == b"off" && node.args_count() == 1 {
        CachePurge::Off
    } else if node.args_count() == 2 && node.arg(1) != b"from" {
        let key = r.template(node.arg(1))?;
        CachePurge::Key { zone: zone(r, first)?, key }
    } else {
        purge_method(r, node)?
    };
    r.cache().purge = made;
    Ok(())
}

/// Reads `METHOD [from ADDRESS…]`; without `from`, all clients may purge.
fn purge_method(r: &mut ConfReader, node: &Node) -> Result<CachePurge, ReadFault> {
    let word = node.arg(0);
    let is_method = !word.is_empty() && word.iter().all(u8::is_ascii_uppercase);
    if word != b"on" && !is_method {
        return Err(invalid_parameter(word));
    }
    let method = Arc::from(if word == b"on" { &b"PURGE"[..] } else { word });
    let mut rules = Vec::new();
    match node.arg(1) {
        b"" if node.args_count() == 1 => {
            rules.push(AccessRule { who: crate::model::Who::All, verdict: AccessVerdict::Allow });
        }
        b"from" if node.args_count() > 2 => {
            for word in node.args().skip(2) {
                rules.push(super::access::allowed(r, word)?);
            }
        }
        word => return Err(invalid_parameter(word)),
    }
    Ok(CachePurge::Method { method, from: Arc::new(rules) })
}
