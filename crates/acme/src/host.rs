//! What the server around this crate does for it.

use std::time::Duration;

use crate::plan::{AccountName, AcmeOrder, OrderId};

/// The answer to a validation of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// `GET /.well-known/acme-challenge/TOKEN` of `name` is answered with `key_authorization`.
    Http01 {
        /// The name to be validated.
        name: String,
        /// The last part of the path.
        token: String,
        /// The content of the answer.
        key_authorization: String,
    },
    /// A handshake for `name` that offers only `acme-tls/1` is given a certificate with `digest`
    /// in its `acmeIdentifier` (RFC 8737, section 3).
    TlsAlpn01 {
        /// The name to be validated.
        name: String,
        /// SHA-256 of the key authorization.
        digest: [u8; 32],
    },
}

/// How important a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcmeLogLevel {
    /// A certificate will be missing or expire unless the cause is mended.
    Error,
    /// One try failed.
    Warn,
    /// A certificate came.
    Notice,
    /// Steps of an order.
    Info,
}

/// Whose an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderClaim {
    /// It may be begun.
    Mine,
    /// It is not known yet.
    Asked,
    /// Another server has begun it.
    Elsewhere,
}

/// The server: it presents challenges, uses certificates and writes the log. Called from the
/// thread of this crate; no call may wait.
pub trait AcmeHost: Send + Sync {
    /// From its return until [`Self::withdraw`], every worker answers the challenge.
    fn present(&self, challenge: &Challenge);

    /// The challenge is over.
    fn withdraw(&self, challenge: &Challenge);

    /// New handshakes for an order use this certificate: chain (leaf first) and key in PEM form.
    ///
    /// # Errors
    ///
    /// Chain and key do not fit, or cannot be read: they are thrown away and ordered anew.
    fn install(&self, order: &OrderId, chain: &[u8], key: &[u8]) -> Result<(), String>;

    /// A name that clients ask for is allowed: `order` gets a place, in which
    /// [`Self::install`] puts its certificate, and handshakes for the name find it there.
    fn demanded(&self, _demand: &OrderId, _order: &AcmeOrder) {}

    /// Such a name is refused from now on.
    fn forgotten(&self, _demand: &OrderId, _order: &AcmeOrder) {}

    /// Whether an order may be begun here, where several servers order the same. It is asked
    /// before each attempt, and waits for nothing.
    fn claim(&self, _order: &OrderId) -> OrderClaim {
        OrderClaim::Mine
    }

    /// The attempt that was claimed has ended.
    fn unclaim(&self, _order: &OrderId) {}

    /// The account of that name that servers have in common, as [`Self::note_account`] was told of
    /// it by one of them.
    fn account(&self, _name: &AccountName) -> Option<Vec<u8>> {
        None
    }

    /// The account of that name is in use here: its credentials, with the private key. If others
    /// have the account `before`, this one takes its place.
    fn note_account(&self, _name: &AccountName, _now: &[u8], _before: Option<&[u8]>) {}

    /// The issuer does not know the account with these credentials.
    fn forget_account(&self, _name: &AccountName, _credentials: &[u8]) {}

    /// How long it takes until other servers answer challenges that were presented here.
    fn spreading(&self) -> Duration {
        Duration::ZERO
    }

    /// Writes a line to the error log.
    fn log(&self, level: AcmeLogLevel, text: &str);
}
