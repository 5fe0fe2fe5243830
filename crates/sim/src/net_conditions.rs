//! The conditions of the simulated UDP network: latency, limits, and rates of faults.

use crate::chance::Chance;
use crate::time::MILLI;

/// The conditions of a network. A field `…_in` is a rate: once in so many times, 0 for never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetConditions {
    /// A datagram is lost.
    pub loss_in: u64,
    /// A datagram is duplicated.
    pub duplicate_in: u64,
    /// A bit of a datagram flips.
    pub bit_flip_in: u64,
    /// A datagram is truncated.
    pub truncate_in: u64,
    /// A datagram is delayed, so that others overtake it.
    pub reorder_in: u64,
    /// A datagram is queued for another worker than its own.
    pub misroute_in: u64,
    /// The server's socket accepts only a part of a batch.
    pub send_full_in: u64,
    /// The server's socket is readable, but has no datagram.
    pub spurious_read_in: u64,
    /// A host gets another address, per round.
    pub rebind_in: u64,
    /// The network is down for a while, per round.
    pub outage_in: u64,
    /// The least and the greatest latency in nanoseconds.
    pub latency: (u64, u64),
    /// Path MTU in bytes.
    pub mtu: usize,
    /// Queued datagrams per socket of the server.
    pub queue_max: usize,
    /// Whether the kernel merges datagrams (GRO).
    pub merges_batches: bool,
    /// Whether the kernel refuses GSO, so that datagrams are sent one by one.
    pub refuses_gso: bool,
}

impl NetConditions {
    /// No faults.
    #[must_use]
    pub const fn ideal() -> Self {
        Self {
            loss_in: 0,
            duplicate_in: 0,
            bit_flip_in: 0,
            truncate_in: 0,
            reorder_in: 0,
            misroute_in: 0,
            send_full_in: 0,
            spurious_read_in: 0,
            rebind_in: 0,
            outage_in: 0,
            latency: (MILLI / 10, MILLI),
            mtu: 9000,
            queue_max: 4096,
            merges_batches: true,
            refuses_gso: false,
        }
    }

    /// Only faults without loss: wrong workers, delays and duplicates.
    #[must_use]
    pub fn lossless(chance: &mut Chance) -> Self {
        Self {
            duplicate_in: [0, 30][chance.index(2)],
            misroute_in: [0, 2, 20][chance.index(3)],
            spurious_read_in: [0, 5][chance.index(2)],
            latency: [(MILLI / 10, MILLI), (5 * MILLI, 5 * MILLI + 1), (40 * MILLI, 60 * MILLI)]
                [chance.index(3)],
            mtu: [1200, 1280, 1452, 9000][chance.index(4)],
            merges_batches: chance.one_in(2),
            ..Self::ideal()
        }
    }

    /// All faults.
    #[must_use]
    pub fn lossy(chance: &mut Chance) -> Self {
        Self {
            loss_in: [0, 10, 50, 500][chance.index(4)],
            duplicate_in: [0, 10, 100][chance.index(3)],
            bit_flip_in: [0, 15, 100][chance.index(3)],
            truncate_in: [0, 20, 100][chance.index(3)],
            reorder_in: [0, 5, 50][chance.index(3)],
            send_full_in: [0, 20, 200][chance.index(3)],
            rebind_in: [0, 300, 3000][chance.index(3)],
            outage_in: [0, 1000][chance.index(2)],
            queue_max: [4, 64, 4096][chance.index(3)],
            ..Self::lossless(chance)
        }
    }

    /// Whether datagrams may be lost.
    #[must_use]
    pub const fn may_lose(&self) -> bool {
        self.loss_in + self.bit_flip_in + self.truncate_in + self.send_full_in + self.outage_in > 0
            || self.rebind_in > 0
            || self.queue_max < 4096
    }
}
