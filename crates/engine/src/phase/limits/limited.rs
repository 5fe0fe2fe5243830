//! What became of a request at its limits, and where it is counted.

use bolide_limit::LimitHold;

/// What became of a request at its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LimitDetail {
    /// Nothing was asked, or the key was empty.
    #[default]
    Nothing,
    Passed,
    Delayed,
    Rejected,
    DelayedDryRun,
    RejectedDryRun,
}

impl LimitDetail {
    /// `$limit_req_status`, `$limit_conn_status`
    pub(crate) const fn text(self) -> Option<&'static [u8]> {
        Some(match self {
            Self::Nothing => return None,
            Self::Passed => b"PASSED",
            Self::Delayed => b"DELAYED",
            Self::Rejected => b"REJECTED",
            Self::DelayedDryRun => b"DELAYED_DRY_RUN",
            Self::RejectedDryRun => b"REJECTED_DRY_RUN",
        })
    }
}

/// What a request has to do with limits.
#[derive(Debug, Default)]
pub(crate) struct Limited {
    /// What `limit_req` said.
    pub(crate) requests: LimitDetail,
    /// What `limit_conn` said.
    pub(crate) connections: LimitDetail,
    /// Whether it waits until it is as late as its rate wants it.
    pub(super) waits: bool,
    /// Where it is counted as long as it is in work.
    pub(crate) held: LimitHold,
}

impl Limited {
    /// Forgets everything; the request is in work no longer.
    pub(crate) fn clear(&mut self) {
        (self.requests, self.connections, self.waits) =
            (LimitDetail::Nothing, LimitDetail::Nothing, false);
        self.let_go();
    }

    /// The request is in work no longer.
    pub(crate) fn let_go(&mut self) {
        self.held.let_go();
    }

    /// What `limit_req` and `limit_conn` said, for those who ask on behalf of the request.
    pub(crate) const fn details(&self) -> [LimitDetail; 2] {
        [self.requests, self.connections]
    }

    /// What they said of who asks, or was asked, on behalf of the request.
    pub(crate) const fn tell(&mut self, told: [LimitDetail; 2]) {
        [self.requests, self.connections] = told;
    }

    /// The request is counted there, too.
    pub(crate) fn hold(&mut self, held: LimitHold) {
        self.held.join(held);
    }
}
