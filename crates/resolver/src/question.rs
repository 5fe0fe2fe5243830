//! A name that is being asked for: its two halves, and the requests that wait for both.

use std::net::IpAddr;

use bolide_base::Instant;

use crate::message::Family;
use crate::resolver::Transport;

/// A name that is being asked for.
#[derive(Debug)]
pub(crate) struct NameQuestion {
    /// Tells it from earlier and later questions for the name.
    pub(crate) serial: u64,
    /// A, then AAAA, as far as they are wanted.
    pub(crate) halves: Vec<QuestionHalf>,
    /// The server that was asked last.
    pub(crate) server: usize,
    /// All servers that were asked: only they may answer.
    pub(crate) asked: Vec<usize>,
    /// When it is asked again.
    pub(crate) resend_at: Instant,
    /// Whether another server is asked at once if this one cannot be.
    pub(crate) may_retry: bool,
    /// The code of a half that failed; 0 if none did.
    pub(crate) code: u8,
    /// The smallest TTL so far, in seconds.
    pub(crate) ttl: u32,
    /// Waiters; some may have left.
    pub(crate) waiters: Vec<u64>,
    /// How many of them have not.
    pub(crate) live: usize,
}

/// The question for addresses of one family.
#[derive(Debug)]
pub(crate) struct QuestionHalf {
    pub(crate) family: Family,
    pub(crate) id: u16,
    pub(crate) message: Vec<u8>,
    /// How it is asked.
    pub(crate) transport: Transport,
    /// The addresses; `None` until it is answered.
    pub(crate) found: Option<Vec<IpAddr>>,
}

impl NameQuestion {
    /// The half that asks for `family` and is not answered yet.
    pub(crate) fn unanswered(&mut self, family: Family) -> Option<&mut QuestionHalf> {
        self.halves.iter_mut().find(|half| half.family == family && half.found.is_none())
    }

    /// Whether a half is not answered yet.
    pub(crate) fn is_open(&self) -> bool {
        self.halves.iter().any(|half| half.found.is_none())
    }

    /// All addresses found so far, A before AAAA.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.halves.iter().filter_map(|half| half.found.as_ref()).flatten().copied().collect()
    }

    /// What is to be sent: the halves that have no answer.
    pub(crate) fn messages(&self) -> Vec<(Transport, Vec<u8>)> {
        let open = self.halves.iter().filter(|half| half.found.is_none());
        open.map(|half| (half.transport, half.message.clone())).collect()
    }

    /// Notes that `server` is asked now.
    pub(crate) fn turn_to(&mut self, server: usize) {
        self.server = server;
        if !self.asked.contains(&server) {
            self.asked.push(server);
        }
    }
}
