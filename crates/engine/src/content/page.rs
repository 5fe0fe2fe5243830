//! Answers out of the store: whose key it is, what the look-up found, who waits for whom.
//!
//! Owns the decision between serving, waiting and asking; what an origin's answer becomes is the
//! business of `fill`. Easiest to break: a permit that leads to no fetch is given up at once.

use std::sync::Arc;

use bolide_base::Instant;
use bolide_cache::rules::{self, Environment, Facts, Gate, KeyPiece, StoreRefusal};
use bolide_cache::{
    AbandonReason, FillPermit, Follow, Follower, KeyBuilder, Lookup, NamespaceId, Object,
    ObjectKind, SessionKey, Waited, Waiter,
};
use bolide_conf::Template;
use bolide_http::cookies::Cookies;
use bolide_http::lscache::CacheScope as Whose;
use bolide_http::{FieldMap, Method, RequestBody};

use crate::answer::AnswerBody;
use crate::content::revalidate::can_revalidate;
use crate::ctx::{SiteRef, StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::explain::Why;
use crate::fill::{Fill, Judge, RequestSnapshot};
use crate::filter::cache_status::CacheStatusFacts;
use crate::identity::{
    for_inlines, key_of, page_key, push_named, push_piece, unvaried_key, zone_key,
};
use crate::route::LocationIndex;
use crate::site::{CacheSpace, Caching, Site};
use crate::vars::VariableScope;

/// LIMIT: fills that one exchange waits for before it asks for itself.
pub(super) const ROUNDS_MAX: u8 = 3;
/// LIMIT: times that what a URL varies by leads to another look-up.
const VARY_ROUNDS: usize = 3;

/// `$upstream_cache_status`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UpstreamCacheStatus {
    /// No cache has a part in it.
    #[default]
    No,
    /// The origin was asked.
    Miss,
    /// The cache was not asked.
    Bypass,
    /// What there was is too old; the origin was asked.
    Expired,
    /// Old, because the origin failed or is asked in the background.
    Stale,
    /// Old, because somebody asks the origin.
    Updating,
    /// The origin said that it is still good.
    Revalidated,
    /// Fresh.
    Hit,
}

impl UpstreamCacheStatus {
    /// Whether the answer is one that was kept.
    pub(crate) const fn is_kept(self) -> bool {
        matches!(self, Self::Hit | Self::Stale | Self::Updating | Self::Revalidated)
    }

    /// nginx's word for it; none if no cache has a part.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::No => "",
            Self::Miss => "MISS",
            Self::Bypass => "BYPASS",
            Self::Expired => "EXPIRED",
            Self::Stale => "STALE",
            Self::Updating => "UPDATING",
            Self::Revalidated => "REVALIDATED",
            Self::Hit => "HIT",
        }
    }
}

/// What becomes of an answer that an origin gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreIntent {
    /// It passes by.
    #[default]
    No,
    /// It passes by for want of a lifetime, or because the configuration says so.
    Unkept,
    /// It is kept.
    Yes,
}

/// What an exchange knows of the store. Buffers are kept between requests.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(super) keys: KeyBuilder,
    /// For copies that do not vary.
    unvaried: KeyBuilder,
    text: Vec<u8>,
    /// How the request arrived at the location whose turn it was.
    pub(super) arrival: Vec<u8>,
    pub(crate) session: Vec<u8>,
    pub(crate) head: bolide_http::OriginHead,
    /// The location whose turn it was.
    looked: Option<LocationIndex>,
    pub(super) space: Option<NamespaceId>,
    gate: Option<Gate>,
    pub(crate) environment: Environment,
    pub(super) permit: Option<FillPermit>,
    pub(super) follower: Option<Follower>,
    /// An old object that may stand in for an error, or be confirmed.
    pub(super) stale: Option<Arc<Object>>,
    pub(super) revalidates: bool,
    /// Fills that came to nothing while it waited.
    pub(super) rounds: u8,
    /// How long it waits in line.
    pub(super) until: Option<Instant>,
    /// Looks at the disk.
    pub(super) recalls: u8,
    /// The disk has nothing of the session either.
    pub(super) is_private_absent: bool,
    /// Whether the permit is for a key of its own, from where the fill moves.
    is_past: bool,
    /// What becomes of the answer that comes.
    keeping: StoreIntent,
    /// Whether the origin was asked as if nobody had a condition or wanted a part.
    pub(crate) is_whole: bool,
    /// Why the store has the part that it has.
    pub(crate) why: Why,
    /// What else there is to tell of it.
    pub(crate) way: CacheStatusFacts,
    /// Why the answer that came is not kept.
    pub(crate) refusal: Option<StoreRefusal>,
    /// Hash of the key that was looked up last.
    pub(crate) hash: u128,
}

