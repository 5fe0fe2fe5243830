//! What the service tells about orders, and the certificates that it keeps.

use std::fmt;
use std::path::PathBuf;

use crate::plan::OrderId;
use crate::record::RevokedCertificate;

/// The state of an order. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeOrderReport {
    /// Its id.
    pub id: OrderId,
    /// The names of the certificate.
    pub names: Vec<String>,
    /// The next issuer, by the name of its block.
    pub issuer: String,
    /// When the certificate in use expires, if there is one.
    pub expires: Option<u64>,
    /// The time of the next attempt.
    pub next_attempt: u64,
    /// Whether an attempt is running.
    pub is_ordering: bool,
    /// Why the last attempt failed; `None` after a success.
    pub last_error: Option<String>,
    /// Failed attempts since the last success.
    pub failures: u32,
    /// The certificate in use, if its issuer revoked it.
    pub revoked: Option<RevokedCertificate>,
    /// The root that clients have to trust, if the first issuer is this server.
    pub root: Option<PathBuf>,
}

/// A certificate in the state directory, in PEM form.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptCertificate {
    /// The chain, leaf first.
    pub chain: Vec<u8>,
    /// The private key (PKCS #8).
    pub key: Vec<u8>,
}

/// The key must not appear in a log.
impl fmt::Debug for KeptCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptCertificate").finish_non_exhaustive()
    }
}
