//! An exchange that waits for the fetch of another one, and looks up again.

use bolide_cache::{Follow, Waited, Waiter};

use crate::answer::{Answer, AnswerBody};
use crate::caching::CacheTransaction;
use crate::caching::transaction::CacheState;
use crate::ctx::StepCtx;
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::request::Request;
use crate::site::Site;

impl Exchange {
    /// Whether it waits for the fill of another exchange.
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
    /// Continues after a wake of the fill that it waits for.
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
        // A late wake of a previous fill.
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
                // In nginx's zones, a waiting request finds the complete object, or fetches itself.
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

/// The waiter that identifies this exchange.
fn waiter(ctx: &StepCtx<'_>) -> Waiter {
    let worker = ctx.cache.as_ref().map_or(0, |front| front.worker());
    Waiter { worker, exchange: ctx.me }
}
