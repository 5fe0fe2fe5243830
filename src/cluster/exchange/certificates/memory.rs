//! State that survives connections: leases that may belong to this server, and replaced records
//! with unknown keys; and the first keys of servers, for all records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use bolide_acme::OrderId;
use bolide_cluster::{Vault, VaultKeyId};

/// LIMIT: replaced records with unknown keys; beyond that none are replaced.
const REPLACED_MAX: usize = 4096;
/// Bytes of a record with its version and key id.
const KEY: usize = 16;

/// The state that the connections of one thread share.
#[derive(Debug)]
pub(in crate::cluster::exchange) struct ShareMemory {
    /// A random id of the thread: the prefix of its tokens, and the name of its challenges.
    pub(super) life: u64,
    inner: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    numbers: u64,
    /// Tokens of leases. After a broken connection a lease is taken or released with the same
    /// token.
    leases: BTreeMap<OrderId, String>,
    /// Orders and unknown keys of their records.
    replaced: BTreeSet<(OrderId, Vec<u8>)>,
    /// The expiry of certificates that are too large to be shared.
    too_large: BTreeMap<OrderId, u64>,
    /// The first keys of the present servers, as far as this connection knows them.
    firsts: Option<Vec<VaultKeyId>>,
}

impl ShareMemory {
    pub(in crate::cluster::exchange) fn new() -> Self {
        Self { life: bolide_tls::random_seed(), inner: Mutex::default() }
    }

    fn with<T>(&self, what: impl FnOnce(&mut Memory) -> T) -> T {
        what(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the first keys of the present servers; none if they are not known any more.
    pub(super) fn record_firsts(&self, firsts: Option<&[VaultKeyId]>) {
        self.with(|memory| memory.firsts = firsts.map(<[_]>::to_vec));
    }

    /// Whether a record that is good is to be encrypted with the first key.
    pub(in crate::cluster::exchange) fn seals_anew(&self, vault: &Vault, record: &[u8]) -> bool {
        self.with(|memory| {
            let firsts = memory.firsts.as_deref();
            firsts.is_some_and(|firsts| vault.is_to_be_sealed_anew(record, firsts))
        })
    }

    /// The token of an order's lease.
    pub(super) fn token(&self, order: &OrderId) -> String {
        self.with(|memory| {
            memory.numbers += 1;
            let new = || format!("{:016x}-{:x}", self.life, memory.numbers);
            memory.leases.entry(order.clone()).or_insert_with(new).clone()
        })
    }

    /// Whether the lease of an order belongs to this server, or may.
    pub(super) fn has(&self, order: &OrderId) -> bool {
        self.with(|memory| memory.leases.contains_key(order))
    }

    /// The lease of an order does not belong to this server.
    pub(super) fn forget(&self, order: &OrderId) {
        self.with(|memory| drop(memory.leases.remove(order)));
    }

    /// All leases that may belong to this server, with their tokens.
    pub(super) fn leases(&self) -> BTreeMap<OrderId, String> {
        self.with(|memory| memory.leases.clone())
    }

    /// Whether the certificate with this expiry is too large to be shared, and this is reported for
    /// the first time.
    pub(super) fn is_first_too_large(&self, order: &OrderId, end: u64) -> bool {
        self.with(|memory| memory.too_large.insert(order.clone(), end) != Some(end))
    }

    /// Whether a record with an unknown key may be replaced: once for each key.
    pub(super) fn replaces(&self, order: &OrderId, record: &[u8]) -> bool {
        let key = record[..record.len().min(KEY)].to_vec();
        self.with(|memory| {
            memory.replaced.len() < REPLACED_MAX && memory.replaced.insert((order.clone(), key))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{OrderId, ShareMemory};

    #[test]
    fn a_strange_record_is_replaced_once_for_each_key() {
        let (memory, order) = (ShareMemory::new(), OrderId("a".to_owned()));
        let record = |key: u8, rest: &str| [&[key; 16][..], rest.as_bytes()].concat();
        assert!(memory.replaces(&order, &record(1, "x")));
        assert!(!memory.replaces(&order, &record(1, "another one")));
        assert!(memory.replaces(&order, &record(2, "x")));
        assert!(memory.replaces(&OrderId("b".to_owned()), &record(1, "x")));
        let token = memory.token(&order);
        assert_eq!(memory.token(&order), token, "it may be there although no answer came");
        memory.forget(&order);
        assert_ne!(memory.token(&order), token);
    }
}
