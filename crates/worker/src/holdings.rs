//! The resources that one worker holds, for `bolide status`; read-only.

use bolide_base::Slab;

/// The use of a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Slots in use.
    pub used: usize,
    /// Slots allocated: the most that were in use at once.
    pub made: usize,
    /// The limit of slots.
    pub max: u32,
}

/// Whether a worker accepts connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntakeState {
    /// It accepts.
    #[default]
    Accepting,
    /// It pauses, because a resource is exhausted.
    Paused,
    /// It is shutting down.
    Draining,
}

/// What one worker holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// The worker's number.
    pub worker: u16,
    /// The number of its configuration.
    pub generation: u64,
    /// Connections over TCP and unix sockets.
    pub tcp: Slots,
    /// QUIC connections with HTTP/3, or before the end of their handshake.
    pub quic: Slots,
    /// Connections in the QUIC endpoints, including closing ones.
    pub quic_states: usize,
    /// Requests in progress, with subrequests.
    pub exchanges: Slots,
    /// Exchanges that have outlived their responses.
    pub post_actions: Slots,
    /// Fetches.
    pub fetches: Slots,
    /// Upstream connections.
    pub links: Slots,
    /// Idle upstream connections.
    pub links_idle: usize,
    /// Fills that no client waits for.
    pub unwaited_fills: usize,
    /// Those that were ended since the start because there were too many.
    pub ended_fills: usize,
    /// Requests that wait for a place at an upstream.
    pub queued: usize,
    /// Entries of the deadline queue, including stale ones.
    pub deadlines: usize,
    /// Whether it accepts connections.
    pub intake: IntakeState,
}

impl Slots {
    /// The use of this slab.
    pub(crate) const fn of<T>(slab: &Slab<T>) -> Self {
        let (used, made, max) = (slab.live(), slab.made(), slab.capacity());
        debug_assert!(used <= made && made <= max as usize, "a slab that is full refuses");
        Self { used, made, max }
    }
}
