//! The names of `resolve` servers, which one worker looks up for all: when each lookup is due, and
//! the effect of its result.
//!
//! ```text
//!   Due ──── take_due ────▶ Asked ──── handle_verdict ────▶ Due, when the answer expires
//! ```
//!
//! A name without addresses removes its servers from the group; a failed lookup changes nothing.
//! Easiest to break: a name is due again after each verdict.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bolide_base::Instant;

use crate::groups::UpstreamGroups;
use crate::request::NameTarget;
use crate::resolved::{FoundPeer, ResolvedGroup};

/// The names of servers that this worker looks up.
#[derive(Debug, Default)]
pub struct UpstreamNames {
    names: Vec<ServerName>,
    /// When each name without a lookup in progress is due.
    due: BTreeSet<(Instant, usize)>,
}

#[derive(Debug)]
struct ServerName {
    group: Arc<ResolvedGroup>,
    /// The `server` line.
    line: usize,
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameVerdict {
    /// The addresses.
    Found(Arc<[IpAddr]>),
    /// There are none; the text for the log: `3: Host not found`.
    NotFound(String),
    /// The lookup failed; the text for the log.
    Failed(String),
}

impl UpstreamNames {
    /// The names of these groups that no other worker has claimed; all are due.
    #[must_use]
    pub fn claim(groups: &UpstreamGroups, now: Instant) -> Self {
        let mut names = Vec::new();
        for group in groups.resolved().filter(|group| group.claim()) {
            let servers = group.upstream().servers.iter().enumerate();
            let named = servers.filter(|(_, server)| server.resolve.is_some());
            names.extend(named.map(|(line, _)| ServerName { group: Arc::clone(group), line }));
        }
        let due = (0..names.len()).map(|number| (now, number)).collect();
        Self { names, due }
    }

    /// When [`Self::take_due`] returns the next name.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// A name to be looked up, and its number for [`Self::handle_verdict`].
    pub fn take_due(&mut self, now: Instant) -> Option<(usize, NameTarget)> {
        self.due.first().filter(|(due, _)| *due <= now)?;
        let (_, number) = self.due.pop_first()?;
        let name = &self.names[number];
        let upstream = name.group.upstream();
        let resolve = upstream.servers[name.line].resolve.as_ref()?;
        let target = NameTarget {
            host: resolve.host.as_bytes().into(),
            port: resolve.port,
            servers: Arc::clone(upstream.resolver.as_ref()?),
            timeout: upstream.resolver_timeout?,
        };
        Some((number, target))
    }

    /// Applies the result for the name with this number, valid until the given time; returns the
    /// line for the error log if the name was not found.
    pub fn handle_verdict(
        &mut self,
        number: usize,
        verdict: &NameVerdict,
        good_until: Instant,
    ) -> Option<String> {
        let name = self.names.get(number)?;
        self.due.insert((good_until, number));
        let server = &name.group.upstream().servers[name.line];
        let resolve = server.resolve.as_ref()?;
        let (ips, why): (&[IpAddr], _) = match verdict {
            NameVerdict::Found(ips) => (ips, None),
            NameVerdict::NotFound(why) => (&[], Some(why)),
            NameVerdict::Failed(why) => return Some(unresolved(&resolve.host, why)),
        };
        let mut found: Vec<FoundPeer> = Vec::with_capacity(ips.len());
        for ip in ips {
            let peer = FoundPeer::of_line(server, SocketAddr::new(*ip, resolve.port));
            if !found.contains(&peer) {
                found.push(peer);
            }
        }
        name.group.learn(name.line, found);
        why.map(|why| unresolved(&resolve.host, why))
    }
}

fn unresolved(host: &str, why: &str) -> String {
    format!("{host} could not be resolved ({why})")
}

#[cfg(test)]
mod tests;
