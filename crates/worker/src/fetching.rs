//! Fetches: the effects of exchanges on them, their own effects, and their deadlines.

use bolide_base::deadline_queue::Armed;
use bolide_base::limits::UNWAITED_FILLS_MAX;
use bolide_base::{Bound, Instant, SlabKey};
use bolide_engine::{Exchange, Fill, Wake};
use bolide_http::{Http2Head, UpstreamMessage};
use bolide_io::Io;
use bolide_upstream::{
    Cause, ConnectRefused, Fetch, FetchCtx, FetchEffect, FetchFate, FetchWake, OriginNews,
    OriginRequest,
};
use bytes::Bytes;

use crate::env::WorkerEnv;
use crate::exchange_table::{ActiveExchange, Exchanges};
use crate::fetches::LiveFetch;
use crate::mail::Mail;
use crate::stored_answers::StoredAnswer;
use crate::token::PollToken;
use crate::upstream_groups::Origins;
use crate::upstream_link::UpstreamLink;

impl Origins {
    /// Starts the fetch of an exchange; false if there is no room for one.
    pub(crate) fn begin_fetch<I: Io>(
        &mut self,
        key: SlabKey<ActiveExchange>,
        request: Box<OriginRequest>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) -> bool {
        let Some(live) = exchanges.live.get_mut(key) else { return false };
        debug_assert!(live.fetch.is_none(), "an exchange asks one origin at a time");
        let (fill, order) = (live.fill.take(), live.store.take());
        let answers_head = answers_head(&request).unwrap_or_else(|| {
            // A response that may be stored is requested as a whole.
            live.exchange.method() == bolide_http::Method::Head
                && !fill.as_ref().is_some_and(|fill| fill.is_filling())
        });
        let fetch = self.new_fetch(&live.exchange, request, answers_head);
        let Some(fetch) = fetch else { return false };
        let stored = order.map(|order| Box::new(StoredAnswer::new(order)));
        let fetch = LiveFetch { exchange: Some(key), fill, stored, ..fetch };
        let fetch = match self.fetches.insert(fetch) {
            Ok(fetch) => fetch,
            Err(mut fetch) => {
                if let Some(unsent) = fetch.fetch.take_unsent() {
                    live.exchange.upload_mut().give_back_unsent(unsent);
                }
                let refused = ConnectRefused { status: 503, retry_after: None, cause: Cause::Busy };
                env.news.wake(key, Wake::Origin(OriginNews::Failed(refused)));
                return false;
            }
        };
        live.fetch = Some(fetch);
        live.paused = false;
        self.step_fetch(fetch, FetchWake::Start, env, exchanges);
        true
    }

    /// Starts a fetch for the store alone.
    pub(crate) fn begin_refresh<I: Io>(
        &mut self,
        key: SlabKey<ActiveExchange>,
        request: Box<OriginRequest>,
        fill: Box<Fill>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(live) = exchanges.live.get(key) else { return };
        let answers_head = answers_head(&request).unwrap_or(false);
        let Some(fetch) = self.new_fetch(&live.exchange, request, answers_head) else { return };
        let fetch = LiveFetch { fill: Some(fill), ..fetch };
        if self.unwaited_fills() >= UNWAITED_FILLS_MAX {
            // The stale object stays in use; the next request tries to revalidate it again.
            return;
        }
        if let Ok(fetch) = self.fetches.insert(fetch) {
            self.unwaited.push(fetch);
            self.step_fetch(fetch, FetchWake::Start, env, exchanges);
        }
    }

    /// A fetch on behalf of an exchange, not bound to an exchange or a fill yet.
    fn new_fetch(
        &self,
        exchange: &Exchange,
        request: Box<OriginRequest>,
        answers_head: bool,
    ) -> Option<LiveFetch> {
        let site = exchange.site()?;
        Some(LiveFetch {
            groups: site.groups().clone(),
            tls: self.tls_settings.find(site.shared(), &request),
            exchange: None,
            fill: None,
            stored: None,
            link: None,
            lookup: None,
            pulled: 0,
            given: 0,
            answers_head,
            deadline: None,
            _held: exchange.held(),
            fetch: Fetch::new(request),
        })
    }

