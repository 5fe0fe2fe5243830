//! A response of an upstream on its way into the store.
//!
//! ```text
//!   head ─▶ purges; store? ──no──▶ abandoned: waiters look up again, the response is only sent
//!                │ yes
//!                ▼  (under another key, if its fields say so)
//!             begun ── pieces ──▶ committed at the end; abandoned if it breaks or grows too large
//! ```
//!
//! Owns the permit and outlives the requesting client. Easiest to break: every end of the permit
//! returns the exchanges to wake.

mod fate;
mod inlines;
mod judge;
mod kept_head;
mod keys;
pub(in crate::caching) mod purging;

use std::sync::Arc;

use bolide_base::Now;
use bolide_cache::disk::format::{pack_tags, unpack_tags};
use bolide_cache::rules::{self, AnswerFacts, Environment, Facts, StoreRefusal, StoreVerdict};
use bolide_cache::{
    AbandonReason, EARLIER_TAGS, FillMoment, FillPermit, NamespaceId, Object, PAGE_ID, SessionKey,
    Store, TagPurge, Tags, Wakes,
};
use bolide_http::cookies::Cookies;
use bolide_http::lscache::CacheScope;
use bolide_http::message::Scheme;
use bolide_http::{FieldMap, Method, Name, OriginHead};
use bolide_upstream::OriginNews;

use self::inlines::InlineCutting;
pub(in crate::caching) use self::kept_head::fields_of;
use self::kept_head::{kept_head, push_tags, settle_times};
use crate::caching::StoreIntent;
use crate::caching::identity::page_id;
use crate::caching::reach::tag_page;
use crate::caching::{Caching, StaleCause};
use crate::filter::passed_fields::is_buffered;
use crate::route::LocationIndex;
use crate::site::SiteRef;
use crate::subrequest::{KeptAs, SliceRange};

pub(in crate::caching) use fate::PASS_MS;
pub(crate) use judge::Judge;

/// LIMIT: bytes of a response head with tags; a page can have as many tags as it has products.
const PAGE_HEAD_MAX: usize = 512 * 1024;

/// What remains of a request after its end.
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

/// Feeds a response to the store.
#[derive(Debug)]
pub struct Fill {
    pub(crate) store: Arc<Store>,
    pub(crate) site: SiteRef,
    pub(crate) location: LocationIndex,
    pub(crate) namespace: NamespaceId,
    pub(crate) permit: Option<FillPermit>,
    pub(crate) question: Box<RequestSnapshot>,
    /// The stale object that may replace an error, or is being revalidated.
    pub(crate) stale: Option<Arc<Object>>,
    /// The id of this very response, for its inlines.
    pub(crate) id: [u64; 2],
    /// The URL part of the key, with all parameters.
    pub(crate) url: Vec<u8>,
    /// When the upstream request began.
    pub(crate) asked_ms: u64,
    /// Whether the upstream request revalidates the stale object.
    pub(crate) revalidates: bool,
    /// The conditions that decide whether the response is stored, if they are not decided yet.
    pub(crate) judge: Option<Box<Judge>>,
    /// Whether the permit has a unique key, so that no exchange waits for it.
    pub(crate) is_past: bool,
    /// The key under which a fragment is stored.
    pub(crate) kept_as: KeptAs,
    /// The requested range, if the request is a slice.
    pub(crate) slice: Option<SliceRange>,
    /// Whether it belongs to the page cache.
    pub(crate) is_page: bool,
    /// Whether a response without a body is stored.
    pub(crate) may_be_empty: bool,
    /// Bytes of the body so far, and its declared length.
    pub(crate) size: u64,
    pub(crate) total: Option<u64>,
    /// Whether the head may order purges of an unsafe request's effects, which must not be lost.
    pub(crate) awaits_purges: bool,
    /// For an ESI page, stored or not.
    pub(crate) cutting: Option<Box<InlineCutting>>,
    /// When its request was sent, if it may have parts that are stored on their own.
    pub(crate) moment: Option<FillMoment>,
    /// Why the response is not stored, if a rule refused it.
    pub(crate) refusal: Option<StoreRefusal>,
    /// Its freshness lifetime in seconds, if it is stored.
    pub(crate) ttl: Option<u32>,
    /// How long the store remembers that a response is not storable, in milliseconds.
    pub(crate) pass_ms: u64,
    /// Whether the response is stored.
    pub(crate) keeping: StoreIntent,
    /// Whether a 304 confirmed another representation than the stored one.
    pub(crate) misfits: bool,
    /// Whether the answer ends where it may have been cut.
    pub(crate) may_be_cut: bool,
}

impl Fill {
    /// Whether the response is still being stored, so that it must be read to its end.
    #[must_use]
    pub const fn is_filling(&self) -> bool {
        self.permit.is_some()
    }

