//! Which stream may write next: RFC 9218 urgencies, and turns within one urgency.
//!
//! Owns the order of streams that could write now. It knows no windows and no bytes: a stream that
//! cannot write is taken out by its owner and put back when it can.
//!
//! ```text
//!            insert                    remove (blocked, pending, done)
//!   absent ─────────► waiting ──first──► writing ──────────────────────► absent
//!                        ▲                  │
//!                        └──── rotate ──────┘   incremental streams only
//! ```
//!
//! The invariant easiest to break: entries are sorted by (urgency, order, round), and a stream has
//! at most one entry.

use std::collections::VecDeque;

/// What a client asked for one response (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 (first) to 7 (last).
    pub urgency: u8,
    /// Whether the response is of use in pieces, so that it may share bandwidth with its equals.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// The parameters in a `Priority` field value or a `PRIORITY_UPDATE` payload.
    ///
    /// Unknown parameters and values of the wrong type or range are ignored (RFC 9218 §4); what
    /// is no dictionary at all gives the defaults for what was not read yet.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in text.split(|&byte| byte == b',') {
            let member = member.trim_ascii();
            // Parameters of a member carry nothing that we know.
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
    /// The stream's id at first; that of the stream behind which it was rotated later.
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

/// The streams that could write now, first come first.
#[derive(Debug, Default)]
pub struct Sched {
    entries: VecDeque<Entry>,
}

impl Sched {
    /// Nobody waits.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: VecDeque::new() }
    }

    /// Lets the stream in `slot` wait for its turn; `order` is its id. It must not wait already.
    #[inline]
    pub fn insert(&mut self, slot: u32, order: u64, priority: Priority) {
        debug_assert!(self.position(slot).is_none(), "a stream waits once");
        self.place(Entry { order, round: 0, slot, priority });
    }

    /// The slot whose turn it is.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.entries.front().map(|entry| entry.slot)
    }

    /// Takes a stream out; `false` if it did not wait.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> bool {
        match self.position(slot) {
            Some(0) => self.entries.pop_front().is_some(),
            Some(at) => self.entries.remove(at).is_some(),
            None => false,
        }
    }

    /// Sends an incremental stream that has written behind its waiting equals.
    ///
    /// A stream that is not incremental keeps its place (RFC 9218 §10), and streams that come
    /// later stand behind both, so that nobody of one urgency starves.
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
    }

    /// Gives a waiting stream another priority; no effect on one that does not wait.
    pub fn reprioritise(&mut self, slot: u32, priority: Priority) {
        let Some(at) = self.position(slot) else { return };
        if let Some(mut entry) = self.entries.remove(at) {
            entry.priority = priority;
            self.place(entry);
        }
    }

    /// How many streams wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nobody waits.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Gives memory back while nobody waits; for idle moments.
    pub fn shrink(&mut self) {
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        }
    }

    fn position(&self, slot: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.slot == slot)
    }

    /// Ids mostly grow, so the place is mostly the end.
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
    }
}

#[cfg(test)]
mod tests;
