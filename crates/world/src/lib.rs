//! One worker, one connection and a disk in memory around one exchange, for tests.
//!
//! Performs the effects of an exchange as a worker would, and checks that each request is answered
//! and finished once. Not a part of the server.

mod disk;
pub mod fragments;
mod reply;
mod request;
mod site;
mod upstream;
mod world;

pub use disk::FuzzIo;
pub use reply::WorldReply;
pub use request::request;
pub use site::compile;
pub use upstream::{FuzzGot, FuzzUpstream, Say};
pub use world::FuzzWorld;
