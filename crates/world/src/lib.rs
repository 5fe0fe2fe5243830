//! One worker, one connection and a disk in memory around one exchange, for tests.
//!
//! Performs what an exchange asks for, as a worker would, and checks that each request is answered
//! and finished once. No part of the server.

pub mod fragments;
mod request;
mod upstream;
mod world;

pub use request::request;
pub use upstream::{FuzzGot, FuzzUpstream, Say};
pub use world::{FuzzIo, FuzzWorld, WorldReply, compile};
