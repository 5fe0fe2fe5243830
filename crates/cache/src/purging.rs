//! Purges by tag, by URL, by session and of everything.
//!
//! The rule that is easiest to break: a purge is noted for the disk under the lock that gives it
//! its number, before anything in memory is struck.

use std::sync::Arc;

use crate::disk::journal::Echo;
use crate::disk::{Filed, Target};
use crate::key::{Key, KeyBuilder, NamespaceId, Session};
use crate::object::{Kind, Object};
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
                self.carry_out(namespace, scope, Target::TagsFrom(prefix), how, Echo::First)
            }
            _ => self.carry_out(namespace, scope, Target::Tag(tag), how, Echo::First),
        }
    }

    /// Purges what `target` says, first or after another process.
    pub(crate) fn carry_out(
        &self,
        namespace: NamespaceId,
        scope: Scope<'_>,
        target: Target<'_>,
        how: Purge,
        echo: Echo,
    ) -> u64 {
        let note = |number| self.purge_shelf(namespace, scope, (target, how), echo, number);
        match (target, scope) {
            (Target::Tag(tag), _) => self.tags.purge(namespace, scope, tag, how, note),
            (Target::TagsFrom(start), _) => {
                self.tags.purge_prefix(namespace, scope, start, how, note)
            }
            (Target::Url(url), _) => {
                let mut keys = KeyBuilder::default();
                keys.start(namespace);
                keys.push_url(url);
                match scope {
                    Scope::Public => self.purge_copies(&keys.public(), how, note),
                    Scope::Session(session) => self.purge_copies(&keys.private(session), how, note),
                }
            }
            (Target::UrlsFrom(start), _) => self.purge_urls(namespace, start, how, note),
            (Target::All, Scope::Public) => {
                self.tags.purge_root(namespace, &Root::Public, how, note)
            }
            (Target::All, Scope::Session(session)) => {
                self.tags.purge_root(namespace, &Root::Session(session), how, note)
            }
            (Target::Private, _) => self.tags.purge_root(namespace, &Root::Private, how, note),
            (Target::Everything, _) => [Target::All, Target::Private]
                .map(|target| self.carry_out(namespace, Scope::Public, target, how, echo))
                .iter()
                .sum(),
        }
    }

    /// Purges all public objects of a namespace.
    pub fn purge_all(&self, namespace: NamespaceId, how: Purge) -> u64 {
        self.carry_out(namespace, Scope::Public, Target::All, how, Echo::First)
    }

    /// Purges the private objects of one session, or of all.
    pub fn purge_private(
        &self,
        namespace: NamespaceId,
        session: Option<Session<'_>>,
        how: Purge,
    ) -> u64 {
        let (scope, target) = match session {
            Some(session) => (Scope::Session(session), Target::All),
            None => (Scope::Public, Target::Private),
        };
        self.carry_out(namespace, scope, target, how, Echo::First)
    }

    /// Purges all vary copies of a URL, in the public space or in the session of `key`, and what is
    /// known about how it varies.
    pub fn purge_url(&self, key: &Key<'_>, how: Purge) -> u64 {
        let scope = key.session.map_or(Scope::Public, Scope::Session);
        let what = (Target::Url(key.url()), how);
        self.purge_copies(key, how, |number| {
            self.purge_shelf(key.namespace, scope, what, Echo::First, number);
        })
    }

    /// The same; counts only what it hits in memory.
    pub fn strike_url(&self, key: &Key<'_>, how: Purge) -> u64 {
        let scope = key.session.map_or(Scope::Public, Scope::Session);
        let what = (Target::Url(key.url()), how);
        let note = |number| self.purge_shelf(key.namespace, scope, what, Echo::First, number);
        let filed = self.copies_on_disk(key).filter(|_| how == Purge::Dead);
        let (hit, _) = self.purge_url_in_memory(key, how, note);
        filed.iter().for_each(Filed::doom);
        hit
    }

    /// What is struck in memory and what only lies on disk, each copy counted once.
    fn purge_copies(&self, key: &Key<'_>, how: Purge, note: impl FnOnce(u64)) -> u64 {
        let filed = self.copies_on_disk(key);
        let (hit, struck) = self.purge_url_in_memory(key, how, note);
        let Some(filed) = filed else { return hit };
        if how == Purge::Dead {
            filed.doom();
        }
        hit + filed.beside(&struck)
    }

    /// How many answers it hit, and all that was struck, what the URL varies by included.
    fn purge_url_in_memory(
        &self,
        key: &Key<'_>,
        how: Purge,
        note: impl FnOnce(u64),
    ) -> (u64, Vec<Arc<Object>>) {
        let mut struck = Vec::new();
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
                    Purge::Dead => struck.push(shard.take(place)),
                    Purge::Stale => object.into_iter().for_each(|object| {
                        object.soften();
                        struck.push(Arc::clone(object));
                    }),
                }
            }
            hit
        });
        if how == Purge::Dead {
            struck.iter().for_each(|object| self.let_go(object));
        }
        (hit, struck)
    }

    /// Purges every public URL of a namespace that begins with `start`; looks at all of them.
    pub fn purge_urls_from(&self, namespace: NamespaceId, start: &[u8], how: Purge) -> u64 {
        self.carry_out(namespace, Scope::Public, Target::UrlsFrom(start), how, Echo::First)
    }

    fn purge_urls(
        &self,
        namespace: NamespaceId,
        start: &[u8],
        how: Purge,
        note: impl FnOnce(u64),
    ) -> u64 {
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
            hit += self.purge_url_in_memory(&keys.public(), how, |_| {}).0;
        }
        hit
    }
}
