//! LiteSpeed's own names for directives of the page cache.

use std::sync::Arc;

use super::page_cache::{page, query_name, set_mode, time};
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, own, value};
use crate::model::{PageMode, PagePrefix, PageScopes};
use crate::reader::{ConfReader, ReadResult, flag, invalid_parameter};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("CacheEngine", HSL, Args::between(1, 3), engine)
        .doc("LiteSpeed's name for `page_cache auto`.", "CacheEngine on esi crawler;")
        .takes("on [esi] [crawler] | off")
        .without("off"),
    value("CacheRoot", Contexts::HTTP, Args::ONE, super::page_cache::path)
        .doc("LiteSpeed's name for `page_cache_path`.", "CacheRoot /var/cache/lscache;")
        .takes("DIRECTORY")
        .without("memory only"),
    own("CacheEnable", HSL, Args::between(1, 2), |r, node| prefix(r, node, true))
        .doc("Paths whose pages are cached even without cache control.", "CacheEnable public /;")
        .takes("[public | private] URI")
        .without("none"),
    own("CacheDisable", HSL, Args::between(1, 2), |r, node| prefix(r, node, false))
        .doc("Paths whose pages are not cached.", "CacheDisable private /feed;")
        .takes("[public | private] URI")
        .without("none"),
    own("CacheLookup", HSL, Args::between(1, 2), lookup)
        .doc(
            "LiteSpeed's name for `page_cache_lookup`, also for public or private pages only.",
            "CacheLookup public on;",
        )
        .takes("[public | private] on | off")
        .without("on, for both"),
    value("CacheMaxExpire", HSL, Args::ONE, |r, node| {
        page(r).max_ttl = Some(time(node.arg(0))?);
        Ok(())
    })
    .doc("LiteSpeed's name for `page_cache_max_ttl`.", "CacheMaxExpire 86400;")
    .takes("SECONDS")
    .without("no limit"),
    value("CacheStaleAge", HSL, Args::ONE, |r, node| {
        let stale = time(node.arg(0))?;
        (page(r).stale, page(r).stale_error) = (stale, stale);
        page(r).has_stale = true;
        Ok(())
    })
    .doc("LiteSpeed's name for `page_cache_stale`.", "CacheStaleAge 200;")
    .takes("SECONDS")
    .without("as with `page_cache_stale`"),
    value("CacheIgnoreCacheControl", HSL, Args::ONE, |r, node| {
        page(r).respect_request = !flag("CacheIgnoreCacheControl", node.arg(0))?;
        Ok(())
    })
    .doc("The opposite of `page_cache_respect_request`.", "CacheIgnoreCacheControl On;")
    .takes("on | off")
    .default("on"),
    own("CacheKeyModify", HSL, Args::at_least(1), key_modify)
        .doc(
            "Adds parameters to `page_cache_drop_query`; `clear` drops those of outer blocks.",
            "CacheKeyModify -qs:utm_*;",
        )
        .takes("-qs:NAME | clear…")
        .without("none"),
    value("LiteMage", HSL, Args::ONE, |r, node| {
        page(r).litemage = flag("LiteMage", node.arg(0))?;
        Ok(())
    })
    .doc("Whether Magento's LiteMage is enabled.", "LiteMage on;")
    .takes("on | off")
    .default("off"),
];

fn engine(r: &mut ConfReader, node: &Node) -> ReadResult {
    let on = flag("CacheEngine", node.arg(0))?;
    for word in node.args().skip(1) {
        match word {
            b"esi" if on => page(r).esi = true,
            b"crawler" if on => page(r).crawler = true,
            _ => return Err(invalid_parameter(word)),
        }
    }
    set_mode(r, if on { PageMode::Auto } else { PageMode::Off });
    Ok(())
}

/// The responses that the first of two words names; both kinds if there is one word.
fn scopes(node: &Node) -> Result<PageScopes, crate::reader::ReadFault> {
    match node.arg(0) {
        _ if node.args_count() == 1 => Ok(PageScopes { public: true, private: true }),
        b"public" => Ok(PageScopes { public: true, private: false }),
        b"private" => Ok(PageScopes { public: false, private: true }),
        word => Err(invalid_parameter(word)),
    }
}

fn prefix(r: &mut ConfReader, node: &Node, enabled: bool) -> ReadResult {
    let scopes = scopes(node)?;
    let path = node.arg(node.args_count() - 1);
    if path.first() != Some(&b'/') {
        return Err(invalid_parameter(path));
    }
    let prefixes = &mut page(r).prefixes;
    Arc::make_mut(prefixes).push(PagePrefix { path: path.into(), scopes, enabled });
    Ok(())
}

fn lookup(r: &mut ConfReader, node: &Node) -> ReadResult {
    let on = flag("CacheLookup", node.arg(node.args_count() - 1))?;
    let meant = scopes(node)?;
    let lookup = &mut page(r).lookup;
    if meant.public {
        lookup.public = on;
    }
    if meant.private {
        lookup.private = on;
    }
    Ok(())
}

fn key_modify(r: &mut ConfReader, node: &Node) -> ReadResult {
    for word in node.args() {
        let dropped = &mut page(r).drop_query;
        match word {
            b"clear" => *dropped = Arc::default(),
            [b'-', b'q', b's', b':', ..] => {
                Arc::make_mut(dropped).names.push(query_name(word)?);
            }
            _ => return Err(invalid_parameter(word)),
        }
    }
    Ok(())
}
