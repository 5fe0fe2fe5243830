//! nginx's cache zones: how `fastcgi_cache*` use the result of a lookup.
//!
//! Owns `lock`, `min_uses`, `use_stale`, `background_update` and `max_range_offset`; the cache
//! rules determine lifetimes. Easiest to break: an exchange that fetches concurrently with a fill
//! stores its response all the same, except after `lock_timeout`; one that waits takes nothing
//! before the object is complete, so that it can still fetch itself.

use std::sync::Arc;

use bolide_cache::{AbandonReason, FillPermit, Follower, Lookup, Object};
use bolide_conf::model::LogLevel;
use bolide_http::{Method, Name};

use super::lookup::ROUNDS_MAX;
use super::transaction::CacheState;
use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::UpstreamCacheStatus;
use crate::caching::lookup::take_over;
use crate::caching::{CacheSpace, Caching};
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::explain::Why;
use crate::explain::trace::count_use;
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

impl Request {
    /// Whether the upstream request is a GET though the client sent a HEAD.
    pub(crate) fn asks_for_whole(&self, caching: &Caching) -> bool {
        caching.converts_head && self.head().method == Method::Head
    }
}

impl CacheTransaction {
    /// Serves from a zone, waits, or leaves it to the upstream (none).
    pub(super) fn take_zone(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        found: Lookup,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        match found {
            Lookup::Hit(object) => {
                return Some(self.serve_kept(
                    request,
                    answer,
                    object,
                    UpstreamCacheStatus::Hit,
                    site,
                    ctx,
                ));
            }
            Lookup::Failed(status) => {
                answer.cached = UpstreamCacheStatus::Hit;
                return Some(NextStep::Fail(status));
            }
            Lookup::Stale(object, permit) => {
                return self.take_old(request, answer, (object, permit), caching, site, ctx);
            }
            Lookup::Miss(permit) => self.fill_zone(request, answer, permit, caching, ctx),
            Lookup::Join(follower) if caching.conf.lock => {
                return self.wait_for_fill(request, answer, follower, caching, site, ctx);
            }
            Lookup::Join(_) | Lookup::Pass | Lookup::Vary(_) => {
                let is_busy = matches!(found, Lookup::Join(_));
                self.why = if is_busy { Why::Busy } else { Why::Remembered };
                self.ask_beside(request, answer, None, caching, ctx);
            }
        }
        None
    }

    fn take_old(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        (object, permit): (Arc<Object>, Option<FillPermit>),
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let serves = caching.serves_updating(&object, ctx.now.unix_millis);
        match permit {
            Some(permit) if serves && caching.conf.background_update => {
                permit.mark_sent(ctx.now.mono);
                self.refresh(request, answer, permit, caching, site, ctx);
                return Some(self.serve_kept(
                    request,
                    answer,
                    object,
                    UpstreamCacheStatus::Stale,
                    site,
                    ctx,
                ));
            }
            Some(permit) => self.fill_zone(request, answer, permit, caching, ctx),
            None if serves => {
                return Some(self.serve_kept(
                    request,
                    answer,
                    object,
                    UpstreamCacheStatus::Updating,
                    site,
                    ctx,
                ));
            }
            None => self.ask_beside(request, answer, Some(object), caching, ctx),
        }
        None
    }

