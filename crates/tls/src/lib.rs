//! rustls as a byte machine: certificates by name, tickets, sessions with caller-owned buffers.
//!
//! Nothing here reads a socket, a file or a directive.

#[cfg(test)]
extern crate self as bolide_tls;

mod acceptor;
mod alerts;
mod asking;
mod by_name;
mod cert;
mod certs;
mod challenges;
mod cipher_strings;
mod client;
mod client_auth;
mod client_facts;
mod der;
#[cfg(test)]
#[path = "../../fuzz-entries/src/tls.rs"]
pub mod fuzz;
mod host;
pub mod names;
mod ocsp;
pub mod offers;
mod origin;
mod origin_messages;
mod pem_text;
mod records;
mod revocation_list;
mod sealed;
mod sealed_records;
mod selfsigned;
mod server_hello;
mod session;
mod sessions;
mod signed;
mod slot;
mod tickets;
mod verdict;
mod warm;
mod x509;

pub use acceptor::{Acceptor, AcceptorError, AcceptorOptions, CipherOrder, EarlyData, Versions};
pub use cert::{CertChain, CertError, LoadedCertificate, LoadedKey, Staple, certificates_in};
pub use certs::{CertComplaint, CertSet, ServerCerts, take_complaint};
pub use challenges::{CHALLENGE_PROTOCOL, TlsChallenges};
pub use cipher_strings::CipherStringError;
pub use client::TlsClient;
pub use client_auth::{ClientAuth, ClientAuthError, ClientAuthFile, ClientAuthFiles};
pub use ocsp::{CertStatus, OcspFault, OcspQuestion, issuer_in, responder};
pub use origin::{OriginFault, OriginOptions, OriginSession, OriginTls};
pub use revocation_list::{ListFault, ListedCertificates, Revocation, is_http, list_url, listed};
pub use sealed::SealState;
pub use sealed_records::{RecordRoom, SealedRecords};
pub use selfsigned::self_signed;
pub use session::{TlsError, TlsReceived, TlsSession, opens_handshake};
pub use sessions::Sessions;
pub use slot::{CertSlot, StapleKey};
pub use tickets::{CommonTicketKey, CommonTickets, Tickets};
pub use warm::{random_seed, secret_of, warm_up};
