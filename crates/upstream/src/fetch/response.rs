//! The response on the connection of the current attempt: progress, head, body, end, loss.
//!
//! Easiest to break: a response with a status of `proxy_next_upstream` is not passed on if another
//! server can be tried.

use bolide_base::{Retain, Spool, SpoolLimits};
use bolide_conf::model::LogLevel;
use bolide_http::{FieldMap, Hops, OriginHead};
use bolide_wire::{OriginError, OriginEvent};
use bytes::Bytes;

use super::{Audience, Fetch, FetchState};
use crate::ctx::{FetchCtx, FetchEffect, FetchFate, FetchWake, Left};
use crate::duplicates::drop_duplicates;
use crate::messages;
use crate::pool::Idle;
use crate::request::OriginNews;
use crate::retry::UpstreamFault;

impl Fetch {
    /// The connection is a tunnel now: what the client sends from here on replaces the request
    /// body, and at most `memory` bytes of it are buffered.
    pub fn begin_tunnel(&mut self, memory: usize) {
        debug_assert_eq!(self.state, FetchState::Answering, "the head with the 101 came");
        self.request.body = Spool::new(SpoolLimits { memory, file: 0 }, Retain::No);
    }

    pub(super) fn handle_talk(&mut self, wake: FetchWake, ctx: &mut FetchCtx<'_>) {
        let now = ctx.now.mono;
        let Some(trial) = &mut self.trial else { return };
        match wake {
            FetchWake::Sent { bytes, left } => {
                if bytes > 0 || left != trial.left {
                    trial.last_sent = now;
                }
                // In a tunnel either side may send first.
                let is_heard = trial.status == 101 && bytes > 0;
                if is_heard || left == Left::Nothing && trial.left != Left::Nothing {
                    trial.last_received = now;
                }
                trial.sent += bytes;
                trial.left = left;
            }
            FetchWake::Received(bytes) => {
                // As in nginx, parts of a head do not prolong the time for it.
                let is_first = trial.received == 0 && trial.left != Left::Nothing;
                if is_first || self.state == FetchState::Answering {
                    trial.last_received = now;
                }
                trial.received += bytes;
            }
            FetchWake::Event(OriginEvent::Head(head)) => self.handle_head(head, ctx),
            FetchWake::Event(OriginEvent::Body(bytes)) => self.handle_body(bytes, ctx),
            FetchWake::Event(OriginEvent::Stderr(text)) => self.handle_stderr(&text, ctx),
            FetchWake::Event(OriginEvent::Excess) => {
                self.log(LogLevel::Warn, messages::EXCESS, messages::READING, ctx);
            }
            FetchWake::Event(OriginEvent::ExcessChunk) => {
                self.log(LogLevel::Warn, messages::EXCESS_CHUNK, messages::READING, ctx);
            }
            FetchWake::Event(OriginEvent::Missing(key)) => {
                let line = messages::missing(&key);
                self.log(LogLevel::Info, &line, messages::READING_HEAD, ctx);
            }
            FetchWake::Event(OriginEvent::BadTrailer) => {
                self.log(LogLevel::Error, messages::BAD_TRAILER, messages::READING, ctx);
            }
            FetchWake::Event(OriginEvent::Trailers(fields)) => self.handle_trailers(fields, ctx),
            FetchWake::Event(OriginEvent::End { .. }) => self.handle_end(ctx),
            FetchWake::Broken(error) => self.handle_broken(&error, ctx),
            FetchWake::Insecure(text) => {
                let doing = self.reading_what();
                self.lose(text.as_bytes(), doing, ctx);
            }
            FetchWake::ReceiveFailed(errno) => {
                let doing = self.reading_what();
                self.lose(&messages::call_failed("recv", errno), doing, ctx);
            }
            FetchWake::Unsendable => {
                self.log(LogLevel::Error, messages::UNSENDABLE, messages::SENDING, ctx);
                self.fail(UpstreamFault::Unsendable, messages::SENDING, ctx);
            }
            FetchWake::SendFailed(errno) => {
                let text = messages::call_failed("writev", errno);
                self.lose(&text, messages::SENDING, ctx);
            }
            _ => {}
        }
    }

    pub(super) fn handle_head(&mut self, mut head: Box<OriginHead>, ctx: &mut FetchCtx<'_>) {
        if self.state == FetchState::Answering {
            return;
        }
        if let Some(trial) = &mut self.trial {
            trial.last_received = ctx.now.mono;
        }
        for line in drop_duplicates(&mut head.fields) {
            self.log(LogLevel::Warn, &line, messages::READING_HEAD, ctx);
        }
        // RFC 9110 §7.6.1: the client does not get the upstream's hop-by-hop fields.
        let hops = Hops::of(&head.fields);
        hops.remove_named(&mut head.fields);
        if matches!(head.status, 100 | 102..200) {
            self.notify(OriginNews::Early(head), ctx);
            return;
        }
        let status = match head.status {
            // RFC 3875 §6.2.3: a Location without a status is a redirect.
            0 if head.fields.get(bolide_http::Name::Location).is_some() => 302,
            0 => 200,
            status => status,
        };
        let fault = UpstreamFault::Status(status);
        // Unlike other faults, this is a response: the client gets the one of the last server.
        let is_last = !self.may_try_next(fault, ctx.now.mono);
        let Some(trial) = &mut self.trial else { return };
        trial.status = status;
        trial.hops = hops;
        trial.header_ms = Some(messages::millis(trial.began, ctx.now.mono));
        if !is_last {
            self.notify(OriginNews::Unused(head), ctx);
            self.fail(fault, messages::READING_HEAD, ctx);
            return;
        }
        let attempt = self.group.as_ref().map(|group| trial.attempt(group, ctx.now.mono));
        self.state = FetchState::Answering;
        if let Some(attempt) = attempt {
            self.notify(OriginNews::Attempt(Box::new(attempt)), ctx);
        }
        self.notify(OriginNews::Head(head), ctx);
    }

