//! The place in a pool of ours that a request keeps when its answer is no longer waited for.
//!
//! A process of the pool goes on with a request after we close its connection, or takes it from
//! the socket's queue later: a place that was given back then would be given to a request for which
//! there is no process. So the connection stays, and what comes is discarded, until the process is
//! done. One that speaks meanwhile would end at a failed write (PHP looks at nothing else): it is
//! given a little time to end by itself, then the connection is closed.

use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::UpstreamKind;

use super::{Audience, Fetch, FetchState, Reading};
use crate::ctx::{FetchCtx, FetchEffect, FetchFate, FetchWake};
use crate::trial::UpstreamTrial;

/// LIMIT: how long a process may go on after the first bytes that are discarded.
const SPEAKING_MAX: Duration = Duration::from_secs(1);
/// LIMIT: bytes that are discarded.
const DISCARDED_MAX: u64 = 256 * 1024;
/// LIMIT: how many times the `request_timeout` of the pool a place may be taken. A request waits
/// for a process as long as another one may take, then takes as long, and php-fpm may be late.
const TIMEOUTS_MAX: u32 = 3;

/// A request that is no longer waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lingering {
    /// When the place is given back in any case.
    until: Option<Instant>,
    /// When the first bytes came that were discarded.
    first_read: Option<Instant>,
    discarded: u64,
}

impl Lingering {
    pub(super) fn due(&self) -> Option<Instant> {
        let first_read = self.first_read.map(|first_read| first_read.after(SPEAKING_MAX));
        match (first_read, self.until) {
            (Some(first_read), Some(until)) => Some(first_read.min(until)),
            (first_read, until) => first_read.or(until),
        }
    }
}

impl Fetch {
    /// Whether a process of ours has the request, or will take it.
    pub(super) fn may_linger(&self) -> bool {
        let is_pool =
            self.group.as_ref().is_some_and(|group| matches!(group.kind(), UpstreamKind::Pool(_)));
        let is_asked = matches!(self.state, FetchState::Asking | FetchState::Answering);
        let is_given = |trial: &UpstreamTrial| trial.link.held && trial.was_sent();
        is_pool && is_asked && self.trial.as_ref().is_some_and(is_given)
    }

    /// From here on only the end of the process counts.
    pub(super) fn linger(&mut self, ctx: &mut FetchCtx<'_>) {
        let longest = self.group.as_ref().and_then(|group| group.request_timeout);
        let until = longest.map(|longest| ctx.now.mono.after(longest.saturating_mul(TIMEOUTS_MAX)));
        (self.audience, self.reading) = (Audience::Gone, Reading::On);
        self.state = FetchState::Lingering(Lingering { until, first_read: None, discarded: 0 });
        ctx.effects.push(FetchEffect::Linger);
    }

    pub(super) fn outlast(
        &mut self,
        lingering: Lingering,
        wake: &FetchWake,
        ctx: &mut FetchCtx<'_>,
    ) {
        match wake {
            FetchWake::Received(bytes) => {
                let discarded = lingering.discarded + bytes;
                let first_read = lingering.first_read.or(Some(ctx.now.mono));
                self.state =
                    FetchState::Lingering(Lingering { first_read, discarded, ..lingering });
                if discarded > DISCARDED_MAX {
                    self.give_back(FetchFate::Abort, ctx);
                }
            }
            FetchWake::Event(bolide_wire::OriginEvent::End { .. })
            | FetchWake::Broken(_)
            | FetchWake::ReceiveFailed(_)
            | FetchWake::SendFailed(_)
            | FetchWake::Unsendable => self.give_back(FetchFate::Close, ctx),
            FetchWake::Draining => self.give_back(FetchFate::Abort, ctx),
            _ => {}
        }
    }

    /// The place is free again.
    pub(super) fn give_back(&mut self, fate: FetchFate, ctx: &mut FetchCtx<'_>) {
        ctx.effects.push(FetchEffect::Release(fate));
        drop(self.trial.take());
        if let Some(group) = &self.group {
            ctx.pools.release(group);
        }
        self.finish(ctx);
    }
}
