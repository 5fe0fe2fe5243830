//! Simulated name servers: they answer, lie, are silent, flood, truncate responses, die, return,
//! and change their records.
//!
//! Owns which name truthfully had which address, and checks connects to origins: a worker may
//! connect to an address only if a server of its `resolver` has returned it in response to a query
//! for that name. Lies have addresses of their own, so that an accepted one is detected. Easiest to
//! break: a lie is not a fault, as a worker that ignores it gets the correct response.

mod deeds;
mod message;
mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use crate::chance::Chance;
use message::SimQuestion;
pub(crate) use streams::NameCaller;

/// Where name servers are, as the configuration says.
pub const SERVERS: [&str; 2] = ["192.0.2.53:53", "192.0.2.54:5353"];
/// The names; the last one is an alias of another.
const NAMES: [&str; 5] = ["alpha.test", "beta.test", "gamma.test", "delta.test", "omega.test"];
/// The alias.
const ALIAS: usize = 4;
/// The name of a server in a group.
const MEMBER: usize = 3;
/// Addresses that a name may have.
const ADDRESSES: u8 = 6;
/// Where each application is that a name leads to, and which name that is.
const PLACES: [(&str, usize); 5] =
    [("/name0", 0), ("/name1", 1), ("/name2", 2), ("/named", MEMBER), ("/name4", ALIAS)];
/// The group has an address of its own, too.
const FIXED: &str = "192.0.2.20:9000";
/// Nanoseconds from the end of a lookup to the last call that it leads to: tries take their time.
const TRIES: u64 = 30_000 * MILLI;
/// Nanoseconds within which a request that no name was found for is answered: `resolver_timeout`,
/// and a client that rests.
const PATIENCE: u64 = 30_000 * MILLI;
const SECOND: u64 = 1000 * MILLI;
const MILLI: u64 = 1_000_000;

