//! Requests to origins: what exchanges want of them, what they want done, and their deadlines.

use std::sync::Arc;

use bolide_base::deadline_queue::Armed;
use bolide_base::limits::UNWAITED_FILLS_MAX;
use bolide_base::{Bound, Instant, SlabKey};
use bolide_engine::{Fill, LimitHold, Wake};
use bolide_io::Io;
use bolide_upstream::{
    Cause, ConnectRefused, Fetch, FetchCtx, FetchEffect, FetchFate, FetchWake, OriginNews,
    OriginRequest, UpstreamGroups,
};
use bolide_wire::OriginConnSettings;
use bytes::Bytes;

use crate::effects::StreamAct;
use crate::exchanges::{ActiveExchange, Owner};
use crate::links::UpstreamLink;
use crate::mail::Mail;
use crate::token::PollToken;
use crate::worker::Worker;

/// A request to an origin in flight.
#[derive(Debug)]
pub(crate) struct LiveFetch {
    pub(crate) fetch: Fetch,
    /// The exchange that waits for the answer; none when the client left and the fetch goes on.
    pub(crate) exchange: Option<SlabKey<ActiveExchange>>,
    /// What listens for the store.
    pub(crate) fill: Option<Box<Fill>>,
    /// The connection that it uses.
    pub(crate) link: Option<SlabKey<UpstreamLink>>,
    /// The groups of the configuration that its exchange is answered by.
    groups: Arc<UpstreamGroups>,
    /// What TLS to origins is like there, if it is wanted.
    pub(crate) tls: Option<Arc<[bolide_tls::OriginTls]>>,
    /// Bytes of the request body that left in this attempt.
    pub(crate) pulled: u64,
    /// Bytes of the request body whose room was given back.
    given: u64,
    answers_head: bool,
    /// When it wants to be woken.
    deadline: Option<Instant>,
    /// Where `limit_conn` counts who asked: as long as the origin works for him.
    _held: LimitHold,
}

impl LiveFetch {
    /// Whether the store wants the rest of the answer.
    pub(crate) fn is_filling(&self) -> bool {
        self.fill.as_ref().is_some_and(|fill| fill.is_filling())
    }

    /// What the connection is told with the request.
    pub(crate) fn conn_settings(&self) -> OriginConnSettings {
        let settings = &self.fetch.request().settings;
        let fill_max = self.fill.as_ref().map_or(0, |fill| fill.head_max());
        OriginConnSettings {
            head_max: settings.buffer_size.max(fill_max),
            keep: self.fetch.keeps(),
            answers_head: self.answers_head,
        }
    }
}

impl<I: Io> Worker<I> {
    /// An exchange asks an origin.
    pub(crate) fn begin_fetch(
        &mut self,
        key: SlabKey<ActiveExchange>,
        request: Box<OriginRequest>,
    ) {
        let Some(live) = self.core.exchanges.get_mut(key) else { return };
        debug_assert!(live.fetch.is_none(), "an exchange asks one origin at a time");
        let Some(site) = live.exchange.site() else { return };
        let fetch = LiveFetch {
            groups: site.groups().clone(),
            tls: self.origins.secrets.find(site.shared(), &request),
            exchange: Some(key),
            link: None,
            pulled: 0,
            given: 0,
            answers_head: answers_head(&request).unwrap_or_else(|| {
                // What is kept is asked for whole.
                live.exchange.method() == bolide_http::Method::Head
                    && !live.fill.as_ref().is_some_and(|fill| fill.is_filling())
            }),
            deadline: None,
            _held: live.exchange.held(),
            fill: live.fill.take(),
            fetch: Fetch::new(request),
        };
        let Ok(fetch) = self.origins.fetches.insert(fetch) else {
            let refused = ConnectRefused { status: 503, retry_after: None, cause: Cause::Busy };
            let news = Wake::Origin(OriginNews::Failed(refused));
            return self.origins.news.push_back((key, news));
        };
        live.fetch = Some(fetch);
        live.paused = false;
        let owner = live.owner;
        let Some(owner) = self.root_owner(owner) else { return };
        self.step_fetch(fetch, FetchWake::Start);
        self.check_client(owner);
        if let Owner::Quic(conn) = owner {
            self.ping_while_waiting(conn);
        }
    }

