//! The resources that one worker holds, for `bolide status`: figures only, and nothing changes.

use std::sync::mpsc::SyncSender;

use bolide_base::Slab;
use bolide_io::Io;

use crate::worker::Worker;

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
    fn of<T>(slab: &Slab<T>) -> Self {
        Self { used: slab.live(), made: slab.made(), max: slab.capacity() }
    }
}

impl<I: Io> Worker<I> {
    /// Sends its figures; the receiver may be gone.
    pub(crate) fn tell_holdings(&mut self, teller: &SyncSender<Holdings>) {
        let quic_states = self.udp.iter_mut().map(|udp| udp.endpoint.ids().count()).sum();
        let origins = &self.origins;
        let _ = teller.try_send(Holdings {
            worker: self.env.number,
            generation: self.env.generation.number,
            tcp: Slots::of(&self.conns),
            quic: Slots::of(&self.quics),
            quic_states,
            exchanges: Slots::of(&self.exchanges.live),
            post_actions: Slots::of(&self.post_actions),
            fetches: Slots::of(&origins.fetches),
            links: Slots::of(&origins.links),
            links_idle: origins.pools.idle(),
            unwaited_fills: origins.unwaited_fills(),
            ended_fills: origins.unwaited.ended(),
            queued: origins.pools.queued(),
            deadlines: self.env.wheel.len(),
            intake: match (self.env.draining, self.env.listeners.rests()) {
                (true, _) => IntakeState::Draining,
                (false, true) => IntakeState::Paused,
                (false, false) => IntakeState::Accepting,
            },
        });
    }
}
