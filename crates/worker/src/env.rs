//! What all parts of a worker share: `Io`, the time of the turn, deadlines, logs, the current
//! configuration, counters and buffers.
//!
//! Nothing here belongs to a single connection, exchange or fetch.

use std::ops::Range;
use std::sync::Arc;

use bolide_base::deadline_queue::DeadlineQueue;
use bolide_base::prng::Prng;
use bolide_base::{CopyPolicy, Instant, Now, SendChain, SlabKey, TcpInfo};
use bolide_conf::model::LogLevel;
use bolide_engine::{Logs, RequestTallies, SiteRef, Tally, Wake};
use bolide_http::date::DateClock;
use bolide_io::{DirChange, Fd, Io, Reset};
use bolide_tls::{CertComplaint, SealedRecords};
use bolide_wire::{HeadPool, StreamOwner, WireEvent};

use crate::accepting::Listeners;
use crate::console_desk::ConsoleDesk;
use crate::endings::SocketEnd;
use crate::exchange_table::ActiveExchange;
use crate::generation::Generation;
use crate::kept_answers::KeptAnswers;
use crate::log::LogFiles;
use crate::news::News;
use crate::subject::Subject;
use crate::token::PollToken;
use crate::waste::WasteByAddress;

/// nginx's message for a handshake without a certificate; the reason follows.
const NO_CERTIFICATE: &str =
    "SSL_do_handshake() failed (SSL: error:0A000179:SSL routines::cert cb error)";

/// The shared state of a worker.
#[derive(Debug)]
pub(crate) struct WorkerEnv<I> {
    pub(crate) io: I,
    pub(crate) number: u16,
    pub(crate) now: Now,
    pub(crate) clock: DateClock,
    /// The offset of the time zone, and the quarter of an hour for which it was queried.
    offset: (u64, i32),
    pub(crate) generation: Arc<Generation>,
    pub(crate) site: SiteRef,
    /// Whether a variable needs `TCP_INFO`.
    pub(crate) reads_tcp: bool,
    /// `TCP_INFO` of the connection whose exchange is stepped.
    pub(crate) tcp_info: Option<TcpInfo>,
    /// Whether it accepts no new connections, and ends the others after their requests.
    pub(crate) draining: bool,
    pub(crate) wheel: DeadlineQueue,
    pub(crate) listeners: Listeners,
    pub(crate) news: News,
    pub(crate) kept: KeptAnswers,
    pub(crate) console: ConsoleDesk,
    pub(crate) wasters: WasteByAddress,
    pub(crate) heads: HeadPool,
    /// The table of open files.
    pub(crate) files: bolide_files::FileTable,
    /// The stored rulings of `.htaccess` files.
    pub(crate) rulings: bolide_engine::HtaccessMemory,
    /// Whether it was logged that directories cannot be watched.
    pub(crate) unwatched_logged: bool,
    pub(crate) logs: Logs,
    pub(crate) log_files: LogFiles,
    /// Client sockets to close when the lines of the turn are written.
    pub(crate) endings: Vec<SocketEnd>,
    pub(crate) prng: Prng,
    /// The number of the last connection (`$connection`).
    pub(crate) serial: u64,
    /// Its own counters; `counters` has those of all workers.
    pub(crate) tally: Arc<Tally>,
    pub(crate) tallies: RequestTallies,
    pub(crate) scratch: Scratch,
}

/// The inputs of a [`WorkerEnv`].
pub(crate) struct EnvParts<I> {
    pub(crate) io: I,
    pub(crate) number: u16,
    pub(crate) generation: Arc<Generation>,
    pub(crate) news: News,
    pub(crate) kept: KeptAnswers,
    pub(crate) console: ConsoleDesk,
    pub(crate) logs: Logs,
    pub(crate) log_files: LogFiles,
    pub(crate) tallies: RequestTallies,
    pub(crate) seed: u64,
}

impl<I: Io> WorkerEnv<I> {
    pub(crate) fn new(parts: EnvParts<I>) -> Self {
        let EnvParts { io, number, generation, news, kept, logs, .. } = parts;
        let EnvParts { console, log_files, tallies, seed, .. } = parts;
        Self {
            io,
            number,
            now: Now::default(),
            clock: DateClock::new(Now::default(), 0),
            offset: (u64::MAX, 0),
            site: SiteRef::new(generation.site.clone(), generation.groups.clone()),
            reads_tcp: generation.site.on_demand_vars().tcp_info,
            tcp_info: None,
            draining: false,
            generation,
            wheel: DeadlineQueue::default(),
            listeners: Listeners::default(),
            news,
            kept,
            console,
            wasters: WasteByAddress::default(),
            heads: HeadPool::default(),
            files: bolide_files::FileTable::new(seed),
            rulings: bolide_engine::HtaccessMemory::new(seed),
            unwatched_logged: false,
            logs,
            log_files,
            endings: Vec::new(),
            prng: Prng::new(seed),
            serial: u64::from(number) << 48,
            tally: tallies.own().clone(),
            tallies,
            scratch: Scratch::default(),
        }
    }

