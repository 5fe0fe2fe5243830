//! What nodes share beside purges and pages: the keys of tickets, one order of a certificate, and
//! its account. Certificates themselves are not made here.
//!
//! Checked: a ticket is opened as it was sealed, by a key of its span, as long as the span after it
//! lasts, and never by a node whose file has another key; no two nodes have the order at a time,
//! unless the lease was lost by Valkey or could not be renewed; and once faults end, all nodes open
//! what any of them seals, some node gets the order, and all have one account.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bolide_acme::{AccountName, OrderClaim, OrderId};
use bolide_cluster::{Vault, VaultSecret};
use bolide_tls::CommonTickets;
use bolide_valkey::{Connector, ValkeyPlace};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::member::{Member, name, settings};
use super::{SimulatedClock, World};
use crate::acme::IssuedCertificates;
use crate::cluster::clock::NodeClock;
use crate::cluster::exchange::{ExchangeParts, SimulatedExchange};
use crate::tls_setup::TicketRings;

/// Seconds that a key of tickets encrypts for.
const PERIOD: u32 = 20;
/// How long a lease lasts that is not renewed, and how much of that an old renewal may be late.
const LEASE: Duration = Duration::from_secs(60);
const SLACK: Duration = Duration::from_secs(1);
/// Tickets that clients have.
const TICKETS: usize = 40;
/// Bytes of the name of a ticket's key.
const KEY_NAME: usize = 16;

/// The part of a process.
pub(super) struct Common {
    ring: CommonTickets,
    issued: IssuedCertificates,
    task: JoinHandle<()>,
}

impl Common {
    /// The process ends.
    pub(super) fn end(&self) {
        self.task.abort();
    }
}

/// A ticket that a client has.
#[derive(Clone, Debug)]
struct Ticket {
    /// The node that sealed it, and whether it is the one with another key.
    at: usize,
    is_strange: bool,
    /// The span of its key.
    span: u64,
    plain: Vec<u8>,
    bytes: Vec<u8>,
}

/// A node that has the lease of the order.
#[derive(Clone, Copy, Debug)]
struct Hold {
    life: u64,
    /// When it last had the lease for certain, before the reply.
    since: Instant,
}

/// The state of the checks.
#[derive(Debug, Default)]
pub(super) struct CommonSeen {
    tickets: VecDeque<Ticket>,
    /// The span of each key, by its name in tickets.
    spans: BTreeMap<Vec<u8>, u64>,
    holds: BTreeMap<usize, Hold>,
    accounts: u64,
}

fn order_id() -> OrderId {
    OrderId("issuer shop.test".to_owned())
}

fn account_name() -> AccountName {
    AccountName("issuer".to_owned())
}

fn span_of(seconds: u64) -> u64 {
    seconds / u64::from(PERIOD)
}

impl World {
    /// Whether a node has a file with another key than all others.
    fn is_strange(&self, at: usize) -> bool {
        self.plan.has_stranger && at == 0
    }

    /// The second thread of a process begins.
    pub(super) fn begin_common(&self, at: usize, clock: &std::sync::Arc<SimulatedClock>) -> Common {
        let root = VaultSecret::new([if self.is_strange(at) { 9 } else { 1 }; 32]);
        let vault = Vault::new(b"sim", vec![root]).expect("a key");
        let (rings, issued) = (TicketRings::default(), IssuedCertificates::default());
        let ring = rings.ring(PERIOD);
        issued.fleet().want(std::iter::once((order_id(), Some(account_name()))));
        let zones = bolide_engine::Zones::default();
        let parts = ExchangeParts { rings, issued: issued.clone(), zones };
        let clock = NodeClock::simulated(clock.clone());
        let exchange = SimulatedExchange::new(settings(), (name(at), vault), parts, clock);
        let server = self.server.clone();
        let dial = Box::new(move |_: &ValkeyPlace| server.dial(at));
        let task = tokio::task::spawn_local(exchange.live(Connector::dialing(settings(), dial)));
        Common { ring, issued, task }
    }

    fn with_node<T>(&self, at: usize, what: impl FnOnce(&Member, u64) -> T) -> Option<T> {
        let members = self.members.borrow();
        let member = members.get(at).filter(|member| member.life > 0)?;
        Some(what(member, member.clock.now().unix_millis / 1000))
    }

    /// Clients of one node come and go, with the tickets of all.
    pub(super) async fn use_tickets(self: Rc<Self>, at: usize) {
        while !self.is_over.get() {
            sleep(Duration::from_millis(50 + self.below(400))).await;
            let ticket = self.seal(at);
            let mut seen = self.common.borrow_mut();
            seen.tickets.extend(ticket);
            if seen.tickets.len() > TICKETS {
                seen.tickets.pop_front();
            }
            drop(seen);
            self.open_all(at);
        }
    }

    /// A ticket of a node, if it seals by a key of all.
    fn seal(&self, at: usize) -> Option<Ticket> {
        let plain = format!("session {} of {at}", self.tick()).into_bytes();
        let (bytes, seconds) = self.with_node(at, |member, seconds| {
            Some((member.common.ring.encrypt_at(&plain, seconds)?, seconds))
        })??;
        let (span, key) = (span_of(seconds), bytes[..KEY_NAME].to_vec());
        let first = *self.common.borrow_mut().spans.entry(key).or_insert(span);
        assert_eq!(first, span, "seed {}: node {at} seals by a key of another span", self.seed);
        self.tally.borrow_mut().sealed += 1;
        Some(Ticket { at, is_strange: self.is_strange(at), span, plain, bytes })
    }

