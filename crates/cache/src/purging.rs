//! Purges by tag, by URL, by session, and of everything.
//!
//! INVARIANT: a purge is recorded for the disk under the lock that assigns its generation, before
//! it takes effect in memory.

use std::sync::Arc;

use crate::bans::{BanKind, BanPattern};
use crate::disk::journal::Echo;
use crate::disk::{DiskPurge, DiskPurgeTarget, DiskTree, Filed};
use crate::growing::GrowingObject;
use crate::key::{CacheKey, KeyBuilder, NamespaceId, SessionKey, url_hash};
use crate::object::{Object, ObjectKind};
use crate::shard::Shard;
use crate::store::Store;
use crate::tags::{TagPurge, TagRoot, TagScope, TagVerdict, lock};

impl Store {
    /// Purges all objects of `namespace` with this tag or, if it ends in `*`, with any tag that has
    /// this prefix. Returns the number of purged objects. The tag `*` alone means
    /// [`Self::purge_all`] or [`Self::purge_private`], depending on `scope`.
    pub fn purge_tag(
        &self,
        namespace: NamespaceId,
        scope: TagScope<'_>,
        tag: &[u8],
        how: TagPurge,
    ) -> u64 {
        match (tag, scope) {
            (b"*", TagScope::Public) => self.purge_all(namespace, how),
            (b"*", TagScope::Session(session)) => self.purge_private(namespace, Some(session), how),
            ([prefix @ .., b'*'], _) => self.carry_out(
                namespace,
                scope,
                DiskPurgeTarget::TagsFrom(prefix),
                how,
                Echo::First,
            ),
            _ => self.carry_out(namespace, scope, DiskPurgeTarget::Tag(tag), how, Echo::First),
        }
    }

    /// Purges `target`; `echo` says whether another process did so before.
    pub(crate) fn carry_out(
        &self,
        namespace: NamespaceId,
        scope: TagScope<'_>,
        target: DiskPurgeTarget<'_>,
        how: TagPurge,
        echo: Echo,
    ) -> u64 {
        let note = |number| self.record_purge(namespace, scope, (target, how), echo, number);
        match (target, scope) {
            (DiskPurgeTarget::Tag(tag), _) => self.tags.purge(namespace, scope, tag, how, note),
            (DiskPurgeTarget::TagsFrom(start), _) => {
                self.tags.purge_prefix(namespace, scope, start, how, note)
            }
            (DiskPurgeTarget::Url(url), _) => {
                let mut keys = KeyBuilder::default();
                keys.start(namespace);
                keys.push_url(url);
                match scope {
                    TagScope::Public => self.purge_copies(&keys.public(), how, note),
                    TagScope::Session(session) => {
                        self.purge_copies(&keys.private(session), how, note)
                    }
                }
            }
            (DiskPurgeTarget::UrlsFrom(start), _) => self.purge_urls(namespace, start, how, note),
            (DiskPurgeTarget::All, TagScope::Public) => {
                self.tags.purge_root(namespace, &TagRoot::Public, how, note)
            }
            (DiskPurgeTarget::All, TagScope::Session(session)) => {
                self.tags.purge_root(namespace, &TagRoot::Session(session), how, note)
            }
            (DiskPurgeTarget::Private, _) => {
                self.tags.purge_root(namespace, &TagRoot::Private, how, note)
            }
            (DiskPurgeTarget::Matching(kind, text), _) => {
                let hit = match BanPattern::new(kind, text) {
                    Some(ban) if kind == BanKind::Tag => {
                        Some(purge_tags_where(self, namespace, &ban, how, note))
                    }
                    Some(ban) => self.ban(namespace, ban, how, note).then_some(0),
                    None => None,
                };
                hit.unwrap_or_else(|| {
                    self.carry_out(namespace, scope, DiskPurgeTarget::Everything, how, echo)
                })
            }
            (DiskPurgeTarget::Everything, _) => [DiskPurgeTarget::All, DiskPurgeTarget::Private]
                .map(|target| self.carry_out(namespace, TagScope::Public, target, how, echo))
                .iter()
                .sum(),
        }
    }

