//! The answer of an origin on its way into the store: what the rules make of it.
//!
//! ```text
//!   head ─▶ purges; keep? ──no──▶ abandoned: joiners look up again, the answer only passes by
//!                │ yes
//!                ▼  (under another key, if the answer says so)
//!             begun ── pieces ──▶ committed at the end; abandoned if it breaks or grows too large
//! ```
//! Owns the permit and outlives the client that asked. Easiest to break: the end of the permit
//! names the exchanges to wake.

mod fate;
mod inlines;
mod judge;

use std::sync::Arc;

use bolide_base::Now;
use bolide_cache::rules::{
    self, AnswerFacts, AnswerSource, Environment, Facts, PurgeOrder, PurgeTarget, StoreDecision,
    StoreRefusal, StoreVerdict,
};
use bolide_cache::{
    AbandonReason, FillPermit, KeyBuilder, NamespaceId, Object, ObjectHead, SessionKey, Store,
    TagPurge, Tags, Wakes,
};
use bolide_http::cookies::Cookies;
use bolide_http::lscache::{CacheScope, PurgeEffect as Lapse};
use bolide_http::message::Scheme;
use bolide_http::{FieldMap, Method, Name, OriginHead, date};
use bolide_upstream::OriginNews;

use self::inlines::InlineCutting;
use crate::caching::StoreIntent;
use crate::caching::identity::{
    for_inlines, key_of, page_key, push_combined, push_named, push_session, shared_key,
    unvaried_key, zone_key,
};
use crate::caching::no_vary_search;
use crate::caching::{Caching, STALE_FOR_EVER, StaleCause};
use crate::exchange::Exchange;
use crate::filter::passed_fields::is_buffered;
use crate::route::LocationIndex;
use crate::site::SiteRef;
use crate::subrequest::{KeptAs, SliceRange};

pub(in crate::caching) use fate::PASS_MS;
pub(crate) use judge::Judge;

/// LIMIT: bytes of the head of an answer with tags; those of a page can be as many as its products.
const PAGE_HEAD_MAX: usize = 512 * 1024;

/// What is known of a request after it is over.
#[derive(Debug)]
pub(crate) struct RequestSnapshot {
    pub(crate) method: Method,
    pub(crate) fields: FieldMap,
    pub(crate) scheme: Scheme,
    pub(crate) host: Vec<u8>,
    pub(crate) port: u16,
    pub(crate) server: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) authority: Vec<u8>,
    pub(crate) arrival: Vec<u8>,
    pub(crate) environment: Environment,
}

impl RequestSnapshot {
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            method: self.method,
            fields: &self.fields,
            scheme: self.scheme,
            host: &self.host,
            port: self.port,
            server: &self.server,
            target: &self.target,
            authority: &self.authority,
            arrival: &self.arrival,
            environment: &self.environment,
        }
    }
}

/// Listens to an origin's answer for the store.
#[derive(Debug)]
pub struct Fill {
    pub(crate) store: Arc<Store>,
    pub(crate) site: SiteRef,
    pub(crate) location: LocationIndex,
    pub(crate) namespace: NamespaceId,
    pub(crate) permit: Option<FillPermit>,
    pub(crate) question: Box<RequestSnapshot>,
    /// What is served in place of errors, or confirmed.
    pub(crate) stale: Option<Arc<Object>>,
    /// The URL part of the key.
    pub(crate) url: Vec<u8>,
    /// When the origin was asked.
    pub(crate) asked_ms: u64,
    /// Whether the origin was asked to confirm what is there.
    pub(crate) revalidates: bool,
    /// Who is asked whether the answer is kept, where that is not settled.
    pub(crate) judge: Option<Box<Judge>>,
    /// Whether the permit is for a key of its own, where no exchange waits.
    pub(crate) is_past: bool,
    /// What the answer of a fragment is kept as.
    pub(crate) kept_as: KeptAs,
    /// The bytes that the upstream server was asked for, if it was asked for a slice.
    pub(crate) slice: Option<SliceRange>,
    /// Whether the application drives the cache.
    pub(crate) is_page: bool,
    /// Whether an answer without a body is one that is kept.
    pub(crate) may_be_empty: bool,
    /// Bytes that came, and those that were told.
    pub(crate) size: u64,
    pub(crate) told: Option<u64>,
    /// For a page with ESI, kept or not.
    pub(crate) cutting: Option<Box<InlineCutting>>,
    /// Why the answer is not kept, if a rule said so.
    pub(crate) refusal: Option<StoreRefusal>,
    /// How long it is fresh, if it is kept.
    pub(crate) ttl: Option<u32>,
    /// How long it is remembered that an answer is not kept.
    pub(crate) pass_ms: u64,
    /// What became of the answer.
    pub(crate) keeping: StoreIntent,
    /// Whether the origin confirmed something else than what there is.
    pub(crate) misfits: bool,
}

