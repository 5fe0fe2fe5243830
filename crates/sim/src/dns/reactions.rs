//! The reaction of a name server to a query.

use bolide_base::errno::{ECONNREFUSED, ENOBUFS};

use super::message::{self, DnsQuestion, RESPONSE, TRUNCATED};
use super::{ADDRESSES, ALIAS, DnsMode, MILLI, NAMES, SECOND, SimDns};

/// A name server's reaction to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DnsReaction {
    /// A valid response.
    Answer,
    /// A valid response between forged ones.
    AmongForged,
    /// Many copies of a valid response.
    Flood,
    /// A truncated response, so that the worker retries by TCP.
    Truncate,
    /// A late response, possibly after the worker's timeout.
    Late,
    /// No response.
    NoResponse,
    /// Only a forged response.
    Forge,
    /// An error code.
    Code(u16),
    /// A response without an address.
    Empty,
    /// A truncated message.
    Cut,
    /// The server is down.
    Dead,
    /// The query cannot be sent.
    Unsent,
}

impl SimDns {
    /// Draws the reaction to a query.
    pub(super) fn draw_reaction(&mut self, server: usize, name: usize, now: u64) -> DnsReaction {
        self.last_query[name] = now;
        let chance = &mut self.chance;
        let good = [
            DnsReaction::Answer,
            DnsReaction::Answer,
            DnsReaction::AmongForged,
            DnsReaction::AmongForged,
            DnsReaction::Flood,
            DnsReaction::Truncate,
        ];
        let mut reaction = good[chance.index(good.len())];
        if self.mode == DnsMode::Faulty {
            if chance.one_in(40) {
                self.dead_until[server] = now + chance.below(12 * SECOND);
            }
            let bad = [
                DnsReaction::Late,
                DnsReaction::NoResponse,
                DnsReaction::Forge,
                DnsReaction::Code([1, 2, 3, 4, 5, 9][chance.index(6)]),
                DnsReaction::Empty,
                DnsReaction::Cut,
                DnsReaction::Unsent,
            ];
            if self.dead_until[server] > now {
                reaction = DnsReaction::Dead;
            } else if chance.one_in(3) {
                reaction = bad[chance.index(bad.len())];
            }
            // TCP streams may have any fault, too.
            let is_good = matches!(
                reaction,
                DnsReaction::Answer | DnsReaction::AmongForged | DnsReaction::Flood
            );
            self.failures[name] += u64::from(!is_good);
        }
        reaction
    }

    pub(super) fn react(
        &mut self,
        reaction: DnsReaction,
        fd: i32,
        query: &DnsQuestion,
        name: usize,
        now: u64,
    ) -> Result<(), i32> {
        match reaction {
            DnsReaction::Answer => self.answer(fd, query, name, now, 0),
            DnsReaction::AmongForged => {
                self.forge(fd, query, name, now);
                self.answer(fd, query, name, now, 0);
                self.forge(fd, query, name, now);
            }
            DnsReaction::Flood => {
                for _ in 0..self.chance.size(120) {
                    self.answer(fd, query, name, now, 0);
                }
                self.answer(fd, query, name, now, 0);
            }
            DnsReaction::Truncate => {
                let message = query.reply(RESPONSE | TRUNCATED, &[]);
                self.send(fd, message, now);
            }
            DnsReaction::Late => {
                let late = self.chance.between(500, 20_000) * MILLI;
                self.answer(fd, query, name, now, late);
            }
            DnsReaction::Forge => self.forge(fd, query, name, now),
            DnsReaction::Code(code) => self.send(fd, query.reply(RESPONSE | code, &[]), now),
            DnsReaction::Empty => self.send(fd, query.reply(RESPONSE, &[]), now),
            DnsReaction::Cut => {
                let mut message = self.valid_response(query, name, now);
                message.truncate(self.chance.index(message.len()));
                self.send(fd, message, now);
            }
            DnsReaction::NoResponse => {}
            DnsReaction::Dead => {
                if let Some(socket) = self.sockets.get_mut(&fd)
                    && self.chance.one_in(2)
                {
                    socket.error = Some(ECONNREFUSED);
                }
            }
            DnsReaction::Unsent => return Err(ENOBUFS),
        }
        Ok(())
    }

