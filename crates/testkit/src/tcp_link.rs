//! A way to a port of this machine that a test can cut: what a partition of the network is to one
//! process.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They go through.
    Open,
    /// They wait, in both directions, and connections stay.
    Silent,
    /// Connections end, and so does each new one.
    Cut,
}

/// A port that leads to another one. It ends with the value.
pub struct TcpLink {
    way: Arc<AtomicU8>,
    port: u16,
}

/// The way is no longer needed.
const GONE: u8 = 3;

impl TcpLink {
    /// An open way to this port.
    ///
    /// # Panics There is no port to listen on.
    #[must_use]
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let way = Arc::new(AtomicU8::new(Way::Open as u8));
        let shared = Arc::clone(&way);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                match shared.load(Ordering::Relaxed) {
                    GONE => return,
                    way if way == Way::Cut as u8 => continue,
                    _ => {}
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let way = Arc::clone(&shared);
                    std::thread::spawn(move || carry(from, to, &way));
                }
            }
        });
        Self { way, port: own }
    }

    /// The port to connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Opens it, or not.
    pub fn set(&self, way: Way) {
        self.way.store(way as u8, Ordering::Relaxed);
    }
}

impl Drop for TcpLink {
    fn drop(&mut self) {
        self.way.store(GONE, Ordering::Relaxed);
        // The thread that listens looks at it once more.
        let _gone = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Carries bytes until one side ends or the way is cut.
fn carry(mut from: TcpStream, mut to: TcpStream, way: &AtomicU8) {
    let is_cut = || {
        while way.load(Ordering::Relaxed) == Way::Silent as u8 {
            std::thread::sleep(Duration::from_millis(2));
        }
        way.load(Ordering::Relaxed) != Way::Open as u8
    };
    let mut bytes = [0; 16 * 1024];
    from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    while !is_cut() {
        let len = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(len) => len,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => break,
        };
        if is_cut() || to.write_all(&bytes[..len]).is_err() {
            break;
        }
    }
    let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
