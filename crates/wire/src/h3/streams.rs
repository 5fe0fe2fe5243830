//! The request streams of one connection: their storage and state.
//!
//! Owns slots that are found by QUIC stream id or by [`StreamId`]. A stale [`StreamId`] finds
//! nothing. The caller enforces the limit on the number of streams.
//!
//! ```text
//!           first bytes            HEADERS             FIN, stopped, reset
//!   absent ────────────► Head ───────────────► Body ─────────────────────► Ended
//!                         │ ▲                   │ ▲
//!              (missing insertions)          (trailers)
//!                         ▼ │                   ▼ │
//!                       Blocked              Trailed      Ignored: read and dropped
//! ```
//!
//! INVARIANT: a stream whose request was reported and whose owner is not bound yet outlives its
//! QUIC stream, because the owner has to get its `Reset`.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;

use crate::conn::UNBOUND;
use crate::sched::Priority;
use crate::{Awaiting, StreamId, StreamOwner, WireRefusal};

/// The state of the peer's side of a request stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3StreamPhase {
    /// No field section was decoded yet.
    Head,
    /// A field section waits for insertions.
    Blocked,
    /// The request was reported; the body follows.
    Body,
    /// The trailers came; only unknown frames may follow.
    Trailed,
    /// The peer's side is closed.
    Ended,
    /// Received bytes are dropped.
    Ignored,
}

/// The state of the frame parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3Frame {
    /// At a frame header, or within one: its beginning is in `partial`.
    Header,
    /// In DATA with this many bytes to come.
    Data(u64),
    /// In HEADERS of this length; its beginning is in `partial`.
    Section(usize),
    /// In an unknown frame with this many bytes to come.
    Skip(u64),
}

/// A field section that waits for insertions, and the bytes behind it.
#[derive(Debug)]
pub(super) struct HeldH3Head {
    pub(super) required: u64,
    pub(super) section: Bytes,
    /// The phase in which the section arrived.
    pub(super) phase: H3StreamPhase,
    pub(super) rest: Vec<u8>,
    pub(super) fin: bool,
}

/// Body bytes that came before `bind`.
#[derive(Debug, Default)]
pub(super) struct Unread {
    pub(super) chunks: Vec<Bytes>,
    pub(super) is_ended: bool,
    /// The body does not have the length that its head declares.
    pub(super) refusal: Option<WireRefusal>,
}

/// The receiving side of a stream.
#[derive(Debug)]
pub(super) struct Recv {
    pub(super) phase: H3StreamPhase,
    pub(super) frame: H3Frame,
    pub(super) partial: Vec<u8>,
    pub(super) held: Option<Box<HeldH3Head>>,
    pub(super) unread: Option<Box<Unread>>,
    /// The value of `content-length`.
    pub(super) length: Option<u64>,
    /// Body bytes received.
    pub(super) received: u64,
    /// Body bytes reported and not consumed.
    pub(super) window: usize,
    /// Whether body and end are reported.
    pub(super) wants_body: bool,
    pub(super) is_early: bool,
}

/// The framing of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3Body {
    /// Nothing left to pull.
    Done,
    /// This many bytes; their DATA frame header was sent with the head.
    Exact(u64),
    /// One DATA frame for each pull, until the source ends.
    Unknown,
}

/// The sending side of a stream.
#[derive(Debug)]
pub(super) struct Send {
    /// The head; it is sent before everything else.
    pub(super) head: Bytes,
    /// Bytes that QUIC did not accept yet; they are sent before the next pull.
    pub(super) rest: VecDeque<Bytes>,
    pub(super) body: H3Body,
    /// Whether each pull becomes a DATA frame.
    pub(super) is_framed: bool,
    pub(super) body_bytes: u64,
    /// Bytes of heads.
    pub(super) head_bytes: u64,
    /// Whether the final response head was given.
    pub(super) is_answered: bool,
    /// Whether trailer fields follow the body.
    pub(super) is_trailed: bool,
    /// Whether the stream is in the scheduler.
    pub(super) is_queued: bool,
    /// Whether the stream waits for `handle_writable`.
    pub(super) is_blocked: bool,
    /// How often that came; it wraps.
    pub(super) turns: u16,
    /// Whether the body waits for `body_ready`.
    pub(super) is_pending: bool,
    /// Whether the response has a pace, which its head keeps to.
    pub(super) is_paced: bool,
    /// Whether its pace holds the head: it waits for `body_ready`.
    pub(super) is_held: bool,
}

