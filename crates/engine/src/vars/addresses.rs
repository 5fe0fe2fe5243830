//! Addresses and ports of peers, as variables have them.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bolide_http::digits::push_decimal;

use super::value::{VariableValue, number};
use crate::connection::ClientAddress;

/// Appends the address of a peer without its port.
pub(crate) fn address(out: &mut Vec<u8>, peer: ClientAddress) -> VariableValue {
    match peer {
        ClientAddress::Unix => out.extend_from_slice(b"unix:"),
        ClientAddress::Inet(addr) => match addr.ip() {
            IpAddr::V4(ip) => push_v4(out, ip),
            IpAddr::V6(ip) => push_v6(out, ip),
        },
    }
    VariableValue::Yes
}

fn push_v4(out: &mut Vec<u8>, ip: Ipv4Addr) {
    let [a, b, c, d] = ip.octets();
    push_decimal(out, u64::from(a));
    for part in [b, c, d] {
        out.push(b'.');
        push_decimal(out, u64::from(part));
    }
}

/// As in nginx, an address that contains one of IPv4 ends like it: `::ffff:192.0.2.1` and
/// `::192.0.2.1`.
fn push_v6(out: &mut Vec<u8>, ip: Ipv6Addr) {
    let [zeros @ .., mark, high, low] = ip.segments();
    let v4 = Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match (zeros, mark, high, low) {
        ([0, 0, 0, 0, 0], 0xffff, ..) => {
            out.extend_from_slice(b"::ffff:");
            push_v4(out, v4);
        }
        ([0, 0, 0, 0, 0], 0, 1.., _) => {
            out.extend_from_slice(b"::");
            push_v4(out, v4);
        }
        _ => {
            // Writing to a vector cannot fail.
            let _ = write!(out, "{ip}");
        }
    }
}

pub(super) fn port(out: &mut Vec<u8>, peer: ClientAddress) -> VariableValue {
    match peer {
        ClientAddress::Unix => VariableValue::Yes,
        // A client known only from a field may have no port.
        ClientAddress::Inet(addr) if addr.port() == 0 => VariableValue::Yes,
        ClientAddress::Inet(addr) => number(out, u64::from(addr.port())),
    }
}

pub(super) fn binary_address(out: &mut Vec<u8>, peer: ClientAddress) -> VariableValue {
    match peer {
        ClientAddress::Unix => out.extend_from_slice(b"unix:"),
        ClientAddress::Inet(addr) => match addr.ip() {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        },
    }
    VariableValue::Yes
}
