//! The QUIC endpoint of one worker: datagrams in, streams and datagrams out. The protocol machine
//! is a library's, named only inside this crate; here are its connection ids, its keys, its limits
//! and its clock. Nothing here opens a socket or knows HTTP.

mod cid;
mod cipher;
mod clock;
mod conn;
mod crypto;
mod endpoint;
pub mod fuzz;
mod keys;
mod outgoing;
mod padding;
mod parameters;
mod settings;

pub use cid::{CID_LEN, Numbers, bpf_program, owner};
pub use clock::Clock;
pub use conn::{Conn, Gone, Handshake, Lost, QuicEvent, ReadEnd, Stats};
pub use endpoint::{Arrival, ConnId, Endpoint, Rest};
pub use keys::SharedKeys;
pub use outgoing::{Outgoing, Train};
pub use settings::{Cutting, PathMtu, Retry, Settings, SettingsError};

#[cfg(test)]
mod tests;
