//! Addresses that servers listen on, merged over all servers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::ServerId;

/// An index into [`super::Http::listens`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenId(pub u32);

impl ListenId {
    /// The position in the list.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One address with one transport, and the servers behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address as written: an unspecified IP is the wildcard.
    pub address: ListenAddress,
    /// TCP, or UDP for `quic`.
    pub transport: ListenTransport,
    /// Whether TLS is on; any server's `ssl` sets it for all. Always true for QUIC.
    pub tls: bool,
    /// Whether the old `http2` parameter was given: HTTP/2 for all servers of this address.
    pub http2: bool,
    /// Whether clients send a PROXY protocol header first.
    pub proxy_protocol: bool,
    /// The server for requests whose host matches no server name.
    pub default_server: ServerId,
    /// Every server of this address, in order of mention.
    pub servers: Vec<ServerId>,
    /// How the socket is made.
    pub options: SocketOptions,
}

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenAddress {
    /// IP address and port.
    Inet(SocketAddr),
    /// A unix socket's path.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Whether it is the wildcard address of its family.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Inet(addr) if addr.ip().is_unspecified())
    }

    /// The port; 0 for unix sockets.
    #[must_use]
    pub const fn port(&self) -> u16 {
        match self {
            Self::Inet(addr) => addr.port(),
            Self::Unix(_) => 0,
        }
    }
}

impl std::fmt::Display for ListenAddress {
    /// In the form of nginx's messages: `0.0.0.0:80`, `[::]:80`, `unix:/path`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inet(addr) => write!(f, "{addr}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The protocol over the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenTransport {
    /// A stream socket: HTTP/1 and HTTP/2.
    Tcp,
    /// A datagram socket: QUIC.
    Quic,
}

/// The options of a listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// `backlog`; none means the system's default (511).
    pub backlog: Option<i32>,
    /// `rcvbuf` in bytes.
    pub rcvbuf: Option<u32>,
    /// `sndbuf` in bytes.
    pub sndbuf: Option<u32>,
    /// `setfib`; accepted.
    pub setfib: Option<i32>,
    /// `fastopen`: length of the queue of incomplete handshakes.
    pub fastopen: Option<i32>,
    /// `deferred`: wake only when data arrived.
    pub deferred: bool,
    /// `reuseport`: a socket per worker.
    pub reuseport: bool,
    /// `ipv6only`
    pub ipv6only: bool,
    /// `bind`: a separate socket although a wildcard of the same port exists.
    pub bind: bool,
    /// `multipath`: MPTCP.
    pub multipath: bool,
    /// `so_keepalive`
    pub so_keepalive: TcpKeepAlive,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            backlog: None,
            rcvbuf: None,
            sndbuf: None,
            setfib: None,
            fastopen: None,
            deferred: false,
            reuseport: false,
            ipv6only: true,
            bind: false,
            multipath: false,
            so_keepalive: TcpKeepAlive::Unset,
        }
    }
}

/// TCP keep-alive probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpKeepAlive {
    /// As the system has it.
    Unset,
    /// Off.
    Off,
    /// On; absent figures are the system's.
    On {
        /// Idle time before the first probe.
        idle: Option<Duration>,
        /// Time between probes.
        interval: Option<Duration>,
        /// Probes before giving up.
        count: Option<u32>,
    },
}
