//! The status of the second thread, for `bolide cluster status`.

use std::sync::{Arc, Mutex, PoisonError};

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
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangeBoard(Arc<Mutex<Option<ExchangeStatus>>>);

impl ExchangeBoard {
    /// The current status; none if this thread shares nothing.
    pub(crate) fn read(&self) -> Option<ExchangeStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the status of another configuration.
    pub(super) fn begin(&self, status: Option<ExchangeStatus>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(super) fn update(&self, what: impl FnOnce(&mut ExchangeStatus)) {
        let mut status = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(status) = &mut *status {
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
