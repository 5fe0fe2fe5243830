//! The exchange that fetches for a key: its fill, and the events of the fetch.

use bolide_base::Now;
use bolide_cache::rules::KeyPiece;
use bolide_cache::{AbandonReason, FillMoment, FillPermit, Lookup, NamespaceId, Wakes};
use bolide_http::{Method, RequestBody};
use bolide_upstream::OriginNews;

use crate::answer::Answer;
use crate::caching::fill::{Fill, Judge, PASS_MS, RequestSnapshot};
use crate::caching::identity::{page_id, push_piece};
use crate::caching::request_cache_control::wants_far_part;
use crate::caching::transaction::{CacheState, StoreIntent, UpstreamCacheStatus};
use crate::caching::{CacheSpace, CacheTransaction, Caching};
use crate::ctx::{SiteRef, StepCtx, StepEffect};
use crate::exchange::Exchange;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::KeptAs;
use crate::vars::VariableScope;

impl Fill {
    /// Takes an event of the fetch, before the requesting exchange does, if it is still there;
    /// returns the exchanges to wake.
    pub fn handle_news(
        &mut self,
        news: &OriginNews,
        exchange: Option<&mut Exchange>,
        now: Now,
    ) -> Wakes {
        let mut wakes = self.take(news, now);
        if matches!(news, OriginNews::Head(_))
            && let Some(exchange) = exchange
        {
            exchange.record_stored(self);
        }
        wakes.join(self.end_misfit());
        wakes
    }
}

impl Exchange {
    /// Records whether the response is stored; to be called before its head is passed on.
    fn record_stored(&mut self, fill: &mut Fill) {
        if self.cache.revalidates
            && let Some(permit) = fill.take_misfit()
        {
            debug_assert!(matches!(self.cache.state, CacheState::Passed), "a fill has one permit");
            self.cache.state = CacheState::Filling { permit, past: fill.is_past };
        }
        self.cache.keeping = fill.keeping;
        self.cache.refusal = fill.refusal;
        self.cache.way.ttl = fill.ttl;
    }
}

impl CacheTransaction {
    /// The fill that the next fetch feeds.
    pub(crate) fn take_fill(
        &mut self,
        request: &Request,
        answer: &Answer,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<Box<Fill>> {
        let caching = site.location(request.location).caching.as_ref()?;
        if request.caching(site).is_none() {
            return fill_of_unseen(self, request, answer, caching, site, ctx);
        }
        if self.looked != Some(request.location) {
            return None;
        }
        let (permit, is_past) = match std::mem::take(&mut self.state) {
            CacheState::Filling { permit, past } => (Some(permit), past),
            CacheState::Waiting(_) | CacheState::Passed => (None, false),
        };
        self.is_whole = permit.is_some();
        self.set_page(Some(&page_id(fill_id(request, self.hash, ctx))));
        debug_assert!(!is_past || permit.is_some(), "only a fill has a key of its own");
        // Without a permit, only purges of the application have an effect.
        if permit.is_none() && !caching.is_page() {
            return None;
        }
        let question = (self.revalidates, answer.cached);
        let fill = self.fill_of(request, answer, permit, question, site, ctx)?;
        Some(Box::new(Fill { is_past, ..*fill }))
    }

    fn fill_of(
        &self,
        request: &Request,
        answer: &Answer,
        permit: Option<FillPermit>,
        (revalidates, cached): (bool, UpstreamCacheStatus),
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<Box<Fill>> {
        let own: &SiteRef = request.site.as_ref()?;
        let caching = site.location(request.location).caching.as_ref()?;
        let question = RequestSnapshot {
            method: if request.asks_for_whole(caching) { Method::Get } else { request.method },
            fields: request.head().fields.clone(),
            scheme: ctx.conn.scheme,
            host: request.asked_host().to_vec(),
            port: ctx.conn.local.port(),
            server: server_in_keys(request, site).to_vec(),
            target: request.address().to_vec(),
            authority: request.head().authority.clone(),
            arrival: self.arrival.clone(),
            environment: self.environment.clone(),
        };
        let kept_as = request.role.fragment().map_or(KeptAs::Itself, |lineage| lineage.kept_as());
        // As the client asked: the response decides which parameters count.
        let url = permit.as_ref().map(|_| self.url.to_vec());
        debug_assert!(
            permit
                .as_ref()
                .is_none_or(|permit| permit.key().url().is_empty() == self.url.is_empty()),
            "a fill has the URL of its key"
        );
        let store = site.kept()?.store.clone();
        let space = self.space?;
        let is_bare = permit.is_none() && caching.is_page();
        let awaits_purges = is_bare && !request.method.is_safe();
        let has_parts = is_bare && caching.policy.esi;
        let moment = has_parts.then(|| FillMoment::now(&store, space));
        let is_judged = !caching.is_page() && !caching.conf.no_cache.is_empty();
        let judge =
            is_judged.then(|| Judge::new(&VariableScope::new(request, answer, site, ctx), cached));
        Some(Box::new(Fill {
            store,
            site: own.clone(),
            location: request.location,
            namespace: space,
            stale: permit.as_ref().and_then(FillPermit::stale).or(self.stale.as_ref()).cloned(),
            permit,
            question: Box::new(question),
            id: fill_id(request, self.hash, ctx),
            url: url.unwrap_or_default(),
            asked_ms: ctx.now.unix_millis,
            revalidates,
            judge: judge.map(Box::new),
            is_past: false,
            kept_as,
            slice: request.asked_slice(),
            is_page: caching.is_page(),
            may_be_empty: true,
            size: 0,
            total: None,
            awaits_purges,
            cutting: None,
            moment,
            refusal: None,
            ttl: None,
            pass_ms: PASS_MS,
            keeping: StoreIntent::No,
            misfits: false,
            may_be_cut: false,
        }))
    }

    /// Starts a background fetch.
    pub(in crate::caching) fn refresh(
        &self,
        request: &mut Request,
        answer: &Answer,
        permit: FillPermit,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let has_body = request.head().body != RequestBody::None;
        let is_get = request.head().method == Method::Get || request.asks_for_whole(caching);
        let stale = permit.stale().cloned();
        let revalidates = stale.as_ref().is_some_and(|old| caching.can_revalidate(old));
        let asked = if is_get && !has_body {
            let fill = self.fill_of(
                request,
                answer,
                Some(permit),
                (revalidates, UpstreamCacheStatus::Expired),
                site,
                ctx,
            );
            let old = stale.as_ref().filter(|_| revalidates);
            let question =
                answer.origin_request(request, &self.environment, true, old, site, ctx).ok();
            question.zip(fill)
        } else {
            ctx.effects.push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone)));
            None
        };
        if let Some((question, fill)) = asked {
            ctx.effects.push(StepEffect::Refresh(Box::new(question), fill));
        }
    }
}

