//! The ACME state that the servers of a cluster share: who orders, pending challenges,
//! certificates, and accounts at issuers.
//!
//! ```text
//!   acme thread ──claim, present, install──▶ this ◀──looks, answers── exchange thread ◀──▶ Valkey
//! ```
//!
//! Nothing here waits. Without a `secrets_key`, or without Valkey, each server orders for itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bolide_acme::certificate::life;
use bolide_acme::schedule::Validity;
use bolide_acme::{AccountName, Challenge, OrderClaim, OrderId, is_local};
use tokio::sync::Notify;
use zeroize::Zeroizing;

/// How long a challenge takes to reach all servers: they poll twice a second.
const SPREADING: Duration = Duration::from_secs(2);

/// The connection to other servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FleetState {
    /// Nothing is shared.
    #[default]
    Off,
    /// Not known yet.
    Joining,
    /// Valkey is connected.
    Joined,
    /// Valkey cannot be reached.
    Alone,
}

/// A certificate with its key, in PEM form.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FleetCertificate {
    pub(crate) validity: Validity,
    pub(crate) chain: Vec<u8>,
    pub(crate) key: Zeroizing<String>,
}

impl FleetCertificate {
    /// None if they are unreadable, or from an authority of one server: that may help out when the
    /// issuer fails, and only clients of that server trust it.
    pub(crate) fn of(chain: &[u8], key: &[u8]) -> Option<Self> {
        if is_local(chain) {
            return None;
        }
        let key = Zeroizing::new(std::str::from_utf8(key).ok()?.to_owned());
        Some(Self { validity: life(chain)?, chain: chain.to_vec(), key })
    }
}

impl std::fmt::Debug for FleetCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetCertificate").field("validity", &self.validity).finish_non_exhaustive()
    }
}

/// The result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claimed {
    Asked,
    Mine,
    Elsewhere,
}

/// The credentials of an account, with its key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FleetAccount(pub(crate) Zeroizing<Vec<u8>>);

impl FleetAccount {
    fn of(credentials: &[u8]) -> Self {
        Self(Zeroizing::new(credentials.to_vec()))
    }
}

impl std::fmt::Debug for FleetAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetAccount").finish_non_exhaustive()
    }
}

/// The known credentials of an account.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownAccount {
    /// Those that all servers share.
    pub(crate) common: Option<FleetAccount>,
    /// Those in use here.
    pub(crate) own: Option<FleetAccount>,
    /// Invalid ones: the key was changed, or the issuer does not know the account.
    pub(crate) over: Option<FleetAccount>,
}

impl KnownAccount {
    /// The shared credentials, if they are valid.
    fn good(&self) -> Option<&FleetAccount> {
        self.common.as_ref().filter(|common| Some(*common) != self.over.as_ref())
    }
}

#[derive(Debug, Default)]
struct Fleet {
    state: FleetState,
    claims: HashMap<OrderId, Claimed>,
    /// Orders whose attempts have ended.
    ended: BTreeSet<OrderId>,
    challenges: Vec<Challenge>,
    /// Shared orders, with their accounts.
    wanted: BTreeMap<OrderId, Option<AccountName>>,
    certificates: BTreeMap<OrderId, Arc<FleetCertificate>>,
    accounts: BTreeMap<AccountName, KnownAccount>,
}

/// The state that both threads access.
#[derive(Debug, Default)]
pub(crate) struct AcmeFleet {
    fleet: Mutex<Fleet>,
    /// Wakes the exchange thread, because there is something to publish to other servers.
    pub(crate) bell: Notify,
}

