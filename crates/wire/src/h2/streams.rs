//! The open streams of a connection, and a short memory of closed ones.
//!
//! ```text
//!             HEADERS                        END_STREAM sent, peer done
//!   idle ───────────────► open (active) ───────────────────────────────► closed (remembered)
//!                            │    END_STREAM and RST_STREAM sent            ▲
//!                            └────────────► lingering (no user) ────────────┘
//! ```
//!
//! A lingering stream is closed for its client. Its slot stays while there is room, because what
//! was on its way may still break a rule.
//!
//! INVARIANT: `ids[slot] == 0` exactly where a slot is free. A [`StreamId`] packs slot and id, so
//! that it becomes stale with its stream.

use bytes::Bytes;

use crate::conn::UNBOUND;
use crate::sched::{Priority, Sched};
use crate::{Awaiting, StreamId, StreamOwner, WireEvent, WireRefusal};

/// The length is unknown.
pub(super) const UNKNOWN: u64 = u64::MAX;
/// LIMIT: closed streams that are remembered.
const CLOSED_MAX: usize = 32;

/// The state of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H2Sending {
    /// The head has not come.
    Waiting,
    /// The body is being pulled.
    Body,
    /// `END_STREAM` is queued; the end of the response is not reported yet.
    Ended,
    /// The response is complete.
    Complete,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// More may come.
    Open,
    /// `END_STREAM` came.
    Ended,
}

/// Body bytes that came before `bind`.
#[derive(Debug, Default)]
pub(super) struct HeldHead {
    pub(super) bytes: Vec<Bytes>,
    pub(super) is_complete: bool,
    /// The body does not have the length that its head declares.
    pub(super) refusal: Option<WireRefusal>,
}

/// One open stream.
#[derive(Debug)]
pub(super) struct H2Stream {
    pub(super) user: StreamOwner,
    pub(super) sending: H2Sending,
    pub(super) receiving: Receiving,
    pub(super) priority: Priority,
    /// It is in the scheduler.
    pub(super) is_scheduled: bool,
    /// The last pull found no bytes.
    pub(super) is_pending: bool,
    /// The request was `HEAD`.
    pub(super) is_head: bool,
    /// The request body is discarded.
    pub(super) discards: bool,
    /// RFC 9113 §8.1.1: the request is malformed, so that a reset follows its response.
    pub(super) is_malformed: bool,
    /// The response ends with trailer fields.
    pub(super) trailed: bool,
    /// LIMIT: bytes of a DATA payload.
    pub(super) chunk_size: u32,
    /// The window for sending. It is negative after the peer reduced its initial window.
    pub(super) send_window: i32,
    /// The window for receiving.
    pub(super) recv_window: i32,
    /// The window that is kept open while the body is read.
    pub(super) recv_full: u32,
    /// Consumed bytes that no WINDOW_UPDATE has returned yet.
    pub(super) recv_credit: u32,
    /// Bytes reported and not consumed.
    pub(super) outstanding: u32,
    /// Body bytes to come by `content-length`, or [`UNKNOWN`].
    pub(super) recv_left: u64,
    /// Body bytes to send by our `content-length`, or [`UNKNOWN`].
    pub(super) send_left: u64,
    /// Body bytes sent.
    pub(super) sent: u64,
    /// Bytes of heads and frame headers sent.
    pub(super) head_bytes: u64,
    pub(super) held: Option<Box<HeldHead>>,
}

impl H2Stream {
    pub(super) fn new(send_window: i32, recv_window: i32) -> Self {
        Self {
            user: UNBOUND,
            sending: H2Sending::Waiting,
            receiving: Receiving::Open,
            priority: Priority::UNSIGNALLED,
            is_scheduled: false,
            is_pending: false,
            is_head: false,
            discards: false,
            is_malformed: false,
            trailed: false,
            chunk_size: 0,
            send_window,
            recv_window,
            recv_full: 0,
            recv_credit: 0,
            outstanding: 0,
            recv_left: UNKNOWN,
            send_left: UNKNOWN,
            sent: 0,
            head_bytes: 0,
            held: None,
        }
    }

