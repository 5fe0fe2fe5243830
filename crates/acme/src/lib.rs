//! Certificates from issuers that speak ACME (RFC 8555): which are wanted, when each is ordered,
//! and the files in which accounts, keys and certificates are kept.
//!
//! Owns one thread. It knows neither the configuration's syntax nor how a handshake or a request
//! presents a challenge: [`AcmeHost`] does.

pub mod host;
pub mod plan;
pub mod service;

pub use host::{AcmeHost, AcmeLogLevel, Challenge};
pub use plan::{
    AccountKey, AcmeIssuer, AcmeOrder, AcmePlan, CertificateKey, ChallengeKind, ExternalAccount,
    OrderId,
};
pub use service::{AcmeOrderReport, AcmeService, KeptCertificate, kept};
