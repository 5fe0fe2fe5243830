//! The parts that every connection of a client has: bytes in transit, and the client's fault.

use std::sync::atomic::Ordering;

use super::ClientFault;
use super::secure::TlsStream;
use crate::kernel::{Kernel, SocketGot};
use crate::request::SimRequest;

/// One connection as a byte stream.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) fd: i32,
    pub(super) port: u16,
    /// The output, and how much of it was sent.
    pub(super) out: Vec<u8>,
    pub(super) out_at: usize,
    /// Bytes sent in total.
    pub(super) sent: u64,
    pub(super) input: Vec<u8>,
    pub(super) client_fault: ClientFault,
    /// The client sends no further request.
    pub(super) ended: bool,
    /// The TLS session, on ports with TLS.
    pub(super) tls: Option<Box<TlsStream>>,
    /// The facts about the client that `/who` must return.
    pub(super) client_facts: String,
    /// Every response must be an error.
    pub(super) expects_error: bool,
    /// The end of the sending side was sent, or follows the output.
    finished: bool,
    /// The end of the sending side follows the TLS output.
    ends_sealed: bool,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// Bytes sent.
    Bytes(usize),
    /// The client's fault is to disconnect now.
    Leave { rude: bool },
}

impl Pipe {
    pub(super) const fn new(fd: i32, port: u16, client_fault: ClientFault) -> Self {
        Self {
            fd,
            port,
            out: Vec::new(),
            out_at: 0,
            sent: 0,
            input: Vec::new(),
            client_fault,
            ended: false,
            tls: None,
            client_facts: String::new(),
            expects_error: false,
            finished: false,
            ends_sealed: false,
        }
    }

    const fn client_fault_at(&self) -> Option<u64> {
        match self.client_fault {
            ClientFault::Leave { after, .. }
            | ClientFault::Stall { after }
            | ClientFault::End { after } => Some(after),
            ClientFault::None
            | ClientFault::Garbage
            | ClientFault::BadPreface
            | ClientFault::FlippedByte => None,
        }
    }

    pub(super) fn is_stalled(&self) -> bool {
        matches!(self.client_fault, ClientFault::Stall { after } if self.left_here() >= after)
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.left() == 0 && self.tls.as_ref().is_none_or(|tls| tls.is_flushed())
    }

    /// Bytes sent to the network, TLS records included.
    fn left_here(&self) -> u64 {
        self.tls.as_ref().map_or(self.sent, |tls| tls.sent)
    }

    /// Whether the server found no certificate for this client, so that it may retry.
    pub(super) fn is_refused(&self, kernel: &Kernel) -> bool {
        let refused = self.tls.as_ref().is_some_and(|tls| tls.is_refused());
        refused && kernel.missing_certificates.load(Ordering::Relaxed) > 0
    }

    /// Copies the expectations of this connection to a request.
    pub(super) fn mark(&self, request: &mut SimRequest) {
        request.client_facts.clone_from(&self.client_facts);
        request.expects_error = self.expects_error;
    }

    /// Bytes that are still to be sent.
    pub(super) const fn left(&self) -> usize {
        self.out.len() - self.out_at
    }

    /// Sends at most `n` bytes of the output.
    pub(super) fn write(&mut self, kernel: &mut Kernel, mut n: usize) -> Wrote {
        let limit = self.client_fault_at();
        if let Some(limit) = limit {
            n = n.min(limit.saturating_sub(self.left_here()) as usize);
        }
        let rest = &self.out[self.out_at..];
        let mut moved = 0;
        let taken = match &mut self.tls {
            Some(tls) => {
                moved += tls.push(kernel, self.fd, limit);
                let n = if tls.takes_more() { n } else { 0 };
                if n > 0 {
                    tls.seal(&rest[..n]);
                    moved += tls.push(kernel, self.fd, limit);
                }
                n
            }
            // The client detects a dead connection by reading.
            None => kernel.client_write(self.fd, &rest[..n]).unwrap_or(rest.len()),
        };
        self.out_at += taken;
        self.sent += taken as u64;
        let is_due = limit.is_some_and(|limit| self.left_here() >= limit);
        match self.client_fault {
            ClientFault::Leave { rude, .. } if is_due => return Wrote::Leave { rude },
            ClientFault::End { .. } if is_due && !self.finished => {
                self.out_at = self.out.len();
                self.ended = true;
                if let Some(tls) = &mut self.tls {
                    tls.cut();
                }
                self.finished = true;
                kernel.client_finish(self.fd);
            }
            _ => {}
        }
        if self.left() == 0 {
            self.out.clear();
            self.out_at = 0;
        }
        if self.ends_sealed && self.is_flushed() {
            self.ends_sealed = false;
            kernel.client_finish(self.fd);
        }
        Wrote::Bytes(taken + moved)
    }

    /// Ends the sending side.
    pub(super) fn finish(&mut self, kernel: &mut Kernel) {
        self.finished = true;
        match &mut self.tls {
            Some(tls) => {
                tls.close();
                self.ends_sealed = true;
            }
            None => kernel.client_finish(self.fd),
        }
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Reads at most `max` bytes. `None`: there are none. `Some(Some(_))`: the connection has
    /// ended.
    pub(super) fn read(&mut self, kernel: &mut Kernel, max: usize) -> Option<Option<SocketGot>> {
        match kernel.client_read(self.fd, max) {
            SocketGot::Nothing => None,
            SocketGot::Bytes(bytes) => {
                match &mut self.tls {
                    Some(tls) => tls.open(&bytes, &mut self.input),
                    None => self.input.extend_from_slice(&bytes),
                }
                Some(None)
            }
            end => Some(Some(end)),
        }
    }

    /// Whether the server has closed.
    pub(super) fn is_closed(&self, kernel: &Kernel) -> bool {
        kernel.socket(self.fd).is_none_or(|socket| socket.closed.is_some())
    }
}
