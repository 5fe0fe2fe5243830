//! The resolvers of a worker with their sockets, and what waits for names.
//!
//! A resolver belongs to one `resolver` directive of one configuration. Easiest to break: each
//! waiter has a unique number, so that a late result finds nothing.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_base::deadline_queue::Armed;
use bolide_base::prng::Prng;
use bolide_base::{Bound, Instant, Now};
use bolide_conf::model::NameServers;
use bolide_io::{Io, Readiness};
use bolide_resolver::{
    Families, NameQuery, ResolveFailure, ResolveVerdict, Resolver, ResolverEffect,
    ResolverSettings, Transport,
};

use crate::name_sockets::{DATAGRAM_SIZE, DATAGRAMS_PER_TURN, NameServer, NameSocket, failed};

/// LIMIT: resolvers of one worker, and servers of one resolver.
const RESOLVERS_MAX: usize = 1 << 14;
const SERVERS_MAX: usize = 1 << 15;

/// How often resolvers of earlier configurations are checked, to close unused ones.
const RETIRED_PAUSE: Duration = Duration::from_secs(30);

/// How long a retrying lookup remembers that there was no room for a resolver.
const REFUSAL_COUNTS: Duration = Duration::from_secs(10);

/// All resolvers of a worker.
#[derive(Debug)]
pub(crate) struct Lookups {
    resolvers: Vec<Option<LiveResolver>>,
    waiting: HashMap<u64, LookupWaiter>,
    serial: u64,
    news: Vec<LookupNews>,
    /// Makes the token of a socket.
    token: fn(NameSocket) -> u64,
}

/// A pending lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameLookup {
    resolver: u32,
    serial: u64,
}

/// What waits for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupWaiter {
    /// A fetch: the bits of its key.
    Fetch(u64),
    /// A server of an upstream group: the number of its name.
    Server(usize),
}

/// A result or message for the worker.
#[derive(Debug)]
pub(crate) enum LookupNews {
    /// The result of a lookup.
    Found(LookupWaiter, ResolveVerdict),
    /// A line of the error log.
    Log(String),
    /// The deadline of the resolver at this index.
    Due(u32, Instant),
}

/// A resolver with its sockets.
#[derive(Debug)]
struct LiveResolver {
    /// Workers share it, so that none of them may keep it alive: it lives as long as its
    /// configuration, and what waits for a name.
    settings: Weak<NameServers>,
    machine: Resolver,
    servers: Vec<NameServer>,
    armed: Armed,
    /// When it is closed if nothing can use it any more: its configuration was replaced.
    retires_at: Option<Instant>,
}

impl LiveResolver {
    fn new(settings: &Arc<NameServers>, prng: Prng) -> Self {
        let families = match (settings.ipv4, settings.ipv6) {
            (true, false) => Families::V4,
            (false, true) => Families::V6,
            _ => Families::Both,
        };
        let servers: Vec<NameServer> =
            settings.servers.iter().take(SERVERS_MAX).map(|at| NameServer::new(*at)).collect();
        debug_assert!(!servers.is_empty(), "a resolver has a server");
        let valid = settings.valid;
        let machine = ResolverSettings { servers: servers.len(), valid, families };
        let machine = Resolver::new(machine, prng);
        let settings = Arc::downgrade(settings);
        Self { settings, machine, servers, armed: Armed::default(), retires_at: None }
    }

    /// Whether no configuration has it any more, and nothing waits for it.
    fn is_unused(&self) -> bool {
        self.settings.strong_count() == 0 && self.machine.waiting() == 0
    }

    /// Sends messages until one fails; returns the error for the log.
    fn send(
        &mut self,
        mut query: NameQuery,
        token: impl Fn(Transport) -> u64,
        now: Now,
        io: &mut impl Io,
    ) -> Result<(), String> {
        let number = query.server;
        let Some(server) = self.servers.get_mut(number) else { return Ok(()) };
        for (transport, bytes) in std::mem::take(&mut query.messages) {
            let sent = match transport {
                Transport::Datagram => server.send_datagram(io, token(transport), &bytes),
                Transport::Stream => {
                    self.machine.handle_written(number, now);
                    server.send_stream(io, token(transport), bytes)
                }
            };
            if let Err(why) = sent {
                if transport == Transport::Stream && server.stream.is_none() {
                    self.machine.handle_closed(number);
                }
                self.machine.handle_unsent(&query);
                return Err(resolving(&why, server));
            }
        }
        Ok(())
    }