impl Fill {
    /// Whether the answer is (still) meant for the store, so that it must be read to its end.
    #[must_use]
    pub const fn is_filling(&self) -> bool {
        self.permit.is_some()
    }

    /// Whether another request follows this fill.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.permit.as_ref().is_some_and(FillPermit::is_joined)
    }

    /// The permit of a fill whose origin confirmed something else, for the exchange that asks again
    /// in full; those that follow wait for that.
    pub(crate) fn take_misfit(&mut self) -> Option<FillPermit> {
        self.permit.take_if(|_| self.misfits)
    }

    /// The same where no exchange has taken it. A refresh in the background asks no second time:
    /// the next request does, as nothing is kept.
    fn end_misfit(&mut self) -> Wakes {
        let Some(permit) = self.take_misfit() else { return Wakes::default() };
        self.store.strike_url(&permit.key(), TagPurge::Dead);
        permit.abandon(AbandonReason::Gone)
    }

    /// Abandons the fill: no request follows it.
    pub fn let_go(&mut self) -> Wakes {
        self.give_up(AbandonReason::Gone)
    }

    /// Hears what the origin did before the exchange that asked does, if it is still there, and
    /// names the exchanges to wake.
    pub fn hear(&mut self, news: &OriginNews, exchange: Option<&mut Exchange>, now: Now) -> Wakes {
        let mut wakes = self.take(news, now);
        if matches!(news, OriginNews::Head(_))
            && let Some(exchange) = exchange
        {
            exchange.note_kept(self);
        }
        wakes.join(self.end_misfit());
        wakes
    }

    fn take(&mut self, news: &OriginNews, now: Now) -> Wakes {
        let now_ms = now.unix_millis;
        match news {
            OriginNews::Head(head) => {
                let site = self.site.clone();
                match &site.location(self.location).caching {
                    Some(caching) => self.take_head(head, caching, now),
                    None => Wakes::default(),
                }
            }
            OriginNews::Body(bytes) => self.take_body(bytes, now),
            OriginNews::End => self.end(now),
            OriginNews::Failed(refused) => {
                let why = self.failure(*refused, now_ms);
                self.give_up(why)
            }
            OriginNews::Attempt(attempt) => {
                if let Some(judge) = &mut self.judge {
                    judge.note(attempt);
                }
                Wakes::default()
            }
            OriginNews::Early(_) | OriginNews::Trailers(_) | OriginNews::Log(_) => Wakes::default(),
        }
    }

    fn give_up(&mut self, why: AbandonReason) -> Wakes {
        self.permit.take().map_or_else(Wakes::default, |permit| permit.abandon(why))
    }

    fn end(&mut self, now: Now) -> Wakes {
        let (rest, mut wakes) = self.finish_cut(now);
        debug_assert!(
            self.told.is_none_or(|told| self.size <= told),
            "no more is kept than was declared"
        );
        let Some(mut permit) = self.permit.take() else { return wakes };
        if self.told.is_some_and(|told| told > self.size) {
            wakes.join(permit.abandon(self.rest(now.unix_millis)));
            return wakes;
        }
        for piece in rest {
            wakes.join(permit.append(piece));
        }
        let is_nothing = self.size == 0 && !self.may_be_empty;
        wakes.join(if is_nothing { permit.finish() } else { permit.commit().wakes });
        wakes
    }

    fn take_body(&mut self, bytes: &bytes::Bytes, now: Now) -> Wakes {
        if self.permit.is_none() && self.cutting.is_none() {
            return Wakes::default();
        }
        let mut bytes = bytes.clone();
        if let Some(told) = self.told {
            let left = told.saturating_sub(self.size);
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        }
        self.size += bytes.len() as u64;
        let (pieces, mut wakes, is_sure) = self.cut(bytes, now);
        let why = self.passing(now.unix_millis);
        let Some(permit) = &mut self.permit else { return wakes };
        let limit = self.site.location(self.location).caching.as_ref();
        let fits = limit.is_some_and(|caching| self.size <= caching.policy.object_max);
        // A follower gets its answer whole, kept or not; a request that waits for a zone asks then.
        let goes_on = match fits && is_sure {
            true => permit.is_storable() || self.is_page && permit.pass_on(None),
            false => is_sure && permit.pass_on(why.until_ms()),
        };
        if !goes_on {
            wakes.join(self.give_up(why));
            return wakes;
        }
        for piece in pieces {
            wakes.join(permit.append(piece));
        }
        wakes
    }

    fn take_head(&mut self, head: &OriginHead, caching: &Caching, now: Now) -> Wakes {
        debug_assert!(self.size == 0 && self.told.is_none(), "a head comes once, before its body");
        let (now_ms, status) = (now.unix_millis, head.status_or_implied());
        let question = &self.question;
        let mut cookies = Cookies::of(&question.fields);
        if caching.is_page() {
            cookies.merge(&head.fields, now_ms / 1000);
        }
        let mut session = Vec::new();
        push_session(&mut session, &cookies, &caching.conf.page.session);
        let told = head.fields.get(Name::ContentLength).and_then(number);
        let answer = AnswerFacts {
            status,
            fields: &head.fields,
            body_len: told,
            asked: self.asked_ms,
            arrived: now_ms,
        };
        let facts = question.facts();
        // One that is too long for a key has no private cache.
        let own = SessionKey::new(&session);
        let mut decision = rules::decide(&caching.policy, &facts, &answer, own.is_some());
        self.pass_ms = decision.remembered.map_or(PASS_MS, |seconds| u64::from(seconds) * 1000);
        self.purge(&decision.purges, &facts, caching, &session);
        self.flush_again(&facts, caching);
        decision.esi &= head.fields.get(Name::ContentEncoding).is_none();
        if decision.esi && status != 304 {
            let is_public = decision.scope() == Some(CacheScope::Public);
            self.cutting = Some(Box::new(InlineCutting::new(&head.fields, &session, is_public)));
        }
        self.refusal = match decision.verdict {
            StoreVerdict::Keep(_) => None,
            StoreVerdict::Refuse(refusal) => Some(refusal),
        };
        let Some(permit) = self.permit.take() else { return Wakes::default() };
        if status != 304 && self.is_stood_in(StaleCause::Status(status), now_ms) {
            return permit.abandon(self.rest(now_ms));
        }
        if status == 304
            && self.revalidates
            && let Some(old) = permit.stale().cloned()
        {
            if !caching.is_about(&old, &head.fields) {
                (self.misfits, self.permit) = (true, Some(permit));
                return Wakes::default();
            }
            return self.freshen(permit, &old, head, caching, now_ms);
        }
        let origin = &self.site.location(self.location).settings.origin;
        // As in nginx, what the client gets as it comes is not for zones.
        let passes = !caching.is_page() && !is_buffered(head, origin)
            || !origin.ignore_headers.redirect
                && head.fields.get_text(b"X-Accel-Redirect").is_some();
        let Some(scope) = decision.scope().filter(|_| !passes) else {
            if lacks_lifetime(decision.verdict) {
                self.keeping = StoreIntent::Unkept;
            }
            return permit.abandon(self.passing(now_ms));
        };
        let site = &self.site;
        // Another part than the one that the key is for.
        let misses = self.slice.is_some_and(|slice| slice.is_missed_by(status, &head.fields));
        if misses || self.judge.as_mut().is_some_and(|judge| judge.refuses(status, head, site, now))
        {
            self.keeping = StoreIntent::Unkept;
            return permit.abandon(AbandonReason::Gone);
        }
        self.kept_as.settle(&head.fields, scope);
        stretch(&mut decision, answer.fields, caching);
        self.ttl = Some(decision.ttl);
        if let (CacheScope::Public, Some(said)) = (scope, &decision.search)
            && caching.conf.page.key.is_none()
        {
            let kept = no_vary_search::remember(
                &self.store,
                self.namespace,
                &self.url,
                said,
                &head.fields,
            );
            self.url = kept.unwrap_or_else(|| std::mem::take(&mut self.url));
        }
        let settled = Settled { cookies: &cookies, scope, session: &session, now_ms };
        let (key, mut wakes) = self.settle_key(permit, &decision, &settled, caching);
        let Some(mut permit) = key else { return wakes };
        self.may_be_empty = !self.is_page || status != 200;
        let length = told.filter(|_| self.cutting.is_none());
        let (kept, mut tags) = kept_head(status, &head.fields, &decision, caching, now_ms, length);
        self.tag_address(&mut tags, caching);
        wakes.join(permit.begin(kept, &tags));
        self.told = told;
        self.permit = Some(permit);
        self.keeping = StoreIntent::Yes;
        wakes
    }

    /// The old answer was confirmed (RFC 9111 §4.3.4).
    fn freshen(
        &self,
        permit: FillPermit,
        old: &Object,
        head: &OriginHead,
        caching: &Caching,
        now_ms: u64,
    ) -> Wakes {
        let mut fields = FieldMap::new();
        old.fields(&mut fields);
        rules::freshen(&mut fields, &head.fields);
        let answer = AnswerFacts {
            status: old.status(),
            fields: &fields,
            body_len: Some(old.body_len()),
            asked: self.asked_ms,
            arrived: now_ms,
        };
        let facts = self.question.facts();
        let mut decision = rules::decide(&caching.policy, &facts, &answer, false);
        if decision.scope().is_none() {
            return permit.abandon(AbandonReason::Gone);
        }
        // What is kept has its mark, whatever the confirmation says.
        decision.esi |= old.is_esi();
        stretch(&mut decision, answer.fields, caching);
        // It is the same body, whatever the confirmation says or leaves out.
        decision.esi |= old.is_esi();
        if caching.is_page() && decision.cookies.is_empty() {
            decision.cookies = fields.all(Name::SetCookie).map(Into::into).collect();
        }
        let (mut kept, mut tags) =
            kept_head(old.status(), &fields, &decision, caching, now_ms, Some(old.body_len()));
        self.tag_address(&mut tags, caching);
        if kept.etag.is_empty() {
            kept.etag = old.etag().unwrap_or_default().to_vec();
        }
        kept.last_modified = kept.last_modified.or(old.last_modified());
        permit.freshen(kept, &tags).wakes
    }

    /// Moves the permit to the key that the answer belongs under.
    fn settle_key(
        &self,
        permit: FillPermit,
        decision: &StoreDecision,
        settled: &Settled<'_>,
        caching: &Caching,
    ) -> (Option<FillPermit>, Wakes) {
        let Settled { cookies, scope, session, now_ms } = *settled;
        let fields = &self.question.fields;
        let facts = self.question.facts();
        let place = (self.namespace, &*self.url);
        let mut keys = KeyBuilder::default();
        let value = decision.vary_value.as_deref();
        match (caching.is_page(), decision.no_vary) {
            (true, no_vary) if !matches!(self.kept_as, KeptAs::Itself) => {
                self.key_for_includes(&mut keys, &facts, cookies, caching, no_vary);
            }
            (true, true) => unvaried_key(&mut keys, place, &facts),
            (true, false) => page_key(&mut keys, place, &facts, caching, cookies, value),
            (false, _) => zone_key(&mut keys, place, facts.arrival),
        }
        let session = match scope {
            CacheScope::Public => None,
            CacheScope::Private => SessionKey::new(session),
        };
        // What one visitor has would become every visitor's.
        assert!(
            scope == CacheScope::Public || session.is_some(),
            "a private answer is kept for a session or not at all"
        );
        if !decision.vary.is_empty() {
            let names: Vec<&[u8]> = decision.vary.iter().map(|name| &**name).collect();
            if !self.store.remember_vary(&key_of(&keys, session), &names) {
                return (None, permit.abandon(self.passing(now_ms)));
            }
            push_named(&mut keys, names, fields, cookies);
        }
        let key = key_of(&keys, session);
        let own = permit.key();
        let is_same = own.hash() == key.hash() && own.session() == key.session();
        if is_same {
            return (Some(permit), Wakes::default());
        }
        if scope == CacheScope::Private && own.session().is_none() && !self.is_past {
            // The next client that asks has a response of its own and need not wait for this one.
            self.store.remember_pass(&own, now_ms + PASS_MS);
        }
        let moved = match caching.is_page() {
            true => permit.move_to(&key),
            // As in nginx, the last one is stored.
            false => permit.move_over(&key),
        };
        (moved.permit, moved.wakes)
    }

    fn key_for_includes(
        &self,
        keys: &mut KeyBuilder,
        facts: &Facts<'_>,
        cookies: &Cookies<'_>,
        caching: &Caching,
        no_vary: bool,
    ) {
        let by = match &self.kept_as {
            KeptAs::Shared { tags, .. } => {
                let by = (&**tags, !no_vary);
                return shared_key(keys, self.namespace, (facts, cookies), caching, by);
            }
            KeptAs::Combined { by } => by,
            KeptAs::Itself => return debug_assert!(false, "it has the key of its address"),
        };
        let (place, facts) = ((self.namespace, &*self.url), for_inlines(facts));
        match no_vary {
            true => unvaried_key(keys, place, &facts),
            false => page_key(keys, place, &facts, caching, cookies, None),
        }
        push_combined(keys, by);
    }

    /// Carries out what the answer says about others; `session` is whose it is from now on.
    fn purge(&self, orders: &[PurgeOrder], facts: &Facts<'_>, caching: &Caching, session: &[u8]) {
        if orders.is_empty() {
            return;
        }
        let old = self.old_session(caching);
        for order in orders {
            let how = match order.effect {
                Lapse::Dead => TagPurge::Dead,
                Lapse::Stale => TagPurge::Stale,
            };
            carry_out(&self.store, self.namespace, order, how, facts, caching, session);
            if order.scope == CacheScope::Private && old != session {
                // A log-out ends the session in whose name it came.
                carry_out(&self.store, self.namespace, order, how, facts, caching, &old);
            }
        }
    }

    /// What the request's own session is known by.
    fn old_session(&self, caching: &Caching) -> Vec<u8> {
        let mut old = Vec::new();
        push_session(&mut old, &Cookies::of(&self.question.fields), &caching.conf.page.session);
        old
    }

    /// A POST drops what was kept for its session while it was carried out.
    fn flush_again(&self, facts: &Facts<'_>, caching: &Caching) {
        if !(caching.is_page()
            && caching.conf.page.autoflush
            && rules::autoflushes(&caching.policy, facts))
        {
            return;
        }
        if let Some(session) = SessionKey::new(&self.old_session(caching)) {
            self.store.purge_private(self.namespace, Some(session), TagPurge::Dead);
        }
    }

    /// Has the page found by its address though its key is another text.
    fn tag_address(&self, tags: &mut Tags, caching: &Caching) {
        if caching.is_page() && caching.conf.page.key.is_some() {
            let mut url = Vec::new();
            rules::url(&mut url, &self.question.facts(), &caching.policy);
            tags.push(&url_tag(&url));
        }
    }

    /// Bytes that an answer's head may have, where tags may be long lists.
    #[must_use]
    pub fn head_max(&self) -> usize {
        match self.caching() {
            Some(caching) if caching.is_magento() => bolide_base::limits::MAGENTO_HEAD_MAX,
            _ if self.is_page => PAGE_HEAD_MAX,
            _ => 0,
        }
    }
}

