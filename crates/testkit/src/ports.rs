//! Port numbers that no other test uses, in this process or another. They are below the ephemeral
//! range, so that no client socket gets one by chance.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::socket_tables;

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
        // One place for all runs on this machine.
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
            let used = used_ports();
            if (base..base + PER_BLOCK as u16).all(|port| !used.contains(&port)) {
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

/// The ports that a socket of this network namespace listens on or is bound to. The kernel is
/// asked, instead of binding the ports: a child process that another thread starts holds a copy of
/// every socket until it runs its program, so a bound socket would keep its port busy after it was
/// closed.
fn used_ports() -> HashSet<u16> {
    let mut used = socket_tables::listening();
    used.extend(socket_tables::bound_udp());
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn what_listens_is_used_and_a_claimed_block_is_not() {
        let ports = TestPorts::claim();
        let port = |n| ports.port(n);
        assert!((0..PER_BLOCK).all(|n| !used_ports().contains(&port(n))));
        let tcp = TcpListener::bind(("127.0.0.1", port(0))).unwrap();
        let udp = UdpSocket::bind(("127.0.0.1", port(1))).unwrap();
        let used = used_ports();
        assert!(used.contains(&port(0)) && used.contains(&port(1)) && !used.contains(&port(2)));
        drop((tcp, udp));
        assert!(TestPorts::claim().port(0) != port(0), "a block is one test's");
    }
}
