//! Which clients may purge the page cache.

use std::net::IpAddr;

use super::page::PageCache;
use crate::model::access::{AccessRule, AccessVerdict, Network, Who};

impl PageCache {
    /// Whether a client whose connection comes from `peer` may purge; `None` is a unix socket. A
    /// configured list is matched against the client's address. Without one, the client and its
    /// connection must both be of this machine, and no proxy may have forwarded the request
    /// (`forwarded`), since a local proxy makes every client look local.
    #[must_use]
    pub fn may_purge(
        &self,
        client: Option<IpAddr>,
        peer: Option<IpAddr>,
        forwarded: ForwardedByProxy,
    ) -> PurgeAccess {
        let rules = match &self.purge_allow {
            Some(rules) if is_allowed(rules, client) => return PurgeAccess::Allowed,
            Some(_) => return PurgeAccess::Denied,
            None => this_machine(),
        };
        match forwarded {
            _ if !is_allowed(&rules, client) || !is_allowed(&rules, peer) => PurgeAccess::Denied,
            ForwardedByProxy::Yes => PurgeAccess::UnknownClient,
            ForwardedByProxy::No => PurgeAccess::Allowed,
        }
    }
}

/// Whether a proxy forwarded a request: it has a field that proxies add, or its connection began
/// with a header of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedByProxy {
    /// One did.
    Yes,
    /// None is known.
    No,
}

/// The client of a `PURGE`, in terms of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeAccess {
    /// The client may purge.
    Allowed,
    /// The client may not purge.
    Denied,
    /// A proxy on this machine forwarded the request: the client is unknown.
    UnknownClient,
}

/// Clients on the local machine.
fn this_machine() -> [AccessRule; 3] {
    use std::net::{Ipv4Addr, Ipv6Addr};
    let v4 = Network::V4(Ipv4Addr::new(127, 0, 0, 0), Ipv4Addr::new(255, 0, 0, 0));
    let v6 = Network::V6(Ipv6Addr::LOCALHOST, Ipv6Addr::from_bits(u128::MAX));
    [Who::Network(v4), Who::Network(v6), Who::Unix]
        .map(|who| AccessRule { who, verdict: AccessVerdict::Allow })
}

/// Whether `rules` allow a client; `ip` is `None` over a unix socket. Without a match, no.
#[must_use]
pub fn is_allowed(rules: &[AccessRule], ip: Option<IpAddr>) -> bool {
    AccessRule::first_for(rules, ip).is_some_and(|rule| rule.verdict == AccessVerdict::Allow)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ForwardedByProxy, PurgeAccess, is_allowed, this_machine};
    use crate::model::cache::PageCache;

    #[test]
    fn only_the_local_machine_may_purge_by_default() {
        let mut page = PageCache::default();
        let ip = |text: &str| text.parse().ok();
        let may = |page: &PageCache, client, peer| {
            page.may_purge(client, peer, ForwardedByProxy::No) == PurgeAccess::Allowed
        };
        let from = |text: &str| may(&page, ip(text), ip(text));
        assert!(from("127.0.0.1") && from("127.8.0.1") && from("::1") && may(&page, None, None));
        assert!(!from("10.0.0.1") && !from("::2"));
        assert!(!may(&page, ip("127.0.0.1"), ip("10.0.0.1")));
        assert!(!may(&page, ip("10.0.0.1"), ip("127.0.0.1")));
        let behind =
            |page: &PageCache, client| page.may_purge(ip(client), None, ForwardedByProxy::Yes);
        assert_eq!(behind(&page, "127.0.0.1"), PurgeAccess::UnknownClient);
        assert_eq!(behind(&page, "10.0.0.1"), PurgeAccess::Denied);
        page.purge_allow = Some(Arc::default());
        assert!(!may(&page, None, None));
        page.purge_allow = Some(Arc::new(this_machine().to_vec()));
        assert_eq!(behind(&page, "127.0.0.1"), PurgeAccess::Allowed, "a configured list applies");
        assert!(!is_allowed(&[], None));
    }
}
