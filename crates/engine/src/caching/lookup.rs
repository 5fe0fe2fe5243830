//! Cache lookups: the key of a request, the result of its lookup, and waiting exchanges.
//!
//! Owns the decision between serving, waiting and fetching; `fill` decides about upstream
//! responses.

mod asking;
mod brought;
mod following;
mod key;
mod key_url;
mod known;
mod narrow;

use std::sync::Arc;

use bolide_cache::rules::{Environment, Facts};
use bolide_cache::{AbandonReason, Lookup, NamespaceId, Object, SessionKey};
use bolide_conf::Template;
use bolide_http::cookies::Cookies;
use bolide_http::lscache::CacheScope as Whose;
use bolide_http::{Method, RequestBody};

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::cdn_cache_control::{excludes, read_controls};
use crate::caching::disk_lookup::{ask_nodes, recall_private};
use crate::caching::identity::write_arrival;
use crate::caching::identity::{key_of, push_named, unvaried_key};
use crate::caching::lookup::asking::{keep_permit, server_in_keys, space};
use crate::caching::lookup::brought::find_shared;
use crate::caching::purge::may_order;
use crate::caching::request_cache_control::{accepts, set_apart};
use crate::caching::transaction::{CacheState, StoreIntent, UpstreamCacheStatus};
use crate::caching::zone::miss_zone;
use crate::ctx::{ConnInfo, StepCtx, StepEffect};
use crate::exchange::NextStep;
use crate::explain::Why;
use crate::request::Request;
use crate::route::LocationIndex;
use crate::site::Site;
use crate::vars::VariableScope;

pub(super) use asking::take_over;
pub(crate) use brought::date_back;
pub(super) use key_url::KeyUrl;
use known::VARY_ROUNDS;
pub(crate) use known::follow_known;

/// LIMIT: fills that one exchange waits for before it fetches itself.
pub(super) const ROUNDS_MAX: u8 = 3;

impl CacheTransaction {
    /// Whether the client's preconditions apply to the upstream response, because the upstream
    /// request had none.
    pub(crate) fn evaluates_preconditions(&self) -> bool {
        self.keeping != StoreIntent::No
    }

    /// Whether the upstream response is stored.
    pub(crate) fn is_kept(&self) -> bool {
        self.keeping == StoreIntent::Yes
    }

    /// Whether the response of the fetch may be stored: the fetch has no preconditions and ranges.
    pub(crate) const fn is_to_keep(&self) -> bool {
        matches!(self.state, CacheState::Filling { .. })
    }
}

impl CacheTransaction {
    /// Serves from the cache, waits, or leaves it to the upstream (none).
    pub(crate) fn look_up_cached(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let caching = request.caching(site)?;
        if let Some(looked) = self.looked
            && !request.arrival.take_leave()
            && looked == request.location
        {
            return None;
        }
        answer.object = None;
        let Some(space) = self.begin_page(request, answer, request.location, caching, site, ctx)
        else {
            return miss_zone(request, answer, caching, site, ctx);
        };
        if may_order(self, request, caching)
            && let Some(next) = self.ordered_purge(request, answer, caching, space, site, ctx)
        {
            self.why = Why::Purge;
            return Some(next);
        }
        self.autoflush(request, caching, space, site, ctx);
        let is_combined = || request.role.fragment().is_some_and(|it| it.form().is_some());
        if caching.is_page() && is_combined() {
            // Such a response is not looked up, but its parts are stored.
            self.environment.is_off |= excludes(request, answer, caching, site, ctx).is_some();
        }
        // A response to a request with a body is not the object of the URL.
        let is_asking = matches!(request.method, Method::Get | Method::Head);
        let has_body = !matches!(request.head().body, RequestBody::None | RequestBody::Length(0))
            && !request.upload.is_found_empty();
        let other = has_body.then_some(Why::Body);
        let other = other.or(request.replaces_failed.then_some(Why::StandsIn));
        let other = other.or(request.arrival.is_refused().then_some(Why::Refused));
        if let Some(why) = other.filter(|_| caching.is_page() && is_asking) {
            self.why = why;
            return None;
        }
        if request.arrival.is_unkeyed() {
            self.why = Why::Refused;
            return None;
        }
        match self.open_gate(request, answer, caching, site, ctx) {
            Some(gate) => self.gate = Some(gate),
            None => return None,
        }
        self.build_key(request, answer, caching, space, site, ctx);
        if !self.keys.is_usable() {
            self.why = Why::LongKey;
            return None;
        }
        if !caching.is_page() && is_any(request, answer, &caching.conf.bypass, site, ctx) {
            self.why = Why::Condition;
            answer.cached = UpstreamCacheStatus::Bypass;
            take_over(request, self, caching, ctx);
            return None;
        }
        self.look_up(request, answer, caching, site, ctx)
    }

