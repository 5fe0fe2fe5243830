//! Upstream groups: servers, balancing, failure handling.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{NameServers, SourcePlace};
use crate::vars::Template;

/// An index into [`super::Http::upstreams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamId(pub u32);

impl UpstreamId {
    /// The position in the list.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An `upstream` block, or the single address that a `…_pass` directive names.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Its name as written; for a single address, that address.
    pub name: Arc<str>,
    /// How the configuration defines it.
    pub kind: UpstreamKind,
    /// How one server is chosen.
    pub balance: Balance,
    /// `sticky`: how clients keep their server.
    pub sticky: Option<Arc<Sticky>>,
    /// Its servers in file order.
    pub servers: Vec<UpstreamServer>,
    /// `keepalive` and related directives.
    pub keepalive: Keepalive,
    /// Requests that may queue when all servers are busy (`max_conns`), and how long.
    pub queue: Option<Queue>,
    /// Of a pool, the time after which a process that has a request is killed, if there is one.
    pub request_timeout: Option<Duration>,
    /// `resolver`, or that of the `http` block, if names of servers are looked up at run time.
    pub resolver: Option<Arc<NameServers>>,
    /// `resolver_timeout`, or that of the `http` block.
    pub resolver_timeout: Option<Duration>,
    /// `zone`
    pub is_shared: bool,
    /// Where it was written.
    pub place: SourcePlace,
}

/// How the configuration defines a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamKind {
    /// An `upstream` block.
    Block,
    /// An address in a `…_pass` directive.
    Address,
    /// A `php_pool`: index into [`super::Http::php_pools`].
    Pool(u32),
}

/// How one server of a group is chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Balance {
    /// Weighted round robin.
    RoundRobin,
    /// `least_conn`
    LeastConn,
    /// `ip_hash`
    IpHash,
    /// `hash`
    Hash {
        /// The key to hash.
        key: Template,
        /// `consistent`: ketama points instead of a remainder.
        consistent: bool,
    },
    /// `random`; with `two`, the one of two with fewer connections.
    Random {
        /// Whether two are drawn.
        two: bool,
    },
}

/// `sticky`: how a group knows the server that a client is bound to.
#[derive(Clone, Debug, PartialEq)]
pub enum Sticky {
    /// `sticky cookie`: a cookie of ours has the id of the server.
    Cookie(StickyCookie),
    /// `sticky route`: the first of these that is not empty is the id of the server.
    Route(Vec<Template>),
    /// `sticky learn`: sessions of the servers themselves.
    Learn(StickyLearn),
}

/// The cookie of `sticky cookie`.
#[derive(Clone, Debug, PartialEq)]
pub struct StickyCookie {
    /// Its name.
    pub name: Box<[u8]>,
    /// `expires`
    pub expires: StickyExpires,
    /// `domain`
    pub domain: Option<Template>,
    /// `path`
    pub path: Option<Box<[u8]>>,
    /// `httponly`
    pub http_only: bool,
    /// `secure`
    pub secure: bool,
    /// `samesite`
    pub same_site: Option<Template>,
}

/// The values of `samesite`, in any case.
pub const SAME_SITES: [&[u8]; 3] = [b"strict", b"lax", b"none"];

/// How long browsers keep the cookie of `sticky cookie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StickyExpires {
    /// Until they end.
    Session,
    /// So many seconds.
    After(u64),
    /// `max`: until the end of 2037.
    Max,
}

/// The sessions of `sticky learn`.
#[derive(Clone, Debug, PartialEq)]
pub struct StickyLearn {
    /// `create`: the first of these that is not empty names a new session.
    pub create: Vec<Template>,
    /// `lookup`: the first of these that is not empty names the session of a request.
    pub lookup: Vec<Template>,
    /// `zone`: the name.
    pub zone: Arc<str>,
    /// `zone`: LIMIT: bytes of its sessions.
    pub size: u64,
    /// `timeout`: how long a session without requests is known.
    pub timeout: Duration,
    /// `header`: sessions are known when the head of the response is there, not at its end.
    pub at_head: bool,
}

/// One `server` line of a group; it may have several addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamServer {
    /// The address as written.
    pub name: Arc<str>,
    /// The addresses that it resolves to.
    pub addresses: Vec<PeerAddress>,
    /// `weight`
    pub weight: u32,
    /// `max_conns`; 0 is no limit.
    pub max_conns: u32,
    /// `max_fails`; 0 never counts.
    pub max_fails: u32,
    /// `fail_timeout`
    pub fail_timeout: Duration,
    /// `backup`
    pub backup: bool,
    /// `down`
    pub down: bool,
    /// `drain`: only clients that are bound to it ask it.
    pub drain: bool,
    /// `route`: its id for `sticky`, instead of one made from its address.
    pub route: Option<Arc<[u8]>>,
    /// `resolve`: the name is looked up while serving, again and again.
    pub resolve: Option<RunTimeName>,
}

/// The name of a server that is looked up while serving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTimeName {
    /// The host.
    pub host: Arc<str>,
    /// The port of its addresses.
    pub port: u16,
}

/// The address of an upstream server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    /// An Internet address.
    Inet(SocketAddr),
    /// A unix socket.
    Unix(Arc<Path>),
}

impl std::fmt::Display for PeerAddress {
    /// The form in logs and `$upstream_addr`: `127.0.0.1:9000`, `unix:/run/php.sock`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inet(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// `keepalive` and related directives of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// `keepalive`: idle connections per worker; 0 closes them all.
    pub idle_max: u32,
    /// `keepalive_requests`
    pub requests: u64,
    /// `keepalive_time`
    pub time: Duration,
    /// `keepalive_timeout`
    pub timeout: Duration,
}

/// The queue of a busy group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Requests, over all workers.
    pub len: u32,
    /// How long each waits before it gets 503.
    pub timeout: Duration,
}
