//! Clients with independent encoders. They check every response.
//!
//! A client sends its list of requests over as many connections as it needs. It checks one
//! guarantee: on a connection that neither it nor the network damaged, every request gets a
//! response, unless the server announced that it would not.

pub mod h1;
pub mod h2;
pub mod h3;
mod pipe;
mod secure;

use std::collections::{BTreeMap, VecDeque};

use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::oracle::{ConfigEpoch, ResponseOracle};
use crate::request::SimRequest;
use crate::response::SimResponse;
use crate::scenario::ClientProfile;

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// It made progress.
    Worked,
    /// It can do nothing before this time, or before an event.
    Waits(Option<u64>),
    /// It has nothing left to do.
    Done,
}

/// The fault that a client injects into its own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFault {
    /// No fault.
    None,
    /// It disconnects after this many bytes; by a reset if `rude`.
    Leave {
        /// Bytes sent.
        after: u64,
        /// By a reset.
        rude: bool,
    },
    /// It stops reading and writing after this many bytes, until the server closes.
    Stall {
        /// Bytes sent.
        after: u64,
    },
    /// It shuts its sending side down after this many bytes and continues to read.
    End {
        /// Bytes sent.
        after: u64,
    },
    /// It sends malformed bytes instead of its next request.
    Garbage,
    /// The bytes before HTTP are malformed.
    BadPreface,
    /// One byte of its TLS records is corrupted.
    FlippedByte,
}

impl ClientFault {
    /// Whether the server owes no response at all.
    const fn voids_responses(self) -> bool {
        matches!(self, Self::End { .. } | Self::BadPreface | Self::FlippedByte)
    }

    fn any(chance: &mut Chance, profile: &ClientProfile) -> Self {
        if !chance.one_in(profile.client_fault_in) {
            return Self::None;
        }
        let after = chance.size(4000) as u64;
        match chance.below(5) {
            0 => Self::Leave { after, rude: true },
            1 => Self::Leave { after, rude: false },
            2 => Self::Stall { after },
            3 => Self::End { after },
            _ => Self::Garbage,
        }
    }
}

/// The part that all clients have in common, for every protocol.
#[derive(Debug)]
pub struct ClientBase {
    /// The client's number.
    pub number: usize,
    /// Requests that are still to be sent.
    pub todo: VecDeque<SimRequest>,
    /// Complete and correct responses.
    pub answered: usize,
    /// Requests without a response that the server did not owe.
    pub excused: usize,
    /// Violated guarantees.
    pub violations: Vec<String>,
    chance: Chance,
    profile: ClientProfile,
    rests_until: u64,
    tag: Option<String>,
    /// Entity tags of pages, by URL.
    tags: BTreeMap<String, String>,
    /// TLS settings and sessions, once TLS was used.
    tls: Option<secure::SimTlsClient>,
}

impl ClientBase {
    fn new(number: usize, seed: u64, profile: ClientProfile) -> Self {
        let mut chance = Chance::new(seed, 100 + number as u64);
        let requests = chance.between(1, profile.requests_max);
        let todo = (0..requests)
            .map(|asked| SimRequest::any(number, asked as u32, &mut chance, profile.mix))
            .collect();
        Self {
            number,
            todo,
            answered: 0,
            excused: 0,
            violations: Vec::new(),
            chance,
            profile,
            rests_until: 0,
            tag: None,
            tags: BTreeMap::new(),
            tls: None,
        }
    }

    /// A port of the current configuration, for the next connection.
    fn port(&mut self, epochs: &[ConfigEpoch]) -> u16 {
        let ports = epochs.last().map_or(&[][..], |epoch| &epoch.ports);
        ports[self.chance.index(ports.len())]
    }

