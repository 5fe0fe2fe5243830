//! Purges by tag, by URL, by session and of everything.
//!
//! The rule that is easiest to break: a purge is noted for the disk under the lock that gives it
//! its number, before anything in memory is struck.

use crate::disk::Target;
use crate::key::{Key, KeyBuilder, NamespaceId, Session};
use crate::object::Kind;
use crate::store::Store;
use crate::tags::{Purge, Root, Scope, Verdict, lock};

impl Store {
    /// Purges all objects of `namespace` with this tag, or, if it ends in `*`, with any tag that
    /// begins so; says how many it hit. The tag `*` alone is [`Self::purge_all`] or
    /// [`Self::purge_private`], as `scope` says.
    pub fn purge_tag(
        &self,
        namespace: NamespaceId,
        scope: Scope<'_>,
        tag: &[u8],
        how: Purge,
    ) -> u64 {
        match (tag, scope) {
            (b"*", Scope::Public) => self.purge_all(namespace, how),
            (b"*", Scope::Session(session)) => self.purge_private(namespace, Some(session), how),
            ([prefix @ .., b'*'], _) => {
                let note = self.noting(namespace, scope, Target::TagsFrom(prefix), how);
                self.tags.purge_prefix(namespace, scope, prefix, how, note)
            }
            _ => self.purge_tag_exactly(namespace, scope, tag, how),
        }
    }

    /// Purges a tag that means itself even if it ends in `*`.
    pub(crate) fn purge_tag_exactly(
        &self,
        namespace: NamespaceId,
        scope: Scope<'_>,
        tag: &[u8],
        how: Purge,
    ) -> u64 {
        let note = self.noting(namespace, scope, Target::Tag(tag), how);
        self.tags.purge(namespace, scope, tag, how, note)
    }

    /// What notes a purge for the disk once it has its number.
    fn noting<'a>(
        &'a self,
        namespace: NamespaceId,
        scope: Scope<'a>,
        target: Target<'a>,
        how: Purge,
    ) -> impl FnOnce(u64) + 'a {
        move |sequence| self.purge_shelf(namespace, scope, target, how, sequence)
    }

    /// Purges all public objects of a namespace.
    pub fn purge_all(&self, namespace: NamespaceId, how: Purge) -> u64 {
        let note = self.noting(namespace, Scope::Public, Target::All, how);
        self.tags.purge_root(namespace, &Root::Public, how, note)
    }

    /// Purges the private objects of one session, or of all.
    pub fn purge_private(
        &self,
        namespace: NamespaceId,
        session: Option<Session<'_>>,
        how: Purge,
    ) -> u64 {
        let root = session.map_or(Root::Private, Root::Session);
        let scope = session.map_or(Scope::Public, Scope::Session);
        let target = if session.is_some() { Target::All } else { Target::Private };
        self.tags.purge_root(namespace, &root, how, self.noting(namespace, scope, target, how))
    }

    /// Purges all vary copies of a URL, in the public space or in the session of `key`, and what is
    /// known about how it varies.
    pub fn purge_url(&self, key: &Key<'_>, how: Purge) -> u64 {
        let scope = key.session.map_or(Scope::Public, Scope::Session);
        let note = self.noting(key.namespace, scope, Target::Url(key.url()), how);
        let hit = self.purge_url_in_memory(key, how, note);
        hit.max(u64::from(how == Purge::Dead && self.doom_on_disk(key)))
    }

    fn purge_url_in_memory(&self, key: &Key<'_>, how: Purge, note: impl FnOnce(u64)) -> u64 {
        let mut gone = Vec::new();
        let hit = self.tags.purge_by(|sequence| {
            note(sequence);
            let mut shard = lock(self.shard(key.url_hash));
            for growing in shard.fills.values() {
                let own = growing.key.key();
                let here = own.namespace == key.namespace
                    && own.url() == key.url()
                    && own.session == key.session;
                match how {
                    Purge::Dead if here => growing.doom(),
                    Purge::Stale if here => growing.soften(),
                    Purge::Dead | Purge::Stale => {}
                }
            }
            let mut hit = 0;
            for place in shard.copies(key) {
                let object = shard.at(place).filter(|object| object.kind() == Kind::Content);
                let alive = object.is_some_and(|o| o.verdict(&self.tags) != Verdict::Dead);
                hit += u64::from(alive);
                match how {
                    Purge::Dead => gone.push(shard.take(place)),
                    Purge::Stale => object.into_iter().for_each(|object| object.soften()),
                }
            }
            hit
        });
        gone.iter().for_each(|object| self.let_go(object));
        hit
    }

    /// Purges every public URL of a namespace that begins with `start`; looks at all of them.
    pub fn purge_urls_from(&self, namespace: NamespaceId, start: &[u8], how: Purge) -> u64 {
        let note = self.noting(namespace, Scope::Public, Target::UrlsFrom(start), how);
        self.tags.purge_by(|sequence| {
            note(sequence);
            self.doom_fills(|own| {
                let is_public = own.namespace == namespace && own.session.is_none();
                (is_public && own.url().starts_with(start)).then_some(how)
            });
            0
        });
        let mut urls = Vec::new();
        let mut part = 0;
        while self.list(part, &mut |object| {
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
            hit += self.purge_url_in_memory(&keys.public(), how, |_| {});
        }
        hit
    }
}