impl Send {
    /// Whether QUIC has every byte of the response.
    pub(super) fn is_complete(&self) -> bool {
        self.is_answered
            && self.body == H3Body::Done
            && self.head.is_empty()
            && self.rest.is_empty()
            && !self.is_trailed
    }

    /// Changes whenever QUIC accepts bytes, or would have: a stream with credit of its client may
    /// have to wait for others, which is not the client's doing.
    fn progress(&self) -> u64 {
        let waiting = self.head.len() + self.rest.iter().map(Bytes::len).sum::<usize>();
        let turns = u64::from(self.turns) << 48;
        self.body_bytes.wrapping_sub(waiting as u64).wrapping_add(turns)
    }
}

/// The state of the QUIC stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3StreamFate {
    Open,
    /// Aborted here; the next `transmit` resets it.
    Aborted,
    /// Closed in QUIC; kept until an owner is bound.
    Dead,
}

/// One request and its response.
#[derive(Debug)]
pub(super) struct H3Stream {
    pub(super) id: u64,
    pub(super) user: StreamOwner,
    pub(super) fate: H3StreamFate,
    pub(super) is_announced: bool,
    /// The turn in which it was announced.
    pub(super) announced_in: u64,
    pub(super) is_head_request: bool,
    /// RFC 9114 §4.1.2: the request is malformed, which ends its stream behind the response.
    pub(super) is_malformed: bool,
    pub(super) priority: Priority,
    /// Whether QUIC needs the new `priority`.
    pub(super) has_new_priority: bool,
    /// Whether a PRIORITY_UPDATE set `priority`, which overrides the request's field.
    pub(super) is_priority_pinned: bool,
    pub(super) recv: Recv,
    pub(super) send: Send,
}

impl H3Stream {
    fn new(id: u64) -> Self {
        Self {
            id,
            user: UNBOUND,
            fate: H3StreamFate::Open,
            is_announced: false,
            announced_in: 0,
            is_head_request: false,
            is_malformed: false,
            priority: Priority::UNSIGNALLED,
            has_new_priority: false,
            is_priority_pinned: false,
            recv: Recv {
                phase: H3StreamPhase::Head,
                frame: H3Frame::Header,
                partial: Vec::new(),
                held: None,
                unread: None,
                length: None,
                received: 0,
                window: 0,
                wants_body: true,
                is_early: false,
            },
            send: Send {
                head: Bytes::new(),
                rest: VecDeque::new(),
                body: H3Body::Done,
                is_framed: false,
                body_bytes: 0,
                head_bytes: 0,
                is_answered: false,
                is_trailed: false,
                is_queued: false,
                is_blocked: false,
                turns: 0,
                is_pending: false,
                is_paced: false,
                is_held: false,
            },
        }
    }

    /// Sets the priority that a field or frame requests.
    pub(super) fn prioritise(&mut self, priority: Priority) {
        self.has_new_priority |= priority != self.priority;
        self.priority = priority;
    }

    /// Whether an owner that is not bound yet has to get the end of this stream.
    pub(super) const fn awaits_user(&self) -> bool {
        self.is_announced && self.user == UNBOUND
    }
}

/// A multiplicative hash: stream ids are small, regular and bounded by QUIC's stream limit.
#[derive(Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    stream: Option<H3Stream>,
}

/// All request streams.
#[derive(Debug, Default)]
pub(super) struct H3Streams {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_id: HashMap<u64, u32, BuildHasherDefault<IdHasher>>,
}

impl H3Streams {
    /// The owners of all streams that have one.
    pub(super) fn users(&self) -> impl Iterator<Item = StreamOwner> {
        let streams = self.slots.iter().filter_map(|slot| slot.stream.as_ref());
        streams.map(|stream| stream.user).filter(|&user| user != UNBOUND)
    }

