//! An HTTP/2 connection with arbitrary bytes, and its invariants.

use std::collections::{BTreeMap, BTreeSet};

use bolide_base::chain::CopyPolicy;
use bolide_base::{Instant, Now, SendChain};
use bolide_http::{BodyLen, Name, ResponseHead};

use bolide_wire::h2::{H2Conn, H2Settings};
use bolide_wire::{BodySource, HeadPool, Pull, StreamId, StreamOwner, WireEvent};

/// RFC 9113 §3.4: the connection preface.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// RFC 9113 §4.1: the length of a frame header.
const HEADER_LEN: usize = 9;
/// RFC 9113 §4.2: the largest frame that needs no setting.
const FRAME_SIZE_MAX: usize = 16_384;
/// RFC 9113 §6: frame types and flags.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Beyond this number of streams, the record of the first ones is dropped.
const REMEMBERED: usize = 16;

/// Bodies of a few thousand bytes that sometimes have no bytes available, or fail.
struct Bodies {
    left: BTreeMap<StreamOwner, usize>,
    turn: usize,
}

impl BodySource for Bodies {
    fn pull(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        assert!(max > 0, "a body is asked for at least one byte");
        self.turn += 1;
        let Some(left) = self.left.get_mut(&user) else { return Pull::Broken };
        if self.turn.is_multiple_of(5) {
            return Pull::Pending;
        }
        let bytes = max.min(*left).min(700);
        out.push_slice(&vec![b'x'; bytes]);
        *left -= bytes;
        if *left == 0 { Pull::End } else { Pull::More }
    }
}

#[derive(Default)]
struct World {
    next: StreamOwner,
    /// Bound streams whose end was not reported.
    bound: BTreeMap<StreamOwner, StreamId>,
}

impl World {
    /// Responds to requests in one of several ways.
    fn handle(
        &mut self,
        conn: &mut H2Conn,
        bodies: &mut Bodies,
        heads: &mut HeadPool,
        event: WireEvent,
    ) {
        match event {
            WireEvent::Request { stream, head } | WireEvent::Refused { stream, head, .. } => {
                let user = self.next;
                self.next += 1;
                assert!(!head.line.is_empty());
                heads.put(head);
                conn.bind(stream, user);
                self.bound.insert(user, stream);
                let size = user as usize % 7 * 613;
                bodies.left.insert(user, size);
                let mut head = ResponseHead { status: 200, ..ResponseHead::default() };
                head.fields.push(Name::Server, b"fuzz");
                head.body = match user % 4 {
                    0 => BodyLen::None,
                    1 => BodyLen::Unknown,
                    _ => BodyLen::Exact(size as u64),
                };
                match user % 11 {
                    9 => conn.reset(stream, 8),
                    _ => {
                        // A stream that was reset in the same call refuses its response.
                        let _ = conn.respond(stream, &head);
                    }
                }
            }
            WireEvent::Body { user, bytes } => {
                if let (Some(stream), true) = (self.bound.get(&user), user % 2 == 0) {
                    conn.body_consumed(*stream, bytes.len());
                } else if let Some(stream) = self.bound.get(&user) {
                    conn.discard_body(*stream);
                }
            }
            WireEvent::BodyEnd { user } | WireEvent::BodyRefused { user, .. } => {
                assert!(user < self.next, "only bound users hear of bodies");
            }
            WireEvent::Reset { user } | WireEvent::Sent { user, .. } => {
                assert!(self.bound.remove(&user).is_some(), "a stream ends exactly once");
            }
        }
    }
}

/// The frames that the connection has sent on its streams.
#[derive(Debug, Default)]
pub struct H2Sent {
    begun: BTreeSet<u32>,
    ended: BTreeSet<u32>,
    reset: BTreeSet<u32>,
}

