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
use bolide_conf::model::LogLevel;
use bolide_io::listen::Listener;
use bolide_io::{Fd, Interest, Io};

use crate::log::describe;
use crate::token::PollToken;

/// How long listeners rest unless a descriptor of ours becomes free before, as in nginx.
const REST: Duration = Duration::from_millis(500);

/// Error numbers of Linux.
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOBUFS: i32 = 105;

/// A listening stream socket.
#[derive(Debug)]
struct ListenSlot {
    socket: Arc<Listener>,
    listen: usize,
    /// Clients that wait are reported.
    is_watched: bool,
}

/// The listening stream sockets of a worker, and whether clients are taken.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// Their tokens are places in it, which they keep.
    slots: Vec<Option<ListenSlot>>,
    /// When listeners that rest are watched again at the latest.
    rests_until: Option<Instant>,
    /// When it was told last that clients cannot be taken.
    told: Option<Instant>,
    armed: Armed,
}

/// Whether an accept4() failed for want of something that the end of a connection gives back.
pub(crate) const fn is_dearth(errno: i32) -> bool {
    matches!(errno, EMFILE | ENFILE | ENOBUFS | ENOMEM)
}

impl Listeners {
    /// Whether listeners rest.
    #[inline]
    pub(crate) const fn rests(&self) -> bool {
        self.rests_until.is_some()
    }

    /// The socket at a place, and the listen that it belongs to. None where clients are not to be
    /// taken: what was reported before a listener was put to rest is no news.
    pub(crate) fn at(&self, slot: usize) -> Option<(Fd, usize)> {
        let listener = self.slots.get(slot)?.as_ref().filter(|listener| listener.is_watched)?;
        Some((listener.socket.fd(), listener.listen))
    }

    /// What to log, in nginx's words, as clients cannot be taken; once for each rest, however often
    /// descriptors become free meanwhile.
    pub(crate) fn tell_refused(&mut self, errno: i32, now: Instant) -> Option<(LogLevel, String)> {
        if self.told.is_some_and(|told| now < told.after(REST)) {
            return None;
        }
        self.told = Some(now);
        let level = if matches!(errno, EMFILE | ENFILE) { LogLevel::Crit } else { LogLevel::Alert };
        Some((level, format!("accept4() failed {}", describe(errno))))
    }

    /// Stops accepting for a while.
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

    /// Sees to it that listeners which rest are watched again in time.
    fn rest(&mut self, now: Instant, wheel: &mut DeadlineQueue) {
        let until = now.after(REST);
        self.rests_until = Some(until);
        wheel.arm(&mut self.armed, until, PollToken::Accepting.pack());
    }

    /// Watches the listeners that are not watched; those that the kernel refuses to watch rest.
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

    /// Listeners may have rested for long enough; whether they have.
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

    /// Takes over the sockets of a configuration and forgets the others; those that it has in
    /// common with the one before stay as they are. What is new is not watched yet.
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
                fresh.push(ListenSlot { socket, listen, is_watched: false });
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

    /// Takes no more clients.
    pub(crate) fn close(&mut self, io: &mut impl Io) {
        for slot in std::mem::take(&mut self.slots).into_iter().flatten() {
            io.unwatch(slot.socket.fd());
        }
    }
}