    /// Begins the lookup in the page cache: notes the location, and the request's cache controls.
    pub(super) fn begin_page(
        &mut self,
        request: &Request,
        answer: &Answer,
        location: LocationIndex,
        caching: &Caching,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<NamespaceId> {
        if self.looked.replace(location).is_some() {
            self.forget();
            self.environment = Environment::default();
        }
        ctx.cache.as_ref()?;
        self.space = space(request, answer, caching, site, ctx);
        self.why = Why::NoZone;
        self.space?;
        self.why = Why::Asked;
        read_controls(request, answer, self, caching, site, ctx);
        // PERF: most requests arrive without internal redirects.
        self.arrival.clear();
        if request.arrival.is_turned() || site.location(location).varies_origin {
            let mut arrival = std::mem::take(&mut self.arrival);
            let scope = VariableScope::new(request, answer, site, ctx);
            write_arrival(&scope, caching, &self.environment, &mut arrival);
            self.arrival = arrival;
        }
        self.space
    }

    pub(crate) fn facts<'a>(
        &'a self,
        request: &'a Request,
        site: &'a Site,
        ctx: &StepCtx<'_>,
    ) -> Facts<'a> {
        facts_at(self, request, site, ctx.conn)
    }

    pub(super) fn look_up(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let gate = self.gate?;
        let mut open = caching.conf.page.lookup;
        let [public, private] = self.environment.lookup;
        open.public = public.unwrap_or(open.public);
        open.private = private.unwrap_or(open.private);
        let now_ms = ctx.now.unix_millis;
        let is_accepted = |object: &Arc<Object>| accepts(request, object, caching, now_ms);
        let inline = self.find_inline(request, gate, caching, site, ctx).filter(is_accepted);
        if let Some(object) = inline {
            return Some(self.serve_kept(
                request,
                answer,
                object,
                UpstreamCacheStatus::Hit,
                site,
                ctx,
            ));
        }
        if gate.private
            && open.private
            && let Some(object) = self
                .find_private(request, caching, site, ctx)
                .or_else(|| find_shared(self, request, caching, site, ctx))
                .filter(is_accepted)
        {
            return Some(self.serve_kept(
                request,
                answer,
                object,
                UpstreamCacheStatus::Hit,
                site,
                ctx,
            ));
        }
        if gate.private
            && open.private
            && let Some(next) = recall_private(request, self, site, ctx)
        {
            return Some(next);
        }
        if !(gate.public && open.public) {
            self.why = Why::NotPublic;
            answer.cached = UpstreamCacheStatus::Miss;
            // A request that is not looked up may be stored all the same.
            take_over(request, self, caching, ctx);
            return None;
        }
        self.narrow(request, caching, site, ctx);
        for _ in 0..VARY_ROUNDS {
            let front = ctx.cache.as_deref_mut()?;
            let key = self.keys.public();
            self.hash = key.hash();
            match front.lookup(&key, now_ms) {
                Lookup::Vary(names) => {
                    self.way.is_varied = true;
                    let fields = &request.head().fields;
                    let cookies = Cookies::of(fields);
                    push_named(&mut self.keys, names.vary_names(), fields, &cookies);
                }
                found => return self.take_found(request, answer, found, caching, site, ctx),
            }
        }
        None
    }

    /// The session's own object, if it is fresh. Whether a response is private is unknown before it
    /// arrives; a stale private object is not revalidated in the background, because the client
    /// could miss a cookie.
    fn find_private(
        &mut self,
        request: &Request,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Arc<Object>> {
        let session = SessionKey::new(&self.session)?;
        let fields = &request.head().fields;
        let keys = &mut self.keys;
        let mark = keys.mark();
        let found = follow_known(keys, Some(session), fields, ctx);
        keys.rewind(mark);
        found.flatten().or_else(|| self.find_unvaried(request, Whose::Private, caching, site, ctx))
    }

    /// The object of a page with `no-vary`.
    fn find_unvaried(
        &mut self,
        request: &Request,
        whose: Whose,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Arc<Object>> {
        if self.environment.control.no_vary {
            return None;
        }
        let mut keys = std::mem::take(&mut self.unvaried);
        let own = self.keys.public();
        let own = (own.namespace(), &*self.url);
        unvaried_key(&mut keys, own, &self.facts(request, site, ctx));
        let session = match whose {
            Whose::Public => Some(None),
            Whose::Private => SessionKey::new(&self.session).map(Some),
        };
        let front = ctx.cache.as_deref_mut();
        let found = front.zip(session).and_then(|(front, session)| {
            front.find_fresh(&key_of(&keys, session), ctx.now.unix_millis)
        });
        self.unvaried = keys;
        found.filter(|object| accepts(request, object, caching, ctx.now.unix_millis))
    }

    pub(super) fn take_found(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        found: Lookup,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let found = match found {
            Lookup::Miss(permit) => {
                let looked = self.recall(permit, ctx);
                match looked
                    .or_else(|permit| ask_nodes(request, self, (caching, site), permit, ctx))
                {
                    Ok(next) => return Some(next),
                    Err(permit) => Lookup::Miss(permit),
                }
            }
            found => found,
        };
        if !caching.is_page() {
            return self.take_zone(request, answer, found, caching, site, ctx);
        }
        let found = match caching.policy.honour_request {
            true => match self.obey(request, answer, found, caching, site, ctx) {
                Ok(found) => found,
                Err(next) => return next,
            },
            false => found,
        };
        let found = match request.is_proved(site) {
            true => set_apart(request, answer, self, found, caching, ctx)?,
            false => found,
        };
        match found {
            Lookup::Hit(object) => {
                Some(self.serve_kept(request, answer, object, UpstreamCacheStatus::Hit, site, ctx))
            }
            Lookup::Stale(object, None) => Some(self.serve_kept(
                request,
                answer,
                object,
                UpstreamCacheStatus::Updating,
                site,
                ctx,
            )),
            Lookup::Stale(object, Some(permit)) => {
                self.refresh(request, answer, permit, caching, site, ctx);
                Some(self.serve_kept(
                    request,
                    answer,
                    object,
                    UpstreamCacheStatus::Stale,
                    site,
                    ctx,
                ))
            }
            Lookup::Miss(permit) => {
                let served = serve_unvaried(self, request, answer, caching, site, ctx);
                match served {
                    Some(_) => ctx
                        .effects
                        .push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone))),
                    None => keep_permit(request, answer, self, permit, caching, ctx),
                }
                served
            }
            Lookup::Pass => {
                // A page with `no-vary` came later, under a key of its own.
                let served = serve_unvaried(self, request, answer, caching, site, ctx);
                if served.is_some() {
                    return served;
                }
                // No other exchange waits for it. It is stored if its fields permit.
                self.why = Why::Remembered;
                answer.cached = UpstreamCacheStatus::Miss;
                take_over(request, self, caching, ctx);
                None
            }
            Lookup::Join(follower) if self.rounds < ROUNDS_MAX => {
                answer.cached = UpstreamCacheStatus::Miss;
                debug_assert!(
                    matches!(self.state, CacheState::Passed),
                    "a request that asks does not wait"
                );
                self.state = CacheState::Waiting(follower);
                Some(self.follow(request, answer, site, ctx))
            }
            Lookup::Join(_) | Lookup::Failed(_) | Lookup::Vary(_) => {
                let is_busy = matches!(found, Lookup::Join(_));
                self.why = if is_busy { Why::Tired } else { Why::Remembered };
                answer.cached = UpstreamCacheStatus::Miss;
                None
            }
        }
    }

    pub(super) fn look_again(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        if let Some(space) = self.space {
            self.build_key(request, answer, caching, space, site, ctx);
        }
        self.look_up(request, answer, caching, site, ctx)
    }
}

