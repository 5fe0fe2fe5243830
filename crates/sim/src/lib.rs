//! A whole server in one thread, with a simulated kernel, disk, clock and clients.
//!
//! A seed decides everything: who connects when, which bytes arrive together, which send is short,
//! which file changes, when time jumps. The workers are the real ones, driven turn by turn; only
//! [`bolide_io::Io`] and the network below it are simulated. The random numbers of TLS keys are not
//! seeded; sizes and times, which decide what happens, are the same in every run. The simulation
//! imitates a kernel; it proves nothing about a real one.

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
