//! Accepting connections, and pausing when accept4() fails.
//!
//! Owns which listeners epoll watches. Easiest to break: a connection that is not accepted stays
//! queued, and a watched listener is then reported in every turn. So after a failed accept4() the
//! listeners are unwatched until a descriptor is free or 500 ms have passed, as in nginx.

use std::time::Duration;

use bolide_base::Instant;
use bolide_base::deadline_queue::Armed;
use bolide_base::limits::ACCEPTS_PER_TURN;
use bolide_conf::model::LogLevel;
use bolide_engine::TallyCount;
use bolide_io::{Accepted, Interest, Io};

use crate::log::describe;
use crate::token::PollToken;
use crate::worker::Worker;

/// How long listeners rest unless a descriptor of ours becomes free before, as in nginx.
const REST: Duration = Duration::from_millis(500);

/// Error numbers of Linux.
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOBUFS: i32 = 105;

/// Whether clients are taken.
#[derive(Debug, Default)]
pub(crate) struct Accepting {
    /// When listeners that rest are watched again at the latest.
    rests_until: Option<Instant>,
    /// When it was told last that clients cannot be taken.
    told: Option<Instant>,
    armed: Armed,
}

impl Accepting {
    /// Whether listeners rest.
    pub(crate) const fn rests(&self) -> bool {
        self.rests_until.is_some()
    }
}

impl<I: Io> Worker<I> {
    /// Takes waiting clients, a bounded number per turn.
    pub(crate) fn accept(&mut self, slot: usize) {
        let Some(Some(listener)) = self.listeners.get(slot) else { return };
        // What was reported before it was put to rest is no news.
        if !listener.is_watched {
            return;
        }
        let (fd, listen) = (listener.socket.fd(), listener.listen);
        for _ in 0..ACCEPTS_PER_TURN {
            match self.io.accept(fd) {
                Accepted::Client(client) => {
                    self.tally.add(TallyCount::Accepted);
                    self.admit(listen, &client);
                }
                Accepted::QueueEmpty => return,
                Accepted::Gone => {}
                Accepted::Failed(errno) => {
                    self.tell_refused(errno);
                    let is_dearth = matches!(errno, EMFILE | ENFILE | ENOBUFS | ENOMEM);
                    if !is_dearth || !(self.end_last_unwaited() || self.shed_idle()) {
                        return self.rest_listeners();
                    }
                }
            }
        }
    }

    /// Logs in nginx's words that clients cannot be taken; once for each rest, however often
    /// descriptors become free meanwhile.
    fn tell_refused(&mut self, errno: i32) {
        let now = self.now.mono;
        if self.accepting.told.is_some_and(|told| now < told.after(REST)) {
            return;
        }
        self.accepting.told = Some(now);
        let level = if matches!(errno, EMFILE | ENFILE) { LogLevel::Crit } else { LogLevel::Alert };
        self.log_server(level, &format!("accept4() failed {}", describe(errno)));
    }

    /// Stops accepting for a while.
    fn rest_listeners(&mut self) {
        for listener in self.listeners.iter_mut().flatten().filter(|one| one.is_watched) {
            self.io.unwatch(listener.socket.fd());
            listener.is_watched = false;
        }
        self.rest();
    }

    /// Sees to it that listeners which rest are watched again in time.
    fn rest(&mut self) {
        let until = self.now.mono.after(REST);
        self.accepting.rests_until = Some(until);
        self.wheel.arm(&mut self.accepting.armed, until, PollToken::Accepting.pack());
    }

    /// Watches the listeners that are not watched; those that the kernel refuses to watch rest.
    pub(crate) fn watch_listeners(&mut self) {
        self.accepting.rests_until = None;
        let mut are_watched = true;
        for (slot, place) in self.listeners.iter_mut().enumerate() {
            let Some(listener) = place.as_mut().filter(|one| !one.is_watched) else { continue };
            let token = PollToken::Listener(slot as u32).pack();
            listener.is_watched = self.io.watch(listener.socket.fd(), token, Interest::Level);
            are_watched &= listener.is_watched;
        }
        if !are_watched {
            self.rest();
        }
    }

    /// A descriptor of ours became free.
    #[inline]
    pub(crate) fn note_freed(&mut self) {
        if self.accepting.rests() {
            self.watch_listeners();
        }
    }

    /// Listeners may have rested for long enough.
    pub(crate) fn expire_accepting(&mut self, at: Instant) {
        self.accepting.armed.fired(at);
        match self.accepting.rests_until {
            Some(until) if until > self.now.mono => {
                self.wheel.arm(&mut self.accepting.armed, until, PollToken::Accepting.pack());
            }
            Some(_) => self.watch_listeners(),
            None => {}
        }
    }
}
