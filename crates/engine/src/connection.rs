//! What is known of a client's connection, the same for all its requests.
//!
//! Values only: the worker fills them in once, requests read them.

use std::net::SocketAddr;
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
    pub const fn ip(self) -> Option<std::net::IpAddr> {
        match self {
            Self::Inet(addr) => Some(addr.ip()),
            Self::Unix => None,
        }
    }
}

/// What the handshake settled.
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
    /// The name that the client asked for.
    pub server_name: Option<Box<str>>,
    /// Whether a session was resumed.
    pub reused: bool,
    /// Ciphers and groups that the client offered, where a variable or a log names them.
    pub offers: Option<Box<(Box<str>, Box<str>)>>,
    /// What the session is called, where a variable or a log names them.
    pub session_id: Option<Box<[u8]>>,
    /// How our side signed.
    pub signature: &'static str,
    /// How the client signed.
    pub client_signature: &'static str,
    /// What the client's certificate says and is worth, where one is asked for.
    pub client: Option<Arc<ClientCert>>,
}

/// What is known of a connection, the same for all its requests.
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
    /// Whether TLS or QUIC is spoken.
    pub scheme: Scheme,
    /// The handshake's outcome, if there was one.
    pub tls: Option<TlsFacts>,
    /// What the PROXY protocol said of the client, if it did.
    pub proxy: Option<Box<ProxyFacts>>,
    /// When the connection was accepted.
    pub started: Now,
}

/// What a balancer says of a connection that it hands on (PROXY protocol).
#[derive(Clone, Debug, Default)]
pub struct ProxyFacts {
    /// The client's address as text, maybe not a good one.
    pub source: Box<str>,
    /// The client's port.
    pub source_port: u16,
    /// The address that the client reached.
    pub target: Box<str>,
    /// The port that the client reached.
    pub target_port: u16,
    /// Further fields of version 2: type, two bytes of length, value, and again.
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

/// What there is to know beside an exchange whose answer leaves.
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