    fn receive_datagrams(
        &mut self,
        number: usize,
        now: Now,
        io: &mut impl Io,
    ) -> Result<(), String> {
        let mut buffer = [0; DATAGRAM_SIZE];
        let Some(server) = self.servers.get_mut(number) else { return Ok(()) };
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some(fd) = server.datagrams else { return Ok(()) };
            match io.receive_datagram(fd, &mut buffer) {
                Ok(Some(n)) => self.machine.receive_datagram(number, &buffer[..n], now),
                Ok(None) => return Ok(()),
                Err(errno) => {
                    server.close_datagrams(io);
                    return Err(resolving(&failed("recv", errno), server));
                }
            }
        }
        Ok(())
    }

    fn wake_stream(
        &mut self,
        number: usize,
        report: Readiness,
        now: Now,
        io: &mut impl Io,
    ) -> Result<(), String> {
        let Some(server) = self.servers.get_mut(number) else { return Ok(()) };
        let news = server.wake_stream(io, report);
        if news.wrote {
            self.machine.handle_written(number, now);
        }
        self.machine.receive_stream(number, &news.received, now);
        if news.is_over {
            self.machine.handle_closed(number);
        }
        match news.refused {
            Some(errno) => Err(resolving(&failed("connect", errno), server)),
            None => Ok(()),
        }
    }
}

fn resolving(why: &str, server: &NameServer) -> String {
    format!("{why} while resolving, resolver: {}", server.at)
}

impl Lookups {
    /// No resolvers; `token` makes the tokens of sockets.
    pub(crate) fn new(token: fn(NameSocket) -> u64) -> Self {
        Self { resolvers: Vec::new(), waiting: HashMap::new(), serial: 0, news: Vec::new(), token }
    }

    /// Takes the results and messages.
    pub(crate) fn take_news(&mut self) -> Vec<LookupNews> {
        std::mem::take(&mut self.news)
    }

    /// The deadline of the resolver at this index.
    pub(crate) fn armed(&mut self, place: u32) -> Option<&mut Armed> {
        self.resolver(place).map(|live| &mut live.armed)
    }

    /// Looks up a host with these servers and timeout; `seed` is for a new resolver.
    pub(crate) fn ask(
        &mut self,
        waiter: LookupWaiter,
        (host, servers, timeout): (&[u8], &Arc<NameServers>, Duration),
        seed: u64,
        now: Now,
        io: &mut impl Io,
    ) -> Option<NameLookup> {
        self.serial += 1;
        let serial = self.serial;
        let found = self.find(servers).or_else(|| self.open(servers, Prng::new(seed), io));
        let Some(resolver) = found else {
            let result = Err(ResolveFailure::ServerFailure);
            let good_until = now.mono.after(REFUSAL_COUNTS);
            let verdict = ResolveVerdict { waiter: serial, result, good_until };
            self.news.push(LookupNews::Log("too many resolvers".to_owned()));
            self.news.push(LookupNews::Found(waiter, verdict));
            return None;
        };
        let earlier = self.waiting.insert(serial, waiter);
        debug_assert!(earlier.is_none(), "each question has a number of its own");
        self.resolver(resolver)?.machine.ask(serial, host, timeout, now);
        self.settle(resolver, now, io);
        Some(NameLookup { resolver, serial })
    }

    /// Cancels a lookup.
    pub(crate) fn leave(&mut self, lookup: NameLookup, now: Now, io: &mut impl Io) {
        if self.waiting.remove(&lookup.serial).is_none() {
            return;
        }
        if let Some(live) = self.resolver(lookup.resolver) {
            live.machine.leave(lookup.serial, now);
            self.settle(lookup.resolver, now, io);
        }
    }

    /// Handles a readiness report of a socket.
    pub(crate) fn wake(
        &mut self,
        socket: NameSocket,
        report: Readiness,
        now: Now,
        io: &mut impl Io,
    ) {
        let number = socket.server as usize;
        let Some(live) = self.resolver(socket.resolver) else { return };
        let done = match socket.transport {
            Transport::Datagram => live.receive_datagrams(number, now, io),
            Transport::Stream => live.wake_stream(number, report, now, io),
        };
        self.news.extend(done.err().map(LookupNews::Log));
        self.settle(socket.resolver, now, io);
    }

