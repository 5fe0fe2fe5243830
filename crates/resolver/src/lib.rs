//! A stub resolver (RFC 1035): queries to name servers, their responses, and a cache.
//!
//! A [`Resolver`] is a state machine without I/O for one `resolver` directive and one worker: it
//! takes names, datagrams and bytes of TCP connections, and returns [`ResolverEffect`]s. It accepts
//! and rejects the same responses as nginx. It knows neither requests nor sockets.

mod known;
mod message;
mod name;
mod question;
mod resolver;

pub use resolver::{
    Families, NameQuery, ResolveFailure, ResolveVerdict, Resolver, ResolverEffect,
    ResolverSettings, Transport,
};
