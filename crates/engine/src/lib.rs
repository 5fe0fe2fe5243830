//! One request from its head to its log line: servers, locations, phases, contents, filters.
//!
//! An [`Exchange`] is a machine without I/O: it is woken ([`Wake`]), computes, and says what it
//! wants done ([`Effect`]). It knows neither frames nor sockets; a [`Site`] is what it knows of the
//! configuration.

mod answer;
mod body;
mod captures;
mod content;
mod credentials;
mod ctx;
mod derived;
mod exchange;
pub mod explain;
mod fill;
mod filter;
mod forwarded;
pub mod fuzz;
pub mod handshake;
mod hash;
mod identity;
mod keys;
mod kinds;
mod limit;
mod log;
mod names;
mod pages;
mod password;
mod patterns;
mod phase;
mod record;
mod request;
mod route;
mod site;
mod tally;
mod vars;

pub use answer::{Piece, Pulled};
pub use content::esi::Lineage;
pub use content::page::Keeping;
pub use content::parts::{Child, Inclusion, PartHead};
pub use content::recall::Recalled;
pub use content::shortcut::{Open, Shortcut};
pub use ctx::{
    Around, Behind, ConnInfo, Ctx, Effect, Peer, ProxyFacts, Refusal, SiteRef, SpoolPlace,
    TlsFacts, Wake,
};
pub use exchange::{Exchange, Rate};
pub use fill::Fill;
pub use limit::{Held, Zones};
pub use log::{Batch, Due, LogId, LogTarget, Logs, VariableFile, datagrams};
pub use password::Check as PasswordCheck;
pub use site::Site;
pub use tally::{Count, Tallies, Tally};
