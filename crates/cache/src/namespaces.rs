//! The namespaces of a store: their names, limits, figures and disk trees.
//!
//! Owns what is charged to each. A namespace keeps its number and is never removed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use crate::disk::DiskTree;
use crate::key::NamespaceId;
use crate::segments::Segments;
use crate::stats::NamespaceStats;
use crate::tags::lock;

/// Bytes and objects of one namespace.
#[derive(Debug, Default)]
struct Account {
    bytes: AtomicU64,
    objects: AtomicU64,
    /// LIMIT: bytes; zero means only the limit of the store.
    limit: AtomicU64,
    /// Requests by [`crate::DecisionClass`].
    tally: [AtomicU64; 4],
    /// The name of the namespace.
    name: OnceLock<Box<[u8]>>,
    /// Its name says nothing to other nodes.
    is_of_this_node: AtomicBool,
    /// A response has said which query parameters are irrelevant.
    has_search: AtomicBool,
    /// The disk tree of its objects, if they survive the process.
    tree: RwLock<Option<Arc<DiskTree>>>,
}

/// The namespaces of a store.
#[derive(Debug)]
pub struct Namespaces {
    names: Mutex<HashMap<Vec<u8>, NamespaceId>>,
    accounts: Segments<Account>,
}

impl Namespaces {
    pub(crate) fn new() -> Self {
        Self { names: Mutex::default(), accounts: Segments::new(16) }
    }

    fn account(&self, namespace: NamespaceId) -> Option<&Account> {
        self.accounts.get(namespace.0 as usize)
    }

    fn make(&self, namespace: NamespaceId) -> Option<&Account> {
        self.accounts.make(namespace.0 as usize)
    }

    /// The namespace with this name, created on its first use.
    pub(crate) fn id(&self, name: &[u8]) -> NamespaceId {
        let mut names = lock(&self.names);
        let next = NamespaceId(names.len() as u32);
        let id = *names.entry(name.to_vec()).or_insert(next);
        if let Some(account) = self.make(id) {
            let own = account.name.get_or_init(|| name.into());
            assert!(**own == *name, "a number belongs to one name");
        }
        id
    }

    /// The namespace with this name, if it exists.
    pub(crate) fn known(&self, name: &[u8]) -> Option<NamespaceId> {
        lock(&self.names).get(name).copied()
    }

    pub(crate) fn all(&self) -> Vec<NamespaceId> {
        lock(&self.names).values().copied().collect()
    }

    /// The name of a namespace.
    #[must_use]
    pub fn name(&self, namespace: NamespaceId) -> Option<&[u8]> {
        self.account(namespace)?.name.get().map(|name| &**name)
    }

    /// Sets the disk tree of a namespace, or none.
    pub(crate) fn attach_tree(&self, namespace: NamespaceId, tree: Option<Arc<DiskTree>>) {
        if let Some(account) = self.make(namespace)
            && let Ok(mut place) = account.tree.write()
        {
            *place = tree;
        }
    }

    /// The disk tree of a namespace, and the namespace's name.
    pub(crate) fn tree_of(&self, namespace: NamespaceId) -> Option<(Arc<DiskTree>, Box<[u8]>)> {
        let account = self.account(namespace)?;
        let tree = account.tree.read().ok()?.clone()?;
        Some((tree, account.name.get()?.clone()))
    }

    /// The namespaces with this disk tree, and their names.
    pub(crate) fn of_tree(&self, tree: &Arc<DiskTree>) -> Vec<(NamespaceId, Box<[u8]>)> {
        let own = self.all().into_iter().filter_map(|namespace| {
            let (other, name) = self.tree_of(namespace)?;
            Arc::ptr_eq(&other, tree).then_some((namespace, name))
        });
        own.collect()
    }

    /// Whether a namespace has a disk tree.
    pub(crate) fn has_disk_tree(&self, namespace: NamespaceId) -> bool {
        let account = self.account(namespace);
        account.is_some_and(|account| account.tree.read().is_ok_and(|tree| tree.is_some()))
    }

