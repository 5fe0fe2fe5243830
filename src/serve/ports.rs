//! Where a site that is served at once listens: where it was told, else on the first ports that are
//! free from the usual ones on.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use io::listen::{Address, Listener, Options};

use crate::cli::{Purpose, Serve};

/// The usual ports.
const HTTP: u16 = 8080;
const HTTPS: u16 = 8443;
/// LIMIT: ports that are tried.
const TRIES: u16 = 100;

/// The ports of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) http: u16,
    pub(super) https: u16,
}

/// Chooses the ports, and says in a line each which usual one is taken. What was written stays as
/// it is, and so does what is only printed.
pub(super) fn choose(options: &Serve) -> (Ports, String) {
    let mut said = String::new();
    let is_served = options.purpose == Purpose::Serve;
    let mut pick = |written: Option<u16>, usual: u16, other: Option<u16>| match written {
        Some(port) => port,
        None if !is_served => usual,
        None => {
            let port = first_free(usual, |port| Some(port) != other && is_free(port));
            if port != usual {
                said.push_str(&format!("port {usual} is taken, {port} is used instead\n"));
            }
            port
        }
    };
    let http = pick(options.http, HTTP, options.https);
    let https = pick(options.https, HTTPS, Some(http));
    (Ports { http, https }, said)
}

/// The first free port from `usual` on; `usual` itself if none is, whose error then tells.
fn first_free(usual: u16, is_free: impl Fn(u16) -> bool) -> u16 {
    (usual..usual.saturating_add(TRIES)).find(|port| is_free(*port)).unwrap_or(usual)
}

/// Whether `port` is free, over TCP and UDP. Other errors of bind() are reported later.
fn is_free(port: u16) -> bool {
    let hosts = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let options = Options { ipv6_only: Some(true), ..Options::default() };
    hosts.into_iter().map(|host| SocketAddr::new(host, port)).all(|at| {
        [Address::Tcp(at), Address::Udp(at)].iter().all(|address| {
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