/// Whose an answer turned out to be.
#[derive(Clone, Copy)]
struct Settled<'a> {
    /// Of the request, with those that the answer sets.
    cookies: &'a Cookies<'a>,
    scope: CacheScope,
    session: &'a [u8],
    now_ms: u64,
}

/// Does what an order to purge says; how many objects it hit.
pub(crate) fn carry_out(
    store: &Arc<Store>,
    namespace: NamespaceId,
    order: &PurgeOrder,
    how: TagPurge,
    facts: &Facts<'_>,
    caching: &Caching,
    session: &[u8],
) -> u64 {
    let session = match order.scope {
        CacheScope::Public => None,
        CacheScope::Private => match SessionKey::new(session) {
            Some(session) => Some(session),
            None => return 0,
        },
    };
    let reach = session.map_or(bolide_cache::TagScope::Public, bolide_cache::TagScope::Session);
    match &order.target {
        PurgeTarget::All => store.purge_tag(namespace, reach, b"*", how),
        PurgeTarget::Tag(tag) if **tag == *b"*" => store.purge_tag(namespace, reach, b"*", how),
        PurgeTarget::Tag(tag) => store.purge_tag(namespace, reach, tag, how),
        PurgeTarget::Prefix(prefix) => {
            store.purge_tag(namespace, reach, &[prefix, &b"*"[..]].concat(), how)
        }
        PurgeTarget::Url(target) => {
            let mut url = Vec::new();
            rules::url_of(&mut url, facts, target, &caching.policy);
            let mut keys = KeyBuilder::default();
            let mut hit = 0;
            for spelled in spellings(url) {
                if caching.conf.page.key.is_some() {
                    hit += store.purge_tag(namespace, reach, &url_tag(&spelled), how);
                }
                let kept = no_vary_search::kept_url(store, namespace, &spelled);
                for url in [Some(spelled), kept].into_iter().flatten() {
                    keys.start(namespace);
                    keys.push_url(&url);
                    hit += store.purge_url(&key_of(&keys, session), how);
                }
            }
            hit
        }
    }
}

