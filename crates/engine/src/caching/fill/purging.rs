//! Carries out the purges that a response orders, and the flush by a POST.

use std::sync::Arc;

use bolide_cache::rules::{self, Facts, PurgeOrder, PurgeTarget};
use bolide_cache::{KeyBuilder, NamespaceId, SessionKey, Store, TagPurge, Tags};
use bolide_http::cookies::Cookies;
use bolide_http::lscache::{CacheScope, PurgeEffect as Lapse};

use super::Fill;
use crate::caching::identity::{key_of, push_session};
use crate::caching::no_vary_search;
use crate::caching::server_addresses::UrlOrigin;
use crate::caching::{CacheNamespaces, Caching};
use crate::subrequest::KeptAs;

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
            carry_out(place, order, how, facts, caching, session);
            if order.scope == CacheScope::Private && old != session {
                // A log-out purges the session that it ends.
                carry_out(place, order, how, facts, caching, &old);
            }
        }
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

    /// Tags the page with its URL, if its key is another text, or a purge of the URL may have come
    /// before the fill had its key.
    pub(super) fn tag_address(&self, tags: &mut Tags, caching: &Caching) {
        let is_part = !matches!(self.kept_as, KeptAs::Itself);
        if caching.is_page() && (is_part || caching.conf.page.key.is_some()) {
            let mut url = Vec::new();
            rules::url(&mut url, &self.question.facts(), &caching.policy);
            tags.push(&url_tag(&url));
        }
    }
}

/// The pages that a purge may reach.
#[derive(Clone, Copy)]
pub(crate) struct PurgedPages<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) namespace: NamespaceId,
    /// All ways to reach them, whichever way the purge came: HTTP and HTTPS are one site.
    pub(crate) origins: &'a [UrlOrigin],
}

impl<'a> PurgedPages<'a> {
    pub(crate) fn of(kept: &'a CacheNamespaces, namespace: NamespaceId) -> Self {
        Self { store: &kept.store, namespace, origins: kept.origins(namespace) }
    }
}

/// Carries out a purge order; returns the number of purged objects.
pub(crate) fn carry_out(
    PurgedPages { store, namespace, origins }: PurgedPages<'_>,
    order: &PurgeOrder,
    how: TagPurge,
    facts: &Facts<'_>,
    caching: &Caching,
    session: &[u8],
) -> u64 {
    let session = match order.scope {
        CacheScope::Public => None,
        CacheScope::Private => match SessionKey::new(session) {
            Some(session) => Some(session),
            None => return 0,
        },
    };
    let reach = session.map_or(bolide_cache::TagScope::Public, bolide_cache::TagScope::Session);
    match &order.target {
        PurgeTarget::All => store.purge_tag(namespace, reach, b"*", how),
        PurgeTarget::Everything => {
            store.purge_all(namespace, how) + store.purge_private(namespace, None, how)
        }
        PurgeTarget::Tag(tag) if **tag == *b"*" => store.purge_tag(namespace, reach, b"*", how),
        PurgeTarget::Tag(tag) => store.purge_tag(namespace, reach, tag, how),
        PurgeTarget::Prefix(prefix) => {
            store.purge_tag(namespace, reach, &[prefix, &b"*"[..]].concat(), how)
        }
        PurgeTarget::Url(target) => {
            let mut keys = KeyBuilder::default();
            let mut hit = 0;
            for spelled in urls_of(target, origins, facts, caching) {
                hit += store.purge_tag(namespace, reach, &url_tag(&spelled), how);
                let kept = no_vary_search::kept_url(store, namespace, &spelled);
                let kept = kept.map(|kept| kept.url).filter(|url| *url != spelled);
                for url in [Some(spelled), kept].into_iter().flatten() {
                    keys.start(namespace);
                    keys.push_url(&url);
                    hit += store.purge_url(&key_of(&keys, session), how);
                }
            }
            hit
        }
    }
}

/// The URLs in keys of what a purge calls `target`, in all spellings.
fn urls_of(
    target: &[u8],
    origins: &[UrlOrigin],
    facts: &Facts<'_>,
    caching: &Caching,
) -> Vec<Vec<u8>> {
    let others = origins.iter().map(|origin| Facts {
        scheme: origin.scheme,
        port: origin.port,
        server: origin.server.as_bytes(),
        ..*facts
    });
    let mut all = Vec::new();
    for facts in std::iter::once(*facts).chain(others) {
        let mut url = Vec::new();
        rules::url_of(&mut url, &facts, target, &caching.policy);
        if !all.contains(&url) {
            all.extend(spellings(url));
        }
    }
    all
}

/// The tag of a URL, for pages whose key is another text. No application's tag begins so.
pub(super) fn url_tag(url: &[u8]) -> Vec<u8> {
    [b"\0", url, b"\0"].concat()
}

/// A URL in both common spellings: browsers write `%C3`, some applications `%c3`.
fn spellings(url: Vec<u8>) -> Vec<Vec<u8>> {
    let with_case = |change: fn(&mut u8)| {
        let mut other = url.clone();
        for at in memchr::memchr_iter(b'%', &url) {
            other.iter_mut().skip(at + 1).take(2).for_each(change);
        }
        other
    };
    let others = [u8::make_ascii_lowercase, u8::make_ascii_uppercase].map(with_case);
    let mut all = vec![url];
    for other in others {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}
