//! Parses the tags and purges of a response, in all dialects.

use bolide_http::cache_groups::{self, Separator};
use bolide_http::lscache::{self, CacheScope, LsTarget, PurgeEffect};
use bolide_http::{FieldMap, Method};

use crate::rules::policy::{CachePolicy, Mode};

/// A tag of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagWord<'a> {
    /// The tag; it may be empty.
    pub text: &'a [u8],
    /// Whether public purges reach it in a private object (`public:`).
    pub public: bool,
}

/// Fields with tags, besides LSCache's and `Cache-Groups`.
pub(crate) const LISTS: [(&[u8], Separator); 7] = [
    (b"Surrogate-Key", Separator::Blank),
    (b"xkey", Separator::Blank),
    (b"Cache-Tag", Separator::Comma),
    (b"Edge-Cache-Tag", Separator::Comma),
    (b"X-Magento-Tags", Separator::Comma),
    (b"Cache-Tags", Separator::Either),
    (b"X-Cache-Tags", Separator::Either),
];

/// Calls `take` with each tag of a response: from `X-LiteSpeed-Tag`, `Surrogate-Key`, `xkey`,
/// `Cache-Tag`, `Cache-Tags`, `Edge-Cache-Tag`, `X-Cache-Tags`, `X-Magento-Tags`, `Cache-Groups`.
/// The tags of a public object are not marked `public`.
pub fn tags(answer: &FieldMap, mut take: impl FnMut(TagWord<'_>)) {
    for line in answer.all_text(b"X-LiteSpeed-Tag") {
        for tag in lscache::tags(line, CacheScope::Private) {
            take(TagWord { text: tag.text, public: tag.scope == CacheScope::Public });
        }
    }
    for (field, separator) in LISTS {
        for text in cache_groups::names(answer, field, separator) {
            take(TagWord { text, public: true });
        }
    }
    cache_groups::groups(answer, b"Cache-Groups", |name| {
        take(TagWord { text: &name, public: true });
    });
}

/// The target of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeTarget {
    /// All objects of the scope.
    All,
    /// All objects, public and private.
    Everything,
    /// The objects with this tag.
    Tag(Box<[u8]>),
    /// The objects with a tag that has this prefix.
    Prefix(Box<[u8]>),
    /// The objects of this path and query on the same host: see [`url_of`](super::url_of).
    Url(Box<[u8]>),
}

/// A purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeOrder {
    /// Public objects, or those of the session of the request.
    pub scope: CacheScope,
    /// The effect.
    pub effect: PurgeEffect,
    /// The target.
    pub target: PurgeTarget,
}

/// LIMIT: purges of one response; more purge everything.
pub(crate) const ORDERS_MAX: usize = 16 * 1024;

/// The purges of a response with `status` to a request with `method`, stored or not: from
/// `X-LiteSpeed-Purge`, then `-Purge2`, then `Cache-Group-Invalidation` of successful unsafe
/// requests (RFC 9875 §3). nginx's zones support only the last.
#[must_use]
pub fn purges(
    policy: &CachePolicy,
    method: Method,
    status: u16,
    answer: &FieldMap,
) -> Vec<PurgeOrder> {
    let mut orders = Vec::new();
    if policy.mode != Mode::Zone {
        let lines = answer.all_text(b"X-LiteSpeed-Purge");
        for line in lines.chain(answer.all_text(b"X-LiteSpeed-Purge2")) {
            lscache::purges(line, |purge| push(&mut orders, owned(&purge)));
        }
    }
    if !method.is_safe() && (200..400).contains(&status) {
        cache_groups::groups(answer, b"Cache-Group-Invalidation", |name| {
            let target = PurgeTarget::Tag(name.into());
            push(
                &mut orders,
                PurgeOrder { scope: CacheScope::Public, effect: PurgeEffect::Dead, target },
            );
        });
    }
    orders
}

/// Adds a purge. Where that would be too many, everything is purged instead of what they name.
fn push(orders: &mut Vec<PurgeOrder>, order: PurgeOrder) {
    if orders.len() < ORDERS_MAX {
        return orders.push(order);
    }
    if orders.len() == ORDERS_MAX {
        let (scope, effect) = (CacheScope::Public, PurgeEffect::Dead);
        orders.push(PurgeOrder { scope, effect, target: PurgeTarget::Everything });
    }
    debug_assert!(orders.len() == ORDERS_MAX + 1, "more than everything cannot be purged");
}

/// Whether a response has an LSCache field, so that its application controls the cache.
#[must_use]
pub fn is_lscache(answer: &FieldMap) -> bool {
    let mut names = [
        &b"X-LiteSpeed-Cache-Control"[..],
        b"X-LiteSpeed-Purge",
        b"X-LiteSpeed-Purge2",
        b"X-LiteSpeed-Tag",
        b"X-LiteSpeed-Vary",
    ]
    .into_iter();
    names.any(|name| answer.get_text(name).is_some())
}

fn owned(purge: &lscache::LsPurge<'_>) -> PurgeOrder {
    let target = match purge.target {
        LsTarget::All => PurgeTarget::All,
        LsTarget::Tag(text) => PurgeTarget::Tag(text.into()),
        LsTarget::Prefix(text) => PurgeTarget::Prefix(text.into()),
        LsTarget::Url(text) => PurgeTarget::Url(text.into()),
    };
    PurgeOrder { scope: purge.scope, effect: purge.effect, target }
}
