//! One core: wires the machines to the kernel's door, owns their slabs, runs the turn.
//!
//! Nothing here decides what a request means; that is `engine`'s.

mod accepting;
mod bodies;
mod children;
mod effects;
mod epilogues;
mod exchanges;
mod fetches;
mod framing;
mod generation;
mod holdings;
mod intake;
mod jobs;
mod lateness;
pub mod librarian;
mod links;
mod log;
mod mail;
mod meeting;
mod origin;
mod outdated;
mod output;
mod overtime;
mod preface;
mod pulse;
mod questions;
mod quic_conn;
mod recall;
mod reload;
mod secured;
mod settings;
mod shelved;
mod spooling;
mod tcp;
mod throttle;
mod timers;
mod token;
mod udp;
mod udp_sockets;
mod unwaited;
mod verified;
mod wasters;
mod worker;

pub use effects::look;
pub use generation::{Addresses, Generation, Handout, Sockets};
pub use holdings::{Holdings, Intake, Slots};
pub use jobs::Jobs;
pub use log::{LogFile, OpenLogs};
pub use mail::{Inbox, Mail, Post};
pub use pulse::{Beat, Doing, Pulse};
pub use recall::{glance, write_purges};
pub use settings::ListenSettings;
pub use shelved::shelved;
pub use worker::{Startup, Worker};
