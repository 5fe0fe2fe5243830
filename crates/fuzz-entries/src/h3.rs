//! An HTTP/3 connection with arbitrary calls, over a QUIC that accepts arbitrary amounts.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::{BodyLen, Name, ResponseHead};
use bytes::Bytes;

use bolide_wire::h3::{H3Conn, H3Settings, QuicStreams, StreamGone};
use bolide_wire::{BodySource, HeadPool, Pull, StreamId, StreamOwner, WireEvent};

/// Settings with limits small enough to be reached.
#[must_use]
pub const fn settings() -> H3Settings {
    H3Settings {
        max_concurrent_streams: 8,
        head_size_max: 600,
        field_size_max: 300,
        fields_max: 50,
        table_capacity: 220,
        blocked_streams: 2,
        underscores_in_headers: false,
        ignore_invalid_headers: true,
        keepalive_requests: 50,
    }
}

#[derive(Debug, Default)]
struct Quic {
    opened: u64,
    room: usize,
    finished: Vec<u64>,
}

impl QuicStreams for Quic {
    fn open_uni(&mut self) -> Option<u64> {
        self.opened += 1;
        assert!(self.opened <= 3, "a server has three streams of its own");
        Some(self.opened * 4 - 1)
    }

    fn write(&mut self, stream: u64, bytes: &mut Bytes) -> Result<usize, StreamGone> {
        assert!(!self.finished.contains(&stream), "nothing is written behind the end");
        let taken = bytes.len().min(self.room);
        let _ = bytes.split_to(taken);
        Ok(taken)
    }

    fn room(&mut self, _: u64) -> usize {
        self.room
    }

    fn finish(&mut self, stream: u64) {
        assert!(!self.finished.contains(&stream), "a stream ends once");
        self.finished.push(stream);
    }

    fn reset(&mut self, stream: u64, _: u64) {
        self.finished.retain(|&other| other != stream);
    }

    fn stop(&mut self, stream: u64, _: u64) {
        self.finished.retain(|&other| other != stream);
    }

    fn set_priority(&mut self, _: u64, priority: i32) {
        assert!((-4..=3).contains(&priority));
    }
}

struct Bodies;

impl BodySource for Bodies {
    fn pull(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        assert!(max > 0, "a pull is for something");
        out.push_slice(&[b'b'; 64][..max.min(64)]);
        match user % 4 {
            0 => Pull::More,
            1 => Pull::End,
            2 => Pull::Pending,
            _ => Pull::Broken,
        }
    }
}

/// Interprets `data` as calls: two bytes for the call and the stream, then its arguments.
pub fn conn(data: &[u8]) {
    let (settings, mut conn, mut heads) = (settings(), H3Conn::new(), HeadPool::default());
    let (mut quic, mut events) = (Quic { room: 40, ..Quic::default() }, Vec::new());
    let mut scratch = SendChain::new(CopyPolicy::Shared(1024));
    let mut known = Vec::new();
    conn.start(&settings, &mut quic);
    let mut rest = data;
    while let [what, place, after @ ..] = rest {
        let stream = u64::from(place & 0x3f);
        let (part, after) = after.split_at(after.len().min(usize::from(what >> 3)));
        rest = after;
        let done = match what & 7 {
            0..=3 => {
                let (fin, early) = (what & 7 == 3, place & 0x80 != 0);
                quic.finished.retain(|&other| other != stream);
                let bytes = Bytes::copy_from_slice(part);
                conn.receive(&settings, stream, bytes, fin, early, &mut heads, &mut events)
            }
            4 => conn.handle_reset(stream, 1, &mut events),
            5 => conn.handle_stopped(stream, 1, &mut events),
            6 => {
                quic.room = usize::from(*place);
                conn.handle_writable(stream);
                conn.transmit(100, &mut scratch, &mut events, &mut Bodies, &mut quic);
                Ok(())
            }
            _ => {
                if let Some(&id) = known.get(usize::from(*place) % known.len().max(1)) {
                    answer(&mut conn, id, *place, &mut quic);
                }
                Ok(())
            }
        };
        assert!(scratch.is_empty());
        for event in events.drain(..) {
            match event {
                WireEvent::Request { stream, head } | WireEvent::Refused { stream, head, .. } => {
                    heads.put(head);
                    conn.bind(stream, stream.0);
                    known.push(stream);
                }
                _ => {}
            }
        }
        if done.is_err() {
            return;
        }
        assert!(conn.streams_open() <= 8 + 64);
    }
}

fn answer(conn: &mut H3Conn, id: StreamId, how: u8, quic: &mut Quic) {
    let mut head = ResponseHead { status: 200 + u16::from(how % 5), ..ResponseHead::default() };
    head.fields.push(Name::Link, &[b'l'; 80][..usize::from(how % 80)]);
    head.body = match how % 3 {
        0 => BodyLen::None,
        1 => BodyLen::Exact(u64::from(how)),
        _ => BodyLen::Unknown,
    };
    match how % 7 {
        0 => conn.body_ready(id),
        1 => conn.body_consumed(id, 10),
        2 => conn.discard_body(id, quic),
        3 => conn.reset(id, 1, quic),
        _ => drop(conn.respond(id, &head)),
    }
}
