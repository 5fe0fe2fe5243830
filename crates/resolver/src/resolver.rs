//! The state machine of one `resolver` directive on one worker: waiters, queries, and the handling
//! of responses.
//!
//! ```text
//!            cached, valid                      response
//!   ask ──────────────────▶ verdict      ┌──────────────────▶ verdicts
//!    │                                   │
//!    └──▶ wait for the lookup ───────────┼── only a CNAME ──▶ look up its target
//!         (started by the first)         │
//!                  ▲     5 s             │  `resolver_timeout` of a waiter
//!                  └── next server ──────┴──────────────────▶ verdict for that one
//! ```
//!
//! Easiest to break: each waiter gets one verdict, unless it cancels before.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_base::{Instant, Now};

use crate::known::{KnownNames, NameAnswer, end_of, seconds};
use crate::message::{self, DnsFault, DnsReply, Family};
use crate::question::{NameQuestion, QuestionHalf};

mod answers;
mod streams;

/// How long a query waits for its response before the next server is queried.
const RESEND_AFTER: Duration = Duration::from_secs(5);
/// How long a failure counts for retrying lookups, without `valid`, in seconds.
const FAILURE_COUNTS: u64 = 10;
/// LIMIT: CNAMEs that one lookup follows.
const ALIASES_MAX: u32 = 50;
/// LIMIT: pending lookups.
const QUESTIONS_MAX: usize = 16 * 1024;
/// Cancelled waiters are removed from a list when they outnumber the others and this.
const LEFT_MAX: usize = 64;

/// The parameters of `resolver`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolverSettings {
    /// The number of servers, at least one.
    pub servers: usize,
    /// Seconds for which responses are valid, in place of their TTL.
    pub valid: Option<u64>,
    /// Which addresses are queried.
    pub families: Families,
}

/// Which addresses are queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// A and AAAA.
    Both,
    /// `ipv6=off`
    V4,
    /// `ipv4=off`
    V6,
}

/// The transport of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    Datagram,
    /// TCP; a length of two bytes precedes each message.
    Stream,
}

/// Why there are no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolveFailure {
    /// Code 2 (SERVFAIL).
    ServerFailure,
    /// Code 3 (NXDOMAIN), and names without addresses.
    NotFound,
    /// Code 4 (NOTIMP).
    Unimplemented,
    /// Code 5 (REFUSED).
    Refused,
    /// There was no response in time.
    TimedOut,
}

/// The result for a waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveVerdict {
    /// The caller's id of the waiter.
    pub waiter: u64,
    /// The addresses, at least one.
    pub result: Result<Arc<[IpAddr]>, ResolveFailure>,
    /// Until when the result is valid.
    pub good_until: Instant,
}

/// Messages for one server, to be sent in order, until one fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameQuery {
    /// The name; it is not needed for sending.
    name: Arc<[u8]>,
    serial: u64,
    /// The index of the server.
    pub server: usize,
    /// Transport and bytes; those for TCP include the length.
    pub messages: Vec<(Transport, Vec<u8>)>,
}

/// An action that the caller performs, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolverEffect {
    /// Send these; call [`Resolver::handle_unsent`] if that fails.
    Send(NameQuery),
    /// Close the TCP connection to this server.
    Close(usize),
    /// Deliver this result to its waiter.
    Deliver(ResolveVerdict),
    /// Log this line at level error.
    Log(String),
}

/// A waiter.
#[derive(Debug)]
struct Waiter {
    /// The CNAMEs that it has followed.
    aliases: u32,
    /// Its deadline.
    until: Option<Instant>,
    /// The name that it waits for.
    name: Option<Arc<[u8]>>,
}

