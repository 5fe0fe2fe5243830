//! Deadlines of exchanges: their own wakes, stalled request bodies, and clients that take nothing
//! while an upstream waits for that.

use bolide_base::SlabKey;
use bolide_conf::model::LogLevel;
use bolide_engine::Wake;
use bolide_io::Io;

use crate::exchange_table::{ActiveExchange, UploadState};
use crate::framing::StreamAct;
use crate::requests::Requests;
use crate::token::PollToken;
use crate::worker::Worker;

/// The refusal of a stalled request body.
const LATE_BODY: bolide_engine::RequestRefusal = bolide_engine::RequestRefusal {
    status: 408,
    reason: "client timed out (110: Connection timed out)",
};

impl<I: Io> Worker<I> {
    /// A deadline of an exchange, or of its rate limit.
    pub(crate) fn expire_exchange_of(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(live) = self.requests.exchanges.live.get(key) else { return };
        if live.pace.is_some() {
            self.requests.with_stream(key, StreamAct::Ready);
        } else {
            self.requests.step(key, Wake::Deadline);
        }
    }

    /// Checks for a stalled request body: its stream ends without a response, as in nginx, and is
    /// logged with 408.
    pub(crate) fn expire_body(&mut self, key: SlabKey<ActiveExchange>) {
        let now = self.requests.env.now.mono;
        let Requests { exchanges, clients, .. } = &mut self.requests;
        let Some(live) = exchanges.live.get_mut(key) else { return };
        let UploadState::Coming { since, owed } = live.upload else { return };
        let timeout = live.body_timeout();
        let waits_for_us =
            owed > 0 || !live.exchange.upload_mut().is_wanted() || clients.is_shut(live.owner);
        let due = if waits_for_us { now } else { since }.after(timeout);
        if due > now {
            return self.requests.env.wheel.arm_once(due, PollToken::Body(key).pack());
        }
        let (owner, stream) = (live.owner, live.stream);
        self.requests.step(key, Wake::BodyRefused(LATE_BODY));
        self.requests.cut_off(key, owner, stream);
    }

    /// Checks for a client that has taken nothing for too long while an upstream waits for that.
    pub(crate) fn expire_stall(&mut self, key: SlabKey<ActiveExchange>) {
        let now = self.requests.env.now.mono;
        let Some(live) = self.requests.exchanges.live.get_mut(key) else { return };
        live.watched = live.paused;
        if !live.paused {
            return;
        }
        let timeout = live.send_timeout();
        // A response with a rate limit may be slow.
        let due = if live.pace.is_some() { now } else { live.moved }.after(timeout);
        if due > now {
            return self.requests.env.wheel.arm_once(due, PollToken::Stall(key).pack());
        }
        // So may a fragment that is not being sent yet.
        let Some((root, is_pulled)) = self.requests.exchanges.root(key) else { return };
        if !is_pulled {
            return self
                .requests
                .env
                .wheel
                .arm_once(now.after(timeout), PollToken::Stall(key).pack());
        }
        if let Some(subject) = self.requests.subject_of(root) {
            self.requests.env.log_conn(
                LogLevel::Info,
                &subject,
                "client timed out (110: Connection timed out)",
            );
        }
        self.requests.cut_stream(root);
    }
}
