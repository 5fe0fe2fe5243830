//! Starts the real binary, and provides clients that share no code with it.
//!
//! It uses none of the product's crates. Expectations belong to the tests.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests live in real time and open their own sockets and files"
)]
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of the calling test")]

pub mod app;
pub mod audiences;
pub mod certs;
pub mod curl;
pub mod h1;
pub mod load;
pub mod mariadb;
pub mod mmdb;
pub mod mp4;
pub mod names;
pub mod origin;
pub mod pebble;
pub mod php;
pub mod ports;
pub mod revocations;
pub mod server;
pub mod site;
mod socket_tables;
pub mod tcp_link;
pub mod tools;
pub mod valkey;
pub mod wall_clock;
pub mod wordpress;

use std::time::Duration;

pub use app::{AppRequest, AppSaid, TestApp};
pub use curl::{Curl, CurlReply, Proto};
pub use h1::{H1TestClient, Response};
pub use mariadb::MariaDb;
pub use names::{NameReply, TestNames};
pub use origin::TestUpstream;
pub use pebble::{Pebble, PebbleOptions};
pub use php::TestPhp;
pub use revocations::{RevocationFault, RevocationServer};
pub use server::{Exit, TestServer};
pub use tcp_link::{TcpLink, Way};
pub use tools::{Companion, ToolRun, run, tool};
pub use valkey::Valkey;
pub use wall_clock::WallClock;
pub use wordpress::WordPress;

/// Polls `ready` until it is true, and fails with `what` after a minute.
///
/// It waits for 10 ms between two polls, and longer if a poll takes long, for example because it
/// starts a program, or after a while: otherwise the polls would take the processors from the
/// awaited work.
///
/// # Panics `ready` stays false: the calling test has failed.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    loop {
        let look = std::time::Instant::now();
        if ready() {
            return;
        }
        assert!(start.elapsed().as_secs() < 60, "waited a minute in vain for: {what}");
        let rest = (4 * look.elapsed()).max(start.elapsed() / 10);
        std::thread::sleep(rest.clamp(Duration::from_millis(10), Duration::from_millis(250)));
    }
}

/// Sets a flag on drop, also by a panic: threads of a test's scope end with it.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a std::sync::atomic::AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// Sleeps. For tests that put load on a server for some time; never to decide a result.
pub fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}