    /// An origin is asked for the store alone.
    pub(crate) fn begin_refresh(
        &mut self,
        key: SlabKey<ActiveExchange>,
        request: Box<OriginRequest>,
        fill: Box<Fill>,
    ) {
        let Some(live) = self.core.exchanges.get(key) else { return };
        let Some(site) = live.exchange.site() else { return };
        let fetch = LiveFetch {
            groups: site.groups().clone(),
            tls: self.origins.secrets.find(site.shared(), &request),
            exchange: None,
            fill: Some(fill),
            link: None,
            pulled: 0,
            given: 0,
            answers_head: answers_head(&request).unwrap_or(false),
            deadline: None,
            _held: live.exchange.held(),
            fetch: Fetch::new(request),
        };
        if self.origins.unwaited_fills() >= UNWAITED_FILLS_MAX {
            // The stale object serves on; the next request tries to revalidate it again.
            return;
        }
        if let Ok(fetch) = self.origins.fetches.insert(fetch) {
            self.origins.unwaited.push(fetch);
            self.step_fetch(fetch, FetchWake::Start);
        }
    }

    /// Wakes those who wait for a fill, on whichever worker they are.
    pub(crate) fn post(&mut self, wakes: bolide_cache::Wakes) {
        for waiter in wakes.0 {
            if waiter.worker == self.number {
                self.origins.news.push_back((SlabKey::from_bits(waiter.exchange), Wake::Filled));
                continue;
            }
            let Some(post) = self.posts.get(usize::from(waiter.worker)) else { continue };
            if post.send(Mail::News { exchange: waiter.exchange }).is_err() {
                self.origins.unsent.push(waiter);
            }
        }
    }

    /// What the store is owed in each turn.
    pub(crate) fn tend_cache(&mut self) {
        /// Turns between two looks for what can be freed.
        const SWEEP_EVERY: u32 = 64;
        let Some(front) = &mut self.core.cache else { return };
        front.tend(4);
        self.origins.unswept += 1;
        if self.origins.unswept >= SWEEP_EVERY {
            self.origins.unswept = 0;
            front.store().sweep(64, self.now.unix_millis);
        }
        let mut wakes = front.poll_orphans();
        self.wake_disk_writer();
        wakes.0.append(&mut self.origins.unsent);
        self.post(wakes);
    }

    /// More of the request body.
    pub(crate) fn feed_fetch(&mut self, key: SlabKey<ActiveExchange>, bytes: Bytes) {
        let Some(live) = self.fetch_of(key) else {
            return self.with_stream(key, StreamAct::Consumed(bytes.len()));
        };
        live.fetch.body_mut().push(bytes);
        self.resume_body(key);
    }

    /// The request body is complete.
    pub(crate) fn finish_fetch_body(&mut self, key: SlabKey<ActiveExchange>) {
        if let Some(live) = self.fetch_of(key) {
            live.fetch.body_mut().finish();
            self.resume_body(key);
        }
        let owner = self.core.exchanges.get(key).map(|live| live.owner);
        if let Some(owner) = owner.and_then(|owner| self.root_owner(owner)) {
            self.check_client(owner);
        }
    }

    /// A client that hung up before there was something to wait for is not reported again.
    fn check_client(&mut self, owner: Owner) {
        if let Owner::Tcp(key) = owner
            && self.conns.get(key).is_some_and(|conn| conn.hung_up || conn.eof)
        {
            self.origins.left.push(key);
        }
    }

    fn fetch_of(&mut self, key: SlabKey<ActiveExchange>) -> Option<&mut LiveFetch> {
        let fetch = self.core.exchanges.get(key)?.fetch?;
        self.origins.fetches.get_mut(fetch)
    }

