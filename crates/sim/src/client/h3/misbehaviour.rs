//! How a client violates the protocol, or makes its connection hard to serve.

use quinn_proto::Dir;

use super::conn::SimH3Conn;
use super::frame::{self, code, kind, uni};
use super::http_layer::CANCELLED;
use super::{H3Session, SimH3Client};
use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::scenario::ClientProfile;
use crate::time::MILLI;

/// The behaviour of a client on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3Behaviour {
    /// No fault.
    Polite,
    /// It reads a few bytes at a time, with pauses.
    SlowReads {
        /// Bytes.
        bytes: usize,
        /// Nanoseconds.
        pause: u64,
    },
    /// It reads nothing, but keeps the connection alive.
    StopsReading,
    /// It cancels requests, once in so many steps.
    Cancels(u64),
    /// It disappears silently at that time.
    Vanishes(u64),
    /// It breaks a rule of HTTP/3.
    BreaksRules,
    /// It changes its address or its keys, once in so many steps.
    Migrates(u64),
}

impl H3Behaviour {
    pub(super) fn any(chance: &mut Chance, profile: &ClientProfile) -> Self {
        match chance.below(12) {
            0 => {
                let pause = chance.between(50, 400) * MILLI;
                return Self::SlowReads { bytes: 1000 + chance.size(8000), pause };
            }
            1 => return Self::Migrates(chance.between(20, 200)),
            _ => {}
        }
        if !chance.one_in(profile.client_fault_in) {
            return Self::Polite;
        }
        match chance.below(4) {
            0 => Self::StopsReading,
            1 => Self::Cancels(chance.between(5, 100)),
            2 => Self::Vanishes(chance.below(3000 * MILLI)),
            _ => Self::BreaksRules,
        }
    }
}

impl SimH3Client {
    /// Injects the fault of this connection. Returns whether it did.
    pub(super) fn misbehave(&mut self, kernel: &mut Kernel, session: &mut H3Session) -> bool {
        let chance = &mut self.base.chance;
        match session.behaviour {
            H3Behaviour::Cancels(in_times) if chance.one_in(in_times) => {
                let open: Vec<u64> = session.http.streams.keys().copied().collect();
                if open.is_empty() {
                    return false;
                }
                let id = open[chance.index(open.len())];
                session.http.streams.remove(&id);
                session.http.readable.remove(&id);
                if chance.one_in(2) {
                    session.conn.cancel(id, CANCELLED);
                } else {
                    session.conn.reset(id, CANCELLED);
                }
                kernel.trace(|| format!("request {id} is given up"));
                self.base.excused += 1;
                true
            }
            H3Behaviour::Migrates(in_times) if !session.is_early && chance.one_in(in_times) => {
                // RFC 9001 §6.1: no key update before the handshake or the last update is
                // confirmed; the library does not check that.
                let is_sure = session.has_answers && kernel.nanos > session.began + 1000 * MILLI;
                if is_sure && !session.has_new_keys && chance.one_in(2) {
                    session.has_new_keys = true;
                    session.conn.quic.force_key_update();
                    return true;
                }
                kernel.move_host(session.conn.host);
                if chance.one_in(2) {
                    session.conn.quic.local_address_changed();
                }
                true
            }
            H3Behaviour::BreaksRules if !session.is_unchecked && chance.one_in(4) => {
                session.is_unchecked = true;
                let number = chance.below(RULES);
                kernel.trace(|| format!("rule {number} is broken"));
                break_rule(&mut session.conn, &mut session.http.own, number, chance);
                true
            }
            H3Behaviour::Vanishes(after) if kernel.nanos >= session.began + after => {
                // The client neither receives nor sends any more.
                kernel.abandon_host(session.conn.host);
                session.is_unchecked = true;
                session.leaves_at = Some(kernel.nanos);
                true
            }
            _ => false,
        }
    }
}

/// The number of rules that `break_rule` can break.
const RULES: u64 = 18;

/// Breaks one rule.
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
        // Bytes that the stream does not accept are not sent.
        let _ = conn.write(id, &request);
        conn.finish(id);
    }
}

/// Breaks a rule about unidirectional streams.
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
