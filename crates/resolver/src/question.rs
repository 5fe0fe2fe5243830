//! A pending lookup: its two queries (A and AAAA), and its waiters.

use std::net::IpAddr;

use bolide_base::Instant;

use crate::message::Family;
use crate::resolver::Transport;

/// A pending lookup.
#[derive(Debug)]
pub(crate) struct NameQuestion {
    /// Distinguishes it from earlier and later lookups of the name.
    pub(crate) serial: u64,
    /// The A query, then the AAAA query, as far as they are enabled.
    pub(crate) halves: Vec<QuestionHalf>,
    /// The server that was last queried.
    pub(crate) server: usize,
    /// All servers that were queried: only they may respond.
    pub(crate) asked: Vec<usize>,
    /// When it is sent again.
    pub(crate) resend_at: Instant,
    /// Whether the next server is queried at once if sending fails.
    pub(crate) may_retry: bool,
    /// The code of a failed query; 0 if none failed.
    pub(crate) code: u8,
    /// The smallest TTL so far, in seconds.
    pub(crate) ttl: u32,
    /// The waiters; some may have cancelled.
    pub(crate) waiters: Vec<u64>,
    /// The number of waiters that have not.
    pub(crate) live: usize,
}

/// The query for one address family.
#[derive(Debug)]
pub(crate) struct QuestionHalf {
    pub(crate) family: Family,
    pub(crate) id: u16,
    pub(crate) message: Vec<u8>,
    /// Its transport.
    pub(crate) transport: Transport,
    /// The addresses; `None` until there is a response.
    pub(crate) found: Option<Vec<IpAddr>>,
}

impl NameQuestion {
    /// The query for `family`, if it has no response yet.
    pub(crate) fn unanswered(&mut self, family: Family) -> Option<&mut QuestionHalf> {
        self.halves.iter_mut().find(|half| half.family == family && half.found.is_none())
    }

    /// Whether a query has no response yet.
    pub(crate) fn is_open(&self) -> bool {
        self.halves.iter().any(|half| half.found.is_none())
    }

    /// All addresses found so far, A before AAAA.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.halves.iter().filter_map(|half| half.found.as_ref()).flatten().copied().collect()
    }

    /// The messages to send: queries without a response.
    pub(crate) fn messages(&self) -> Vec<(Transport, Vec<u8>)> {
        let open = self.halves.iter().filter(|half| half.found.is_none());
        open.map(|half| (half.transport, half.message.clone())).collect()
    }

    /// Records that `server` is queried now.
    pub(crate) fn turn_to(&mut self, server: usize) {
        self.server = server;
        if !self.asked.contains(&server) {
            self.asked.push(server);
        }
    }
}
