//! `set_real_ip_from`, `real_ip_header`, `real_ip_recursive`: trusted proxies and the client's
//! address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::access::network;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, value};
use crate::model::{Network, RealIp, RealIpHeader, Who};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("set_real_ip_from", HSL, Args::ONE, set_real_ip_from)
        .doc(
            "A trusted proxy, whose `real_ip_header` is used: an address, a network, `unix:`, a \
             name.",
            "set_real_ip_from 192.0.2.0/24;",
        )
        .takes("ADDRESS | NETWORK | HOST | unix:")
        .without("none"),
    value("real_ip_header", HSL, Args::ONE, real_ip_header)
        .doc(
            "The field with the client's address, or `proxy_protocol`.",
            "real_ip_header X-Forwarded-For;",
        )
        .takes("NAME | proxy_protocol")
        .default("X-Real-IP"),
    flag("real_ip_recursive", HSL, |r| &mut real_ip(r).recursive).doc(
        "Whether the last address of the field that is not itself trusted is used.",
        "real_ip_recursive on;",
    ),
];

fn real_ip(r: &mut ConfReader) -> &mut RealIp {
    Arc::make_mut(&mut r.settings().real_ip)
}

fn set_real_ip_from(r: &mut ConfReader, node: &Node) -> ReadResult {
    let named = clients(r, node)?;
    let again = r.again;
    let from = &mut real_ip(r).from;
    if !again {
        from.clear();
    }
    from.extend(named);
    Ok(())
}

/// The clients that a directive's word names: `unix:`, a network, the addresses of a host.
pub(super) fn clients(r: &mut ConfReader, node: &Node) -> Result<Vec<Who>, ReadFault> {
    let word = node.arg(0);
    let mut named = Vec::new();
    if word == b"unix:" {
        named.push(Who::Unix);
    } else if let Some(read) = network(word) {
        if read.has_low_bits {
            r.warn(format!("low address bits of {} are meaningless", show(word)));
        }
        named.push(Who::Network(read.network));
    } else {
        let found = std::str::from_utf8(word).map_or_else(|_| Vec::new(), |name| r.addresses(name));
        named.extend(found.into_iter().map(|ip| Who::Network(alone(ip))));
    }
    if named.is_empty() {
        let (name, shown) = (show(node.name()), show(word));
        return Err(ReadFault::Text(format!("host not found in {name} \"{shown}\"")));
    }
    Ok(named)
}

/// The network of one address.
const fn alone(ip: IpAddr) -> Network {
    match ip {
        IpAddr::V4(ip) => Network::V4(ip, Ipv4Addr::BROADCAST),
        IpAddr::V6(ip) => Network::V6(ip, Ipv6Addr::from_bits(u128::MAX)),
    }
}

fn real_ip_header(r: &mut ConfReader, node: &Node) -> ReadResult {
    real_ip(r).header = match node.arg(0) {
        b"X-Real-IP" => RealIpHeader::XRealIp,
        b"X-Forwarded-For" => RealIpHeader::XForwardedFor,
        b"proxy_protocol" => RealIpHeader::ProxyProtocol,
        name => RealIpHeader::Field(name.to_ascii_lowercase().into()),
    };
    Ok(())
}
