//! The key that a response belongs under, once its head is there.

use bolide_cache::rules::{Facts, KeyPiece, StoreDecision};
use bolide_cache::{AskedBy, FillPermit, KeyBuilder, SessionKey, Wakes};
use bolide_http::FieldMap;
use bolide_http::cookies::Cookies;
use bolide_http::lscache::CacheScope;

use super::{Fill, PASS_MS, Settled};
use crate::caching::Caching;
use crate::caching::identity::{
    for_inlines, key_of, page_key, push_combined, push_named, push_piece, shared_key, unvaried_key,
    zone_key,
};
use crate::caching::no_vary_search::{self, NarrowUrl};
use crate::subrequest::KeptAs;

impl Fill {
    /// The URL of a public page whose response says which parameters are irrelevant.
    pub(super) fn narrow_url(
        &self,
        decision: &StoreDecision,
        scope: CacheScope,
        caching: &Caching,
        fields: &FieldMap,
    ) -> Option<NarrowUrl> {
        let search = decision.search.as_ref()?;
        let is_page = caching.is_page() && caching.conf.page.key.is_none();
        let is_itself = matches!(self.kept_as, KeptAs::Itself) && !decision.no_vary;
        if scope != CacheScope::Public || !is_page || !is_itself {
            return None;
        }
        no_vary_search::remember(&self.store, self.namespace, &self.url, search, fields)
    }

    /// Moves the permit to the key of the response.
    pub(super) fn settle_key(
        &self,
        permit: FillPermit,
        decision: &StoreDecision,
        narrow: Option<&NarrowUrl>,
        settled: &Settled<'_>,
        caching: &Caching,
    ) -> (Option<FillPermit>, Wakes) {
        let Settled { cookies, scope, session, now_ms } = *settled;
        let fields = &self.question.fields;
        let facts = self.question.facts();
        let place = (self.namespace, narrow.map_or(&*self.url, |narrow| &*narrow.url));
        let mut keys = KeyBuilder::default();
        let value = decision.vary_value.as_deref();
        match (caching.is_page(), decision.no_vary) {
            (true, no_vary) if !matches!(self.kept_as, KeptAs::Itself) => {
                let by = (value, no_vary);
                self.key_for_includes(&mut keys, &facts, cookies, caching, by);
            }
            (true, true) => unvaried_key(&mut keys, place, &facts),
            (true, false) => page_key(&mut keys, place, &facts, caching, cookies, value),
            (false, _) => zone_key(&mut keys, place, facts.arrival),
        }
        if let Some(narrow) = narrow {
            push_piece(&mut keys, KeyPiece::Search(&narrow.rule));
        }
        let session = match scope {
            CacheScope::Public => None,
            CacheScope::Private => SessionKey::new(session),
        };
        // A private response would become public.
        assert!(
            scope == CacheScope::Public || session.is_some(),
            "a private answer is kept for a session or not at all"
        );
        let mut asked_by = self.asked_by(decision, scope);
        if !decision.vary.is_empty() {
            let names: Vec<&[u8]> = decision.vary.iter().map(|name| &**name).collect();
            let base = key_of(&keys, session);
            let sent = &self.site.location(self.location).sent;
            if names.iter().any(|name| sent.replaces(name)) {
                // The application got another value than the client sends.
                return (None, permit.abandon(self.passing(now_ms)));
            }
            if !self.store.remember_vary(&base, &names, asked_by) {
                return (None, permit.abandon(self.passing(now_ms)));
            }
            if asked_by == AskedBy::Others && base.hash() == permit.key().hash() {
                asked_by = AskedBy::Waiting;
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
            // The next client has a response of its own and need not wait for this one.
            self.store.remember_pass(&own, now_ms + PASS_MS);
        }
        let moved = match caching.is_page() {
            true => permit.move_to(&key, asked_by),
            // As in nginx, the last response is stored.
            false => permit.move_over(&key, asked_by),
        };
        (moved.permit, moved.wakes)
    }

    /// Which other nodes look up the key of this response. They look up the key of a request,
    /// and know that a page has `no-vary` from its response only.
    fn asked_by(&self, decision: &StoreDecision, scope: CacheScope) -> AskedBy {
        let is_itself = matches!(self.kept_as, KeptAs::Itself);
        let is_varied = !decision.no_vary || self.question.facts().environment.control.no_vary;
        match scope == CacheScope::Public && is_itself && (is_varied || !self.is_page) {
            true => AskedBy::Others,
            false => AskedBy::NoNode,
        }
    }

    fn key_for_includes(
        &self,
        keys: &mut KeyBuilder,
        facts: &Facts<'_>,
        cookies: &Cookies<'_>,
        caching: &Caching,
        (value, no_vary): (Option<&[u8]>, bool),
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
            false => page_key(keys, place, &facts, caching, cookies, value),
        }
        push_combined(keys, by);
    }
}
