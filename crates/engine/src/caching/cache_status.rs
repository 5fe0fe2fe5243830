//! `Cache-Status` (RFC 9211): the processing of a request, as our member of the list.
//!
//! Owns the parameters; their facts are noted where they arise. Easiest to break: a response has
//! either `hit` or `fwd`, and one that cannot be cached for others has neither.

use bolide_cache::Object;
use bolide_cache::rules::{Bypass, StoreRefusal};
use bolide_http::FieldMap;
use bolide_http::cache_status::{CacheStatus, Forward};

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::UpstreamCacheStatus;
use crate::explain::Why;
use crate::request::Request;
use crate::site::CompiledLocation;

fn push(fields: &mut FieldMap, caching: &Caching, status: &CacheStatus<'_>) {
    if let Some(name) = &caching.conf.page.cache_status {
        fields.push_text_writing(b"Cache-Status", |out| status.push(out, name.as_bytes()));
    }
}

/// Why the request was forwarded, and a detail.
fn forward(answer: &Answer, cache: &CacheTransaction) -> (Forward, Option<&'static [u8]>) {
    let missed = if cache.way.is_varied { Forward::VaryMiss } else { Forward::UriMiss };
    match cache.why {
        Why::Rule(Bypass::Method) => (Forward::Method, None),
        Why::Rule(Bypass::NoStore) | Why::Anew => (Forward::Request, None),
        Why::Rule(bypass) => (Forward::Bypass, Some(bypass.reason().as_bytes())),
        Why::Preset => (Forward::Bypass, Some(b"preset")),
        Why::LongKey => (Forward::Bypass, Some(b"long-key")),
        Why::Body => (Forward::Bypass, Some(b"body")),
        Why::StandsIn => (Forward::Bypass, Some(b"stands-in")),
        Why::Refused => (Forward::Bypass, Some(b"refused")),
        Why::NotPublic | Why::NoZone => (Forward::Bypass, Some(b"no-space")),
        Why::Condition => (Forward::Bypass, None),
        Why::Remembered => (missed, Some(b"hit-for-miss")),
        _ if answer.cached == UpstreamCacheStatus::Bypass => (Forward::Bypass, None),
        _ if answer.cached == UpstreamCacheStatus::Expired => (Forward::Stale, None),
        _ => (missed, None),
    }
}

/// For a cached response.
pub(crate) fn push_for_cached(
    answer: &mut Answer,
    cache: &CacheTransaction,
    object: &Object,
    caching: &Caching,
    now_ms: u64,
) {
    debug_assert!(answer.cached.is_kept(), "what came out of the store says so");
    let ttl = Some(object.times().ttl_seconds(now_ms));
    let status = match answer.cached {
        UpstreamCacheStatus::Hit => CacheStatus { ttl, ..CacheStatus::default() },
        UpstreamCacheStatus::Revalidated => CacheStatus {
            forward: Some(Forward::Stale),
            forward_status: Some(304),
            ttl: ttl.filter(|ttl| *ttl > 0),
            stored: ttl.is_some_and(|ttl| ttl > 0),
            ..CacheStatus::default()
        },
        _ => CacheStatus {
            ttl,
            detail: Some(cache.way.stand_in.unwrap_or(b"stale-while-revalidate")),
            ..CacheStatus::default()
        },
    };
    push(&mut answer.head.fields, caching, &status);
}

/// For a response of an upstream, or of another exchange's fetch.
pub(crate) fn push_for_fetched(answer: &mut Answer, cache: &CacheTransaction, caching: &Caching) {
    if caching.conf.page.cache_status.is_none() {
        return;
    }
    let (forward, mut detail) = forward(answer, cache);
    let stored = cache.is_kept();
    let way = cache.way;
    if let Some(refusal) = cache.refusal.filter(|_| !stored && detail.is_none())
        && !(forward == Forward::Method && refusal == StoreRefusal::Method)
        && !matches!(forward, Forward::Bypass | Forward::Request)
    {
        detail = Some(refusal.reason().as_bytes());
    }
    let status = CacheStatus {
        forward: Some(forward),
        forward_status: Some(way.status).filter(|status| *status > 0),
        ttl: way.ttl.filter(|_| stored || way.is_collapsed).map(i64::from),
        stored,
        collapsed: way.is_collapsed,
        detail,
        ..CacheStatus::default()
    };
    push(&mut answer.head.fields, caching, &status);
}

/// For a generated error.
pub(crate) fn push_for_error(
    request: &Request,
    answer: &mut Answer,
    cache: &CacheTransaction,
    location: &CompiledLocation,
) {
    let Some(caching) = &location.caching else { return };
    let is_ours = cache.asked().0 == Some(request.location);
    if !is_ours || cache.why == Why::Purge || caching.conf.page.cache_status.is_none() {
        return;
    }
    let is_answered = cache.way.status > 0;
    let status = match answer.cached {
        _ if cache.way.is_refused => {
            CacheStatus { is_own: true, detail: Some(b"only-if-cached"), ..CacheStatus::default() }
        }
        UpstreamCacheStatus::Hit | UpstreamCacheStatus::Stale | UpstreamCacheStatus::Updating => {
            CacheStatus::default()
        }
        _ => CacheStatus {
            forward: Some(forward(answer, cache).0),
            forward_status: Some(cache.way.status).filter(|_| is_answered),
            detail: (!is_answered).then_some(b"failed"),
            ..CacheStatus::default()
        },
    };
    push(&mut answer.head.fields, caching, &status);
}
