//! Names looked up while requests are served (RFC 1035): questions to name servers, their answers,
//! and what is kept of them.
//!
//! A [`Resolver`] is a machine without I/O for one `resolver` directive and one worker: it takes
//! names, datagrams and bytes of streams, and gives back [`ResolverEffect`]s. nginx's judgement
//! decides which answers count. It knows neither requests nor sockets.

mod known;
mod message;
mod name;
mod question;
mod resolver;

pub use resolver::{
    Families, NameQuery, ResolveFailure, ResolveVerdict, Resolver, ResolverEffect,
    ResolverSettings, Transport,
};