    /// Whether the response is incomplete.
    pub(super) fn is_active(&self) -> bool {
        self.sending != H2Sending::Complete
    }

    /// Reports body bytes to the owner, or keeps them until there is one.
    pub(super) fn deliver(&mut self, data: &[u8], events: &mut Vec<WireEvent>) {
        let bytes = Bytes::copy_from_slice(data);
        self.outstanding += data.len() as u32;
        match self.user {
            UNBOUND => self.held.get_or_insert_default().bytes.push(bytes),
            user => events.push(WireEvent::Body { user, bytes }),
        }
    }

    /// Whether the stream could write now.
    pub(super) fn is_ready(&self) -> bool {
        self.sending == H2Sending::Body && !self.is_pending && self.send_window > 0
    }
}

/// Why a stream is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// Both sides ended it.
    Ended,
    /// The peer reset it.
    ByPeer,
    /// We reset it; the peer may not know that yet.
    ByUs,
}

/// The streams that closed last. A new one replaces the oldest; of two entries of one stream the
/// newer one holds.
#[derive(Debug, Default)]
struct Memory {
    /// The stream number (an odd id without its lowest bit) and the reason in one word; 0 is empty.
    ring: [u32; CLOSED_MAX],
    next: u8,
}

impl Memory {
    fn put(&mut self, id: u32, why: Closed) {
        let word = (id >> 1) << 2 | (why as u32 + 1);
        self.ring[usize::from(self.next)] = word;
        self.next = (self.next + 1) % CLOSED_MAX as u8;
    }

    fn find(&self, id: u32) -> Option<Closed> {
        let number = id >> 1;
        let (newer, older) = self.ring.split_at(usize::from(self.next));
        let mut words = newer.iter().rev().chain(older.iter().rev());
        let word = words.find(|&&word| word != 0 && word >> 2 == number)?;
        match word & 3 {
            1 => Some(Closed::Ended),
            2 => Some(Closed::ByPeer),
            _ => Some(Closed::ByUs),
        }
    }
}

/// The open streams. They are few, so an id is found by a scan of a dense list.
#[derive(Debug, Default)]
pub(super) struct H2Streams {
    ids: Vec<u32>,
    slots: Vec<H2Stream>,
    open: u32,
    active: u32,
    closed: Memory,
    /// Those that could write, in the order of their priorities.
    pub(super) sched: Sched,
}

impl H2Streams {
    /// The number of streams that take a slot.
    pub(super) const fn open(&self) -> u32 {
        self.open
    }

    /// The number of streams whose response is incomplete.
    pub(super) const fn active(&self) -> u32 {
        self.active
    }

    pub(super) fn insert(&mut self, id: u32, stream: H2Stream) -> StreamId {
        debug_assert!(id != 0, "0 marks a free slot");
        debug_assert!(self.find(id).is_none(), "a stream is open once");
        self.open += 1;
        self.active += 1;
        let slot = match self.ids.iter().position(|&taken| taken == 0) {
            Some(slot) => {
                self.ids[slot] = id;
                self.slots[slot] = stream;
                slot
            }
            None => {
                // Sequential requests need one slot, concurrent ones many.
                let more = if self.slots.is_empty() { 1 } else { 8.max(self.slots.len()) };
                if self.slots.len() == self.slots.capacity() {
                    self.slots.reserve_exact(more);
                    self.ids.reserve_exact(more);
                }
                self.ids.push(id);
                self.slots.push(stream);
                self.slots.len() - 1
            }
        };
        pack(slot as u32, id)
    }

