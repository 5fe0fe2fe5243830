//! What drops kept answers besides applications: POST, `PURGE`, `REFRESH`, `fastcgi_cache_purge`.
//!
//! Owns who may and what is said back; what is dropped by an answer is the business of `fill`.

use bolide_cache::rules::{self, PurgeOrder, PurgeRequest, PurgeTarget};
use bolide_cache::{KeyBuilder, NamespaceId, SessionKey, TagPurge};
use bolide_conf::model::cache::{HandedOn, PageCache, Purger, is_allowed};
use bolide_conf::model::{CachePurge, Satisfy};
use bolide_http::Method;
use bolide_http::lscache::{CacheScope as Whose, PurgeEffect as Lapse};
use bytes::Bytes;

use crate::caching::Caching;
use crate::caching::fill::carry_out;
use crate::caching::fronts::ip;
use crate::caching::identity::key_of;
use crate::caching::lookup::is_any;
use crate::ctx::StepCtx;
use crate::exchange::{Exchange, NextStep};
use crate::filter::headers::HeadDraft;
use crate::site::Site;
use crate::vars::VariableScope;

impl Exchange {
    /// A POST drops what its session has.
    pub(super) fn autoflush(
        &self,
        caching: &Caching,
        space: NamespaceId,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let is_due = caching.is_page()
            && caching.conf.page.autoflush
            && rules::autoflushes(&caching.policy, &self.facts(site, ctx));
        if let (true, Some(session), Some(kept)) =
            (is_due && !self.is_dry(), SessionKey::new(&self.cache.session), site.kept())
        {
            kept.store.purge_private(space, Some(session), TagPurge::Dead);
        }
    }

    /// `PURGE` and `REFRESH`, and `fastcgi_cache_purge`.
    pub(super) fn ordered_purge(
        &mut self,
        caching: &Caching,
        space: NamespaceId,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let client = ip(self.request.client(ctx.conn));
        let method = &*self.request.head().method_text;
        if !caching.is_page() {
            let is_purge = match &caching.conf.purge {
                CachePurge::Off | CachePurge::Key { .. } => false,
                CachePurge::When(texts) => is_any(&self.request, &self.answer, texts, site, ctx),
                CachePurge::Method { method: wanted, from } if **wanted == *method => {
                    if !is_allowed(from, client) {
                        return Some(NextStep::Fail(403));
                    }
                    true
                }
                CachePurge::Method { .. } => false,
            };
            if is_purge && self.is_dry() {
                return Some(self.say(200, Vec::new(), site, ctx));
            }
            return is_purge.then(|| self.purge_zone(caching, space, site, ctx));
        }
        let page = &caching.conf.page;
        if page.litemage && self.asks_for_figures() {
            return Some(match self.purger(page, ctx) {
                Purger::Welcome => self.tell_figures(space, site, ctx),
                Purger::Stranger | Purger::Unknown => NextStep::Fail(403),
            });
        }
        let path = self.request.head().target.split(|b| *b == b'?').next().unwrap_or_default();
        let is_purge_uri = page.purge_uri.as_ref().is_some_and(|uri| **uri == *path)
            && self.request.head().fields.get_text(b"X-LiteSpeed-Purge").is_some();
        let how = match method {
            b"PURGE" => TagPurge::Dead,
            b"REFRESH" => TagPurge::Stale,
            _ if is_purge_uri => TagPurge::Dead,
            _ => return None,
        };
        if !self.has_shown_password(site, ctx) {
            match self.purger(page, ctx) {
                Purger::Welcome => {}
                Purger::Stranger => return Some(NextStep::Fail(405)),
                Purger::Unknown => return Some(NextStep::Fail(403)),
            }
        }
        if self.is_dry() {
            return Some(self.say(200, Vec::new(), site, ctx));
        }
        let store = site.kept()?.store.clone();
        let asked = match rules::asked_purges(&self.request.head().fields) {
            PurgeRequest::Unclear(reason) if !is_purge_uri => {
                return Some(self.say(400, reason, site, ctx));
            }
            PurgeRequest::Unclear(_) | PurgeRequest::Url => None,
            PurgeRequest::Tags(orders) => Some(orders),
        };
        if page.key.is_some() && !is_purge_uri && asked.is_none() {
            // What is written for keys holds for this request as well; for no other address.
            self.build_key(caching, space, site, ctx);
            let keys = &self.cache.keys;
            let session = SessionKey::new(&self.cache.session);
            let own = session.map_or(0, |session| store.purge_url(&keys.private(session), how));
            let hit = store.purge_url(&keys.public(), how) + own;
            return Some(self.say_processed(hit, site, ctx));
        }
        let facts = self.facts(site, ctx);
        let fields = &self.request.head().fields;
        let orders = match (is_purge_uri, asked) {
            (true, _) => rules::purges(&caching.policy, Method::Get, 200, fields),
            (false, Some(orders)) => orders,
            (false, None) => {
                let order = |scope| {
                    let target = PurgeTarget::Url(facts.target.into());
                    PurgeOrder { scope, effect: Lapse::Dead, target }
                };
                vec![order(Whose::Public), order(Whose::Private)]
            }
        };
        let mut hit = 0;
        for order in orders {
            let how = if order.effect == Lapse::Stale { TagPurge::Stale } else { how };
            hit += carry_out(&store, space, &order, how, &facts, caching, &self.cache.session);
        }
        Some(self.say_processed(hit, site, ctx))
    }