    pub(super) fn handle_body(&mut self, bytes: Bytes, ctx: &mut FetchCtx<'_>) {
        let Some(trial) = &mut self.trial else { return };
        if self.state == FetchState::Answering && !bytes.is_empty() {
            trial.body += bytes.len() as u64;
            self.notify(OriginNews::Body(bytes), ctx);
        }
    }

    pub(super) fn handle_trailers(&self, mut fields: Box<FieldMap>, ctx: &mut FetchCtx<'_>) {
        if self.state == FetchState::Answering {
            if let Some(trial) = &self.trial {
                trial.hops.remove_named(&mut fields);
            }
            self.notify(OriginNews::Trailers(fields), ctx);
        }
    }

    pub(super) fn handle_stderr(&mut self, text: &[u8], ctx: &mut FetchCtx<'_>) {
        let doing = self.reading_what();
        if let Some(line) = messages::stderr(self.request.protocol, text) {
            self.log(LogLevel::Error, &line, doing, ctx);
        }
        let caught = |pattern: &[u8]| memchr::memmem::find(text, pattern).is_some();
        if self.state == FetchState::Asking
            && self.request.settings.catch_stderr.iter().any(|p| caught(p))
        {
            self.fail(UpstreamFault::InvalidHead, doing, ctx);
        }
    }

    pub(super) fn handle_end(&mut self, ctx: &mut FetchCtx<'_>) {
        if self.state == FetchState::Asking {
            return self.handle_broken(&OriginError::StdoutClosed, ctx);
        }
        let Some(trial) = self.trial.take() else { return };
        let Some(group) = self.group.clone() else { return };
        trial.lease.health().record_success();
        let peer = &group.peers[trial.peer];
        let link = &trial.link;
        let idle = Idle::of(link.name, peer, &self.request, link.served + 1, link.born);
        let kept = idle.keepable(&group.keepalive, ctx.now.mono);
        let is_known = !peer.is_found() || ctx.groups.keeps(peer.number);
        let kept = kept.filter(|_| {
            self.keeps() && group.is_pooled() && is_known && trial.left == Left::Nothing
        });
        match kept {
            Some(idle) => {
                ctx.effects.push(FetchEffect::Release(FetchFate::Keep));
                if let Some(evicted) = ctx.pools.keep(&group, idle) {
                    ctx.effects.push(FetchEffect::Evict(evicted));
                }
            }
            None => ctx.effects.push(FetchEffect::Release(FetchFate::Close)),
        }
        let status = trial.status;
        self.report_attempt(trial, status, &group, ctx);
        self.notify(OriginNews::End, ctx);
        self.finish(ctx);
    }

    pub(super) fn handle_broken(&mut self, error: &OriginError, ctx: &mut FetchCtx<'_>) {
        let doing = self.reading_what();
        if is_turned_away(self, error) {
            self.log(LogLevel::Info, messages::CLOSED_IDLE, doing, ctx);
            ctx.effects.push(FetchEffect::Release(FetchFate::Close));
            self.connect_afresh(ctx);
        } else if error.is_invalid() {
            self.log(LogLevel::Error, error.text(), doing, ctx);
            self.fail(UpstreamFault::InvalidHead, doing, ctx);
        } else {
            self.lose(error.text(), doing, ctx);
        }
    }

    /// The connection is lost; if it was a reused one without response bytes, a new one is tried,
    /// unless `…_next_upstream` forbids that, as in nginx.
    pub(super) fn lose(&mut self, text: &[u8], doing: &'static str, ctx: &mut FetchCtx<'_>) {
        let Some(trial) = &self.trial else { return };
        let reused = trial.link.served > 0 && trial.received == 0;
        let unanswered = self.state == FetchState::Asking && self.audience == Audience::Listening;
        let may = self.request.settings.next_upstream.error && self.may_send_again();
        if reused && unanswered && may {
            self.log(LogLevel::Info, messages::CLOSED_IDLE, doing, ctx);
            ctx.effects.push(FetchEffect::Release(FetchFate::Close));
            self.connect_afresh(ctx);
            return;
        }
        self.log(LogLevel::Error, text, doing, ctx);
        self.fail(UpstreamFault::Error, doing, ctx);
    }
}

/// Whether a kept connection takes no more requests, and this one can be sent over a new one:
/// it was not processed.
fn is_turned_away(fetch: &mut Fetch, error: &OriginError) -> bool {
    let is_kept = fetch.trial.as_ref().is_some_and(|trial| trial.link.served > 0);
    matches!(error, OriginError::Unprocessed(_))
        && is_kept
        && fetch.state == FetchState::Asking
        && fetch.audience == Audience::Listening
        && fetch.request.body.rewind()
}
