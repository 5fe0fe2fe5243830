//! The status of the second thread, for `bolide cluster status`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The status of the second thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangeStatus {
    pub(crate) namespace: String,
    pub(crate) node: String,
    /// The address in the configuration.
    pub(crate) address: String,
    /// The server that it is connected to.
    pub(crate) connected: Option<String>,
    /// Why there is no connection, or the last error.
    pub(crate) last_fault: Option<String>,
    /// Secrets; none without a `secrets_key`.
    pub(crate) secrets: Option<SecretsStatus>,
    /// Limits; none if no zone is shared.
    pub(crate) limits: Option<LimitsStatus>,
}

/// The status of shared secrets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SecretsStatus {
    /// Whether the keys of TLS tickets are shared.
    pub(crate) has_ticket_keys: bool,
    /// Shared orders of certificates.
    pub(crate) orders: u64,
    /// Their certificates in use here.
    pub(crate) certificates: u64,
    /// Certificates taken over from other servers.
    pub(crate) taken_over: u64,
    /// Orders whose lease this server has.
    pub(crate) leases: u64,
    /// Shared accounts at issuers.
    pub(crate) accounts: u64,
    /// Challenges of other servers that are answered here.
    pub(crate) challenges: u64,
    /// Servers with another first key.
    pub(crate) other_keys: u64,
}

/// The status of shared limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitsStatus {
    pub(crate) zones: u64,
    /// Reports sent.
    pub(crate) sent: u64,
    /// Reports of others that were charged.
    pub(crate) received: u64,
    /// Reports of others that were not: foreign, corrupt, or too old.
    pub(crate) unused: u64,
}

/// The status that both threads access.
///
/// A handle belongs to one configuration: what a thread writes by an outdated handle is ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangeBoard {
    current: Arc<Mutex<CurrentStatus>>,
    /// The configuration that this handle belongs to.
    owner: u64,
}

#[derive(Debug, Default)]
struct CurrentStatus {
    owner: u64,
    status: Option<ExchangeStatus>,
}

impl ExchangeBoard {
    fn current(&self) -> MutexGuard<'_, CurrentStatus> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current status; none if this thread shares nothing.
    pub(crate) fn read(&self) -> Option<ExchangeStatus> {
        self.current().status.clone()
    }

    /// Sets the status of another configuration, and returns its handle.
    pub(super) fn begin(&self, status: Option<ExchangeStatus>) -> Self {
        let mut current = self.current();
        *current = CurrentStatus { owner: current.owner + 1, status };
        Self { current: self.current.clone(), owner: current.owner }
    }

    pub(super) fn update(&self, what: impl FnOnce(&mut ExchangeStatus)) {
        let mut current = self.current();
        let is_owner = current.owner == self.owner;
        if let Some(status) = current.status.as_mut().filter(|_| is_owner) {
            what(status);
        }
    }

    pub(super) fn update_secrets(&self, what: impl FnOnce(&mut SecretsStatus)) {
        self.update(|status| {
            if let Some(secrets) = &mut status.secrets {
                what(secrets);
            }
        });
    }

    pub(super) fn update_limits(&self, what: impl FnOnce(&mut LimitsStatus)) {
        self.update(|status| {
            if let Some(limits) = &mut status.limits {
                what(limits);
            }
        });
    }

    pub(super) fn record_fault(&self, text: &str) {
        self.update(|status| status.last_fault = Some(text.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::{ExchangeBoard, ExchangeStatus};

    #[test]
    fn an_outdated_handle_writes_nothing() {
        let board = ExchangeBoard::default();
        let old = board.begin(Some(ExchangeStatus::default()));
        old.record_fault("old");
        let new = board.begin(Some(ExchangeStatus::default()));
        old.record_fault("late");
        assert_eq!(board.read().unwrap().last_fault, None);
        new.record_fault("new");
        assert_eq!(board.read().unwrap().last_fault.as_deref(), Some("new"));
        board.begin(None);
        new.record_fault("late");
        assert!(board.read().is_none());
    }
}
