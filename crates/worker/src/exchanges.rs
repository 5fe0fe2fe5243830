//! Turns framing events into wakes of exchanges.

use bolide_base::{Bound, SlabKey};
use bolide_engine::{ConnProtocol, Due, StepCtx, TallyCount, Wake};
use bolide_http::{RequestBody, RequestHead};
use bolide_io::{Io, Reset};
use bolide_wire::{StreamId, StreamOwner, WireEvent};

use crate::clients::{AskingConn, background_capacity};
use crate::exchange_table::{ActiveExchange, Owner, UploadState};
use crate::framing::{ConnFraming, Cut, ResetCause};
use crate::requests::Requests;
use crate::subject::Subject;
use crate::tcp::TcpConn;
use crate::token::PollToken;

/// The refusal of plain HTTP on a TLS port (nginx's 497).
const PLAIN_ON_TLS: bolide_engine::RequestRefusal = bolide_engine::RequestRefusal {
    status: 497,
    reason: "client sent plain HTTP request to HTTPS port",
};

impl<I: Io> Requests<I> {
    /// Handles the events of a connection's framing.
    pub(crate) fn handle_events(&mut self, owner: Owner) {
        let mut bound = Bound::new();
        while !self.env.scratch.events.is_empty() && bound.goes_on() {
            // PERF: one event is usual, and needs no second list.
            if self.env.scratch.events.len() == 1
                && let Some(event) = self.env.scratch.events.pop()
            {
                self.handle_event(owner, event);
                continue;
            }
            let mut events = std::mem::take(&mut self.env.scratch.events);
            for event in events.drain(..) {
                self.handle_event(owner, event);
            }
            // Steps may cause further events; they are in a new list, which is handled next.
            if self.env.scratch.events.is_empty() {
                self.env.scratch.events = events;
            }
        }
    }

    /// Handles one event of a connection.
    pub(crate) fn handle_event(&mut self, owner: Owner, event: WireEvent) {
        match event {
            WireEvent::Request { stream, head } => {
                let refused = match owner {
                    Owner::Tcp(key) => {
                        self.clients.tcp.conns.get(key).is_some_and(|conn| conn.plain_on_tls)
                    }
                    Owner::Quic(_) | Owner::Parent(_) | Owner::PostAction(_) => false,
                };
                let wake = if refused { Wake::Refused(PLAIN_ON_TLS) } else { Wake::Start };
                self.begin(owner, stream, head, wake);
            }
            WireEvent::Refused { stream, head, refusal } => {
                if let Owner::Tcp(key) = owner
                    && self.clients.tcp.is_broken_preface(key, &head)
                {
                    self.env.heads.put(head);
                    return self.close(key, Reset::No);
                }
                let wake = Wake::Refused(convert(refusal));
                self.begin(owner, stream, head, wake);
            }
            WireEvent::Body { user, bytes } => {
                self.exchanges.count_body_received(user, bytes.len(), self.env.now.mono);
                self.wake(user, Wake::Body(bytes));
            }
            WireEvent::BodyEnd { user } => {
                self.exchanges.end_upload(user);
                self.wake(user, Wake::BodyEnd);
            }
            WireEvent::BodyRefused { user, refusal } => {
                self.exchanges.end_upload(user);
                self.wake(user, Wake::BodyRefused(convert(refusal)));
            }
            WireEvent::Reset { user } => self.wake(user, Wake::ClientGone),
            WireEvent::Sent { user, body_bytes, head_bytes } => {
                self.end_parts_of(SlabKey::from_bits(user));
                self.wake(user, Wake::Sent { body_bytes, head_bytes });
            }
        }
    }

