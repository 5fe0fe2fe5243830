//! Chooses the stream that writes next: RFC 9218 urgencies, and round robin within one urgency.
//!
//! Owns the order of streams that could write now. It knows no windows and no bytes: the owner
//! removes a stream that cannot write and inserts it again when it can.
//!
//! ```text
//!            insert                    remove (blocked, pending, done)
//!   absent ─────────► waiting ──first──► writing ──────────────────────► absent
//!                        ▲                  │
//!                        └──── rotate ──────┘   incremental streams only
//! ```
//!
//! INVARIANT: entries are sorted by (urgency, order, round), and a stream has at most one entry.

use std::collections::VecDeque;

/// The priority that a client requested for a response (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 (first) to 7 (last).
    pub urgency: u8,
    /// Whether the client can use the response in pieces, so that it may share bandwidth with other
    /// responses of the same urgency.
    pub incremental: bool,
}

impl Default for Priority {
    /// The values of parameters that a client leaves out (RFC 9218 §4).
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// The priority of a response for which the client sent no signal at all. RFC 9218 §10 leaves
    /// its order to the server. Many clients know no priorities, and some never end a response:
    /// the others on their connection must not wait for it.
    pub const UNSIGNALLED: Self = Self { urgency: 3, incremental: true };

    /// Parses a `Priority` field value or a `PRIORITY_UPDATE` payload.
    ///
    /// It ignores unknown parameters and values of the wrong type or range (RFC 9218 §4). Text that
    /// is no dictionary leaves the defaults.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in text.split(|&byte| byte == b',') {
            let member = member.trim_ascii();
            // No member has parameters that we know.
            let bare = member.split(|&byte| byte == b';').next().unwrap_or(member);
            match bare.trim_ascii_end() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The stream id at first; after a rotation that of the stream in front of it.
    order: u64,
    round: u32,
    slot: u32,
    priority: Priority,
}

impl Entry {
    const fn is_before(&self, other: &Self) -> bool {
        let (mine, its) = (self.priority.urgency, other.priority.urgency);
        if mine != its {
            return mine < its;
        }
        self.order < other.order || (self.order == other.order && self.round < other.round)
    }
}

/// The streams that could write now, the next one first.
#[derive(Debug, Default)]
pub struct Sched {
    entries: VecDeque<Entry>,
}

impl Sched {
    /// An empty schedule.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: VecDeque::new() }
    }

    /// Inserts the stream in `slot`; `order` is its id. The stream must not be waiting already.
    #[inline]
    pub fn insert(&mut self, slot: u32, order: u64, priority: Priority) {
        debug_assert!(self.position(slot).is_none(), "a stream waits once");
        self.place(Entry { order, round: 0, slot, priority });
    }

    /// The slot of the stream that writes next.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.entries.front().map(|entry| entry.slot)
    }

    /// Removes a stream. Returns `false` if it was not waiting.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> bool {
        match self.position(slot) {
            Some(0) => self.entries.pop_front().is_some(),
            Some(at) => self.entries.remove(at).is_some(),
            None => false,
        }
    }

    /// Moves an incremental stream that has written behind the waiting streams of its urgency.
    ///
    /// A stream that is not incremental keeps its place (RFC 9218 §10). Streams that come later
    /// stand behind both, so that no stream starves among those of its urgency.
    pub fn rotate(&mut self, slot: u32) {
        let Some(at) = self.position(slot) else { return };
        let mut entry = self.entries[at];
        let urgency = entry.priority.urgency;
        let behind = self.entries.partition_point(|other| other.priority.urgency <= urgency);
        if !entry.priority.incremental || behind == at + 1 {
            return;
        }
        let last = self.entries[behind - 1];
        entry.order = last.order;
        entry.round = last.round.saturating_add(1);
        self.entries.insert(behind, entry);
        self.entries.remove(at);
        debug_assert!(self.is_sorted(), "entries are sorted by (urgency, order, round)");
    }

    /// Gives a waiting stream another priority. No effect on a stream that does not wait.
    pub fn reprioritise(&mut self, slot: u32, priority: Priority) {
        let Some(at) = self.position(slot) else { return };
        if let Some(mut entry) = self.entries.remove(at) {
            entry.priority = priority;
            self.place(entry);
        }
    }

    /// The number of waiting streams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no stream waits.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Frees the memory while no stream waits; for idle connections.
    pub fn shrink(&mut self) {
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        }
    }

    fn is_sorted(&self) -> bool {
        self.entries.iter().is_sorted_by(|one, next| !next.is_before(one))
    }

    fn position(&self, slot: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.slot == slot)
    }

    /// Searches from the end, because ids mostly grow.
    #[inline]
    fn place(&mut self, entry: Entry) {
        let mut at = self.entries.len();
        while at > 0 && entry.is_before(&self.entries[at - 1]) {
            at -= 1;
        }
        if at == self.entries.len() {
            self.entries.push_back(entry);
        } else {
            self.entries.insert(at, entry);
        }
        debug_assert!(self.is_sorted(), "entries are sorted by (urgency, order, round)");
    }
}

#[cfg(test)]
mod tests;