impl Page {
    /// Forgets the request; a permit that is left goes to nobody.
    pub(crate) fn clear(&mut self) {
        if self.looked.is_none() {
            return;
        }
        self.looked = None;
        self.space = None;
        self.forget();
        self.environment = Environment::default();
        (self.rounds, self.recalls, self.is_private_absent) = (0, 0, false);
    }

    /// Gives up a right to ask that nobody used.
    pub(crate) fn let_go(&mut self) {
        if self.permit.is_some() {
            self.permit = None;
        }
    }

    fn forget(&mut self) {
        self.permit = None;
        (self.follower, self.stale, self.revalidates) = (None, None, false);
        self.until = None;
        self.is_past = false;
        self.gate = None;
        self.keeping = StoreIntent::No;
        self.is_whole = false;
        self.why = Why::Asked;
        self.way = CacheStatusFacts::default();
        self.refusal = None;
        self.hash = 0;
    }

    /// The location whose turn it was, and its part of the store.
    pub(crate) const fn asked(&self) -> (Option<LocationIndex>, Option<NamespaceId>) {
        (self.looked, self.space)
    }

    /// The URL part of its key; empty if none was made.
    pub(crate) fn url(&self) -> &[u8] {
        if self.gate.is_some() { self.keys.public().url() } else { &[] }
    }

    /// What the request is known by, and its session.
    pub(crate) fn names(&self) -> (&KeyBuilder, &[u8]) {
        (&self.keys, &self.session)
    }
}

impl Exchange {
    /// Whether it waits for what somebody else fetches.
    #[must_use]
    pub fn is_coalescing(&self) -> bool {
        let waits = |body: &AnswerBody| match body {
            AnswerBody::Growing(growth) => growth.is_waiting(),
            AnswerBody::Assembly(assembly) => assembly.is_waiting(),
            _ => false,
        };
        let waits = waits(self.answer.body.innermost()) || self.is_assembling();
        self.page.follower.is_some() || waits
    }

    /// Notes what becomes of the answer that comes: to be told before its head is.
    pub fn note_kept(&mut self, fill: &Fill) {
        self.page.keeping = fill.keeping();
        self.page.refusal = fill.refusal();
        self.page.way.ttl = fill.ttl();
    }

    /// Whether the client's conditions are weighed against what the origin sends now, which was
    /// asked without them.
    pub(crate) fn evaluates_preconditions(&self) -> bool {
        self.page.keeping != StoreIntent::No
    }

    /// Whether what the origin sends now is kept.
    pub(crate) fn is_kept(&self) -> bool {
        self.page.keeping == StoreIntent::Yes
    }

