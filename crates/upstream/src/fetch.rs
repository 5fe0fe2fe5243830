//! One request to an upstream, from the choice of a server to the end of the response.
//!
//! ```text
//!            no place                                       next server
//!  New ──────────────▶ Queued              ┌────────────────────────────────────────┐
//!   │                    │ Turn            ▼                                        │
//!   └────────────────────┴───────▶ Connecting ──Connected──▶ Asking ──Head──▶ Answering
//!             chosen                    ▲                      │                 │
//!                                       └── idle one was gone ─┘                 │
//!                     (any) ──Failed, End, Abandoned──▶ Over ◀───────────────────┘
//! ```
//! A process of a pool of ours goes on with a request that is no longer waited for: from Asking and
//! Answering the fetch goes to Over by way of Lingering then, see `fetch/lingering.rs`.
//!
//! Easiest to break: every `Connect` or `Reuse` is followed by one `Release`, unless its answer was
//! `ConnectFailed`, `NotCalled` or `Gone`; and a fetch finishes once, with one `End` or `Failed`
//! before it unless it was abandoned.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_base::{Instant, Spool};
use bolide_conf::model::{LogLevel, Protocol};
use bolide_http::Hops;
use bytes::Bytes;

use crate::balance::{BalanceCursor, PeerChoice, Scales};
use crate::ctx::{FetchCtx, FetchEffect, FetchFate, FetchWake, Left};
use crate::groups::Group;
use crate::health::Lease;
use crate::messages;
use crate::request::{Cause, ConnectRefused, OriginNews, OriginRequest, PassTarget};
use crate::retry::UpstreamFault;
use crate::trial::{TrialLink, UpstreamTrial};

use self::lingering::Lingering;

mod connecting;
mod deadlines;
mod lingering;
mod queueing;
mod reports;
mod resolving;
mod response;

/// One request to an upstream.
#[derive(Debug)]
pub struct Fetch {
    request: Box<OriginRequest>,
    state: FetchState,
    audience: Audience,
    reading: Reading,
    group: Option<Arc<Group>>,
    cursor: BalanceCursor,
    /// The id of the server that the client is bound to; empty for none.
    bound: Arc<[u8]>,
    /// Attempts that remain, the current one included.
    tries: u32,
    begun: Instant,
    trial: Option<UpstreamTrial>,
    /// The earliest deadline that was requested and has not fired yet.
    armed: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FetchState {
    New,
    /// The name of the server is looked up.
    Resolving,
    /// Waits for a place until then.
    Queued(Instant),
    Connecting,
    Asking,
    Answering,
    /// No more news follow, but the place is taken until the process is done.
    Lingering(Lingering),
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Listening,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    On,
    Paused,
}

impl Fetch {
    /// A fetch that waits to be woken with `Start`.
    #[must_use]
    pub fn new(request: Box<OriginRequest>) -> Self {
        Self {
            request,
            state: FetchState::New,
            audience: Audience::Listening,
            reading: Reading::On,
            group: None,
            cursor: BalanceCursor::default(),
            bound: Arc::default(),
            tries: 0,
            begun: Instant::default(),
            trial: None,
            armed: None,
        }
    }

    /// The request.
    #[must_use]
    pub const fn request(&self) -> &OriginRequest {
        &self.request
    }

    /// The body of the request, to fill it and to send it.
    pub const fn body_mut(&mut self) -> &mut Spool {
        &mut self.request.body
    }

    /// Takes out the body of a request that failed, if it was to be streamed and all of it that
    /// arrived is still here.
    pub fn take_unsent(&mut self) -> Option<VecDeque<Bytes>> {
        let body = &mut self.request.body;
        let is_streamed = body.prefers_reader() && self.state != FetchState::Answering;
        is_streamed.then(|| body.take_whole())?
    }

    /// Whether the request asks the upstream to keep the connection open after the response.
    #[must_use]
    pub fn keeps(&self) -> bool {
        let pooled = self
            .group
            .as_ref()
            .is_some_and(|group| group.is_pooled() && group.keepalive.idle_max > 0);
        match self.request.protocol {
            Protocol::FastCgi => self.request.settings.keep_conn,
            Protocol::Lsapi | Protocol::Http | Protocol::Memcached | Protocol::Http2 => pooled,
            Protocol::Uwsgi | Protocol::Scgi => false,
        }
    }

