//! Purges of what others have deleted from a tree: administrators, and plugins of applications.
//!
//! The name of a deleted file says which URL it was for, but not that URL: the objects in memory
//! are compared with it. Nothing is kept for this per object, and hits do nothing for it.

use std::sync::Arc;

use crate::disk::journal::Echo;
use crate::disk::{
    DiskPurgeTarget, DiskTree, file_hash, first_of, has_same_owner, shared_bits, url_bits,
};
use crate::key::{KeyBuilder, NamespaceId, SessionKey};
use crate::store::Store;
use crate::tags::{TagPurge, TagScope, lock};

/// Index slots in memory that are compared under one lock.
const COMPARED: u32 = 128;
/// Index entries that are listed at once.
const LISTED: usize = 4096;

/// Deleted files, sorted.
struct Removed<'a>(&'a [u128]);

/// The URL of a page, and its session.
type Address = (NamespaceId, Box<[u8]>, Option<Box<[u8]>>);

impl Removed<'_> {
    /// Whether one of them is of the same URL and owner as `hash`.
    fn has_kin(&self, name: &[u8], hash: u128) -> bool {
        self.of_url(shared_bits(hash)).any(|other| has_same_owner(name, other, hash))
    }

    fn of_url(&self, bits: u64) -> impl Iterator<Item = u128> {
        let from = self.0.partition_point(|hash| *hash < first_of(bits));
        self.0[from..].iter().copied().take_while(move |hash| shared_bits(*hash) == bits)
    }

    /// Whether one of them is of this URL and owner.
    fn is_of(&self, name: &[u8], url: &[u8], session: Option<SessionKey<'_>>) -> bool {
        if self.of_url(url_bits(name, url)).next().is_none() {
            return false;
        }
        let session = session.map_or(&b""[..], |session| session.text());
        self.has_kin(name, file_hash(name, url, b"", session))
    }
}

/// Purges the pages of `removed` files, each with all of its variants, in memory and in progress.
/// Returns the files of other variants, which the caller removes.
pub fn purge_removed(store: &Store, tree: &Arc<DiskTree>, removed: &mut Vec<u128>) -> Vec<u128> {
    removed.sort_unstable();
    removed.dedup();
    let removed = Removed(removed);
    let namespaces = store.namespaces.of_tree(tree);
    let mut keys = KeyBuilder::default();
    for (namespace, url, session) in addresses_of(store, &namespaces, &removed) {
        keys.start(namespace);
        keys.push_url(&url);
        let session = session.as_deref().and_then(SessionKey::new);
        let key = session.map_or_else(|| keys.public(), |session| keys.private(session));
        let scope = session.map_or(TagScope::Public, TagScope::Session);
        let what = (DiskPurgeTarget::Url(&url), TagPurge::Dead);
        let before = store.generation();
        let note = |number| store.record_purge(namespace, scope, what, Echo::First, number);
        let _ = store.purge_url_in_memory(&key, TagPurge::Dead, note);
        debug_assert!(store.generation() > before, "fills in progress are older than the purge");
    }
    // The namespaces of a tree are those of pages, or one zone's.
    let Some((_, name)) = namespaces.first() else { return Vec::new() };
    let (mut kin, mut listed, mut next) = (Vec::new(), Vec::new(), Some((0, 0)));
    while let Some(at) = next {
        listed.clear();
        next = tree.list(at, LISTED, &mut listed);
        kin.extend(listed.iter().filter(|hash| removed.has_kin(name, **hash)));
    }
    kin
}

/// Purges everything in a tree that others have emptied.
pub fn purge_emptied(store: &Store, tree: &Arc<DiskTree>) {
    let before = store.generation();
    store.purge_tree(tree, Echo::First);
    debug_assert!(store.generation() > before, "every file is older than the purge");
}

/// The pages in memory and in progress that have a removed file.
fn addresses_of(
    store: &Store,
    namespaces: &[(NamespaceId, Box<[u8]>)],
    removed: &Removed<'_>,
) -> Vec<Address> {
    debug_assert!(removed.0.is_sorted(), "a part of them is found by halving");
    let mut found: Vec<Address> = Vec::new();
    let mut compare = |namespace, url: &[u8], session: Option<SessionKey<'_>>| {
        let known = namespaces.iter().find(|(own, _)| *own == namespace);
        if known.is_some_and(|(_, name)| removed.is_of(name, url, session)) {
            found.push((namespace, url.into(), session.map(|one| one.text().into())));
        }
    };
    for shard in store.index.shards() {
        for growing in lock(shard).fills.iter() {
            let key = growing.key.key();
            compare(key.namespace, key.url(), key.session);
        }
        let mut place = 0;
        loop {
            let shard = lock(shard);
            let places = shard.places() as u32;
            let end = places.min(place + COMPARED);
            for object in (place..end).filter_map(|place| shard.at(place)) {
                compare(object.namespace(), object.url(), object.session());
            }
            if end == places {
                break;
            }
            place = end;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