    /// Wakes an exchange, or stores the wake until it has started.
    fn wake(&mut self, user: StreamOwner, wake: Wake) {
        let key = SlabKey::from_bits(user);
        let early = &mut self.env.scratch.early;
        if !early.iter().any(|(waiting, _)| *waiting == key) {
            return self.step(key, wake);
        }
        if let Some(live) = self.exchanges.live.get_mut(key) {
            match &wake {
                Wake::Body(bytes) => live.exchange.upload_mut().foresee(bytes.len()),
                Wake::BodyEnd => live.exchange.upload_mut().foresee_end(),
                _ => {}
            }
        }
        let conn = match self.exchanges.live.get(key).map(|live| live.owner) {
            Some(Owner::Tcp(conn)) => self.clients.tcp.conns.get(conn),
            _ => None,
        };
        let framing = conn.and_then(|conn| conn.framing.as_ref());
        let is_h1 = framing.is_some_and(ConnFraming::is_plain_h1);
        if let (&Wake::BodyRefused(refusal), true) = (&wake, is_h1) {
            // There is no response yet: the refusal is handled as that of a broken head.
            early.retain(|(waiting, _)| *waiting != key);
            early.push((key, Wake::Refused(refusal)));
        } else {
            early.push((key, wake));
        }
    }

    /// Starts exchanges whose request bodies came with their heads, so that an immediately invalid
    /// body is answered as in nginx, and a complete one is known to be complete.
    pub(crate) fn start_early(&mut self) {
        if self.env.scratch.early.is_empty() {
            return;
        }
        let mut early = std::mem::take(&mut self.env.scratch.early);
        for (key, wake) in early.drain(..) {
            self.step(key, wake);
            self.watch_body(key);
        }
        self.env.scratch.early = early;
    }

    /// Starts `client_body_timeout` for a request body that is read.
    fn watch_body(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(live) = self.exchanges.live.get(key) else { return };
        if live.upload == UploadState::Over {
            return;
        }
        let timeout = live.body_timeout();
        self.env.wheel.arm_once(self.env.now.mono.after(timeout), PollToken::Body(key).pack());
    }

    /// The connection by which a response is sent.
    pub(crate) fn subject_of(&self, key: SlabKey<ActiveExchange>) -> Option<Subject> {
        self.clients.subject(self.exchanges.root_owner(Owner::Parent(key))?)
    }

    /// Resets the stream of a client that timed out; that was logged already.
    pub(crate) fn cut_stream(&mut self, key: SlabKey<ActiveExchange>) {
        if let Some(live) = self.exchanges.live.get(key) {
            self.cut_off(key, live.owner, live.stream);
        }
    }

