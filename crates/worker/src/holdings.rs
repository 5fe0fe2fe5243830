//! The resources that one worker holds, for `bolide status`: figures only, and nothing changes.

use bolide_base::Slab;

/// How full a slab is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Slots in use.
    pub used: usize,
    /// Slots that were made: the most that were in use at once.
    pub made: usize,
    /// Slots there may be.
    pub max: u32,
}

/// What a worker does with clients that come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntakeState {
    /// They are taken.
    #[default]
    Accepting,
    /// They wait, as something that taking them needs is used up.
    Paused,
    /// None is taken any more.
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
    /// Connections over QUIC that HTTP/3 is spoken on, or will be.
    pub quic: Slots,
    /// Connections that the QUIC endpoints know, those that are only remembered included.
    pub quic_states: usize,
    /// Requests under way, with fragments and questions.
    pub exchanges: Slots,
    /// Exchanges that have outlived their answers.
    pub post_actions: Slots,
    /// Requests to origins.
    pub fetches: Slots,
    /// Connections to origins.
    pub links: Slots,
    /// Those of them that wait for a request.
    pub links_idle: usize,
    /// Fills that no client waits for.
    pub unwaited_fills: usize,
    /// Those that were ended since the start because there were too many.
    pub ended_fills: usize,
    /// Requests that wait for a place at an origin.
    pub queued: usize,
    /// Entries of the wheel, stale ones included.
    pub deadlines: usize,
    /// What it does with clients that come.
    pub intake: IntakeState,
}

impl Slots {
    /// Of this slab.
    pub(crate) const fn of<T>(slab: &Slab<T>) -> Self {
        let (used, made, max) = (slab.live(), slab.made(), slab.capacity());
        debug_assert!(used <= made && made <= max as usize, "a slab that is full refuses");
        Self { used, made, max }
    }
}
