//! Simulated name servers: they respond, forge, time out, flood, truncate responses, crash,
//! restart, and change their records.
//!
//! Owns which addresses each name has had, and checks connects to upstreams: a worker may connect
//! to an address only if a server of its `resolver` has returned it in response to a query for that
//! name. Forged responses have addresses of their own, so that an accepted one is detected. Easiest
//! to break: a forged response is not a fault, because a worker that ignores it gets the correct
//! one.

mod message;
mod reactions;
mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use crate::chance::Chance;
use message::DnsQuestion;
pub(crate) use streams::SimDnsStream;

/// The addresses of the name servers in the configuration.
pub const SERVERS: [&str; 2] = ["192.0.2.53:53", "192.0.2.54:5353"];
/// The names; the last one is an alias (CNAME).
const NAMES: [&str; 5] = ["alpha.test", "beta.test", "gamma.test", "delta.test", "omega.test"];
/// The index of the alias.
const ALIAS: usize = 4;
/// The index of the name of a server in an upstream group.
const MEMBER: usize = 3;
/// Addresses per name.
const ADDRESSES: u8 = 6;
/// The locations with an upstream by name, and the index of that name.
const PLACES: [(&str, usize); 5] =
    [("/name0", 0), ("/name1", 1), ("/name2", 2), ("/named", MEMBER), ("/name4", ALIAS)];
/// The address of the other server in the group.
const FIXED: &str = "192.0.2.20:9000";
/// Nanoseconds from the end of a lookup to the last connect with its result; failed connects are
/// retried.
const RETRIES: u64 = 30_000 * MILLI;
/// Nanoseconds after which a request whose name has no address must be refused: `resolver_timeout`
/// and a client that rests.
const RESPONSE_WITHIN: u64 = 30_000 * MILLI;
const SECOND: u64 = 1000 * MILLI;
const MILLI: u64 = 1_000_000;