    /// Purges the objects that the ban `text` is about: those with such a tag at once, others each
    /// when it is next looked at. Returns the number of the former. A text that is not of its kind
    /// purges everything.
    pub fn purge_matching(
        &self,
        namespace: NamespaceId,
        kind: BanKind,
        text: &[u8],
        how: TagPurge,
    ) -> u64 {
        let target = DiskPurgeTarget::Matching(kind, text);
        self.carry_out(namespace, TagScope::Public, target, how, Echo::First)
    }

    /// Whether the ban is pending; false if there are too many. Fills in progress, whose heads may
    /// not be there yet, count as hit.
    fn ban(
        &self,
        namespace: NamespaceId,
        pattern: BanPattern,
        how: TagPurge,
        note: impl FnOnce(u64),
    ) -> bool {
        let mut is_pending = false;
        let before = self.tags.generation();
        self.tags.purge_by(|sequence| {
            note(sequence);
            is_pending = self.tags.bans.add(namespace, pattern, how, sequence);
            self.index.doom_fills(|own| (own.namespace == namespace).then_some(how));
            0
        });
        debug_assert!(self.tags.generation() > before, "objects from before look at the ban");
        is_pending
    }

    /// Purges all public objects of a namespace.
    pub fn purge_all(&self, namespace: NamespaceId, how: TagPurge) -> u64 {
        self.carry_out(namespace, TagScope::Public, DiskPurgeTarget::All, how, Echo::First)
    }

    /// Purges the private objects of one session, or of all sessions.
    pub fn purge_private(
        &self,
        namespace: NamespaceId,
        session: Option<SessionKey<'_>>,
        how: TagPurge,
    ) -> u64 {
        let (scope, target) = match session {
            Some(session) => (TagScope::Session(session), DiskPurgeTarget::All),
            None => (TagScope::Public, DiskPurgeTarget::Private),
        };
        self.carry_out(namespace, scope, target, how, Echo::First)
    }

    /// Purges all variants of a URL, public ones or those of the session of `key`, and its `Vary`
    /// entry.
    pub fn purge_url(&self, key: &CacheKey<'_>, how: TagPurge) -> u64 {
        let scope = key.session.map_or(TagScope::Public, TagScope::Session);
        let what = (DiskPurgeTarget::Url(key.url()), how);
        self.purge_copies(key, how, |number| {
            self.record_purge(key.namespace, scope, what, Echo::First, number);
        })
    }

    /// The same, but counts only objects in memory.
    pub fn strike_url(&self, key: &CacheKey<'_>, how: TagPurge) -> u64 {
        let scope = key.session.map_or(TagScope::Public, TagScope::Session);
        let what = (DiskPurgeTarget::Url(key.url()), how);
        let note = |number| self.record_purge(key.namespace, scope, what, Echo::First, number);
        let filed = self.namespaces.copies_on_disk(key).filter(|_| how == TagPurge::Dead);
        let (hit, _) = self.purge_url_in_memory(key, how, note);
        filed.iter().for_each(Filed::doom);
        hit
    }

    /// Purges the variants in memory and on disk, and counts each once.
    fn purge_copies(&self, key: &CacheKey<'_>, how: TagPurge, note: impl FnOnce(u64)) -> u64 {
        let filed = self.namespaces.copies_on_disk(key);
        let (hit, struck) = self.purge_url_in_memory(key, how, note);
        let Some(filed) = filed else { return hit };
        if how == TagPurge::Dead {
            filed.doom();
        }
        hit + filed.beside(&struck)
    }

    /// Returns the number of purged responses and all purged entries, the `Vary` entry included.
    pub(crate) fn purge_url_in_memory(
        &self,
        key: &CacheKey<'_>,
        how: TagPurge,
        note: impl FnOnce(u64),
    ) -> (u64, Vec<Arc<Object>>) {
        let mut struck = Vec::new();
        let hit = self.tags.purge_by(|sequence| {
            note(sequence);
            // Until its head a fill has the public key, and may be of any session.
            if let Some(session) = key.session {
                let hash = url_hash(key.namespace, None, key.url());
                let shard = lock(self.index.shard(hash));
                fills_of(&shard, key, None).for_each(|growing| growing.doom_for(session));
            }
            let mut shard = lock(self.index.shard(key.url_hash));
            fills_of(&shard, key, key.session).for_each(|growing| match how {
                TagPurge::Dead => growing.doom(),
                TagPurge::Stale => growing.soften(),
            });
            let mut hit = 0;
            for place in shard.copies(key) {
                let object = shard.at(place).filter(|object| object.kind() == ObjectKind::Content);
                let alive = object.is_some_and(|o| o.verdict(&self.tags) != TagVerdict::Dead);
                hit += u64::from(alive);
                match how {
                    TagPurge::Dead => struck.push(shard.take(place)),
                    TagPurge::Stale => object.into_iter().for_each(|object| {
                        object.marks().soften();
                        struck.push(Arc::clone(object));
                    }),
                }
            }
            hit
        });
        if how == TagPurge::Dead {
            struck.iter().for_each(|object| self.let_go(object));
        }
        (hit, struck)
    }

