//! Tags that an answer carries and purges that it orders, of whichever dialect.

use bolide_http::cache_groups::{self, Separator};
use bolide_http::lscache::{self, CacheScope, LsTarget, PurgeEffect};
use bolide_http::{FieldMap, Method};

use crate::rules::policy::{CachePolicy, Mode};

/// A tag of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagWord<'a> {
    /// The tag; may be empty.
    pub text: &'a [u8],
    /// Whether public purges reach it though the object is private (`public:`).
    pub public: bool,
}

/// Fields that hold tags, beside LSCache's and `Cache-Groups`.
pub(crate) const LISTS: [(&[u8], Separator); 7] = [
    (b"Surrogate-Key", Separator::Blank),
    (b"xkey", Separator::Blank),
    (b"Cache-Tag", Separator::Comma),
    (b"Edge-Cache-Tag", Separator::Comma),
    (b"X-Magento-Tags", Separator::Comma),
    (b"Cache-Tags", Separator::Either),
    (b"X-Cache-Tags", Separator::Either),
];

/// Calls `take` with each tag of an answer: of `X-LiteSpeed-Tag`, `Surrogate-Key`, `xkey`,
/// `Cache-Tag`, `Cache-Tags`, `Edge-Cache-Tag`, `X-Cache-Tags`, `X-Magento-Tags`, `Cache-Groups`.
/// Those of a public object are not marked `public`.
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

/// What is to be purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeTarget {
    /// Everything of the scope.
    All,
    /// What has this tag.
    Tag(Box<[u8]>),
    /// What has a tag that begins so.
    Prefix(Box<[u8]>),
    /// What is kept of this path and query on the same host: see [`url_of`](super::url_of).
    Url(Box<[u8]>),
}

/// One order to purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeOrder {
    /// Everybody's objects, or those of the session that asked.
    pub scope: CacheScope,
    /// What becomes of them.
    pub effect: PurgeEffect,
    /// Which they are.
    pub target: PurgeTarget,
}

/// LIMIT: orders of one answer; further ones are not carried out.
pub(crate) const ORDERS_MAX: usize = 16 * 1024;

/// The orders of an answer with `status` to a request with `method`, whatever else is decided
/// about it: `X-LiteSpeed-Purge`, then `-Purge2`, then `Cache-Group-Invalidation` of successful
/// unsafe requests (RFC 9875 §3). nginx's zones know only the last.
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
            lscache::purges(line, |purge| {
                if orders.len() < ORDERS_MAX {
                    orders.push(owned(&purge));
                }
            });
        }
    }
    if !method.is_safe() && (200..400).contains(&status) {
        cache_groups::groups(answer, b"Cache-Group-Invalidation", |name| {
            if orders.len() < ORDERS_MAX {
                let target = PurgeTarget::Tag(name.into());
                orders.push(PurgeOrder {
                    scope: CacheScope::Public,
                    effect: PurgeEffect::Dead,
                    target,
                });
            }
        });
    }
    orders
}

/// Whether an answer has one of LSCache's fields: its application drives the cache.
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
