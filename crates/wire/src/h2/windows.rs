//! Flow control of what we receive (RFC 9113 §5.2): when consumed bytes are given back.
//!
//! Owns the credit of the connection and of each stream. INVARIANT: every received byte is credited
//! once, and no peer gets more than its window. The windows of the streams bound what a peer can
//! make us hold: the window of the connection is as large as can be, because streams that wait for
//! us would take it away from those that are read.

use super::frame::WINDOW_MAX;
use super::output::H2Output;
use super::streams::{H2Stream, Receiving};

/// The window of a connection for receiving.
#[derive(Debug)]
pub(super) struct ConnRecvWindow {
    /// Bytes that the peer may still send.
    open: u32,
    /// Consumed bytes that no WINDOW_UPDATE has returned yet.
    credit: u32,
}

impl ConnRecvWindow {
    pub(super) const fn new() -> Self {
        Self { open: WINDOW_MAX, credit: 0 }
    }

    /// Takes the bytes of a frame; nothing if the peer sent more than it may.
    pub(super) fn take(&mut self, len: u32) -> Option<()> {
        self.open = self.open.checked_sub(len)?;
        Some(())
    }

    /// Counts bytes as consumed, and sends a `WINDOW_UPDATE` once they are as many as the peer may
    /// still send, so that none are kept back from a shut window.
    pub(super) fn credit(&mut self, bytes: u32, out: &mut H2Output) {
        self.credit += bytes;
        debug_assert!(self.granted() <= WINDOW_MAX, "every received byte is credited once");
        if self.credit > 0 && self.credit >= self.open {
            let credit = std::mem::take(&mut self.credit);
            self.open += credit;
            out.window_update(0, credit);
        }
    }

    /// Whether the peer can send nothing until we consume what came.
    pub(super) const fn is_shut(&self) -> bool {
        self.open == 0
    }

    /// Whether the peer has all credit that there is, if it can send nothing without.
    pub(super) const fn is_fair(&self) -> bool {
        self.open > 0 || self.credit == 0
    }

    /// Bytes that the peer may send, now or after the next WINDOW_UPDATE.
    pub(super) const fn granted(&self) -> u32 {
        self.open + self.credit
    }
}

impl H2Stream {
    /// Counts consumed bytes, and sends a `WINDOW_UPDATE` once they exceed half of the window. A
    /// peer gets no more credit than it had. `coming` is what is left of an open DATA frame.
    pub(super) fn credit(&mut self, id: u32, bytes: u32, coming: u32, out: &mut H2Output) {
        self.recv_credit += bytes;
        let half = (self.granted(coming) / 2).max(0);
        // A peer that has ended its side needs no window, and a body that nothing reads gets none:
        // its stream is reset behind the response.
        let is_over = self.receiving == Receiving::Ended || self.discards;
        if i64::from(self.recv_credit) <= half || is_over {
            return;
        }
        let credit = std::mem::take(&mut self.recv_credit);
        self.widen(id, credit, out);
    }

    /// Raises the window of a wanted body to its full size.
    pub(super) fn open_window(&mut self, id: u32, coming: u32, out: &mut H2Output) {
        // By `content-length` the rest may fit into the window that the peer has already.
        let advertised = i64::from(self.recv_window);
        let fits = i64::try_from(self.recv_left).is_ok_and(|left| left <= advertised);
        if fits || self.receiving == Receiving::Ended {
            return;
        }
        let full = i64::from(self.recv_full);
        match u32::try_from(full - self.granted(coming)) {
            Ok(missing @ 1..) => {
                let credit = missing + std::mem::take(&mut self.recv_credit);
                self.widen(id, credit, out);
            }
            // The peer may wait for credit that nothing else would return.
            _ => self.credit(id, 0, coming, out),
        }
    }

    /// The window if all received bytes were consumed and credited.
    fn granted(&self, coming: u32) -> i64 {
        let parts = [self.recv_credit, self.outstanding, coming];
        i64::from(self.recv_window) + parts.map(i64::from).iter().sum::<i64>()
    }

    /// Grants the peer `credit` more bytes.
    fn widen(&mut self, id: u32, credit: u32, out: &mut H2Output) {
        self.recv_window = self.recv_window.saturating_add_unsigned(credit);
        out.window_update(id, credit);
    }
}