    /// The next `$connection`.
    pub(crate) const fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        debug_assert!(self.serial >> 48 == self.number as u64, "numbers name their worker");
        self.serial
    }

    /// Sets the time of this turn.
    pub(crate) fn set_time(&mut self, now: Now) {
        debug_assert!(now.mono >= self.now.mono, "time goes on");
        self.now = now;
        // The offset of a time zone changes only at full quarters of an hour.
        let quarter = now.unix_seconds() / 900;
        if self.offset.0 != quarter {
            self.settle_zone(quarter);
        }
        self.clock.update(now, self.offset.1);
    }

    #[cold]
    fn settle_zone(&mut self, quarter: u64) {
        debug_assert!(self.offset.0 != quarter, "the zone is asked once a quarter");
        let seconds = self.now.unix_seconds();
        self.offset = (quarter, bolide_io::process::utc_offset_seconds(seconds));
        self.clock.set_zone(&bolide_io::process::zone_name(seconds));
    }

    /// When the next turn begins without a report; none if only a report starts one.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match (self.wheel.next(), self.logs.next_deadline()) {
            (Some(of_owner), Some(of_lines)) => Some(of_owner.min(of_lines)),
            (of_owner, of_lines) => of_owner.or(of_lines),
        }
    }

    /// Wakes the owner of a token once, at this time.
    pub(crate) fn wake_at(&mut self, at: Instant, token: PollToken) {
        self.wheel.arm_once(at, token.pack());
    }

    /// Closes a counted descriptor: listeners that pause for lack of one are watched again.
    pub(crate) fn close(&mut self, fd: Fd, reset: Reset) {
        self.io.close(fd, reset);
        if self.listeners.rests() {
            self.watch_listeners();
        }
    }

    /// Watches all listeners; those that the kernel refuses to watch pause.
    pub(crate) fn watch_listeners(&mut self) {
        self.listeners.watch(&mut self.io, self.now.mono, &mut self.wheel);
    }

    /// Logs a failed accept, unless that was logged lately.
    pub(crate) fn log_accept_failure(&mut self, errno: i32) {
        if let Some((level, text)) = self.listeners.accept_failure(errno, self.now.mono) {
            self.log_server(level, &text);
        }
    }

    /// Pauses accepting.
    pub(crate) fn rest_listeners(&mut self) {
        self.listeners.put_to_rest(&mut self.io, self.now.mono, &mut self.wheel);
    }

    /// Writes purges to the journals, before anything is sent that acknowledges them.
    #[inline]
    pub(crate) fn journal_purges(&mut self) {
        self.kept.journal_purges(&mut self.io);
    }

    /// Does the store's work of each turn.
    pub(crate) fn tend_cache(&mut self) {
        // Purges of requests without a response.
        self.journal_purges();
        if let Some(wakes) = self.kept.tend(self.now) {
            self.news.post_again(wakes);
        }
    }

    /// Sets wakes for streams that a rate limit delays.
    pub(crate) fn arm_paced(&mut self) {
        while let Some((user, at)) = self.scratch.paced.pop() {
            self.wheel.arm_once(at, PollToken::Exchange(SlabKey::from_bits(user)).pack());
        }
    }

    /// Logs a message about the server itself.
    pub(crate) fn log_server(&mut self, level: LogLevel, text: &str) {
        self.log_server_bytes(level, None, text.as_bytes());
    }

    /// Logs a message about the connection with this number.
    pub(crate) fn log_server_bytes(&mut self, level: LogLevel, serial: Option<u64>, text: &[u8]) {
        self.site.log_server(level, serial, text, self.now, &self.clock, &mut self.logs);
    }

    /// Logs a message about a connection, with its client and local address.
    pub(crate) fn log_conn(&mut self, level: LogLevel, subject: &Subject, text: &str) {
        let (info, site) = (subject.info(), &subject.generation().site);
        site.log_conn(info, level, &[text], self.now, &self.clock, &mut self.logs);
    }

    /// Returns the message for a handshake that failed for lack of a certificate, with the reason.
    pub(crate) fn complain(&mut self, subject: &Subject) -> Option<String> {
        let CertComplaint { text, is_repeated } = bolide_tls::take_complaint()?;
        let level = if is_repeated { LogLevel::Info } else { LogLevel::Error };
        self.log_conn(level, subject, &format!("{text} while SSL handshaking"));
        Some(NO_CERTIFICATE.to_owned())
    }
}

/// Buffers that every connection uses during one call.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) received: Vec<u8>,
    pub(crate) plain: Vec<u8>,
    pub(crate) sealed: SealedRecords,
    pub(crate) chain: SendChain,
    pub(crate) events: Vec<WireEvent>,
    pub(crate) replies: bolide_wire::h1::Replies,
    /// Owners of streams, during one search.
    pub(crate) gone: Vec<StreamOwner>,
    /// Exchanges that start when the received bytes are processed, with their first wakes.
    pub(crate) early: Vec<(SlabKey<ActiveExchange>, Wake)>,
    /// Streams that a rate limit delays, and until when.
    pub(crate) paced: Vec<(StreamOwner, Instant)>,
    /// A log message about a file that became shorter while it was sent.
    pub(crate) truncated: Option<String>,
    /// Changes below watched directories.
    pub(crate) changes: Vec<DirChange>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            received: Vec::new(),
            plain: Vec::new(),
            sealed: SealedRecords::default(),
            chain: SendChain::new(CopyPolicy::Contiguous),
            events: Vec::new(),
            replies: bolide_wire::h1::Replies::default(),
            gone: Vec::new(),
            early: Vec::new(),
            paced: Vec::new(),
            truncated: None,
            changes: Vec::new(),
        }
    }
}

impl Scratch {
    /// The bytes at `range` of the receive buffer, which grows as needed.
    #[inline]
    pub(crate) fn received(&mut self, range: Range<usize>) -> &mut [u8] {
        if self.received.len() < range.end {
            self.received.resize(range.end, 0);
        }
        &mut self.received[range]
    }
}