    fn open_all(&self, at: usize) {
        let opened = self.with_node(at, |member, seconds| {
            let seen = self.common.borrow();
            let mut opened = 0;
            for ticket in &seen.tickets {
                let Some(plain) = member.common.ring.decrypt_at(&ticket.bytes, seconds) else {
                    continue;
                };
                opened += u64::from(ticket.at != at);
                let (now, seed) = (span_of(seconds), self.seed);
                assert_eq!(plain, ticket.plain, "seed {seed}: node {at} opens something else");
                assert!(
                    ticket.span + 1 >= now,
                    "seed {seed}: node {at} in span {now} opens a ticket of span {}",
                    ticket.span
                );
                assert_eq!(
                    ticket.is_strange,
                    self.is_strange(at),
                    "seed {seed}: node {at} opens a ticket of node {}, whose key it has not",
                    ticket.at
                );
            }
            opened
        });
        self.tally.borrow_mut().opened += opened.unwrap_or_default();
    }

    /// One node orders a certificate again and again, as long as no other one does.
    pub(super) async fn order_often(self: Rc<Self>, at: usize) {
        while !self.is_over.get() {
            sleep(Duration::from_millis(self.below(1500))).await;
            let begun =
                self.with_node(at, |member, _| (member.common_life, member.common.issued.clone()));
            if let Some((life, issued)) = begun {
                self.order(at, life, &issued).await;
            }
        }
    }

    fn is_alive(&self, at: usize, life: u64) -> bool {
        self.with_node(at, |member, _| member.common_life == life).unwrap_or(false)
    }

    async fn order(&self, at: usize, life: u64, issued: &IssuedCertificates) {
        let (fleet, order) = (issued.fleet(), order_id());
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            match fleet.claim(&order) {
                OrderClaim::Mine => break,
                OrderClaim::Elsewhere => return,
                OrderClaim::Asked => sleep(Duration::from_millis(20)).await,
            }
            if !self.is_alive(at, life) {
                return;
            }
            if Instant::now() > until {
                return fleet.unclaim(&order);
            }
        }
        // Without the others it orders for itself.
        let is_common = !fleet.spreading().is_zero();
        if is_common {
            self.begin_hold(at, life);
        }
        self.say(|| format!("node {at} orders, in common: {is_common}"));
        sleep(Duration::from_millis(self.below(4000))).await;
        if !self.is_alive(at, life) {
            self.common.borrow_mut().holds.remove(&at);
            return;
        }
        let account = fleet.account(&account_name()).unwrap_or_else(|| {
            let mut seen = self.common.borrow_mut();
            seen.accounts += 1;
            format!("account {} of {at}", seen.accounts).into_bytes()
        });
        fleet.record_account(&account_name(), &account, None);
        if is_common {
            self.common.borrow_mut().holds.remove(&at);
        }
        self.say(|| format!("node {at} has ordered"));
        fleet.unclaim(&order);
    }

    fn begin_hold(&self, at: usize, life: u64) {
        let leased = self.server.leased(at);
        let mut seen = self.common.borrow_mut();
        let mut others = seen.holds.clone();
        others.retain(|other, hold| *other != at && self.is_alive(*other, hold.life));
        for (other, hold) in others {
            let is_lost = self.server.disturbed() >= hold.since;
            let is_late = self.server.leased(other).elapsed() + SLACK >= LEASE;
            assert!(
                is_lost || is_late,
                "seed {}: node {at} has the order, and node {other} has it since {:?}",
                self.seed,
                hold.since.elapsed()
            );
        }
        seen.holds.insert(at, Hold { life, since: leased });
        drop(seen);
        self.tally.borrow_mut().orders += 1;
    }

    /// What is promised of it when nothing is amiss.
    pub(super) async fn check_common(self: &Rc<Self>) {
        // A damaged record stays for as long as its key would have been used, and the lease of a
        // process that was killed until it is over.
        sleep(LEASE.max(3 * Duration::from_secs(PERIOD.into()))).await;
        self.common.borrow_mut().tickets.clear();
        let known: Vec<usize> = (0..self.plan.nodes).filter(|at| !self.is_strange(*at)).collect();
        for _ in 0..25 {
            for at in if self.plan.has_stranger { &[][..] } else { &known } {
                let ticket = self.seal(*at);
                let ticket = ticket.unwrap_or_else(|| {
                    panic!("seed {}: node {at} has no key in common", self.seed)
                });
                for other in &known {
                    let opened = self.with_node(*other, |member, seconds| {
                        member.common.ring.decrypt_at(&ticket.bytes, seconds)
                    });
                    assert_eq!(
                        opened.flatten().as_ref(),
                        Some(&ticket.plain),
                        "seed {}: node {other} opens a ticket of node {at}",
                        self.seed
                    );
                }
            }
            sleep(Duration::from_secs(1)).await;
        }
        self.check_order().await;
    }

    async fn check_order(&self) {
        let seed = self.seed;
        for at in 0..self.plan.nodes {
            let issued = self.with_node(at, |member, _| member.common.issued.clone());
            let issued = issued.expect("it is there");
            let fleet = issued.fleet();
            fleet.unclaim(&order_id());
            self.await_that(5_000, "a node gets the order", || {
                fleet.claim(&order_id()) == OrderClaim::Mine
            })
            .await;
            assert!(!fleet.spreading().is_zero(), "seed {seed}: node {at} has the others");
            fleet.unclaim(&order_id());
        }
        let accounts: Vec<_> = (0..self.plan.nodes)
            .filter(|at| !self.is_strange(*at))
            .filter_map(|at| {
                self.with_node(at, |member, _| {
                    member.common.issued.fleet().account(&account_name())
                })
            })
            .collect();
        let is_one = accounts.windows(2).all(|pair| pair[0] == pair[1]);
        assert!(is_one || self.plan.has_stranger, "seed {seed}: accounts are {accounts:?}");
    }
}