/// The locations of the site.
pub const LOCATIONS: &str = "        set $alpha Alpha.test; set $beta beta.test.;
        set $gamma gamma.test; set $omega omega.test;
        location /name0 { proxy_pass http://$alpha:9000; }
        location /name1 { proxy_pass http://$beta:9000; proxy_request_buffering off; }
        location /name2 { proxy_pass http://$gamma:9000; }
        location /name4 { proxy_pass http://$omega:9000; }
        location /named { proxy_pass http://named; }
";

/// Random directives for the `http` block.
#[must_use]
pub fn directives(seed: u64) -> String {
    let mut chance = Chance::new(seed, 8);
    let valid = ["", "", " valid=2s"][chance.index(3)];
    let families = ["", "", " ipv6=off", " ipv4=off"][chance.index(4)];
    let servers = &SERVERS[..1 + chance.index(SERVERS.len())];
    format!(
        "resolver {}{valid}{families}; resolver_timeout 7s;
    upstream named {{ zone named 64k; server delta.test:9000 resolve max_fails=0;
        server {FIXED} max_fails=0; }}",
        servers.join(" ")
    )
}

/// A worker's UDP socket to one name server.
#[derive(Debug)]
struct SimDnsSocket {
    worker: usize,
    server: usize,
    token: Option<u64>,
    queue: VecDeque<Vec<u8>>,
    /// The error of the next call.
    error: Option<i32>,
}

/// How reliable the name servers of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DnsMode {
    /// They respond in time; forged responses may arrive too.
    Reliable,
    /// Any fault may happen.
    Faulty,
}

/// All name servers.
#[derive(Debug)]
pub struct SimDns {
    chance: Chance,
    mode: DnsMode,
    sockets: BTreeMap<i32, SimDnsSocket>,
    /// Datagrams in transit to workers, by time of arrival and order of sending.
    in_flight: BTreeMap<(u64, u64), (i32, Vec<u8>)>,
    sent: u64,
    /// When each server runs again.
    dead_until: [u64; SERVERS.len()],
    /// Until when a returned address may be used, by name and address.
    valid_until: BTreeMap<(usize, IpAddr), u64>,
    /// Queries without a usable response, by name.
    failures: [u64; NAMES.len()],
    /// When each name was queried last.
    last_query: [u64; NAMES.len()],
    /// The current addresses of each name.
    current: [Vec<u8>; NAMES.len()],
    pub(crate) streams: Vec<SimDnsStream>,
}

impl SimDns {
    /// The name servers of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed, 9);
        let mode = if chance.one_in(3) { DnsMode::Reliable } else { DnsMode::Faulty };
        Self {
            chance,
            mode,
            sockets: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            sent: 0,
            dead_until: [0; SERVERS.len()],
            valid_until: BTreeMap::new(),
            failures: [0; NAMES.len()],
            last_query: [0; NAMES.len()],
            current: std::array::from_fn(|_| vec![0]),
            streams: Vec::new(),
        }
    }

    /// Whether `to` is the address of a name server.
    pub(crate) fn is_server(to: &str) -> bool {
        SERVERS.contains(&to)
    }

    /// Opens a worker's UDP socket to a name server.
    pub(crate) fn open(&mut self, fd: i32, worker: usize, to: SocketAddr) -> bool {
        let to = to.to_string();
        let Some(server) = SERVERS.iter().position(|at| *at == to) else { return false };
        let queue = VecDeque::new();
        let socket = SimDnsSocket { worker, server, token: None, queue, error: None };
        self.sockets.insert(fd, socket);
        true
    }

    pub(crate) fn has(&self, fd: i32) -> bool {
        self.sockets.contains_key(&fd)
    }

    pub(crate) fn watch(&mut self, fd: i32, token: u64) {
        if let Some(socket) = self.sockets.get_mut(&fd) {
            socket.token = Some(token);
        }
    }

    /// Closes a worker's socket. Returns whether it was open.
    pub(crate) fn close(&mut self, fd: i32) -> bool {
        self.sockets.remove(&fd).is_some()
    }

    /// The number of open sockets of workers.
    pub(crate) fn open_sockets(&self) -> usize {
        self.sockets.len()
    }

    /// The tokens of readable sockets.
    pub(crate) fn readable(&self, worker: usize) -> impl Iterator<Item = u64> + '_ {
        let waits = move |socket: &&SimDnsSocket| {
            socket.worker == worker && (!socket.queue.is_empty() || socket.error.is_some())
        };
        self.sockets.values().filter(waits).filter_map(|socket| socket.token)
    }

    /// The next datagram at a worker's socket.
    pub(crate) fn receive(&mut self, fd: i32, into: &mut [u8]) -> Result<Option<usize>, i32> {
        let Some(socket) = self.sockets.get_mut(&fd) else { return Err(bolide_base::errno::EBADF) };
        if let Some(errno) = socket.error.take() {
            return Err(errno);
        }
        let Some(datagram) = socket.queue.pop_front() else { return Ok(None) };
        let n = datagram.len().min(into.len());
        into[..n].copy_from_slice(&datagram[..n]);
        Ok(Some(n))
    }

    /// A worker sends a query. Returns the result of its call and a line for the trace.
    ///
    /// # Errors
    ///
    /// Why the query is not valid.
    pub(crate) fn query(
        &mut self,
        fd: i32,
        bytes: &[u8],
        now: u64,
    ) -> Result<(Result<(), i32>, String), String> {
        let socket = self.sockets.get(&fd).ok_or("a question on an unknown descriptor")?;
        let server = socket.server;
        let (query, name) = DnsQuestion::read(bytes)?;
        let reaction = self.draw_reaction(server, name, now);
        let line = format!("name server {server} is asked for {}: {reaction:?}", query.name);
        Ok((self.react(reaction, fd, &query, name, now), line))
    }

    /// Delivers the datagrams that are due. Returns whether there were any.
    pub(crate) fn arrive(&mut self, now: u64) -> bool {
        let mut any = false;
        while let Some(entry) = self.in_flight.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (fd, datagram) = entry.remove();
            if let Some(socket) = self.sockets.get_mut(&fd) {
                socket.queue.push_back(datagram);
            }
            any = true;
        }
        any
    }

    /// When the next event happens without a new query.
    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        let next = self.in_flight.keys().next().map(|(at, _)| *at);
        let resting = self.streams.iter().filter_map(|stream| stream.rests(now));
        next.into_iter().chain(resting).min()
    }

    /// The number of bytes sent in one step.
    pub(crate) const fn size(&mut self, max: usize) -> usize {
        self.chance.size(max)
    }

    /// Whether requests for this target may fail because a name has no address.
    #[must_use]
    pub fn may_fail(&self, target: &str) -> bool {
        // The group has a server with a fixed address.
        match place(target) {
            Some(MEMBER) | None => false,
            Some(ALIAS) => self.failures.iter().any(|failures| *failures > 0),
            Some(name) => self.failures[name] > 0,
        }
    }

    /// Whether such a failure came in time. A pipelined request may have waited, so that its name
    /// was queried later.
    #[must_use]
    pub fn is_in_time(&self, since: u64, until: u64) -> bool {
        until <= self.last_query.iter().fold(since, |latest, at| latest.max(*at)) + RESPONSE_WITHIN
    }

    /// The violation in a worker's connect, if there is one.
    pub(crate) fn check_connect(&self, to: &str) -> Option<String> {
        let at: SocketAddr = to.parse().ok()?;
        let owner = message::owner(at.ip())?;
        let is_known = owner.is_some_and(|name| self.valid_until.contains_key(&(name, at.ip())));
        (!is_known).then(|| format!("{to} is connected to, which no server returned"))
    }

    /// The violation in a request for `path` at the upstream connected to at `to`, if there is one.
    pub(crate) fn check_request(&self, path: &str, to: &str, now: u64) -> Option<String> {
        let wanted = place(path)?;
        if wanted == MEMBER && to == FIXED {
            return None;
        }
        let ip = to.parse::<SocketAddr>().ok()?.ip();
        let Some(until) = self.valid_until.get(&(wanted, ip)) else {
            return Some(format!("{path} comes to {to}, which was not returned for its name"));
        };
        // The addresses of a group stay in use while its name gets no response.
        let is_stale = wanted != MEMBER && now > until + RETRIES;
        is_stale.then(|| format!("{path} comes to {to}, which was valid until {until}"))
    }
}

/// The index of the name of a location's upstream.
fn place(target: &str) -> Option<usize> {
    PLACES.iter().find(|(place, _)| target.starts_with(place)).map(|(_, name)| *name)
}
