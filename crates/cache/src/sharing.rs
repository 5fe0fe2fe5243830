//! Purges between the nodes of a cluster: what they hear of this one, and what it hears of them.

use crate::disk::journal::Echo;
use crate::disk::{DiskPurge, DiskPurgeTarget, repeat_in_namespace};
use crate::key::NamespaceId;
use crate::store::Store;
use crate::tags::{TagPurge, TagScope};

impl Store {
    /// Has other nodes carry out a purge, if there are any; here all stays. What is purged here as
    /// well is told under the lock that orders purges.
    pub fn tell_nodes(
        &self,
        namespace: NamespaceId,
        session: &[u8],
        target: DiskPurgeTarget<'_>,
        how: TagPurge,
    ) {
        if self.outbox.is_open()
            && let Some(namespace) = self.namespaces.name(namespace)
        {
            self.outbox.push(&DiskPurge { namespace, session, target, how, sequence: 0 });
        }
    }

    /// Repeats a purge of another node. It is not sent again. Returns whether this node has the
    /// namespace.
    pub fn repeat_from_cluster(&self, order: &DiskPurge<'_>) -> bool {
        match order.target {
            DiskPurgeTarget::Everything => {
                self.drop_everything();
                true
            }
            _ => repeat_in_namespace(self, order),
        }
    }

    /// Purges all objects of this node, in memory and on disk: purges of others are unknown.
    pub fn drop_everything(&self) {
        let (scope, target) = (TagScope::Public, DiskPurgeTarget::Everything);
        for namespace in self.namespaces.all() {
            self.carry_out(namespace, scope, target, TagPurge::Dead, Echo::Again);
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
        assert!(store.repeat_from_cluster(&order(b"page:a")));
        assert!(!store.repeat_from_cluster(&order(b"page:b")), "this node has no such part");
        store.drop_everything();
        assert_eq!(waiting(), 5);
        store.tell_nodes(site, b"", DiskPurgeTarget::Private, TagPurge::Dead);
        assert_eq!(waiting(), 6);
    }
}
