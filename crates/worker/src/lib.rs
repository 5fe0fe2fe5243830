//! One core: wires the machines to the kernel's door, owns their slabs, runs the turn.
//!
//! Nothing here decides what a request means; that is `engine`'s.

mod abandoned_fills;
mod accepting;
mod bodies;
mod disk_lookup;
pub mod disk_writer;
mod effects;
mod exchanges;
mod fetches;
mod framing;
mod generation;
mod handshake_client;
mod heartbeat;
mod holdings;
mod intake;
mod jobs;
mod lateness;
mod links;
mod log;
mod mail;
mod outdated;
mod output;
mod overtime;
mod post_actions;
mod proxy_preface;
mod quic_conn;
mod reload;
mod settings;
mod spooling;
mod stored_pages;
mod subrequests;
mod tcp;
mod throttle;
mod timers;
mod tls_conn;
mod token;
mod udp;
mod udp_sockets;
mod upstream_groups;
mod verified;
mod waste;
mod worker;

pub use disk_lookup::{glance, write_purges};
pub use effects::look;
pub use generation::{Addresses, Generation, GenerationSockets, Handout};
pub use heartbeat::{Beat, Doing, Pulse};
pub use holdings::{Holdings, IntakeState, Slots};
pub use jobs::Jobs;
pub use log::{LogFile, OpenLogs};
pub use mail::{Inbox, Mail, Post};
pub use settings::ListenSettings;
pub use stored_pages::stored_pages;
pub use worker::{Startup, Worker};
