//! From bodies to the socket: pull, frame, seal, one gathered write per turn.

use std::collections::VecDeque;

use bolide_base::{Bound, CopyPolicy, Segment, SendChain, SlabKey};
use bolide_conf::model::LingeringClose;
use bolide_io::{Io, Reset, Sent};
use bytes::Bytes;

use crate::bodies::{Bodies, is_same};
use crate::exchange_table::Owner;
use crate::tcp::{ROOM_MIN, TcpConn};
use crate::worker::Worker;

/// Shared pieces below this are copied: a gather entry costs more than copying them.
pub(crate) const SHARE_MIN: usize = 16 * 1024;
/// Bytes that may be pulled for one connection in one turn.
const ROOM_MAX: usize = 256 * 1024;

impl<I: Io> Worker<I> {
    /// Puts the connection among those that may write this turn.
    pub(crate) fn mark_dirty(&mut self, key: SlabKey<TcpConn>) {
        if let Some(conn) = self.conns.get_mut(key)
            && !conn.dirty
        {
            conn.dirty = true;
            self.dirty.push(key);
        }
    }

    /// Writes what the connection has to say, once.
    pub(crate) fn transmit(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        conn.dirty = false;
        if conn.lingering || !self.flush(key) {
            return;
        }
        self.gather(key);
        let Some(conn) = self.conns.get_mut(key) else { return };
        if !self.env.scratch.chain.is_empty() {
            let sealed = match &mut conn.session {
                Some(session) => {
                    self.env.scratch.sealed.clear();
                    let plain = self.env.scratch.chain.contiguous().unwrap_or_default();
                    if session.seal(plain, &mut self.env.scratch.sealed).is_err() {
                        return self.close(key, Reset::Yes);
                    }
                    true
                }
                None => false,
            };
            self.scratch_to_socket(key, sealed);
            self.env.scratch.chain.clear();
        }
        self.after_output(key);
    }

    /// Collects the bytes of this turn in the scratch chain.
    fn gather(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        let Some(framing) = &conn.framing else { return };
        let plain = framing.is_plain_h1() && conn.session.is_none();
        let weave = if plain { CopyPolicy::Shared(SHARE_MIN) } else { CopyPolicy::Contiguous };
        self.env.scratch.chain.configure(weave, plain);
        let room = conn.room;
        let mut bound = Bound::new();
        while bound.goes_on()
            && let Some(conn) = self.conns.get_mut(key)
        {
            let Some(framing) = &mut conn.framing else { break };
            let left = (room as u64).saturating_sub(self.env.scratch.chain.len()) as usize;
            let mut bodies = Bodies {
                exchanges: &mut self.exchanges.live,
                io: &mut self.env.io,
                paced: &mut self.env.scratch.paced,
                roomy: &mut self.exchanges.roomy,
                family: &mut self.exchanges.family,
                around: bolide_engine::Around {
                    now: &self.env.now,
                    clock: &self.env.clock,
                    conn: &conn.info,
                    counters: &self.env.tallies,
                    pid: self.env.logs.pid(),
                },
            };
            let (chain, events) = (&mut self.env.scratch.chain, &mut self.env.scratch.events);
            framing.transmit(self.env.now, left, chain, events, &mut bodies);
            let pipelined =
                !conn.input.is_empty() && framing.wants_input() && !framing.is_closing();
            self.env.arm_paced();
            self.handle_events(Owner::Tcp(key));
            if !pipelined || self.env.scratch.chain.len() >= room as u64 {
                break;
            }
            // The next request of a pipeline: its answer leaves with this turn's write.
            let Some(conn) = self.conns.get_mut(key).filter(|conn| !conn.is_held()) else { break };
            let input = std::mem::take(&mut conn.input);
            let before = input.len();
            self.feed(key, &input);
            let left = self.conns.get(key).map_or(0, |conn| conn.input.len());
            if left == before {
                break;
            }
        }
    }

