//! Other sources of a fragment than its URL: inlines of the including page, parts of combined
//! responses, and private objects by tag.

use std::sync::Arc;

use bolide_cache::rules::{CacheGate, KeyPiece};
use bolide_cache::{KeyBuilder, Object, SessionKey};
use bolide_http::cookies::Cookies;

use crate::caching::identity::{
    for_inlines, page_key, push_combined, push_piece, shared_key, unvaried_key,
};
use crate::caching::{CacheTransaction, Caching};
use crate::ctx::StepCtx;
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
        let of_page = Some(lineage.includer()).filter(|page| !page.is_empty());
        let combined_by = lineage.combined_by.as_deref();
        if of_page.or(combined_by).is_none() || !caching.is_page() {
            return None;
        }
        let own = self.keys.public();
        let place = (own.namespace(), own.url());
        let facts = for_inlines(&self.facts(request, site, ctx));
        let session = SessionKey::new(&self.session).filter(|_| gate.private);
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
            let mark = keys.mark();
            let of_page = of_page.map(|page| (page, false));
            for (by, is_combined) in of_page.into_iter().chain(combined_by.map(|by| (by, true))) {
                match is_combined {
                    true => push_combined(&mut keys, by),
                    false => push_piece(&mut keys, KeyPiece::Inline(by)),
                }
                let private = session.map(|session| keys.private(session));
                for key in private.into_iter().chain(gate.public.then(|| keys.public())) {
                    if let Some(found) = front.find_fresh(&key, ctx.now.unix_millis) {
                        return Some(found);
                    }
                }
                keys.rewind(mark);
            }
        }
        None
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