    fn resume_body(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(link) = self.fetch_of(key).and_then(|live| live.link) else { return };
        if let Some(found) = self.origins.links.get_mut(link) {
            found.conn.body_ready();
            self.mark_link(link);
        }
    }

    /// The answer is not used any more.
    pub(crate) fn drop_fetch(&mut self, key: SlabKey<ActiveExchange>) {
        // What it told already must not be taken for news of the next one.
        self.origins.news.retain(|(told, wake)| {
            *told != key
                || !matches!(wake, Wake::Origin(news) if !matches!(news, OriginNews::Log { .. }))
        });
        let Some(live) = self.core.exchanges.get_mut(key) else { return };
        let Some(fetch) = live.fetch.take() else { return };
        live.paused = false;
        self.abandon_fetch(fetch);
    }

    /// Lets a fetch end without its exchange.
    pub(crate) fn abandon_fetch(&mut self, fetch: SlabKey<LiveFetch>) {
        if let Some(live) = self.origins.fetches.get_mut(fetch) {
            live.exchange = None;
            // The store wants it, and maybe others do.
            if live.is_filling() {
                self.origins.unwaited.push(fetch);
                return;
            }
        }
        self.step_fetch(fetch, FetchWake::Abandoned);
        // It may go on for an origin that is to finish what it began.
        self.reread_fetch(fetch);
    }

    /// The answer's reader has room again.
    pub(crate) fn resume_fetch(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(live) = self.core.exchanges.get_mut(key) else { return };
        if !std::mem::take(&mut live.paused) {
            return;
        }
        let Some(fetch) = live.fetch else { return };
        self.step_fetch(fetch, FetchWake::Resumed);
        self.reread_fetch(fetch);
    }

    /// Lets the connection of a fetch be read though nothing is reported.
    fn reread_fetch(&mut self, fetch: SlabKey<LiveFetch>) {
        if let Some(link) = self.origins.fetches.get(fetch).and_then(|live| live.link) {
            self.read_again(link);
        }
    }

    /// Gives the client's stream the room of what left for the origin.
    pub(crate) fn give_room_back(&mut self, fetch: SlabKey<LiveFetch>) {
        let Some(live) = self.origins.fetches.get_mut(fetch) else { return };
        // A second attempt sends bytes whose room was given back by the first.
        let due = live.pulled.saturating_sub(live.given);
        let Some(key) = live.exchange.filter(|_| due > 0) else { return };
        live.given = live.pulled;
        self.with_stream(key, StreamAct::Consumed(due as usize));
    }

    /// Steps a fetch and does what it wants done.
    pub(crate) fn step_fetch(&mut self, key: SlabKey<LiveFetch>, wake: FetchWake) {
        self.origins.stepped = true;
        let (mut next, mut bound) = (Some(wake), Bound::new());
        while bound.goes_on()
            && let Some(wake) = next.take()
        {
            let Some(live) = self.origins.fetches.get_mut(key) else { return };
            let mut ctx = FetchCtx {
                now: self.now,
                me: key.to_bits(),
                prng: &mut self.core.prng,
                groups: &live.groups,
                pools: &mut self.origins.pools,
                effects: &mut self.origins.effects,
            };
            live.fetch.step(wake, &mut ctx);
            let mut effects = std::mem::take(&mut self.origins.effects);
            for effect in effects.drain(..) {
                let then = self.perform_fetch(key, effect);
                debug_assert!(next.is_none() || then.is_none(), "one wish per step is answered");
                next = next.or(then);
            }
            self.origins.effects = effects;
        }
    }

    fn perform_fetch(&mut self, key: SlabKey<LiveFetch>, effect: FetchEffect) -> Option<FetchWake> {
        match effect {
            FetchEffect::Connect(to) => return self.call_origin(key, &to),
            FetchEffect::Reuse(name) => return self.reuse_link(key, name),
            FetchEffect::Send => self.start_link(key),
            FetchEffect::Deadline(at) => {
                if let Some(live) = self.origins.fetches.get_mut(key) {
                    live.deadline = Some(at);
                    self.arm_fetch(key, at);
                }
            }
            FetchEffect::Tell(news) => self.tell(key, news),
            FetchEffect::Release(fate) => self.release_link(key, fate),
            FetchEffect::Evict(name) => self.close_idle(name),
            FetchEffect::Finish => self.end_fetch(key),
        }
        None
    }

