//! Purges by requests: POST, `PURGE`, `REFRESH`, `BAN`, `fastcgi_cache_purge`.
//!
//! Owns who may purge, and the response; `fill` carries out the purges of responses.

use bolide_cache::rules::{self, Facts, PurgeOrder, PurgeRequest, PurgeTarget};
use bolide_cache::{
    BanKind, BanTerm, KeyBuilder, NamespaceId, SessionKey, Store, TagPurge, ban_error, ban_text,
};
use bolide_conf::model::cache::{ForwardedByProxy, PageCache, PurgeAccess, is_allowed};
use bolide_conf::model::{CachePurge, Satisfy};
use bolide_http::lscache::{CacheScope as Whose, PurgeEffect as Lapse};
use bolide_http::{HttpVersion, Method};
use bytes::Bytes;

use crate::answer::Answer;
use crate::caching::fill::purging::{PurgedPages, carry_out};
use crate::caching::fronts::ip;
use crate::caching::lookup::{facts_at, is_any};
use crate::caching::reach::UrlReach;
use crate::caching::{CacheTransaction, Caching, magento};
use crate::ctx::{ConnInfo, StepCtx};
use crate::exchange::NextStep;
use crate::filter::headers::HeadDraft;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

impl CacheTransaction {
    /// A POST purges the objects of its session.
    pub(super) fn autoflush(
        &self,
        request: &Request,
        caching: &Caching,
        space: NamespaceId,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let is_due = caching.is_page()
            && caching.conf.page.autoflush
            && rules::autoflushes(&caching.policy, &self.facts(request, site, ctx));
        if let (true, Some(session), Some(kept)) =
            (is_due && !request.is_dry(), SessionKey::new(&self.session), site.kept())
        {
            kept.store.purge_private(space, Some(session), TagPurge::Dead);
        }
    }

