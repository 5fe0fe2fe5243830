//! The bytes that a client sends before and around HTTP on some ports: the PROXY protocol header,
//! and TLS.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error};

use super::{ClientBase, ClientFault};
use crate::chance::Chance;
use crate::client::pipe::Pipe;
use crate::kernel::{Kernel, SocketGot};
use crate::secure_ports::{self, Certificates, SimPort};
use crate::time::MILLI;
use crate::tls::streams::{self, SimClientCert, VERSIONS};

/// Whether a client waits for responses when its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// No response is pending.
    No,
    /// Some responses are pending.
    Yes,
}

/// A server that closes sooner than this did not wait for further bytes of a corrupted record.
const ALERT_WAIT: u64 = 15_000 * MILLI;

/// A client's TLS settings. Its connections can resume each other's sessions.
#[derive(Clone, Debug)]
pub(super) struct SimTlsClient {
    config: Arc<ClientConfig>,
    client_cert: SimClientCert,
    /// The value of `$ssl_protocol`.
    protocol: &'static str,
}

impl SimTlsClient {
    fn any(protocol: &[u8], chance: &mut Chance) -> Result<Self, String> {
        let client_cert = [
            SimClientCert::None,
            SimClientCert::Member,
            SimClientCert::Member,
            SimClientCert::Stranger,
        ][chance.index(4)];
        let version = chance.index(VERSIONS.len());
        let config = streams::client(protocol, VERSIONS[version], client_cert)?;
        let protocol = if version == 2 { "TLSv1.2" } else { "TLSv1.3" };
        Ok(Self { config, client_cert, protocol })
    }
}

/// A TLS session and its output.
#[derive(Debug)]
pub(super) struct TlsStream {
    conn: ClientConnection,
    /// Records to be sent.
    out: Vec<u8>,
    /// Bytes sent.
    pub(super) sent: u64,
    /// The position of the byte that is sent corrupted.
    flip_at: Option<u64>,
    /// When it was sent.
    flipped_at: Option<u64>,
    /// The server has sent close_notify.
    is_closed: bool,
    /// The alert that the server sent.
    alert: Option<String>,
    /// What is wrong with the server's records.
    fault: Option<String>,
}

impl TlsStream {
    fn new(client: &SimTlsClient, head: Vec<u8>) -> Result<Self, String> {
        let name = ServerName::try_from("site").map_err(|error| error.to_string())?;
        let conn = ClientConnection::new(Arc::clone(&client.config), name);
        let mut conn = conn.map_err(|error| error.to_string())?;
        conn.set_buffer_limit(None);
        let mut stream = Self {
            conn,
            out: head,
            sent: 0,
            flip_at: None,
            flipped_at: None,
            is_closed: false,
            alert: None,
            fault: None,
        };
        stream.gather();
        Ok(stream)
    }

    /// Whether the session accepts plaintext: the handshake is complete, and no record is pending.
    pub(super) fn takes_more(&self) -> bool {
        self.out.is_empty() && !self.conn.is_handshaking()
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.out.is_empty()
    }

    fn gather(&mut self) {
        // Writing to a vector never blocks.
        while self.conn.wants_write() && self.conn.write_tls(&mut self.out).is_ok() {}
    }

    /// Encrypts plaintext.
    pub(super) fn seal(&mut self, plain: &[u8]) {
        // Without a limit the library accepts everything.
        let _ = self.conn.writer().write_all(plain);
        self.gather();
    }

    /// Sends close_notify.
    pub(super) fn close(&mut self) {
        self.conn.send_close_notify();
        self.gather();
    }

    /// Discards the output.
    pub(super) fn cut(&mut self) {
        self.out.clear();
    }

