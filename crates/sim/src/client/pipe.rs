//! What every connection of a client has, whatever it speaks: bytes on their way, and sabotage.

use super::Sabotage;
use crate::kernel::{Got, Kernel};

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
    /// The server can see that.
    finished: bool,
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
            finished: false,
        }
    }

    const fn sabotage_at(&self) -> Option<u64> {
        match self.sabotage {
            Sabotage::Leave { after, .. } | Sabotage::Stall { after } | Sabotage::End { after } => {
                Some(after)
            }
            Sabotage::None | Sabotage::Garbage => None,
        }
    }

    pub(super) const fn is_stalled(&self) -> bool {
        matches!(self.sabotage, Sabotage::Stall { after } if self.sent >= after)
    }

    pub(super) const fn is_flushed(&self) -> bool {
        self.out_at == self.out.len()
    }

    /// Bytes that are still to be sent.
    pub(super) const fn left(&self) -> usize {
        self.out.len() - self.out_at
    }

    /// Sends at most `n` bytes, which are there.
    pub(super) fn write(&mut self, kernel: &mut Kernel, mut n: usize) -> Wrote {
        if let Some(limit) = self.sabotage_at() {
            n = n.min(limit.saturating_sub(self.sent) as usize);
        }
        let rest = &self.out[self.out_at..];
        // A dead connection is found out by reading.
        let taken = kernel.client_write(self.fd, &rest[..n]).unwrap_or(rest.len());
        self.out_at += taken;
        self.sent += taken as u64;
        let is_due = self.sabotage_at().is_some_and(|limit| self.sent >= limit);
        match self.sabotage {
            Sabotage::Leave { rude, .. } if is_due => return Wrote::Leave { rude },
            Sabotage::End { .. } if is_due && !self.finished => {
                self.out_at = self.out.len();
                self.ended = true;
                self.finish(kernel);
            }
            _ => {}
        }
        if self.is_flushed() {
            self.out.clear();
            self.out_at = 0;
        }
        Wrote::Bytes(taken)
    }

    /// Tells the server that nothing more will be sent.
    pub(super) fn finish(&mut self, kernel: &mut Kernel) {
        kernel.client_finish(self.fd);
        self.finished = true;
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Reads at most `max` bytes; nothing when there are none, or how the connection ended.
    pub(super) fn read(&mut self, kernel: &mut Kernel, max: usize) -> Option<Option<Got>> {
        match kernel.client_read(self.fd, max) {
            Got::Nothing => None,
            Got::Bytes(bytes) => {
                self.input.extend_from_slice(&bytes);
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