impl AcmeFleet {
    fn fleet(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the ordering thread: whether it may order.
    pub(crate) fn claim(&self, order: &OrderId) -> OrderClaim {
        let mut fleet = self.fleet();
        match fleet.state {
            FleetState::Off | FleetState::Alone => return OrderClaim::Mine,
            FleetState::Joining => return OrderClaim::Asked,
            FleetState::Joined if !fleet.wanted.contains_key(order) => return OrderClaim::Mine,
            FleetState::Joined => {}
        }
        match fleet.claims.get(order).copied() {
            Some(Claimed::Mine) => OrderClaim::Mine,
            Some(Claimed::Asked) => OrderClaim::Asked,
            Some(Claimed::Elsewhere) => {
                fleet.claims.remove(order);
                OrderClaim::Elsewhere
            }
            None => {
                fleet.claims.insert(order.clone(), Claimed::Asked);
                self.bell.notify_one();
                OrderClaim::Asked
            }
        }
    }

    pub(crate) fn unclaim(&self, order: &OrderId) {
        let mut fleet = self.fleet();
        if fleet.claims.remove(order).is_some() {
            fleet.ended.insert(order.clone());
            self.bell.notify_one();
        }
    }

    pub(crate) fn present(&self, challenge: &Challenge) {
        self.fleet().challenges.push(challenge.clone());
        self.bell.notify_one();
    }

    pub(crate) fn withdraw(&self, challenge: &Challenge) {
        let mut fleet = self.fleet();
        // Another order may have the same one: an issuer may use one authorization for both.
        if let Some(own) = fleet.challenges.iter().position(|other| other == challenge) {
            fleet.challenges.remove(own);
        }
        drop(fleet);
        self.bell.notify_one();
    }

    pub(crate) fn spreading(&self) -> Duration {
        match self.fleet().state {
            FleetState::Joined => SPREADING,
            FleetState::Off | FleetState::Joining | FleetState::Alone => Duration::ZERO,
        }
    }

    /// Sets the shared orders, each with its account.
    pub(crate) fn want(&self, orders: impl Iterator<Item = (OrderId, Option<AccountName>)>) {
        let mut fleet = self.fleet();
        let fleet = &mut *fleet;
        fleet.wanted = orders.collect();
        let gone = fleet.claims.extract_if(|order, _| !fleet.wanted.contains_key(order));
        fleet.ended.extend(gone.map(|(order, _)| order));
        fleet.certificates.retain(|order, _| fleet.wanted.contains_key(order));
    }

    /// Adds a shared order.
    pub(crate) fn want_too(&self, order: &OrderId, account: Option<AccountName>) {
        self.fleet().wanted.insert(order.clone(), account);
    }

    /// Removes a shared order.
    pub(crate) fn want_no_more(&self, order: &OrderId) {
        let mut fleet = self.fleet();
        fleet.wanted.remove(order);
        fleet.certificates.remove(order);
        if fleet.claims.remove(order).is_some() {
            fleet.ended.insert(order.clone());
        }
    }

    /// Whether the certificate in use for this order is known.
    pub(crate) fn has_certificate(&self, order: &OrderId) -> bool {
        self.fleet().certificates.contains_key(order)
    }

    /// The shared credentials of an account, if they are valid.
    pub(crate) fn account(&self, name: &AccountName) -> Option<Vec<u8>> {
        let fleet = self.fleet();
        Some(fleet.accounts.get(name)?.good()?.0.to_vec())
    }

    /// Records that these credentials are in use here, in place of `before`.
    pub(crate) fn record_account(&self, name: &AccountName, now: &[u8], before: Option<&[u8]>) {
        let mut fleet = self.fleet();
        let known = fleet.accounts.entry(name.clone()).or_default();
        known.own = Some(FleetAccount::of(now));
        if let Some(before) = before.filter(|before| *before != now) {
            known.over = Some(FleetAccount::of(before));
        }
        drop(fleet);
        self.bell.notify_one();
    }

    /// Records that the issuer does not know these credentials.
    pub(crate) fn forget_account(&self, name: &AccountName, credentials: &[u8]) {
        let mut fleet = self.fleet();
        let known = fleet.accounts.entry(name.clone()).or_default();
        let over = Some(FleetAccount::of(credentials));
        if known.own == over {
            known.own = None;
        }
        known.over = over;
    }

    /// Sets the shared credentials of an account; none if there are none.
    pub(crate) fn set_common_account(&self, name: &AccountName, common: Option<FleetAccount>) {
        let mut fleet = self.fleet();
        let known = fleet.accounts.entry(name.clone()).or_default();
        let before = std::mem::replace(&mut known.common, common);
        // The servers that used it follow the change: it must not be reported again.
        if before.is_some() && before == known.own && known.good().is_some() {
            known.own = known.good().cloned();
        }
    }

    /// The accounts of shared orders, with their known credentials.
    pub(crate) fn accounts(&self) -> BTreeMap<AccountName, KnownAccount> {
        let fleet = self.fleet();
        let names: BTreeSet<&AccountName> = fleet.wanted.values().flatten().collect();
        let of = |name: &AccountName| fleet.accounts.get(name).cloned().unwrap_or_default();
        names.into_iter().map(|name| (name.clone(), of(name))).collect()
    }

    /// The account that has to be created before this order can begin, if there is one.
    pub(crate) fn missing_account(&self, order: &OrderId) -> Option<AccountName> {
        let fleet = self.fleet();
        let name = fleet.wanted.get(order)?.as_ref()?;
        let known = fleet.accounts.get(name);
        let is_there = known.is_some_and(|known| known.own.is_some() || known.good().is_some());
        (!is_there).then(|| name.clone())
    }

    /// The accounts of orders that this server has claimed or wants to claim.
    pub(crate) fn accounts_in_use(&self) -> BTreeSet<AccountName> {
        let fleet = self.fleet();
        let claims = fleet.claims.iter().filter(|(_, claimed)| **claimed != Claimed::Elsewhere);
        claims.filter_map(|(order, _)| fleet.wanted.get(order)?.clone()).collect()
    }

    /// Records that this certificate is in use here.
    pub(crate) fn record_certificate(&self, order: &OrderId, chain: &[u8], key: &[u8]) {
        let Some(made) = FleetCertificate::of(chain, key) else { return };
        let mut fleet = self.fleet();
        if fleet.wanted.contains_key(order) {
            fleet.certificates.insert(order.clone(), Arc::new(made));
            self.bell.notify_one();
        }
    }

    /// For the exchange thread: sets whether other servers are connected. Claims end with a
    /// connection.
    pub(crate) fn turn(&self, state: FleetState) {
        let mut fleet = self.fleet();
        if fleet.state != state {
            fleet.state = state;
            let fleet = &mut *fleet;
            // A pending claim may have been granted although the reply was lost.
            let gone = fleet.claims.extract_if(|_, claimed| *claimed != Claimed::Mine);
            fleet.ended.extend(gone.map(|(order, _)| order));
        }
    }

    /// The orders to claim.
    pub(crate) fn asked(&self) -> Vec<OrderId> {
        let fleet = self.fleet();
        let asked = fleet.claims.iter().filter(|(_, claimed)| **claimed == Claimed::Asked);
        asked.map(|(order, _)| order.clone()).collect()
    }

    /// The number of shared orders, and of those with a certificate here.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let fleet = self.fleet();
        (fleet.wanted.len(), fleet.certificates.len())
    }