    /// Answers out of the store, waits, or leaves it to the origin (none).
    pub(crate) fn page(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> Option<NextStep> {
        let caching = self.caching(site)?;
        if self.page.looked == Some(self.request.location) {
            return None;
        }
        self.answer.object = None;
        let Some(space) = self.begin_page(self.request.location, caching, site, ctx) else {
            return self.miss_zone(caching, site, ctx);
        };
        if let Some(next) = self.ordered_purge(caching, space, site, ctx) {
            self.page.why = Why::Purge;
            return Some(next);
        }
        self.autoflush(caching, space, site, ctx);
        // What comes for a body is not what comes for an address.
        let is_asking = matches!(self.request.method, Method::Get | Method::Head);
        let has_body =
            !matches!(self.request.head().body, RequestBody::None | RequestBody::Length(0));
        let other = has_body.then_some(Why::Body);
        let other = other.or(self.request.stands_in.then_some(Why::StandsIn));
        let other = other.or(self.request.arrival.is_refused().then_some(Why::Refused));
        if let Some(why) = other.filter(|_| caching.is_page() && is_asking) {
            self.page.why = why;
            return None;
        }
        match self.open_gate(caching, site, ctx) {
            Some(gate) => self.page.gate = Some(gate),
            None => return None,
        }
        self.build_key(caching, space, site, ctx);
        if !self.page.keys.is_usable() {
            self.page.why = Why::LongKey;
            return None;
        }
        if !caching.is_page() && self.is_any(&caching.conf.bypass, site, ctx) {
            self.page.why = Why::Condition;
            self.answer.cached = UpstreamCacheStatus::Bypass;
            self.take_over(caching, ctx);
            return None;
        }
        self.look_up(caching, site, ctx)
    }

    /// Notes whose turn it is, and what is said of the request there.
    pub(super) fn begin_page(
        &mut self,
        location: LocationIndex,
        caching: &Caching,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<NamespaceId> {
        self.page.looked = Some(location);
        self.page.forget();
        ctx.cache.as_ref()?;
        self.page.space = self.space(caching, site, ctx);
        self.page.why = Why::NoZone;
        self.page.space?;
        self.page.why = Why::Asked;
        // PERF: most requests arrive where their address alone leads them.
        self.page.arrival.clear();
        if self.request.arrival.is_turned() || site.location(location).varies_origin {
            let mut arrival = std::mem::take(&mut self.page.arrival);
            self.write_arrival(caching, site, ctx, &mut arrival);
            self.page.arrival = arrival;
        }
        self.read_controls(caching, site, ctx);
        self.page.space
    }

    /// The part of the store that this location uses.
    fn space(&self, caching: &Caching, site: &Site, ctx: &StepCtx<'_>) -> Option<NamespaceId> {
        let kept = site.kept()?;
        match &caching.space {
            CacheSpace::Zone(index) => kept.zones.get(*index).copied(),
            CacheSpace::Page => kept.pages.get(self.request.server as usize).copied(),
            CacheSpace::Named(text) => {
                let mut name = Vec::new();
                self.scope(site, ctx).expand(text, &mut name);
                let zones = &site.http()?.cache_zones;
                let index = zones.iter().position(|zone| zone.name.as_bytes() == name)?;
                kept.zones.get(index).copied()
            }
        }
    }

    pub(crate) fn scope<'a>(&'a self, site: &'a Site, ctx: &'a StepCtx<'_>) -> VariableScope<'a> {
        VariableScope::new(&self.request, &self.answer, site, ctx)
    }

    /// Whether one of the texts is neither empty nor `0`.
    pub(super) fn is_any(&self, texts: &[Template], site: &Site, ctx: &StepCtx<'_>) -> bool {
        let mut text = Vec::new();
        texts.iter().any(|template| {
            text.clear();
            self.scope(site, ctx).expand(template, &mut text);
            !matches!(&*text, b"" | b"0")
        })
    }

    pub(crate) fn facts<'a>(&'a self, site: &'a Site, ctx: &StepCtx<'_>) -> Facts<'a> {
        Facts {
            method: self.request.method,
            fields: &self.request.head().fields,
            scheme: ctx.conn.scheme,
            host: &self.request.host,
            port: ctx.conn.local.port(),
            server: site.server(self.request.server).name.as_bytes(),
            target: self.request.address(),
            authority: &self.request.head().authority,
            arrival: &self.page.arrival,
            environment: &self.page.environment,
        }
    }

    pub(super) fn build_key(
        &mut self,
        caching: &Caching,
        space: NamespaceId,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let mut keys = std::mem::take(&mut self.page.keys);
        let mut text = std::mem::take(&mut self.page.text);
        text.clear();
        let template = match caching.is_page() {
            true => caching.conf.page.key.as_ref(),
            false => caching.conf.key.as_ref().or(caching.conf.page.key.as_ref()),
        };
        match template {
            Some(template) => self.scope(site, ctx).expand(template, &mut text),
            None => rules::url(&mut text, &self.facts(site, ctx), &caching.policy),
        }
        match caching.is_page() {
            true => {
                let facts = self.facts(site, ctx);
                let cookies = Cookies::of(facts.fields);
                page_key(&mut keys, (space, &text), &facts, caching, &cookies, None);
            }
            false => zone_key(&mut keys, (space, &text), &self.page.arrival),
        }
        self.page.text = text;
        self.page.keys = keys;
    }

