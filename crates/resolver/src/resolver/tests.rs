//! A resolver between those who ask and servers that a test plays.

use std::net::IpAddr;
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_base::{Instant, Now};

use super::{
    Families, NameQuery, ResolveFailure, Resolver, ResolverEffect, ResolverSettings, Transport,
};

mod aliases;
mod halves;
mod serving;
mod waiting;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A resolver with what it said.
struct Play {
    resolver: Resolver,
    millis: u64,
    sent: Vec<NameQuery>,
    told: Vec<(u64, Result<Vec<String>, ResolveFailure>)>,
    logged: Vec<String>,
    closed: Vec<usize>,
}

/// What an answer has.
#[derive(Clone, Default)]
struct Reply {
    flags: u16,
    records: Vec<u8>,
    count: u16,
}

fn reply(records: &[Vec<u8>]) -> Reply {
    Reply { flags: 0x8180, records: records.concat(), count: records.len() as u16 }
}

fn code(code: u16) -> Reply {
    Reply { flags: 0x8180 | code, ..Reply::default() }
}

fn truncated() -> Reply {
    Reply { flags: 0x8380, ..Reply::default() }
}

fn record(kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut out = b"\xc0\x0c".to_vec();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
    out
}

fn address(text: &str) -> Vec<u8> {
    lasting(text, 300)
}

fn lasting(text: &str, ttl: u32) -> Vec<u8> {
    match text.parse().expect("an address") {
        IpAddr::V4(ip) => record(1, ttl, &ip.octets()),
        IpAddr::V6(ip) => record(28, ttl, &ip.octets()),
    }
}

fn alias(name: &str) -> Vec<u8> {
    let mut data = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        data.push(label.len() as u8);
        data.extend_from_slice(label.as_bytes());
    }
    data.push(0);
    record(5, 300, &data)
}

impl Play {
    fn with(servers: usize, valid: Option<u64>, families: Families) -> Self {
        let settings = ResolverSettings { servers, valid, families };
        Self {
            resolver: Resolver::new(settings, Prng::new(1)),
            millis: 1000,
            sent: Vec::new(),
            told: Vec::new(),
            logged: Vec::new(),
            closed: Vec::new(),
        }
    }

    fn new() -> Self {
        Self::with(1, None, Families::Both)
    }

    fn now(&self) -> Now {
        Now { mono: Instant::from_nanos(self.millis * 1_000_000), unix_millis: self.millis }
    }

    fn settle(&mut self) {
        while let Some(effect) = self.resolver.poll_effect() {
            match effect {
                ResolverEffect::Send(query) => self.sent.push(query),
                ResolverEffect::Close(server) => self.closed.push(server),
                ResolverEffect::Deliver(verdict) => {
                    let shown =
                        verdict.result.map(|ips| ips.iter().map(ToString::to_string).collect());
                    self.told.push((verdict.waiter, shown));
                }
                ResolverEffect::Log(line) => self.logged.push(line),
            }
        }
    }

    fn ask(&mut self, waiter: u64, name: &str) {
        self.ask_for(waiter, name, TIMEOUT);
    }

    fn ask_for(&mut self, waiter: u64, name: &str, timeout: Duration) {
        self.resolver.ask(waiter, name.as_bytes(), timeout, self.now());
        self.settle();
    }

    fn leave(&mut self, waiter: u64) {
        self.resolver.leave(waiter, self.now());
        self.settle();
    }

    /// Lets time pass, with all that is due on the way.
    fn pass(&mut self, millis: u64) {
        let end = self.millis + millis;
        while let Some(at) = self.resolver.next_deadline() {
            let due = at.as_nanos().div_ceil(1_000_000);
            if due > end {
                break;
            }
            self.millis = self.millis.max(due);
            self.resolver.expire(self.now());
            self.settle();
        }
        self.millis = end;
    }

    /// The last question for `name` of this type.
    fn asked(&self, name: &str, kind: u8) -> (usize, Transport, Vec<u8>) {
        let mut wanted = alias(name)[12..].to_vec();
        wanted.extend_from_slice(&[0, kind, 0, 1]);
        let all = self.sent.iter().rev().flat_map(|query| {
            query.messages.iter().map(|(transport, bytes)| (query.server, *transport, bytes))
        });
        let mut found = all.filter(|(_, _, bytes)| bytes.ends_with(&wanted));
        let (server, transport, bytes) = found.next().expect("it was asked for");
        let from = if transport == Transport::Stream { 2 } else { 0 };
        (server, transport, bytes[from..].to_vec())
    }

    fn message(question: &[u8], reply: &Reply) -> Vec<u8> {
        let mut out = question.to_vec();
        out[2..4].copy_from_slice(&reply.flags.to_be_bytes());
        out[6..8].copy_from_slice(&reply.count.to_be_bytes());
        out.extend_from_slice(&reply.records);
        out
    }

    /// The server answers the last question of this kind.
    fn answer(&mut self, name: &str, kind: u8, reply: &Reply) {
        let (server, transport, question) = self.asked(name, kind);
        let message = Self::message(&question, reply);
        match transport {
            Transport::Datagram => {
                self.resolver.receive_datagram(server, &message, self.now());
            }
            Transport::Stream => {
                let len = (message.len() as u16).to_be_bytes();
                let bytes = [&len[..], &message].concat();
                self.resolver.receive_stream(server, &bytes, self.now());
            }
        }
        self.settle();
    }

    fn answer_both(&mut self, name: &str, a: &Reply, aaaa: &Reply) {
        self.answer(name, A, a);
        self.answer(name, AAAA, aaaa);
    }

    /// What was told since the last look.
    fn verdicts(&mut self) -> Vec<(u64, Result<Vec<String>, ResolveFailure>)> {
        std::mem::take(&mut self.told)
    }

    fn verdict(&mut self) -> Result<Vec<String>, ResolveFailure> {
        let mut told = self.verdicts();
        assert_eq!(told.len(), 1, "{told:?}");
        told.remove(0).1
    }

    /// Messages sent since the last look.
    fn messages(&mut self) -> usize {
        std::mem::take(&mut self.sent).iter().map(|query| query.messages.len()).sum()
    }
}

const A: u8 = 1;
const AAAA: u8 = 28;

fn found(addresses: &[&str]) -> Result<Vec<String>, ResolveFailure> {
    Ok(addresses.iter().map(|text| (*text).to_owned()).collect())
}
