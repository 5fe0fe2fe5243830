//! One node: what it has heard, where it stands in the stream, and what of its own is on the way.

use std::collections::HashMap;

use bolide_cache::OutboxBatch;
use bolide_cache::disk::DiskPurge;

use crate::position::{EntryId, EntryMark, StreamFacts};
use crate::record::{PurgeRecord, RecordFault};

/// LIMIT: processes whose numbers are remembered. Of one that was forgotten, any number is taken.
const LIVES_MAX: usize = 1024;

/// Why purges may have been missed, so that all that a node keeps is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The node has no position: it is new here, or was away for so long that it was forgotten.
    NoPosition,
    /// The stream keeps nothing as old as the position: the node was away for too long.
    Trimmed,
    /// The stream has lost entries that this node has heard.
    RolledBack,
    /// Numbers of a process are missing.
    Gap,
    /// An entry cannot be read.
    Unreadable(RecordFault),
    /// An entry is too large to be received.
    TooLarge,
}

impl Loss {
    /// Whether others may have missed purges as well, without knowing.
    #[must_use]
    pub const fn concerns_others(self) -> bool {
        matches!(self, Self::RolledBack)
    }

    /// Whether purges that had come back, own ones included, may not be in the stream any more.
    #[must_use]
    pub const fn is_of_stream(self) -> bool {
        matches!(self, Self::RolledBack | Self::Trimmed)
    }

    /// Words for a log.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoPosition => "it is not known which purges this node has",
            Self::Trimmed => "this node was away for longer than purges are kept",
            Self::RolledBack => "purges that this node has are missing from the stream",
            Self::Gap => "purges of another node are missing from the stream",
            Self::Unreadable(RecordFault::Foreign) => "an entry of the stream is foreign",
            Self::Unreadable(RecordFault::Damaged) => "an entry of the stream is damaged",
            Self::TooLarge => "an entry of the stream is too large",
        }
    }
}

/// What an entry was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryOutcome {
    /// News, or a purge of this process that has come back.
    Good,
    /// An entry that was received before.
    Known,
    /// An entry of another cluster.
    Elsewhere,
    /// Purges were or may have been missed.
    Lost(Loss),
}

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
struct PeerPosition {
    /// The number of its last purge.
    last: u64,
    /// Its last entry.
    at: EntryId,
}

/// Purges of this process that have not come back yet.
#[derive(Debug)]
struct Flight {
    purges: Vec<u8>,
    last: u64,
    sent: Sent,
}

/// How far an entry of this process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// It is to be sent.
    No,
    /// The server has not answered yet.
    Asked,
    /// It has this id.
    Added(EntryId),
}

/// One node of a cluster.
#[derive(Debug)]
pub struct ClusterMachine {
    cluster: Box<[u8]>,
    node: Box<[u8]>,
    life: u64,
    /// Entries of this process so far.
    entries: u64,
    position: Option<EntryMark>,
    heard: HashMap<u64, PeerPosition>,
    /// One at a time: entries of a process have the order of its purges.
    flight: Option<Flight>,
    /// The number up to which purges of this process have come back.
    confirmed: u64,
}

impl ClusterMachine {
    /// A node of a cluster, in a process that `life` names.
    #[must_use]
    pub fn new(cluster: &[u8], node: &[u8], life: u64) -> Self {
        Self {
            cluster: cluster.into(),
            node: node.into(),
            life,
            entries: 0,
            position: None,
            heard: HashMap::new(),
            flight: None,
            confirmed: 0,
        }
    }

    /// The process.
    #[must_use]
    pub const fn life(&self) -> u64 {
        self.life
    }

    /// The last entry that was received.
    #[must_use]
    pub fn position(&self) -> Option<EntryId> {
        self.position.map(|position| position.id)
    }

    /// The same, as it is known again.
    #[must_use]
    pub const fn mark(&self) -> Option<EntryMark> {
        self.position
    }

    /// The number up to which purges of this process are in the stream.
    #[must_use]
    pub const fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Whether purges of this process are on the way.
    #[must_use]
    pub const fn is_sending(&self) -> bool {
        self.flight.is_some()
    }

    /// There is a connection. A process that has not heard anything goes on where the node was,
    /// which `stored` says. What was on the way is sent again. Returns the position to be checked.
    pub fn attach(&mut self, stored: Option<EntryMark>) -> EntryMark {
        self.send_again();
        self.position = self.position.or(stored);
        self.position.unwrap_or_default()
    }

    /// Whether nothing is missing between the position and what comes next, by facts as old as the
    /// entries that were read. If something is, the position is the end of the stream.
    pub fn check(&mut self, facts: &StreamFacts) -> Result<(), Loss> {
        let loss = match self.position {
            None => Loss::NoPosition,
            // Nothing was given since, though the entry itself may be gone.
            Some(position) if position == facts.newest => return Ok(()),
            Some(position) if position.id > facts.last => Loss::RolledBack,
            Some(_) if facts.has_position => return Ok(()),
            Some(position) if facts.first <= position.id => Loss::RolledBack,
            Some(_) => Loss::Trimmed,
        };
        self.skip_to(facts.newest);
        Err(loss)
    }

    /// What comes up to `newest` is not heard: all was dropped.
    pub fn skip_to(&mut self, newest: EntryMark) {
        self.position = Some(newest);
        self.heard.clear();
        // It may have been skipped; a second time it does no harm.
        self.send_again();
    }

