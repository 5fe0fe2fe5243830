//! Other sources of a fragment than its URL: inlines of the including page, parts of combined
//! responses, and private objects by tag.

use std::sync::Arc;

use bolide_cache::rules::{self, CacheGate, Facts, KeyPiece};
use bolide_cache::{FillMoment, KeyBuilder, Moved, NamespaceId, Object, SessionKey};
use bolide_http::cookies::Cookies;

use super::known::follow_known;
use crate::caching::identity::{
    for_inlines, page_key, push_combined, push_piece, shared_key, unvaried_key,
};
use crate::caching::transaction::CacheState;
use crate::caching::{CacheTransaction, Caching};
use crate::ctx::{StepCtx, StepEffect};
use crate::request::Request;
use crate::site::Site;

impl CacheTransaction {
    /// The inline of the including page for this fragment.
    pub(super) fn find_inline(
        &self,
        request: &Request,
        gate: CacheGate,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Arc<Object>> {
        let lineage = request.role.fragment()?;
        if !caching.is_page() {
            return None;
        }
        let own = self.keys.public();
        let namespace = own.namespace();
        let facts = for_inlines(&self.facts(request, site, ctx));
        let of_page = Some(&lineage.includer).filter(|page| !page.id.is_empty());
        // Its key is made by the page's settings, as when it was stored.
        let settings = of_page.and_then(|page| site.location(page.location).caching.as_ref());
        if let Some((page, caching)) = of_page.zip(settings).filter(|pair| pair.1.is_page()) {
            let mut environment = self.environment.clone();
            environment.vary_value.clone_from(&page.vary_value);
            let facts = Facts { environment: &environment, ..facts };
            let mut url = Vec::new();
            rules::url_of(&mut url, &facts, facts.target, &caching.policy);
            let push = |keys: &mut KeyBuilder| push_piece(keys, KeyPiece::Inline(&page.id));
            let found = find_part(self, (namespace, &url), (&facts, caching), gate, push, ctx);
            if found.is_some() {
                return found;
            }
        }
        let by = lineage.combined_by.as_deref()?;
        let push = |keys: &mut KeyBuilder| push_combined(keys, by);
        find_part(self, (namespace, own.url()), (&facts, caching), gate, push, ctx)
    }
}

/// The part of a response at `place`, whose key ends with what `push` appends.
fn find_part(
    cache: &CacheTransaction,
    place: (NamespaceId, &[u8]),
    (facts, caching): (&Facts<'_>, &Caching),
    gate: CacheGate,
    push: impl Fn(&mut KeyBuilder),
    ctx: &mut StepCtx<'_>,
) -> Option<Arc<Object>> {
    debug_assert!(caching.is_page(), "only pages have parts");
    let session = SessionKey::new(&cache.session).filter(|_| gate.private);
    let mut keys = KeyBuilder::default();
    for varies in [true, false] {
        match varies {
            true => {
                let cookies = Cookies::of(facts.fields);
                page_key(&mut keys, place, facts, caching, &cookies, None);
            }
            false => unvaried_key(&mut keys, place, facts),
        }
        push(&mut keys);
        let spaces = session.map(Some).into_iter().chain(gate.public.then_some(None));
        for session in spaces {
            let mark = keys.mark();
            let found = follow_known(&mut keys, session, facts.fields, ctx).flatten();
            if found.is_some() {
                return found;
            }
            keys.rewind(mark);
        }
    }
    None
}

/// The fill of a part of a combined response is as old as the combined request: purges since then
/// count.
pub(crate) fn date_back(cache: &mut CacheTransaction, moment: &FillMoment, ctx: &mut StepCtx<'_>) {
    match std::mem::take(&mut cache.state) {
        CacheState::Filling { permit, past } => {
            debug_assert!(cache.looked.is_some(), "a part is looked up before it is given");
            let Moved { permit, wakes } = permit.since(moment);
            ctx.effects.push(StepEffect::WakeExchanges(wakes));
            if let Some(permit) = permit {
                cache.state = CacheState::Filling { permit, past };
            }
        }
        other => cache.state = other,
    }
}

/// The session's object with the tags of the include, whatever its URL.
pub(super) fn find_shared(
    cache: &CacheTransaction,
    request: &Request,
    caching: &Caching,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<Arc<Object>> {
    let tags = request.role.fragment()?.shared.as_deref().filter(|_| caching.is_page())?;
    let session = SessionKey::new(&cache.session)?;
    let facts = cache.facts(request, site, ctx);
    let place = cache.keys.public().namespace();
    let mut keys = KeyBuilder::default();
    for varies in [true, false] {
        shared_key(&mut keys, place, (&facts, &Cookies::of(facts.fields)), caching, (tags, varies));
        let front = ctx.cache.as_deref_mut()?;
        let found = front.find_fresh(&keys.private(session), ctx.now.unix_millis);
        if found.is_some() {
            return found;
        }
    }
    None
}
