//! The page cache, which the application controls: `page_cache*` and related directives.

use std::sync::Arc;
use std::time::Duration;

use super::cache::{extend, texts};
use super::cache_zone;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, offset, seconds, value};
use crate::model::{
    AccessRule, HeuristicFreshness, PageCache, PageMode, PageScopes, QueryPattern, StatusHeader,
    VaryBy,
};
use crate::reader::{
    ConfReader, INVALID, ReadFault, ReadResult, flag as read_flag, invalid_parameter,
};
use crate::value::{self as values, Unit};

const HTTP: Contexts = Contexts::HTTP;
const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("page_cache", HSL, Args::ONE, mode)
        .doc(
            "Whether pages are cached; `auto` caches only responses that the application marks \
             as cacheable.",
            "page_cache auto;",
        )
        .takes("off | on | auto")
        .default("off"),
    value("magento_cache", HSL, Args::ONE, magento)
        .doc(
            "Whether pages are cached as Magento 2 expects of the Varnish in front of it, its \
             `PURGE` with `X-Magento-Tags-Pattern` included.",
            "magento_cache on;",
        )
        .takes("on | off")
        .default("off"),
    flag("magento_cache_hide", HSL, |r| &mut page(r).magento_hide).doc(
        "Whether the `Server`, `Via` and `Link` that Magento sends are removed where \
         `magento_cache` is on.",
        "magento_cache_hide off;",
    ),
    value("page_cache_path", HTTP, Args::at_least(1), path)
        .doc(
            "The directory of the page cache; without it pages are in memory only.",
            "page_cache_path /var/cache/bolide max_size=10g;",
        )
        .takes(
            "DIRECTORY [max_size=BYTES] [inactive=SECONDS] [levels=NUMBER:NUMBER] [memory=BYTES]",
        )
        .without(
            "memory only; `inactive` defaults to 7d, `levels` to 2:2, and the size is not limited",
        ),
    value("page_cache_memory", HTTP, Args::ONE, memory)
        .doc(
            "The memory limit of the page cache; `auto` is a quarter of the machine's memory, \
             at most 4g.",
            "page_cache_memory 512m;",
        )
        .takes("BYTES | auto")
        .default("auto"),
    value("page_cache_preset", HSL, Args::between(1, 2), super::page_preset::preset)
        .doc(
            "Rules for an application without cache support: no pages of users, short lifetimes.",
            "page_cache_preset wordpress;",
        )
        .takes("wordpress | drupal | off [ttl=SECONDS]")
        .default("off"),
    value("page_cache_lookup", HSL, Args::ONE, |r, node| {
        let on = read_flag("page_cache_lookup", node.arg(0))?;
        page(r).lookup = PageScopes { public: on, private: on };
        Ok(())
    })
    .doc("Whether cached pages are served.", "page_cache_lookup on;")
    .takes("on | off")
    .default("on"),
    flag("page_cache_private", HSL, |r| &mut page(r).private)
        .doc("Whether private responses are cached per session.", "page_cache_private on;"),
    seconds("page_cache_default_ttl", HSL, |r| {
        r.cache_draft().has_ttl = true;
        &mut page(r).default_ttl
    })
    .doc("The freshness lifetime of pages without one.", "page_cache_default_ttl 10m;"),
    value("page_cache_max_ttl", HSL, Args::ONE, |r, node| {
        page(r).max_ttl = match node.arg(0) {
            b"off" => None,
            word => Some(time(word)?),
        };
        Ok(())
    })
    .doc("The upper limit of any freshness lifetime.", "page_cache_max_ttl 7d;")
    .takes("SECONDS | off")
    .default("off"),
    list("page_cache_valid", HSL, Args::at_least(1), |r, node| {
        let made = super::cache::valids(node)?;
        extend(r, |cache| &mut cache.page.valid, made);
        Ok(())
    })
    .doc(
        "The freshness lifetime of responses with these statuses and without one of their \
             own; the first match applies.",
        "page_cache_valid 404 410 1m;",
    )
    .takes("[CODE… | any] SECONDS")
    .without("none"),
    value("page_cache_heuristic", HSL, Args::between(1, 2), heuristic)
        .doc(
            "Heuristic freshness: a share of the time since `Last-Modified`.",
            "page_cache_heuristic 10% max=1d;",
        )
        .takes("NUMBER% [max=SECONDS] | off")
        .default("off"),
    offset("page_cache_max_object", HSL, |r| &mut page(r).max_object)
        .doc("The largest response that is cached.", "page_cache_max_object 10m;"),
    value("page_cache_stale", HSL, Args::between(1, 2), stale)
        .doc(
            "How long a stale page may be served while it is revalidated; `error=` after an \
             upstream error.",
            "page_cache_stale 200s error=1d;",
        )
        .takes("SECONDS | off [error=SECONDS | error=off]")
        .without(
            "200s for responses with LSCache fields or without cache fields, off for those with \
             standard cache fields only",
        ),
    list("page_cache_control", Contexts::HSLI, Args::at_least(1), |r, node| {
        let texts = texts(r, node)?;
        extend(r, |cache| &mut cache.page.control, texts);
        Ok(())
    })
    .doc(
        "Cache control for a request, as rewrite rules set it for LiteSpeed.",
        "page_cache_control no-autoflush vary=$device;",
    )
    .takes("TEXT…")
    .without("none"),
    list("page_cache_vary", HSL, Args::at_least(1), vary)
        .doc(
            "Request properties that become part of the cache key.",
            "page_cache_vary cookie=currency header=x-device;",
        )
        .takes("cookie=NAME | header=NAME | value=TEXT | off…")
        .default("off"),
    list("page_cache_drop_query", HSL, Args::at_least(1), drop_query)
        .doc(
            "Query parameters that the cache key ignores; `tracking` means those of advertisers.",
            "page_cache_drop_query tracking ref;",
        )
        .takes("NAME | tracking | off…")
        .default("off"),
    value("page_cache_key", HSL, Args::ONE, |r, node| {
        page(r).key = Some(r.template(node.arg(0))?);
        Ok(())
    })
    .doc("The cache key.", "page_cache_key $host$uri;")
    .takes("TEXT")
    .without("scheme, host, port, path and arguments"),
    list("page_cache_bypass", HSL, Args::at_least(1), |r, node| {
        let texts = texts(r, node)?;
        extend(r, |cache| &mut cache.page.bypass, texts);
        Ok(())
    })
    .doc(
        "The cache is bypassed, for lookup and storing, when one of these is neither empty \
             nor `0`.",
        "page_cache_bypass $cookie_admin $arg_preview;",
    )
    .takes("TEXT…")
    .without("none"),
    list("page_cache_purge_allow", HSL, Args::at_least(1), |r, node| {
        let rules = clients(r, node)?;
        let again = r.again;
        let allowed = page(r).purge_allow.get_or_insert_default();
        if !again {
            *allowed = Arc::default();
        }
        Arc::make_mut(allowed).extend(rules);
        Ok(())
    })
    .doc("The clients that may PURGE and REFRESH.", "page_cache_purge_allow 127.0.0.1 10.0.0.0/8;")
    .takes("CLIENTS…")
    .without("the local machine, unless a field shows that a proxy forwarded the request"),
    value("page_cache_purge_uri", HSL, Args::ONE, |r, node| {
        page(r).purge_uri = match node.arg(0) {
            b"off" => None,
            uri @ [b'/', ..] => Some(Arc::from(uri)),
            word => return Err(invalid_parameter(word)),
        };
        Ok(())
    })
    .doc(
        "The path where the `X-LiteSpeed-Purge` field of a request takes effect.",
        "page_cache_purge_uri /.purge;",
    )
    .takes("URI | off")
    .default("off"),
    flag("page_cache_esi", HSL, |r| &mut page(r).esi)
        .doc("Whether pages that request it are processed for ESI.", "page_cache_esi on;"),
    flag("page_cache_crawler", HSL, |r| &mut page(r).crawler)
        .doc("Whether applications may warm the cache.", "page_cache_crawler on;"),
    flag("page_cache_autoflush", HSL, |r| &mut page(r).autoflush).doc(
        "Whether a POST purges the private pages of its session.",
        "page_cache_autoflush off;",
    ),
    value("page_cache_status_header", HSL, Args::ONE, |r, node| {
        page(r).status_header = match node.arg(0) {
            b"off" => StatusHeader::Off,
            b"on" => StatusHeader::XCache,
            b"lscache" => StatusHeader::LiteSpeed,
            word => return Err(invalid_parameter(word)),
        };
        Ok(())
    })
    .doc(
        "The field that shows hits: `X-Cache`, or `lscache` for `X-LiteSpeed-Cache`.",
        "page_cache_status_header on;",
    )
    .takes("off | on | lscache")
    .default("lscache"),
    flag("cache_rfc9111", HSL, |r| &mut r.cache().rfc9111)
        .doc("Whether zones follow RFC 9111 where nginx does not.", "cache_rfc9111 on;"),
    value("cache_status", HSL, Args::between(1, 2), cache_status)
        .doc("The cache's name in the `Cache-Status` field of responses.", "cache_status on edge;")
        .takes("on [NAME] | off")
        .default("off"),
    list("page_cache_trusted", HSL, Args::at_least(1), |r, node| {
        let rules = clients(r, node)?;
        extend(r, |cache| &mut cache.page.trusted, rules);
        Ok(())
    })
    .doc(
        "Trusted caches in front of this one, which get fields that clients do not.",
        "page_cache_trusted 10.0.0.2;",
    )
    .takes("CLIENTS…")
    .default("off"),
    flag("page_cache_respect_request", HSL, |r| &mut page(r).respect_request)
        .doc("Whether the `Cache-Control` of requests applies.", "page_cache_respect_request on;"),
    list("page_cache_session", HSL, Args::at_least(1), |r, node| {
        let names = node.args().filter(|word| *word != b"off").map(QueryPattern::new);
        let names: Vec<_> = names.collect();
        extend(r, |cache| &mut cache.page.session, names);
        Ok(())
    })
    .doc(
        "Cookies that identify a session; the first one present counts.",
        "page_cache_session sid PHPSESSID;",
    )
    .takes("COOKIE…")
    .default(
        "lsc_private xf_session frontend wp_woocommerce_session_* wordpress_logged_in_* \
         PHPSESSID",
    ),
    value("lscache_compat", HSL, Args::ONE, |r, node| {
        page(r).is_litespeed = match node.arg(0) {
            b"litespeed" => true,
            b"off" => false,
            word => return Err(invalid_parameter(word)),
        };
        Ok(())
    })
    .doc(
        "Whether applications see `LiteSpeed` as the server software.",
        "lscache_compat litespeed;",
    )
    .takes("litespeed | off")
    .default("off"),
];

