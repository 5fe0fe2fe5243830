//! TLS of an application: its handshake, which may fail, and the records around its output.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use super::{Conn, SimUpstream};
use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::secrets::streams::{self, Application};

/// Who speaks TLS at an address.
fn who(address: &str) -> Option<Application> {
    match address {
        "192.0.2.9:443" | "/run/safe.sock" => Some(Application::Right),
        "192.0.2.10:443" => Some(Application::Impostor),
        "192.0.2.11:443" => Some(Application::Asks),
        _ => None,
    }
}

/// Sessions are taken up again at the address that they were made at.
pub(super) type Configs = BTreeMap<String, Arc<ServerConfig>>;

/// What becomes of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    /// It is made.
    Good,
    /// Nothing is said when so many messages of the worker have come.
    Hangs(u64),
    /// The connection ends when so many have come.
    Dies(u64),
    /// What is said is no TLS.
    Babbles,
}

/// The TLS side of one connection.
#[derive(Debug)]
pub(super) struct UpstreamTls {
    conn: ServerConnection,
    who: Application,
    handshake: Handshake,
    heard: u64,
    /// Records that are to be sent.
    out: Vec<u8>,
    /// It says goodbye before it ends.
    says_goodbye: bool,
}

/// What came of the worker's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsIntake {
    /// They are taken.
    Taken,
    /// The connection is over.
    Over,
}

impl SimUpstream {
    /// The TLS side of a new connection, where TLS is spoken.
    pub(super) fn secure(&mut self, to: &str, kernel: &mut Kernel) -> Option<Box<UpstreamTls>> {
        let who = who(to)?;
        let config = match self.configs.get(to) {
            Some(config) => Arc::clone(config),
            None => {
                let made = streams::application(who).ok()?;
                self.configs.insert(to.to_owned(), Arc::clone(&made));
                made
            }
        };
        let conn = ServerConnection::new(config).ok()?;
        let handshake = handshake(kernel, &mut self.chance);
        let (heard, out) = (0, Vec::new());
        let says_goodbye = !self.chance.one_in(3);
        Some(Box::new(UpstreamTls { conn, who, handshake, heard, out, says_goodbye }))
    }
}

/// Draws what becomes of a handshake.
fn handshake(kernel: &mut Kernel, chance: &mut Chance) -> Handshake {
    if !chance.one_in(4 * kernel.faults.deed_in) {
        return Handshake::Good;
    }
    let heard = chance.below(2);
    let handshake = match chance.below(3) {
        0 => Handshake::Hangs(heard),
        1 => Handshake::Dies(heard),
        _ => Handshake::Babbles,
    };
    kernel.tell(|| format!("application: handshake {handshake:?}"));
    match handshake {
        Handshake::Hangs(_) => kernel.deeds.stalls += 1,
        _ => kernel.deeds.refusals += 1,
    }
    handshake
}

impl UpstreamTls {
    /// Takes the worker's bytes, and gives what they carry.
    pub(super) fn open(&mut self, mut sealed: &[u8], plain: &mut Vec<u8>) -> TlsIntake {
        self.heard += 1;
        match self.handshake {
            Handshake::Hangs(after) if self.heard > after => return TlsIntake::Taken,
            Handshake::Dies(after) if self.heard > after => return TlsIntake::Over,
            Handshake::Babbles => self.out = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            _ => {
                while !sealed.is_empty() {
                    if !matches!(self.conn.read_tls(&mut sealed), Ok(1..)) {
                        return TlsIntake::Over;
                    }
                    let state = self.conn.process_new_packets();
                    // It ends with "nothing more yet".
                    let _ = self.conn.reader().read_to_end(plain);
                    if state.is_err() {
                        self.gather();
                        return TlsIntake::Over;
                    }
                }
                self.gather();
            }
        }
        TlsIntake::Taken
    }

    fn gather(&mut self) {
        // A vector takes whatever is written to it.
        while self.conn.wants_write() && self.conn.write_tls(&mut self.out).is_ok() {}
    }

    /// What is wrong with being asked anything.
    pub(super) fn judge_asker(&self) -> Option<&'static str> {
        let shows = self.conn.peer_certificates().is_some();
        match self.who {
            Application::Impostor => {
                Some("an application with another certificate name gets a request")
            }
            Application::Asks if !shows => {
                Some("an application gets a request without a client certificate")
            }
            Application::Asks | Application::Right => None,
        }
    }

    /// Seals what is to be said, and the end of it.
    pub(super) fn seal(&mut self, plain: &mut Vec<u8>, ends: bool) {
        if self.conn.is_handshaking() {
            return;
        }
        self.conn.set_buffer_limit(None);
        // Without a limit the library takes all there is.
        let _ = self.conn.writer().write_all(plain);
        plain.clear();
        if ends && std::mem::take(&mut self.says_goodbye) {
            self.conn.send_close_notify();
        }
        self.gather();
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.out.is_empty()
    }

    /// Sends some of the records; how much.
    pub(super) fn push(&mut self, kernel: &mut Kernel, fd: i32, chance: &mut Chance) -> usize {
        if self.out.is_empty() {
            return 0;
        }
        let n = chance.size(self.out.len());
        let n = if chance.one_in(2) { n } else { self.out.len() };
        let taken = kernel.client_write(fd, &self.out[..n]).unwrap_or(n);
        self.out.drain(..taken);
        taken
    }
}

impl Conn {
    /// Whether all that was said has left.
    pub(super) fn is_flushed(&self) -> bool {
        self.output.is_empty() && self.secured.as_ref().is_none_or(|secured| secured.is_flushed())
    }
}
