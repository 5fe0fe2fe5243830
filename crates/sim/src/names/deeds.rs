//! The reaction of a name server to a query.

use bolide_base::errno::{ECONNREFUSED, ENOBUFS};

use super::message::{self, RESPONSE, SimQuestion, TRUNCATED};
use super::{ADDRESSES, ALIAS, MILLI, Mood, NAMES, SECOND, SimNames};

/// What a server does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameDeed {
    /// Answers.
    Answer,
    /// Answers among lies.
    Among,
    /// Answers many times.
    Flood,
    /// Says that the answer does not fit; over a stream it does.
    Truncate,
    /// Answers late, maybe when nothing waits any more.
    Late,
    /// Says nothing.
    Silent,
    /// Lies and says nothing else.
    Lie,
    /// Refuses, with a code.
    Code(u16),
    /// Has no address.
    Empty,
    /// Sends half a message.
    Cut,
    /// Is not there.
    Dead,
    /// The question does not leave.
    Unsent,
}

impl SimNames {
    /// What becomes of a question that a server was sent.
    pub(super) fn deed(&mut self, server: usize, name: usize, now: u64) -> NameDeed {
        self.asked[name] = now;
        let chance = &mut self.chance;
        let good = [
            NameDeed::Answer,
            NameDeed::Answer,
            NameDeed::Among,
            NameDeed::Among,
            NameDeed::Flood,
            NameDeed::Truncate,
        ];
        let mut deed = good[chance.index(good.len())];
        if self.mood == Mood::Bad {
            if chance.one_in(40) {
                self.dead_until[server] = now + chance.below(12 * SECOND);
            }
            let bad = [
                NameDeed::Late,
                NameDeed::Silent,
                NameDeed::Lie,
                NameDeed::Code([1, 2, 3, 4, 5, 9][chance.index(6)]),
                NameDeed::Empty,
                NameDeed::Cut,
                NameDeed::Unsent,
            ];
            if self.dead_until[server] > now {
                deed = NameDeed::Dead;
            } else if chance.one_in(3) {
                deed = bad[chance.index(bad.len())];
            }
            // Streams may do anything, too.
            let is_good = matches!(deed, NameDeed::Answer | NameDeed::Among | NameDeed::Flood);
            self.troubles[name] += u64::from(!is_good);
        }
        deed
    }

    pub(super) fn act_on(
        &mut self,
        deed: NameDeed,
        fd: i32,
        query: &SimQuestion,
        name: usize,
        now: u64,
    ) -> Result<(), i32> {
        match deed {
            NameDeed::Answer => self.answer(fd, query, name, now, 0),
            NameDeed::Among => {
                self.lie(fd, query, name, now);
                self.answer(fd, query, name, now, 0);
                self.lie(fd, query, name, now);
            }
            NameDeed::Flood => {
                for _ in 0..self.chance.size(120) {
                    self.answer(fd, query, name, now, 0);
                }
                self.answer(fd, query, name, now, 0);
            }
            NameDeed::Truncate => {
                let message = query.reply(RESPONSE | TRUNCATED, &[]);
                self.send(fd, message, now);
            }
            NameDeed::Late => {
                let late = self.chance.between(500, 20_000) * MILLI;
                self.answer(fd, query, name, now, late);
            }
            NameDeed::Lie => self.lie(fd, query, name, now),
            NameDeed::Code(code) => self.send(fd, query.reply(RESPONSE | code, &[]), now),
            NameDeed::Empty => self.send(fd, query.reply(RESPONSE, &[]), now),
            NameDeed::Cut => {
                let mut message = self.truth(query, name, now);
                message.truncate(self.chance.index(message.len()));
                self.send(fd, message, now);
            }
            NameDeed::Silent => {}
            NameDeed::Dead => {
                if let Some(socket) = self.sockets.get_mut(&fd)
                    && self.chance.one_in(2)
                {
                    socket.error = Some(ECONNREFUSED);
                }
            }
            NameDeed::Unsent => return Err(ENOBUFS),
        }
        Ok(())
    }

    fn answer(&mut self, fd: i32, query: &SimQuestion, name: usize, now: u64, late: u64) {
        let message = self.truth(query, name, now + late);
        self.send(fd, message, now + late);
    }

    fn send(&mut self, fd: i32, message: Vec<u8>, now: u64) {
        self.sent += 1;
        let way = self.chance.between(1, 200_000);
        self.flying.insert((now + way * 1000, self.sent), (fd, message));
    }

    /// A right answer, which may be relied on from now on.
    pub(super) fn truth(&mut self, query: &SimQuestion, name: usize, now: u64) -> Vec<u8> {
        let ttl = [0, 0, 1, 3, 60][self.chance.index(5)];
        // `valid` may be more, and both count whole seconds.
        let good_until = now + (u64::from(ttl).max(2) + 2) * SECOND;
        if name == ALIAS {
            let target = self.chance.index(3);
            // What is known of the other name is good for as long as it says.
            for number in 0..ADDRESSES {
                for kind in [message::A, 28] {
                    let ip = SimQuestion { kind, ..query.clone() }.ip(target, number);
                    let known = self.told.get(&(target, ip)).copied().unwrap_or(0);
                    self.rely(ALIAS, ip, known.max(good_until) + 64 * SECOND);
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
        ips.iter().for_each(|ip| self.rely(name, *ip, good_until));
        let records: Vec<_> = ips.iter().map(|ip| query.address(*ip, ttl)).collect();
        query.reply(RESPONSE, &records)
    }

    fn rely(&mut self, name: usize, ip: std::net::IpAddr, until: u64) {
        let known = self.told.entry((name, ip)).or_default();
        *known = until.max(*known);
    }

    /// A message that answers nothing that was asked, though it looks as if it did.
    fn lie(&mut self, fd: i32, query: &SimQuestion, name: usize, now: u64) {
        let (fd, message) = self.lie_about(fd, query, name);
        self.send(fd, message, now);
    }

    pub(super) fn lie_about(
        &mut self,
        fd: i32,
        query: &SimQuestion,
        name: usize,
    ) -> (i32, Vec<u8>) {
        let chance = &mut self.chance;
        let record = query.address(query.lie(chance.below(8) as u8), 300);
        let wrong = query.id ^ 1 << chance.below(16);
        let message = match chance.below(6) {
            // Another id, and all else right.
            0 => SimQuestion { id: wrong, ..query.clone() }.reply(RESPONSE, &[record]),
            // The right id, and another name, which may be asked for as well.
            1 | 2 => {
                let other = NAMES[(name + 1 + chance.index(NAMES.len() - 1)) % NAMES.len()];
                let other = SimQuestion { name: other.to_owned(), ..query.clone() };
                other.reply(RESPONSE, &[record])
            }
            // A name like it.
            3 => {
                let other = SimQuestion { name: format!("x{}", query.name), ..query.clone() };
                other.reply(RESPONSE, &[record])
            }
            // A question.
            4 => query.reply(0x0100, &[record]),
            // A server that was not asked knows it all, but it was not asked.
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
                        // It may be asked yet, and its word would count then.
                        (
                            *fd,
                            SimQuestion { id: wrong, ..query.clone() }.reply(RESPONSE | code, &[]),
                        )
                    }
                    None => (fd, Vec::new()),
                };
            }
        };
        (fd, message)
    }
}
