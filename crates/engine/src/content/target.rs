//! The server of an address with variables: a group, an address, or a name to look up.
//!
//! The order is nginx's: groups first, including those of other directives with a literal address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bolide_conf::PeerAddressText;
use bolide_conf::model::{PeerAddress, Protocol, Upstream, UpstreamId, UpstreamKind};
use bolide_upstream::{NameTarget, PassTarget};

use crate::site::{CompiledLocation, Site};

/// Why there is no server: the status, and a line for the error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoTarget {
    pub(crate) status: u16,
    pub(crate) line: Vec<u8>,
}

impl NoTarget {
    /// The address is invalid.
    pub(crate) fn invalid(why: &str, shown: &[u8]) -> Self {
        let line = [why.as_bytes(), b" \"", shown, b"\""].concat();
        Self { status: 500, line }
    }
}

/// The server that `text` names, in the form `HOST`, `HOST:PORT` or `unix:PATH`, with the default
/// port `usual`. Messages show it as `shown`. A pool of PHP is found only by a location that speaks
/// its protocol, so that no client names one in `proxy_pass http://$host`.
///
/// # Errors
///
/// It is invalid, has no port, or is a name that no `resolver` can look up.
pub(crate) fn find(
    text: &[u8],
    shown: &[u8],
    usual: Option<u16>,
    protocol: Protocol,
    location: &CompiledLocation,
    site: &Site,
) -> Result<PassTarget, NoTarget> {
    if text.is_empty() {
        return Err(NoTarget::invalid("no host in upstream", shown));
    }
    // A URI may follow the path of a socket; here it is empty.
    let is_socket = text.get(..5).is_some_and(|head| head.eq_ignore_ascii_case(b"unix:"));
    let text = if is_socket { text.strip_suffix(b":").unwrap_or(text) } else { text };
    let cut = bolide_conf::cut_address(text)
        .map_err(|why| NoTarget::invalid(&format!("{why} in upstream"), shown))?;
    let (host, port) = match cut {
        PeerAddressText::Unix(path) => return Ok(PassTarget::Address(PeerAddress::Unix(path))),
        PeerAddressText::Inet { host, port } => (host, port),
    };
    let groups = site.http().map_or(&[][..], |http| &http.upstreams);
    let fits = |group: &Upstream| is_group(group, &host, port, usual, protocol);
    if let Some(index) = groups.iter().position(fits) {
        return Ok(PassTarget::Group(UpstreamId(index as u32)));
    }
    let Some(port) = port.or(usual) else {
        return Err(NoTarget::invalid("no port in upstream", host.as_bytes()));
    };
    if let Some(ip) = literal(&host) {
        return Ok(PassTarget::Address(PeerAddress::Inet(SocketAddr::new(ip, port))));
    }
    let settings = &location.settings;
    let Some(servers) = settings.resolver.clone() else {
        let line = [b"no resolver defined to resolve ", host.as_bytes()].concat();
        return Err(NoTarget { status: 502, line });
    };
    let (host, timeout) = (host.into_bytes().into(), settings.resolver_timeout);
    Ok(PassTarget::Name(Box::new(NameTarget { host, port, servers, timeout })))
}

/// Whether `group` is meant: an `upstream` block by its name without a port, or the address of
/// another directive by the same host and port.
fn is_group(
    group: &Upstream,
    host: &str,
    port: Option<u16>,
    usual: Option<u16>,
    protocol: Protocol,
) -> bool {
    let is_named = port.is_none() && group.name.eq_ignore_ascii_case(host);
    match group.kind {
        UpstreamKind::Block => is_named,
        UpstreamKind::Pool(_) => {
            is_named && matches!(protocol, Protocol::FastCgi | Protocol::Lsapi)
        }
        UpstreamKind::Address => {
            let first = group.servers.first().and_then(|server| server.addresses.first());
            let Some(PeerAddress::Inet(first)) = first else { return false };
            let Ok(PeerAddressText::Inet { host: known, .. }) =
                bolide_conf::cut_address(group.name.as_bytes())
            else {
                return false;
            };
            known.eq_ignore_ascii_case(host) && port.or(usual) == Some(first.port())
        }
    }
}

/// The address of a numeric host; none for a name.
fn literal(host: &str) -> Option<IpAddr> {
    if let Some(text) = host.strip_prefix('[') {
        return text.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    host.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}