    /// Passes a piece of the request body to the fetch of an exchange.
    ///
    /// # Errors
    ///
    /// There is no fetch any more; the piece is returned.
    pub(crate) fn feed_fetch(
        &mut self,
        fetch: Option<SlabKey<LiveFetch>>,
        bytes: Bytes,
    ) -> Result<(), Bytes> {
        let live = fetch.and_then(|fetch| self.fetches.get_mut(fetch));
        let Some(live) = live else { return Err(bytes) };
        live.fetch.body_mut().push(bytes);
        let link = live.link;
        self.resume_body(link);
        Ok(())
    }

    /// The connection of a fetch is a tunnel now, whose bytes have no rate limit; at most `memory`
    /// bytes of the client are buffered.
    pub(crate) fn begin_tunnel(&mut self, fetch: Option<SlabKey<LiveFetch>>, memory: usize) {
        if let Some(live) = fetch.and_then(|fetch| self.fetches.get_mut(fetch)) {
            debug_assert!(live.link.is_some(), "a tunnel has a connection");
            live.fetch.begin_tunnel(memory);
            if let Some(link) = live.link.and_then(|link| self.links.table.get_mut(link)) {
                link.throttle = None;
            }
        }
    }

    /// The request body of a fetch is complete.
    pub(crate) fn finish_body(&mut self, fetch: SlabKey<LiveFetch>) {
        let Some(live) = self.fetches.get_mut(fetch) else { return };
        live.fetch.body_mut().finish();
        let link = live.link;
        self.resume_body(link);
    }

    fn resume_body(&mut self, link: Option<SlabKey<UpstreamLink>>) {
        let Some(key) = link else { return };
        if let Some(found) = self.links.table.get_mut(key) {
            found.conn.body_ready();
            self.links.mark_link(key);
        }
    }

    /// Records how many bytes of a request body can be credited to the client's window.
    pub(crate) fn credit_request_body(&mut self, fetch: SlabKey<LiveFetch>) {
        let Some(live) = self.fetches.get_mut(fetch) else { return };
        // A second attempt sends bytes that were credited in the first.
        let due = live.pulled.saturating_sub(live.given);
        let Some(key) = live.exchange.filter(|_| due > 0) else { return };
        live.given = live.pulled;
        self.freed.push((key, due as usize));
    }

    /// Lets a fetch end without its exchange.
    pub(crate) fn abandon_fetch<I: Io>(
        &mut self,
        fetch: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        if let Some(live) = self.fetches.get_mut(fetch) {
            live.exchange = None;
            // The store, and perhaps followers, need it.
            if live.is_needed() {
                debug_assert!(live.fill.is_some() || live.is_storing(), "it is needed for one");
                self.unwaited.push(fetch);
                // No client limits its speed any more.
                if !live.feeds_store() {
                    self.step_fetch(fetch, FetchWake::Resumed, env, exchanges);
                    self.reread_fetch(fetch);
                }
                return;
            }
        }
        self.step_fetch(fetch, FetchWake::Abandoned, env, exchanges);
        // An upstream may have to finish what it began.
        self.reread_fetch(fetch);
    }

    /// The reader of the response has room again.
    pub(crate) fn resume_fetch<I: Io>(
        &mut self,
        key: SlabKey<ActiveExchange>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(live) = exchanges.live.get_mut(key) else { return };
        if !std::mem::take(&mut live.paused) {
            return;
        }
        let Some(fetch) = live.fetch else { return };
        self.step_fetch(fetch, FetchWake::Resumed, env, exchanges);
        self.reread_fetch(fetch);
    }

    /// Reads the connection of a fetch without a report.
    fn reread_fetch(&mut self, fetch: SlabKey<LiveFetch>) {
        if let Some(link) = self.fetches.get(fetch).and_then(|live| live.link) {
            self.links.read_again(link);
        }
    }

    /// Steps a fetch and performs its effects.
    pub(crate) fn step_fetch<I: Io>(
        &mut self,
        key: SlabKey<LiveFetch>,
        wake: FetchWake,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        self.stepped = true;
        let (mut next, mut bound) = (Some(wake), Bound::new());
        while bound.goes_on()
            && let Some(wake) = next.take()
        {
            debug_assert!(self.effects.is_empty(), "effects do not outlive a step");
            let Some(live) = self.fetches.get_mut(key) else { return };
            let mut ctx = FetchCtx {
                now: env.now,
                me: key.to_bits(),
                prng: &mut env.prng,
                groups: &live.groups,
                pools: &mut self.links.pools,
                effects: &mut self.effects,
            };
            live.fetch.step(wake, &mut ctx);
            let mut effects = std::mem::take(&mut self.effects);
            for effect in effects.drain(..) {
                let then = self.perform_fetch(key, effect, env, exchanges);
                debug_assert!(next.is_none() || then.is_none(), "one wish per step is answered");
                next = next.or(then);
            }
            self.effects = effects;
        }
    }

