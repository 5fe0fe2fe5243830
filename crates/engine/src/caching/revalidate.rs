//! Asking an origin whether what is kept is still good, and what stands in when it fails.
//!
//! Owns what an old object means to the exchange that asks; what a confirmation makes of the object
//! is the business of `fill`. Easiest to break: a confirmation of something else leads to a second
//! question, which has no conditions.

use std::sync::Arc;

use bolide_cache::rules;
use bolide_cache::{AbandonReason, Lookup, Object};
use bolide_http::{FieldMap, Name, OriginHead};

use crate::caching::CacheTransaction;
use crate::caching::UpstreamCacheStatus;
use crate::caching::lookup::take_over;
use crate::caching::{Caching, StaleCause};
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::site::Site;

impl CacheTransaction {
    /// The object that the origin is asked to confirm, if it is.
    pub(crate) fn to_revalidate(&self) -> Option<&Arc<Object>> {
        self.stale.as_ref().filter(|_| self.revalidates)
    }
}

impl Exchange {
    /// What becomes of a 304 that we asked for (RFC 9111 §4.3.3).
    pub(crate) fn revalidated(
        &mut self,
        head: &OriginHead,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        if !self.cache.revalidates {
            return None;
        }
        let old = self.cache.stale.take()?;
        self.cache.revalidates = false;
        self.answer.drop_fetch(ctx);
        if !caching.is_about(&old, &head.fields) {
            take_over(&mut self.request, &mut self.cache, caching, ctx);
            return Some(NextStep::Step(RequestStep::Ask));
        }
        // RFC 9111 §4.3.4: the answer has the new fields at once, in nginx's zones, too.
        let now_ms = ctx.now.unix_millis;
        let key = self.cache.keys.public();
        match ctx.cache.as_deref_mut()?.lookup(&key, now_ms) {
            Lookup::Hit(new) => {
                return Some(self.serve_kept(new, UpstreamCacheStatus::Revalidated, site, ctx));
            }
            Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) => {
                ctx.effects.push(StepEffect::News(permit.abandon(AbandonReason::Gone)));
            }
            _ => {}
        }
        // It must not be kept any longer, or is stale again: good for this client alone.
        let mut confirmation = head.fields.clone();
        rules::for_store(&mut confirmation, caching.policy.mode);
        let mut told = OriginHead { status: old.status(), ..OriginHead::default() };
        old.fields(&mut told.fields);
        rules::freshen(&mut told.fields, &confirmation);
        Some(self.serve_revalidated(&old, &told, site, ctx))
    }

    /// The old object, where it may stand in for what there would be.
    pub(crate) fn stale_if_error(
        &mut self,
        trouble: StaleCause,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let caching = site.location(self.request.location).caching.as_ref()?;
        let stale = self.cache.stale.as_ref()?;
        if !caching.may_serve_stale(stale, trouble, ctx.now.unix_millis) {
            return None;
        }
        let object = self.cache.stale.take()?;
        self.answer.drop_fetch(ctx);
        self.cache.way.stand_in = Some(b"stale-if-error");
        Some(self.serve_kept(object, UpstreamCacheStatus::Stale, site, ctx))
    }

    /// Answers with an object whose fields an origin has just renewed.
    fn serve_revalidated(
        &mut self,
        object: &Arc<Object>,
        told: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        self.answer.cached = UpstreamCacheStatus::Revalidated;
        let mut head = told.clone();
        let location = site.location(self.request.location);
        let next = if object.is_esi() && Self::assembles(location) {
            self.serve_assembled(object, &mut head, site, ctx)
        } else {
            push_validators(object, &mut head.fields);
            self.serve_head(object, &head, site, ctx)
        };
        // RFC 9111 §4.2.3: the age is counted from the confirmation.
        self.answer.head.fields.remove(Name::Age);
        self.answer.object = Some(object.clone());
        next
    }
}

/// Validators that are kept beside the fields.
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
