//! Which addresses are listened at, and which server answers there, as Apache looks it up.

use std::fmt;

use crate::import::ConfPlace;
use crate::tree::ApacheNode;

/// An address; none is any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VhostAddress {
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
}

/// A `Listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenLine {
    pub(crate) place: ConfPlace,
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
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
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host.as_deref().unwrap_or("*"), self.port)
    }
}

/// Reads an address of `<VirtualHost>`.
pub(crate) fn address(word: &str) -> VhostAddress {
    let (host, port) = parted(word);
    let is_any = |host: &str| matches!(host, "*" | "_default_" | "0.0.0.0" | "[::]" | "");
    VhostAddress {
        host: Some(host).filter(|host| !is_any(host)).map(str::to_owned),
        port: port.and_then(|port| port.parse().ok()),
    }
}

fn parted(word: &str) -> (&str, Option<&str>) {
    if word.ends_with(']') {
        return (word, None);
    }
    word.rsplit_once(':').map_or((word, None), |(host, port)| (host, Some(port)))
}

/// Reads `Listen`; none where it has no port.
pub(crate) fn listen(node: &ApacheNode) -> Option<ListenLine> {
    let word = node.first();
    let (host, port) = match word.parse::<u16>() {
        Ok(port) => (None, port),
        Err(_) => {
            let all = address(&word);
            (all.host, all.port?)
        }
    };
    Some(ListenLine { place: node.place.clone(), host, port })
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
        for address in own.iter().filter(|one| fits(one)) {
            let host = match (&line.host, &address.host) {
                (None, host) => host.clone(),
                (Some(line), None) => {
                    // Servers of this very address come before those of any.
                    let is_taken =
                        others.iter().any(|one| fits(one) && one.host.as_ref() == Some(line));
                    if is_taken {
                        continue;
                    }
                    Some(line.clone())
                }
                (Some(line), Some(host)) if line == host => Some(host.clone()),
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
    use super::{ListenLine, address, left_over, places};
    use crate::import::ConfPlace;

    #[test]
    fn the_most_specific_address_answers() {
        let place = ConfPlace { file: "x".into(), line: 1 };
        let line = |host: Option<&str>, port| ListenLine {
            place: place.clone(),
            host: host.map(str::to_owned),
            port,
        };
        let lines = [line(None, 80), line(Some("127.0.0.1"), 8080), line(None, 443)];
        let others = [address("*:80"), address("192.0.2.1:80"), address("_default_:8080")];
        let of = |own: usize| {
            let all = places(&lines, &others[own..=own], &others);
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of(0), ["*:80"]);
        assert_eq!(of(1), ["192.0.2.1:80"]);
        assert_eq!(of(2), ["127.0.0.1:8080"]);
        let left = left_over(&lines, &others);
        assert_eq!(left.iter().map(ToString::to_string).collect::<Vec<_>>(), ["*:443"]);
        assert_eq!(address("[::1]:80").host.as_deref(), Some("[::1]"));
    }
}
