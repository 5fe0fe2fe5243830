//! Upstreams: groups of servers, balancing, failure handling, retries.
//!
//! A [`Fetch`] is one request to an upstream: a machine without I/O that is woken ([`FetchWake`])
//! and returns effects ([`FetchEffect`]). It knows neither the client nor its exchange, and does
//! not interpret the response.

mod balance;
pub mod ctx;
mod duplicates;
pub mod fetch;
pub mod groups;
mod hash;
pub mod health;
mod messages;
pub mod pool;
pub mod request;
mod resolved;
mod retry;
mod server_names;
mod sessions;
mod sticky;
mod trial;

pub use ctx::{CallHindrance, FetchCtx, FetchEffect, FetchFate, FetchWake, Left};
pub use fetch::Fetch;
pub use groups::{Group, UpstreamGroups};
pub use pool::{LinkPools, Notice, Turns};
pub use request::{
    Attempt, Cause, ConnectRefused, LocalAddress, NameTarget, OriginLogLine, OriginNews,
    OriginRequest, PassTarget, Secure,
};
pub use server_names::{NameVerdict, UpstreamNames};
pub use sessions::SessionZone;
pub use sticky::PeerBond;

#[cfg(test)]
mod tests;