    /// Handles the deadline of the resolver at this index.
    pub(crate) fn expire(&mut self, place: u32, now: Now, io: &mut impl Io) {
        if let Some(live) = self.resolver(place) {
            live.machine.expire(now);
            self.settle(place, now, io);
        }
        self.close_retired(place, now, io);
    }

    /// Another configuration is in force: earlier resolvers are freed once nothing uses them.
    pub(crate) fn retire(&mut self, now: Instant) {
        let retires_at = now.after(RETIRED_PAUSE);
        for (place, live) in self.resolvers.iter_mut().enumerate() {
            if let Some(live) = live {
                live.retires_at = Some(retires_at);
                self.news.push(LookupNews::Due(place as u32, retires_at));
            }
        }
    }

    fn close_retired(&mut self, place: u32, now: Now, io: &mut impl Io) {
        let Some(slot) = self.resolvers.get_mut(place as usize) else { return };
        let Some(live) = slot.as_mut().filter(|live| live.retires_at.is_some()) else { return };
        if live.retires_at.is_some_and(|at| at <= now.mono) {
            live.retires_at = Some(now.mono.after(RETIRED_PAUSE));
            if let Some(mut old) = slot.take_if(|live| live.is_unused()) {
                return old.servers.iter_mut().for_each(|server| server.close(io));
            }
        }
        let retires_at = slot.as_ref().and_then(|live| live.retires_at);
        self.news.extend(retires_at.map(|at| LookupNews::Due(place, at)));
    }

    /// Performs the effects of a resolver.
    fn settle(&mut self, place: u32, now: Now, io: &mut impl Io) {
        let token = self.token;
        let mut bound = Bound::new();
        while bound.goes_on() {
            let Some(live) = self.resolver(place) else { return };
            match live.machine.poll_effect() {
                Some(ResolverEffect::Send(query)) => {
                    let server = query.server as u32;
                    let token =
                        |transport| token(NameSocket { resolver: place, server, transport });
                    let sent = live.send(query, token, now, io);
                    self.news.extend(sent.err().map(LookupNews::Log));
                }
                Some(ResolverEffect::Close(server)) => {
                    if let Some(server) = live.servers.get_mut(server) {
                        server.close_stream(io);
                    }
                }
                Some(ResolverEffect::Deliver(verdict)) => {
                    debug_assert!(self.waiting.contains_key(&verdict.waiter), "answered once");
                    if let Some(waiter) = self.waiting.remove(&verdict.waiter) {
                        self.news.push(LookupNews::Found(waiter, verdict));
                    }
                }
                Some(ResolverEffect::Log(line)) => self.news.push(LookupNews::Log(line)),
                None => break,
            }
        }
        if let Some(at) = self.resolver(place).and_then(|live| live.machine.next_deadline()) {
            self.news.push(LookupNews::Due(place, at));
        }
    }

    /// The index of the resolver of a directive.
    fn find(&self, settings: &Arc<NameServers>) -> Option<u32> {
        let is_it = |live: &LiveResolver| live.settings.as_ptr() == Arc::as_ptr(settings);
        let found = self.resolvers.iter().position(|live| live.as_ref().is_some_and(is_it));
        found.map(|place| place as u32)
    }

    fn resolver(&mut self, place: u32) -> Option<&mut LiveResolver> {
        self.resolvers.get_mut(place as usize)?.as_mut()
    }

    fn open(&mut self, servers: &Arc<NameServers>, prng: Prng, io: &mut impl Io) -> Option<u32> {
        self.close_unused(io);
        let all = &mut self.resolvers;
        let place = all.iter().position(Option::is_none).unwrap_or(all.len());
        if place >= RESOLVERS_MAX {
            return None;
        }
        if place == all.len() {
            all.push(None);
        }
        debug_assert!(all[place].is_none(), "a place has one resolver");
        all[place] = Some(LiveResolver::new(servers, prng));
        Some(place as u32)
    }

    /// Closes resolvers of configurations that are gone.
    fn close_unused(&mut self, io: &mut impl Io) {
        for place in &mut self.resolvers {
            if let Some(mut old) = place.take_if(|live| live.is_unused()) {
                old.servers.iter_mut().for_each(|server| server.close(io));
            }
        }
    }
}
