//! A lookup without the query parameters that do not affect the response (`No-Vary-Search`).

use bolide_cache::rules::KeyPiece;
use bolide_cache::{Front, KeyBuilder, ObjectKind};
use bolide_http::FieldMap;
use bolide_http::cookies::Cookies;

use super::VARY_ROUNDS;
use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::identity::{page_key, push_named, push_piece};
use crate::caching::no_vary_search::{kept_url, may_have};
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::Site;

impl CacheTransaction {
    /// Takes the irrelevant parameters out of the key, if its path has a `No-Vary-Search` and no
    /// fresh response is stored under all of them.
    pub(super) fn narrow(
        &mut self,
        request: &Request,
        caching: &Caching,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let Some(front) = ctx.cache.as_deref_mut() else { return };
        let namespace = self.keys.namespace();
        if !caching.is_page()
            || caching.conf.page.key.is_some()
            || !may_have(front.store(), namespace)
        {
            return;
        }
        debug_assert!(!self.url.is_empty(), "a key is made before it is narrowed");
        let Some(other) = kept_url(front.store(), namespace, &self.url) else { return };
        if is_fresh(front, &mut self.keys, &request.head().fields, ctx.now.unix_millis) {
            return;
        }
        let mut keys = std::mem::take(&mut self.keys);
        let facts = self.facts(request, site, ctx);
        let cookies = Cookies::of(facts.fields);
        page_key(&mut keys, (namespace, &other.url), &facts, caching, &cookies, None);
        push_piece(&mut keys, KeyPiece::Search(&other.rule));
        self.keys = keys;
    }
}

/// Whether a fresh response is stored under this key, or under the variant that `fields` select.
fn is_fresh(front: &mut Front, keys: &mut KeyBuilder, fields: &FieldMap, now_ms: u64) -> bool {
    let mark = keys.mark();
    let mut is_there = false;
    for _ in 0..VARY_ROUNDS {
        match front.find_known(&keys.public(), now_ms) {
            Some(known) if known.kind() == ObjectKind::Vary => {
                push_named(keys, known.vary_names(), fields, &Cookies::of(fields));
            }
            known => {
                is_there = known.is_some();
                break;
            }
        }
    }
    keys.rewind(mark);
    is_there
}
