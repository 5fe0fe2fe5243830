//! How a client damages its own connection, or makes it hard to serve.

use quinn_proto::Dir;

use super::conn::SimH3Conn;
use super::frame::{self, code, kind, uni};
use super::talk::CANCELLED;
use super::{Line, SimH3Client};
use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::scenario::{Habits, MILLI};

/// How a client behaves on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// As it should.
    Polite,
    /// It takes so many bytes at a time, and then nothing for a while.
    Sips {
        /// Bytes.
        bytes: usize,
        /// Nanoseconds.
        pause: u64,
    },
    /// It takes nothing, though it lives.
    Stalls,
    /// It gives requests up, once in so many actions.
    Fickle(u64),
    /// It goes without a word at that time.
    Vanishes(u64),
    /// It breaks a rule, once it is ready.
    Breaks,
    /// It changes its address, or its keys, once in so many actions.
    Moves(u64),
}

impl Manner {
    pub(super) fn any(chance: &mut Chance, habits: &Habits) -> Self {
        match chance.below(12) {
            0 => {
                let pause = chance.between(50, 400) * MILLI;
                return Self::Sips { bytes: 1000 + chance.size(8000), pause };
            }
            1 => return Self::Moves(chance.between(20, 200)),
            _ => {}
        }
        if !chance.one_in(habits.sabotage_in) {
            return Self::Polite;
        }
        match chance.below(4) {
            0 => Self::Stalls,
            1 => Self::Fickle(chance.between(5, 100)),
            2 => Self::Vanishes(chance.below(3000 * MILLI)),
            _ => Self::Breaks,
        }
    }
}

impl SimH3Client {
    /// Does what the client should not; whether it did.
    pub(super) fn misbehave(&mut self, kernel: &mut Kernel, line: &mut Line) -> bool {
        let chance = &mut self.base.chance;
        match line.manner {
            Manner::Fickle(in_times) if chance.one_in(in_times) => {
                let open: Vec<u64> = line.talk.streams.keys().copied().collect();
                if open.is_empty() {
                    return false;
                }
                let id = open[chance.index(open.len())];
                line.talk.streams.remove(&id);
                line.talk.readable.remove(&id);
                if chance.one_in(2) {
                    line.conn.cancel(id, CANCELLED);
                } else {
                    line.conn.reset(id, CANCELLED);
                }
                kernel.tell(|| format!("request {id} is given up"));
                self.base.forgiven += 1;
                true
            }
            Manner::Moves(in_times) if !line.is_early && chance.one_in(in_times) => {
                // RFC 9001 §6.1: not before the handshake or the last change was confirmed; the
                // library does not look.
                let is_sure = line.has_answers && kernel.nanos > line.began + 1000 * MILLI;
                if is_sure && !line.has_new_keys && chance.one_in(2) {
                    line.has_new_keys = true;
                    line.conn.quic.force_key_update();
                    return true;
                }
                kernel.move_host(line.conn.host);
                if chance.one_in(2) {
                    line.conn.quic.local_address_changed();
                }
                true
            }
            Manner::Breaks if !line.is_spoiled && chance.one_in(4) => {
                line.is_spoiled = true;
                let number = chance.below(RULES);
                kernel.tell(|| format!("rule {number} is broken"));
                break_rule(&mut line.conn, &mut line.talk.own, number, chance);
                true
            }
            Manner::Vanishes(after) if kernel.nanos >= line.began + after => {
                // It hears nothing any more, and is not missed by its own side.
                kernel.abandon_host(line.conn.host);
                line.is_spoiled = true;
                line.leaves_at = Some(kernel.nanos);
                true
            }
            _ => false,
        }
    }
}

/// Ways to break a rule of HTTP/3.
const RULES: u64 = 18;

/// Breaks one of the rules.
fn break_rule(conn: &mut SimH3Conn, own: &mut [(u64, Vec<u8>)], number: u64, chance: &mut Chance) {
    let mut control = Vec::new();
    let mut request = Vec::new();
    match number {
        0 => frame::push(&mut control, kind::SETTINGS, &[]),
        1 => frame::push(&mut control, kind::HEADERS, b"\0\0\xd1"),
        2 => frame::push(&mut control, [2, 6, 8, 9][chance.index(4)], b"none"),
        3 => frame::push(&mut control, kind::GOAWAY, b""),
        4 => {
            frame::push(&mut control, kind::MAX_PUSH_ID, &[9]);
            frame::push(&mut control, kind::MAX_PUSH_ID, &[3]);
        }
        5 => frame::push(&mut control, kind::CANCEL_PUSH, &[1]),
        6 => frame::push(&mut request, kind::DATA, b"early"),
        7 => frame::push(&mut request, kind::SETTINGS, &[]),
        8 => frame::push(&mut request, kind::HEADERS, b"\0\0\xff\xff\xff\xff\xff\xff\xff"),
        9 => frame::push(&mut request, kind::HEADERS, b"\x09\0\x80"),
        10 => frame::encode_header(&mut request, kind::HEADERS, 1 << 40),
        11 => frame::encode_header(&mut request, kind::DATA, 100),
        12 => request.push(0xff),
        13 => {}
        _ => return break_stream(conn, own, number, chance),
    }
    if let Some((_, out)) = own.first_mut().filter(|_| !control.is_empty()) {
        return out.extend_from_slice(&control);
    }
    if let Some(id) = conn.open(Dir::Bi) {
        // What is not taken is not sent.
        let _ = conn.write(id, &request);
        conn.finish(id);
    }
}

/// Breaks a rule about streams.
fn break_stream(
    conn: &mut SimH3Conn,
    own: &mut [(u64, Vec<u8>)],
    number: u64,
    chance: &mut Chance,
) {
    let known = own.get(chance.index(own.len().clamp(1, 3))).map(|(id, _)| *id);
    match number {
        14 => known.into_iter().for_each(|id| conn.finish(id)),
        15 => known.into_iter().for_each(|id| conn.reset(id, code::NO_ERROR)),
        16 => {
            let kind = [uni::PUSH, uni::CONTROL, uni::ENCODER][chance.index(3)];
            if let Some(id) = conn.open(Dir::Uni) {
                let _ = conn.write(id, &[kind as u8]);
            }
        }
        _ => {
            let which = 1 + chance.index(2);
            if let Some((_, out)) = own.get_mut(which) {
                out.extend_from_slice(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
            }
        }
    }
}