/// The page cache of the block being read.
pub(super) fn page(r: &mut ConfReader) -> &mut PageCache {
    &mut r.cache().page
}

/// A time in whole seconds.
pub(super) fn time(word: &[u8]) -> Result<Duration, ReadFault> {
    values::time(word, Unit::Seconds).ok_or(INVALID)
}

fn mode(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mode = match node.arg(0) {
        b"off" => PageMode::Off,
        b"auto" => PageMode::Auto,
        b"on" => PageMode::On,
        word => {
            let word = crate::reader::show(word);
            return Err(ReadFault::Text(format!(
                "invalid value \"{word}\" in \"page_cache\" directive, \
                 it must be \"on\", \"off\" or \"auto\""
            )));
        }
    };
    if r.cache_draft().has_mode && page(r).mode == PageMode::Magento {
        return Err(ReadFault::Text(TWO_MODES.to_owned()));
    }
    set_mode(r, mode);
    Ok(())
}

/// One block has one mode.
const TWO_MODES: &str = "\"magento_cache\" and \"page_cache\" are in one block";

fn magento(r: &mut ConfReader, node: &Node) -> ReadResult {
    if read_flag("magento_cache", node.arg(0))? {
        if r.cache_draft().has_mode {
            return Err(ReadFault::Text(TWO_MODES.to_owned()));
        }
        set_mode(r, PageMode::Magento);
    } else if page(r).mode == PageMode::Magento {
        set_mode(r, PageMode::Off);
    }
    Ok(())
}

