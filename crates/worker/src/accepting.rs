//! Listening sockets, and pausing when accept4() fails.
//!
//! Owns which listeners epoll watches. Easiest to break: a connection that is not accepted stays
//! queued, and a watched listener is then reported in every turn. So after a failed accept4() the
//! listeners are unwatched until a descriptor is free or 500 ms have passed, as in nginx.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::Instant;
use bolide_base::deadline_queue::{Armed, DeadlineQueue};
use bolide_base::errno::{EMFILE, ENFILE, ENOBUFS, ENOMEM, reason};
use bolide_base::limits::ACCEPTS_PER_TURN;
use bolide_conf::model::LogLevel;
use bolide_io::listen::Listener;
use bolide_io::{Fd, Interest, Io, SocketPeer};

use crate::token::PollToken;

/// How long listeners pause unless a descriptor becomes free before, as in nginx.
const REST: Duration = Duration::from_millis(500);

/// The number of connections to accept from one listener in one turn.
///
/// An accept4() that finds the queue empty costs as much as a successful one. The listener is
/// level-triggered, so a batch may end before the queue is empty, and it grows if it keeps doing
/// so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcceptBatch {
    len: usize,
    /// Consecutive complete batches of this length.
    whole: u8,
}

/// Complete batches after which the next one is longer.
const WHOLE_BATCHES: u8 = 4;

impl AcceptBatch {
    const fn new() -> Self {
        Self { len: 1, whole: 0 }
    }

    /// The most connections to accept.
    pub(crate) const fn len(self) -> usize {
        self.len
    }

    /// Adapts to a batch that accepted `taken` connections.
    fn learn(&mut self, taken: usize) {
        debug_assert!(taken <= self.len, "no more is taken than a batch has");
        if taken < self.len {
            (self.len, self.whole) = (taken.max(1), 0);
            return;
        }
        self.whole += 1;
        if self.whole == WHOLE_BATCHES {
            (self.len, self.whole) = ((self.len * 2).min(ACCEPTS_PER_TURN), 0);
        }
    }
}

/// A listening stream socket.
#[derive(Debug)]
pub(crate) struct ListenSlot {
    socket: Arc<Listener>,
    /// The index of its listen.
    pub(crate) listen: usize,
    /// The local address of its connections, unless it is a wildcard.
    pub(crate) near: Option<SocketPeer>,
    pub(crate) batch: AcceptBatch,
    /// Whether epoll watches it.
    is_watched: bool,
}

impl ListenSlot {
    fn new(socket: Arc<Listener>, listen: usize) -> Self {
        let near = socket.local().ok().filter(|at| !at.ip().to_canonical().is_unspecified());
        let near = near.map(SocketPeer::Inet);
        Self { socket, listen, near, batch: AcceptBatch::new(), is_watched: false }
    }

    pub(crate) fn fd(&self) -> Fd {
        self.socket.fd()
    }
}

/// The listening stream sockets of a worker, and whether it accepts.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// Tokens contain indices into it, which are stable.
    slots: Vec<Option<ListenSlot>>,
    /// When paused listeners are watched again at the latest.
    rests_until: Option<Instant>,
    /// When the last accept failure was logged.
    logged_at: Option<Instant>,
    armed: Armed,
}

/// Whether an accept4() failed for lack of a resource that closing a connection frees.
pub(crate) const fn is_dearth(errno: i32) -> bool {
    matches!(errno, EMFILE | ENFILE | ENOBUFS | ENOMEM)
}

impl Listeners {
    /// Whether listeners are paused.
    #[inline]
    pub(crate) const fn rests(&self) -> bool {
        self.rests_until.is_some()
    }

    /// The socket at an index. None while listeners are paused: an earlier report does not count.
    pub(crate) fn at(&self, slot: usize) -> Option<&ListenSlot> {
        self.slots.get(slot)?.as_ref().filter(|listener| listener.is_watched)
    }

    /// Records how many connections a batch accepted.
    pub(crate) fn learn_batch(&mut self, slot: usize, taken: usize) {
        if let Some(Some(listener)) = self.slots.get_mut(slot) {
            listener.batch.learn(taken);
        }
    }

    /// The log message for a failed accept, in nginx's words; once per pause, however often
    /// descriptors become free meanwhile.
    pub(crate) fn accept_failure(
        &mut self,
        errno: i32,
        now: Instant,
    ) -> Option<(LogLevel, String)> {
        if self.logged_at.is_some_and(|logged_at| now < logged_at.after(REST)) {
            return None;
        }
        self.logged_at = Some(now);
        let level = if matches!(errno, EMFILE | ENFILE) { LogLevel::Crit } else { LogLevel::Alert };
        Some((level, format!("accept4() failed ({})", reason(errno))))
    }

    /// Pauses accepting.
    pub(crate) fn put_to_rest(
        &mut self,
        io: &mut impl Io,
        now: Instant,
        wheel: &mut DeadlineQueue,
    ) {
        for listener in self.slots.iter_mut().flatten().filter(|one| one.is_watched) {
            io.unwatch(listener.socket.fd());
            listener.is_watched = false;
        }
        self.rest(now, wheel);
        debug_assert!(self.rests(), "what is not watched is watched again");
    }