    pub(super) fn look_up(
        &mut self,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let gate = self.page.gate?;
        let open = caching.conf.page.lookup;
        if let Some(object) = self.find_inline(gate, caching, site, ctx) {
            return Some(self.serve_kept(object, UpstreamCacheStatus::Hit, site, ctx));
        }
        if gate.private
            && open.private
            && let Some(object) = self.find_private(site, ctx)
        {
            return Some(self.serve_kept(object, UpstreamCacheStatus::Hit, site, ctx));
        }
        if gate.private
            && open.private
            && let Some(next) = self.recall_private(site, ctx)
        {
            return Some(next);
        }
        if !(gate.public && open.public) {
            self.page.why = Why::NotPublic;
            self.answer.cached = UpstreamCacheStatus::Miss;
            // What is not looked up is kept all the same.
            self.take_over(caching, ctx);
            return None;
        }
        let now_ms = ctx.now.unix_millis;
        for _ in 0..VARY_ROUNDS {
            let front = ctx.cache.as_deref_mut()?;
            let key = self.page.keys.public();
            self.page.hash = key.hash();
            match front.lookup(&key, now_ms) {
                Lookup::Vary(names) => {
                    self.page.way.is_varied = true;
                    let fields = &self.request.head().fields;
                    let cookies = Cookies::of(fields);
                    push_named(&mut self.page.keys, names.vary_names(), fields, &cookies);
                }
                found => {
                    if let Some(found) = self.narrow(found, caching, site, ctx) {
                        return self.take_found(found, caching, site, ctx);
                    }
                }
            }
        }
        None
    }

