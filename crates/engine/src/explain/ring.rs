//! The record of each request that involved a cache, in a ring of its worker.

use bolide_cache::rules::StoreRefusal;
use bolide_cache::{DecisionClass, DecisionNote, DecisionRecord, NamespaceId};

use super::why::{self, Why};
use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::UpstreamCacheStatus;
use crate::counters::{DECISION_RESULTS, RequestTallies};
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::subrequest::RequestRole;

/// A recent decision.
#[derive(Clone, Debug)]
pub struct Recent {
    /// `$request_id`
    pub id: String,
    /// When the request ended; milliseconds since 1970.
    pub at_ms: u64,
    /// The namespace of the store.
    pub namespace: NamespaceId,
    /// The status that the client got.
    pub status: u16,
    /// The decision.
    pub decision: &'static str,
    /// `$upstream_cache_status`; empty if it has no value.
    pub cached: &'static str,
    /// The reason.
    pub why: Why,
    /// Why the upstream response was not stored, if a rule refused it.
    pub refusal: Option<StoreRefusal>,
    /// Whether the upstream response was stored.
    pub is_kept: bool,
    /// The hash of the key; 0 if there was none.
    pub key: u128,
    /// The beginning of path and query.
    pub target: Vec<u8>,
    /// Whether `target` is truncated.
    pub is_cut: bool,
}

impl Recent {
    pub(super) fn new(noted: DecisionRecord) -> Self {
        let (cached, why, refusal, is_kept) = why::decode(noted.codes);
        Self {
            id: format!("{:016x}{:016x}", noted.id[0], noted.id[1]),
            at_ms: noted.at_ms,
            namespace: noted.namespace,
            status: noted.status,
            decision: decision(cached, why),
            cached: cached.text(),
            why,
            refusal,
            is_kept,
            key: noted.key,
            target: noted.target,
            is_cut: noted.is_cut,
        }
    }
}

/// The decision as one word.
pub(super) const fn decision(cached: UpstreamCacheStatus, why: Why) -> &'static str {
    match (cached, why) {
        (_, Why::Purge) => "PURGE",
        (UpstreamCacheStatus::Miss, Why::Asked | Why::Anew) => "MISS",
        (UpstreamCacheStatus::No | UpstreamCacheStatus::Miss, _) => "PASS",
        (cached, _) => cached.text(),
    }
}

const fn class(cached: UpstreamCacheStatus, why: Why) -> DecisionClass {
    match (cached, why) {
        (UpstreamCacheStatus::Hit | UpstreamCacheStatus::Revalidated, _) => DecisionClass::Hit,
        (UpstreamCacheStatus::Stale | UpstreamCacheStatus::Updating, _) => DecisionClass::Stale,
        (UpstreamCacheStatus::Expired, _) | (UpstreamCacheStatus::Miss, Why::Asked) => {
            DecisionClass::Miss
        }
        (UpstreamCacheStatus::No | UpstreamCacheStatus::Bypass | UpstreamCacheStatus::Miss, _) => {
            DecisionClass::Pass
        }
    }
}

/// The labels of decisions, in the order of [`DecisionClass`].
pub(crate) const DECISION_WORDS: [&str; DECISION_RESULTS] = ["hit", "stale", "miss", "bypass"];

/// The decisions of all workers: result, reason, and count.
pub(crate) fn decision_reasons(
    tallies: &RequestTallies,
) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    why::words().enumerate().flat_map(move |(at, reason)| {
        DECISION_WORDS.into_iter().enumerate().filter_map(move |(class, result)| {
            let sum = tallies.each().map(|tally| tally.decisions.0[at][class].read()).sum();
            (sum > 0).then_some((result, reason, sum))
        })
    })
}

/// Records and counts the cache decision for this request, if the cache was involved.
#[allow(clippy::inline_always, reason = "measured: 18 instructions of a hit")]
#[inline(always)]
pub(crate) fn record_decision(
    request: &Request,
    answer: &Answer,
    cache: &CacheTransaction,
    ctx: &mut StepCtx<'_>,
) {
    if let (Some(_), Some(namespace)) = cache.asked() {
        push_decision(request, answer, cache, namespace, ctx);
    }
}

#[inline(never)]
fn push_decision(
    request: &Request,
    answer: &Answer,
    cache: &CacheTransaction,
    namespace: NamespaceId,
    ctx: &mut StepCtx<'_>,
) {
    let (cached, why) = (answer.cached, cache.why);
    let codes = why::codes(cached, why, cache.refusal, cache.is_kept());
    let class = class(cached, why);
    let is_counted = matches!(request.role, RequestRole::Client)
        && request.site.as_ref().is_some_and(|site| site.location(request.location).row.is_some());
    if is_counted {
        ctx.counters.own().decisions.0[usize::from(codes[1])][class as usize].add(1);
    }
    let Some(front) = ctx.cache.as_deref_mut() else { return };
    let note = DecisionNote {
        id: request.id,
        at_ms: ctx.now.unix_millis,
        key: cache.hash,
        namespace,
        status: answer.logged_status(),
        millis: u32::try_from(ctx.now.mono.nanos_since(request.started.mono) / 1_000_000)
            .unwrap_or(u32::MAX),
        codes,
        target: request.address(),
    };
    front.note(&note, class);
}
