//! A request waits for what another exchange fetches, and looks again.

use bolide_cache::{Follow, Waited, Waiter};

use crate::answer::{Answer, AnswerBody};
use crate::caching::CacheTransaction;
use crate::caching::transaction::CacheState;
use crate::ctx::StepCtx;
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::request::Request;
use crate::site::Site;

impl Exchange {
    /// Whether it waits for what another exchange fetches.
    #[must_use]
    pub fn is_coalescing(&self) -> bool {
        let waits = |body: &AnswerBody| match body {
            AnswerBody::Growing(growth) => growth.is_waiting(),
            AnswerBody::Assembly(assembly) => assembly.is_waiting(),
            _ => false,
        };
        let waits = waits(self.answer.body.innermost()) || self.is_assembling();
        matches!(self.cache.state, CacheState::Waiting(_)) || waits
    }
}

impl CacheTransaction {
    /// Looks at the fill that it waits for.
    pub(crate) fn follow(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let Some(caching) = &site.location(request.location).caching else {
            return NextStep::Fail(500);
        };
        // Word of a fill that it waited for before.
        if self.is_asking_nodes {
            return NextStep::Coalesce;
        }
        let waiter = waiter(ctx);
        loop {
            let CacheState::Waiting(follower) = &mut self.state else {
                return NextStep::Step(RequestStep::Origin);
            };
            let is_page = caching.is_page();
            match if is_page { follower.poll() } else { follower.poll_end() } {
                Follow::Head if is_page => break,
                // In nginx's zones, a request that waits finds it kept, or asks.
                Follow::Head | Follow::Again => {
                    self.state = CacheState::Passed;
                    self.rounds += 1;
                    let next = self.look_again(request, answer, caching, site, ctx);
                    return next.unwrap_or(NextStep::Step(RequestStep::Origin));
                }
                Follow::Waiting => {
                    match if is_page { follower.wait(waiter) } else { follower.wait_end(waiter) } {
                        Waited::Registered => return NextStep::Coalesce,
                        Waited::Moved => {}
                    }
                }
            }
        }
        let CacheState::Waiting(follower) = std::mem::take(&mut self.state) else {
            return NextStep::Fail(500);
        };
        self.serve_growing(request, answer, follower, waiter, site, ctx)
    }
}

/// Who this exchange is to those who wake it.
fn waiter(ctx: &StepCtx<'_>) -> Waiter {
    let worker = ctx.cache.as_ref().map_or(0, |front| front.worker());
    Waiter { worker, exchange: ctx.me }
}
