//! Purges between the nodes of a cluster: sending those of this node, and repeating those of
//! others.

use crate::disk::journal::Echo;
use crate::disk::{DiskPurge, DiskPurgeTarget, repeat_in_namespace};
use crate::key::NamespaceId;
use crate::shared::StreamPlace;
use crate::store::Store;
use crate::tags::{TagPurge, TagScope};

/// The store as one node of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a>(&'a Store);

impl Store {
    /// The operations of a node.
    #[must_use]
    pub const fn nodes(&self) -> Nodes<'_> {
        Nodes(self)
    }

    /// Purges all objects of this node, in memory and on disk, because purges of others were lost.
    pub fn drop_everything(&self) {
        let (scope, target) = (TagScope::Public, DiskPurgeTarget::Everything);
        for namespace in self.namespaces.all() {
            self.carry_out(namespace, scope, target, TagPurge::Dead, Echo::OfNode);
        }
    }
}

impl Nodes<'_> {
    /// Has the other nodes carry out a purge. Objects in this store remain, but objects that other
    /// nodes share are checked against it.
    pub fn send_purge(
        self,
        namespace: NamespaceId,
        session: &[u8],
        target: DiskPurgeTarget<'_>,
        how: TagPurge,
    ) {
        if self.0.outbox.is_open() {
            let what = (target, how);
            self.0.tags.purge_by(|sequence| {
                self.note(namespace, session, what, Echo::First, sequence);
                0
            });
        }
    }

    /// Records a purge for sending, and for checks of shared objects. The caller holds the lock
    /// that numbers purges.
    pub(crate) fn note(
        self,
        namespace: NamespaceId,
        session: &[u8],
        (target, how): (DiskPurgeTarget<'_>, TagPurge),
        echo: Echo,
        sequence: u64,
    ) {
        let Store { outbox, sharing, namespaces, .. } = self.0;
        if !outbox.is_open() {
            return;
        }
        let Some(namespace) = namespaces.name(namespace) else { return };
        debug_assert!(sequence > 0, "purges are numbered from one");
        let order = DiskPurge { namespace, session, target, how, sequence };
        match echo {
            Echo::First if sharing.is_open() => {
                // It is recorded before its entry can be received from the stream.
                sharing.record_purge(&order, || Some(outbox.push(&order)));
            }
            Echo::First => {
                let _number = outbox.push(&order);
            }
            Echo::Again => self.record_repeat(&order),
            Echo::OfNode if sharing.is_open() => sharing.record_purge(&order, || None),
            Echo::OfNode => {}
        }
    }

    /// Records a purge of another process with the same disk, for checks of shared objects. That
    /// process sends it; its place in the stream is not known here, so it counts until the next
    /// purge of this node has been received.
    pub(crate) fn record_repeat(self, order: &DiskPurge<'_>) {
        if self.0.sharing.is_open() {
            self.0.sharing.record_purge(order, || Some(self.0.outbox.counts().last + 1));
        }
    }

    /// The purges of an entry of the stream have been carried out. One of another node came after
    /// the purge number `before`; purges of this node up to `confirmed` have been received.
    pub fn record_entry(self, place: StreamPlace, before: Option<u64>, confirmed: u64) {
        let Store { sharing, tags, .. } = self.0;
        if !sharing.is_open() {
            return;
        }
        if before == Some(tags.generation()) {
            // Fills from before it have a smaller number than later ones.
            tags.purge_by(|_| 0);
        }
        let now = tags.generation();
        debug_assert!(before.is_none_or(|before| before < now), "numbers only grow");
        sharing.record_entry(place, (before, now), confirmed);
    }

    /// Records a purge for checks of shared objects, whatever its effect here: this process or the
    /// namespace may be newer.
    pub fn record_past_purge(self, order: &DiskPurge<'_>) {
        let Store { sharing, tags, .. } = self.0;
        if sharing.is_open() {
            tags.purge_by(|sequence| {
                sharing.record_purge(&DiskPurge { sequence, ..*order }, || None);
                0
            });
        }
    }

    /// Repeats a purge of another node, without sending it. Returns whether this node has the
    /// namespace.
    pub fn repeat(self, order: &DiskPurge<'_>) -> bool {
        match order.target {
            DiskPurgeTarget::Everything => {
                self.0.drop_everything();
                // The namespace may be created later, and others share its objects.
                self.record_past_purge(order);
                true
            }
            _ => {
                let is_here = repeat_in_namespace(self.0, order, Echo::OfNode);
                if !is_here {
                    // The namespace may be created later, and others share its objects.
                    self.record_past_purge(order);
                }
                is_here
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::{DiskPurge, DiskPurgeTarget};
    use crate::store::{Store, StoreLimits};
    use crate::tags::{TagPurge, TagScope};

    #[test]
    fn what_is_purged_here_first_is_told_and_what_is_repeated_is_not() {
        let store = Store::new(StoreLimits::default(), 7);
        let site = store.namespace(b"page:a");
        let waiting = || store.outbox().counts().waiting;
        store.purge_tag(site, TagScope::Public, b"tag", TagPurge::Dead);
        assert_eq!(waiting(), 0, "there is no cluster");
        store.outbox().open(100);
        store.purge_tag(site, TagScope::Public, b"tag", TagPurge::Dead);
        store.purge_tag(site, TagScope::Public, b"ta*", TagPurge::Stale);
        store.purge_all(site, TagPurge::Dead);
        store.purge_private(site, None, TagPurge::Dead);
        store.purge_urls_from(site, b"/a", TagPurge::Dead);
        assert_eq!(waiting(), 5);
        let (session, target) = (&b""[..], DiskPurgeTarget::Tag(b"tag"));
        let order =
            |namespace| DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence: 1 };
        assert!(store.nodes().repeat(&order(b"page:a")));
        assert!(!store.nodes().repeat(&order(b"page:b")), "this node has no such part");
        store.drop_everything();
        assert_eq!(waiting(), 5);
        store.nodes().send_purge(site, b"", DiskPurgeTarget::Private, TagPurge::Dead);
        assert_eq!(waiting(), 6);
    }
}
