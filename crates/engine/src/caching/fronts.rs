//! Trusted caches in front of this server.

use bolide_conf::model::PageCache;
use bolide_conf::model::cache::is_allowed;

use crate::connection::{ClientAddress, ConnInfo};

/// Whether the connection comes from a trusted cache in front of this server. The client of the
/// request does not count: `set_real_ip_from` determines that, and a client may be anywhere.
pub(crate) fn is_trusted(page: &PageCache, conn: &ConnInfo) -> bool {
    if page.trusted.is_empty() {
        return false;
    }
    conn.opener().is_some_and(|opener| is_allowed(&page.trusted, ip(opener)))
}

/// A client's address; none over a unix socket.
pub(super) fn ip(remote: ClientAddress) -> Option<std::net::IpAddr> {
    match remote {
        ClientAddress::Inet(addr) => Some(addr.ip()),
        ClientAddress::Unix => None,
    }
}
