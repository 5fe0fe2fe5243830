//! `Cache-Control` of requests (RFC 9111 §5.2.1), where it is honoured.

use bolide_cache::rules::{self, Instructions};
use bolide_cache::{AbandonReason, FillPermit, Lookup, Object};
use bolide_http::Name;
use bolide_http::cache_control::{CacheControl, RequestControl};

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::UpstreamCacheStatus;
use crate::caching::lookup::take_over;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::NextStep;
use crate::explain::Why;
use crate::request::Request;
use crate::site::Site;

impl Request {
    /// Whether the request is authenticated for the application.
    pub(super) fn is_proved(&self, site: &Site) -> bool {
        self.head().fields.get(Name::Authorization).is_some()
            && site.location(self.location).settings.auth_basic.is_none()
    }
}

impl CacheTransaction {
    /// Applies the request's directives to the result of a lookup.
    ///
    /// # Errors The step that replaces it; none for an upstream request.
    pub(super) fn obey(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        found: Lookup,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<Lookup, Option<NextStep>> {
        let object = match &found {
            Lookup::Hit(object) | Lookup::Stale(object, _) => Some(object.clone()),
            Lookup::Miss(permit) => permit.stale().cloned(),
            _ => None,
        };
        let is_strict = object.as_ref().is_some_and(|object| {
            let lines = object
                .iter_fields()
                .filter(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"));
            CacheControl::of(lines.map(|(_, value)| value)).forbids_stale()
        });
        let control = RequestControl::of(&request.head().fields);
        let times = object.as_ref().map(|object| object.times());
        match rules::judge(&control, times.as_ref(), is_strict, ctx.now.unix_millis) {
            Instructions::Refuse => {
                self.why = Why::Anew;
                self.way.is_refused = true;
                if let Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) = found {
                    give_back(permit, ctx);
                }
                Err(Some(NextStep::Fail(504)))
            }
            Instructions::Serve => match (found, object) {
                (Lookup::Miss(permit), Some(object)) => {
                    give_back(permit, ctx);
                    self.way.stand_in = Some(b"max-stale");
                    Err(Some(self.serve_kept(
                        request,
                        answer,
                        object,
                        UpstreamCacheStatus::Stale,
                        site,
                        ctx,
                    )))
                }
                (found, _) => Ok(found),
            },
            Instructions::Ask => match found {
                Lookup::Hit(_) | Lookup::Stale(_, None) => {
                    self.why = Why::Anew;
                    answer.cached = UpstreamCacheStatus::Bypass;
                    take_over(request, self, caching, ctx);
                    Err(None)
                }
                Lookup::Stale(_, Some(permit)) => Ok(Lookup::Miss(permit)),
                found => Ok(found),
            },
        }
    }
}

/// Whether the client takes this fresh object, where its directives count.
pub(super) fn accepts(request: &Request, object: &Object, caching: &Caching, now_ms: u64) -> bool {
    if !caching.policy.honour_request {
        return true;
    }
    let control = RequestControl::of(&request.head().fields);
    let instructions = rules::judge(&control, Some(&object.times()), true, now_ms);
    matches!(instructions, Instructions::Serve)
}

/// Whether an object of another node may be used, or the response be shared with other nodes.
pub(super) fn takes_shared(request: &Request, caching: &Caching, site: &Site) -> bool {
    if !caching.is_page() {
        return true;
    }
    let control = RequestControl::of(&request.head().fields);
    let is_anew = control.no_cache || control.only_if_cached || control.max_age == Some(0);
    !(request.is_proved(site) || caching.policy.honour_request && is_anew)
}

fn give_back(permit: FillPermit, ctx: &mut StepCtx<'_>) {
    ctx.effects.push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone)));
}

/// Applies `Authorization` to the result of a lookup (RFC 9111 §3.5): the response is most likely
/// private, so no other exchange waits for it, it renews no object, and the store does not remember
/// that it was not storable. None is an upstream request, whose response is stored if its fields
/// permit that.
pub(crate) fn set_apart(
    request: &Request,
    answer: &mut Answer,
    cache: &mut CacheTransaction,
    found: Lookup,
    caching: &Caching,
    ctx: &mut StepCtx<'_>,
) -> Option<Lookup> {
    match found {
        Lookup::Miss(permit) => {
            cache.stale = permit.stale().cloned();
            let is_old = cache.stale.is_some();
            answer.cached =
                if is_old { UpstreamCacheStatus::Expired } else { UpstreamCacheStatus::Miss };
            give_back(permit, ctx);
            take_over(request, cache, caching, ctx);
            None
        }
        Lookup::Stale(object, Some(permit)) => {
            give_back(permit, ctx);
            Some(Lookup::Stale(object, None))
        }
        Lookup::Join(_) => {
            cache.why = Why::Busy;
            answer.cached = UpstreamCacheStatus::Miss;
            None
        }
        found => Some(found),
    }
}

/// Whether the client requests a range of something that may be too large to store: only the
/// upstream knows, so it gets the range request.
pub(crate) fn wants_far_part(request: &Request, caching: &Caching) -> bool {
    caching.is_page()
        && request.head().fields.get(Name::Range).is_some_and(|field| {
            bolide_http::range::first_byte(field)
                .is_none_or(|byte| byte >= caching.policy.object_max)
        })
}
