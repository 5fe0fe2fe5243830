//! What distinguishes servers in keys: their names, and their addresses where names are not enough.
//!
//! Easiest to break: an intranet and a public site often have one name, one port and no files.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_cache::NamespaceId;
use bolide_conf::model::{Http, ListenAddress, ListenTransport};
use bolide_http::message::Scheme;

/// One way to reach a site: what its URLs begin with in keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlOrigin {
    pub(crate) scheme: Scheme,
    pub(crate) port: u16,
    /// The name of the server in keys.
    pub(crate) server: Arc<str>,
}

/// The port of a socket; unix sockets have none.
fn port_of(address: &ListenAddress) -> u16 {
    match address {
        ListenAddress::Inet(address) => address.port(),
        ListenAddress::Unix(_) => 0,
    }
}

/// The addresses of each server, in order.
fn addresses(http: &Http) -> Vec<Vec<&ListenAddress>> {
    let mut all = vec![Vec::new(); http.servers.len()];
    for listen in http.listens.iter().filter(|listen| listen.transport == ListenTransport::Tcp) {
        for id in &listen.servers {
            all[id.index()].push(&listen.address);
        }
    }
    for addresses in &mut all {
        addresses.sort_unstable();
        addresses.dedup();
    }
    all
}

/// A text for the addresses of a server.
fn text_of(addresses: &[&ListenAddress]) -> String {
    let all = addresses.iter().map(|address| match address {
        ListenAddress::Inet(address) => address.to_string(),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    });
    format!("@{}", all.collect::<Vec<_>>().join(","))
}

/// A text for the addresses of each server, whatever the order of blocks and directives.
pub(super) fn address_texts(http: &Http) -> Vec<String> {
    addresses(http).iter().map(|one| text_of(one)).collect()
}

/// The name of each server in keys: its first name, and its addresses as well where another server
/// of the same namespace has that name and the same port at other addresses.
pub(super) fn names_in_keys(http: &Http, namespaces: &[NamespaceId]) -> Vec<Arc<str>> {
    debug_assert_eq!(namespaces.len(), http.servers.len(), "each server has a namespace");
    let places = addresses(http);
    let mut by_namespace: HashMap<NamespaceId, Vec<usize>> = HashMap::new();
    for (at, id) in namespaces.iter().enumerate() {
        by_namespace.entry(*id).or_default().push(at);
    }
    let is_alike = |one: usize, other: usize| {
        let has_port = |port| places[other].iter().any(|address| port_of(address) == port);
        http.servers[one].primary_name == http.servers[other].primary_name
            && places[one] != places[other]
            && places[one].iter().any(|address| has_port(port_of(address)))
    };
    let names = http.servers.iter().enumerate().map(|(at, server)| {
        let name = &server.primary_name;
        match by_namespace[&namespaces[at]].iter().any(|other| is_alike(at, *other)) {
            true => format!("{name}{}", text_of(&places[at])).into(),
            false => name.clone(),
        }
    });
    names.collect()
}

/// All ways to reach the pages of each namespace.
pub(super) fn origins(
    http: &Http,
    namespaces: &[NamespaceId],
    names: &[Arc<str>],
) -> HashMap<NamespaceId, Vec<UrlOrigin>> {
    let mut all: HashMap<NamespaceId, Vec<UrlOrigin>> = HashMap::new();
    for listen in &http.listens {
        for id in &listen.servers {
            let at = id.index();
            let scheme = if listen.tls { Scheme::Https } else { Scheme::Http };
            let (port, server) = (port_of(&listen.address), names[at].clone());
            let origin = UrlOrigin { scheme, port, server };
            let known = all.entry(namespaces[at]).or_default();
            if !known.contains(&origin) {
                known.push(origin);
            }
        }
    }
    all
}
