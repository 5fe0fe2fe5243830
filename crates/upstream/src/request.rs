//! The interface between exchange and fetch: the request to an upstream, and the news of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::Spool;
use bolide_conf::model::{LogLevel, NameServers, OriginSettings, PeerAddress, Protocol};
use bolide_http::{FieldMap, OriginHead, UpstreamMessage};
use bytes::Bytes;

use crate::sticky::PeerBond;

/// A request to an upstream.
#[derive(Debug)]
pub struct OriginRequest {
    /// The target.
    pub target: PassTarget,
    /// The protocol.
    pub protocol: Protocol,
    /// Timeouts, sizes, retries.
    pub settings: Arc<OriginSettings>,
    /// Parameters, head or key, as the protocol has it.
    pub message: UpstreamMessage,
    /// The request body: complete, or growing while it is sent.
    pub body: Spool,
    /// The length of the body, if it is known.
    pub body_len: Option<u64>,
    /// Whether the same request may be made twice (RFC 9110 §9.2.2).
    pub is_idempotent: bool,
    /// The key of `hash`; for `ip_hash` the 4 or 16 octets of the client's address, empty for a
    /// unix socket; empty otherwise.
    pub affinity: Vec<u8>,
    /// What binds it to a server of a group with `sticky`: the id of the server or, with `sticky
    /// learn`, the name of a session; empty for nothing.
    pub bound_by: Vec<u8>,
    /// The local address of the connection, unless the system chooses.
    pub from: Option<LocalAddress>,
    /// `fastcgi_limit_rate` in bytes per second; 0 is no limit.
    pub rate: u64,
    /// The TLS settings, if any.
    pub secure: Option<Arc<Secure>>,
}

/// The identity of TLS to an upstream: connections and sessions that differ in any field share
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secure {
    /// The number of the site.
    pub site: u64,
    /// The index of its settings for TLS to upstreams.
    pub settings: u32,
    /// The expected server name.
    pub name: Box<[u8]>,
    /// The client certificate and its key, where variables name them.
    pub certificate: Option<[Box<[u8]>; 2]>,
}

/// A local address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Port 0 is any.
    pub at: SocketAddr,
    /// As it was written.
    pub text: Arc<str>,
}

/// The target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassTarget {
    /// A group of the configuration: an index into its upstreams.
    Group(bolide_conf::model::UpstreamId),
    /// An address computed from variables.
    Address(PeerAddress),
    /// A name computed from variables, to be looked up.
    Name(Box<NameTarget>),
}

/// A name to be looked up for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTarget {
    /// The host.
    pub host: Box<[u8]>,
    /// The port of its addresses.
    pub port: u16,
    /// The servers to ask.
    pub servers: Arc<NameServers>,
    /// `resolver_timeout`
    pub timeout: Duration,
}

/// News for an exchange about its upstream request.
#[derive(Debug)]
pub enum OriginNews {
    /// An interim response: 103.
    Early(Box<OriginHead>),
    /// The head of a response that is not used, because another server is tried.
    Unused(Box<OriginHead>),
    /// The head of the response.
    Head(Box<OriginHead>),
    /// Part of its body.
    Body(Bytes),
    /// The trailer fields.
    Trailers(Box<FieldMap>),
    /// The response is complete. No more news follow.
    End,
    /// There is no complete response. No more news follow.
    Failed(ConnectRefused),
    /// The state of the newest attempt: sent at its beginning, before the head, and at its end,
    /// before the result of the whole request. After an attempt that is over, the next news belong
    /// to another one.
    Attempt(Box<Attempt>),
    /// A line for the error log; the exchange adds client and request.
    Log(Box<OriginLogLine>),
}

/// What an upstream request has for the error log.
#[derive(Debug)]
pub struct OriginLogLine {
    /// How bad it is.
    pub level: LogLevel,
    /// The text, in nginx's words, without the action: `connect() to unix:/run/php.sock failed
    /// (2: No such file or directory)`.
    pub text: Vec<u8>,
    /// The action: `while connecting to upstream`; empty for none.
    pub doing: &'static str,
    /// The server; `None` before one was chosen. The exchange prefixes `fastcgi://`.
    pub peer: Option<Arc<str>>,
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRefused {
    /// 502, 503, 504; unused once a head was delivered.
    pub status: u16,
    /// Seconds after which the client may try again, for `Retry-After`.
    pub retry_after: Option<u32>,
    /// The cause.
    pub cause: Cause,
}

/// Causes of failure, as far as they matter for `use_stale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No server available, no connection, or a lost one.
    Error,
    /// A time limit.
    Timeout,
    /// A malformed head.
    InvalidHead,
    /// All are busy.
    Busy,
    /// The name of the server is not known.
    Unresolved,
}

/// One attempt, for `$upstream_*`. Times are milliseconds since the attempt began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The server: an address, or the name of a group without an available server.
    pub peer: Arc<str>,
    /// That server, if its group binds clients to servers.
    pub bond: Option<PeerBond>,
    /// The status received; 502, 503 or 504 when none was, 0 when the request was abandoned.
    pub status: u16,
    /// The time until the connection was established; `None` if it never was.
    pub connect_ms: Option<u64>,
    /// Until the head was complete.
    pub header_ms: Option<u64>,
    /// Until it was over.
    pub response_ms: u64,
    /// Bytes of the body.
    pub response_len: u64,
    /// Bytes received, framing included.
    pub bytes_received: u64,
    /// Bytes sent, framing included.
    pub bytes_sent: u64,
    /// Whether it is over; later news belong to another attempt.
    pub is_over: bool,
}
