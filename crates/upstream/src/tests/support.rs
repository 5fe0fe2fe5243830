//! Groups, settings and requests for tests.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::Spool;
use bolide_conf::model::{
    Balance, Keepalive, NameServers, OriginSettings, PeerAddress, Protocol, Queue, RunTimeName,
    SourcePlace, Upstream, UpstreamId, UpstreamKind, UpstreamServer,
};
use bolide_http::{OriginHead, Params};
use bolide_wire::OriginEvent;
use bytes::Bytes;

use crate::{OriginRequest, PassTarget};

struct Empty;

impl bolide_conf::ConfSource for Empty {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(b"events {} http {}".to_vec())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<OsString>> {
        Ok(Vec::new())
    }

    fn resolve(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// The default settings.
pub(crate) fn settings() -> OriginSettings {
    let outcome =
        bolide_conf::parse(&Empty, Path::new("a.conf"), &bolide_conf::LoadOptions::default());
    let http = outcome.config.unwrap().http.unwrap();
    (*http.settings.origin).clone()
}

/// A server on a port of this machine.
pub(crate) fn server(port: u16) -> UpstreamServer {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    UpstreamServer {
        name: address.to_string().into(),
        addresses: vec![PeerAddress::Inet(address)],
        weight: 1,
        max_conns: 0,
        max_fails: 1,
        fail_timeout: Duration::from_secs(10),
        backup: false,
        down: false,
        drain: false,
        route: None,
        resolve: None,
    }
}

pub(crate) fn weighted(port: u16, weight: u32) -> UpstreamServer {
    UpstreamServer { weight, ..server(port) }
}

pub(crate) fn limited(port: u16, max_conns: u32) -> UpstreamServer {
    UpstreamServer { max_conns, ..server(port) }
}

pub(crate) fn unix(path: &str) -> UpstreamServer {
    UpstreamServer {
        name: format!("unix:{path}").into(),
        addresses: vec![PeerAddress::Unix(Path::new(path).into())],
        ..server(1)
    }
}

/// A server whose name is looked up while serving.
pub(crate) fn by_name(name: &str, max_conns: u32) -> UpstreamServer {
    let (host, port) = name.split_once(':').unwrap();
    let resolve = Some(RunTimeName { host: host.into(), port: port.parse().unwrap() });
    UpstreamServer { name: name.into(), addresses: Vec::new(), resolve, ..limited(1, max_conns) }
}

/// The same group with a resolver.
pub(crate) fn resolved(group: Upstream) -> Upstream {
    let servers = vec![SocketAddr::from(([127, 0, 0, 1], 53))];
    let resolver = NameServers { servers, valid: None, ipv4: true, ipv6: true };
    let resolver_timeout = Some(Duration::from_secs(2));
    Upstream { resolver: Some(Arc::new(resolver)), resolver_timeout, ..group }
}

pub(crate) fn upstream(balance: Balance, servers: Vec<UpstreamServer>) -> Upstream {
    Upstream {
        name: "group".into(),
        kind: UpstreamKind::Block,
        balance,
        sticky: None,
        servers,
        keepalive: Keepalive {
            idle_max: 2,
            requests: 1000,
            time: Duration::from_secs(3600),
            timeout: Duration::from_secs(60),
        },
        queue: None,
        request_timeout: None,
        resolver: None,
        resolver_timeout: None,
        is_shared: false,
        place: SourcePlace::default(),
    }
}

pub(crate) fn queueing(servers: Vec<UpstreamServer>, len: u32) -> Upstream {
    let queue = Some(Queue { len, timeout: Duration::from_secs(5) });
    Upstream { queue, ..upstream(Balance::RoundRobin, servers) }
}

/// A `GET` to the first group.
pub(crate) fn request(settings: OriginSettings) -> Box<OriginRequest> {
    Box::new(OriginRequest {
        target: PassTarget::Group(UpstreamId(0)),
        protocol: Protocol::FastCgi,
        settings: Arc::new(settings),
        message: Params::new().into(),
        body: Spool::empty(),
        body_len: Some(0),
        is_idempotent: true,
        affinity: Vec::new(),
        bound_by: Vec::new(),
        from: None,
        rate: 0,
        secure: None,
    })
}

pub(crate) fn head(status: u16) -> OriginEvent {
    OriginEvent::Head(Box::new(OriginHead { status, ..OriginHead::default() }))
}

pub(crate) fn body(text: &'static str) -> OriginEvent {
    OriginEvent::Body(Bytes::from_static(text.as_bytes()))
}