/// For a response that no client gets, and that is neither looked up nor stored: the application
/// may purge with it.
fn fill_of_unseen(
    cache: &mut CacheTransaction,
    request: &Request,
    answer: &Answer,
    caching: &Caching,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Option<Box<Fill>> {
    if !caching.is_page() {
        return None;
    }
    // It may have been looked up in a zone of another location.
    let other = cache.space;
    cache.space = space(request, answer, caching, site, ctx);
    let fill = cache.fill_of(request, answer, None, (false, answer.cached), site, ctx);
    cache.space = other;
    let mut fill = fill?;
    // The visitor's own request has flushed what it changes.
    fill.question.environment.control.no_autoflush = true;
    Some(fill)
}

/// This exchange fetches; the response is stored, if the configuration permits.
pub(super) fn keep_permit(
    request: &Request,
    answer: &mut Answer,
    cache: &mut CacheTransaction,
    permit: FillPermit,
    caching: &Caching,
    ctx: &mut StepCtx<'_>,
) {
    debug_assert!(matches!(cache.state, CacheState::Passed), "a request has one permit");
    debug_assert!(caching.is_page(), "zones have rules of their own");
    let stale = permit.stale().cloned();
    answer.cached =
        if stale.is_some() { UpstreamCacheStatus::Expired } else { UpstreamCacheStatus::Miss };
    cache.stale = stale;
    if request.head().method == Method::Head || wants_far_part(request, caching) {
        ctx.effects.push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone)));
        return;
    }
    cache.revalidates = cache.stale.as_ref().is_some_and(|old| caching.can_revalidate(old));
    cache.state = CacheState::Filling { permit, past: false };
}

/// Fetches without a lookup, and replaces the existing object.
pub(in crate::caching) fn take_over(
    request: &Request,
    cache: &mut CacheTransaction,
    caching: &Caching,
    ctx: &mut StepCtx<'_>,
) {
    if request.head().method == Method::Head && !request.asks_for_whole(caching) {
        return;
    }
    // A unique key until the response is there; then the fill moves.
    let mut keys = cache.keys.clone();
    push_piece(&mut keys, KeyPiece::Past(request.id));
    let now_ms = ctx.now.unix_millis;
    let Some(front) = ctx.cache.as_deref_mut() else { return };
    if let Lookup::Miss(permit) = front.lookup(&keys.public(), now_ms) {
        debug_assert!(matches!(cache.state, CacheState::Passed), "a request has one permit");
        cache.state = CacheState::Filling { permit, past: true };
    }
}

/// The namespace of the store for this location.
pub(super) fn space(
    request: &Request,
    answer: &Answer,
    caching: &Caching,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Option<NamespaceId> {
    let kept = site.kept()?;
    match &caching.space {
        CacheSpace::Zone(index) => kept.zones.get(*index).copied(),
        CacheSpace::Page => kept.pages.get(request.server as usize).copied(),
        CacheSpace::Named(text) => {
            let mut name = Vec::new();
            VariableScope::new(request, answer, site, ctx).expand(text, &mut name);
            let zones = &site.http()?.cache_zones;
            let index = zones.iter().position(|zone| zone.name.as_bytes() == name)?;
            kept.zones.get(index).copied()
        }
    }
}

/// The name of the request's server in keys.
pub(super) fn server_in_keys<'a>(request: &Request, site: &'a Site) -> &'a [u8] {
    let name = site.kept().and_then(|kept| kept.servers.get(request.server as usize));
    name.unwrap_or(&site.server(request.server).name).as_bytes()
}

/// The id of a response that an exchange fetches for the key with this hash. Parts of a page have
/// the id of its request.
const fn fill_id(request: &Request, hash: u128, ctx: &StepCtx<'_>) -> [u64; 2] {
    let [high, low] = request.id;
    [high ^ ctx.me.rotate_left(32), low ^ hash as u64]
}
