//! One node: the entries it has received, its position in the stream, and its own unconfirmed
//! purges.

use std::collections::HashMap;

use bolide_cache::OutboxBatch;
use bolide_cache::disk::DiskPurge;

use crate::position::{EntryId, EntryMark, StreamFacts};
use crate::record::{PurgeRecord, RecordFault};

/// LIMIT: processes whose numbers are recorded. From any other process, any number is accepted.
const LIVES_MAX: usize = 1024;

/// Why purges may have been missed, so that the node drops its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The node has no position: it is new, or was away for so long that its position was deleted.
    NoPosition,
    /// All entries of the stream are newer than the position: the node was away for too long.
    Trimmed,
    /// The stream has lost entries that this node has received.
    RolledBack,
    /// Numbers of a process are missing.
    Gap,
    /// An entry cannot be read.
    Unreadable(RecordFault),
    /// An entry is too large to be received.
    TooLarge,
}

impl Loss {
    /// Whether other nodes may have missed purges as well, without detecting it.
    #[must_use]
    pub const fn concerns_others(self) -> bool {
        matches!(self, Self::RolledBack)
    }

    /// Whether confirmed purges, own ones included, may be missing from the stream.
    #[must_use]
    pub const fn is_of_stream(self) -> bool {
        matches!(self, Self::RolledBack | Self::Trimmed)
    }

    /// The text for the log.
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

/// The kind of a received entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryOutcome {
    /// A new one, or the confirmation of a purge of this process.
    Good,
    /// An entry that was received before.
    Known,
    /// An entry of another cluster.
    Elsewhere,
    /// Purges were or may have been missed.
    Lost(Loss),
}

/// The progress of a process.
#[derive(Clone, Copy, Debug)]
struct PeerPosition {
    /// The number of its last purge.
    last: u64,
    /// Its last entry.
    at: EntryId,
}

/// Purges of this process that are not confirmed yet.
#[derive(Debug)]
struct Flight {
    purges: Vec<u8>,
    last: u64,
    sent: Sent,
}

/// The progress of an entry of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// It is to be sent.
    No,
    /// It was sent; there is no reply yet.
    Asked,
    /// It was added with this id.
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
    received: HashMap<u64, PeerPosition>,
    /// At most one: entries of a process are in the order of its purges.
    flight: Option<Flight>,
    /// The number up to which purges of this process are confirmed.
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
            received: HashMap::new(),
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

    /// The same, with the checksum.
    #[must_use]
    pub const fn mark(&self) -> Option<EntryMark> {
        self.position
    }

    /// The number up to which purges of this process are in the stream.
    #[must_use]
    pub const fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Whether purges of this process are being sent.
    #[must_use]
    pub const fn is_sending(&self) -> bool {
        self.flight.is_some()
    }

    /// A connection exists. A process that has received nothing continues at the node's `stored`
    /// position. An unconfirmed entry is sent again. Returns the position to be checked.
    pub fn attach(&mut self, stored: Option<EntryMark>) -> EntryMark {
        self.send_again();
        self.position = self.position.or(stored);
        self.position.unwrap_or_default()
    }

    /// Checks that no entry between the position and the next one is missing; `facts` are as old as
    /// the entries that were read. If one is missing, the position becomes the end of the stream.
    pub fn check(&mut self, facts: &StreamFacts) -> Result<(), Loss> {
        let loss = match self.position {
            None => Loss::NoPosition,
            // No entry was added since, though the entry itself may be trimmed.
            Some(position) if position == facts.newest => return Ok(()),
            Some(position) if position.id > facts.last => Loss::RolledBack,
            Some(_) if facts.has_position => return Ok(()),
            Some(position) if facts.first <= position.id => Loss::RolledBack,
            Some(_) => Loss::Trimmed,
        };
        self.skip_to(facts.newest);
        Err(loss)
    }

    /// Skips entries up to `newest`: the cache was dropped.
    pub fn skip_to(&mut self, newest: EntryMark) {
        self.position = Some(newest);
        self.received.clear();
        // The own entry may have been skipped; sending it twice does no harm.
        self.send_again();
    }

    /// Handles an entry, and has new purges carried out; entries are in the order of the stream.
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
        self.check_passed(id);
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

    /// Handles an entry that is too large to be read.
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
        let known = self.received.get(&life).map(|received| received.last);
        let is_gap = known.is_some_and(|known| first.sequence > known.saturating_add(1));
        let new = purges.iter().filter(|one| known.is_none_or(|known| one.sequence > known));
        new.for_each(apply);
        let last = last.sequence.max(known.unwrap_or_default());
        self.received.insert(life, PeerPosition { last, at: id });
        self.forget_some();
        if is_gap { EntryOutcome::Lost(Loss::Gap) } else { EntryOutcome::Good }
    }

    /// Removes the process that has been silent for the longest time.
    fn forget_some(&mut self) {
        if self.received.len() > LIVES_MAX
            && let Some(life) =
                self.received.iter().min_by_key(|(_, received)| received.at).map(|(k, _)| *k)
        {
            self.received.remove(&life);
        }
        debug_assert!(self.received.len() <= LIVES_MAX, "the received positions are bounded");
    }

    /// The next entry to send: the one that was lost, or a batch of `take`.
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

    /// A new entry; no two have the same bytes.
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

    /// An entry was read. If this process's own entry is not behind it, it is now known that the
    /// own entry was passed without having been read. An id that was already passed when it was
    /// assigned proves nothing: after a loss the stream may assign ids again.
    fn check_passed(&mut self, id: EntryId) {
        if let Some(Flight { sent: Sent::Added(added), .. }) = self.flight
            && added <= id
        {
            self.send_again();
        }
    }

    /// The end of the stream is reached: an added entry that was not received is lost.
    pub fn handle_end(&mut self) {
        if let Some(Flight { sent: Sent::Added(_), .. }) = self.flight {
            self.send_again();
        }
    }

    /// The server refused the entry, or it was lost; sends it again.
    pub fn send_again(&mut self) {
        if let Some(flight) = &mut self.flight {
            flight.sent = Sent::No;
        }
    }

    /// An entry without purges, so that the stream has a recent one.
    #[must_use]
    pub fn hello(&mut self) -> Vec<u8> {
        self.record(b"")
    }
}

#[cfg(test)]
mod tests;