    /// Takes the next request; sometimes adds the entity tag of an earlier response.
    fn next(&mut self, now: u64, port: u16) -> Option<SimRequest> {
        let mut request = self.todo.pop_front()?;
        (request.since, request.port) = (now, port);
        if matches!(request.what, crate::request::RequestKind::File(_)) && self.chance.one_in(4) {
            request.known = self.tag.clone();
        }
        if matches!(request.what, crate::request::RequestKind::Page(..)) && self.chance.one_in(4) {
            request.known = self.tags.get(&request.target()).cloned();
        }
        Some(request)
    }

    fn rest(&mut self, now: u64) {
        if self.chance.one_in(self.profile.rest_in) {
            self.rests_until = now + self.chance.below(self.profile.rest_max);
        }
    }

    fn check_response(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        request: &SimRequest,
        response: &SimResponse,
    ) {
        let now = kernel.nanos;
        let client = self.number;
        kernel.trace(|| {
            let (method, target) = (request.method(), request.target());
            let what = crate::run_trace::excerpt(&response.body);
            format!("client {client}: {method} {target}: {} {what}", response.status)
        });
        let oracle = response_oracle(kernel, epochs);
        match oracle.check(request, response, now) {
            Ok(()) => {
                self.answered += 1;
                kernel.pages.record_effects(request, response, now);
                if matches!(request.what, crate::request::RequestKind::Page(..))
                    && let Some(tag) = response.field("etag")
                {
                    self.tags.insert(request.target(), tag.to_owned());
                } else if let Some(tag) = response.field("etag") {
                    self.tag = Some(tag.to_owned());
                }
            }
            Err(problem) => {
                let problem = format!("{} {}: {problem}", request.method(), request.target());
                self.record_violation(kernel, &problem);
            }
        }
    }

    fn record_violation(&mut self, kernel: &mut Kernel, problem: &str) {
        let client = self.number;
        kernel.trace(|| format!("client {client}: WRONG: {problem}"));
        self.violations.push(format!("client {client}: {problem}"));
    }
}

fn response_oracle<'a>(kernel: &'a Kernel, epochs: &'a [ConfigEpoch]) -> ResponseOracle<'a> {
    ResponseOracle {
        disk: &kernel.disk,
        valid: kernel.lookup_valid,
        epochs,
        shutdown_timeout: kernel.shutdown_timeout,
        has_syscall_faults: kernel.syscall_faults.any_failed(),
        fault_record: &kernel.fault_record,
        pages: &kernel.pages,
        dns: &kernel.dns,
    }
}

/// A simulated client.
#[derive(Debug)]
pub enum SimClient {
    /// It speaks HTTP/1.1.
    H1(Box<h1::SimH1Client>),
    /// It speaks HTTP/2 with prior knowledge.
    H2(Box<h2::SimH2Client>),
    /// It speaks HTTP/3.
    H3(Box<h3::SimH3Client>),
}

impl SimClient {
    /// Client `number` of a run.
    #[must_use]
    pub fn new(number: usize, seed: u64, profile: ClientProfile) -> Self {
        let mut base = ClientBase::new(number, seed, profile);
        if profile.http3_of_4 > 0 && base.chance.below(4) < profile.http3_of_4 {
            Self::H3(Box::new(h3::SimH3Client::new(base)))
        } else if base.chance.one_in(profile.http2_in) {
            Self::H2(Box::new(h2::SimH2Client::new(base)))
        } else {
            Self::H1(Box::new(h1::SimH1Client::new(base)))
        }
    }

    /// One step.
    pub fn step(&mut self, kernel: &mut Kernel, epochs: &[ConfigEpoch]) -> StepResult {
        let rests_until = self.base().rests_until;
        if rests_until > kernel.nanos {
            return StepResult::Waits(Some(rests_until));
        }
        match self {
            Self::H1(client) => client.step(kernel, epochs),
            Self::H2(client) => client.step(kernel, epochs),
            Self::H3(client) => client.step(kernel, epochs),
        }
    }

    /// The part that all clients have in common.
    #[must_use]
    pub fn base(&self) -> &ClientBase {
        match self {
            Self::H1(client) => &client.base,
            Self::H2(client) => &client.base,
            Self::H3(client) => &client.base,
        }
    }
}
