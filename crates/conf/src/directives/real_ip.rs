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
    value("real_ip_header", HSL, Args::between(1, 2), real_ip_header)
        .doc(
            "The field with the client's address, or `proxy_protocol`. Of a field in several lines \
             the first line counts, as in nginx; of `X-Forwarded-For`, and with `all`, the lines \
             are one list, which is searched from its end. A proxy that adds a line of its own to \
             those of the client needs `all`: `real_ip_header X-Client-IP all`.",
            "real_ip_header X-Forwarded-For;",
        )
        .takes("NAME [all] | proxy_protocol")
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
    let name = || node.arg(0).to_ascii_lowercase().into();
    real_ip(r).header = match (node.arg(0), node.args().nth(1)) {
        (b"proxy_protocol", None) => RealIpHeader::ProxyProtocol,
        (b"X-Forwarded-For", None | Some(b"all")) => RealIpHeader::XForwardedFor,
        (b"X-Real-IP", None) => RealIpHeader::XRealIp,
        (_, None) => RealIpHeader::Field(name()),
        (field, Some(b"all")) if field != b"proxy_protocol" => RealIpHeader::Lines(name()),
        // nginx's words: it takes one argument.
        (_, Some(_)) => {
            let text = "invalid number of arguments in \"real_ip_header\" directive";
            return Err(ReadFault::Text(text.to_owned()));
        }
    };
    Ok(())
}