    /// Takes an entry, and has purges carried out that are new; entries come in the order of the
    /// stream.
    pub fn receive<'a>(
        &mut self,
        id: EntryId,
        bytes: Option<&'a [u8]>,
        apply: impl FnMut(&DiskPurge<'a>),
    ) -> EntryOutcome {
        if self.position.is_some_and(|position| id <= position.id) {
            return EntryOutcome::Known;
        }
        self.position = Some(EntryMark::of(id, bytes));
        let received = self.receive_new(id, bytes, apply);
        self.note_passed(id);
        received
    }

    fn receive_new<'a>(
        &mut self,
        id: EntryId,
        bytes: Option<&'a [u8]>,
        apply: impl FnMut(&DiskPurge<'a>),
    ) -> EntryOutcome {
        let record = match bytes.map_or(Err(RecordFault::Foreign), PurgeRecord::read) {
            Ok(record) if *record.cluster != *self.cluster => return EntryOutcome::Elsewhere,
            Ok(record) => record,
            Err(fault) => return EntryOutcome::Lost(Loss::Unreadable(fault)),
        };
        match record.purges() {
            Some(purges) => self.receive_purges(id, record.life, &purges, apply),
            None => EntryOutcome::Lost(Loss::Unreadable(RecordFault::Damaged)),
        }
    }

    /// Takes an entry that is too large to be read.
    pub fn receive_too_large(&mut self, id: EntryId) -> EntryOutcome {
        match self.receive(id, None, |_| {}) {
            EntryOutcome::Lost(_) => EntryOutcome::Lost(Loss::TooLarge),
            known => known,
        }
    }

    fn receive_purges<'a>(
        &mut self,
        id: EntryId,
        life: u64,
        purges: &[DiskPurge<'a>],
        apply: impl FnMut(&DiskPurge<'a>),
    ) -> EntryOutcome {
        let [first, .., last] = match purges {
            [] => return EntryOutcome::Good,
            [one] => [one, one],
            [first, .., last] => [first, last],
        };
        if life == self.life {
            self.confirmed = self.confirmed.max(last.sequence);
            self.flight.take_if(|flight| flight.last <= last.sequence);
            return EntryOutcome::Good;
        }
        let known = self.heard.get(&life).map(|heard| heard.last);
        let is_gap = known.is_some_and(|known| first.sequence > known.saturating_add(1));
        let new = purges.iter().filter(|one| known.is_none_or(|known| one.sequence > known));
        new.for_each(apply);
        let last = last.sequence.max(known.unwrap_or_default());
        self.heard.insert(life, PeerPosition { last, at: id });
        self.forget_some();
        if is_gap { EntryOutcome::Lost(Loss::Gap) } else { EntryOutcome::Good }
    }

    /// Forgets the process that was silent for the longest time.
    fn forget_some(&mut self) {
        if self.heard.len() > LIVES_MAX
            && let Some(life) = self.heard.iter().min_by_key(|(_, heard)| heard.at).map(|(k, _)| *k)
        {
            self.heard.remove(&life);
        }
        debug_assert!(self.heard.len() <= LIVES_MAX, "what is remembered is bounded");
    }

    /// The entry to be sent now, if there is one: the one that did not arrive, or what `take` has.
    pub fn poll_record(&mut self, take: impl FnOnce() -> Option<OutboxBatch>) -> Option<Vec<u8>> {
        if self.flight.is_none() {
            let OutboxBatch { last, bytes: purges, .. } = take()?;
            self.flight = Some(Flight { purges, last, sent: Sent::No });
        }
        let mut flight = self.flight.take_if(|flight| flight.sent == Sent::No)?;
        flight.sent = Sent::Asked;
        let record = self.record(&flight.purges);
        self.flight = Some(flight);
        Some(record)
    }

    /// An entry that no other one is the same as.
    fn record(&mut self, purges: &[u8]) -> Vec<u8> {
        self.entries += 1;
        let (cluster, node) = (&*self.cluster, &*self.node);
        let (life, number) = (self.life, self.entries);
        let mut record = Vec::new();
        PurgeRecord { cluster, node, life, number, purges }.write(&mut record);
        record
    }

    /// The server has added the entry.
    pub fn handle_added(&mut self, id: EntryId) {
        if let Some(flight) = self.flight.as_mut().filter(|flight| flight.sent == Sent::Asked) {
            flight.sent = Sent::Added(id);
        }
    }

    /// An entry was read. Of this process's entry, if it is not behind that one, it is known now
    /// that it was passed without having been read. An id that was not behind when it was given
    /// says nothing of that: the stream may have lost entries, and give their ids again.
    fn note_passed(&mut self, id: EntryId) {
        if let Some(Flight { sent: Sent::Added(added), .. }) = self.flight
            && added <= id
        {
            self.send_again();
        }
    }

    /// There is nothing behind the position: an entry that was added and did not come is lost.
    pub fn handle_end(&mut self) {
        if let Some(Flight { sent: Sent::Added(_), .. }) = self.flight {
            self.send_again();
        }
    }

    /// The server has refused the entry, or it was lost; it is to be sent again.
    pub fn send_again(&mut self) {
        if let Some(flight) = &mut self.flight {
            flight.sent = Sent::No;
        }
    }

    /// An entry without purges, so that the stream has one that is young.
    #[must_use]
    pub fn hello(&mut self) -> Vec<u8> {
        self.record(b"")
    }
}

#[cfg(test)]
mod tests;
