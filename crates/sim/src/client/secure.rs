//! What a client sends before and around HTTP on some ports: the header of the PROXY protocol, and
//! TLS.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error};

use super::{Base, Sabotage};
use crate::chance::Chance;
use crate::client::pipe::Pipe;
use crate::gates::{self, Certificates, SimPort};
use crate::kernel::{Kernel, SocketGot};
use crate::scenario::MILLI;
use crate::secrets::streams::{self, Shown, VERSIONS};

/// Whether a client still waits for answers when its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// It has all of them.
    No,
    /// It lacks some.
    Yes,
}

/// A server that hangs up sooner than that did not wait for more.
const PATIENCE: u64 = 15_000 * MILLI;

/// A client's side of TLS: its connections may take up each other's sessions.
#[derive(Clone, Debug)]
pub(super) struct SimTlsClient {
    config: Arc<ClientConfig>,
    shown: Shown,
    /// As `$ssl_protocol` tells it.
    protocol: &'static str,
}

impl SimTlsClient {
    fn any(protocol: &[u8], chance: &mut Chance) -> Result<Self, String> {
        let shown = [Shown::None, Shown::Member, Shown::Member, Shown::Stranger][chance.index(4)];
        let version = chance.index(VERSIONS.len());
        let config = streams::client(protocol, VERSIONS[version], shown)?;
        let protocol = if version == 2 { "TLSv1.2" } else { "TLSv1.3" };
        Ok(Self { config, shown, protocol })
    }
}

/// A session of TLS, and its bytes on their way.
#[derive(Debug)]
pub(super) struct TlsStream {
    conn: ClientConnection,
    /// What is to be sent.
    out: Vec<u8>,
    /// Bytes that were sent.
    pub(super) sent: u64,
    /// The byte at this place is sent with another value.
    bends: Option<u64>,
    /// When that happened.
    bent_at: Option<u64>,
    /// The server has told that it ends its side.
    is_closed: bool,
    /// The server has told why it hangs up.
    alert: Option<String>,
    /// What was wrong with the server's bytes.
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
            bends: None,
            bent_at: None,
            is_closed: false,
            alert: None,
            fault: None,
        };
        stream.gather();
        Ok(stream)
    }

    /// Whether plain bytes may be sealed: the handshake is over, and nothing waits to be sent.
    pub(super) fn takes_more(&self) -> bool {
        self.out.is_empty() && !self.conn.is_handshaking()
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.out.is_empty()
    }

    fn gather(&mut self) {
        // A vector takes whatever is written to it.
        while self.conn.wants_write() && self.conn.write_tls(&mut self.out).is_ok() {}
    }

    /// Seals plain bytes.
    pub(super) fn seal(&mut self, plain: &[u8]) {
        // Without a limit the library takes all there is.
        let _ = self.conn.writer().write_all(plain);
        self.gather();
    }

    /// Tells the server that no more follows.
    pub(super) fn close(&mut self) {
        self.conn.send_close_notify();
        self.gather();
    }

    /// Nothing more is sent.
    pub(super) fn cut(&mut self) {
        self.out.clear();
    }

    /// Sends what is to be sent, up to this place of all; how much left.
    pub(super) fn push(&mut self, kernel: &mut Kernel, fd: i32, limit: Option<u64>) -> usize {
        let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.sent));
        let n = self.out.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if n == 0 {
            return 0;
        }
        let mut bytes = self.out[..n].to_vec();
        let bent = self.bends.and_then(|at| bytes.get_mut(at.checked_sub(self.sent)? as usize));
        if let Some(byte) = bent {
            *byte ^= 1;
        }
        // A dead connection is found out by reading.
        let taken = kernel.client_write(fd, &bytes).unwrap_or(self.out.len());
        self.out.drain(..taken);
        self.sent += taken as u64;
        if self.bends.is_some_and(|at| at < self.sent) {
            self.bent_at.get_or_insert(kernel.nanos);
        }
        taken
    }

    /// Takes the server's bytes, and gives what they carry.
    pub(super) fn open(&mut self, mut sealed: &[u8], plain: &mut Vec<u8>) {
        while !sealed.is_empty() && self.fault.is_none() && self.alert.is_none() {
            if !matches!(self.conn.read_tls(&mut sealed), Ok(1..)) {
                self.fault = Some("bytes behind the end".to_owned());
                return;
            }
            let state = self.conn.process_new_packets();
            // It ends with "nothing more yet".
            let _ = self.conn.reader().read_to_end(plain);
            match state {
                Ok(state) => self.is_closed |= state.peer_has_closed(),
                Err(Error::AlertReceived(alert)) => self.alert = Some(format!("{alert:?}")),
                Err(error) => self.fault = Some(error.to_string()),
            }
        }
        self.gather();
    }

    /// Whether the server refused the handshake and told so.
    pub(super) fn is_refused(&self) -> bool {
        self.conn.is_handshaking() && self.alert.is_some()
    }

    /// What is wrong with the way the server ended the connection.
    fn judge(&self, kernel: &Kernel, how: &SocketGot, is_polite: bool) -> Option<String> {
        match (&self.fault, self.bent_at) {
            (Some(fault), None) => return Some(format!("wrong records: {fault}")),
            // A server that sends no alert waits for more, or got one of ours.
            (None, Some(at)) if *how == SocketGot::End => {
                let is_soon = kernel.nanos < at + PATIENCE;
                let is_silent = self.alert.is_none() && !self.is_closed;
                return (is_soon && is_silent).then(|| "no alert for a bent record".to_owned());
            }
            _ => {}
        }
        let owes = is_polite && !self.conn.is_handshaking() && self.bends.is_none();
        let is_cut = owes && *how == SocketGot::End && !self.is_closed && self.alert.is_none();
        // RFC 8446 §6.1: a close_notify comes before the end.
        is_cut.then(|| "the end came without a close_notify".to_owned())
    }
}

