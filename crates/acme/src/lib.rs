//! Certificates from ACME issuers (RFC 8555): which are needed, when each is ordered, and the files
//! of accounts, keys and certificates.
//!
//! Owns one thread. It does not depend on the syntax of the configuration, nor on how a handshake
//! or a request presents a challenge: [`AcmeHost`] does that.

mod accounts;
mod addresses;
mod ask;
mod attempt;
mod base64url;
pub mod certificate;
mod client;
pub mod demand;
mod engine;
mod fetch;
mod hook;
pub mod host;
mod inbox;
mod jws;
mod key_files;
mod local;
mod pending;
pub mod plan;
mod presented;
mod questions;
pub mod record;
mod rollover;
pub mod schedule;
pub mod service;
pub mod state;
pub mod statuses;
mod tls;
pub mod transport;

pub use demand::DemandRate;
pub use host::{AcmeHost, AcmeLogLevel, Challenge, OrderClaim};
pub use inbox::AcmeInbox;
pub use key_files::unusable_issuers;
pub use local::is_local;
pub use plan::{
    AccountKey, AccountName, AcmeAuthority, AcmeDemand, AcmeIssuer, AcmeOrder, AcmePlan,
    CertificateKey, ChallengeKind, ExternalAccount, OrderId,
};
pub use schedule::AcmeNow;
pub use service::{
    AcmeKeeper, AcmeOrderReport, AcmeService, AcmeSetting, KeepFault, KeptCertificate, demanded,
    kept, prepare_directories,
};