    /// The certificate in use for an order.
    pub(crate) fn certificate(&self, order: &OrderId) -> Option<Arc<FleetCertificate>> {
        self.fleet().certificates.get(order).cloned()
    }

    /// Sets the result of a claim. Returns whether the claim still exists.
    #[must_use]
    pub(crate) fn answer(&self, order: &OrderId, is_mine: bool) -> bool {
        let mut fleet = self.fleet();
        let claimed = fleet.claims.get_mut(order);
        let is_there = claimed.is_some();
        if let Some(claimed) = claimed {
            *claimed = if is_mine { Claimed::Mine } else { Claimed::Elsewhere };
        }
        is_there
    }

    /// The orders whose claims have to be released.
    pub(crate) fn ended(&self) -> BTreeSet<OrderId> {
        self.fleet().ended.clone()
    }

    /// The claim of an order was released.
    pub(crate) fn forget_ended(&self, order: &OrderId) {
        self.fleet().ended.remove(order);
    }

    /// The challenges of this server.
    pub(crate) fn challenges(&self) -> Vec<Challenge> {
        self.fleet().challenges.clone()
    }

    /// The shared orders, with the certificates in use here.
    pub(crate) fn orders(&self) -> Vec<(OrderId, Option<Arc<FleetCertificate>>)> {
        let fleet = self.fleet();
        let of = |order: &OrderId| (order.clone(), fleet.certificates.get(order).cloned());
        fleet.wanted.keys().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::read;

    use bolide_testkit::certs::{self, CertKey};
    use bolide_testkit::site::temp_dir;

    use super::life;
    use super::{AccountName, AcmeFleet, FleetAccount, FleetState, OrderClaim, OrderId};

    fn order(name: &str) -> OrderId {
        OrderId(name.to_owned())
    }

    #[test]
    fn an_order_is_one_servers_where_there_are_several() {
        let (fleet, a) = (AcmeFleet::default(), order("a"));
        fleet.want([(a.clone(), None)].into_iter());
        assert_eq!(fleet.claim(&a), OrderClaim::Mine, "nothing is shared");
        fleet.turn(FleetState::Joining);
        assert_eq!(fleet.claim(&a), OrderClaim::Asked);
        assert!(fleet.asked().is_empty(), "no other server is connected yet");
        fleet.turn(FleetState::Joined);
        assert_eq!(fleet.claim(&order("not shared")), OrderClaim::Mine);
        assert_eq!(fleet.claim(&a), OrderClaim::Asked);
        assert_eq!(fleet.asked(), std::slice::from_ref(&a));
        assert!(fleet.answer(&a, false));
        assert_eq!(fleet.claim(&a), OrderClaim::Elsewhere);
        assert_eq!(fleet.claim(&a), OrderClaim::Asked, "it is asked again");
        assert!(fleet.answer(&a, true));
        assert_eq!((fleet.claim(&a), fleet.claim(&a)), (OrderClaim::Mine, OrderClaim::Mine));
        assert!(fleet.asked().is_empty() && fleet.ended().is_empty());
        fleet.unclaim(&a);
        assert_eq!(fleet.ended().len(), 1);
        fleet.forget_ended(&a);
        assert!(!fleet.answer(&a, true), "it was withdrawn meanwhile");
        assert_eq!(fleet.claim(&a), OrderClaim::Asked);
        fleet.turn(FleetState::Alone);
        assert_eq!(fleet.claim(&a), OrderClaim::Mine, "without Valkey it orders for itself");
        assert_eq!(fleet.ended().len(), 1, "it may have been given a lease without an answer");
    }

    #[test]
    fn an_account_is_that_of_all_servers_unless_it_is_over() {
        let (fleet, a) = (AcmeFleet::default(), order("a"));
        let name = AccountName("ca".to_owned());
        fleet.want([(a.clone(), Some(name.clone()))].into_iter());
        assert_eq!(fleet.missing_account(&a).as_ref(), Some(&name));
        fleet.set_common_account(&name, Some(FleetAccount::of(b"one")));
        assert_eq!(fleet.account(&name).as_deref(), Some(&b"one"[..]));
        assert_eq!(fleet.missing_account(&a), None);
        // Its key is another one now; what Valkey has is the old one for a moment.
        fleet.record_account(&name, b"two", Some(b"one"));
        assert_eq!((fleet.account(&name), fleet.missing_account(&a)), (None, None));
        fleet.set_common_account(&name, Some(FleetAccount::of(b"two")));
        assert_eq!(fleet.account(&name).as_deref(), Some(&b"two"[..]));
        fleet.forget_account(&name, b"two");
        assert_eq!(fleet.missing_account(&a).as_ref(), Some(&name));
        assert!(!format!("{fleet:?}").contains("116"), "no credentials in a log");
        // A server that uses the shared account goes on with the next shared one, and does not
        // report the old one as its own.
        let own = || fleet.accounts()[&name].own.clone();
        fleet.set_common_account(&name, Some(FleetAccount::of(b"three")));
        fleet.record_account(&name, b"three", None);
        fleet.set_common_account(&name, Some(FleetAccount::of(b"four")));
        assert_eq!(own(), Some(FleetAccount::of(b"four")));
        fleet.forget_account(&name, b"three");
        fleet.set_common_account(&name, None);
        assert_eq!(own(), Some(FleetAccount::of(b"four")));
    }

    #[test]
    fn an_account_is_in_use_as_long_as_one_of_its_orders_is_claimed() {
        let (fleet, name) = (AcmeFleet::default(), AccountName("ca".to_owned()));
        let orders = ["a", "b", "c"].map(order);
        fleet.want(orders.iter().map(|order| (order.clone(), Some(name.clone()))));
        fleet.turn(FleetState::Joined);
        assert!(fleet.accounts_in_use().is_empty());
        orders.iter().for_each(|order| assert_eq!(fleet.claim(order), OrderClaim::Asked));
        assert!(fleet.answer(&orders[0], true) && fleet.answer(&orders[1], false));
        fleet.unclaim(&orders[2]);
        assert!(fleet.accounts_in_use().contains(&name), "the first one has it");
        fleet.unclaim(&orders[0]);
        assert!(fleet.accounts_in_use().is_empty());
    }

    #[test]
    fn only_certificates_of_shared_orders_are_published() {
        let (fleet, a, b) = (AcmeFleet::default(), order("a"), order("b"));
        fleet.want([(a.clone(), None)].into_iter());
        let cert = certs::make(&temp_dir(), "a", CertKey::Ecdsa, &["a.test"]);
        let (chain, key) = (read(&cert.cert).unwrap(), read(&cert.key).unwrap());
        fleet.record_certificate(&a, &chain, &key);
        fleet.record_certificate(&b, &chain, &key);
        let orders = fleet.orders();
        assert_eq!(orders.len(), 1);
        assert_eq!(orders[0].1.as_ref().map(|one| one.validity), life(&chain));
        assert!(!format!("{orders:?}").contains("PRIVATE"));
        // What an authority of this server signs stays here.
        let cert = certs::make(&temp_dir(), "b", CertKey::Ecdsa, &["Bolide local authority 1"]);
        fleet.record_certificate(&a, &read(&cert.cert).unwrap(), &read(&cert.key).unwrap());
        assert_eq!(fleet.orders()[0].1.as_ref().map(|one| &one.chain), Some(&chain));
        fleet.want([(b, None)].into_iter());
        assert_eq!(fleet.orders()[0].1, None);
    }
}