    /// The same, for an exchange that may have been detached from its stream.
    pub(crate) fn cut_off(&mut self, key: SlabKey<ActiveExchange>, owner: Owner, stream: StreamId) {
        let cut = self.clients.reset_stream(owner, stream, ResetCause::ClientLate);
        self.step(key, Wake::SendTimeout);
        self.dismiss(key);
        match owner {
            Owner::Tcp(conn) if cut == Cut::Connection => self.close_timed_out(conn),
            Owner::Tcp(conn) => self.clients.tcp.mark_dirty(conn),
            Owner::Quic(_) | Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    fn begin(&mut self, owner: Owner, stream: StreamId, head: Box<RequestHead>, wake: Wake) {
        let Some((site, head_began)) = self.clients.begin_at_site(owner, &self.env) else { return };
        let has_body = head.body != RequestBody::None;
        let spoken = ConnProtocol::of(head.version);
        let mut exchange = self.exchanges.take_spare();
        exchange.start(head, site, head_began.map(|moment| self.env.now.at(moment)));
        let mut live = ActiveExchange::new(exchange, owner, stream, self.env.now.mono);
        live.spoken = spoken;
        if has_body {
            live.upload = UploadState::Coming { since: self.env.now.mono, owed: 0 };
        }
        let key = match self.exchanges.live.insert(live) {
            Ok(key) => key,
            Err(live) => {
                debug_assert!(false, "streams are bounded below the slab: {:?}", live.stream);
                return self.close_owner(owner, Reset::Yes);
            }
        };
        self.clients.bind(owner, stream, key.to_bits(), &self.env);
        self.env.tally.add(TallyCount::Requests, spoken);
        self.env.tally.add(TallyCount::Writing, spoken);
        if has_body && matches!(wake, Wake::Start) {
            return self.env.scratch.early.push((key, wake));
        }
        self.step(key, wake);
        if has_body {
            self.watch_body(key);
        }
    }

    /// Steps an exchange and performs its effects.
    pub(crate) fn step(&mut self, key: SlabKey<ActiveExchange>, wake: Wake) {
        let (mut wake, mut bound) = (wake, Bound::new());
        while bound.goes_on() {
            debug_assert!(self.exchanges.effects.is_empty(), "effects do not outlive a step");
            let Some((live, mut ctx)) = self.lend(key) else { return };
            live.exchange.step(wake, &mut ctx);
            let mut next = None;
            let mut effects = std::mem::take(&mut self.exchanges.effects);
            for effect in effects.drain(..) {
                let then = self.perform(key, effect);
                debug_assert!(next.is_none() || then.is_none(), "one wish per step is answered");
                next = next.or(then);
            }
            self.exchanges.effects = effects;
            match next {
                Some(then) => wake = then,
                None => return,
            }
        }
    }

    /// An exchange, and the context of its step.
    // PERF: the context has 120 bytes, which need not be moved if it is built where it is used.
    #[allow(clippy::inline_always, reason = "measured: 150 instructions of a hit")]
    #[inline(always)]
    pub(crate) fn lend(
        &mut self,
        key: SlabKey<ActiveExchange>,
    ) -> Option<(&mut ActiveExchange, StepCtx<'_>)> {
        let mut owner = self.exchanges.live.get(key)?.owner;
        if matches!(owner, Owner::Parent(_)) {
            owner = self.exchanges.root_owner(owner)?;
        }
        let live = self.exchanges.live.get_mut(key)?;
        let AskingConn { info, fd, requests, behind } = self.clients.asker(owner)?;
        let tcp = match fd {
            Some(fd) if self.env.reads_tcp => {
                self.env.tcp_info = self.env.io.tcp_info(fd);
                self.env.tcp_info.as_ref()
            }
            _ => None,
        };
        let ctx = StepCtx {
            now: self.env.now,
            clock: &self.env.clock,
            conn: info,
            files: &mut self.env.files,
            rulings: &mut self.env.rulings,
            prng: &mut self.env.prng,
            logs: &mut self.env.logs,
            effects: &mut self.exchanges.effects,
            requests_on_conn: requests,
            background: background_capacity(
                self.clients.post_actions.live(),
                self.env.generation.connections_max,
                behind,
            ),
            counters: &self.env.tallies,
            cache: self.env.kept.front.as_mut(),
            me: key.to_bits(),
            tcp,
        };
        Some((live, ctx))
    }

    /// Frees an exchange whose log lines are written.
    pub(crate) fn retire(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(live) = self.exchanges.live.get_mut(key) else { return };
        for child in std::mem::take(&mut live.children) {
            self.give_up(child, false);
        }
        let Some(mut live) = self.exchanges.live.remove(key) else { return };
        debug_assert!(live.children.is_empty(), "parts end before the page");
        if let Some(path) = live.exchange.upload_mut().take_file() {
            let _ = self.env.io.unlink(&path);
        }
        if let Some(fetch) = live.fetch {
            self.origins.abandon_fetch(fetch, &mut self.env, &mut self.exchanges);
        }
        if !matches!(live.owner, Owner::Parent(_)) {
            self.env.tally.remove(TallyCount::Writing, live.spoken);
        }
        match live.owner {
            Owner::Tcp(_) | Owner::Quic(_) => self.clients.count_ended(live.owner),
            Owner::Parent(page) => self.leave_page(key, page),
            Owner::PostAction(post_action) => self.clients.end_post_action(post_action),
        }
        self.env.heads.put(live.exchange.take_request());
        self.exchanges.put_spare(live.exchange);
        if self.env.logs.is_crowded() {
            self.env.write_logs(Due::Only);
        }
    }

    /// Wakes every exchange of a connection that is gone.
    ///
    /// `is_reset` tells whether the client has reset its connection.
    pub(crate) fn orphan(&mut self, owner: Owner, is_reset: bool) {
        if self.clients.owned(owner) == 0 {
            return;
        }
        let mut users = std::mem::take(&mut self.env.scratch.gone);
        self.clients.users(owner, &mut users);
        for user in users.drain(..) {
            self.give_up(SlabKey::from_bits(user), is_reset);
        }
        // PERF: exchanges without a stream whose fetch still runs are few, and the search visits
        // all exchanges.
        if self.clients.owned(owner) > 0 {
            let all = self.exchanges.live.keys();
            let owned = |key| self.exchanges.live.get(key).is_some_and(|live| live.owner == owner);
            users.extend(all.filter(|&key| owned(key)).map(SlabKey::to_bits));
            for user in users.drain(..) {
                self.give_up(SlabKey::from_bits(user), is_reset);
            }
        }
        self.env.scratch.gone = users;
    }

    /// Ends the exchanges of a connection that is closed because its client timed out.
    pub(crate) fn send_away(&mut self, owner: Owner) {
        let mut users = std::mem::take(&mut self.env.scratch.gone);
        self.clients.users(owner, &mut users);
        for user in users.drain(..) {
            self.step(SlabKey::from_bits(user), Wake::SendTimeout);
        }
        self.env.scratch.gone = users;
    }

    /// Wakes an exchange whose client is gone.
    pub(crate) fn give_up(&mut self, key: SlabKey<ActiveExchange>, is_reset: bool) {
        self.step(key, if is_reset { Wake::ClientReset } else { Wake::ClientGone });
        self.dismiss(key);
    }

    /// Frees an exchange whose client is gone, unless it continues without one.
    fn dismiss(&mut self, key: SlabKey<ActiveExchange>) {
        if !self.exchanges.outlives(key) {
            self.retire(key);
        }
    }

    /// Whether a client waits for this server: it has requests in progress, whose bodies have
    /// deadlines of their own.
    pub(crate) fn is_waited_for(&mut self, owner: Owner) -> bool {
        let mut users = std::mem::take(&mut self.env.scratch.gone);
        self.clients.users(owner, &mut users);
        let waits = !users.is_empty();
        users.clear();
        self.env.scratch.gone = users;
        waits
    }

    /// Ends the request of a client that hung up while an upstream makes its response; as in nginx,
    /// even if the client only closed its sending side.
    pub(crate) fn leave_if_alone(&mut self, key: SlabKey<TcpConn>) {
        let Some(conn) = self.clients.tcp.conns.get(key) else { return };
        let Some(ConnFraming::H1(framing)) = &conn.framing else { return };
        // In a tunnel, only one direction has ended.
        let has_left = (conn.eof || conn.hung_up) && !framing.is_tunnel();
        let user = framing.users().next().filter(|_| has_left);
        let live = user.and_then(|user| self.exchanges.live.get(SlabKey::from_bits(user)));
        // The rest of a body may come before the end.
        let Some(live) = live.filter(|live| live.upload == UploadState::Over) else { return };
        let fetch = live.fetch.and_then(|fetch| self.origins.fetches.get(fetch));
        let ignores = match fetch {
            // As in nginx, a response that is stored as a file is completed.
            Some(fetch) => fetch.is_storing() || fetch.fetch.request().settings.ignore_client_abort,
            None if live.exchange.is_held_back() => false,
            // Work of this worker alone is done soon.
            None if !live
                .children
                .iter()
                .any(|child| self.exchanges.asks_others(*child, &self.env.news)) =>
            {
                return;
            }
            None => {
                live.exchange.settings().is_some_and(|settings| settings.origin.ignore_client_abort)
            }
        };
        if ignores {
            return;
        }
        self.close(key, Reset::No);
    }
}

const fn convert(refusal: bolide_wire::WireRefusal) -> bolide_engine::RequestRefusal {
    bolide_engine::RequestRefusal { status: refusal.status, reason: refusal.reason }
}
