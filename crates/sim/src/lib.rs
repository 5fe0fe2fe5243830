//! A whole server in one thread, with an invented kernel, disk, clock and clients.
//!
//! A seed decides everything: who connects when, which bytes arrive together, which send is short,
//! which file changes, when time jumps. The workers are the real ones, driven turn by turn; only
//! the door ([`io::Io`]) is ours. TLS and QUIC are out of scope: their libraries draw randomness of
//! their own, so a run could not be repeated; they are tested beside their code and against the
//! real binary. What a kernel really does is not proved here either, only imitated.

pub mod ask;
pub mod assembly;
pub mod chance;
pub mod client;
pub mod door;
pub mod kernel;
pub mod origin;
pub mod pages;
pub mod run;
pub mod scenario;
pub mod site;
pub mod story;

pub use run::{Report, run};
pub use scenario::Scenario;
pub use story::{Story, Telling};
