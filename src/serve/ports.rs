//! The listening addresses of a site served at once: the given ones, else the first free ports from
//! the usual ones on.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use bolide_io::listen::{ListenSocketOptions, Listener, SocketAddress};

use crate::invocation::{CliPurpose, LOOPBACK, Serve};

/// The usual ports.
const HTTP: u16 = 8080;
const HTTPS: u16 = 8443;
/// LIMIT: ports that are tried.
const TRIES: u16 = 100;

/// The addresses and ports of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServePorts {
    pub(super) hosts: Vec<IpAddr>,
    pub(super) http: u16,
    pub(super) https: u16,
}

impl ServePorts {
    /// The `listen` directives, a line each.
    pub(super) fn directives(&self) -> Vec<String> {
        let line = |port: u16, kind: &str| {
            let listens: Vec<String> = self
                .hosts
                .iter()
                .map(|host| format!("listen {}{kind};", SocketAddr::new(*host, port)))
                .collect();
            listens.join(" ")
        };
        vec![line(self.http, ""), line(self.https, " ssl"), line(self.https, " quic")]
    }

    /// The URL for a person on this machine.
    pub(super) fn host(&self) -> String {
        let is_local = |host: &IpAddr| host.is_loopback() || host.is_unspecified();
        match self.hosts.first() {
            Some(host @ IpAddr::V4(_)) if !is_local(host) => host.to_string(),
            Some(host @ IpAddr::V6(_)) if !is_local(host) => format!("[{host}]"),
            _ => "localhost".to_owned(),
        }
    }

    /// The description of the clients served.
    pub(super) fn audience(&self) -> &'static str {
        if self.hosts.iter().all(IpAddr::is_loopback) {
            "to this machine alone; --listen '*' lets others in"
        } else {
            "to every client that reaches it"
        }
    }
}

/// Chooses the ports, and reports in a line each which usual one is taken. Ports that were given,
/// or are only printed, stay as they are.
pub(super) fn choose(options: &Serve) -> (ServePorts, String) {
    let mut said = String::new();
    let hosts = hosts(options);
    let is_served = options.purpose == CliPurpose::Serve;
    let mut pick = |written: Option<u16>, usual: u16, other: Option<u16>| match written {
        Some(port) => port,
        None if !is_served => usual,
        None => {
            let port = first_free(usual, |port| Some(port) != other && is_free(&hosts, port));
            if port != usual {
                said.push_str(&format!("port {usual} is taken, {port} is used instead\n"));
            }
            port
        }
    };
    let http = pick(options.http, HTTP, options.https);
    let https = pick(options.https, HTTPS, Some(http));
    (ServePorts { hosts, http, https }, said)
}

/// The listening hosts: the given ones, else the loopback addresses that this machine has.
fn hosts(options: &Serve) -> Vec<IpAddr> {
    if !options.listen.is_empty() {
        let mut hosts = Vec::new();
        for host in options.listen.iter().filter(|host| is_possible(**host)) {
            if !hosts.contains(host) {
                hosts.push(*host);
            }
        }
        return hosts;
    }
    LOOPBACK.into_iter().filter(|host| host.is_ipv4() || is_there(*host)).collect()
}

/// Whether a wildcard works here; other unavailable addresses are reported later.
fn is_possible(host: IpAddr) -> bool {
    host != IpAddr::V6(Ipv6Addr::UNSPECIFIED) || is_there(host)
}

fn is_there(host: IpAddr) -> bool {
    let options = ListenSocketOptions { ipv6_only: Some(true), ..ListenSocketOptions::default() };
    Listener::probe(&SocketAddress::Tcp(SocketAddr::new(host, 0)), &options).is_ok()
}

/// The first free port from `usual` on; if none is, `usual` itself, whose error is then reported.
fn first_free(usual: u16, is_free: impl Fn(u16) -> bool) -> u16 {
    (usual..usual.saturating_add(TRIES)).find(|port| is_free(*port)).unwrap_or(usual)
}

/// Whether `port` is free, over TCP and UDP. Other errors of bind() are reported later.
fn is_free(hosts: &[IpAddr], port: u16) -> bool {
    let options = ListenSocketOptions { ipv6_only: Some(true), ..ListenSocketOptions::default() };
    hosts.iter().map(|host| SocketAddr::new(*host, port)).all(|at| {
        [SocketAddress::Tcp(at), SocketAddress::Udp(at)].iter().all(|address| {
            let probed = Listener::probe(address, &options);
            !probed.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::first_free;

    #[test]
    fn the_next_free_port_is_taken_and_the_usual_one_tells_if_there_is_none() {
        assert_eq!(first_free(8080, |_| true), 8080);
        assert_eq!(first_free(8080, |port| port > 8082), 8083);
        assert_eq!(first_free(8080, |_| false), 8080);
        assert_eq!(first_free(u16::MAX, |_| false), u16::MAX);
    }
}
