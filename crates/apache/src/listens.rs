//! Which addresses are listened at, and which server answers there, as Apache looks it up.

use std::fmt;

use crate::import::ConfPlace;
use crate::tree::ApacheNode;

/// An address; none is any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VhostAddress {
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    /// Whether it is a name whose addresses are not known here.
    pub(crate) is_unknown: bool,
}

/// A `Listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenLine {
    pub(crate) place: ConfPlace,
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
    /// Whether the host is a name whose addresses are not known here.
    pub(crate) is_unknown: bool,
}

/// What `listen` has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAt {
    host: Option<String>,
    port: u16,
}

impl ListenAt {
    /// The words of `listen`: any address is one of both kinds.
    pub(crate) fn words(&self) -> Vec<String> {
        match &self.host {
            None => vec![self.port.to_string(), format!("[::]:{}", self.port)],
            Some(_) => vec![self.to_string()],
        }
    }

    /// Whether it is at an address of a server.
    pub(crate) fn is_of(&self, address: &VhostAddress) -> bool {
        address.port.is_none_or(|port| port == self.port)
            && (address.host.is_none() || address.host == self.host)
    }
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host.as_deref().unwrap_or("*"), self.port)
    }
}

/// The addresses of a host as it is written; a name has none, unless it is that of this machine.
fn hosts(word: &str) -> Option<Vec<Option<String>>> {
    let is_any = |host: &str| {
        matches!(&host.to_ascii_lowercase()[..], "*" | "_default_" | "0.0.0.0" | "[::]" | "")
    };
    let is_address = word.starts_with('[') || word.parse::<std::net::Ipv4Addr>().is_ok();
    match word {
        any if is_any(any) => Some(vec![None]),
        local if local.eq_ignore_ascii_case("localhost") => {
            Some(["127.0.0.1", "[::1]"].map(|host| Some(host.to_owned())).into())
        }
        address if is_address => Some(vec![Some(address.to_owned())]),
        _ => None,
    }
}

/// Reads an address of `<VirtualHost>`. A name whose addresses are not known may mean any.
pub(crate) fn addresses(word: &str) -> Vec<VhostAddress> {
    let (host, port) = parted(word);
    let port = port.and_then(|port| port.parse().ok());
    let known = hosts(host);
    let is_unknown = known.is_none();
    let all = known.unwrap_or_else(|| vec![None]).into_iter();
    all.map(|host| VhostAddress { host, port, is_unknown }).collect()
}

fn parted(word: &str) -> (&str, Option<&str>) {
    if word.ends_with(']') {
        return (word, None);
    }
    word.rsplit_once(':').map_or((word, None), |(host, port)| (host, Some(port)))
}

/// Reads `Listen`; none where it has no port.
pub(crate) fn listen(node: &ApacheNode) -> Vec<ListenLine> {
    let word = node.first();
    let (host, port) = match word.parse::<u16>() {
        Ok(_) => ("", Some(&word[..])),
        Err(_) => parted(&word),
    };
    let Some(port) = port.and_then(|port| port.parse().ok()) else { return Vec::new() };
    let known = hosts(host);
    let is_unknown = known.is_none();
    let all = known.unwrap_or_else(|| vec![Some(host.to_owned())]);
    let line = |host| ListenLine { place: node.place.clone(), host, port, is_unknown };
    all.into_iter().map(line).collect()
}