    fn say_processed(&mut self, hit: u64, site: &Site, ctx: &StepCtx<'_>) -> NextStep {
        let mut text = b"Processed ".to_vec();
        text.extend_from_slice(&self.request.head().method_text);
        text.extend_from_slice(b" by \"");
        text.extend_from_slice(&self.request.head().target);
        text.extend_from_slice(b"\"\n");
        let next = self.say(200, text, site, ctx);
        self.answer.head.fields.push_text_writing(b"X-Purged-Objects", |out| {
            bolide_http::digits::push_decimal(out, hit);
        });
        next
    }

    /// The same at a location that asks no origin: `PURGE /` finds a directory.
    pub(crate) fn purge_from_here(
        &mut self,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let location = self.request.location;
        let caching = site.location(location).caching.as_ref().filter(|c| c.is_page())?;
        let is_usual = matches!(self.request.method, Method::Get | Method::Head | Method::Post);
        let page = &caching.conf.page;
        if is_usual && page.purge_uri.is_none() && !page.litemage {
            return None;
        }
        self.begin_page(location, caching, site, ctx)
            .and_then(|space| self.ordered_purge(caching, space, site, ctx))
    }

    /// Whether it is LiteMage's page of administration that asks.
    fn asks_for_figures(&self) -> bool {
        let path = self.request.head().target.split(|byte| *byte == b'?').next();
        path.unwrap_or_default().ends_with(b"/__LSCACHE/STATS")
            && self.request.method == Method::Get
    }

    /// What LiteMage's page of administration shows.
    fn tell_figures(&mut self, space: NamespaceId, site: &Site, ctx: &StepCtx<'_>) -> NextStep {
        let Some(kept) = site.kept() else { return NextStep::Fail(404) };
        let all = kept.store.namespaces();
        let own = all.iter().find(|one| one.id == space);
        let (hits, objects) = own.map_or((0, 0), |one| (one.hits, one.objects));
        let name = site.server(self.request.server).name.escape_default().to_string();
        // Plan 3 has no limit.
        let text = format!(
            "{{\"{name}\": {{\"LITEMAGE_PLAN\": 3, \"LITEMAGE_LIMITED\": 0, \
             \"PUB_HITS\": {hits}, \"LITEMAGE_OBJS\": {objects}}}}}\n"
        );
        self.say_as(b"application/json", 200, text.into_bytes(), site, ctx)
    }

