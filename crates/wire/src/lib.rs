//! HTTP/1, HTTP/2, HTTP/3, FastCGI, LSAPI, uwsgi, SCGI, memcached and PROXY framing as state
//! machines without sockets and clocks.
//!
//! A machine takes received bytes, reports events, takes response heads, and pulls bodies when it
//! may write. It never sees a location, a file or a configuration beyond its own `Settings`.

#[cfg(test)]
extern crate self as bolide_wire;

mod cgi;
pub mod conn;
pub mod fcgi;
mod fingerprint;
pub mod h1;
pub mod h1_client;
pub mod h2;
pub mod h2_client;
pub mod h3;
pub mod hpack;
mod integer;
pub mod lsapi;
pub mod memcached;
pub mod origin;
mod outgoing;
mod patience;
pub mod per_request;
pub mod proxy;
pub mod pseudo;
pub mod qpack;
pub mod sched;
mod sendable;
mod single_fields;
mod status_line;
pub mod traits;
mod upload;
pub mod upstream_client;

pub use conn::{
    Awaiting, BodySource, ConnError, HeadPool, Pull, RespondError, StreamId, StreamOwner,
    WireEvent, WireRefusal,
};
pub use origin::{OriginConn, OriginConnSettings, OriginError, OriginEvent};
pub use traits::Traits;
