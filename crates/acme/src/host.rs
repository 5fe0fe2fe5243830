//! The interface to the server around this crate.

use std::time::Duration;

use crate::plan::{AccountName, AcmeOrder, OrderId};

/// The response to a validation by an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// `GET /.well-known/acme-challenge/TOKEN` of `name` is answered with `key_authorization`.
    Http01 {
        /// The name to be validated.
        name: String,
        /// The last part of the path.
        token: String,
        /// The body of the response.
        key_authorization: String,
    },
    /// A handshake for `name` that offers only `acme-tls/1` gets a certificate with `digest` in its
    /// `acmeIdentifier` (RFC 8737, section 3).
    TlsAlpn01 {
        /// The name to be validated.
        name: String,
        /// SHA-256 of the key authorization.
        digest: [u8; 32],
    },
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcmeLogLevel {
    /// Clients may refuse a certificate in use.
    Alert,
    /// A certificate will be missing or expire unless the cause is fixed.
    Error,
    /// One attempt failed.
    Warn,
    /// A certificate was issued.
    Notice,
    /// Steps of an order.
    Info,
}

/// Which server executes an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderClaim {
    /// This one: it may begin.
    Mine,
    /// Undecided so far.
    Asked,
    /// Another server has begun it.
    Elsewhere,
}

/// The server: it presents challenges, uses certificates and writes the log. Called on the thread
/// of this crate; calls must not block.
pub trait AcmeHost: Send + Sync {
    /// From its return until [`Self::withdraw`], every worker answers the challenge.
    fn present(&self, challenge: &Challenge);

    /// The challenge is over.
    fn withdraw(&self, challenge: &Challenge);

    /// New handshakes for an order use this certificate: chain (leaf first) and key in PEM form.
    ///
    /// # Errors
    ///
    /// Chain and key do not match, or are malformed: they are discarded and ordered again.
    fn install(&self, order: &OrderId, chain: &[u8], key: &[u8]) -> Result<(), String>;

    /// An on-demand name is allowed: `order` gets a slot, which [`Self::install`] fills and
    /// handshakes for the name use.
    fn demanded(&self, _demand: &OrderId, _order: &AcmeOrder) {}

    /// Such a name is refused from now on.
    fn forgotten(&self, _demand: &OrderId, _order: &AcmeOrder) {}

    /// Whether this server may begin an order, if several servers have the same orders. Called
    /// before each attempt; does not block.
    fn claim(&self, _order: &OrderId) -> OrderClaim {
        OrderClaim::Mine
    }

    /// A claimed attempt has ended.
    fn unclaim(&self, _order: &OrderId) {}

    /// The shared account of that name, as one of the servers reported it to
    /// [`Self::record_account`].
    fn account(&self, _name: &AccountName) -> Option<Vec<u8>> {
        None
    }

    /// The account of that name is in use here: its credentials, with the private key. If other
    /// servers have the account `before`, this one replaces it.
    fn record_account(&self, _name: &AccountName, _now: &[u8], _before: Option<&[u8]>) {}

    /// The issuer does not know the account with these credentials.
    fn forget_account(&self, _name: &AccountName, _credentials: &[u8]) {}

    /// How long it takes until other servers can answer challenges that were presented here.
    fn spreading(&self) -> Duration {
        Duration::ZERO
    }

    /// Writes a line to the error log.
    fn log(&self, level: AcmeLogLevel, text: &str);
}