    /// Whether the head of a response is there that counts.
    #[must_use]
    pub fn is_answering(&self) -> bool {
        self.state == FetchState::Answering
    }

    /// Bytes that the server of the current attempt has sent.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.trial.as_ref().map_or(0, |trial| trial.received)
    }

    /// Whether it has requested `Finish`.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == FetchState::Over
    }

    /// Advances the fetch; appends its effects.
    pub fn step(&mut self, wake: FetchWake, ctx: &mut FetchCtx<'_>) {
        match (self.state, wake) {
            (FetchState::Over, _) => return,
            (FetchState::Lingering(_), FetchWake::Abandoned) => {}
            (_, FetchWake::Abandoned) => self.handle_abandoned(ctx),
            (_, FetchWake::Deadline) => self.handle_deadline(ctx),
            (FetchState::New, FetchWake::Start) => self.start(ctx),
            (FetchState::Resolving, FetchWake::Resolved(found)) => {
                self.handle_resolved(found, ctx);
            }
            (FetchState::Queued(_), FetchWake::Turn) => self.look_again(ctx),
            (FetchState::Connecting, FetchWake::Connected(name)) => {
                self.handle_connected(name, ctx);
            }
            (FetchState::Connecting, FetchWake::ConnectFailed(errno)) => {
                self.handle_connect_failed(errno, ctx);
            }
            (FetchState::Connecting, FetchWake::NotCalled(hindrance)) => {
                self.handle_not_called(hindrance, ctx);
            }
            (FetchState::Connecting, FetchWake::Gone) => self.connect_afresh(ctx),
            (FetchState::Connecting, FetchWake::Handshaking) => {
                if let Some(trial) = &mut self.trial {
                    trial.is_handshaking = true;
                }
            }
            (FetchState::Connecting, FetchWake::Insecure(text)) => {
                self.log(LogLevel::Error, text.as_bytes(), messages::HANDSHAKING, ctx);
                self.fail(UpstreamFault::Error, messages::HANDSHAKING, ctx);
            }
            (FetchState::Connecting, FetchWake::Unprepared(text)) => self.give_up(&text, ctx),
            (_, FetchWake::Paused) => self.reading = Reading::Paused,
            (_, FetchWake::Resumed) => {
                self.reading = Reading::On;
                if let Some(trial) = &mut self.trial {
                    trial.last_received = ctx.now.mono;
                }
            }
            (FetchState::Asking | FetchState::Answering, wake) => self.handle_talk(wake, ctx),
            (FetchState::Lingering(lingering), wake) => self.outlast(lingering, &wake, ctx),
            _ => {}
        }
        self.rearm(ctx);
    }

    fn start(&mut self, ctx: &mut FetchCtx<'_>) {
        let group = match &self.request.target {
            PassTarget::Group(id) => ctx.groups.group(*id),
            PassTarget::Address(address) => Some(Arc::new(Group::of_address(address))),
            PassTarget::Name(_) => return self.start_resolving(ctx),
        };
        let Some(group) = group else {
            self.refuse(
                ConnectRefused { status: 502, retry_after: None, cause: Cause::Error },
                ctx,
            );
            return;
        };
        self.begin(group, ctx);
    }

    /// The servers are known: the first attempt begins.
    fn begin(&mut self, group: Arc<Group>, ctx: &mut FetchCtx<'_>) {
        self.begun = ctx.now.mono;
        self.bound = group.bound_id(&self.request.bound_by, ctx.now.mono);
        let limit = self.request.settings.next_upstream_tries;
        self.tries = if limit == 0 { group.tries() } else { group.tries().min(limit) };
        let behind_others = ctx.pools.is_queued(&group);
        self.take_group(group, ctx);
        if behind_others {
            self.wait(ctx);
        } else {
            self.choose(ctx);
        }
    }

    /// Goes on with this group; connections to peers that it no longer has are closed.
    fn take_group(&mut self, group: Arc<Group>, ctx: &mut FetchCtx<'_>) {
        if group.version > 0 {
            let gone = ctx.pools.forget_peers(&group);
            ctx.effects.extend(gone.into_iter().map(FetchEffect::Evict));
        }
        self.group = Some(group);
    }

    /// Chooses a server, queues for a place, or gives up.
    fn choose(&mut self, ctx: &mut FetchCtx<'_>) {
        match self.draw(ctx) {
            PeerChoice::Peer(peer, lease) => self.ask(peer, lease, ctx),
            PeerChoice::Busy if self.group.as_ref().is_some_and(|group| group.queue.is_some()) => {
                self.wait(ctx);
            }
            PeerChoice::Busy | PeerChoice::NoServer => self.find_no_server(ctx),
        }
    }

    fn draw(&mut self, ctx: &mut FetchCtx<'_>) -> PeerChoice {
        let Some(group) = &self.group else { return PeerChoice::NoServer };
        let mut scales = Scales {
            group,
            pools: ctx.pools,
            prng: ctx.prng,
            now: ctx.now.mono,
            affinity: &self.request.affinity,
            bound: &self.bound,
        };
        scales.choose(&mut self.cursor)
    }

    fn ask(&mut self, peer: usize, lease: Lease, ctx: &mut FetchCtx<'_>) {
        let Some(group) = self.group.clone() else { return };
        let now = ctx.now.mono;
        let idle = match group.is_pooled() {
            true => ctx.pools.take_idle(&group, &group.peers[peer], &self.request),
            false => None,
        };
        let link = match idle {
            Some(idle) => {
                ctx.effects.push(FetchEffect::Reuse(idle.link));
                TrialLink { name: idle.link, served: idle.served, born: idle.born, held: true }
            }
            None => {
                ctx.effects.push(FetchEffect::Connect(group.peers[peer].address.clone()));
                TrialLink { name: 0, served: 0, born: now, held: true }
            }
        };
        self.state = FetchState::Connecting;
        self.trial = Some(UpstreamTrial {
            peer,
            lease,
            began: now,
            dialled: now,
            link,
            is_handshaking: false,
            left: Left::Unready,
            connect_ms: None,
            header_ms: None,
            status: 0,
            hops: Hops::default(),
            sent: 0,
            received: 0,
            body: 0,
            last_sent: now,
            last_received: now,
        });
        let attempt = self.trial.as_ref().map(|trial| trial.attempt(&group, now));
        if let Some(attempt) = attempt {
            self.notify(OriginNews::Attempt(Box::new(attempt)), ctx);
        }
    }

    fn find_no_server(&mut self, ctx: &mut FetchCtx<'_>) {
        self.log(LogLevel::Error, messages::NO_LIVE, messages::CONNECTING, ctx);
        self.report_group_attempt(502, ctx);
        self.refuse(ConnectRefused { status: 502, retry_after: None, cause: Cause::Error }, ctx);
    }

    fn handle_abandoned(&mut self, ctx: &mut FetchCtx<'_>) {
        self.reading = Reading::On;
        let goes_on = self.request.settings.ignore_client_abort
            && self.request.body.is_complete()
            && !matches!(self.state, FetchState::New | FetchState::Queued(_));
        if goes_on {
            self.audience = Audience::Gone;
            if let Some(trial) = &mut self.trial {
                trial.last_received = ctx.now.mono;
            }
            return;
        }
        if let (FetchState::Queued(_), Some(group)) = (self.state, self.group.clone()) {
            self.stop_waiting(&group, ctx);
        }
        if self.may_linger() {
            return self.linger(ctx);
        }
        if let (Some(trial), Some(group)) = (self.trial.take(), self.group.clone()) {
            // An abort sends what is queued before it: a process would take a request that it was
            // not sent so far, without a place in its pool.
            let fate = if trial.was_sent() { FetchFate::Abort } else { FetchFate::Close };
            if trial.link.held {
                ctx.effects.push(FetchEffect::Release(fate));
            }
            let status = trial.status;
            self.report_attempt(trial, status, &group, ctx);
        }
        self.audience = Audience::Gone;
        self.finish(ctx);
    }

    /// The attempt failed: tries the next server, or gives up.
    fn fail(&mut self, fault: UpstreamFault, doing: &'static str, ctx: &mut FetchCtx<'_>) {
        let now = ctx.now.mono;
        let again = self.state != FetchState::Answering && self.may_try_next(fault, now);
        let lingers = !again && fault == UpstreamFault::Timeout && self.may_linger();
        if let Some(trial) = self.trial.take() {
            self.trial = self.end_trial(trial, (fault, doing), lingers, ctx);
        }
        self.tries = self.tries.saturating_sub(1);
        let (status, cause) = (fault.status(), fault.cause());
        let refused = ConnectRefused { status, retry_after: None, cause };
        if again {
            self.choose(ctx);
        } else if lingers {
            self.notify(OriginNews::Failed(refused), ctx);
            self.linger(ctx);
        } else {
            self.refuse(refused, ctx);
        }
    }

    /// Judges and reports the attempt; gives it back if its place stays taken.
    fn end_trial(
        &mut self,
        trial: UpstreamTrial,
        (fault, doing): (UpstreamFault, &'static str),
        lingers: bool,
        ctx: &mut FetchCtx<'_>,
    ) -> Option<UpstreamTrial> {
        let group = self.group.clone()?;
        let peer = Arc::clone(&group.peers[trial.peer].name);
        let answered = self.state == FetchState::Answering;
        if trial.link.held && !lingers {
            ctx.effects.push(FetchEffect::Release(FetchFate::Close));
        }
        if answered || !fault.is_blame() {
            // A request that was not sent says nothing about the server.
            if fault != UpstreamFault::Unsendable {
                trial.lease.health().record_success();
            }
        } else {
            let mut scales = Scales {
                group: &group,
                pools: ctx.pools,
                prng: ctx.prng,
                now: ctx.now.mono,
                affinity: &[],
                bound: &[],
            };
            if scales.record_failure(trial.peer) {
                self.log_of(
                    LogLevel::Warn,
                    messages::DISABLED,
                    doing,
                    Some(Arc::clone(&peer)),
                    ctx,
                );
            }
        }
        if fault == UpstreamFault::Timeout {
            self.log_of(LogLevel::Error, messages::TIMED_OUT, doing, Some(peer), ctx);
        }
        let status = if answered { trial.status } else { fault.status() };
        if lingers {
            self.report_end_of_attempt(&trial, status, &group, ctx);
            return Some(trial);
        }
        self.report_attempt(trial, status, &group, ctx);
        None
    }

    /// Gives up: no more news follow.
    fn refuse(&mut self, refused: ConnectRefused, ctx: &mut FetchCtx<'_>) {
        self.notify(OriginNews::Failed(refused), ctx);
        self.finish(ctx);
    }

    fn finish(&mut self, ctx: &mut FetchCtx<'_>) {
        self.state = FetchState::Over;
        ctx.effects.push(FetchEffect::Finish);
    }

    /// Whether another server may be tried after this.
    fn may_try_next(&mut self, fault: UpstreamFault, now: Instant) -> bool {
        let settings = &self.request.settings;
        let timeout = settings.next_upstream_timeout;
        let in_time = timeout.is_zero() || now.since(self.begun) < timeout;
        let wanted = fault.is_retried(settings.next_upstream);
        let listened_to = self.audience == Audience::Listening;
        self.tries > 1 && wanted && in_time && listened_to && self.may_send_again()
    }

    /// Whether the request may be sent again and its body can be.
    fn may_send_again(&mut self) -> bool {
        let sent = self.trial.as_ref().is_some_and(UpstreamTrial::was_sent);
        let settings = &self.request.settings;
        let may = !sent || self.request.is_idempotent || settings.next_upstream.non_idempotent;
        // Parts of the body consumed for a connection that died are lost, sent or not.
        may && self.request.body.rewind()
    }
}

#[cfg(test)]
mod tests;