    fn perform_fetch<I: Io>(
        &mut self,
        key: SlabKey<LiveFetch>,
        effect: FetchEffect,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) -> Option<FetchWake> {
        match effect {
            FetchEffect::Resolve(target) => self.begin_lookup(key, &target, env),
            FetchEffect::Connect(to) => return self.call_origin(key, &to, env),
            FetchEffect::Reuse(name) => return self.reuse_link(key, name, env),
            FetchEffect::Send => self.start_link(key, env),
            FetchEffect::Deadline(at) => {
                if let Some(live) = self.fetches.get_mut(key) {
                    live.deadline = Some(at);
                    self.arm_fetch(key, at, env);
                }
            }
            FetchEffect::Notify(news) => self.deliver_news(key, news, env, exchanges),
            FetchEffect::Release(fate) => self.release_link(key, fate, env),
            FetchEffect::Linger => {
                self.let_linger(key, env, exchanges);
                return env.draining.then_some(FetchWake::Draining);
            }
            FetchEffect::Evict(name) => self.links.close_idle(name, env),
            FetchEffect::Finish => self.end_fetch(key, env, exchanges),
        }
        None
    }

    fn deliver_news<I: Io>(
        &mut self,
        key: SlabKey<LiveFetch>,
        news: OriginNews,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(live) = self.fetches.get_mut(key) else { return };
        let listener = live.exchange;
        if let Some(fill) = &mut live.fill {
            let was_filling = fill.is_filling() || fill.awaits_purges();
            let waiting = listener.and_then(|key| exchanges.live.get_mut(key));
            let wakes =
                fill.handle_news(&news, waiting.map(|waiting| &mut *waiting.exchange), env.now);
            let is_filling = fill.is_filling() || fill.awaits_purges();
            if was_filling && !is_filling && listener.is_none() {
                self.unheard.push(key);
            }
            env.news.post(wakes);
        }
        // Only the cache hears of it.
        if matches!(news, OriginNews::Unused(_)) {
            return;
        }
        // A window that was credited for a byte must not be credited for it again, and a connection
        // that lingers still sends it.
        if matches!(news, OriginNews::Failed(_))
            && (live.given, live.link) == (0, None)
            && let Some(waiting) = listener.and_then(|key| exchanges.live.get_mut(key))
            && let Some(unsent) = live.fetch.take_unsent()
        {
            waiting.exchange.upload_mut().give_back_unsent(unsent);
        }
        if let Some(stored) = &mut live.stored {
            let was_storing = stored.is_storing();
            self.placing.extend(stored.handle_news(&news, &mut self.answer_files, env));
            if was_storing && !stored.is_storing() && listener.is_none() {
                self.unheard.push(key);
            }
        }
        if let Some(exchange) = listener {
            debug_assert!(
                exchanges.live.get(exchange).is_none_or(|waiting| waiting.fetch == Some(key)),
                "news go to the exchange that began the fetch"
            );
            env.news.wake(exchange, Wake::Origin(news));
        }
    }

    /// The answer is for no exchange and no store any more; what comes of it is discarded.
    fn let_linger<I: Io>(
        &mut self,
        key: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Some(live) = self.fetches.get_mut(key) else { return };
        debug_assert!(live.link.is_some(), "a place is kept for what was sent");
        live.fill = None;
        if let Some(mut stored) = live.stored.take() {
            stored.forget(&mut env.io);
        }
        if let Some(exchange) = live.exchange.take() {
            exchanges.detach_fetch(exchange, key);
        }
        let is_whole = live.fetch.body_mut().is_complete();
        let Some(name) = live.link else { return };
        let Some(link) = self.links.table.get_mut(name) else { return };
        (link.throttle, link.is_slowed) = (None, false);
        if !is_whole {
            // The application learns that the rest of the body will not come.
            link.unsent.clear();
            link.is_deaf = true;
            env.io.shut_write(link.fd);
        }
        self.links.read_again(name);
    }