    /// Purges everything in a tree, as one purge in the journal.
    pub(crate) fn purge_tree(&self, tree: &Arc<DiskTree>, echo: Echo) {
        let (namespace, session, target) = (&b""[..], &b""[..], DiskPurgeTarget::Everything);
        self.tags.purge_by(|sequence| {
            let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
            self.disk.index_purge(tree, &order, echo);
            self.nodes().record_repeat(&order);
            0
        });
        for (namespace, _) in self.namespaces.of_tree(tree) {
            for root in [TagRoot::Public, TagRoot::Private] {
                self.tags.purge_root(namespace, &root, TagPurge::Dead, |_| {});
            }
        }
    }

    /// Purges every public URL of a namespace with the prefix `start`. It visits all objects.
    pub fn purge_urls_from(&self, namespace: NamespaceId, start: &[u8], how: TagPurge) -> u64 {
        self.carry_out(
            namespace,
            TagScope::Public,
            DiskPurgeTarget::UrlsFrom(start),
            how,
            Echo::First,
        )
    }

    fn purge_urls(
        &self,
        namespace: NamespaceId,
        start: &[u8],
        how: TagPurge,
        note: impl FnOnce(u64),
    ) -> u64 {
        self.tags.purge_by(|sequence| {
            note(sequence);
            self.index.doom_fills(|own| {
                let is_public = own.namespace == namespace && own.session.is_none();
                (is_public && own.url().starts_with(start)).then_some(how)
            });
            0
        });
        let mut urls = Vec::new();
        let mut part = 0;
        while self.index.list(part, &mut |object| {
            let is_public = object.namespace() == namespace && object.session().is_none();
            if is_public && object.url().starts_with(start) {
                urls.push(object.url().to_vec());
            }
        }) {
            part += 1;
        }
        urls.sort_unstable();
        urls.dedup();
        let mut keys = KeyBuilder::default();
        let mut hit = 0;
        for url in urls {
            keys.start(namespace);
            keys.push_url(&url);
            hit += self.purge_url_in_memory(&keys.public(), how, |_| {}).0;
        }
        hit
    }
}

/// Purges every public tag that the ban is about. Fills in progress, whose tags may not be there
/// yet, count as hit.
fn purge_tags_where(
    store: &Store,
    namespace: NamespaceId,
    ban: &BanPattern,
    how: TagPurge,
    note: impl FnOnce(u64),
) -> u64 {
    let act = |sequence| {
        note(sequence);
        store.index.doom_fills(|own| (own.namespace == namespace).then_some(how));
    };
    store.tags.purge_where(namespace, |tag| ban.hits_tag(tag), how, act)
}
/// Purges all objects of a namespace at this node alone.
pub fn purge_here(store: &Store, namespace: NamespaceId) -> u64 {
    let (scope, target) = (TagScope::Public, DiskPurgeTarget::Everything);
    // Other nodes have heard the purges that this one has missed.
    store.carry_out(namespace, scope, target, TagPurge::Dead, Echo::OfNode)
}
/// The fills of the URL of `key` for this session.
fn fills_of<'a>(
    shard: &'a Shard,
    key: &CacheKey<'_>,
    session: Option<SessionKey<'_>>,
) -> impl Iterator<Item = &'a Arc<GrowingObject>> {
    shard.fills.iter().filter(move |growing| {
        let own = growing.key.key();
        own.namespace == key.namespace && own.url() == key.url() && own.session == session
    })
}