/// Enables or disables the cache, and records whether it is on in an outer block.
pub(super) fn set_mode(r: &mut ConfReader, mode: PageMode) {
    let page = page(r);
    page.accepts_purges |= page.mode != PageMode::Off || mode != PageMode::Off;
    page.mode = mode;
    r.cache_draft().has_mode = true;
}

/// `page_cache_path`
pub(super) fn path(r: &mut ConfReader, node: &Node) -> ReadResult {
    let path = cache_zone::directory(r, node.arg(0));
    let mut store = r.http.page_store.clone();
    for word in node.args().skip(1) {
        let equals = word.iter().position(|byte| *byte == b'=').unwrap_or(0);
        let (name, value) = (&word[..equals], word.get(equals + 1..).unwrap_or_default());
        let taken = match name {
            b"max_size" => values::offset(value).map(|max| store.max_size = Some(max)),
            b"memory" => read_memory(value).map(|memory| store.memory = memory),
            b"inactive" => {
                values::time(value, Unit::Seconds).map(|inactive| store.inactive = inactive)
            }
            b"levels" => cache_zone::levels(value).map(|levels| store.levels = levels),
            _ => None,
        };
        taken.ok_or_else(|| invalid_parameter(word))?;
    }
    cache_zone::occupy(r, node, &path, store.levels.clone());
    store.path = Some(path);
    r.http.page_store = store;
    Ok(())
}

fn memory(r: &mut ConfReader, node: &Node) -> ReadResult {
    r.http.page_store.memory = read_memory(node.arg(0)).ok_or(INVALID)?;
    Ok(())
}