/// What is served.
pub const LOCATIONS: &str = "        set $alpha Alpha.test; set $beta beta.test.;
        set $gamma gamma.test; set $omega omega.test;
        location /name0 { proxy_pass http://$alpha:9000; }
        location /name1 { proxy_pass http://$beta:9000; proxy_request_buffering off; }
        location /name2 { proxy_pass http://$gamma:9000; }
        location /name4 { proxy_pass http://$omega:9000; }
        location /named { proxy_pass http://named; }
";

/// Directives of the `http` block with the settings of a seed.
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

/// A socket of a worker for datagrams to one server.
#[derive(Debug)]
struct SimNameSocket {
    worker: usize,
    server: usize,
    token: Option<u64>,
    queue: VecDeque<Vec<u8>>,
    /// The error that the next call gives.
    error: Option<i32>,
}

/// What name servers are like in this world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    /// They answer in time; what else arrives are lies that count for nothing.
    Good,
    /// Anything may happen.
    Bad,
}

/// All name servers.
#[derive(Debug)]
pub struct SimNames {
    chance: Chance,
    mood: Mood,
    sockets: BTreeMap<i32, SimNameSocket>,
    /// Datagrams on their way to workers, by their time of arrival and in order of sending.
    flying: BTreeMap<(u64, u64), (i32, Vec<u8>)>,
    sent: u64,
    /// When each server is there again.
    dead_until: [u64; SERVERS.len()],
    /// Until when what was told of a name may be relied on.
    told: BTreeMap<(usize, IpAddr), u64>,
    /// Answers that did not come, or were none, by name.
    troubles: [u64; NAMES.len()],
    /// When each name was asked for last.
    asked: [u64; NAMES.len()],
    /// The addresses that each name has now.
    current: [Vec<u8>; NAMES.len()],
    pub(crate) callers: Vec<NameCaller>,
}

impl SimNames {
    /// Those of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed, 9);
        let mood = if chance.one_in(3) { Mood::Good } else { Mood::Bad };
        Self {
            chance,
            mood,
            sockets: BTreeMap::new(),
            flying: BTreeMap::new(),
            sent: 0,
            dead_until: [0; SERVERS.len()],
            told: BTreeMap::new(),
            troubles: [0; NAMES.len()],
            asked: [0; NAMES.len()],
            current: std::array::from_fn(|_| vec![0]),
            callers: Vec::new(),
        }
    }

    /// Whether a name server is at this address.
    pub(crate) fn is_server(to: &str) -> bool {
        SERVERS.contains(&to)
    }

    /// A worker has a socket for datagrams to a server.
    pub(crate) fn open(&mut self, fd: i32, worker: usize, to: SocketAddr) -> bool {
        let to = to.to_string();
        let Some(server) = SERVERS.iter().position(|at| *at == to) else { return false };
        let queue = VecDeque::new();
        let socket = SimNameSocket { worker, server, token: None, queue, error: None };
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

    /// The worker closes a socket; whether there was one.
    pub(crate) fn close(&mut self, fd: i32) -> bool {
        self.sockets.remove(&fd).is_some()
    }

    /// Sockets of workers that are open.
    pub(crate) fn open_sockets(&self) -> usize {
        self.sockets.len()
    }

    /// The tokens of sockets at which something waits for a worker.
    pub(crate) fn readable(&self, worker: usize) -> impl Iterator<Item = u64> + '_ {
        let waits = move |socket: &&SimNameSocket| {
            socket.worker == worker && (!socket.queue.is_empty() || socket.error.is_some())
        };
        self.sockets.values().filter(waits).filter_map(|socket| socket.token)
    }

    /// The next datagram at a socket of a worker.
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

    /// A worker sends a datagram; the error that it gets, and what there is to tell.
    ///
    /// # Errors
    ///
    /// In words, why this is no question that a worker may ask.
    pub(crate) fn ask(
        &mut self,
        fd: i32,
        bytes: &[u8],
        now: u64,
    ) -> Result<(Result<(), i32>, String), String> {
        let socket = self.sockets.get(&fd).ok_or("a question on an unknown descriptor")?;
        let server = socket.server;
        let (query, name) = SimQuestion::read(bytes)?;
        let deed = self.deed(server, name, now);
        let told = format!("name server {server} is asked for {}: {deed:?}", query.name);
        Ok((self.act_on(deed, fd, &query, name, now), told))
    }

    /// Lets datagrams arrive whose time has come; whether there were any.
    pub(crate) fn arrive(&mut self, now: u64) -> bool {
        let mut any = false;
        while let Some(entry) = self.flying.first_entry() {
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

    /// When something happens next, if nothing is asked.
    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        let next = self.flying.keys().next().map(|(at, _)| *at);
        let resting = self.callers.iter().filter_map(|caller| caller.rests(now));
        next.into_iter().chain(resting).min()
    }

    /// As many bytes as leave at a time.
    pub(crate) const fn size(&mut self, max: usize) -> usize {
        self.chance.size(max)
    }

    /// Requests for this target may fail for want of an address.
    #[must_use]
    pub fn may_fail(&self, target: &str) -> bool {
        // The group has an address that needs no name.
        match place(target) {
            Some(MEMBER) | None => false,
            Some(ALIAS) => self.troubles.iter().any(|troubles| *troubles > 0),
            Some(name) => self.troubles[name] > 0,
        }
    }

    /// Whether a failure of such a request comes in time; it may have stood behind others of its
    /// connection, so that its name was asked for later.
    #[must_use]
    pub fn is_in_time(&self, since: u64, until: u64) -> bool {
        until <= self.asked.iter().fold(since, |latest, asked| latest.max(*asked)) + PATIENCE
    }

    /// What is wrong with a call of a worker, whatever it is for.
    pub(crate) fn judge_call(&self, to: &str) -> Option<String> {
        let at: SocketAddr = to.parse().ok()?;
        let owner = message::owner(at.ip())?;
        let is_told = owner.is_some_and(|name| self.told.contains_key(&(name, at.ip())));
        (!is_told).then(|| format!("{to} is called, which no server has told"))
    }

    /// What is wrong with a request for `path` at the origin that was called at `to`.
    pub(crate) fn judge_request(&self, path: &str, to: &str, now: u64) -> Option<String> {
        let wanted = place(path)?;
        if wanted == MEMBER && to == FIXED {
            return None;
        }
        let ip = to.parse::<SocketAddr>().ok()?.ip();
        let Some(until) = self.told.get(&(wanted, ip)) else {
            return Some(format!("{path} comes to {to}, which was not told for its name"));
        };
        // What a group knows stays in force while its name gets no answer.
        let is_stale = wanted != MEMBER && now > until + TRIES;
        is_stale.then(|| format!("{path} comes to {to}, which was good until {until}"))
    }
}

/// The name that leads to an application.
fn place(target: &str) -> Option<usize> {
    PLACES.iter().find(|(place, _)| target.starts_with(place)).map(|(_, name)| *name)
}