    /// Sends the sealed bytes, or the chain itself, and keeps what the socket does not take.
    fn scratch_to_socket(&mut self, key: SlabKey<TcpConn>, sealed: bool) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        let sent = if sealed {
            let mut records = SendChain::new(CopyPolicy::Contiguous);
            std::mem::swap(&mut self.env.scratch.records, &mut records);
            records.push_writing(|buffer| std::mem::swap(buffer, &mut self.env.scratch.sealed));
            let sent = self.env.io.send(conn.fd, &records);
            std::mem::swap(&mut self.env.scratch.records, &mut records);
            sent
        } else {
            self.env.io.send(conn.fd, &self.env.scratch.chain)
        };
        let chain =
            if sealed { &mut self.env.scratch.records } else { &mut self.env.scratch.chain };
        match sent {
            Sent::Bytes(n) if n == chain.len() => {
                conn.room = (conn.room * 2).min(ROOM_MAX);
            }
            Sent::Bytes(n) => {
                conn.blocked = true;
                conn.room = usize::try_from(n).unwrap_or(ROOM_MAX).clamp(ROOM_MIN, ROOM_MAX);
                keep_rest(chain, n, &mut conn.unsent);
                // A file that shrank ends a send as a full socket does, but nothing follows.
                if !is_intact(&mut self.env.io, conn.unsent.front()) {
                    self.env.scratch.records.clear();
                    return self.close(key, Reset::Yes);
                }
            }
            Sent::Dead | Sent::FileFailed => {
                self.env.scratch.records.clear();
                return self.close(key, Reset::Yes);
            }
        }
        self.env.scratch.records.clear();
    }

    /// Sends what earlier turns left over; true when nothing is left.
    pub(crate) fn flush(&mut self, key: SlabKey<TcpConn>) -> bool {
        let Some(conn) = self.conns.get_mut(key) else { return false };
        while let Some(segment) = conn.unsent.front_mut() {
            let len = segment_len(segment);
            if !is_intact(&mut self.env.io, Some(segment)) {
                self.close(key, Reset::Yes);
                return false;
            }
            match self.env.io.send_segment(conn.fd, segment) {
                Sent::Bytes(n) if n == len => {
                    conn.unsent.pop_front();
                }
                Sent::Bytes(n) => {
                    advance(segment, n);
                    // sendfile moves a bounded piece at a time; only a send of nothing means full.
                    let more = matches!(segment, Segment::File(_)) && n > 0;
                    conn.blocked = !more;
                    if more {
                        self.again_output.push(key);
                    }
                    self.rearm(key);
                    return false;
                }
                Sent::Dead | Sent::FileFailed => {
                    self.close(key, Reset::Yes);
                    return false;
                }
            }
        }
        conn.blocked = false;
        true
    }

    /// Decides what follows a write: more of it, the next request, or the end.
    fn after_output(&mut self, key: SlabKey<TcpConn>) {
        if self.conns.get(key).is_some_and(TcpConn::has_end) {
            self.handle_end(key);
        }
        let Some(conn) = self.conns.get_mut(key) else { return };
        if (self.env.draining || conn.outdated)
            && let Some(framing) = &mut conn.framing
            && framing.requests() > 0
        {
            conn.draining = true;
            framing.shutdown();
        }
        let Some(framing) = &conn.framing else {
            return self.rearm(key);
        };
        if framing.is_broken() && conn.unsent.is_empty() {
            return self.close(key, Reset::Yes);
        }
        if conn.is_finished() {
            return self.finish(key);
        }
        let idle = framing.is_idle();
        if idle && conn.unsent.is_empty() && conn.input.is_empty() {
            if conn.eof || conn.draining && framing.requests() == 0 {
                return self.close(key, Reset::No);
            }
            if conn.draining {
                return self.finish(key);
            }
        }
        let next_piece = matches!(conn.unsent.front(), Some(Segment::File(_))) && !conn.blocked;
        if next_piece || framing.has_output() && conn.unsent.is_empty() {
            self.again_output.push(key);
        }
        if conn.wants_input() {
            self.again.push(key);
        }
        self.rearm(key);
    }

    /// The last answer has left: ends the connection so that the peer can read it.
    fn finish(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.conns.get_mut(key) else { return };
        say_goodbye(&mut self.env.io, conn);
        let manners = *conn.manners();
        let lingers = conn.framing.as_ref().is_some_and(|framing| match manners.lingering {
            LingeringClose::Off if framing.is_plain_h1() => false,
            LingeringClose::Always => true,
            LingeringClose::Off | LingeringClose::On => framing.needs_lingering(),
        });
        if conn.eof || !lingers && !conn.draining {
            return self.close(key, Reset::No);
        }
        // Closing with unread bytes would make the kernel reset the connection, and the client
        // might lose the answer with it.
        self.env.io.shut_write(conn.fd);
        conn.lingering = true;
        conn.linger_until = self.env.now.mono.after(manners.lingering_time);
        conn.input = Vec::new();
        self.again.push(key);
        self.rearm(key);
    }
}