    /// Whether the head is needed though nothing is stored: the application may purge what the
    /// request has changed.
    #[must_use]
    pub const fn awaits_purges(&self) -> bool {
        self.awaits_purges
    }

    /// Whether another request follows this fill.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.permit.as_ref().is_some_and(FillPermit::is_joined)
    }

    /// Whether no more of the response is to be read now, because followers have not taken what has
    /// come. Ask again soon.
    #[must_use]
    pub fn awaits_followers(&self, now: Now) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.awaits_followers(now.mono))
    }

    /// The permit of a fill whose 304 did not match, for the exchange that fetches again without
    /// conditions; followers wait for that.
    pub(crate) fn take_misfit(&mut self) -> Option<FillPermit> {
        self.permit.take_if(|_| self.misfits)
    }

    /// Abandons such a permit if no exchange took it. A background fetch is not repeated: the next
    /// request does that.
    pub(super) fn end_misfit(&mut self) -> Wakes {
        let Some(permit) = self.take_misfit() else { return Wakes::default() };
        self.store.strike_url(&permit.key(), TagPurge::Dead);
        permit.abandon(AbandonReason::Gone)
    }

    /// The end that comes next may be a truncation: requests that follow get what came, and it is
    /// not stored.
    pub const fn doubt_end(&mut self) {
        self.may_be_cut = true;
    }

    /// Abandons the fill; no request follows it.
    pub fn let_go(&mut self) -> Wakes {
        self.awaits_purges = false;
        self.give_up(AbandonReason::Gone)
    }

    pub(super) fn take(&mut self, news: &OriginNews, now: Now) -> Wakes {
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
            OriginNews::Unused(head) => {
                self.purge_by_unused(head, now_ms);
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
            self.total.is_none_or(|total| self.size <= total),
            "no more is kept than was declared"
        );
        let Some(mut permit) = self.permit.take() else { return wakes };
        if self.total.is_some_and(|total| total > self.size) {
            wakes.join(permit.abandon(self.rest(now.unix_millis)));
            return wakes;
        }
        for piece in rest {
            wakes.join(permit.append(piece));
        }
        let is_nothing = self.size == 0 && !self.may_be_empty;
        wakes.join(if is_nothing || self.may_be_cut {
            permit.finish()
        } else {
            permit.commit().wakes
        });
        wakes
    }

    fn take_body(&mut self, bytes: &bytes::Bytes, now: Now) -> Wakes {
        if self.permit.is_none() && self.cutting.is_none() {
            return Wakes::default();
        }
        let mut bytes = bytes.clone();
        if let Some(total) = self.total {
            let left = total.saturating_sub(self.size);
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        }
        self.size += bytes.len() as u64;
        let (pieces, mut wakes, is_sure) = self.cut(bytes, now);
        let why = self.passing(now.unix_millis);
        let Some(permit) = &mut self.permit else { return wakes };
        let limit = self.site.location(self.location).caching.as_ref();
        let fits = limit.is_some_and(|caching| self.size <= caching.policy.object_max);
        // A follower gets the whole response, stored or not; a request that waits for a zone
        // fetches then.
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
        debug_assert!(self.size == 0 && self.total.is_none(), "a head comes once, before its body");
        self.awaits_purges = false;
        let (now_ms, status) = (now.unix_millis, head.status_or_implied());
        let question = &self.question;
        let (cookies, session) = question.session_after(&head.fields, caching, now_ms);
        let total = head.length();
        let answer = AnswerFacts {
            status,
            fields: &head.fields,
            body_len: total,
            asked: self.asked_ms,
            arrived: now_ms,
        };
        let facts = question.facts();
        // A session that is too long for a key has no private cache.
        let own = SessionKey::new(&session);
        let mut decision = rules::decide(&caching.policy, &facts, &answer, own.is_some());
        self.pass_ms = decision.remembered.map_or(PASS_MS, |seconds| u64::from(seconds) * 1000);
        self.purge(&decision.purges, &facts, caching, &session);
        self.flush_again(&facts, caching);
        decision.esi &= head.fields.get(Name::ContentEncoding).is_none();
        if decision.esi && status != 304 {
            let is_public = decision.scope() == Some(CacheScope::Public);
            self.moment = self.permit.as_ref().map(FillPermit::moment).or(self.moment.take());
            let own = if facts.environment.no_private { &[] } else { &session[..] };
            self.cutting = Some(Box::new(InlineCutting::new(&head.fields, own, is_public)));
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
        // As in nginx, an unbuffered response is not stored in zones.
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
        // Another range than the one of the key.
        let misses = self.slice.is_some_and(|slice| slice.is_missed_by(status, &head.fields));
        if misses || self.judge.as_mut().is_some_and(|judge| judge.refuses(status, head, site, now))
        {
            self.keeping = StoreIntent::Unkept;
            return permit.abandon(AbandonReason::Gone);
        }
        self.kept_as.settle(&head.fields, scope);
        settle_times(&mut decision, answer.fields, caching, &facts);
        self.ttl = Some(decision.ttl);
        let narrow = self.narrow_url(&decision, scope, caching, &head.fields);
        // A purge may have come while the fetch had the key of another URL.
        let was_narrow = rules::is_narrowed(permit.key().vary());
        let settled = Settled { cookies: &cookies, scope, session: &session, now_ms };
        let (key, mut wakes) =
            self.settle_key(permit, &decision, narrow.as_ref(), &settled, caching);
        let Some(mut permit) = key else { return wakes };
        self.may_be_empty = !self.is_page || status != 200;
        let length = total.filter(|_| self.cutting.is_none());
        let (mut kept, mut tags) =
            kept_head(status, &head.fields, &decision, caching, now_ms, length);
        if decision.esi {
            kept.controls.push_text(PAGE_ID, &page_id(self.id));
        }
        let mut text = caching.key_text(was_narrow);
        text.needs_url_tag |= !matches!(self.kept_as, KeptAs::Itself);
        tag_page(&mut tags, &self.question.facts(), &permit.key(), text, &caching.policy);
        wakes.join(permit.begin(kept, &tags));
        self.total = total;
        self.permit = Some(permit);
        self.keeping = StoreIntent::Yes;
        wakes
    }

    /// The stale object was confirmed (RFC 9111 §4.3.4).
    fn freshen(
        &self,
        permit: FillPermit,
        old: &Object,
        head: &OriginHead,
        caching: &Caching,
        now_ms: u64,
    ) -> Wakes {
        let mut fields = fields_of(old);
        let mut tags = Tags::default();
        push_tags(&fields, caching, &mut tags);
        if let Some(earlier) = old.control(EARLIER_TAGS) {
            tags.extend(&unpack_tags(earlier));
        }
        rules::freshen(&mut fields, &head.fields);
        let answer = AnswerFacts {
            status: old.status(),
            fields: &fields,
            body_len: Some(old.body_len()),
            asked: self.asked_ms,
            arrived: now_ms,
        };
        let facts = self.question.facts();
        // It is public: without a session, no response is stored as private.
        let mut decision = rules::decide(&caching.policy, &facts, &answer, false);
        if decision.scope().is_none() {
            let forbids = matches!(
                decision.verdict,
                StoreVerdict::Refuse(
                    StoreRefusal::NoStore
                        | StoreRefusal::NoCache
                        | StoreRefusal::Private
                        | StoreRefusal::NoSession
                        | StoreRefusal::Space
                )
            );
            // The stored response must not be used any more, not even as a stale one.
            return permit.abandon(match forbids && caching.is_page() {
                true => self.passing(now_ms),
                false => AbandonReason::Gone,
            });
        }
        settle_times(&mut decision, answer.fields, caching, &facts);
        // The stored body is the same, whatever the 304 says or omits.
        decision.esi |= old.is_esi();
        if caching.is_page() && decision.cookies.is_empty() {
            decision.cookies = fields.all(Name::SetCookie).map(Into::into).collect();
        }
        let (mut kept, new) =
            kept_head(old.status(), &fields, &decision, caching, now_ms, Some(old.body_len()));
        if caching.is_page() && !tags.is_empty() {
            // The body is that of the old response, and its tags are about the body.
            kept.controls.push_text(EARLIER_TAGS, &pack_tags(&tags));
        }
        tags.extend(&new);
        tag_page(&mut tags, &facts, &permit.key(), caching.key_text(false), &caching.policy);
        if kept.etag.is_empty() {
            kept.etag = old.etag().unwrap_or_default().to_vec();
        }
        kept.last_modified = kept.last_modified.or(old.last_modified());
        // Its inlines were cut out of the stored body.
        if let Some(id) = old.control(PAGE_ID) {
            kept.controls.push_text(PAGE_ID, id);
        }
        permit.freshen(kept, &tags).wakes
    }

    /// The limit on the size of the response head, which may have long lists of tags.
    #[must_use]
    pub fn head_max(&self) -> usize {
        match self.caching() {
            Some(caching) if caching.is_magento() => bolide_base::limits::MAGENTO_HEAD_MAX,
            _ if self.is_page => PAGE_HEAD_MAX,
            _ => 0,
        }
    }
}

/// The session and privacy of a response.
#[derive(Clone, Copy)]
struct Settled<'a> {
    /// The cookies of the request, with those that the response sets.
    cookies: &'a Cookies<'a>,
    scope: CacheScope,
    session: &'a [u8],
    now_ms: u64,
}

/// Whether the only flaw of a response is the lack of a lifetime.
const fn lacks_lifetime(verdict: StoreVerdict) -> bool {
    !matches!(verdict, StoreVerdict::Refuse(why) if !matches!(why, StoreRefusal::NoLifetime))
}
