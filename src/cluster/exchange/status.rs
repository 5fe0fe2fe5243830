//! What the second thread says of itself, for `bolide cluster status`.

use std::sync::{Arc, Mutex, PoisonError};

/// The second thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangeStatus {
    pub(crate) namespace: String,
    pub(crate) node: String,
    /// The address in the configuration.
    pub(crate) address: String,
    /// The server that it is connected to.
    pub(crate) connected: Option<String>,
    /// Why there is no connection, or what was last amiss.
    pub(crate) last_fault: Option<String>,
    /// Secrets; none without a `secrets_key`.
    pub(crate) secrets: Option<SecretsStatus>,
    /// Limits; none if no zone is shared.
    pub(crate) limits: Option<LimitsStatus>,
}

/// What is secret and shared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SecretsStatus {
    /// Whether the keys of TLS tickets are those of all servers.
    pub(crate) has_ticket_keys: bool,
    /// Orders of certificates that are shared.
    pub(crate) orders: u64,
    /// Certificates of them that are in use here.
    pub(crate) certificates: u64,
    /// Certificates of others that were taken over.
    pub(crate) taken_over: u64,
    /// Orders that this server has the lease of.
    pub(crate) leases: u64,
    /// Accounts at issuers that are those of all servers.
    pub(crate) accounts: u64,
    /// Challenges of others that are answered here.
    pub(crate) challenges: u64,
    /// Servers that put another key first.
    pub(crate) other_keys: u64,
}

/// Limits that are shared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitsStatus {
    pub(crate) zones: u64,
    /// Reports of this server.
    pub(crate) sent: u64,
    /// Reports of others that were charged.
    pub(crate) heard: u64,
    /// Those that were not: foreign, damaged, or of another time.
    pub(crate) unused: u64,
}

/// The status as both sides have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangeBoard(Arc<Mutex<Option<ExchangeStatus>>>);

impl ExchangeBoard {
    /// What is known now; none if nothing is shared by this thread.
    pub(crate) fn read(&self) -> Option<ExchangeStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another configuration is in force.
    pub(super) fn begin(&self, status: Option<ExchangeStatus>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(super) fn note(&self, what: impl FnOnce(&mut ExchangeStatus)) {
        let mut status = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(status) = &mut *status {
            what(status);
        }
    }

    pub(super) fn note_secrets(&self, what: impl FnOnce(&mut SecretsStatus)) {
        self.note(|status| {
            if let Some(secrets) = &mut status.secrets {
                what(secrets);
            }
        });
    }

    pub(super) fn note_limits(&self, what: impl FnOnce(&mut LimitsStatus)) {
        self.note(|status| {
            if let Some(limits) = &mut status.limits {
                what(limits);
            }
        });
    }

    pub(super) fn note_fault(&self, text: &str) {
        self.note(|status| status.last_fault = Some(text.to_owned()));
    }
}