/// Serves the public page with `no-vary`, if there is one.
fn serve_unvaried(
    cache: &mut CacheTransaction,
    request: &mut Request,
    answer: &mut Answer,
    caching: &Caching,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    let object = cache.find_unvaried(request, Whose::Public, caching, site, ctx)?;
    Some(cache.serve_kept(request, answer, object, UpstreamCacheStatus::Hit, site, ctx))
}

/// The facts of a request on a connection.
pub(super) fn facts_at<'a>(
    cache: &'a CacheTransaction,
    request: &'a Request,
    site: &'a Site,
    conn: &ConnInfo,
) -> Facts<'a> {
    Facts {
        method: request.method,
        fields: &request.head().fields,
        scheme: conn.scheme,
        host: request.asked_host(),
        port: conn.local.port(),
        server: server_in_keys(request, site),
        target: request.address(),
        authority: &request.head().authority,
        arrival: &cache.arrival,
        environment: &cache.environment,
    }
}

/// Whether one of the texts is neither empty nor `0`.
pub(crate) fn is_any(
    request: &Request,
    answer: &Answer,
    texts: &[Template],
    site: &Site,
    ctx: &StepCtx<'_>,
) -> bool {
    let mut text = Vec::new();
    texts.iter().any(|template| {
        text.clear();
        VariableScope::new(request, answer, site, ctx).expand(template, &mut text);
        !matches!(&*text, b"" | b"0")
    })
}
