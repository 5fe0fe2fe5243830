//! Lookups on disk and at other nodes, after a miss in memory and before an upstream request.
//!
//! Easiest to break: a permit that is lent for a lookup comes back and is used, or was used up.

use bolide_cache::{AbandonReason, FillPermit, Lookup, SessionKey};
use bolide_http::Method;

use super::lookup::follow_known;
use super::request_cache_control::takes_shared;
use super::transaction::CacheState;
use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::{Caching, Recalled};
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::request::Request;
use crate::site::Site;

/// LIMIT: disk lookups of one request.
const RECALLS_MAX: u8 = 6;
/// LIMIT: lookups at other nodes of one request.
const SHARES_MAX: u8 = 4;

impl CacheTransaction {
    /// Looks up the object of a permit on disk; returns the permit if that is of no use.
    pub(super) fn recall(
        &mut self,
        permit: FillPermit,
        ctx: &mut StepCtx<'_>,
    ) -> Result<NextStep, FillPermit> {
        if self.recalls >= RECALLS_MAX || permit.stale().is_some() || permit.disk_query().is_none()
        {
            return Err(permit);
        }
        self.recalls += 1;
        debug_assert!(matches!(self.state, CacheState::Passed), "a request has one permit");
        ctx.effects.push(StepEffect::Recall(Box::new(permit)));
        Ok(NextStep::Coalesce)
    }
}

impl CacheTransaction {
    /// Continues with the result of the disk.
    pub(crate) fn recalled(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        recalled: Recalled,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let Some(caching) = &site.location(request.location).caching else {
            return NextStep::Fail(500);
        };
        self.is_asking_nodes = false;
        let next = match recalled {
            Recalled::Kept => self.look_again(request, answer, caching, site, ctx),
            Recalled::Found(found) => {
                self.take_recalled(request, answer, found, caching, site, ctx)
            }
            Recalled::Alone(permit) => {
                (self.recalls, self.shares) = (RECALLS_MAX, SHARES_MAX);
                self.take_found(request, answer, Lookup::Miss(permit), caching, site, ctx)
            }
        };
        next.unwrap_or(NextStep::Step(RequestStep::Origin))
    }

    fn take_recalled(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        found: Lookup,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        match found {
            // Whether a response is private is unknown before it arrives.
            Lookup::Miss(permit) | Lookup::Stale(_, Some(permit))
                if permit.key().session().is_some() =>
            {
                ctx.effects.push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone)));
                self.is_private_absent = true;
                self.look_again(request, answer, caching, site, ctx)
            }
            found => {
                // It is not on disk: that was the last lookup.
                self.recalls = RECALLS_MAX;
                self.take_found(request, answer, found, caching, site, ctx)
            }
        }
    }
}

/// Looks up the object of a permit at other nodes; returns the permit if that is of no use.
pub(super) fn ask_nodes(
    request: &Request,
    cache: &mut CacheTransaction,
    (caching, site): (&Caching, &Site),
    permit: FillPermit,
    ctx: &mut StepCtx<'_>,
) -> Result<NextStep, FillPermit> {
    let is_filled = request.head().method != Method::Head || request.asks_for_whole(caching);
    let may_ask = cache.shares < SHARES_MAX && is_filled && permit.may_be_shared();
    if !may_ask || !takes_shared(request, caching, site) {
        return Err(permit);
    }
    cache.shares += 1;
    cache.is_asking_nodes = true;
    debug_assert!(matches!(cache.state, CacheState::Passed), "a request has one permit");
    ctx.effects.push(StepEffect::AskNodes(Box::new(permit)));
    Ok(NextStep::Coalesce)
}

/// Looks up an object of the session on disk.
pub(crate) fn recall_private(
    request: &Request,
    cache: &mut CacheTransaction,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    let session = SessionKey::new(&cache.session)?;
    let tree = site.kept()?.page_tree.as_ref()?;
    if cache.is_private_absent || !tree.may_have_private(session) {
        return None;
    }
    let mut keys = cache.keys.clone();
    let _found = follow_known(&mut keys, Some(session), &request.head().fields, ctx)?;
    let front = ctx.cache.as_deref_mut()?;
    let Lookup::Miss(permit) = front.lookup(&keys.private(session), ctx.now.unix_millis) else {
        return None;
    };
    match cache.recall(permit, ctx) {
        Ok(next) => Some(next),
        Err(permit) => {
            ctx.effects.push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone)));
            None
        }
    }
}