/// The names, lookups and waiters of one `resolver` on one worker.
#[derive(Debug)]
pub struct Resolver {
    settings: ResolverSettings,
    prng: Prng,
    known: KnownNames,
    questions: HashMap<Arc<[u8]>, NameQuestion>,
    /// Lookups by the time of the next query, and by serial number.
    resends: BTreeMap<(Instant, u64), Arc<[u8]>>,
    waiters: HashMap<u64, Waiter>,
    /// Waiters by their deadlines.
    late: BTreeSet<(Instant, u64)>,
    streams: Vec<streams::DnsStream>,
    /// The server for the next lookup.
    next_server: usize,
    serial: u64,
    effects: VecDeque<ResolverEffect>,
}

impl Display for ResolveFailure {
    /// The form in nginx's error log: `3: Host not found`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServerFailure => "2: Server failure",
            Self::NotFound => "3: Host not found",
            Self::Unimplemented => "4: Unimplemented",
            Self::Refused => "5: Operation refused",
            Self::TimedOut => "110: Operation timed out",
        })
    }
}

impl ResolveFailure {
    const fn of_code(code: u8) -> Self {
        match code {
            3 => Self::NotFound,
            4 => Self::Unimplemented,
            5 => Self::Refused,
            _ => Self::ServerFailure,
        }
    }
}

impl Resolver {
    /// Without cached names; ids of queries come from `prng`.
    #[must_use]
    pub fn new(settings: ResolverSettings, prng: Prng) -> Self {
        Self {
            settings,
            prng,
            known: KnownNames::default(),
            questions: HashMap::new(),
            resends: BTreeMap::new(),
            waiters: HashMap::new(),
            late: BTreeSet::new(),
            streams: (0..settings.servers).map(|_| streams::DnsStream::default()).collect(),
            next_server: 0,
            serial: 0,
            effects: VecDeque::new(),
        }
    }

    /// Looks up the addresses of a name; the verdict is an effect, now or within `timeout`, unless
    /// `waiter` cancels. A timeout of zero means none. A final dot is ignored.
    pub fn ask(&mut self, waiter: u64, name: &[u8], timeout: Duration, now: Now) {
        debug_assert!(!self.waiters.contains_key(&waiter), "one question at a time");
        let until = (!timeout.is_zero()).then(|| now.mono.after(timeout));
        let name = name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase();
        self.waiters.insert(waiter, Waiter { aliases: 0, until, name: None });
        self.look_up(vec![waiter], name.into(), now);
        self.known.sweep(now);
    }

    /// Cancels a waiter; the lookup continues for others.
    pub fn leave(&mut self, waiter: u64, now: Now) {
        self.take_waiter(waiter);
        self.known.sweep(now);
    }

    /// The next effect.
    pub fn poll_effect(&mut self) -> Option<ResolverEffect> {
        self.effects.pop_front()
    }

