//! Caches in front of this one, as far as they are trusted.

use bolide_conf::model::PageCache;
use bolide_conf::model::cache::is_allowed;

use crate::connection::{ClientAddress, ConnInfo};

/// Whether a cache in front of this one holds the connection, which is trusted. The client
/// behind it is of no account: `set_real_ip_from` names that one, and a client may be anywhere.
pub(crate) fn is_trusted(page: &PageCache, conn: &ConnInfo) -> bool {
    if page.trusted.is_empty() {
        return false;
    }
    is_allowed(&page.trusted, ip(conn.remote))
}

/// A client's address; none over a unix socket.
pub(super) fn ip(remote: ClientAddress) -> Option<std::net::IpAddr> {
    match remote {
        ClientAddress::Inet(addr) => Some(addr.ip().to_canonical()),
        ClientAddress::Unix => None,
    }
}