impl Base {
    /// Has the connection say what its port wants before HTTP.
    pub(super) fn dress(&mut self, kernel: &mut Kernel, pipe: &mut Pipe, protocol: &[u8]) {
        let Some(gate) = gates::at(pipe.port) else {
            ":::".clone_into(&mut pipe.told);
            return;
        };
        if let Err(problem) = self.try_dress(gate, pipe, protocol) {
            self.complain(kernel, &problem);
        }
    }

    fn try_dress(&mut self, gate: SimPort, pipe: &mut Pipe, protocol: &[u8]) -> Result<(), String> {
        let chance = &mut self.chance;
        let mut head = Vec::new();
        pipe.told = ":".to_owned();
        if gate.proxied {
            let is_broken = pipe.sabotage == Sabotage::Garbage && chance.one_in(2);
            if is_broken {
                pipe.sabotage = Sabotage::Preface;
            }
            let (bytes, told) = gates::preface(is_broken, chance);
            (head, pipe.told) = (bytes, told);
        }
        let is_h1 = protocol != b"h2";
        let garbage = if pipe.sabotage == Sabotage::Garbage { chance.below(3) } else { 0 };
        let speaks_plainly = garbage == 1 && is_h1;
        if gate.certificates == Certificates::No || speaks_plainly {
            pipe.told.push_str("::");
            pipe.out = head;
            if gate.certificates != Certificates::No {
                (pipe.is_barred, pipe.sabotage) = (true, Sabotage::None);
            }
            return Ok(());
        }
        let client = match &self.tls {
            Some(client) => client,
            None => self.tls.insert(SimTlsClient::any(protocol, chance)?),
        };
        let verify = match client.shown {
            Shown::None => "NONE",
            Shown::Member => "SUCCESS",
            Shown::Stranger => "FAILED",
        };
        pipe.is_barred = gate.certificates == Certificates::Demanded && verify != "SUCCESS";
        pipe.told = format!("{}:{}:{verify}", pipe.told, client.protocol);
        let preface = head.len() as u64;
        let mut stream = TlsStream::new(client, head)?;
        if garbage == 2 {
            pipe.sabotage = Sabotage::Bent;
            stream.bends = Some(preface + self.chance.size(4000) as u64);
        }
        pipe.tls = Some(Box::new(stream));
        Ok(())
    }

    /// Judges how the server ended a connection that neither the client nor the network ended.
    pub(super) fn judge_end(
        &mut self,
        kernel: &mut Kernel,
        pipe: &Pipe,
        how: &SocketGot,
        waits: Waits,
    ) {
        let is_polite = pipe.sabotage == Sabotage::None && waits == Waits::No;
        let problem = pipe.tls.as_ref().and_then(|tls| tls.judge(kernel, how, is_polite));
        if let Some(problem) = problem {
            self.complain(kernel, &problem);
        }
        if pipe.sabotage == Sabotage::Preface && !pipe.input.is_empty() {
            self.complain(kernel, "a broken PROXY header was answered");
        }
    }
}