    /// When to call [`Self::expire`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let resend = self.resends.keys().next().map(|(at, _)| *at);
        let late = self.late.first().map(|(at, _)| *at);
        let stream = self.streams.iter().filter_map(streams::DnsStream::until).min();
        [resend, late, stream].into_iter().flatten().min()
    }

    /// Handles expired deadlines: results for waiters, repeated queries, closed TCP connections.
    pub fn expire(&mut self, now: Now) {
        while let Some((at, waiter)) = self.late.first().copied()
            && at <= now.mono
        {
            self.answer(&[waiter], &Err(ResolveFailure::TimedOut), self.failure_until(now));
            self.known.sweep(now);
        }
        // Each is rescheduled or dropped.
        while let Some(entry) = self.resends.first_entry()
            && entry.key().0 <= now.mono
        {
            let name = entry.remove();
            self.ask_again(&name, now);
        }
        self.expire_streams(now);
    }

    /// The number of waiters.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// The number of cached names and pending lookups.
    #[must_use]
    pub fn names(&self) -> usize {
        self.known.len() + self.questions.len()
    }

    /// A query could not be sent: the first time, the next server is queried at once.
    pub fn handle_unsent(&mut self, query: &NameQuery) {
        let Some(question) = self.questions.get_mut(&query.name) else { return };
        if question.serial != query.serial || !std::mem::take(&mut question.may_retry) {
            return;
        }
        let server = (question.server + 1) % self.settings.servers;
        question.turn_to(server);
        self.send(&query.name);
    }

    /// Answers waiters from the cache, or lets them wait for a lookup of `name`.
    fn look_up(&mut self, mut waiters: Vec<u64>, mut name: Arc<[u8]>, now: Now) {
        for _ in 0..=ALIASES_MAX {
            match self.known.find(&name, now) {
                Some((NameAnswer::Addresses(addresses), valid)) => {
                    let addresses = self.rotated(&addresses);
                    return self.answer(&waiters, &Ok(addresses), end_of(valid));
                }
                Some((NameAnswer::Alias(alias), _)) => {
                    self.count_alias(&mut waiters, now);
                    name = alias;
                }
                None => return self.wait_for(waiters, &name, now),
            }
            if waiters.is_empty() {
                return;
            }
        }
        self.answer(&waiters, &Err(ResolveFailure::NotFound), self.failure_until(now));
    }

    /// Waiters follow a CNAME; those over the limit get an error.
    fn count_alias(&mut self, waiters: &mut Vec<u64>, now: Now) {
        let mut lost = Vec::new();
        waiters.retain(|key| match self.waiters.get_mut(key) {
            Some(waiter) if waiter.aliases < ALIASES_MAX => {
                waiter.aliases += 1;
                true
            }
            _ => {
                lost.push(*key);
                false
            }
        });
        self.answer(&lost, &Err(ResolveFailure::NotFound), self.failure_until(now));
    }

    fn wait_for(&mut self, waiters: Vec<u64>, name: &Arc<[u8]>, now: Now) {
        if self.questions.get(name).is_none_or(|question| question.live == 0)
            && let Err(failure) = self.begin(name, now)
        {
            return self.answer(&waiters, &Err(failure), self.failure_until(now));
        }
        let Some(question) = self.questions.get_mut(name) else { return };
        if question.waiters.len() > 2 * question.live + LEFT_MAX {
            let all = &self.waiters;
            question.waiters.retain(|key| {
                all.get(key).is_some_and(|waiter| waiter.name.as_ref() == Some(name))
            });
        }
        for key in waiters {
            let Some(waiter) = self.waiters.get_mut(&key) else { continue };
            waiter.name = Some(Arc::clone(name));
            if let Some(until) = waiter.until {
                self.late.insert((until, key));
            }
            question.waiters.push(key);
            question.live += 1;
        }
    }

    /// Starts a lookup.
    fn begin(&mut self, name: &Arc<[u8]>, now: Now) -> Result<(), ResolveFailure> {
        self.known.forget(name);
        self.drop_question(name);
        if self.questions.len() >= QUESTIONS_MAX {
            self.log("too many names are asked for".to_owned());
            return Err(ResolveFailure::ServerFailure);
        }
        let families: &[Family] = match self.settings.families {
            Families::Both => &[Family::V4, Family::V6],
            Families::V4 => &[Family::V4],
            Families::V6 => &[Family::V6],
        };
        let mut halves: Vec<QuestionHalf> = Vec::new();
        for family in families {
            let id = self.new_id(halves.first().map(|half| half.id));
            let message = message::question(id, name, *family).ok_or(ResolveFailure::NotFound)?;
            let transport = Transport::Datagram;
            halves.push(QuestionHalf { family: *family, id, message, transport, found: None });
        }
        let server = self.next_server;
        self.next_server = (server + 1) % self.settings.servers;
        self.serial += 1;
        let question = NameQuestion {
            serial: self.serial,
            halves,
            server,
            asked: vec![server],
            resend_at: now.mono.after(RESEND_AFTER),
            may_retry: true,
            code: 0,
            ttl: u32::MAX,
            waiters: Vec::new(),
            live: 0,
        };
        self.resends.insert((question.resend_at, self.serial), Arc::clone(name));
        self.questions.insert(Arc::clone(name), question);
        self.send(name);
        Ok(())
    }

    /// A random id other than `taken`.
    fn new_id(&mut self, taken: Option<u16>) -> u16 {
        let id = (self.prng.next_u64() >> 24) as u16;
        let other = 1 + (self.prng.next_u64() >> 49) as u16;
        if Some(id) == taken { id.wrapping_add(other) } else { id }
    }

    /// There was no response in time: queries the next server for what is missing.
    fn ask_again(&mut self, name: &Arc<[u8]>, now: Now) {
        let servers = self.settings.servers;
        let Some(question) = self.questions.get_mut(name) else { return };
        if question.live == 0 {
            self.questions.remove(name);
            return;
        }
        question.may_retry = false;
        question.turn_to((question.server + 1) % servers);
        self.put_off(name, now);
        self.send(name);
    }

    /// Reschedules the next query.
    fn put_off(&mut self, name: &Arc<[u8]>, now: Now) {
        let Some(question) = self.questions.get_mut(name) else { return };
        self.resends.remove(&(question.resend_at, question.serial));
        question.resend_at = now.mono.after(RESEND_AFTER);
        self.resends.insert((question.resend_at, question.serial), Arc::clone(name));
    }

    fn send(&mut self, name: &Arc<[u8]>) {
        if let Some(question) = self.questions.get(name) {
            let (messages, server) = (question.messages(), question.server);
            self.push_query(Arc::clone(name), question.serial, server, messages);
        }
    }

    /// Ends a lookup; its remaining waiters are left in its list.
    fn drop_question(&mut self, name: &[u8]) -> Option<NameQuestion> {
        let mut question = self.questions.remove(name)?;
        self.resends.remove(&(question.resend_at, question.serial));
        let waits = |waiter: &Waiter| waiter.name.as_deref() == Some(name);
        question.waiters.retain(|key| self.waiters.get(key).is_some_and(waits));
        Some(question)
    }

    /// The same addresses, rotated to a random start.
    fn rotated(&mut self, addresses: &Arc<[IpAddr]>) -> Arc<[IpAddr]> {
        if addresses.len() < 2 {
            return Arc::clone(addresses);
        }
        let first = self.prng.below(addresses.len() as u64) as usize;
        let (before, after) = addresses.split_at(first);
        [after, before].concat().into()
    }

    /// Until when a failure counts for retrying lookups.
    fn failure_until(&self, now: Now) -> Instant {
        end_of(seconds(now) + self.settings.valid.filter(|v| *v > 0).unwrap_or(FAILURE_COUNTS))
    }

    /// Delivers results to waiters; cancelled ones are not in the list any more.
    fn answer(
        &mut self,
        waiters: &[u64],
        result: &Result<Arc<[IpAddr]>, ResolveFailure>,
        good_until: Instant,
    ) {
        for waiter in waiters {
            if self.take_waiter(*waiter) {
                let (waiter, result) = (*waiter, result.clone());
                let verdict = ResolveVerdict { waiter, result, good_until };
                self.effects.push_back(ResolverEffect::Deliver(verdict));
            }
        }
    }

    /// Removes a waiter; returns whether it was still waiting.
    fn take_waiter(&mut self, key: u64) -> bool {
        let Some(waiter) = self.waiters.remove(&key) else { return false };
        self.detach(key, &waiter);
        true
    }

    fn detach(&mut self, key: u64, waiter: &Waiter) {
        if let Some(until) = waiter.until {
            self.late.remove(&(until, key));
        }
        let name = waiter.name.as_ref();
        if let Some(question) = name.and_then(|name| self.questions.get_mut(name)) {
            question.live = question.live.saturating_sub(1);
        }
    }

    fn log(&mut self, text: String) {
        self.effects.push_back(ResolverEffect::Log(text));
    }
}

#[cfg(test)]
mod tests;
