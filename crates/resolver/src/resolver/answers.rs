//! Processes responses by nginx's rules: empty, failed and truncated ones, and those with only a
//! CNAME.

use std::net::IpAddr;
use std::sync::Arc;

use bolide_base::Now;

use super::{DnsFault, DnsReply, NameAnswer, ResolveFailure, Resolver, Transport, end_of};
use crate::message::FORMAT_ERROR;

/// Lookups that are searched for the id of a response without a name.
const LOOKED_THROUGH: usize = 100;

impl Resolver {
    /// Takes a datagram from a server.
    pub fn receive_datagram(&mut self, server: usize, bytes: &[u8], now: Now) {
        self.receive(server, bytes, Transport::Datagram, now);
    }

    pub(super) fn receive(&mut self, server: usize, bytes: &[u8], over: Transport, now: Now) {
        match self.judge(server, bytes, over, now) {
            Ok(()) | Err(DnsFault::Repeated) => {}
            Err(DnsFault::Code { code: FORMAT_ERROR, id }) => {
                let mut text = DnsFault::Code { code: FORMAT_ERROR, id }.to_string();
                if let Some(name) = self.name_of(id) {
                    text.push_str(&format!(", name:\"{name}\""));
                }
                self.log(text);
            }
            Err(fault) => self.log(fault.to_string()),
        }
    }

    /// The name of the query with this id, for the log.
    fn name_of(&self, id: u16) -> Option<String> {
        let names = self.resends.values().take(LOOKED_THROUGH);
        let mut asked = names.filter(|name| {
            let halves = self.questions.get(*name).map(|question| &question.halves);
            halves.is_some_and(|halves| halves.iter().any(|half| half.id == id))
        });
        asked.next().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    fn judge(
        &mut self,
        server: usize,
        bytes: &[u8],
        over: Transport,
        now: Now,
    ) -> Result<(), DnsFault> {
        let reply = DnsReply::read(bytes, over)?;
        let shown = String::from_utf8_lossy(&reply.name);
        let unexpected = || DnsFault::Line(format!("unexpected DNS response for {shown}"));
        let (name, question) = self.questions.get_key_value(&*reply.name).ok_or_else(unexpected)?;
        let (name, is_asked) = (Arc::clone(name), question.asked.contains(&server));
        let question = self.questions.get_mut(&name).ok_or_else(unexpected)?;
        let (server, live) = (question.server, question.live);
        let half = question.unanswered(reply.family).filter(|_| is_asked).ok_or_else(unexpected)?;
        if reply.is_truncated && half.transport == Transport::Stream {
            return Err(DnsFault::Repeated);
        }
        if reply.id != half.id {
            let (id, wanted) = (reply.id, half.id);
            let text = format!("wrong ident {id} in DNS response for {shown}, expect {wanted}");
            return Err(DnsFault::Line(text));
        }
        if reply.is_truncated {
            half.transport = Transport::Stream;
            let message = (Transport::Stream, half.message.clone());
            let serial = question.serial;
            if live == 0 {
                self.drop_question(&name);
            } else {
                self.put_off(&name, now);
                self.push_query(name, serial, server, vec![message]);
            }
            return Ok(());
        }
        self.take_reply(&name, &reply, now)
    }

    /// Takes the response to one query of a lookup.
    fn take_reply(
        &mut self,
        name: &Arc<[u8]>,
        reply: &DnsReply<'_>,
        now: Now,
    ) -> Result<(), DnsFault> {
        let Some(question) = self.questions.get_mut(name) else { return Ok(()) };
        let code = if reply.code == 0 { question.code } else { reply.code };
        if code != 0 || reply.records == 0 {
            if let Some(half) = question.unanswered(reply.family) {
                half.found = Some(Vec::new());
            }
            let (is_open, addresses) = (question.is_open(), question.addresses());
            if is_open {
                question.code = code;
            } else if code != 0 {
                self.fail(name, ResolveFailure::of_code(code), now);
            } else if addresses.is_empty() {
                self.fail(name, ResolveFailure::NotFound, now);
            } else {
                self.succeed(name, addresses.into(), now);
            }
            return Ok(());
        }
        let found = reply.read_records()?;
        for kind in &found.unexpected {
            self.log(format!("unexpected RR type {kind} in DNS response"));
        }
        let Some(question) = self.questions.get_mut(name) else { return Ok(()) };
        question.ttl = question.ttl.min(found.ttl);
        if let Some(half) = question.unanswered(reply.family) {
            half.found = Some(found.addresses);
        }
        let (is_open, addresses) = (question.is_open(), question.addresses());
        match found.alias {
            _ if !is_open && !addresses.is_empty() => self.succeed(name, addresses.into(), now),
            Some(_) if is_open => {}
            Some(at) => {
                let alias = reply.name_at(at)?;
                self.follow(name, alias.into(), now);
            }
            None if is_open && !addresses.is_empty() => {}
            None => return Err(DnsFault::Text("no A or CNAME types in DNS response")),
        }
        Ok(())
    }

    fn succeed(&mut self, name: &Arc<[u8]>, addresses: Arc<[IpAddr]>, now: Now) {
        let Some(question) = self.drop_question(name) else { return };
        let ttl = self.settings.valid.unwrap_or(u64::from(question.ttl));
        let answer = NameAnswer::Addresses(Arc::clone(&addresses));
        let valid = self.known.keep(name, answer, ttl, now);
        self.answer(&question.waiters, &Ok(addresses), end_of(valid));
        self.known.sweep(now);
    }

    fn fail(&mut self, name: &Arc<[u8]>, failure: ResolveFailure, now: Now) {
        let Some(question) = self.drop_question(name) else { return };
        self.answer(&question.waiters, &Err(failure), self.failure_until(now));
        self.known.sweep(now);
    }

    /// All waiters for `name` move on to its CNAME target.
    fn follow(&mut self, name: &Arc<[u8]>, alias: Arc<[u8]>, now: Now) {
        let Some(question) = self.drop_question(name) else { return };
        let ttl = self.settings.valid.unwrap_or(u64::from(question.ttl));
        self.known.keep(name, NameAnswer::Alias(Arc::clone(&alias)), ttl, now);
        let mut waiters = question.waiters;
        self.count_alias(&mut waiters, now);
        if !waiters.is_empty() {
            self.look_up(waiters, alias, now);
        }
    }
}