    /// Sends records up to the position `limit`. Returns how many bytes were sent.
    pub(super) fn push(&mut self, kernel: &mut Kernel, fd: i32, limit: Option<u64>) -> usize {
        let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.sent));
        let n = self.out.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if n == 0 {
            return 0;
        }
        let mut bytes = self.out[..n].to_vec();
        let flipped =
            self.flip_at.and_then(|at| bytes.get_mut(at.checked_sub(self.sent)? as usize));
        if let Some(byte) = flipped {
            *byte ^= 1;
        }
        // The client detects a dead connection by reading.
        let taken = kernel.client_write(fd, &bytes).unwrap_or(self.out.len());
        self.out.drain(..taken);
        self.sent += taken as u64;
        if self.flip_at.is_some_and(|at| at < self.sent) {
            self.flipped_at.get_or_insert(kernel.nanos);
        }
        taken
    }

    /// Decrypts the server's records into `plain`.
    pub(super) fn open(&mut self, mut sealed: &[u8], plain: &mut Vec<u8>) {
        while !sealed.is_empty() && self.fault.is_none() && self.alert.is_none() {
            if !matches!(self.conn.read_tls(&mut sealed), Ok(1..)) {
                self.fault = Some("bytes behind the end".to_owned());
                return;
            }
            let state = self.conn.process_new_packets();
            // The reader ends with `WouldBlock`.
            let _ = self.conn.reader().read_to_end(plain);
            match state {
                Ok(state) => self.is_closed |= state.peer_has_closed(),
                Err(Error::AlertReceived(alert)) => self.alert = Some(format!("{alert:?}")),
                Err(error) => self.fault = Some(error.to_string()),
            }
        }
        self.gather();
    }

    /// Whether the server refused the handshake by an alert.
    pub(super) fn is_refused(&self) -> bool {
        self.conn.is_handshaking() && self.alert.is_some()
    }

    /// Checks how the server ended the connection.
    fn check(&self, kernel: &Kernel, how: &SocketGot, is_polite: bool) -> Option<String> {
        match (&self.fault, self.flipped_at) {
            (Some(fault), None) => return Some(format!("wrong records: {fault}")),
            // A server that sends no alert waits for further bytes, or has received an alert.
            (None, Some(at)) if *how == SocketGot::End => {
                let is_soon = kernel.nanos < at + ALERT_WAIT;
                let is_silent = self.alert.is_none() && !self.is_closed;
                return (is_soon && is_silent)
                    .then(|| "no alert for a corrupted record".to_owned());
            }
            _ => {}
        }
        let owes = is_polite && !self.conn.is_handshaking() && self.flip_at.is_none();
        let is_cut = owes && *how == SocketGot::End && !self.is_closed && self.alert.is_none();
        // RFC 8446 §6.1: close_notify comes before the end.
        is_cut.then(|| "the end came without a close_notify".to_owned())
    }
}

impl ClientBase {
    /// Starts a connection with the bytes that its port requires before HTTP.
    pub(super) fn start_preface(&mut self, kernel: &mut Kernel, pipe: &mut Pipe, protocol: &[u8]) {
        let Some(secure_port) = secure_ports::at(pipe.port) else {
            ":::".clone_into(&mut pipe.client_facts);
            return;
        };
        if let Err(problem) = self.try_start_preface(secure_port, pipe, protocol) {
            self.record_violation(kernel, &problem);
        }
    }

    fn try_start_preface(
        &mut self,
        secure_port: SimPort,
        pipe: &mut Pipe,
        protocol: &[u8],
    ) -> Result<(), String> {
        let chance = &mut self.chance;
        let mut head = Vec::new();
        pipe.client_facts = ":".to_owned();
        if secure_port.proxied {
            let is_broken = pipe.client_fault == ClientFault::Garbage && chance.one_in(2);
            if is_broken {
                pipe.client_fault = ClientFault::BadPreface;
            }
            let (bytes, facts) = secure_ports::preface(is_broken, chance);
            (head, pipe.client_facts) = (bytes, facts);
        }
        let is_h1 = protocol != b"h2";
        let garbage = if pipe.client_fault == ClientFault::Garbage { chance.below(3) } else { 0 };
        let speaks_plainly = garbage == 1 && is_h1;
        if secure_port.certificates == Certificates::NoTls || speaks_plainly {
            pipe.client_facts.push_str("::");
            pipe.out = head;
            if secure_port.certificates != Certificates::NoTls {
                (pipe.expects_error, pipe.client_fault) = (true, ClientFault::None);
            }
            return Ok(());
        }
        let client = match &self.tls {
            Some(client) => client,
            None => self.tls.insert(SimTlsClient::any(protocol, chance)?),
        };
        let verify = match client.client_cert {
            SimClientCert::None => "NONE",
            SimClientCert::Member => "SUCCESS",
            SimClientCert::Stranger => "FAILED",
        };
        pipe.expects_error =
            secure_port.certificates == Certificates::Required && verify != "SUCCESS";
        pipe.client_facts = format!("{}:{}:{verify}", pipe.client_facts, client.protocol);
        let preface = head.len() as u64;
        let mut stream = TlsStream::new(client, head)?;
        if garbage == 2 {
            pipe.client_fault = ClientFault::FlippedByte;
            stream.flip_at = Some(preface + self.chance.size(4000) as u64);
        }
        pipe.tls = Some(Box::new(stream));
        Ok(())
    }

    /// Checks how the server ended a connection that neither the client nor the network ended.
    pub(super) fn check_end(
        &mut self,
        kernel: &mut Kernel,
        pipe: &Pipe,
        how: &SocketGot,
        pending: Pending,
    ) {
        let lacks_room = kernel.socket(pipe.fd).is_some_and(|socket| socket.lacks_room_to_end);
        let is_polite =
            pipe.client_fault == ClientFault::None && pending == Pending::No && !lacks_room;
        let problem = pipe.tls.as_ref().and_then(|tls| tls.check(kernel, how, is_polite));
        if let Some(problem) = problem {
            self.record_violation(kernel, &problem);
        }
        if pipe.client_fault == ClientFault::BadPreface && !pipe.input.is_empty() {
            self.record_violation(kernel, "a broken PROXY header was answered");
        }
    }
}
