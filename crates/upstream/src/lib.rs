//! Origins: groups of servers, who is chosen, who is left alone, what may be tried again.
//!
//! A [`Fetch`] is one request to an origin: a machine without I/O that is woken ([`FetchWake`]) and
//! says what it wants done ([`FetchEffect`]). It knows neither the client nor its exchange, and
//! refuses to know what an answer means.

pub mod fetch;
pub mod request;

pub use fetch::{Fate, FetchEffect, FetchWake};
pub use request::{Attempt, OriginNews, OriginRequest, Refused};