    /// The session's own object, if a fresh one is there. Whether an answer that has to be asked
    /// for is private is known when it is there; an old one is not renewed behind the client's
    /// back, who might miss a cookie.
    fn find_private(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> Option<Arc<Object>> {
        let session = SessionKey::new(&self.page.session)?;
        let fields = &self.request.head().fields;
        let keys = &mut self.page.keys;
        let mark = keys.mark();
        let found = follow_private(keys, session, fields, ctx);
        keys.rewind(mark);
        found.flatten().or_else(|| self.find_unvaried(Whose::Private, site, ctx))
    }

    /// The one copy of a page that says `no-vary`.
    fn find_unvaried(
        &mut self,
        whose: Whose,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Arc<Object>> {
        if self.page.environment.control.no_vary {
            return None;
        }
        let mut keys = std::mem::take(&mut self.page.unvaried);
        let own = self.page.keys.public();
        unvaried_key(&mut keys, (own.namespace(), own.url()), &self.facts(site, ctx));
        let session = match whose {
            Whose::Public => Some(None),
            Whose::Private => SessionKey::new(&self.page.session).map(Some),
        };
        let front = ctx.cache.as_deref_mut();
        let found = front.zip(session).and_then(|(front, session)| {
            front.find_fresh(&key_of(&keys, session), ctx.now.unix_millis)
        });
        self.page.unvaried = keys;
        found
    }

    /// What the text that includes this fragment brought along for it.
    fn find_inline(
        &mut self,
        gate: Gate,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Arc<Object>> {
        let lineage = self.request.lineage.as_ref().filter(|_| self.request.is_fragment)?;
        if lineage.includer().is_empty() || !caching.is_page() {
            return None;
        }
        let own = self.page.keys.public();
        let place = (own.namespace(), own.url());
        let facts = for_inlines(&self.facts(site, ctx));
        let session = SessionKey::new(&self.page.session).filter(|_| gate.private);
        let mut keys = KeyBuilder::default();
        let front = ctx.cache.as_deref_mut()?;
        for varies in [true, false] {
            match varies {
                true => {
                    let cookies = Cookies::of(facts.fields);
                    page_key(&mut keys, place, &facts, caching, &cookies, None);
                }
                false => unvaried_key(&mut keys, place, &facts),
            }
            push_piece(&mut keys, KeyPiece::Inline(lineage.includer()));
            let private = session.map(|session| keys.private(session));
            for key in private.into_iter().chain(gate.public.then(|| keys.public())) {
                if let Some(found) = front.find_fresh(&key, ctx.now.unix_millis) {
                    return Some(found);
                }
            }
        }
        None
    }

    pub(super) fn take_found(
        &mut self,
        found: Lookup,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let found = match found {
            Lookup::Miss(permit) => match self.recall(permit, ctx) {
                Ok(next) => return Some(next),
                Err(permit) => Lookup::Miss(permit),
            },
            found => found,
        };
        if !caching.is_page() {
            return self.take_zone(found, caching, site, ctx);
        }
        let found = match caching.policy.honour_request {
            true => match self.obey(found, caching, site, ctx) {
                Ok(found) => found,
                Err(next) => return next,
            },
            false => found,
        };
        let found = match self.is_proved(site) {
            true => self.set_apart(found, caching, ctx)?,
            false => found,
        };
        match found {
            Lookup::Hit(object) => {
                Some(self.serve_kept(object, UpstreamCacheStatus::Hit, site, ctx))
            }
            Lookup::Stale(object, None) => {
                Some(self.serve_kept(object, UpstreamCacheStatus::Updating, site, ctx))
            }
            Lookup::Stale(object, Some(permit)) => {
                self.refresh(permit, caching, site, ctx);
                Some(self.serve_kept(object, UpstreamCacheStatus::Stale, site, ctx))
            }
            Lookup::Miss(permit) => {
                if let Some(object) = self.find_unvaried(Whose::Public, site, ctx) {
                    ctx.effects.push(StepEffect::News(permit.abandon(AbandonReason::Gone)));
                    return Some(self.serve_kept(object, UpstreamCacheStatus::Hit, site, ctx));
                }
                self.keep_permit(permit, caching, ctx);
                None
            }
            Lookup::Pass => {
                // Nobody waits for it, and it is kept if it turns out that it may be.
                self.page.why = Why::Remembered;
                self.answer.cached = UpstreamCacheStatus::Miss;
                self.take_over(caching, ctx);
                None
            }
            Lookup::Join(follower) if self.page.rounds < ROUNDS_MAX => {
                self.answer.cached = UpstreamCacheStatus::Miss;
                self.page.follower = Some(follower);
                Some(self.follow(site, ctx))
            }
            Lookup::Join(_) | Lookup::Failed(_) | Lookup::Vary(_) => {
                let is_busy = matches!(found, Lookup::Join(_));
                self.page.why = if is_busy { Why::Tired } else { Why::Remembered };
                self.answer.cached = UpstreamCacheStatus::Miss;
                None
            }
        }
    }

    /// It is this exchange's turn to ask; what comes is kept, if the configuration lets it.
    fn keep_permit(&mut self, permit: FillPermit, caching: &Caching, ctx: &mut StepCtx<'_>) {
        let stale = permit.stale().cloned();
        self.answer.cached =
            if stale.is_some() { UpstreamCacheStatus::Expired } else { UpstreamCacheStatus::Miss };
        self.page.stale = stale;
        if self.request.head().method == Method::Head || self.wants_far_part(caching) {
            ctx.effects.push(StepEffect::News(permit.abandon(AbandonReason::Gone)));
            return;
        }
        self.page.revalidates =
            self.page.stale.as_ref().is_some_and(|old| can_revalidate(caching, old));
        self.page.permit = Some(permit);
    }

    /// Asks past the store, and keeps what comes in place of what is there.
    pub(super) fn take_over(&mut self, caching: &Caching, ctx: &mut StepCtx<'_>) {
        if self.request.head().method == Method::Head && !self.asks_for_whole(caching) {
            return;
        }
        // A key of its own until the answer is there; then the fill moves.
        let mut keys = self.page.keys.clone();
        push_piece(&mut keys, KeyPiece::Past(self.request.id));
        let now_ms = ctx.now.unix_millis;
        let Some(front) = ctx.cache.as_deref_mut() else { return };
        if let Lookup::Miss(permit) = front.lookup(&keys.public(), now_ms) {
            self.page.permit = Some(permit);
            self.page.is_past = true;
        }
    }

    /// Looks at the fill that it waits for.
    pub(crate) fn follow(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let Some(caching) = &site.location(self.request.location).caching else {
            return NextStep::Fail(500);
        };
        let waiter = waiter(ctx);
        loop {
            let Some(follower) = &mut self.page.follower else {
                return NextStep::Step(RequestStep::Origin);
            };
            match follower.poll() {
                Follow::Head => break,
                Follow::Again => {
                    self.page.follower = None;
                    self.page.rounds += 1;
                    let next = self.look_again(caching, site, ctx);
                    return next.unwrap_or(NextStep::Step(RequestStep::Origin));
                }
                Follow::Waiting => match follower.wait(waiter) {
                    Waited::Registered => return NextStep::Coalesce,
                    Waited::Moved => {}
                },
            }
        }
        let Some(follower) = self.page.follower.take() else { return NextStep::Fail(500) };
        self.serve_growing(follower, waiter, site, ctx)
    }

    pub(super) fn look_again(
        &mut self,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        if let Some(space) = self.page.space {
            self.build_key(caching, space, site, ctx);
        }
        self.look_up(caching, site, ctx)
    }

    /// What the fetch that is about to begin is heard by.
    pub(crate) fn take_fill(&mut self, site: &Site, ctx: &StepCtx<'_>) -> Option<Box<Fill>> {
        let caching = site.location(self.request.location).caching.as_ref()?;
        if self.page.looked != Some(self.request.location) {
            return None;
        }
        let permit = self.page.permit.take();
        self.page.is_whole = permit.is_some();
        // Without a permit, only the application's purges matter.
        if permit.is_none() && !caching.is_page() {
            return None;
        }
        let is_past = self.page.is_past;
        let question = (self.page.revalidates, self.answer.cached);
        let fill = self.fill_of(permit, question, site, ctx)?;
        Some(Box::new(Fill { is_past, ..*fill }))
    }

    fn fill_of(
        &self,
        permit: Option<FillPermit>,
        (revalidates, cached): (bool, UpstreamCacheStatus),
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<Box<Fill>> {
        let own: &SiteRef = self.request.site.as_ref()?;
        let caching = site.location(self.request.location).caching.as_ref()?;
        let question = RequestSnapshot {
            method: if self.asks_for_whole(caching) { Method::Get } else { self.request.method },
            fields: self.request.head().fields.clone(),
            scheme: ctx.conn.scheme,
            host: self.request.host.clone(),
            port: ctx.conn.local.port(),
            server: site.server(self.request.server).name.as_bytes().to_vec(),
            target: self.request.address().to_vec(),
            authority: self.request.head().authority.clone(),
            arrival: self.page.arrival.clone(),
            environment: self.page.environment.clone(),
        };
        let url = permit.as_ref().map(|permit| permit.key().url().to_vec());
        let is_judged = !caching.is_page() && !caching.conf.no_cache.is_empty();
        let judge = is_judged.then(|| Judge::new(self, cached, ctx));
        Some(Box::new(Fill {
            store: site.kept()?.store.clone(),
            site: own.clone(),
            location: self.request.location,
            namespace: self.page.space?,
            stale: permit
                .as_ref()
                .and_then(FillPermit::stale)
                .or(self.page.stale.as_ref())
                .cloned(),
            permit,
            question: Box::new(question),
            url: url.unwrap_or_default(),
            asked_ms: ctx.now.unix_millis,
            revalidates,
            judge: judge.map(Box::new),
            is_past: false,
            is_page: caching.is_page(),
            may_be_empty: true,
            size: 0,
            told: None,
            cutting: None,
            refusal: None,
            ttl: None,
            keeping: StoreIntent::No,
        }))
    }

    /// Has the origin asked in the background.
    pub(super) fn refresh(
        &mut self,
        permit: FillPermit,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let has_body = self.request.head().body != RequestBody::None;
        let is_get = self.request.head().method == Method::Get || self.asks_for_whole(caching);
        let stale = permit.stale().cloned();
        let revalidates = stale.as_ref().is_some_and(|old| can_revalidate(caching, old));
        let asked = if is_get && !has_body {
            let fill =
                self.fill_of(Some(permit), (revalidates, UpstreamCacheStatus::Expired), site, ctx);
            let old = stale.as_ref().filter(|_| revalidates);
            let request = self.origin_request(true, old, site, ctx).ok();
            request.zip(fill)
        } else {
            ctx.effects.push(StepEffect::News(permit.abandon(AbandonReason::Gone)));
            None
        };
        if let Some((request, fill)) = asked {
            ctx.effects.push(StepEffect::Refresh(Box::new(request), fill));
        }
    }

    /// Whether the fetch that begins may be kept: it is made as if nobody had asked for a part.
    pub(crate) const fn is_to_keep(&self) -> bool {
        self.page.permit.is_some()
    }
}

/// Adds to a key what the private page of a session varies by, as far as memory knows: the page,
/// if a fresh one is there. None if that leads on and on, or nothing is kept at all.
pub(super) fn follow_private(
    keys: &mut KeyBuilder,
    session: SessionKey<'_>,
    fields: &FieldMap,
    ctx: &mut StepCtx<'_>,
) -> Option<Option<Arc<Object>>> {
    let front = ctx.cache.as_deref_mut()?;
    for _ in 0..VARY_ROUNDS {
        match front.find_fresh(&keys.private(session), ctx.now.unix_millis) {
            Some(names) if names.kind() == ObjectKind::Vary => {
                push_named(keys, names.vary_names(), fields, &Cookies::of(fields));
            }
            found => return Some(found),
        }
    }
    None
}

/// Who this exchange is to those who wake it.
pub(crate) fn waiter(ctx: &StepCtx<'_>) -> Waiter {
    let worker = ctx.cache.as_ref().map_or(0, |front| front.worker());
    Waiter { worker, exchange: ctx.me }
}
