//! The QUIC endpoint of one worker: it takes datagrams, and produces events and datagrams. The
//! protocol comes from quinn-proto, which only this crate names ("the library" below). The crate
//! owns connection ids, keys, limits and the clock. Nothing here opens a socket or knows HTTP.

#[cfg(test)]
extern crate self as bolide_quic;

mod cid;
mod cipher;
mod clock;
mod conn;
mod crypto;
mod endpoint;
mod events;
mod flow;
mod keys;
mod outgoing;
pub mod padding;
mod parameters;
mod settings;
mod token;

pub use cid::{Admits, CID_LEN, Elder, WorkerNumbers, bpf_program, owner};
pub use clock::QuicClock;
pub use conn::{Gone, Handshake, QuicConnection, QuicStats, ReadEnd};
pub use endpoint::{ConnId, EndedStats, Endpoint, QuicArrival, Rest};
pub use events::{Lost, QuicEvent};
pub use flow::Transferred;
pub use keys::SharedKeys;
pub use outgoing::{QuicOutgoing, Train};
pub use settings::{GsoCutting, PathMtu, QuicSettings, Retry, SettingsError};

#[cfg(test)]
#[path = "../../fuzz-entries/src/quic.rs"]
pub mod fuzz;
#[cfg(test)]
mod tests;
