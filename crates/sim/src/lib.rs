//! A whole server in one thread, with a simulated kernel, disk, clock and clients.
//!
//! A seed decides everything: which client connects when, which bytes arrive together, which send
//! is short, which file changes, when time jumps. The workers are the real ones, driven turn by
//! turn; only [`bolide_io::Io`] and the network below it are simulated. The random numbers of TLS
//! keys are not seeded; sizes and times, which decide what happens, are the same in every run. The
//! simulation imitates a kernel; it proves nothing about a real one.

pub mod assembly;
pub mod audiences;
pub mod chance;
pub mod client;
pub mod dns;
pub mod fault_rates;
pub mod fault_record;
mod h2_frame;
pub mod kernel;
pub mod net_conditions;
pub mod oracle;
pub mod pages;
pub mod php_pools;
pub mod request;
pub mod response;
pub mod run;
pub mod run_trace;
pub mod scenario;
pub mod secure_ports;
pub mod sim_io;
pub mod site;
pub mod site_files;
pub mod time;
pub mod tls;
pub mod upkeep;
pub mod upstream;
pub mod webdav;

pub use run::{RunReport, run};
pub use run_trace::{RunTrace, TraceMode};
pub use scenario::Scenario;
