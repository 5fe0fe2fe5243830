//! The processes of PHP pools: each serves one connection at a time, others wait in the socket.
//!
//! Checks that a pool gets no more requests than it has children, and that no place is given back
//! while its process works in silence: the request that takes such a place finds no process. A
//! process that goes on after its connection was closed ends where it writes next.

use super::{After, Conn};
use crate::kernel::Kernel;
use crate::php_pools::{self, REQUEST_TIMEOUT, TIMEOUTS_MAX};

/// How far a connection to a pool has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeatState {
    /// No process has taken it.
    Waiting,
    /// A process has it.
    Taken,
}

/// The place of a connection to a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pool: usize,
    state: SeatState,
    /// When it was connected.
    since: u64,
    /// When a process took it.
    taken_at: u64,
    /// The close by the worker was seen.
    is_closed: bool,
    /// The process has written something.
    pub(super) has_written: bool,
    /// The response was written completely.
    pub(super) is_over: bool,
}

impl Seat {
    /// The place of a new connection to this address, if it is that of a pool.
    pub(super) fn at(address: &str, now: u64) -> Option<Self> {
        Some(Self {
            pool: php_pools::pool_at(address)?,
            state: SeatState::Waiting,
            since: now,
            taken_at: 0,
            is_closed: false,
            has_written: false,
            is_over: false,
        })
    }

    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self.state, SeatState::Waiting)
    }

    /// Whether the pool speaks LSAPI.
    pub(super) const fn has_lsapi(&self) -> bool {
        self.pool == php_pools::LSAPI
    }

    /// When the process is killed that takes too long.
    pub(super) const fn killed_at(&self) -> u64 {
        self.taken_at + REQUEST_TIMEOUT
    }
}

/// Free processes take the connections that wait, and the rules of places are checked.
pub(super) fn settle(conns: &mut [Conn], children: &[usize], kernel: &mut Kernel) -> bool {
    let mut any = false;
    for (pool, most) in children.iter().enumerate() {
        let (mut taken, mut asked) = (0, 0);
        for conn in conns.iter() {
            let Some(seat) = conn.seat.filter(|seat| seat.pool == pool) else { continue };
            let socket = kernel.sockets.get(conn.fd);
            let is_open = socket.is_some_and(|socket| socket.closed.is_none());
            taken += usize::from(seat.state == SeatState::Taken);
            asked += usize::from(is_open && !seat.is_over);
        }
        if asked > *most {
            let name = php_pools::name(pool);
            kernel.violations.push(format!("pool {name}: {asked} requests, {most} children"));
        }
        for conn in conns.iter_mut() {
            let Some(seat) = conn.seat.as_mut().filter(|seat| seat.pool == pool) else { continue };
            if seat.is_waiting() && taken < *most {
                taken += 1;
                any = true;
                (seat.state, seat.taken_at) = (SeatState::Taken, kernel.nanos);
            }
        }
    }
    for conn in conns.iter_mut() {
        check_close(conn, kernel);
    }
    any
}

/// Checks a close by the worker.
fn check_close(conn: &mut Conn, kernel: &mut Kernel) {
    let Some(seat) = &mut conn.seat else { return };
    let Some(socket) = kernel.sockets.get(conn.fd) else { return };
    if socket.killed {
        // A process that went on would delay others, and nothing would say so.
        conn.rests_until = conn.rests_until.min(kernel.nanos);
    }
    if seat.is_closed || socket.closed.is_none() {
        return;
    }
    seat.is_closed = true;
    let was_sent = !conn.input.is_empty() || !conn.params.is_empty() || !socket.outbound.is_empty();
    let is_given_up = kernel.nanos >= seat.since + TIMEOUTS_MAX * REQUEST_TIMEOUT;
    let may_close = seat.has_written || seat.is_over || socket.killed || kernel.draining;
    let ends = matches!(conn.after, After::Close { .. }) && conn.rests_until <= kernel.nanos;
    if was_sent && !may_close && !is_given_up && !ends {
        let number = socket.number;
        kernel.violations.push(format!("#{number}: the place of a silent process was given back"));
    }
}
