//! Clients with encoders of their own, which check every response.
//!
//! A client sends its list of requests over as many connections as it takes. The guarantee that it
//! checks: on a connection that neither it nor the network damaged, every request gets a response,
//! unless the server announced that it would not.

pub mod h1;
pub mod h2;
pub mod h3;
mod pipe;
mod secure;

use std::collections::{BTreeMap, VecDeque};

use crate::ask::{SimAnswer, SimAsk};
use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::scenario::Habits;
use crate::truth::{Era, Truth};

/// What came of letting a client act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimAct {
    /// It did something, and may do more.
    Worked,
    /// It can do nothing before this time, or before something happens.
    Waits(Option<u64>),
    /// It has left for good.
    Done,
}

/// How a client spoils its own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// It does not.
    None,
    /// It leaves once so many bytes were sent; by a reset if `rude`.
    Leave {
        /// Bytes.
        after: u64,
        /// By a reset.
        rude: bool,
    },
    /// It neither reads nor writes once so many bytes were sent, until the server hangs up.
    Stall {
        /// Bytes.
        after: u64,
    },
    /// It ends its side once so many bytes were sent, and reads on.
    End {
        /// Bytes.
        after: u64,
    },
    /// It sends nonsense instead of its next request.
    Garbage,
    /// What comes before HTTP is nonsense.
    Preface,
    /// One of the bytes that TLS makes is sent with another value.
    Bent,
}

impl Sabotage {
    /// Whether nothing of what was asked has to be answered.
    const fn is_ruinous(self) -> bool {
        matches!(self, Self::End { .. } | Self::Preface | Self::Bent)
    }

    fn any(chance: &mut Chance, habits: &Habits) -> Self {
        if !chance.one_in(habits.sabotage_in) {
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

/// What every client has, whatever it speaks.
#[derive(Debug)]
pub struct Base {
    /// Its number.
    pub number: usize,
    /// Requests to be made.
    pub todo: VecDeque<SimAsk>,
    /// Complete and right answers.
    pub answered: usize,
    /// Requests that are owed no answer.
    pub forgiven: usize,
    /// What went wrong.
    pub complaints: Vec<String>,
    chance: Chance,
    habits: Habits,
    rests_until: u64,
    tag: Option<String>,
    /// Those of pages, by address.
    tags: BTreeMap<String, String>,
    /// Its side of TLS, once it has spoken it.
    tls: Option<secure::SimTlsClient>,
}

impl Base {
    fn new(number: usize, seed: u64, habits: Habits) -> Self {
        let mut chance = Chance::new(seed, 100 + number as u64);
        let asks = chance.between(1, habits.asks_max);
        let todo = (0..asks)
            .map(|asked| SimAsk::any(number, asked as u32, &mut chance, habits.weights))
            .collect();
        Self {
            number,
            todo,
            answered: 0,
            forgiven: 0,
            complaints: Vec::new(),
            chance,
            habits,
            rests_until: 0,
            tag: None,
            tags: BTreeMap::new(),
            tls: None,
        }
    }

    /// The port of the next connection: the configuration in force knows which there are.
    fn port(&mut self, eras: &[Era]) -> u16 {
        let ports = eras.last().map_or(&[][..], |era| &era.ports);
        ports[self.chance.index(ports.len())]
    }

    /// Takes the next request; sometimes with a tag that an earlier answer had.
    fn next(&mut self, now: u64, port: u16) -> Option<SimAsk> {
        let mut ask = self.todo.pop_front()?;
        (ask.since, ask.port) = (now, port);
        if matches!(ask.what, crate::ask::What::File(_)) && self.chance.one_in(4) {
            ask.known = self.tag.clone();
        }
        if matches!(ask.what, crate::ask::What::Page(..)) && self.chance.one_in(4) {
            ask.known = self.tags.get(&ask.target()).cloned();
        }
        Some(ask)
    }

    fn rest(&mut self, now: u64) {
        if self.chance.one_in(self.habits.rest_in) {
            self.rests_until = now + self.chance.below(self.habits.rest_max);
        }
    }

    fn judge(&mut self, kernel: &mut Kernel, eras: &[Era], ask: &SimAsk, answer: &SimAnswer) {
        let now = kernel.nanos;
        let client = self.number;
        kernel.tell(|| {
            let (method, target) = (ask.method(), ask.target());
            let what = crate::scenario_log::excerpt(&answer.body);
            format!("client {client}: {method} {target}: {} {what}", answer.status)
        });
        let truth = truth(kernel, eras);
        match truth.judge(ask, answer, now) {
            Ok(()) => {
                self.answered += 1;
                kernel.pages.note(ask, answer, now);
                if matches!(ask.what, crate::ask::What::Page(..))
                    && let Some(tag) = answer.field("etag")
                {
                    self.tags.insert(ask.target(), tag.to_owned());
                } else if let Some(tag) = answer.field("etag") {
                    self.tag = Some(tag.to_owned());
                }
            }
            Err(problem) => {
                let problem = format!("{} {}: {problem}", ask.method(), ask.target());
                self.complain(kernel, &problem);
            }
        }
    }

    fn complain(&mut self, kernel: &mut Kernel, problem: &str) {
        let client = self.number;
        kernel.tell(|| format!("client {client}: WRONG: {problem}"));
        self.complaints.push(format!("client {client}: {problem}"));
    }
}

fn truth<'a>(kernel: &'a Kernel, eras: &'a [Era]) -> Truth<'a> {
    Truth {
        disk: &kernel.disk,
        valid: kernel.look_valid,
        eras,
        overtime: kernel.overtime,
        is_poor: kernel.dearth.is_felt(),
        deeds: &kernel.deeds,
        pages: &kernel.pages,
        names: &kernel.names,
    }
}

/// A client.
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
    pub fn new(number: usize, seed: u64, habits: Habits) -> Self {
        let mut base = Base::new(number, seed, habits);
        if habits.http3_of_4 > 0 && base.chance.below(4) < habits.http3_of_4 {
            Self::H3(Box::new(h3::SimH3Client::new(base)))
        } else if base.chance.one_in(habits.http2_in) {
            Self::H2(Box::new(h2::SimH2Client::new(base)))
        } else {
            Self::H1(Box::new(h1::SimH1Client::new(base)))
        }
    }

    /// Lets it do something.
    pub fn act(&mut self, kernel: &mut Kernel, eras: &[Era]) -> SimAct {
        let rests_until = self.base().rests_until;
        if rests_until > kernel.nanos {
            return SimAct::Waits(Some(rests_until));
        }
        match self {
            Self::H1(client) => client.act(kernel, eras),
            Self::H2(client) => client.act(kernel, eras),
            Self::H3(client) => client.act(kernel, eras),
        }
    }

    /// What it has in common with others.
    #[must_use]
    pub fn base(&self) -> &Base {
        match self {
            Self::H1(client) => &client.base,
            Self::H2(client) => &client.base,
            Self::H3(client) => &client.base,
        }
    }
}