    /// Its objects are not shared from now on: another node may have another site under its name.
    pub fn keep_here(&self, namespace: NamespaceId) {
        assert!(self.name(namespace).is_some(), "a namespace has a name");
        if let Some(account) = self.make(namespace) {
            account.is_of_this_node.store(true, Ordering::Relaxed);
        }
    }

    /// A response of this namespace has said which query parameters are irrelevant.
    pub fn mark_search(&self, namespace: NamespaceId) {
        if let Some(account) = self.make(namespace) {
            account.has_search.store(true, Ordering::Relaxed);
        }
    }

    /// Whether one has.
    #[must_use]
    pub fn has_search(&self, namespace: NamespaceId) -> bool {
        let account = self.account(namespace);
        account.is_some_and(|account| account.has_search.load(Ordering::Relaxed))
    }

    /// Whether nodes may share its objects.
    pub(crate) fn may_share(&self, namespace: NamespaceId) -> bool {
        let account = self.account(namespace);
        account.is_some_and(|account| !account.is_of_this_node.load(Ordering::Relaxed))
    }

    /// Limits the bytes of one namespace (`max_size`); 0 means only the limit of the store.
    pub fn set_limit(&self, namespace: NamespaceId, bytes: u64) {
        if let Some(account) = self.make(namespace) {
            account.limit.store(bytes, Ordering::Relaxed);
        }
    }

    /// Charges an object of `bytes` that enters the index.
    pub(crate) fn charge(&self, namespace: NamespaceId, bytes: u64) {
        if let Some(account) = self.make(namespace) {
            account.bytes.fetch_add(bytes, Ordering::Relaxed);
            account.objects.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Charges what an object in the index has grown by.
    pub(crate) fn enlarge(&self, namespace: NamespaceId, bytes: u64) {
        if let Some(account) = self.account(namespace) {
            account.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Takes the charge of an object back that has left the index.
    pub(crate) fn release(&self, namespace: NamespaceId, bytes: u64) {
        if let Some(account) = self.account(namespace) {
            let before = account.bytes.fetch_sub(bytes, Ordering::Relaxed);
            let objects = account.objects.fetch_sub(1, Ordering::Relaxed);
            assert!(before >= bytes && objects > 0, "an account has the sum of its objects");
        }
    }

    /// Whether a namespace exceeds its limit.
    pub(crate) fn is_over(&self, namespace: NamespaceId) -> bool {
        self.account(namespace).is_some_and(|account| {
            let limit = account.limit.load(Ordering::Relaxed);
            limit > 0 && account.bytes.load(Ordering::Relaxed) > limit
        })
    }

    /// Adds a worker's counts for a namespace.
    pub(crate) fn tally(&self, namespace: u32, counts: [u32; 4]) {
        let Some(account) = self.make(NamespaceId(namespace)) else { return };
        for (sum, count) in account.tally.iter().zip(counts) {
            sum.fetch_add(count.into(), Ordering::Relaxed);
        }
    }

    /// All namespaces with their figures, by name.
    #[must_use]
    pub fn stats(&self) -> Vec<NamespaceStats> {
        let names = lock(&self.names);
        let mut all: Vec<_> = names
            .iter()
            .map(|(name, &id)| {
                let account = self.account(id);
                let read = |of: fn(&Account) -> &AtomicU64| {
                    account.map_or(0, |account| of(account).load(Ordering::Relaxed))
                };
                NamespaceStats {
                    id,
                    name: name.clone(),
                    bytes: read(|a| &a.bytes),
                    objects: read(|a| &a.objects),
                    limit: read(|a| &a.limit),
                    hits: read(|a| &a.tally[0]),
                    stale: read(|a| &a.tally[1]),
                    misses: read(|a| &a.tally[2]),
                    passes: read(|a| &a.tally[3]),
                }
            })
            .collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }
}
