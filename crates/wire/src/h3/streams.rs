//! The request streams of one connection: storage, and what is known of each.
//!
//! Owns slots that are found by QUIC stream id or by [`StreamId`]; a stale [`StreamId`] finds
//! nothing. It refuses nothing: how many streams may be is decided before they come here.
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
//! The invariant easiest to break: a stream whose request was announced and whose user is not
//! known yet outlives its QUIC stream, because somebody has to be told that it died.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;

use crate::conn::UNBOUND;
use crate::sched::Priority;
use crate::{Awaiting, StreamId, StreamOwner};

/// Where the reading of a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3StreamPhase {
    /// No field section was decoded yet.
    Head,
    /// A section waits for insertions.
    Blocked,
    /// The head is announced; the body comes.
    Body,
    /// Trailers came; nothing but unknown frames may follow.
    Trailed,
    /// The peer's side is over.
    Ended,
    /// Whatever comes is dropped.
    Ignored,
}

/// Where the reading of frames stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3Frame {
    /// At a header, or within one: its beginning is in `partial`.
    Header,
    /// In DATA with this many bytes to come.
    Data(u64),
    /// In HEADERS of this length; what came of it is in `partial`.
    Section(usize),
    /// In an unknown frame with this many bytes to come.
    Skip(u64),
}

/// A section that waits for insertions, and what came behind it.
#[derive(Debug)]
pub(super) struct HeldH3Head {
    pub(super) required: u64,
    pub(super) section: Bytes,
    /// The phase in which the section arrived.
    pub(super) phase: H3StreamPhase,
    pub(super) rest: Vec<u8>,
    pub(super) fin: bool,
}

/// Body that arrived before the stream was bound.
#[derive(Debug, Default)]
pub(super) struct Unread {
    pub(super) chunks: Vec<Bytes>,
    pub(super) is_ended: bool,
}

/// The peer's side of a stream.
#[derive(Debug)]
pub(super) struct Recv {
    pub(super) phase: H3StreamPhase,
    pub(super) frame: H3Frame,
    pub(super) partial: Vec<u8>,
    pub(super) held: Option<Box<HeldH3Head>>,
    pub(super) unread: Option<Box<Unread>>,
    /// What `content-length` says.
    pub(super) length: Option<u64>,
    /// Body bytes that came.
    pub(super) received: u64,
    /// Body bytes told and not given back.
    pub(super) window: usize,
    /// Whether body and its end are of interest.
    pub(super) wants_body: bool,
    pub(super) is_early: bool,
}

/// The body of a response, as it is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3Body {
    /// Nothing (more) to pull.
    Done,
    /// This many bytes, whose DATA header has left with the head.
    Exact(u64),
    /// One DATA frame for each pull, until the source ends.
    Unknown,
}

/// Our side of a stream.
#[derive(Debug)]
pub(super) struct Send {
    /// The head, before everything else.
    pub(super) head: Bytes,
    /// What QUIC did not take at once; leaves before the source is asked again.
    pub(super) rest: VecDeque<Bytes>,
    pub(super) body: H3Body,
    /// Whether each pull becomes a DATA frame of its own.
    pub(super) is_framed: bool,
    pub(super) body_bytes: u64,
    /// Bytes of heads.
    pub(super) head_bytes: u64,
    /// Whether the final response head was given.
    pub(super) is_answered: bool,
    /// Whether trailer fields are asked for behind the body.
    pub(super) is_trailed: bool,
    /// Whether the stream waits in the scheduler.
    pub(super) is_queued: bool,
    /// Whether only `handle_writable` makes sense of another try.
    pub(super) is_blocked: bool,
    /// Whether only `body_ready` makes sense of another pull.
    pub(super) is_pending: bool,
}

impl Send {
    /// Body bytes that QUIC has taken, and what of the head it has not, in one number.
    fn left(&self) -> u64 {
        let waiting = self.head.len() + self.rest.iter().map(Bytes::len).sum::<usize>();
        self.body_bytes.wrapping_sub(waiting as u64)
    }
}

/// Whether a stream still lives in QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3StreamFate {
    Open,
    /// Given up; `transmit` will tell QUIC.
    Aborted,
    /// Gone from QUIC; kept for a user to come.
    Dead,
}

/// One request and its response.
#[derive(Debug)]
pub(super) struct H3Stream {
    pub(super) id: u64,
    pub(super) user: StreamOwner,
    pub(super) fate: H3StreamFate,
    pub(super) is_announced: bool,
    pub(super) is_head_request: bool,
    pub(super) priority: Priority,
    /// Whether QUIC has to be told `priority`.
    pub(super) has_new_priority: bool,
    /// Whether a frame gave `priority`, which the request's own field does not change.
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
            is_head_request: false,
            priority: Priority::default(),
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
                is_pending: false,
            },
        }
    }

    /// Takes the priority that a field or frame asks for.
    pub(super) fn prioritise(&mut self, priority: Priority) {
        self.has_new_priority |= priority != self.priority;
        self.priority = priority;
    }

    /// Whether somebody waits to be told about this stream's end who has no name yet.
    pub(super) const fn awaits_user(&self) -> bool {
        self.is_announced && self.user == UNBOUND
    }
}

/// A multiplicative hash: stream ids are small, regular and bounded by QUIC's credit.
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
    /// The users of all streams that have one.
    pub(super) fn users(&self) -> impl Iterator<Item = StreamOwner> {
        let streams = self.slots.iter().filter_map(|slot| slot.stream.as_ref());
        streams.map(|stream| stream.user).filter(|&user| user != UNBOUND)
    }

    /// Streams that can do nothing until the peer does.
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
            Some(Awaiting { stream: name, user, progress: stream.send.left() })
        })
    }

    /// How many there are, dead ones included.
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

    /// The stream in `slot`, to look at.
    pub(super) fn look(&self, slot: u32) -> Option<&H3Stream> {
        self.slots.get(slot as usize)?.stream.as_ref()
    }

    /// The slot that `id` names, unless it is stale.
    #[inline]
    pub(super) fn slot(&self, id: StreamId) -> Option<u32> {
        let slot = self.slots.get(id.0 as u32 as usize)?;
        let is_current = slot.generation == (id.0 >> 32) as u32 && slot.stream.is_some();
        is_current.then_some(id.0 as u32)
    }

    /// The stream that `id` names, unless it is stale.
    #[inline]
    pub(super) fn find(&mut self, id: StreamId) -> Option<(u32, &mut H3Stream)> {
        let slot = self.slot(id)?;
        self.at(slot).map(|stream| (slot, stream))
    }

    /// How the world outside names the stream in `slot`.
    #[inline]
    pub(super) fn name(&self, slot: u32) -> StreamId {
        let generation = self.slots.get(slot as usize).map_or(0, |slot| slot.generation);
        StreamId(u64::from(generation) << 32 | u64::from(slot))
    }

    /// Makes a stream.
    pub(super) fn insert(&mut self, id: u64) -> u32 {
        let stream = Some(H3Stream::new(id));
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].stream = stream;
            slot
        } else {
            self.slots.push(Slot { generation: 0, stream });
            (self.slots.len() - 1) as u32
        };
        self.by_id.insert(id, slot);
        slot
    }

    /// Makes the stream unfindable by its QUIC id.
    pub(super) fn unlist(&mut self, id: u64) {
        self.by_id.remove(&id);
    }

    /// Forgets the stream in `slot`; its [`StreamId`] goes stale.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return };
        if let Some(stream) = entry.stream.take() {
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
