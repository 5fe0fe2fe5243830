//! The resolver with any servers and any order of events, and its invariants.

use std::collections::HashSet;
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_base::{Instant, Now};

use bolide_resolver::{Families, Resolver, ResolverEffect, ResolverSettings, Transport};

/// Runs a script: each byte selects an event, the bytes after it are its text. Each lookup gets one
/// result in time, and the state of cancelled lookups is dropped.
pub fn script(data: &[u8]) {
    let mut world = World::new();
    let mut rest = data;
    while let Some((event, behind)) = rest.split_first() {
        rest = world.play(*event, behind);
    }
    world.finish();
}

struct World {
    resolver: Resolver,
    millis: u64,
    asked: u64,
    waiting: HashSet<u64>,
    /// The last query of each server.
    sent: [Vec<Vec<u8>>; 2],
}

impl World {
    fn new() -> Self {
        let settings = ResolverSettings { servers: 2, valid: None, families: Families::Both };
        Self {
            resolver: Resolver::new(settings, Prng::new(7)),
            millis: 0,
            asked: 0,
            waiting: HashSet::new(),
            sent: [Vec::new(), Vec::new()],
        }
    }

    fn now(&self) -> Now {
        Now { mono: Instant::from_nanos(self.millis * 1_000_000), unix_millis: self.millis }
    }

    /// Runs one event with as much of `rest` as it takes; returns the remainder.
    fn play<'a>(&mut self, event: u8, rest: &'a [u8]) -> &'a [u8] {
        let server = usize::from(event >> 7);
        let (text, behind) = match rest.split_first() {
            Some((len, behind)) => behind.split_at(usize::from(*len).min(behind.len())),
            None => (rest, rest),
        };
        let now = self.now();
        match event & 0x7f {
            0..16 => {
                self.asked += 1;
                self.waiting.insert(self.asked);
                let name = [b"a", b"b", text][usize::from(event % 3)];
                self.resolver.ask(self.asked, name, Duration::from_secs(12), now);
                self.settle();
                return if event % 3 == 2 { behind } else { rest };
            }
            16..24 => {
                if let Some(waiter) = self.waiting.iter().min().copied() {
                    self.waiting.remove(&waiter);
                    self.resolver.leave(waiter, now);
                }
                return rest;
            }
            24..48 => {
                self.millis += u64::from(event) * 40;
                let now = self.now();
                self.resolver.expire(now);
                self.settle();
                return rest;
            }
            48..64 => self.resolver.receive_datagram(server, text, now),
            64..80 => self.resolver.receive_stream(server, text, now),
            80..88 => self.resolver.handle_closed(server),
            // A response to a pending query, with the script's records.
            _ => {
                let Some(mut answer) = self.sent[server].pop() else { return rest };
                answer[2] = 0x81 | event & 2;
                answer[3] = 0x80;
                answer[7] = event & 3;
                answer.extend_from_slice(text);
                self.resolver.receive_datagram(server, &answer, now);
            }
        }
        self.settle();
        behind
    }

    fn settle(&mut self) {
        while let Some(effect) = self.resolver.poll_effect() {
            match effect {
                ResolverEffect::Deliver(verdict) => {
                    assert!(self.waiting.remove(&verdict.waiter), "one verdict, and no more");
                    let is_empty = verdict.result.is_ok_and(|found| found.is_empty());
                    assert!(!is_empty, "a name that is found has addresses");
                }
                ResolverEffect::Send(query) => {
                    for (transport, bytes) in &query.messages {
                        if *transport == Transport::Datagram {
                            self.sent[query.server].push(bytes.clone());
                        } else {
                            self.resolver.handle_written(query.server, self.now());
                        }
                    }
                    if query.messages.len() == 1 {
                        self.resolver.handle_unsent(&query);
                    }
                }
                ResolverEffect::Close(server) => assert!(server < 2),
                ResolverEffect::Log(line) => assert!(!line.is_empty()),
            }
        }
        assert_eq!(self.resolver.waiting(), self.waiting.len());
        let late = self.resolver.next_deadline().is_some();
        assert!(self.waiting.is_empty() || late, "who waits is not forgotten");
    }

    fn finish(&mut self) {
        let mut rounds = 0;
        while let Some(at) = self.resolver.next_deadline() {
            self.millis = self.millis.max(at.as_nanos().div_ceil(1_000_000));
            let now = self.now();
            self.resolver.expire(now);
            self.settle();
            rounds += 1;
            assert!(rounds < 100_000, "what is due comes to an end");
        }
        assert!(self.waiting.is_empty(), "each question gets a verdict");
    }
}
