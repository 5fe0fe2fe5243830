//! TLS of an application: its handshake, which may fail, and the records of its output.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use super::{Conn, SimUpstream};
use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::tls::streams::{self, TlsApp};

/// The kind of application at an address, if it has TLS.
fn app_at(address: &str) -> Option<TlsApp> {
    match address {
        "192.0.2.9:443" | "/run/safe.sock" => Some(TlsApp::Valid),
        "192.0.2.10:443" => Some(TlsApp::Impostor),
        "192.0.2.11:443" => Some(TlsApp::RequiresClientCert),
        _ => None,
    }
}

/// The TLS settings by address, so that sessions can be resumed there.
pub(super) type Configs = BTreeMap<String, Arc<ServerConfig>>;

/// The reaction to a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    /// It is completed.
    Good,
    /// It stops after this many messages of the worker.
    Hangs(u64),
    /// The connection is closed after this many messages of the worker.
    Dies(u64),
    /// The bytes sent are not TLS.
    SendsNoTls,
}

/// The TLS side of one connection.
#[derive(Debug)]
pub(super) struct UpstreamTls {
    conn: ServerConnection,
    app: TlsApp,
    handshake: Handshake,
    messages_received: u64,
    /// Records to be sent.
    out: Vec<u8>,
    /// It sends close_notify before it closes.
    sends_close_notify: bool,
}

/// The result of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsIntake {
    /// They were accepted.
    Taken,
    /// The connection must be closed.
    Over,
}

impl SimUpstream {
    /// The TLS side of a new connection, if its address has TLS.
    pub(super) fn secure(&mut self, to: &str, kernel: &mut Kernel) -> Option<Box<UpstreamTls>> {
        let app = app_at(to)?;
        let config = match self.configs.get(to) {
            Some(config) => Arc::clone(config),
            None => {
                let made = streams::application(app).ok()?;
                self.configs.insert(to.to_owned(), Arc::clone(&made));
                made
            }
        };
        let conn = ServerConnection::new(config).ok()?;
        let handshake = handshake(kernel, &mut self.chance);
        let (messages_received, out) = (0, Vec::new());
        let sends_close_notify = !self.chance.one_in(3);
        Some(Box::new(UpstreamTls {
            conn,
            app,
            handshake,
            messages_received,
            out,
            sends_close_notify,
        }))
    }
}

/// Draws the reaction to a handshake.
fn handshake(kernel: &mut Kernel, chance: &mut Chance) -> Handshake {
    if !chance.one_in(4 * kernel.fault_rates.app_fault_in) {
        return Handshake::Good;
    }
    let messages_received = chance.below(2);
    let handshake = match chance.below(3) {
        0 => Handshake::Hangs(messages_received),
        1 => Handshake::Dies(messages_received),
        _ => Handshake::SendsNoTls,
    };
    kernel.trace(|| format!("application: handshake {handshake:?}"));
    match handshake {
        Handshake::Hangs(_) => kernel.fault_record.stalled_handshakes += 1,
        _ => kernel.fault_record.refused_connects += 1,
    }
    handshake
}

impl UpstreamTls {
    /// Decrypts the worker's records into `plain`.
    pub(super) fn open(&mut self, mut sealed: &[u8], plain: &mut Vec<u8>) -> TlsIntake {
        self.messages_received += 1;
        match self.handshake {
            Handshake::Hangs(after) if self.messages_received > after => return TlsIntake::Taken,
            Handshake::Dies(after) if self.messages_received > after => return TlsIntake::Over,
            Handshake::SendsNoTls => self.out = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            _ => {
                while !sealed.is_empty() {
                    if !matches!(self.conn.read_tls(&mut sealed), Ok(1..)) {
                        return TlsIntake::Over;
                    }
                    let state = self.conn.process_new_packets();
                    // The reader ends with `WouldBlock`.
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
        // Writing to a vector never blocks.
        while self.conn.wants_write() && self.conn.write_tls(&mut self.out).is_ok() {}
    }

    /// The violation in a request from this client, if there is one.
    pub(super) fn check_client(&self) -> Option<&'static str> {
        let shows = self.conn.peer_certificates().is_some();
        match self.app {
            TlsApp::Impostor => Some("an application with another certificate name gets a request"),
            TlsApp::RequiresClientCert if !shows => {
                Some("an application gets a request without a client certificate")
            }
            TlsApp::RequiresClientCert | TlsApp::Valid => None,
        }
    }

    /// Encrypts the output, and close_notify if it ends.
    pub(super) fn seal(&mut self, plain: &mut Vec<u8>, ends: bool) {
        if self.conn.is_handshaking() {
            return;
        }
        self.conn.set_buffer_limit(None);
        // Without a limit the library accepts everything.
        let _ = self.conn.writer().write_all(plain);
        plain.clear();
        if ends && std::mem::take(&mut self.sends_close_notify) {
            self.conn.send_close_notify();
        }
        self.gather();
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.out.is_empty()
    }

    /// Sends a part of the records. Returns how many bytes were sent.
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
    /// Whether the whole output was sent.
    pub(super) fn is_flushed(&self) -> bool {
        self.output.is_empty() && self.secured.as_ref().is_none_or(|secured| secured.is_flushed())
    }
}
