//! Origins: groups of servers, who is chosen, who is left alone, what may be tried again.
//!
//! A [`Fetch`] is one request to an origin: a machine without I/O that is woken ([`FetchWake`]) and
//! says what it wants done ([`FetchEffect`]). It knows neither the client nor its exchange, and
//! refuses to know what an answer means.

mod balance;
pub mod ctx;
pub mod fetch;
pub mod groups;
mod hash;
pub mod health;
pub mod pool;
pub mod request;
mod retry;
mod trial;
mod words;

pub use ctx::{Fate, FetchCtx, FetchEffect, FetchWake, Left};
pub use fetch::Fetch;
pub use groups::{Group, Groups};
pub use pool::{Notice, Pools, Turns};
pub use request::{
    Attempt, Cause, LocalAddress, OriginNews, OriginRequest, Refused, Secure, Target,
};

#[cfg(test)]
mod tests;
