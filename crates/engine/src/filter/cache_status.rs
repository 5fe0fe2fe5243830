//! `Cache-Status` (RFC 9211): the way that a request went, in our member of the list.
//!
//! Owns the words; what is known of the way is noted where it is taken. Easiest to break: an answer
//! has either `hit` or `fwd`, and one that was made for nobody else has neither.

use bolide_cache::Object;
use bolide_cache::rules::{Bypass, StoreRefusal};
use bolide_http::FieldMap;
use bolide_http::cache_status::{CacheStatus, Forward};

use crate::content::page::UpstreamCacheStatus;
use crate::exchange::Exchange;
use crate::explain::Why;
use crate::site::{Caching, CompiledLocation};

/// What is noted of a way beside where it leads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheStatusFacts {
    /// The URL has several answers, and the one for this request was looked for.
    pub(crate) is_varied: bool,
    /// It waited for another one's answer.
    pub(crate) is_collapsed: bool,
    /// Only what is cached was wanted, and nothing is.
    pub(crate) is_refused: bool,
    /// The status that the origin answered; 0 if it did not.
    pub(crate) status: u16,
    /// Seconds that what is kept of the answer is fresh.
    pub(crate) ttl: Option<u32>,
    /// What stands in for an answer of an origin, and why.
    pub(crate) stand_in: Option<&'static [u8]>,
}

impl Exchange {
    /// Of an answer out of the store.
    pub(super) fn tell_kept(&mut self, object: &Object, caching: &Caching, now_ms: u64) {
        let ttl = Some(object.times().ttl_seconds(now_ms));
        let status = match self.answer.cached {
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
                detail: Some(self.page.way.stand_in.unwrap_or(b"stale-while-revalidate")),
                ..CacheStatus::default()
            },
        };
        push(&mut self.answer.head.fields, caching, &status);
    }

    /// Of an answer that an origin gives, or that another one's fetch brings.
    pub(super) fn tell_asked(&mut self, caching: &Caching) {
        if caching.conf.page.cache_status.is_none() {
            return;
        }
        let (forward, mut detail) = self.forward();
        let stored = self.is_kept();
        let way = self.page.way;
        if let Some(refusal) = self.page.refusal.filter(|_| !stored && detail.is_none())
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
        push(&mut self.answer.head.fields, caching, &status);
    }

    /// Of an error of ours.
    pub(crate) fn tell_failed(&mut self, location: &CompiledLocation) {
        let Some(caching) = &location.caching else { return };
        let is_ours = self.page.asked().0 == Some(self.request.location);
        if !is_ours || self.page.why == Why::Purge || caching.conf.page.cache_status.is_none() {
            return;
        }
        let is_answered = self.page.way.status > 0;
        let status = match self.answer.cached {
            _ if self.page.way.is_refused => CacheStatus {
                is_own: true,
                detail: Some(b"only-if-cached"),
                ..CacheStatus::default()
            },
            UpstreamCacheStatus::Hit
            | UpstreamCacheStatus::Stale
            | UpstreamCacheStatus::Updating => CacheStatus::default(),
            _ => CacheStatus {
                forward: Some(self.forward().0),
                forward_status: Some(self.page.way.status).filter(|_| is_answered),
                detail: (!is_answered).then_some(b"failed"),
                ..CacheStatus::default()
            },
        };
        push(&mut self.answer.head.fields, caching, &status);
    }

    /// Why the origin was asked, and what else there is to say about that.
    fn forward(&self) -> (Forward, Option<&'static [u8]>) {
        let missed = if self.page.way.is_varied { Forward::VaryMiss } else { Forward::UriMiss };
        match self.page.why {
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
            _ if self.answer.cached == UpstreamCacheStatus::Bypass => (Forward::Bypass, None),
            _ if self.answer.cached == UpstreamCacheStatus::Expired => (Forward::Stale, None),
            _ => (missed, None),
        }
    }
}

fn push(fields: &mut FieldMap, caching: &Caching, status: &CacheStatus<'_>) {
    if let Some(name) = &caching.conf.page.cache_status {
        fields.push_text_writing(b"Cache-Status", |out| status.push(out, name.as_bytes()));
    }
}
