//! The results of `limit_req` and `limit_conn` for a request, and where it is counted.

use bolide_limit::LimitHold;

/// The result of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LimitDetail {
    /// No limit applied, or its key was empty.
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

/// The limit state of a request.
#[derive(Debug, Default)]
pub(crate) struct Limited {
    /// The result of `limit_req`.
    pub(crate) requests: LimitDetail,
    /// The result of `limit_conn`.
    pub(crate) connections: LimitDetail,
    /// Whether it is delayed to match the rate.
    pub(super) waits: bool,
    /// Where it is counted while it is in progress.
    pub(crate) held: LimitHold,
}

impl Limited {
    /// Clears everything; the request is no longer in progress.
    pub(crate) fn clear(&mut self) {
        (self.requests, self.connections, self.waits) =
            (LimitDetail::Nothing, LimitDetail::Nothing, false);
        self.let_go();
    }

    /// Releases the counts; the request is no longer in progress.
    pub(crate) fn let_go(&mut self) {
        self.held.let_go();
    }

    /// The results of `limit_req` and `limit_conn`, for subrequests.
    pub(crate) const fn details(&self) -> [LimitDetail; 2] {
        [self.requests, self.connections]
    }

    /// Takes over the results of a parent or subrequest.
    pub(crate) const fn adopt(&mut self, limits: [LimitDetail; 2]) {
        [self.requests, self.connections] = limits;
    }

    /// Keeps these counts as well.
    pub(crate) fn hold(&mut self, held: LimitHold) {
        self.held.join(held);
    }
}