    /// Sets the deadline at which paused listeners are watched again.
    fn rest(&mut self, now: Instant, wheel: &mut DeadlineQueue) {
        let until = now.after(REST);
        self.rests_until = Some(until);
        wheel.arm(&mut self.armed, until, PollToken::Accepting.pack());
    }

    /// Watches all listeners; those that the kernel refuses to watch pause.
    pub(crate) fn watch(&mut self, io: &mut impl Io, now: Instant, wheel: &mut DeadlineQueue) {
        self.rests_until = None;
        let mut are_watched = true;
        for (slot, place) in self.slots.iter_mut().enumerate() {
            let Some(listener) = place.as_mut().filter(|one| !one.is_watched) else { continue };
            let token = PollToken::Listener(slot as u32).pack();
            listener.is_watched = io.watch(listener.socket.fd(), token, Interest::Level);
            are_watched &= listener.is_watched;
        }
        if !are_watched {
            self.rest(now, wheel);
        }
        debug_assert!(
            self.rests() || self.slots.iter().flatten().all(|one| one.is_watched),
            "a listener is watched, or will be"
        );
    }

    /// Ends the pause if its time is over; returns whether it is.
    pub(crate) fn expire(&mut self, at: Instant, now: Instant, wheel: &mut DeadlineQueue) -> bool {
        self.armed.fired(at);
        match self.rests_until {
            Some(until) if until > now => {
                wheel.arm(&mut self.armed, until, PollToken::Accepting.pack());
                false
            }
            Some(_) => true,
            None => false,
        }
    }

    /// Uses the sockets of a configuration and closes the others; those that it shares with the
    /// previous one stay as they are. New ones are not watched yet.
    pub(crate) fn replace(
        &mut self,
        io: &mut impl Io,
        sockets: impl Iterator<Item = (usize, Arc<Listener>)>,
    ) {
        let known = self.slots.iter().enumerate();
        let known = known.filter_map(|(slot, known)| Some((known.as_ref()?.socket.fd(), slot)));
        let mut old: HashMap<Fd, usize> = known.collect();
        let mut fresh = Vec::new();
        for (listen, socket) in sockets {
            if let Some(slot) = old.remove(&socket.fd()) {
                if let Some(known) = &mut self.slots[slot] {
                    (known.socket, known.listen) = (socket, listen);
                }
            } else {
                fresh.push(ListenSlot::new(socket, listen));
            }
        }
        for (fd, slot) in old {
            io.unwatch(fd);
            self.slots[slot] = None;
        }
        let mut free = 0;
        for slot in fresh {
            free += self.slots[free..].iter().take_while(|known| known.is_some()).count();
            match self.slots.get_mut(free) {
                Some(place) => {
                    debug_assert!(place.is_none(), "a listener keeps its place");
                    *place = Some(slot);
                }
                None => self.slots.push(Some(slot)),
            }
        }
    }

    /// Stops accepting for good.
    pub(crate) fn close(&mut self, io: &mut impl Io) {
        for slot in std::mem::take(&mut self.slots).into_iter().flatten() {
            io.unwatch(slot.socket.fd());
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::limits::ACCEPTS_PER_TURN;

    use super::AcceptBatch;

    /// Takes batches while `arriving` clients come before each; returns how many wait after each.
    fn waiting_behind(arriving: usize, batches: usize) -> (Vec<usize>, usize) {
        let (mut batch, mut waiting, mut in_vain) = (AcceptBatch::new(), 0, 0);
        let left = (0..batches).map(|_| {
            waiting += arriving;
            let taken = waiting.min(batch.len());
            in_vain += usize::from(taken < batch.len());
            waiting -= taken;
            batch.learn(taken);
            waiting
        });
        (left.collect(), in_vain)
    }

    #[test]
    fn single_clients_seldom_cost_a_call_in_vain() {
        let (left, in_vain) = waiting_behind(1, 1000);
        assert!(left.iter().all(|&waiting| waiting == 0));
        assert!(in_vain <= 250, "{in_vain} of 1000");
    }

    #[test]
    fn a_batch_grows_until_it_takes_all_that_come() {
        for arriving in [2, 3, 7, 20, ACCEPTS_PER_TURN - 4] {
            let (left, _) = waiting_behind(arriving, 2000);
            assert_eq!(left.last(), Some(&0), "{arriving} a turn");
            assert!(left.iter().all(|&waiting| waiting <= 30 * arriving), "{arriving} a turn");
        }
    }

    #[test]
    fn a_batch_takes_one_at_least_and_has_a_bound() {
        let mut batch = AcceptBatch::new();
        for _ in 0..1000 {
            batch.learn(batch.len());
            assert!((1..=ACCEPTS_PER_TURN).contains(&batch.len()));
        }
        batch.learn(0);
        assert_eq!(batch.len(), 1);
    }
}