    /// `PURGE`, `REFRESH` and `BAN`, and `fastcgi_cache_purge`, if the request [`may_order`] one.
    pub(super) fn ordered_purge(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        caching: &Caching,
        space: NamespaceId,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<NextStep> {
        let method = &*request.head().method_text;
        if !caching.is_page() {
            let client = || ip(request.client(ctx.conn));
            let is_purge = match &caching.conf.purge {
                CachePurge::Off | CachePurge::Key { .. } => false,
                CachePurge::When(texts) => is_any(request, answer, texts, site, ctx),
                CachePurge::Method { method: wanted, from } if **wanted == *method => {
                    if !is_allowed(from, client()) {
                        return Some(NextStep::Fail(403));
                    }
                    true
                }
                CachePurge::Method { .. } => false,
            };
            if is_purge && request.is_dry() {
                return Some(say(answer, request, 200, Vec::new(), site, ctx));
            }
            return is_purge.then(|| self.purge_zone(request, answer, caching, space, site, ctx));
        }
        let page = &caching.conf.page;
        let is_litemage = self.environment.litemage.unwrap_or(page.litemage);
        if is_litemage && asks_for_figures(request) {
            return Some(match purge_access(request, page, ctx) {
                PurgeAccess::Allowed => send_figures(answer, request, space, site, ctx),
                PurgeAccess::Denied | PurgeAccess::UnknownClient => NextStep::Fail(403),
            });
        }
        if caching.is_magento() && method == b"PURGE" {
            let done = purge_magento(request, answer, (page, space), site, ctx);
            if done.is_some() {
                return done;
            }
        }
        let is_of = |uri: &[u8]| request.head().target.split(|b| *b == b'?').next() == Some(uri);
        let is_purge_uri = page.purge_uri.as_ref().is_some_and(|uri| is_of(uri))
            && request.head().fields.get_text(b"X-LiteSpeed-Purge").is_some();
        let how = match method {
            b"PURGE" | b"BAN" => TagPurge::Dead,
            b"REFRESH" => TagPurge::Stale,
            _ if is_purge_uri => TagPurge::Dead,
            _ => return None,
        };
        if !has_shown_password(request, answer, site, ctx) {
            match purge_access(request, page, ctx) {
                PurgeAccess::Allowed => {}
                PurgeAccess::Denied => return Some(NextStep::Fail(405)),
                PurgeAccess::UnknownClient => return Some(NextStep::Fail(403)),
            }
        }
        if request.is_dry() {
            return Some(say(answer, request, 200, Vec::new(), site, ctx));
        }
        let store = site.kept()?.store.clone();
        let fields = &request.head().fields;
        let selected = match method {
            b"BAN" => rules::asked_bans(fields),
            _ => rules::asked_purges(fields),
        };
        let asked = match selected {
            PurgeRequest::Unclear(reason) if !is_purge_uri => {
                return Some(say(answer, request, 400, reason, site, ctx));
            }
            PurgeRequest::UrlsMatching if !is_purge_uri => {
                let text = ban_of_urls(&self.facts(request, site, ctx));
                let what = (BanKind::Expression, &*text);
                return Some(ban(answer, request, (&store, space), what, how, site, ctx));
            }
            PurgeRequest::Matching(kind, text) => {
                return Some(ban(answer, request, (&store, space), (kind, &text), how, site, ctx));
            }
            PurgeRequest::Tags(orders) => Some(orders),
            PurgeRequest::Unclear(_) | PurgeRequest::UrlsMatching | PurgeRequest::Url => None,
        };
        let mut own = 0;
        if page.key.is_some() && !is_purge_uri && asked.is_none() {
            // The key need not be of the URL alone.
            self.build_key(request, answer, caching, space, site, ctx);
            own = purge_key_of_request(&self.keys, &self.session, &store, how);
        }
        let facts = self.facts(request, site, ctx);
        let orders = match (is_purge_uri, asked) {
            (true, _) => rules::purges(&caching.policy, Method::Get, 200, &request.head().fields),
            (false, Some(orders)) => orders,
            (false, None) => orders_for(facts.target),
        };
        let place = PurgedPages::of(site.kept()?, space);
        let hit = orders.iter().map(|order| {
            let how = if order.effect == Lapse::Stale { TagPurge::Stale } else { how };
            carry_out(place, order, how, &facts, &self.session)
        });
        Some(say_processed(answer, request, own + hit.sum::<u64>(), site, ctx))
    }
}

impl CacheTransaction {
    /// As [`Self::ordered_purge`] in a location without an upstream: `PURGE /` finds a directory.
    pub(crate) fn purge_from_here(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<NextStep> {
        let at = request.location;
        let caching = site.location(at).caching.as_ref().filter(|c| c.is_page())?;
        if !may_order(self, request, caching) {
            return None;
        }
        self.begin_page(request, answer, at, caching, site, ctx)
            .and_then(|space| self.ordered_purge(request, answer, caching, space, site, ctx))
    }
}

/// Whether a request may order a purge; almost no request for a page may.
#[inline]
pub(super) fn may_order(cache: &CacheTransaction, request: &Request, caching: &Caching) -> bool {
    let page = &caching.conf.page;
    let is_usual = matches!(&*request.head().method_text, b"GET" | b"HEAD" | b"POST");
    !caching.is_page()
        || !is_usual
        || page.purge_uri.is_some()
        || cache.environment.litemage.unwrap_or(page.litemage)
}

/// Purges the public object under the key of the request, and the one of its session.
fn purge_key_of_request(keys: &KeyBuilder, session: &[u8], store: &Store, how: TagPurge) -> u64 {
    let session = SessionKey::new(session);
    let own = session.map_or(0, |session| store.purge_url(&keys.private(session), how));
    store.purge_url(&keys.public(), how) + own
}

/// The pages that a purge of the URL of a request strikes, as far as the URL tells.
pub(crate) fn reach_of(
    cache: &CacheTransaction,
    request: &Request,
    site: &Site,
    conn: &ConnInfo,
) -> UrlReach {
    let mut reach = UrlReach::default();
    let (Some(space), Some(kept)) = (cache.space, site.kept()) else { return reach };
    if !kept.zones.contains(&space) {
        let facts = facts_at(cache, request, site, conn);
        reach = UrlReach::of(facts.target, kept.reach(space), &facts);
    }
    let key = cache.keys.public();
    if !key.url().is_empty() {
        reach.add(key.url());
    }
    reach
}

/// The orders that purge all variants of a URL, public and of the session.
fn orders_for(target: &[u8]) -> Vec<PurgeOrder> {
    let order = |scope| {
        let target = PurgeTarget::Url(target.into());
        PurgeOrder { scope, effect: Lapse::Dead, target }
    };
    vec![order(Whose::Public), order(Whose::Private)]
}

/// The ban of the URLs of this host that match the request's target (`X-Purge-Method: regex`).
fn ban_of_urls(facts: &Facts<'_>) -> Vec<u8> {
    let host = BanTerm("req.http.host", "==", facts.host);
    ban_text(&[host, BanTerm("req.url", "~", facts.target)])
}

/// Carries out a ban and responds. The number of objects is known at once only for tags.
fn ban(
    answer: &mut Answer,
    request: &Request,
    (store, space): (&Store, NamespaceId),
    (kind, text): (BanKind, &[u8]),
    how: TagPurge,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> NextStep {
    if let Some(why) = ban_error(kind, text) {
        let text = format!("Nothing is purged: not a ban: {why}\n");
        return say(answer, request, 400, text.into_bytes(), site, ctx);
    }
    debug_assert!(!text.is_empty(), "a ban that is none was refused");
    let hit = store.purge_matching(space, kind, text, how);
    if kind == BanKind::Tag {
        return say_processed(answer, request, hit, site, ctx);
    }
    say(answer, request, 200, b"Ban added\n".to_vec(), site, ctx)
}

/// A `PURGE` in Magento's form for Varnish; none if it selects tags as other applications do.
fn purge_magento(
    request: &Request,
    answer: &mut Answer,
    (page, space): (&PageCache, NamespaceId),
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Option<NextStep> {
    if !has_shown_password(request, answer, site, ctx)
        && purge_access(request, page, ctx) != PurgeAccess::Allowed
    {
        return Some(say(answer, request, 405, b"Method not allowed".to_vec(), site, ctx));
    }
    let fields = &request.head().fields;
    let Some(order) = rules::magento::magento_purge(fields) else {
        let is_other = matches!(rules::asked_purges(fields), PurgeRequest::Tags(_));
        let text = b"X-Magento-Tags-Pattern or X-Pool header required".to_vec();
        return (!is_other).then(|| say(answer, request, 400, text, site, ctx));
    };
    if magento::is_unclear(&order) {
        let text = b"Nothing is purged: not a regular expression".to_vec();
        return Some(say(answer, request, 400, text, site, ctx));
    }
    if request.is_dry() {
        return Some(say(answer, request, 200, Vec::new(), site, ctx));
    }
    let kept = site.kept()?;
    let mut spaces = kept.magento.clone();
    if !spaces.contains(&space) {
        spaces.push(space);
    }
    let hit = magento::purge(&kept.store, &spaces, &order);
    let next = say(answer, request, 200, b"Purged".to_vec(), site, ctx);
    answer.head.fields.push_text_writing(b"X-Purged-Objects", |out| {
        bolide_http::digits::push_decimal(out, hit);
    });
    Some(next)
}

/// Whether the request is one of LiteMage's administration page.
fn asks_for_figures(request: &Request) -> bool {
    let path = request.head().target.split(|byte| *byte == b'?').next();
    path.unwrap_or_default().ends_with(b"/__LSCACHE/STATS") && request.method == Method::Get
}

/// Whether the client may purge, by its address and by what proxies say.
fn purge_access(request: &Request, page: &PageCache, ctx: &StepCtx<'_>) -> PurgeAccess {
    let head = request.head();
    // Proxies still speak HTTP/1.0.
    let forwards =
        bolide_http::forwarded_by::is_forwarded(&head.fields) || head.version < HttpVersion::Http11;
    let forwarded = match forwards || !ctx.conn.relay.is_direct() {
        true => ForwardedByProxy::Yes,
        false => ForwardedByProxy::No,
    };
    page.may_purge(ip(request.client(ctx.conn)), ip(ctx.conn.remote), forwarded)
}

/// Whether the location requires a password, which was right then.
fn has_shown_password(request: &Request, answer: &Answer, site: &Site, ctx: &StepCtx<'_>) -> bool {
    let settings = &site.location(request.location).settings;
    let (Some(realm), Some(_), Satisfy::All) =
        (&settings.auth_basic, &settings.auth_basic_user_file, settings.satisfy)
    else {
        return false;
    };
    let mut text = Vec::new();
    VariableScope::new(request, answer, site, ctx).expand(realm, &mut text);
    text != b"off"
}

impl CacheTransaction {
    /// RFC 9111 §4.4: an unsafe request invalidates the object of its URL in a zone.
    pub(crate) fn invalidate_zone(
        &mut self,
        request: &mut Request,
        answer: &Answer,
        status: u16,
        caching: &Caching,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let is_kept = request.method == Method::Post && caching.policy.with_post;
        if !caching.policy.is_strict
            || request.head().method.is_safe()
            || is_kept
            || !matches!(status, 200..=399)
        {
            return;
        }
        let (Some(space), Some(kept)) = (self.space, site.kept()) else { return };
        for key in zone_keys(self, request, answer, caching, space, site, ctx) {
            // A client could write any `*`.
            purge_one_key(&kept.store, space, &key);
        }
    }

    fn purge_zone(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        caching: &Caching,
        space: NamespaceId,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let keys = zone_keys(self, request, answer, caching, space, site, ctx);
        let Some(kept) = site.kept() else { return NextStep::Fail(500) };
        let hit: u64 = keys.iter().map(|key| purge_zone_key(&kept.store, space, key)).sum();
        if hit == 0 {
            return NextStep::Fail(404);
        }
        let mut text = b"Purged: ".to_vec();
        bolide_http::digits::push_decimal(&mut text, hit);
        text.push(b'\n');
        say(answer, request, 200, text, site, ctx)
    }
}

/// The keys of the responses to the URL of a request that purges them, which has another
/// `$request_method` than those that they were stored for.
fn zone_keys(
    cache: &mut CacheTransaction,
    request: &mut Request,
    answer: &Answer,
    caching: &Caching,
    space: NamespaceId,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for method in [None, Some("GET"), Some("HEAD"), Some("POST")] {
        request.method_in_key = method;
        cache.build_key(request, answer, caching, space, site, ctx);
        let key = cache.keys.public().url().to_vec();
        if !all.contains(&key) {
            all.push(key);
        }
    }
    request.method_in_key = None;
    debug_assert!(!all.is_empty(), "every request has a key");
    all
}

/// Purges the responses of a zone with this key; if it ends in `*`, all with this prefix.
fn purge_zone_key(store: &Store, space: NamespaceId, key: &[u8]) -> u64 {
    match key.split_last() {
        Some((b'*', start)) => store.purge_urls_from(space, start, TagPurge::Dead),
        _ => purge_one_key(store, space, key),
    }
}

fn purge_one_key(store: &Store, space: NamespaceId, key: &[u8]) -> u64 {
    let mut keys = KeyBuilder::default();
    keys.start(space);
    keys.push_url(key);
    store.purge_url(&keys.public(), TagPurge::Dead)
}

fn say(
    answer: &mut Answer,
    request: &Request,
    status: u16,
    text: Vec<u8>,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> NextStep {
    say_as(answer, request, b"text/plain", status, text, site, ctx)
}

fn say_as(
    answer: &mut Answer,
    request: &Request,
    content_type: &'static [u8],
    status: u16,
    text: Vec<u8>,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> NextStep {
    let draft = HeadDraft { content_type, ..HeadDraft::default() };
    answer.fill(request, status, &draft, site, ctx);
    answer.give_text(request, Bytes::from(text));
    NextStep::Respond
}

fn say_processed(
    answer: &mut Answer,
    request: &Request,
    hit: u64,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> NextStep {
    let mut text = b"Processed ".to_vec();
    text.extend_from_slice(&request.head().method_text);
    text.extend_from_slice(b" by \"");
    text.extend_from_slice(&request.head().target);
    text.extend_from_slice(b"\"\n");
    let next = say(answer, request, 200, text, site, ctx);
    answer.head.fields.push_text_writing(b"X-Purged-Objects", |out| {
        bolide_http::digits::push_decimal(out, hit);
    });
    next
}

/// The figures for LiteMage's administration page.
fn send_figures(
    answer: &mut Answer,
    request: &Request,
    space: NamespaceId,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> NextStep {
    let Some(kept) = site.kept() else { return NextStep::Fail(404) };
    let all = kept.store.namespaces().stats();
    let own = all.iter().find(|one| one.id == space);
    let (hits, objects) = own.map_or((0, 0), |one| (one.hits, one.objects));
    let name = site.server(request.server).name.escape_default().to_string();
    // Plan 3 has no limit.
    let text = format!(
        "{{\"{name}\": {{\"LITEMAGE_PLAN\": 3, \"LITEMAGE_LIMITED\": 0, \
         \"PUB_HITS\": {hits}, \"LITEMAGE_OBJS\": {objects}}}}}\n"
    );
    say_as(answer, request, b"application/json", 200, text.into_bytes(), site, ctx)
}

/// `fastcgi_cache_purge ZONE KEY`
pub(crate) fn purge_key(
    answer: &mut Answer,
    request: &Request,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Option<NextStep> {
    let settings = &site.location(request.location).settings;
    let CachePurge::Key { zone, key } = &settings.cache.purge else { return None };
    let kept = site.kept()?;
    if request.is_dry() {
        return Some(say(answer, request, 200, Vec::new(), site, ctx));
    }
    let space = *kept.zones.get(zone.index())?;
    let mut text = Vec::new();
    VariableScope::new(request, answer, site, ctx).expand(key, &mut text);
    let hit = purge_zone_key(&kept.store, space, &text);
    if hit == 0 {
        return Some(NextStep::Fail(404));
    }
    Some(say(answer, request, 200, b"Purged\n".to_vec(), site, ctx))
}