    fn tell(&mut self, key: SlabKey<LiveFetch>, news: OriginNews) {
        let Some(live) = self.origins.fetches.get_mut(key) else { return };
        let listener = live.exchange;
        if let Some(fill) = &mut live.fill {
            let was_filling = fill.is_filling();
            let wakes = fill.hear(&news, self.now);
            let is_filling = fill.is_filling();
            if matches!(news, OriginNews::Head(_))
                && let Some(waiting) = listener.and_then(|key| self.core.exchanges.get_mut(key))
            {
                waiting.exchange.note_kept(fill);
            }
            if was_filling && !is_filling && listener.is_none() {
                self.origins.unheard.push(key);
            }
            self.note_purges();
            self.post(wakes);
        }
        if let Some(exchange) = listener {
            self.origins.news.push_back((exchange, Wake::Origin(news)));
        }
    }

    fn end_fetch(&mut self, key: SlabKey<LiveFetch>) {
        self.release_link(key, FetchFate::Close);
        let Some(live) = self.origins.fetches.remove(key) else { return };
        let Some(exchange) = live.exchange else { return };
        if let Some(waiting) = self.core.exchanges.get_mut(exchange)
            && waiting.fetch == Some(key)
        {
            (waiting.fetch, waiting.paused) = (None, false);
        }
    }

    /// PERF: the entry belongs to the slot, not to its tenant, or every short request would leave
    /// one behind for the length of a timeout.
    fn arm_fetch(&mut self, key: SlabKey<LiveFetch>, at: Instant) {
        let slot = slot_of(key);
        let all = &mut self.origins.armed_slots;
        if all.len() <= slot {
            all.resize_with(slot + 1, Armed::default);
        }
        self.wheel.arm(&mut all[slot], at, PollToken::Fetch(slot as u32).pack());
    }

    /// The moment that a fetch in this slot asked for may have come.
    pub(crate) fn expire_fetch(&mut self, slot: u32, at: Instant) {
        if let Some(armed) = self.origins.armed_slots.get_mut(slot as usize) {
            armed.fired(at);
        }
        let Some(key) = self.origins.fetches.key_at(slot) else { return };
        let Some(live) = self.origins.fetches.get_mut(key) else { return };
        match live.deadline {
            Some(deadline) if deadline <= self.now.mono => {
                live.deadline = None;
                self.step_fetch(key, FetchWake::Deadline);
            }
            Some(deadline) => self.arm_fetch(key, deadline),
            None => {}
        }
    }

    /// Wakes those whose turn in the queue of a group has come.
    pub(crate) fn take_turns(&mut self) {
        let mut turns = std::mem::take(&mut self.origins.turns);
        let mut bound = Bound::new();
        while bound.goes_on() {
            self.origins.pools.take_turns(&mut turns);
            if turns.wake.is_empty() && turns.tell.is_empty() {
                break;
            }
            for notice in turns.tell.drain(..) {
                if let Some(post) = self.posts.get(notice.worker) {
                    // A full box belongs to a worker that will look at its queue anyway.
                    let _ = post.send(Mail::Turn { group: notice.group });
                }
            }
            for fetch in std::mem::take(&mut turns.wake) {
                self.step_fetch(SlabKey::from_bits(fetch), FetchWake::Turn);
            }
        }
        self.origins.turns = turns;
    }
}

/// Where in the slab a fetch lives.
const fn slot_of(key: SlabKey<LiveFetch>) -> usize {
    (key.to_bits() & 0xffff_ffff) as usize
}

/// Whether the answer to `request` has no body, by the method that an HTTP upstream server gets: a
/// proxy that believes otherwise takes what follows on the connection for something else.
fn answers_head(request: &OriginRequest) -> Option<bool> {
    request.params.get(b":method").map(|method| method == b"HEAD")
}
