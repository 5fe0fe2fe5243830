//! The client's address according to trusted proxies: `X-Forwarded-For` and similar fields.
//!
//! Parses such fields as nginx does: from the end, as long as each writer is trusted. Easiest to
//! break: an invalid address ends the search, and the address found so far holds.

use std::net::{IpAddr, SocketAddr};

use bolide_conf::model::Who;

use crate::ctx::ClientAddress;

/// The result of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// No trusted proxy wrote it, or it does not end with an address.
    Nothing,
    /// An address; earlier fields may be searched as well.
    Found,
    /// An address whose writer is not trusted any further.
    Final,
}

/// Whether `peer` is one of those in `trusted`.
pub(crate) fn is_trusted(trusted: &[Who], peer: ClientAddress) -> bool {
    trusted.iter().any(|who| match (who, peer) {
        (Who::All, _) | (Who::Unix, ClientAddress::Unix) => true,
        (Who::Network(network), ClientAddress::Inet(addr)) => {
            network.contains(addr.ip().to_canonical())
        }
        (Who::Unix, ClientAddress::Inet(_)) | (Who::Network(_), ClientAddress::Unix) => false,
    })
}

/// The client that `fields`, all values of one name in order, name on behalf of `peer`.
pub(crate) fn client<'f>(
    peer: ClientAddress,
    fields: impl DoubleEndedIterator<Item = &'f [u8]>,
    trusted: &[Who],
    recursive: bool,
) -> Option<ClientAddress> {
    let (mut addr, mut is_found) = (peer, false);
    for value in fields.rev() {
        let outcome = read(&mut addr, value, trusted, recursive);
        is_found |= outcome != Outcome::Nothing;
        if !recursive || outcome != Outcome::Found {
            break;
        }
    }
    is_found.then_some(addr)
}

/// Parses one field from its end; `addr` is its writer.
fn read(addr: &mut ClientAddress, field: &[u8], trusted: &[Who], recursive: bool) -> Outcome {
    let mut rest = field;
    let mut outcome = Outcome::Nothing;
    loop {
        // The address found so far holds; only a field without any result hides those before it.
        let ended = if outcome == Outcome::Nothing { Outcome::Nothing } else { Outcome::Final };
        if !is_trusted(trusted, *addr) {
            return ended;
        }
        while let [_, .., b' ' | b','] = rest {
            rest = &rest[..rest.len() - 1];
        }
        // As in nginx, the first byte always belongs to the word.
        let before = rest.iter().skip(1).rposition(|byte| matches!(byte, b' ' | b','));
        let start = before.map_or(0, |at| at + 2);
        let Some(found) = parse(&rest[start..]) else { return ended };
        *addr = ClientAddress::Inet(found);
        outcome = Outcome::Found;
        if !recursive || start == 0 {
            return outcome;
        }
        rest = &rest[..start - 1];
    }
}

/// An address with or without a port, as nginx parses it; port 0 means none.
pub(crate) fn parse(word: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(word).ok()?;
    if let Some(ip) = ip(text) {
        return Some(SocketAddr::new(ip, 0));
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            if rest.is_empty() {
                return Some(SocketAddr::new(ip(host)?, 0));
            }
            (host, rest.strip_prefix(':')?)
        }
        None => text.split_once(':')?,
    };
    let port =
        bolide_conf::value::number(port.as_bytes()).and_then(|port| u16::try_from(port).ok())?;
    (port != 0).then_some(SocketAddr::new(ip(host)?, port))
}

/// An address without a port.
pub(crate) fn ip(text: &str) -> Option<IpAddr> {
    match bolide_conf::value::ipv4(text.as_bytes()) {
        Some(ip) => Some(ip.into()),
        None => text.parse().ok().filter(IpAddr::is_ipv6),
    }
}

#[cfg(test)]
mod tests;