/// Reads a size or `auto`.
fn read_memory(word: &[u8]) -> Option<Option<u64>> {
    if word == b"auto" { Some(None) } else { values::offset(word).map(Some) }
}

fn stale(r: &mut ConfReader, node: &Node) -> ReadResult {
    let read = |word: &[u8]| if word == b"off" { Ok(Duration::ZERO) } else { time(word) };
    let stale = read(node.arg(0))?;
    let error = match node.arg(1) {
        b"" if node.args_count() == 1 => stale,
        word => read(word.strip_prefix(b"error=").ok_or_else(|| invalid_parameter(word))?)?,
    };
    (page(r).stale, page(r).stale_error) = (stale, error);
    page(r).has_stale = true;
    Ok(())
}

fn heuristic(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    page(r).heuristic = if word == b"off" && node.args_count() == 1 {
        None
    } else {
        let percent = word.strip_suffix(b"%").and_then(values::number);
        let percent = percent.filter(|percent| (1..=100).contains(percent));
        let max = match node.arg(1) {
            b"" if node.args_count() == 1 => Duration::from_secs(86_400),
            more => time(more.strip_prefix(b"max=").ok_or_else(|| invalid_parameter(more))?)?,
        };
        let percent = percent.ok_or_else(|| invalid_parameter(word))? as u8;
        Some(HeuristicFreshness { percent, max })
    };
    Ok(())
}

fn vary(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut made = Vec::new();
    for word in node.args() {
        made.push(if let Some(name @ [_, ..]) = word.strip_prefix(b"cookie=") {
            match r.template(name)? {
                text if text.as_text().is_none() => VaryBy::Cookies(text),
                _ => VaryBy::Cookie(Arc::from(name)),
            }
        } else if let Some(text @ [_, ..]) = word.strip_prefix(b"value=") {
            VaryBy::Value(r.template(text)?)
        } else if let Some(name @ [_, ..]) = word.strip_prefix(b"header=") {
            VaryBy::Header(Arc::from(name.to_ascii_lowercase()))
        } else if word == b"off" {
            continue;
        } else {
            return Err(invalid_parameter(word));
        });
    }
    extend(r, |cache| &mut cache.page.vary, made);
    Ok(())
}

/// Arguments that advertisers and statistics add to links.
const TRACKING: &str = "utm_* gclid gclsrc dclid gbraid wbraid gad_* srsltid fbclid igshid msclkid \
                        ttclid twclid li_fat_id yclid ysclid mc_cid mc_eid mkt_tok _hsenc _hsmi \
                        vero_id _ga _gl mtm_* pk_campaign pk_kwd";

/// The patterns of [`TRACKING`].
pub(super) fn tracking() -> impl Iterator<Item = QueryPattern> {
    TRACKING.split_whitespace().map(|name| QueryPattern::new(name.as_bytes()))
}

fn drop_query(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut names = Vec::new();
    for word in node.args() {
        match word {
            b"tracking" => names.extend(tracking()),
            b"off" => {}
            _ => names.push(query_name(word)?),
        }
    }
    let again = r.again;
    let dropped = &mut page(r).drop_query;
    if !again {
        *dropped = Arc::default();
    }
    Arc::make_mut(dropped).names.extend(names);
    Ok(())
}

/// Reads `-qs:name` or `name`; a final `*` matches any suffix.
pub(super) fn query_name(word: &[u8]) -> Result<QueryPattern, ReadFault> {
    let name = word.strip_prefix(b"-qs:").unwrap_or(word);
    if name.is_empty() || name.contains(&b'=') || name.contains(&b'&') {
        return Err(invalid_parameter(word));
    }
    Ok(QueryPattern::new(name))
}

/// The clients allowed; `off` allows none.
fn clients(r: &mut ConfReader, node: &Node) -> Result<Vec<AccessRule>, ReadFault> {
    let words = node.args().filter(|word| *word != b"off");
    words.map(|word| super::access::allowed(r, word)).collect()
}

fn cache_status(r: &mut ConfReader, node: &Node) -> ReadResult {
    let on = read_flag("cache_status", node.arg(0))?;
    let name = match node.arg(1) {
        b"" if node.args_count() == 1 => "bolide".to_owned(),
        word => {
            // RFC 8941 §3.3.3: the bytes of a string without escapes.
            let fits = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
            if !on || word.is_empty() || !word.iter().all(fits) {
                return Err(invalid_parameter(word));
            }
            crate::reader::show(word).into_owned()
        }
    };
    page(r).cache_status = on.then(|| name.into());
    Ok(())
}