/// The tag of an address, for pages whose key is another text. No application's tag begins so.
fn url_tag(url: &[u8]) -> Vec<u8> {
    [b"\0", url, b"\0"].concat()
}

/// An address as clients may have spelled it: browsers write `%C3`, some applications `%c3`.
fn spellings(url: Vec<u8>) -> Vec<Vec<u8>> {
    let with_case = |change: fn(&mut u8)| {
        let mut other = url.clone();
        for at in memchr::memchr_iter(b'%', &url) {
            other.iter_mut().skip(at + 1).take(2).for_each(change);
        }
        other
    };
    let others = [u8::make_ascii_lowercase, u8::make_ascii_uppercase].map(with_case);
    let mut all = vec![url];
    for other in others {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// What the configuration adds to how long an answer is good.
fn stretch(decision: &mut StoreDecision, answer: &FieldMap, caching: &Caching) {
    let page = &caching.conf.page;
    if caching.is_page() {
        if let Some(max) = page.max_ttl {
            decision.ttl = decision.ttl.min(u32::try_from(max.as_secs()).unwrap_or(u32::MAX));
        }
        if caching.is_magento() {
            return caching.set_grace(decision);
        }
        // RFC 9111 §4.2.4: HTTP's own words permit nothing stale that they do not name. Who speaks
        // LSCache, or says nothing so that the configuration does, has LiteSpeed's habit.
        let is_permitted = page.says_stale
            || decision.source == AnswerSource::Configuration
            || rules::is_lscache(answer);
        if !decision.must_revalidate && is_permitted {
            let seconds = |time: std::time::Duration| time.as_secs() as u32;
            if !decision.says_refreshable {
                decision.stale_while_revalidate = seconds(page.stale);
            }
            if !decision.says_for_errors {
                decision.stale_if_error = seconds(page.stale_error);
            }
        }
        return;
    }
    // What it may be used for is asked when it is.
    decision.stale_while_revalidate = STALE_FOR_EVER;
    decision.stale_if_error = STALE_FOR_EVER;
}

/// The head as it is kept, and its tags.
fn kept_head(
    status: u16,
    answer: &FieldMap,
    decision: &StoreDecision,
    caching: &Caching,
    now_ms: u64,
    told: Option<u64>,
) -> (ObjectHead, Tags) {
    let mut fields = answer.clone();
    rules::for_store(&mut fields, caching.policy.mode);
    // RFC 9110 §6.6.1: a recipient that counts from Date to Expires needs the date of the answer.
    let own = answer.get(Name::Date);
    if let Some(date) = own.filter(|_| caching.is_page()) {
        fields.push(Name::Date, date);
    } else if own.is_none()
        && (caching.policy.is_strict || caching.is_page() && answer.get(Name::Expires).is_some())
    {
        fields.push_writing(Name::Date, |out| {
            out.extend_from_slice(&date::http_date((now_ms / 1000) as i64));
        });
    }
    if decision.esi {
        fields.push_text(bolide_cache::ESI_MARK.0, bolide_cache::ESI_MARK.1);
    }
    if caching.is_magento() {
        // Bans are about it as it was sent.
        let lines: Vec<&[u8]> = answer.all_text(rules::magento::TAGS).collect();
        if !lines.is_empty() {
            fields.push_text(rules::magento::TAGS, &lines.join(&b","[..]));
        }
    }
    let mut tags = Tags::default();
    if caching.is_page() {
        if !caching.conf.page.trusted.is_empty() {
            rules::for_front(answer, &mut fields);
        }
        for cookie in &decision.cookies {
            fields.push(Name::SetCookie, cookie);
        }
        rules::tags(answer, |word| match word.public {
            true => tags.push_public(word.text),
            false => tags.push(word.text),
        });
    }
    let head = ObjectHead {
        status,
        fields,
        etag: answer.get(Name::Etag).unwrap_or_default().to_vec(),
        last_modified: answer.get(Name::LastModified).and_then(date::parse),
        times: decision.times(now_ms),
        length: told,
    };
    (head, tags)
}

/// Whether the rules refuse nothing but to invent a lifetime.
const fn lacks_lifetime(verdict: StoreVerdict) -> bool {
    !matches!(verdict, StoreVerdict::Refuse(why) if !matches!(why, StoreRefusal::NoLifetime))
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
