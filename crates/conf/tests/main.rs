//! The crate from outside: messages against nginx's, meaning against the sheet of semantics.

mod acme;
mod caches;
mod cluster;
mod families;
mod grpc;
mod inherit;
mod meaning;
mod messages;
mod origins;
mod otel;
mod proxy;
mod reference;
mod reference_manual;
mod sticky;
mod support;
mod survey;