    /// This exchange fetches; the response is stored, if the configuration permits.
    fn fill_zone(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        permit: FillPermit,
        caching: &Caching,
        ctx: &mut StepCtx<'_>,
    ) {
        debug_assert!(matches!(self.state, CacheState::Passed), "a request has one permit");
        debug_assert!(!caching.is_page(), "pages have rules of their own");
        permit.mark_sent(ctx.now.mono);
        let stale = permit.stale().cloned();
        let is_scarce = !count_use(request, permit.key().hash(), caching) && stale.is_none();
        answer.cached =
            if stale.is_some() { UpstreamCacheStatus::Expired } else { UpstreamCacheStatus::Miss };
        self.stale = stale;
        if is_scarce || is_far_range(request, caching) {
            ctx.effects.push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone)));
            return;
        }
        revalidate(answer, self, caching);
        self.state = CacheState::Filling { permit, past: false };
    }

    /// Fetches concurrently with another exchange, and stores the response.
    fn ask_beside(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        stale: Option<Arc<Object>>,
        caching: &Caching,
        ctx: &mut StepCtx<'_>,
    ) {
        let is_scarce = !count_use(request, self.keys.public().hash(), caching) && stale.is_none();
        answer.cached =
            if stale.is_some() { UpstreamCacheStatus::Expired } else { UpstreamCacheStatus::Miss };
        self.stale = stale;
        if is_scarce || is_far_range(request, caching) {
            return;
        }
        revalidate(answer, self, caching);
        take_over(request, self, caching, ctx);
    }

    /// `fastcgi_cache_lock`: waits for the fill, until the timeout.
    fn wait_for_fill(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        follower: Follower,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        debug_assert!(caching.conf.lock, "only with a lock is another's fill waited for");
        let now = ctx.now;
        let asked = follower.growing().asked().unwrap_or(now.mono);
        let left = caching.conf.lock_age.saturating_sub(now.mono.since(asked));
        if left.is_zero() {
            ctx.cache.as_deref()?.supersede(follower.growing());
            return self.look_up(request, answer, caching, site, ctx);
        }
        answer.cached = UpstreamCacheStatus::Miss;
        let timeout = caching.conf.lock_timeout;
        let until = *self.until.get_or_insert_with(|| now.mono.after(timeout));
        if until <= now.mono {
            return None;
        }
        if self.rounds >= ROUNDS_MAX {
            self.why = Why::Tired;
            self.ask_beside(request, answer, None, caching, ctx);
            return None;
        }
        ctx.effects.push(StepEffect::Deadline(until.min(now.mono.after(left))));
        self.state = CacheState::Waiting(follower);
        Some(self.follow(request, answer, site, ctx))
    }

    /// Continues after the deadline of a wait.
    pub(crate) fn stop_waiting(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        // The deadline of a previous wait.
        if self.is_asking_nodes {
            return NextStep::Coalesce;
        }
        self.state = CacheState::Passed;
        let caching = site.location(request.location).caching.as_ref();
        if let Some(caching) = caching.filter(|caching| !caching.is_page())
            && self.until.is_some_and(|until| ctx.now.mono < until)
        {
            let next = self.look_again(request, answer, caching, site, ctx);
            return next.unwrap_or(NextStep::Step(RequestStep::Origin));
        }
        log_lines::error(request, site, ctx, LogLevel::Info, |out| {
            out.extend_from_slice(b"cache lock timeout");
        });
        NextStep::Step(RequestStep::Origin)
    }
}

/// Whether the first of some ranges begins at `limit` or later, or is a suffix range.
fn begins_behind(ranges: &[u8], limit: u64) -> bool {
    let text = ranges.trim_ascii_start();
    if text.first() == Some(&b'-') {
        return true;
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let start = digits
        .fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    start >= limit
}

/// `fastcgi_cache_revalidate`
fn revalidate(answer: &mut Answer, cache: &mut CacheTransaction, caching: &Caching) {
    if cache.stale.as_ref().is_some_and(|old| caching.can_revalidate(old)) {
        cache.revalidates = true;
        answer.object = cache.stale.clone();
    }
}

/// `fastcgi_cache_max_range_offset`
fn is_far_range(request: &Request, caching: &Caching) -> bool {
    let Some(limit) = caching.conf.max_range_offset else { return false };
    let Some(text) = request.head().fields.get(Name::Range) else { return false };
    match text.split_at_checked(6) {
        _ if limit == 0 => true,
        Some((unit, range)) if unit.eq_ignore_ascii_case(b"bytes=") => begins_behind(range, limit),
        _ => false,
    }
}

/// The text names no existing zone, which is an error, or none at all.
pub(crate) fn miss_zone(
    request: &Request,
    answer: &Answer,
    caching: &Caching,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    let CacheSpace::Named(text) = &caching.space else { return None };
    let mut name = Vec::new();
    VariableScope::new(request, answer, site, ctx).expand(text, &mut name);
    if matches!(&*name, b"" | b"off") {
        return None;
    }
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"cache \"");
        out.extend_from_slice(&name);
        out.extend_from_slice(b"\" not found");
    });
    Some(NextStep::Fail(500))
}

#[cfg(test)]
mod tests {
    use super::begins_behind;

    #[test]
    fn a_range_is_far_by_its_first_byte() {
        for (text, limit, is_far) in [
            ("0-5", 1, false),
            ("10-", 10, true),
            ("9-,20-", 10, false),
            (" 10-", 10, true),
            ("-5", 1000, true),
            ("99999999999999999999999-", u64::MAX, true),
            ("x", 1, false),
        ] {
            assert_eq!(begins_behind(text.as_bytes(), limit), is_far, "{text} {limit}");
        }
    }
}