    /// Finds the slot of an open stream by its id.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<u32> {
        debug_assert!(id != 0, "0 marks a free slot");
        self.ids.iter().position(|&open| open == id).map(|slot| slot as u32)
    }

    /// The slot of a stream, if it is still open.
    #[inline]
    pub(super) fn slot(&self, stream: StreamId) -> Option<u32> {
        let (slot, id) = unpack(stream);
        (id != 0 && self.ids.get(slot as usize) == Some(&id)).then_some(slot)
    }

    #[inline]
    pub(super) fn id(&self, slot: u32) -> u32 {
        self.ids[slot as usize]
    }

    pub(super) fn name(&self, slot: u32) -> StreamId {
        pack(slot, self.id(slot))
    }

    #[inline]
    pub(super) fn at(&mut self, slot: u32) -> &mut H2Stream {
        debug_assert!(self.ids[slot as usize] != 0, "the slot is taken");
        &mut self.slots[slot as usize]
    }

    /// Schedules a stream if it could write.
    pub(super) fn schedule(&mut self, slot: u32) {
        let id = self.id(slot);
        let stream = self.at(slot);
        if stream.is_ready() && !stream.is_scheduled {
            stream.is_scheduled = true;
            let priority = stream.priority;
            self.sched.insert(slot, u64::from(id), priority);
        }
    }

    /// Takes a stream out of the schedule, if it is there.
    pub(super) fn unschedule(&mut self, slot: u32) {
        if std::mem::take(&mut self.at(slot).is_scheduled) {
            self.sched.remove(slot);
        }
    }

    /// RFC 9113 §6.9.2: a new initial window moves the windows of all streams, even below zero;
    /// nothing if one exceeds the maximum.
    pub(super) fn move_send_windows(&mut self, delta: i64) -> Option<()> {
        for slot in 0..self.slots() {
            if !self.is_open(slot) {
                continue;
            }
            let stream = self.at(slot);
            let moved = i64::from(stream.send_window) + delta;
            stream.send_window = i32::try_from(moved).ok()?;
            if stream.send_window <= 0 {
                self.unschedule(slot);
            }
            self.schedule(slot);
        }
        Some(())
    }

    /// Forgets a lingering stream, if there is one.
    pub(super) fn make_room(&mut self) -> bool {
        let Some(slot) = self.lingering() else { return false };
        self.remove(slot, Closed::ByUs);
        true
    }

    /// The response is complete. The stream lingers until it is removed.
    pub(super) fn complete(&mut self, slot: u32) {
        let stream = self.at(slot);
        debug_assert!(stream.is_active(), "a response completes once");
        stream.sending = H2Sending::Complete;
        self.active -= 1;
    }

    /// Frees a slot and remembers the reason. Returns the owner if its response was incomplete.
    pub(super) fn remove(&mut self, slot: u32, why: Closed) -> Option<StreamOwner> {
        let id = std::mem::take(&mut self.ids[slot as usize]);
        debug_assert!(id != 0, "a stream is removed once");
        let stream = &mut self.slots[slot as usize];
        stream.held = None;
        self.open -= 1;
        self.closed.put(id, why);
        if !stream.is_active() {
            return None;
        }
        debug_assert!(!stream.is_scheduled, "a removed stream is not scheduled");
        self.active -= 1;
        (stream.user != UNBOUND).then_some(stream.user)
    }

    /// The owners of the streams whose responses are incomplete.
    pub(super) fn users(&self) -> impl Iterator<Item = StreamOwner> {
        let taken = self.ids.iter().zip(&self.slots).filter(|(id, _)| **id != 0);
        let waiting = taken.filter(|(_, stream)| stream.is_active() && stream.user != UNBOUND);
        waiting.map(|(_, stream)| stream.user)
    }

    /// The responses that the peer's windows block. `is_shut` means that the connection window is
    /// used up.
    pub(super) fn awaiting(&self, is_shut: bool) -> impl Iterator<Item = Awaiting> {
        let taken = self.ids.iter().zip(&self.slots).zip(0..).filter(|((id, _), _)| **id != 0);
        let held = taken.filter(move |((_, stream), _)| {
            let is_ours = stream.sending == H2Sending::Body && !stream.is_pending;
            is_ours && stream.user != UNBOUND && (is_shut || stream.send_window <= 0)
        });
        held.map(|((id, stream), slot)| Awaiting {
            stream: pack(slot, *id),
            user: Some(stream.user),
            progress: stream.sent,
        })
    }

    /// Bytes of open streams that are reported and not consumed.
    pub(super) fn unread(&self) -> u32 {
        self.taken().map(|stream| stream.outstanding).sum()
    }

    /// The number of streams that are marked as scheduled.
    pub(super) fn scheduled(&self) -> usize {
        let (active, open) =
            (self.taken().filter(|one| one.is_active()).count(), self.taken().count());
        debug_assert_eq!(
            (active, open),
            (self.active as usize, self.open as usize),
            "the counts are those of the slots"
        );
        self.taken().filter(|stream| stream.is_scheduled).count()
    }

    fn taken(&self) -> impl Iterator<Item = &H2Stream> {
        self.ids.iter().zip(&self.slots).filter(|(id, _)| **id != 0).map(|(_, stream)| stream)
    }

    /// The number of slots, taken or free.
    pub(super) const fn slots(&self) -> u32 {
        self.ids.len() as u32
    }

    /// Whether a slot is taken.
    pub(super) fn is_open(&self, slot: u32) -> bool {
        self.ids[slot as usize] != 0
    }

    /// Why a stream closed, if it is remembered.
    pub(super) fn closed(&self, id: u32) -> Option<Closed> {
        self.closed.find(id)
    }

    /// Remembers a stream that was never opened.
    pub(super) fn forget(&mut self, id: u32, why: Closed) {
        self.closed.put(id, why);
    }

    /// The oldest lingering stream.
    pub(super) fn lingering(&self) -> Option<u32> {
        let lingers = |slot: &usize| self.ids[*slot] != 0 && !self.slots[*slot].is_active();
        (0..self.ids.len()).filter(lingers).min_by_key(|&slot| self.ids[slot]).map(|s| s as u32)
    }

    /// Frees memory while no stream is active.
    pub(super) fn shrink(&mut self) {
        while self.make_room() {}
        self.sched.shrink();
        if self.open == 0 {
            self.ids = Vec::new();
            self.slots = Vec::new();
        }
    }
}