impl H2Sent {
    /// Checks that the output is whole frames of legal sizes with uninterrupted field blocks.
    ///
    /// # Panics
    ///
    /// It is not, or a stream gets a frame that it must not get.
    pub fn check(&mut self, out: &[u8]) {
        let mut rest = out;
        let mut block_is_open = false;
        while !rest.is_empty() {
            let (header, tail) =
                rest.split_first_chunk::<HEADER_LEN>().expect("whole frame headers");
            let [high, middle, low, kind, flags, stream @ ..] = *header;
            let len = u32::from_be_bytes([0, high, middle, low]) as usize;
            assert!(len <= FRAME_SIZE_MAX && tail.len() >= len, "whole frames");
            assert_eq!(kind == CONTINUATION, block_is_open);
            if matches!(kind, HEADERS | CONTINUATION) {
                block_is_open = flags & END_HEADERS == 0;
            }
            self.note(u32::from_be_bytes(stream), kind, flags);
            rest = &tail[len..];
        }
        assert!(!block_is_open, "whole blocks");
    }

    /// RFC 9113 §5.1, §5.4.2: only a reset may follow the end of a stream, and nothing may follow a
    /// reset.
    fn note(&mut self, stream: u32, kind: u8, flags: u8) {
        if stream == 0 {
            return;
        }
        let is_ended = self.ended.contains(&stream);
        assert!(!is_ended || !matches!(kind, DATA | HEADERS), "{stream} goes on behind its end");
        assert!(kind != DATA || self.begun.contains(&stream), "a head precedes its body");
        if kind == HEADERS {
            self.begun.insert(stream);
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            self.ended.insert(stream);
        }
        let is_remembered = self.begun.len() + self.reset.len() < REMEMBERED;
        let is_reset = self.reset.contains(&stream);
        assert!(!is_reset || !is_remembered, "{stream} gets frame {kind} behind its reset");
        if kind == RST_STREAM {
            self.reset.insert(stream);
        }
    }
}

/// Feeds `data` as the client's bytes, in pieces whose sizes depend on it.
///
/// # Panics
///
/// An invariant does not hold.
pub fn fuzz(data: &[u8]) {
    let settings = H2Settings { head_size_max: 4096, field_size_max: 512, ..H2Settings::default() };
    let (mut conn, mut heads, mut events) = (H2Conn::new(), HeadPool::default(), Vec::new());
    let (mut world, mut bodies) =
        (World::default(), Bodies { left: BTreeMap::new(), turn: data.len() });
    let mut sent = H2Sent::default();
    let mut input = PREFACE.to_vec();
    input.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    input.extend_from_slice(data);
    let step = 1 + data.first().map_or(0, |&byte| usize::from(byte) * 3);
    let (mut start, mut end, mut is_dead) = (0, 0, false);
    while end < input.len() && !is_dead {
        end = (end + step).min(input.len());
        let now = Now { mono: Instant::from_nanos(end as u64 * 1_000_000), unix_millis: 0 };
        match conn.receive(&settings, now, &input[start..end], &mut heads, &mut events) {
            Ok(used) => {
                assert!(used <= end - start);
                start += used;
                assert!(end - start <= FRAME_SIZE_MAX + HEADER_LEN, "what is held back is bounded");
            }
            Err(_) => is_dead = true,
        }
        for event in std::mem::take(&mut events) {
            world.handle(&mut conn, &mut bodies, &mut heads, event);
        }
        let streams: Vec<_> = world.bound.values().copied().collect();
        for stream in streams {
            conn.body_ready(stream);
        }
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        conn.transmit(now, 8192, &mut out, &mut events, &mut bodies);
        sent.check(out.contiguous().unwrap_or_default());
        for event in std::mem::take(&mut events) {
            world.handle(&mut conn, &mut bodies, &mut heads, event);
        }
        assert!(conn.streams_open() <= settings.max_concurrent_streams);
        assert_eq!(conn.is_idle(), conn.streams_open() == 0);
        assert_eq!(conn.is_closing() && is_dead, is_dead);
    }
    assert!(!is_dead || world.bound.is_empty(), "every owner got its reset");
}
