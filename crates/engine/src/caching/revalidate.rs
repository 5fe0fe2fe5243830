//! Revalidation of a stored response, and its use when the upstream fails.
//!
//! Owns the use of a stale object by the requesting exchange; `fill` updates the object after a
//! 304. Easiest to break: a 304 for another representation leads to a second upstream request
//! without conditions.

use std::sync::Arc;

use bolide_cache::rules;
use bolide_cache::rules::magento::MagentoLook;
use bolide_cache::{AbandonReason, Lookup, Object};
use bolide_http::{FieldMap, Name, OriginHead};

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::UpstreamCacheStatus;
use crate::caching::lookup::take_over;
use crate::caching::magento;
use crate::caching::transaction::CacheState;
use crate::caching::{Caching, StaleCause};
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::filter::esi::assembles;
use crate::request::Request;
use crate::site::Site;

impl CacheTransaction {
    /// The object that the upstream request revalidates, if it does.
    pub(crate) fn to_revalidate(&self) -> Option<&Arc<Object>> {
        self.stale.as_ref().filter(|_| self.revalidates)
    }
}

impl CacheTransaction {
    /// Handles a 304 to our conditional request (RFC 9111 §4.3.3).
    pub(crate) fn revalidated(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        head: &OriginHead,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        if !self.revalidates {
            return None;
        }
        let old = self.stale.take()?;
        self.revalidates = false;
        answer.drop_fetch(ctx);
        if !caching.is_about(&old, &head.fields) {
            // If the second request fails, others need not repeat the first one.
            old.disown();
            // It may still be used for that failure.
            self.stale = Some(old);
            if matches!(self.state, CacheState::Passed) {
                take_over(request, self, caching, ctx);
            }
            return Some(NextStep::Step(RequestStep::Ask));
        }
        // RFC 9111 §4.3.4: the response has the updated fields at once, in nginx's zones as well.
        let now_ms = ctx.now.unix_millis;
        let key = self.keys.public();
        match ctx.cache.as_deref_mut()?.lookup(&key, now_ms) {
            Lookup::Hit(new) => {
                return Some(self.serve_kept(
                    request,
                    answer,
                    new,
                    UpstreamCacheStatus::Revalidated,
                    site,
                    ctx,
                ));
            }
            Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) => {
                ctx.effects.push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone)));
            }
            _ => {}
        }
        // It must not be stored any longer, or is stale again: use it for this client only.
        let mut confirmation = head.fields.clone();
        rules::for_store(&mut confirmation, caching.policy.mode);
        let mut head_of_old = OriginHead { status: old.status(), ..OriginHead::default() };
        old.fields(&mut head_of_old.fields);
        rules::freshen(&mut head_of_old.fields, &confirmation);
        Some(self.serve_revalidated(request, answer, &old, &head_of_old, site, ctx))
    }

    /// The stale object, if it may be used in place of this failure.
    pub(crate) fn stale_if_error(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        trouble: StaleCause,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let caching = site.location(request.location).caching.as_ref()?;
        let stale = self.stale.as_ref()?;
        if !caching.may_serve_stale(stale, trouble, ctx.now.unix_millis) {
            return None;
        }
        let object = self.stale.take()?;
        answer.drop_fetch(ctx);
        self.way.stand_in = Some(b"stale-if-error");
        Some(self.serve_kept(request, answer, object, UpstreamCacheStatus::Stale, site, ctx))
    }

    /// Sends an object whose fields the upstream has just updated.
    fn serve_revalidated(
        &self,
        request: &Request,
        answer: &mut Answer,
        object: &Arc<Object>,
        head_of_old: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        answer.cached = UpstreamCacheStatus::Revalidated;
        let mut head = head_of_old.clone();
        let location = site.location(request.location);
        magento::show(request, &mut head.fields, MagentoLook::Shared, location);
        let next = if object.is_esi() && assembles(location) {
            self.serve_assembled(request, answer, object, &mut head, site, ctx)
        } else {
            push_validators(object, &mut head.fields);
            self.serve_head(request, answer, object, &head, site, ctx)
        };
        // RFC 9111 §4.2.3: the age counts from the validation.
        answer.head.fields.remove(Name::Age);
        answer.object = Some(object.clone());
        next
    }
}

/// Adds the validators, which are stored separately from the fields.
pub(crate) fn push_validators(object: &Object, fields: &mut FieldMap) {
    if let Some(etag) = object.etag()
        && fields.get(Name::Etag).is_none()
    {
        fields.push(Name::Etag, etag);
    }
    if let Some(at) = object.last_modified()
        && fields.get(Name::LastModified).is_none()
    {
        fields.push_writing(Name::LastModified, |out| {
            out.extend_from_slice(&bolide_http::date::http_date(at as i64));
        });
    }
}