#[inline]
const fn pack(slot: u32, id: u32) -> StreamId {
    StreamId((id as u64) << 32 | slot as u64)
}

#[inline]
const fn unpack(stream: StreamId) -> (u32, u32) {
    (stream.0 as u32, (stream.0 >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::{Closed, H2Stream, H2Streams};

    #[test]
    fn a_stream_id_goes_stale_with_its_stream_and_its_end_is_remembered() {
        let mut streams = H2Streams::default();
        let first = streams.insert(1, H2Stream::new(0, 0));
        let slot = streams.slot(first).unwrap();
        streams.at(slot).user = 7;
        assert_eq!(streams.remove(slot, Closed::ByPeer), Some(7));
        let second = streams.insert(3, H2Stream::new(0, 0));
        assert_eq!(streams.slot(second), Some(slot));
        assert_eq!((streams.slot(first), streams.find(1)), (None, None));
        assert_eq!(streams.closed(1), Some(Closed::ByPeer));
        assert_eq!(streams.remove(slot, Closed::Ended), None);
        assert_eq!((streams.open(), streams.active()), (0, 0));
        for id in (5..69).step_by(2) {
            streams.forget(id, Closed::ByUs);
        }
        assert_eq!((streams.closed(1), streams.closed(67)), (None, Some(Closed::ByUs)));
        assert_eq!(streams.closed(0x7fff_ffff), None);
    }
}
