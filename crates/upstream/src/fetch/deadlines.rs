//! When a fetch has waited long enough, and for what.

use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::Protocol;

use super::{Fetch, FetchState, Reading};
use crate::ctx::{FetchCtx, FetchEffect, FetchFate, Left};
use crate::messages;
use crate::retry::UpstreamFault;

/// How often the first fetch of the queue checks for a free place, even without a notice.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Fetch {
    pub(super) fn handle_deadline(&mut self, ctx: &mut FetchCtx<'_>) {
        self.armed = None;
        let now = ctx.now.mono;
        if let FetchState::Queued(until) = self.state {
            self.keep_waiting(until, ctx);
            return;
        }
        let Some((at, doing)) = self.due() else { return };
        if now < at {
            return;
        }
        if let FetchState::Lingering(_) = self.state {
            return self.give_back(FetchFate::Abort, ctx);
        }
        self.fail(UpstreamFault::Timeout, doing, ctx);
    }

    /// The next deadline, and the action that it bounds.
    pub(super) fn due(&self) -> Option<(Instant, &'static str)> {
        let settings = &self.request.settings;
        match (self.state, &self.trial) {
            (FetchState::Lingering(lingering), _) => Some((lingering.due()?, messages::READING)),
            (FetchState::Queued(until), _) => Some((until, messages::WAITING)),
            (FetchState::Connecting, Some(trial)) => {
                let doing =
                    if trial.is_handshaking { messages::HANDSHAKING } else { messages::CONNECTING };
                Some((trial.dialled.after(settings.connect_timeout), doing))
            }
            (FetchState::Asking | FetchState::Answering, Some(trial)) => {
                let send = trial.last_sent.after(settings.send_timeout);
                let read = trial.last_received.after(settings.read_timeout);
                // An upstream that speaks HTTP/2 says more than its response, and may say it first.
                let is_heard = match self.request.protocol {
                    Protocol::Http2 => self.state == FetchState::Answering,
                    _ => trial.received > 0,
                };
                let reads =
                    self.reading == Reading::On && (trial.left == Left::Nothing || is_heard);
                let send = (trial.left == Left::Blocked).then_some((send, messages::SENDING));
                let read = reads.then_some((read, self.reading_what()));
                match (send, read) {
                    (Some(send), Some(read)) => Some(if read.0 < send.0 { read } else { send }),
                    (send, read) => send.or(read),
                }
            }
            _ => None,
        }
    }

    pub(super) fn rearm(&mut self, ctx: &mut FetchCtx<'_>) {
        let Some((mut at, _)) = self.due() else { return };
        if let FetchState::Queued(_) = self.state {
            at = at.min(ctx.now.mono.after(LOOK_AGAIN));
        }
        if self.armed.is_none_or(|armed| at < armed) {
            self.armed = Some(at);
            ctx.effects.push(FetchEffect::Deadline(at));
        }
    }
}