    /// Streams that cannot proceed until the peer sends something.
    pub(super) fn awaiting(&self) -> impl Iterator<Item = Awaiting> {
        let named = |slot: u32| Some((self.name(slot), self.look(slot)?));
        (0..self.slots.len() as u32).filter_map(named).filter_map(|(name, stream)| {
            let is_head = !stream.is_announced
                && matches!(stream.recv.phase, H3StreamPhase::Head | H3StreamPhase::Blocked);
            let is_held = stream.send.is_blocked && stream.user != UNBOUND;
            if stream.fate != H3StreamFate::Open || !is_head && !is_held {
                return None;
            }
            let user = (!is_head).then_some(stream.user);
            Some(Awaiting { stream: name, user, progress: stream.send.progress() })
        })
    }

    /// The number of streams that are marked as queued.
    pub(super) fn queued(&self) -> usize {
        let streams = self.slots.iter().filter_map(|slot| slot.stream.as_ref());
        streams.filter(|stream| stream.send.is_queued).count()
    }

    /// The number of streams, dead ones included.
    pub(super) const fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The slot of a QUIC stream.
    #[inline]
    pub(super) fn slot_of(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// The stream in `slot`.
    #[inline]
    pub(super) fn at(&mut self, slot: u32) -> Option<&mut H3Stream> {
        self.slots.get_mut(slot as usize)?.stream.as_mut()
    }

    /// The stream in `slot`, read-only.
    pub(super) fn look(&self, slot: u32) -> Option<&H3Stream> {
        self.slots.get(slot as usize)?.stream.as_ref()
    }

    /// The slot of `id`, unless it is stale.
    #[inline]
    pub(super) fn slot(&self, id: StreamId) -> Option<u32> {
        let slot = self.slots.get(id.0 as u32 as usize)?;
        let is_current = slot.generation == (id.0 >> 32) as u32 && slot.stream.is_some();
        is_current.then_some(id.0 as u32)
    }

    /// The stream of `id`, unless it is stale.
    #[inline]
    pub(super) fn find(&mut self, id: StreamId) -> Option<(u32, &mut H3Stream)> {
        let slot = self.slot(id)?;
        self.at(slot).map(|stream| (slot, stream))
    }

    /// The [`StreamId`] of the stream in `slot`.
    #[inline]
    pub(super) fn name(&self, slot: u32) -> StreamId {
        let generation = self.slots.get(slot as usize).map_or(0, |slot| slot.generation);
        StreamId(u64::from(generation) << 32 | u64::from(slot))
    }

    /// Inserts a stream.
    pub(super) fn insert(&mut self, id: u64) -> u32 {
        let stream = Some(H3Stream::new(id));
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].stream = stream;
            slot
        } else {
            self.slots.push(Slot { generation: 0, stream });
            (self.slots.len() - 1) as u32
        };
        let before = self.by_id.insert(id, slot);
        debug_assert!(before.is_none(), "a QUIC stream has one slot");
        slot
    }

    /// Removes the QUIC id from the index; the slot stays.
    pub(super) fn unlist(&mut self, id: u64) {
        self.by_id.remove(&id);
    }

    /// Removes the stream in `slot`; its [`StreamId`] becomes stale.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return };
        if let Some(stream) = entry.stream.take() {
            debug_assert!(!stream.send.is_queued, "a removed stream is not in the scheduler");
            entry.generation = entry.generation.wrapping_add(1);
            self.free.push(slot);
            if self.by_id.get(&stream.id) == Some(&slot) {
                self.by_id.remove(&stream.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::H3Streams;

    #[test]
    fn a_name_goes_stale_when_its_slot_is_let_again() {
        let mut streams = H3Streams::default();
        let slot = streams.insert(0);
        let name = streams.name(slot);
        assert_eq!(streams.find(name).map(|(_, stream)| stream.id), Some(0));
        streams.remove(slot);
        assert_eq!(streams.insert(4), slot);
        assert!(streams.find(name).is_none());
        assert_eq!((streams.slot_of(0), streams.slot_of(4)), (None, Some(slot)));
        assert_eq!(streams.live(), 1);
    }
}
