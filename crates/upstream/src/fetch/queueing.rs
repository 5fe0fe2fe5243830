//! Waiting for a place at a server of a group that is busy.

use bolide_base::Instant;
use bolide_conf::model::LogLevel;

use super::{Fetch, FetchState};
use crate::balance::PeerChoice;
use crate::ctx::FetchCtx;
use crate::groups::Group;
use crate::messages;
use crate::request::{Cause, ConnectRefused, PassTarget};

/// The longest `Retry-After`, in seconds, for a client that found the queue full.
const RETRY_AFTER_MAX: u64 = 60;

impl Fetch {
    pub(super) fn wait(&mut self, ctx: &mut FetchCtx<'_>) {
        let Some(group) = self.group.clone() else { return };
        let Some(queue) = group.queue else { return self.find_no_server(ctx) };
        let Ok(before) = ctx.pools.join(&group, ctx.me, queue.len) else {
            self.log(LogLevel::Error, messages::QUEUE_FULL, messages::CONNECTING, ctx);
            return self.turn_away(ctx);
        };
        self.state = FetchState::Queued(ctx.now.mono.after(queue.timeout));
        // A place that became free before we were marked as waiting was offered to no fetch.
        if before == 0 {
            self.look_again(ctx);
        }
    }

    /// Is queued: takes a place if there is one now.
    pub(super) fn look_again(&mut self, ctx: &mut FetchCtx<'_>) {
        self.learn_peers(ctx);
        let Some(group) = self.group.clone() else { return };
        match self.draw(ctx) {
            // A place may be free at a server that already failed this request.
            PeerChoice::Busy if group.has_place(ctx.now.mono) => {
                ctx.pools.pass_turn(&group, ctx.me);
            }
            PeerChoice::Busy => {}
            PeerChoice::Peer(peer, lease) => {
                ctx.pools.leave(&group, ctx.me);
                self.ask(peer, lease, ctx);
            }
            PeerChoice::NoServer => {
                self.stop_waiting(&group, ctx);
                self.find_no_server(ctx);
            }
        }
    }

    /// Names of the group may have been found meanwhile.
    fn learn_peers(&mut self, ctx: &mut FetchCtx<'_>) {
        let PassTarget::Group(id) = &self.request.target else { return };
        let known = self.group.as_ref().map(|group| group.version);
        let newer = ctx.groups.group(*id).filter(|group| Some(group.version) > known);
        if let Some(group) = newer.filter(|_| self.cursor.is_fresh()) {
            self.take_group(group, ctx);
        }
    }

    pub(super) fn keep_waiting(&mut self, until: Instant, ctx: &mut FetchCtx<'_>) {
        let Some(group) = self.group.clone() else { return };
        if ctx.pools.is_first(&group, ctx.me) {
            self.look_again(ctx);
        }
        if self.state == FetchState::Queued(until) && until <= ctx.now.mono {
            self.log(LogLevel::Error, messages::TIMED_OUT, messages::WAITING, ctx);
            self.stop_waiting(&group, ctx);
            self.turn_away(ctx);
        }
    }

    /// Leaves the queue without a place: the turn may have been ours, so another fetch must check.
    pub(super) fn stop_waiting(&mut self, group: &Group, ctx: &mut FetchCtx<'_>) {
        ctx.pools.leave(group, ctx.me);
        ctx.pools.release(group);
    }

    pub(super) fn turn_away(&mut self, ctx: &mut FetchCtx<'_>) {
        let queue = self.group.as_ref().and_then(|group| group.queue);
        let seconds = queue.map_or(1, |queue| queue.timeout.as_millis().div_ceil(1000) as u64);
        self.report_group_attempt(503, ctx);
        let retry_after = Some(seconds.clamp(1, RETRY_AFTER_MAX) as u32);
        self.refuse(ConnectRefused { status: 503, retry_after, cause: Cause::Busy }, ctx);
    }
}
