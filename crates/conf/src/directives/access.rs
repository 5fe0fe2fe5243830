//! `allow`, `deny`: access control by address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, list};
use crate::model::{AccessRule, AccessVerdict, Network, Who};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};

const HSLE: Contexts = Contexts::HSLE;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("allow", HSLE, Args::ONE, |r, node| rule(r, node, AccessVerdict::Allow))
        .doc("Allows clients of an address or network.", "allow 192.0.2.0/24;")
        .takes("ADDRESS | NETWORK | unix: | all")
        .without("every client is allowed"),
    list("deny", HSLE, Args::ONE, |r, node| rule(r, node, AccessVerdict::Deny))
        .doc("Denies clients of an address or network.", "deny all;")
        .takes("ADDRESS | NETWORK | unix: | all")
        .without("no client is refused"),
];

fn rule(r: &mut ConfReader, node: &Node, verdict: AccessVerdict) -> ReadResult {
    let who = who(r, node.arg(0))?;
    // `allow` and `deny` are one list.
    let again = std::mem::replace(&mut r.scope.has_access, true);
    let rules = &mut r.settings().access;
    if !again {
        *rules = Arc::default();
    }
    Arc::make_mut(rules).push(AccessRule { who, verdict });
    Ok(())
}

/// An allowed client: an address, a network, `all` or `unix:`.
pub(super) fn allowed(r: &mut ConfReader, word: &[u8]) -> Result<AccessRule, ReadFault> {
    Ok(AccessRule { who: who(r, word)?, verdict: AccessVerdict::Allow })
}

/// The clients that a word names.
fn who(r: &mut ConfReader, word: &[u8]) -> Result<Who, ReadFault> {
    Ok(match word {
        b"all" => Who::All,
        b"unix:" => Who::Unix,
        _ => {
            let read = network(word).ok_or_else(|| invalid_parameter(word))?;
            if read.has_low_bits {
                r.warn(format!("low address bits of {} are meaningless", show(word)));
            }
            Who::Network(read.network)
        }
    })
}

/// A network as written.
pub(super) struct WrittenRule {
    /// Its network.
    pub(super) network: Network,
    /// Whether bits outside the mask were written.
    pub(super) has_low_bits: bool,
}

/// Reads an address with an optional number of bits.
pub(super) fn network(word: &[u8]) -> Option<WrittenRule> {
    let text = std::str::from_utf8(word).ok()?;
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(crate::value::number(bits.as_bytes())?)),
        None => (text, None),
    };
    let bits = |most: u32| match bits {
        None => Some(most),
        Some(bits) => u32::try_from(bits).ok().filter(|bits| *bits <= most),
    };
    Some(match address.parse().ok()? {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - bits(32)?).unwrap_or(0);
            let mask = Ipv4Addr::from_bits(mask);
            WrittenRule { network: Network::V4(ip & mask, mask), has_low_bits: ip & mask != ip }
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - bits(128)?).unwrap_or(0);
            let mask = Ipv6Addr::from_bits(mask);
            WrittenRule { network: Network::V6(ip & mask, mask), has_low_bits: ip & mask != ip }
        }
    })
}
