//! The parts that every connection of a client has: bytes in transit, and sabotage.

use std::sync::atomic::Ordering;

use super::Sabotage;
use super::secure::TlsStream;
use crate::ask::SimAsk;
use crate::kernel::{Kernel, SocketGot};

/// One connection, as bytes.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) fd: i32,
    pub(super) port: u16,
    /// What is to be sent, and how much of it was.
    pub(super) out: Vec<u8>,
    pub(super) out_at: usize,
    /// Bytes sent in all.
    pub(super) sent: u64,
    pub(super) input: Vec<u8>,
    pub(super) sabotage: Sabotage,
    /// We will send no more requests.
    pub(super) ended: bool,
    /// What seals the bytes, if anything does.
    pub(super) tls: Option<Box<TlsStream>>,
    /// What the server has to know of the client.
    pub(super) told: String,
    /// The server must answer nothing but errors.
    pub(super) is_barred: bool,
    /// The server can see that, or will when all is sent.
    finished: bool,
    /// The end is to follow what is sealed.
    ends_sealed: bool,
}

/// What came of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// So many bytes.
    Bytes(usize),
    /// The time has come to leave.
    Leave { rude: bool },
}

impl Pipe {
    pub(super) const fn new(fd: i32, port: u16, sabotage: Sabotage) -> Self {
        Self {
            fd,
            port,
            out: Vec::new(),
            out_at: 0,
            sent: 0,
            input: Vec::new(),
            sabotage,
            ended: false,
            tls: None,
            told: String::new(),
            is_barred: false,
            finished: false,
            ends_sealed: false,
        }
    }

    const fn sabotage_at(&self) -> Option<u64> {
        match self.sabotage {
            Sabotage::Leave { after, .. } | Sabotage::Stall { after } | Sabotage::End { after } => {
                Some(after)
            }
            Sabotage::None | Sabotage::Garbage | Sabotage::Preface | Sabotage::Bent => None,
        }
    }

    pub(super) fn is_stalled(&self) -> bool {
        matches!(self.sabotage, Sabotage::Stall { after } if self.left_here() >= after)
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.left() == 0 && self.tls.as_ref().is_none_or(|tls| tls.is_flushed())
    }

    /// Bytes that have left, as the network counts them.
    fn left_here(&self) -> u64 {
        self.tls.as_ref().map_or(self.sent, |tls| tls.sent)
    }

    /// Whether the server had no certificate for us, and the request may be made again.
    pub(super) fn is_refused(&self, kernel: &Kernel) -> bool {
        let refused = self.tls.as_ref().is_some_and(|tls| tls.is_refused());
        refused && kernel.missing_certificates.load(Ordering::Relaxed) > 0
    }

    /// Has a request know what the server has to know of its client.
    pub(super) fn mark(&self, ask: &mut SimAsk) {
        ask.told.clone_from(&self.told);
        ask.is_barred = self.is_barred;
    }

    /// Bytes that are still to be sent.
    pub(super) const fn left(&self) -> usize {
        self.out.len() - self.out_at
    }

    /// Sends at most `n` bytes, which are there.
    pub(super) fn write(&mut self, kernel: &mut Kernel, mut n: usize) -> Wrote {
        let limit = self.sabotage_at();
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
            // A dead connection is found out by reading.
            None => kernel.client_write(self.fd, &rest[..n]).unwrap_or(rest.len()),
        };
        self.out_at += taken;
        self.sent += taken as u64;
        let is_due = limit.is_some_and(|limit| self.left_here() >= limit);
        match self.sabotage {
            Sabotage::Leave { rude, .. } if is_due => return Wrote::Leave { rude },
            Sabotage::End { .. } if is_due && !self.finished => {
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

    /// Tells the server that nothing more will be sent.
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

    /// Reads at most `max` bytes; nothing when there are none, or how the connection ended.
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

    /// Whether the server has hung up.
    pub(super) fn is_closed(&self, kernel: &Kernel) -> bool {
        kernel.socket(self.fd).is_none_or(|socket| socket.closed.is_some())
    }
}