    fn answer(&mut self, fd: i32, query: &DnsQuestion, name: usize, now: u64, late: u64) {
        let message = self.valid_response(query, name, now + late);
        self.send(fd, message, now + late);
    }

    fn send(&mut self, fd: i32, message: Vec<u8>, now: u64) {
        self.sent += 1;
        let way = self.chance.between(1, 200_000);
        self.in_flight.insert((now + way * 1000, self.sent), (fd, message));
    }

    /// A valid response. Its addresses may be used from now on.
    pub(super) fn valid_response(&mut self, query: &DnsQuestion, name: usize, now: u64) -> Vec<u8> {
        let ttl = [0, 0, 1, 3, 60][self.chance.index(5)];
        // `valid` may be longer than the TTL, and both count whole seconds.
        let good_until = now + (u64::from(ttl).max(2) + 2) * SECOND;
        if name == ALIAS {
            let target = self.chance.index(3);
            // A cached address of the other name is valid for its own TTL.
            for number in 0..ADDRESSES {
                for kind in [message::A, 28] {
                    let ip = DnsQuestion { kind, ..query.clone() }.ip(target, number);
                    let known = self.valid_until.get(&(target, ip)).copied().unwrap_or(0);
                    self.accept_until(ALIAS, ip, known.max(good_until) + 64 * SECOND);
                }
            }
            let record = message::alias(NAMES[target], ttl);
            return query.reply(RESPONSE, &[record]);
        }
        if self.chance.one_in(4) {
            let count = 1 + self.chance.index(3);
            let chance = &mut self.chance;
            self.current[name] =
                (0..count).map(|_| chance.below(u64::from(ADDRESSES)) as u8).collect();
        }
        let ips: Vec<_> = self.current[name].iter().map(|at| query.ip(name, *at)).collect();
        ips.iter().for_each(|ip| self.accept_until(name, *ip, good_until));
        let records: Vec<_> = ips.iter().map(|ip| query.address(*ip, ttl)).collect();
        query.reply(RESPONSE, &records)
    }

    fn accept_until(&mut self, name: usize, ip: std::net::IpAddr, until: u64) {
        let known = self.valid_until.entry((name, ip)).or_default();
        *known = until.max(*known);
    }

    /// Sends a response that does not belong to the query, although it resembles one that does.
    fn forge(&mut self, fd: i32, query: &DnsQuestion, name: usize, now: u64) {
        let (fd, message) = self.forged_response(fd, query, name);
        self.send(fd, message, now);
    }

    pub(super) fn forged_response(
        &mut self,
        fd: i32,
        query: &DnsQuestion,
        name: usize,
    ) -> (i32, Vec<u8>) {
        let chance = &mut self.chance;
        let record = query.address(query.forged_ip(chance.below(8) as u8), 300);
        let wrong = query.id ^ 1 << chance.below(16);
        let message = match chance.below(6) {
            // The wrong id, and otherwise correct.
            0 => DnsQuestion { id: wrong, ..query.clone() }.reply(RESPONSE, &[record]),
            // The correct id with another name, which may have been queried as well.
            1 | 2 => {
                let other = NAMES[(name + 1 + chance.index(NAMES.len() - 1)) % NAMES.len()];
                let other = DnsQuestion { name: other.to_owned(), ..query.clone() };
                other.reply(RESPONSE, &[record])
            }
            // A similar name.
            3 => {
                let other = DnsQuestion { name: format!("x{}", query.name), ..query.clone() };
                other.reply(RESPONSE, &[record])
            }
            // A query.
            4 => query.reply(0x0100, &[record]),
            // A response of another server, which did not get this query.
            _ => {
                let asked = self.sockets.get(&fd).map(|socket| (socket.worker, socket.server));
                let other = self.sockets.iter().find(|(_, socket)| {
                    asked.is_some_and(|(worker, server)| {
                        socket.worker == worker && socket.server != server
                    })
                });
                return match other {
                    Some((fd, _)) => {
                        let code = if self.chance.one_in(2) { 3 } else { 2 };
                        // That server may get the query later, and then its response would count:
                        // so it is an error code.
                        (
                            *fd,
                            DnsQuestion { id: wrong, ..query.clone() }.reply(RESPONSE | code, &[]),
                        )
                    }
                    None => (fd, Vec::new()),
                };
            }
        };
        (fd, message)
    }
}