    /// Who wants to purge, by address and by what is said of proxies.
    fn purger(&self, page: &PageCache, ctx: &StepCtx<'_>) -> Purger {
        let handed_on = match bolide_http::forwarded_by::is_handed_on(&self.request.head().fields) {
            true => HandedOn::Yes,
            false => HandedOn::No,
        };
        page.may_purge(ip(self.request.client(ctx.conn)), ip(ctx.conn.remote), handed_on)
    }

    /// Whether the location asks for a password, which therefore was right.
    fn has_shown_password(&self, site: &Site, ctx: &StepCtx<'_>) -> bool {
        let settings = &site.location(self.request.location).settings;
        let (Some(realm), Some(_), Satisfy::All) =
            (&settings.auth_basic, &settings.auth_basic_user_file, settings.satisfy)
        else {
            return false;
        };
        let mut text = Vec::new();
        VariableScope::new(&self.request, &self.answer, site, ctx).expand(realm, &mut text);
        text != b"off"
    }

    /// RFC 9111 §4.4: what an unsafe request has changed is not answered out of a zone any more.
    pub(crate) fn invalidate_zone(
        &mut self,
        status: u16,
        caching: &Caching,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let is_kept = self.request.method == Method::Post && caching.policy.with_post;
        if !caching.policy.is_strict
            || self.request.head().method.is_safe()
            || is_kept
            || !matches!(status, 200..=399)
        {
            return;
        }
        let (Some(space), Some(kept)) = (self.cache.space, site.kept()) else { return };
        self.build_key(caching, space, site, ctx);
        kept.store.purge_url(&self.cache.keys.public(), TagPurge::Dead);
    }

    fn purge_zone(
        &mut self,
        caching: &Caching,
        space: NamespaceId,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        self.build_key(caching, space, site, ctx);
        let Some(kept) = site.kept() else { return NextStep::Fail(500) };
        let store = kept.store.clone();
        let key = self.cache.keys.public();
        let hit = match key.url().split_last() {
            Some((b'*', start)) => store.purge_urls_from(space, start, TagPurge::Dead),
            _ => store.purge_url(&key, TagPurge::Dead),
        };
        if hit == 0 {
            return NextStep::Fail(404);
        }
        let mut text = b"Purged: ".to_vec();
        bolide_http::digits::push_decimal(&mut text, hit);
        text.push(b'\n');
        self.say(200, text, site, ctx)
    }

    /// `fastcgi_cache_purge ZONE KEY`
    pub(crate) fn purge_key(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> Option<NextStep> {
        let settings = &site.location(self.request.location).settings;
        let CachePurge::Key { zone, key } = &settings.cache.purge else { return None };
        let kept = site.kept()?;
        if self.is_dry() {
            return Some(self.say(200, Vec::new(), site, ctx));
        }
        let space = *kept.zones.get(zone.index())?;
        let mut text = Vec::new();
        VariableScope::new(&self.request, &self.answer, site, ctx).expand(key, &mut text);
        let hit = match text.split_last() {
            Some((b'*', start)) => kept.store.purge_urls_from(space, start, TagPurge::Dead),
            _ => {
                let mut keys = KeyBuilder::default();
                keys.start(space);
                keys.push_url(&text);
                kept.store.purge_url(&key_of(&keys, None), TagPurge::Dead)
            }
        };
        if hit == 0 {
            return Some(NextStep::Fail(404));
        }
        Some(self.say(200, b"Purged\n".to_vec(), site, ctx))
    }

    fn say(&mut self, status: u16, text: Vec<u8>, site: &Site, ctx: &StepCtx<'_>) -> NextStep {
        self.say_as(b"text/plain", status, text, site, ctx)
    }

    fn say_as(
        &mut self,
        content_type: &'static [u8],
        status: u16,
        text: Vec<u8>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let draft = HeadDraft { content_type, ..HeadDraft::default() };
        self.fill(status, &draft, site, ctx);
        self.give_text(Bytes::from(text));
        NextStep::Respond
    }
}
