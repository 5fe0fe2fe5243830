//! `magento_cache`: a page cache as Magento 2 expects Varnish to be.
//!
//! Owns where the rules of `bolide_cache::rules::magento` apply. Easiest to break: query parameters
//! are removed before anything reads the query, so that one key is one upstream request.

use bolide_cache::rules::magento::{
    MagentoDelivery, MagentoLook, MagentoOrder, MagentoPurge, clean_query, deliver,
};
use bolide_cache::{NamespaceId, Store, TagScope};
use bolide_http::{FieldMap, Method};

use crate::answer::Answer;
use crate::caching::{CacheTransaction, Caching, UpstreamCacheStatus};
use crate::request::{Request, replace_query};
use crate::site::CompiledLocation;

/// Removes marketing parameters from the query of the request, and so of its key. A query that was
/// cleaned stays as it is.
pub(crate) fn clean(cache: &mut CacheTransaction, request: &mut Request, caching: &Caching) {
    if !caching.is_magento() || request.role.part().is_some() {
        return;
    }
    let is_read = matches!(request.method, Method::Get | Method::Head);
    if clean_query(&request.head().target, is_read, &mut cache.query) {
        replace_query(request, &cache.query);
    }
}

/// The destination of an upstream response.
pub(crate) fn look(cache: &CacheTransaction) -> MagentoLook {
    match cache.is_kept() || cache.way.is_collapsed {
        true => MagentoLook::Shared,
        false => MagentoLook::Passed,
    }
}

/// Changes the fields of a response to those for clients of Magento.
pub(crate) fn show(
    request: &Request,
    fields: &mut FieldMap,
    look: MagentoLook,
    location: &CompiledLocation,
) {
    let Some(caching) = location.caching.as_ref().filter(|caching| caching.is_magento()) else {
        return;
    };
    let hides = caching.conf.page.magento_hide;
    deliver(fields, &MagentoDelivery { target: request.address(), look, hides });
}

/// Marks a cached response.
pub(super) fn say_kept(answer: &mut Answer, cache: &CacheTransaction) {
    debug_assert!(answer.cached.is_kept(), "what is served out of the store says so");
    let fields = &mut answer.head.fields;
    let grace: Option<&[u8]> = match answer.cached {
        _ if cache.way.stand_in.is_some() => Some(b"unlimited (unhealthy server)"),
        UpstreamCacheStatus::Stale | UpstreamCacheStatus::Updating => {
            Some(b"normal (healthy server)")
        }
        _ => None,
    };
    if let Some(grace) = grace {
        fields.push_text(b"Grace", grace);
    }
    let word: &[u8] =
        if answer.cached == UpstreamCacheStatus::Revalidated { b"MISS" } else { b"HIT" };
    fields.push_text(b"X-Magento-Cache-Debug", word);
}

/// Marks an upstream response.
pub(super) fn say_asked(fields: &mut FieldMap, cache: &CacheTransaction) {
    let word: &[u8] = match look(cache) {
        MagentoLook::Shared => b"MISS",
        MagentoLook::Passed => b"UNCACHEABLE",
    };
    fields.push_text(b"X-Magento-Cache-Debug", word);
}

/// Whether a purge has an invalid expression.
pub(super) fn is_unclear(order: &MagentoOrder<'_>) -> bool {
    order.purges.iter().any(|purge| match purge {
        MagentoPurge::Matching(kind, text) => bolide_cache::ban_error(*kind, text).is_some(),
        MagentoPurge::Tags(_) | MagentoPurge::Everything => false,
    })
}

/// Carries out a purge in all of `spaces`; returns the number of objects, as far as it is known.
pub(super) fn purge(store: &Store, spaces: &[NamespaceId], order: &MagentoOrder<'_>) -> u64 {
    let in_space = |space: &NamespaceId, purge: &MagentoPurge<'_>| match purge {
        MagentoPurge::Matching(kind, text) => store.purge_matching(*space, *kind, text, order.how),
        MagentoPurge::Everything => store.purge_all(*space, order.how),
        MagentoPurge::Tags(tags) => tags
            .iter()
            .map(|tag| {
                debug_assert!(!tag.ends_with(b"*"), "a tag of Magento is no prefix");
                store.purge_tag(*space, TagScope::Public, tag, order.how)
            })
            .sum(),
    };
    debug_assert!(!order.purges.is_empty(), "a purge of Magento selects something");
    let each = order.purges.iter().map(|purge| {
        let hit: u64 = spaces.iter().map(|space| in_space(space, purge)).sum();
        hit
    });
    each.sum()
}