    /// The worker ends when all requests of clients have: places in pools are not waited for.
    pub(crate) fn drain_fetches<I: Io>(
        &mut self,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        for key in self.fetches.keys().collect::<Vec<_>>() {
            self.step_fetch(key, FetchWake::Draining, env, exchanges);
        }
    }

    /// The connection ended without TLS's word for it, which takes no key (RFC 9112 §9.8): what
    /// ends with it is passed on, and not kept.
    pub(crate) fn doubt_end<I: Io>(&mut self, key: SlabKey<LiveFetch>, env: &mut WorkerEnv<I>) {
        let Some(live) = self.fetches.get_mut(key) else { return };
        if let Some(fill) = &mut live.fill {
            fill.doubt_end();
        }
        if let Some(stored) = &mut live.stored {
            stored.forget(&mut env.io);
        }
    }

    fn end_fetch<I: Io>(
        &mut self,
        key: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        self.release_link(key, FetchFate::Close, env);
        let Some(mut live) = self.fetches.remove(key) else { return };
        if let Some(stored) = &mut live.stored {
            stored.forget(&mut env.io);
        }
        debug_assert!(live.link.is_none(), "a fetch lets go of its link before it ends");
        if let Some(lookup) = live.lookup {
            self.leave_lookup(lookup, env);
        }
        if let Some(exchange) = live.exchange {
            exchanges.detach_fetch(exchange, key);
        }
    }

    /// PERF: the entry belongs to the slot, not to the fetch, or every short request would leave
    /// one behind until the timeout.
    fn arm_fetch<I: Io>(&mut self, key: SlabKey<LiveFetch>, at: Instant, env: &mut WorkerEnv<I>) {
        let slot = slot_of(key);
        let all = &mut self.armed_slots;
        if all.len() <= slot {
            all.resize_with(slot + 1, Armed::default);
        }
        env.wheel.arm(&mut all[slot], at, PollToken::Fetch(slot as u32).pack());
    }

    /// Checks the deadline of a fetch in this slot.
    pub(crate) fn expire_fetch<I: Io>(
        &mut self,
        slot: u32,
        at: Instant,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        if let Some(armed) = self.armed_slots.get_mut(slot as usize) {
            armed.fired(at);
        }
        let Some(key) = self.fetches.key_at(slot) else { return };
        let Some(live) = self.fetches.get_mut(key) else { return };
        match live.deadline {
            Some(deadline) if deadline <= env.now.mono => {
                live.deadline = None;
                self.step_fetch(key, FetchWake::Deadline, env, exchanges);
            }
            Some(deadline) => self.arm_fetch(key, deadline, env),
            None => {}
        }
    }

    /// Wakes fetches whose turn in the queue of a group has come.
    pub(crate) fn take_turns<I: Io>(&mut self, env: &mut WorkerEnv<I>, exchanges: &mut Exchanges) {
        let mut turns = std::mem::take(&mut self.turns);
        let mut bound = Bound::new();
        while bound.goes_on() {
            self.links.pools.take_turns(&mut turns);
            if turns.wake.is_empty() && turns.notices.is_empty() {
                break;
            }
            for notice in turns.notices.drain(..) {
                if let Some(post) = env.news.posts.get(notice.worker) {
                    // A worker with a full mailbox looks at its queue anyway.
                    let _ = post.send(Mail::Turn { group: notice.group });
                }
            }
            for fetch in std::mem::take(&mut turns.wake) {
                self.step_fetch(SlabKey::from_bits(fetch), FetchWake::Turn, env, exchanges);
            }
        }
        self.turns = turns;
    }
}

/// The slab slot of a fetch.
const fn slot_of(key: SlabKey<LiveFetch>) -> usize {
    (key.to_bits() & 0xffff_ffff) as usize
}

/// Whether the response to `request` has no body, by the method that an HTTP upstream gets: a proxy
/// that disagrees with the upstream would take the next bytes of the connection for another
/// response.
fn answers_head(request: &OriginRequest) -> Option<bool> {
    match &request.message {
        UpstreamMessage::Http(head) | UpstreamMessage::Http2(Http2Head { head, .. }) => {
            Some(head.method() == b"HEAD")
        }
        UpstreamMessage::Cgi(_) | UpstreamMessage::Memcached(_) | UpstreamMessage::App(_) => None,
    }
}