/// Where the server with `own` addresses answers, when `others` are those of all named servers.
pub(crate) fn places(
    lines: &[ListenLine],
    own: &[VhostAddress],
    others: &[VhostAddress],
) -> Vec<ListenAt> {
    let mut all = Vec::new();
    for line in lines {
        let fits = |one: &VhostAddress| one.port.is_none_or(|port| port == line.port);
        // Servers of this very port come before those of any.
        let is_outdone = |own: &VhostAddress| {
            let takes = |one: &VhostAddress| {
                one.port == Some(line.port) && one.host == own.host && !one.is_unknown
            };
            own.port.is_none() && !own.is_unknown && others.iter().any(takes)
        };
        for address in own.iter().filter(|one| fits(one) && !is_outdone(one)) {
            let host = match (&line.host, &address.host) {
                (None, host) => host.clone(),
                (Some(line), None) => {
                    // Servers of this very address come before those of any.
                    let is_taken =
                        others.iter().any(|one| fits(one) && one.host.as_ref() == Some(line));
                    if is_taken && !address.is_unknown {
                        continue;
                    }
                    Some(line.clone())
                }
                (Some(line), Some(host)) if line == host => Some(host.clone()),
                (Some(name), Some(_)) if line.is_unknown => Some(name.clone()),
                _ => continue,
            };
            let at = ListenAt { host, port: line.port };
            if !all.contains(&at) {
                all.push(at);
            }
        }
    }
    all
}

/// Whether it cannot be known where a server with `own` addresses answers: a name may mean them.
pub(crate) fn is_unclear(lines: &[ListenLine], own: &[VhostAddress]) -> bool {
    let is_met = |one: &VhostAddress, line: &ListenLine| {
        let fits = one.port.is_none_or(|port| port == line.port);
        line.is_unknown && fits && one.host.is_some() && one.host != line.host
    };
    own.iter().any(|one| one.is_unknown || lines.iter().any(|line| is_met(one, line)))
}

/// Where no named server answers, so that the main server does.
pub(crate) fn left_over(lines: &[ListenLine], others: &[VhostAddress]) -> Vec<ListenAt> {
    let mut all = Vec::new();
    for line in lines {
        let is_taken = others.iter().any(|one| {
            one.port.is_none_or(|port| port == line.port)
                && (one.host.is_none() || one.host == line.host)
        });
        let at = ListenAt { host: line.host.clone(), port: line.port };
        if !is_taken && !all.contains(&at) {
            all.push(at);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{ListenLine, addresses, left_over, places};
    use crate::import::ConfPlace;

    #[test]
    fn the_most_specific_address_answers() {
        let place = ConfPlace { file: "x".into(), line: 1 };
        let line = |host: Option<&str>, port| ListenLine {
            place: place.clone(),
            host: host.map(str::to_owned),
            port,
            is_unknown: false,
        };
        let lines = [line(None, 80), line(Some("127.0.0.1"), 8080), line(None, 443)];
        let others = ["*:80", "192.0.2.1:80", "_default_:8080"].map(addresses).concat();
        let of = |own: usize| {
            let all = places(&lines, &others[own..=own], &others);
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of(0), ["*:80"]);
        assert_eq!(of(1), ["192.0.2.1:80"]);
        assert_eq!(of(2), ["127.0.0.1:8080"]);
        let left = left_over(&lines, &others);
        assert_eq!(left.iter().map(ToString::to_string).collect::<Vec<_>>(), ["*:443"]);
        let hosts = |word: &str| addresses(word).into_iter().map(|it| it.host).collect::<Vec<_>>();
        assert_eq!(hosts("[::1]:80"), [Some("[::1]".to_owned())]);
        assert_eq!(hosts("localhost:80"), ["127.0.0.1", "[::1]"].map(|it| Some(it.to_owned())));
        let both = ["*", "*:80", "192.0.2.1", "192.0.2.1:443"].map(addresses).concat();
        let of_both = |own: usize| {
            let all = places(&lines, &both[own..=own], &both);
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of_both(0), ["127.0.0.1:8080", "*:443"]);
        assert_eq!(of_both(1), ["*:80"]);
        assert_eq!(of_both(2), ["192.0.2.1:80"]);
        assert_eq!(of_both(3), ["192.0.2.1:443"]);
        let named = addresses("www.example.org:8080");
        assert!(named.len() == 1 && named[0].is_unknown);
        let all = places(&lines, &named, &[others, named.clone()].concat());
        assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:8080"]);
    }
}
