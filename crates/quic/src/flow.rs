//! What a client may send ahead of us, and what has moved on a connection.

use quinn_proto::VarInt;

use crate::QuicSettings;

/// How much a connection has moved: counts that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    pub(crate) written: u64,
    pub(crate) sent: u64,
    pub(crate) acknowledged: u64,
}

impl Transferred {
    /// Whether the client has confirmed something since.
    #[must_use]
    pub const fn is_confirmed_since(&self, before: &Self) -> bool {
        self.acknowledged > before.acknowledged
    }

    /// Whether since `before` the client was sent only what stood in the send buffer already, and
    /// acknowledged packets. The buffer takes no more then: it may hold more than it should, as its
    /// size follows the congestion window.
    #[must_use]
    pub const fn only_drained(&self, before: &Self) -> bool {
        self.written == before.written
            && self.sent > before.sent
            && self.acknowledged > before.acknowledged
    }
}

/// What a client may send ahead of us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvWindows {
    conn: u32,
    stream: u32,
    /// The most streams that were held at once.
    held: usize,
}

impl RecvWindows {
    pub(crate) const fn new(settings: &QuicSettings) -> Self {
        Self { conn: settings.conn_window, stream: settings.stream_window, held: 0 }
    }

    /// The window of the connection while `streams` are held; nothing if it is as large already.
    ///
    /// It has room for each of them twice, because the library returns credit only when that is an
    /// eighth of the window. What they hold is bounded by their own windows.
    pub(crate) fn hold(&mut self, streams: usize) -> Option<VarInt> {
        if streams <= self.held {
            return None;
        }
        self.held = streams;
        let held = u64::from(self.stream).saturating_mul(2 * streams as u64);
        Some(VarInt::from_u64(held.saturating_add(self.conn.into())).unwrap_or(VarInt::MAX))
    }
}
