//! The faults of the simulated network for datagrams.

use crate::chance::Chance;
use crate::scenario::MILLI;

/// How the network treats datagrams; once in so many times, 0 for never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// It is lost.
    pub loss_in: u64,
    /// It comes twice.
    pub twice_in: u64,
    /// A bit of it flips.
    pub flip_in: u64,
    /// Its end is cut off.
    pub cut_in: u64,
    /// It takes a long way round.
    pub detour_in: u64,
    /// It is queued for another worker than the one that it is for.
    pub stray_in: u64,
    /// The server's socket takes no more of a batch.
    pub refuse_in: u64,
    /// The server's socket has nothing though it was reported.
    pub empty_in: u64,
    /// Some host gets another address, per round.
    pub rebind_in: u64,
    /// The path carries nothing for a while, per round.
    pub gap_in: u64,
    /// Nanoseconds of the way, at least and at most.
    pub way: (u64, u64),
    /// Bytes of the largest datagram that passes.
    pub mtu: usize,
    /// Datagrams that a socket of the server holds.
    pub queue_max: usize,
    /// Whether the kernel hands equal datagrams of one sender over together.
    pub merges: bool,
    /// Whether it refuses to cut trains, so that their datagrams leave one by one.
    pub refuses_trains: bool,
}

impl Weather {
    /// A quiet network.
    #[must_use]
    pub const fn calm() -> Self {
        Self {
            loss_in: 0,
            twice_in: 0,
            flip_in: 0,
            cut_in: 0,
            detour_in: 0,
            stray_in: 0,
            refuse_in: 0,
            empty_in: 0,
            rebind_in: 0,
            gap_in: 0,
            way: (MILLI / 10, MILLI),
            mtu: 9000,
            queue_max: 4096,
            merges: true,
            refuses_trains: false,
        }
    }

    /// Without faults that cost datagrams: only stray workers, delays and address changes.
    #[must_use]
    pub fn changeable(chance: &mut Chance) -> Self {
        Self {
            twice_in: [0, 30][chance.index(2)],
            stray_in: [0, 2, 20][chance.index(3)],
            empty_in: [0, 5][chance.index(2)],
            way: [(MILLI / 10, MILLI), (5 * MILLI, 5 * MILLI + 1), (40 * MILLI, 60 * MILLI)]
                [chance.index(3)],
            mtu: [1200, 1280, 1452, 9000][chance.index(4)],
            merges: chance.one_in(2),
            ..Self::calm()
        }
    }

    /// Bad.
    #[must_use]
    pub fn rough(chance: &mut Chance) -> Self {
        Self {
            loss_in: [0, 10, 50, 500][chance.index(4)],
            twice_in: [0, 10, 100][chance.index(3)],
            flip_in: [0, 15, 100][chance.index(3)],
            cut_in: [0, 20, 100][chance.index(3)],
            detour_in: [0, 5, 50][chance.index(3)],
            refuse_in: [0, 20, 200][chance.index(3)],
            rebind_in: [0, 300, 3000][chance.index(3)],
            gap_in: [0, 1000][chance.index(2)],
            queue_max: [4, 64, 4096][chance.index(3)],
            ..Self::changeable(chance)
        }
    }

    /// Whether datagrams may fail to arrive.
    #[must_use]
    pub const fn loses(&self) -> bool {
        self.loss_in + self.flip_in + self.cut_in + self.refuse_in + self.gap_in > 0
            || self.rebind_in > 0
            || self.queue_max < 4096
    }
}
