//! Addresses and ports of peers, as variables have them.

use std::io::Write as _;
use std::net::IpAddr;

use bolide_http::digits::push_decimal;

use super::value::{VariableValue, number};
use crate::connection::ClientAddress;

/// Appends the address of a peer without its port.
pub(crate) fn address(out: &mut Vec<u8>, peer: ClientAddress) -> VariableValue {
    match peer {
        ClientAddress::Unix => out.extend_from_slice(b"unix:"),
        ClientAddress::Inet(addr) => match addr.ip().to_canonical() {
            IpAddr::V4(ip) => {
                let [a, b, c, d] = ip.octets();
                push_decimal(out, u64::from(a));
                for part in [b, c, d] {
                    out.push(b'.');
                    push_decimal(out, u64::from(part));
                }
            }
            IpAddr::V6(ip) => {
                // Writing to a vector cannot fail.
                let _ = write!(out, "{ip}");
            }
        },
    }
    VariableValue::Yes
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
        ClientAddress::Inet(addr) => match addr.ip().to_canonical() {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        },
    }
    VariableValue::Yes
}