/// RFC 8446 §6.1: a close_notify is sent before the end of our side, unless an alert was.
pub(crate) fn say_goodbye(io: &mut impl Io, conn: &mut TcpConn) {
    let Some(session) = conn.session.as_mut().filter(|_| conn.unsent.is_empty()) else { return };
    let mut goodbye = Vec::new();
    session.close(&mut goodbye);
    if !goodbye.is_empty() {
        // A peer that has no room for two dozen bytes does not wait for them either.
        let _ = io.send_segment(conn.fd, &Segment::Bytes(Bytes::from(goodbye)));
    }
}

/// Whether what is to be sent is still what its head announced.
fn is_intact(io: &mut impl Io, segment: Option<&Segment>) -> bool {
    match segment {
        Some(Segment::File(range)) => is_same(io, &range.file, range.stamp),
        Some(Segment::Inline(..) | Segment::Bytes(_)) | None => true,
    }
}

pub(crate) fn segment_len(segment: &Segment) -> u64 {
    match segment {
        Segment::Inline(start, end) => (end - start) as u64,
        Segment::Bytes(bytes) => bytes.len() as u64,
        Segment::File(range) => range.len,
    }
}

pub(crate) fn advance(segment: &mut Segment, n: u64) {
    match segment {
        Segment::Inline(start, _) => *start += n as usize,
        Segment::Bytes(bytes) => {
            let _ = bytes.split_to(n as usize);
        }
        Segment::File(range) => {
            range.offset += n;
            range.len -= n;
        }
    }
}

/// Keeps all of `chain` behind its first `sent` bytes.
pub(crate) fn keep_rest(chain: &SendChain, mut sent: u64, unsent: &mut VecDeque<Segment>) {
    for segment in chain.segments() {
        let len = segment_len(segment);
        if sent >= len {
            sent -= len;
            continue;
        }
        let mut rest = match segment {
            Segment::Inline(start, end) => {
                Segment::Bytes(Bytes::copy_from_slice(chain.inline(*start, *end)))
            }
            Segment::Bytes(bytes) => Segment::Bytes(bytes.clone()),
            Segment::File(range) => Segment::File(range.clone()),
        };
        advance(&mut rest, sent);
        sent = 0;
        unsent.push_back(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::{keep_rest, segment_len};
    use bolide_base::{CopyPolicy, Segment, SendChain};
    use bytes::Bytes;
    use std::collections::VecDeque;

    #[test]
    fn what_was_not_taken_is_kept_from_its_first_byte_on() {
        let mut chain = SendChain::new(CopyPolicy::Shared(4));
        chain.push_slice(b"ab");
        chain.push_bytes(&Bytes::from_static(b"cdef"));
        chain.push_slice(b"gh");
        for sent in 0..8 {
            let mut unsent = VecDeque::new();
            keep_rest(&chain, sent, &mut unsent);
            let text: Vec<u8> = unsent
                .iter()
                .flat_map(|segment| match segment {
                    Segment::Bytes(bytes) => bytes.to_vec(),
                    _ => Vec::new(),
                })
                .collect();
            assert_eq!(text, b"abcdefgh"[sent as usize..]);
            assert_eq!(unsent.iter().map(segment_len).sum::<u64>(), 8 - sent);
        }
    }
}
