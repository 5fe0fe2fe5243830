//! Output of stream sockets: queued bytes, one gathered write per turn, and what follows it.

use bolide_base::{Segment, SlabKey};
use bolide_conf::model::LingeringClose;
use bolide_io::{AfterSend, Io, Reset, Sent};
use bytes::Bytes;

use crate::endings::{EndOfSocket, SocketEnd};
use crate::env::WorkerEnv;
use crate::segments::{advance, keep_rest, segment_len};
use crate::shortened;
use crate::tcp::{ROOM_MIN, TcpConn};
use crate::tcp_side::TcpSide;

/// The most bytes to pull for one connection in one turn.
const ROOM_MAX: usize = 256 * 1024;

/// The result of sending queued bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Nothing is left.
    All,
    /// The socket is full, or more follows in the next turn.
    Part,
    /// The connection is dead.
    Dead,
}

impl TcpSide {
    /// Sends queued bytes of earlier turns.
    pub(crate) fn flush<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        env: &mut WorkerEnv<I>,
    ) -> Flushed {
        let Some(conn) = self.conns.get_mut(key) else { return Flushed::Part };
        while let Some(segment) = conn.unsent.front_mut() {
            let len = segment_len(segment);
            match env.io.send_segment(conn.fd, segment) {
                Sent::Bytes(n) if n == len => {
                    conn.unsent.pop_front();
                }
                Sent::Bytes(n) => {
                    advance(segment, n);
                    // sendfile moves a bounded piece; only a send of nothing means a full socket.
                    let more = matches!(segment, Segment::File(_)) && n > 0;
                    conn.blocked = !more;
                    if more {
                        self.again_output.push(key);
                    }
                    self.rearm(key, env);
                    return Flushed::Part;
                }
                Sent::FileFailed => {
                    if let Some(Segment::File(range)) = conn.unsent.front() {
                        shortened::record_truncated(env, range);
                    }
                    return Flushed::Dead;
                }
                Sent::Dead => return Flushed::Dead,
            }
        }
        conn.blocked = false;
        Flushed::All
    }

    /// Sends the scratch chain, encrypted over TLS; keeps what the socket does not take. False if
    /// the connection is dead.
    pub(crate) fn send<I: Io>(&mut self, key: SlabKey<TcpConn>, env: &mut WorkerEnv<I>) -> bool {
        let Some(conn) = self.conns.get_mut(key) else { return true };
        debug_assert!(conn.unsent.is_empty(), "what was left over is sent before");
        let chain = &env.scratch.chain;
        let sealed = match &mut conn.session {
            Some(session) => {
                env.scratch.sealed.clear();
                let plain = chain.contiguous().unwrap_or_default();
                debug_assert!(plain.len() as u64 == chain.len(), "records have one source");
                if session.seal(plain, &mut env.scratch.sealed).is_err() {
                    return false;
                }
                true
            }
            None => false,
        };
        env.journal_purges();
        let then = if conn.ends_in_order() { AfterSend::End } else { AfterSend::Nothing };
        let (sent, len) = if sealed {
            let records = env.scratch.sealed.bytes();
            (env.io.send_bytes(conn.fd, records, then), records.len() as u64)
        } else {
            (env.io.send(conn.fd, &env.scratch.chain, then), env.scratch.chain.len())
        };
        match sent {
            Sent::Bytes(n) if n == len => {
                conn.room = (conn.room * 2).min(ROOM_MAX);
            }
            Sent::Bytes(n) => {
                debug_assert!(n < len, "a socket takes no more than there is");
                conn.blocked = true;
                conn.room = usize::try_from(n).unwrap_or(ROOM_MAX).clamp(ROOM_MIN, ROOM_MAX);
                if sealed {
                    let rest = &env.scratch.sealed.bytes()[n as usize..];
                    conn.unsent.push_back(Segment::Bytes(Bytes::copy_from_slice(rest)));
                } else {
                    keep_rest(&env.scratch.chain, n, &mut conn.unsent);
                }
                // A shortened file ends a send as a full socket does, but nothing follows.
                if let Some(Segment::File(range)) = conn.unsent.front()
                    && env.io.stat(&range.file).is_ok_and(|now| now.size <= range.offset)
                {
                    shortened::record_truncated(env, range);
                    return false;
                }
            }
            Sent::FileFailed => {
                shortened::record_truncated_file(env);
                return false;
            }
            Sent::Dead => return false,
        }
        true
    }

    /// Decides what follows a write: more output, the next request, or the end; then it returns how
    /// to close the connection.
    pub(crate) fn after_output<I: Io>(
        &mut self,
        key: SlabKey<TcpConn>,
        env: &mut WorkerEnv<I>,
    ) -> Option<Reset> {
        let conn = self.conns.get_mut(key)?;
        if env.draining || conn.ends_outdated() {
            conn.end_with_requests();
        }
        let Some(framing) = &conn.framing else {
            self.rearm(key, env);
            return None;
        };
        debug_assert!(framing.is_broken() || !framing.hides_break(), "only a break is hidden");
        if framing.is_broken() && conn.unsent.is_empty() {
            return Some(if framing.hides_break() { Reset::Yes } else { Reset::No });
        }
        if conn.is_finished() {
            return self.finish(key, env);
        }
        // A GOAWAY may have to follow what was just sent.
        let idle = framing.is_idle() && !framing.has_output();
        if idle && conn.unsent.is_empty() && conn.input.is_empty() {
            if conn.eof || conn.draining && framing.requests() == 0 {
                return Some(Reset::No);
            }
            if conn.draining {
                return self.finish(key, env);
            }
        }
        let next_piece = matches!(conn.unsent.front(), Some(Segment::File(_))) && !conn.blocked;
        if next_piece || framing.has_output() && conn.unsent.is_empty() {
            self.again_output.push(key);
        }
        if conn.wants_input() {
            self.again.push(key);
        }
        self.rearm(key, env);
        None
    }

    /// After the last response: ends the connection so that the peer can read it, or returns how to
    /// close it.
    fn finish<I: Io>(&mut self, key: SlabKey<TcpConn>, env: &mut WorkerEnv<I>) -> Option<Reset> {
        let conn = self.conns.get_mut(key)?;
        debug_assert!(conn.unsent.is_empty() && !conn.lingering, "all of the answer has left");
        let manners = *conn.manners();
        let lingers = conn.framing.as_ref().is_some_and(|framing| match manners.lingering {
            LingeringClose::Off if framing.is_plain_h1() => false,
            LingeringClose::Always => true,
            LingeringClose::Off | LingeringClose::On => framing.needs_lingering(),
        });
        if conn.eof || !lingers && !conn.draining {
            return Some(Reset::No);
        }
        let close_notify = conn.close_notify();
        // Closing with unread bytes would make the kernel reset the connection, and the client
        // could lose the response.
        env.end(SocketEnd { fd: conn.fd, close_notify, how: EndOfSocket::Writing });
        conn.lingering = true;
        conn.input = Vec::new();
        self.again.push(key);
        self.rearm(key, env);
        None
    }
}
