//! Carries out the purges that a response orders, and the flush by a POST.

use std::sync::Arc;

use bolide_cache::rules::{self, Facts, PurgeOrder, PurgeTarget};
use bolide_cache::{KeyBuilder, NamespaceId, SessionKey, Store, TagPurge, TagScope};
use bolide_http::cookies::Cookies;
use bolide_http::lscache::{CacheScope, PurgeEffect as Lapse};
use bolide_http::{FieldMap, OriginHead};

use super::{Fill, RequestSnapshot};
use crate::caching::identity::{key_of, push_session};
use crate::caching::reach::{SiteReach, UrlReach};
use crate::caching::{CacheNamespaces, Caching};

impl RequestSnapshot {
    /// The cookies and the session of the client after a response with `fields`.
    pub(super) fn session_after<'a>(
        &'a self,
        fields: &'a FieldMap,
        caching: &Caching,
        now_ms: u64,
    ) -> (Cookies<'a>, Vec<u8>) {
        let mut cookies = Cookies::of(&self.fields);
        if caching.is_page() {
            cookies.merge(fields, self.facts().cookie_url(), now_ms / 1000);
        }
        let mut session = Vec::new();
        push_session(&mut session, &cookies, &caching.conf.page.session);
        (cookies, session)
    }
}

impl Fill {
    /// Carries out the purges of a response; `session` is the session after it.
    pub(super) fn purge(
        &self,
        orders: &[PurgeOrder],
        facts: &Facts<'_>,
        caching: &Caching,
        session: &[u8],
    ) {
        if orders.is_empty() {
            return;
        }
        let old = self.old_session(caching);
        let Some(kept) = self.site.kept() else { return };
        let place = PurgedPages::of(kept, self.namespace);
        for order in orders {
            let how = match order.effect {
                Lapse::Dead => TagPurge::Dead,
                Lapse::Stale => TagPurge::Stale,
            };
            carry_out(place, order, how, facts, session);
            if order.scope == CacheScope::Private && old != session {
                // A log-out purges the session that it ends.
                carry_out(place, order, how, facts, &old);
            }
        }
    }

    /// Carries out the purges of a response that another server's response replaces.
    pub(super) fn purge_by_unused(&self, head: &OriginHead, now_ms: u64) {
        let site = self.site.clone();
        let Some(caching) = &site.location(self.location).caching else { return };
        let (facts, status) = (self.question.facts(), head.status_or_implied());
        let orders = rules::purges(&caching.policy, facts.method, status, &head.fields);
        let (_, session) = self.question.session_after(&head.fields, caching, now_ms);
        self.purge(&orders, &facts, caching, &session);
    }

    /// The session of the request.
    fn old_session(&self, caching: &Caching) -> Vec<u8> {
        let mut old = Vec::new();
        push_session(&mut old, &Cookies::of(&self.question.fields), &caching.conf.page.session);
        old
    }

    /// A POST purges its session again, because requests may have filled it meanwhile.
    pub(super) fn flush_again(&self, facts: &Facts<'_>, caching: &Caching) {
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
}

/// The pages that a purge may reach.
#[derive(Clone, Copy)]
pub(crate) struct PurgedPages<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) namespace: NamespaceId,
    pub(crate) reach: &'a SiteReach,
}

impl<'a> PurgedPages<'a> {
    pub(crate) fn of(kept: &'a CacheNamespaces, namespace: NamespaceId) -> Self {
        Self { store: &kept.store, namespace, reach: kept.reach(namespace) }
    }
}

/// Carries out a purge order; returns the number of purged objects.
pub(crate) fn carry_out(
    PurgedPages { store, namespace, reach }: PurgedPages<'_>,
    order: &PurgeOrder,
    how: TagPurge,
    facts: &Facts<'_>,
    session: &[u8],
) -> u64 {
    let session = match order.scope {
        CacheScope::Public => None,
        CacheScope::Private => match SessionKey::new(session) {
            Some(session) => Some(session),
            None => return 0,
        },
    };
    let scope = session.map_or(TagScope::Public, TagScope::Session);
    match &order.target {
        PurgeTarget::All => store.purge_tag(namespace, scope, b"*", how),
        PurgeTarget::Everything => {
            store.purge_all(namespace, how) + store.purge_private(namespace, None, how)
        }
        PurgeTarget::Tag(tag) if **tag == *b"*" => store.purge_tag(namespace, scope, b"*", how),
        PurgeTarget::Tag(tag) => store.purge_tag(namespace, scope, tag, how),
        PurgeTarget::Prefix(prefix) => {
            store.purge_tag(namespace, scope, &[prefix, &b"*"[..]].concat(), how)
        }
        PurgeTarget::Url(target) => {
            let reach = UrlReach::of(target, reach, facts);
            let mut keys = KeyBuilder::default();
            let mut hit = 0;
            for url in &reach.urls {
                keys.start(namespace);
                keys.push_url(url);
                hit += store.purge_url(&key_of(&keys, session), how);
            }
            let tagged = reach.tags.iter().map(|tag| store.purge_tag(namespace, scope, tag, how));
            hit + tagged.sum::<u64>()
        }
    }
}
