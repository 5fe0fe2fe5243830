//! A second lookup without the query parameters that do not affect the response.

use bolide_cache::rules::KeyPiece;
use bolide_cache::{AbandonReason, Lookup};
use bolide_http::cookies::Cookies;

use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::identity::{page_key, push_piece};
use crate::caching::no_vary_search::kept_url;
use crate::ctx::{StepCtx, StepEffect};
use crate::request::Request;
use crate::site::Site;

impl CacheTransaction {
    /// Returns the result of a lookup; none if it is a miss, and the path has a
    /// `No-Vary-Search`: irrelevant parameters are removed then, and the lookup is to be repeated.
    pub(super) fn narrow(
        &mut self,
        request: &Request,
        found: Lookup,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Lookup> {
        let Lookup::Miss(permit) = found else { return Some(found) };
        if !caching.is_page() || caching.conf.page.key.is_some() || self.is_narrow {
            return Some(Lookup::Miss(permit));
        }
        let namespace = permit.key().namespace();
        let front = ctx.cache.as_ref();
        let other = front.and_then(|front| kept_url(front.store(), namespace, permit.key().url()));
        let Some(other) = other else { return Some(Lookup::Miss(permit)) };
        ctx.effects.push(StepEffect::WakeExchanges(permit.abandon(AbandonReason::Gone)));
        let mut keys = std::mem::take(&mut self.keys);
        let facts = self.facts(request, site, ctx);
        let cookies = Cookies::of(facts.fields);
        page_key(&mut keys, (namespace, &other.url), &facts, caching, &cookies, None);
        push_piece(&mut keys, KeyPiece::Search(&other.rule));
        (self.keys, self.is_narrow) = (keys, true);
        None
    }
}
