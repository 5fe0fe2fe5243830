//! Port numbers that no other test uses, in this process or another. They are below the ephemeral
//! range, so that no client socket gets one by chance.

use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const FIRST: usize = 18_000;
const BLOCKS: usize = 1_400;

/// Ports in one block.
pub const PER_BLOCK: usize = 10;

/// Ten free ports, TCP and UDP, held until dropped.
pub struct TestPorts {
    base: u16,
    _lock: File,
}

impl TestPorts {
    /// Claims a free block.
    ///
    /// # Panics No block is free.
    #[must_use]
    pub fn claim() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // One place for all runs on this machine, wherever each has its files.
        let dir = Path::new("/tmp/bolide-test-ports");
        fs::create_dir_all(dir).unwrap();
        let from = std::process::id() as usize * 37;
        for _ in 0..BLOCKS {
            let block = (from + NEXT.fetch_add(1, Ordering::Relaxed)) % BLOCKS;
            let path = dir.join(block.to_string());
            let lock = File::options().create(true).append(true).open(path).unwrap();
            if lock.try_lock().is_err() {
                continue;
            }
            let base = u16::try_from(FIRST + block * PER_BLOCK).unwrap();
            if (base..base + PER_BLOCK as u16).all(is_free) {
                return Self { base, _lock: lock };
            }
        }
        panic!("no ten free ports in a row between {FIRST} and {}", FIRST + BLOCKS * PER_BLOCK);
    }

    /// The port number `n` of the block.
    ///
    /// # Panics `n` is not below [`PER_BLOCK`].
    #[must_use]
    pub fn port(&self, n: usize) -> u16 {
        assert!(n < PER_BLOCK);
        self.base + n as u16
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("0.0.0.0", port)).is_ok() && UdpSocket::bind(("0.0.0.0", port)).is_ok()
}
