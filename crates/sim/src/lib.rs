//! A whole server in one thread, with an invented kernel, disk, clock and clients.
//!
//! A seed decides everything: who connects when, which bytes arrive together, which send is short,
//! which file changes, when time jumps. The workers are the real ones, driven turn by turn; only
//! [`bolide_io::Io`] is ours, and the network below it. What TLS draws for its keys is not ours to
//! seed; sizes and times, which decide what happens, are the same in every run. What a kernel
//! really does is not proved here, only imitated.

pub mod ask;
pub mod assembly;
pub mod audiences;
pub mod chance;
pub mod client;
pub mod dav;
pub mod deeds;
pub mod gates;
pub mod kernel;
pub mod names;
pub mod origin;
pub mod pages;
pub mod run;
pub mod scenario;
pub mod scenario_log;
pub mod secrets;
pub mod sim_io;
pub mod site;
pub mod site_files;
pub mod truth;
pub mod upkeep;
pub mod weather;

pub use run::{RunReport, run};
pub use scenario::Scenario;
pub use scenario_log::{ScenarioLog, Telling};
