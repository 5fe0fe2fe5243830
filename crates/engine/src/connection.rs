//! The properties of a client connection, which all its requests share.
//!
//! Values only: the worker sets them once, requests read them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bolide_base::{ClientCert, Now};
use bolide_http::Scheme;

use crate::counters::RequestTallies;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// IP address and port.
    Inet(SocketAddr),
    /// A unix socket.
    Unix,
}

impl ClientAddress {
    /// The port; 0 for unix sockets.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Inet(addr) => addr.port(),
            Self::Unix => 0,
        }
    }

    /// The address; none for unix sockets.
    #[must_use]
    pub const fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Inet(addr) => Some(addr.ip()),
            Self::Unix => None,
        }
    }
}

/// The results of the TLS handshake.
#[derive(Clone, Debug, Default)]
pub struct TlsFacts {
    /// `TLSv1.3`
    pub protocol: &'static str,
    /// OpenSSL's or the RFC's name of the cipher.
    pub cipher: &'static str,
    /// The key exchange group.
    pub curve: &'static str,
    /// The protocol that ALPN chose; empty if none.
    pub alpn: &'static str,
    /// The server name that the client sent (SNI).
    pub server_name: Option<Box<str>>,
    /// Whether a session was resumed.
    pub reused: bool,
    /// The ciphers and groups that the client offered; set only if a variable or a log uses them.
    pub offers: Option<Box<(Box<str>, Box<str>)>>,
    /// The session id; set only if a variable or a log uses it.
    pub session_id: Option<Box<[u8]>>,
    /// The signature algorithm that the server used.
    pub signature: &'static str,
    /// The signature algorithm that the client used.
    pub client_signature: &'static str,
    /// The client's certificate with its verdict, if one was requested.
    pub client: Option<Arc<ClientCert>>,
}

/// The properties of a connection, the same for all its requests.
#[derive(Clone, Debug)]
pub struct ConnInfo {
    /// `$connection`
    pub serial: u64,
    /// The client.
    pub remote: ClientAddress,
    /// The address that the client reached.
    pub local: ClientAddress,
    /// Index into the configuration's listens.
    pub listen: usize,
    /// The scheme: `https` over TLS and QUIC.
    pub scheme: Scheme,
    /// The handshake's outcome, if there was one.
    pub tls: Option<TlsFacts>,
    /// The header of the PROXY protocol.
    pub relay: ConnRelay,
    /// When the connection was accepted.
    pub started: Now,
}

/// Whether a proxy opened the connection, by the header of the PROXY protocol.
#[derive(Clone, Debug, Default)]
pub enum ConnRelay {
    /// There was no header.
    #[default]
    Direct,
    /// A header that names no client: `UNKNOWN`, `LOCAL`, or another family of addresses.
    Unnamed,
    /// A header that names the client.
    Named(Box<ProxyFacts>),
}

impl ConnRelay {
    /// Whether the peer is the client itself, as far as is known.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        matches!(self, Self::Direct)
    }

    /// What the header says.
    #[must_use]
    pub fn facts(&self) -> Option<&ProxyFacts> {
        match self {
            Self::Named(facts) => Some(facts),
            Self::Direct | Self::Unnamed => None,
        }
    }
}

impl ConnInfo {
    /// The client that opened the connection, or that a proxy opened it for; `None` if the proxy
    /// does not name it.
    #[must_use]
    pub fn opener(&self) -> Option<ClientAddress> {
        match &self.relay {
            ConnRelay::Direct => Some(self.remote),
            ConnRelay::Unnamed => None,
            ConnRelay::Named(facts) => {
                let ip: IpAddr = facts.source.parse().ok()?;
                Some(ClientAddress::Inet((ip, facts.source_port).into()))
            }
        }
    }
}

/// What the header of the PROXY protocol says about the client.
#[derive(Clone, Debug, Default)]
pub struct ProxyFacts {
    /// The client's address as text; it may be invalid.
    pub source: Box<str>,
    /// The client's port.
    pub source_port: u16,
    /// The address that the client reached.
    pub target: Box<str>,
    /// The port that the client reached.
    pub target_port: u16,
    /// The TLVs of version 2: type, two bytes of length, value, repeated.
    pub fields: Box<[u8]>,
}

/// Why framing refused a request or its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRefusal {
    /// The status, nginx's internal codes 494 to 497 included.
    pub status: u16,
    /// For the error log, in nginx's words: `client sent invalid method`.
    pub reason: &'static str,
}

/// The context in which variables are evaluated while a response is sent.
#[derive(Clone, Copy, Debug)]
pub struct SendCtx<'a> {
    /// The turn's time.
    pub now: &'a Now,
    /// The turn's time as text.
    pub clock: &'a bolide_http::date::DateClock,
    /// The connection.
    pub conn: &'a ConnInfo,
    /// Connections and requests of the process.
    pub counters: &'a RequestTallies,
    /// `$pid`
    pub pid: u32,
}
