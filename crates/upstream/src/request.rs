//! What is asked of an origin, and what is told of it: the words between exchange and fetch.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;

use bolide_base::Spool;
use bolide_conf::model::{LogLevel, OriginSettings, PeerAddress, Protocol};
use bolide_http::{FieldMap, OriginHead, Params};
use bytes::Bytes;

/// A request to an origin.
#[derive(Debug)]
pub struct OriginRequest {
    /// Who is asked.
    pub target: PassTarget,
    /// What is spoken.
    pub protocol: Protocol,
    /// Timeouts, sizes, retries.
    pub settings: Arc<OriginSettings>,
    /// What the application is told.
    pub params: Params,
    /// The request body: complete, or growing while it is sent.
    pub body: Spool,
    /// How long the body is, if that is known.
    pub body_len: Option<u64>,
    /// Whether the same request may be made twice (RFC 9110 §9.2.2).
    pub is_idempotent: bool,
    /// What `hash` goes by; for `ip_hash` the 4 or 16 octets of the client's address, none for a
    /// unix socket; empty otherwise.
    pub affinity: Vec<u8>,
    /// By which address of ours it is called, if that is not left to the system.
    pub from: Option<LocalAddress>,
    /// `fastcgi_limit_rate` in bytes per second; 0 is no limit.
    pub rate: u64,
    /// How it is kept secret, if it is.
    pub secure: Option<Box<Secure>>,
}

impl OriginRequest {
    /// Connections of different channels are never taken for one another; 0 is in the clear.
    pub(crate) fn channel(&self) -> u64 {
        self.secure.as_ref().map_or(0, |secure| secure.channel())
    }
}

/// What makes TLS to an origin what it is: connections and sessions that differ in any of it have
/// nothing in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Secure {
    /// The number of the site.
    pub site: u64,
    /// Which of its settings for TLS to origins.
    pub settings: u32,
    /// Who the origin should be.
    pub name: Box<[u8]>,
    /// The certificate and the key that are shown, where variables name them.
    pub certificate: Option<[Box<[u8]>; 2]>,
}

impl Secure {
    fn channel(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish() | 1
    }
}

/// An address of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Port 0 is any.
    pub at: SocketAddr,
    /// As it was written.
    pub text: Arc<str>,
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassTarget {
    /// A group of the configuration: an index into its upstreams.
    Group(bolide_conf::model::UpstreamId),
    /// An address that variables made.
    Address(PeerAddress),
}

/// What an exchange is told about its request to an origin.
#[derive(Debug)]
pub enum OriginNews {
    /// A head that more heads follow: 103.
    Early(Box<OriginHead>),
    /// The head of the answer.
    Head(Box<OriginHead>),
    /// Part of its body.
    Body(Bytes),
    /// The fields behind its body.
    Trailers(Box<FieldMap>),
    /// The answer is complete. Nothing more is told.
    End,
    /// There is no answer, or none that is complete. Nothing more is told.
    Failed(ConnectRefused),
    /// How the newest attempt stands: told when it begins, before the head, and when it is over,
    /// before what became of the request as a whole. What follows one that is over is of another.
    Attempt(Attempt),
    /// A line for the error log; the exchange says who asked for what.
    Log {
        /// How bad it is.
        level: LogLevel,
        /// The text, in nginx's words, up to what was being done:
        /// `connect() to unix:/run/php.sock failed (2: No such file or directory)`.
        text: Vec<u8>,
        /// What was being done: `while connecting to upstream`; empty for none.
        doing: &'static str,
        /// Who was asked; none before one was chosen. The exchange writes `fastcgi://` before it.
        peer: Option<Arc<str>>,
    },
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRefused {
    /// 502, 503, 504; of no interest once a head was told.
    pub status: u16,
    /// Seconds after which the client may try again, for `Retry-After`.
    pub retry_after: Option<u32>,
    /// What went wrong.
    pub cause: Cause,
}

/// What goes wrong with an origin, as far as it matters to who has an old answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nobody to ask, no connection, or it was lost.
    Error,
    /// A time limit.
    Timeout,
    /// A head that is none.
    InvalidHead,
    /// All are busy.
    Busy,
}

/// One attempt, for `$upstream_*`. Times are milliseconds since the attempt began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Who was asked: an address, or the name of a group without a server that lives.
    pub peer: Arc<str>,
    /// The status that came; 502, 503 or 504 when none did, 0 when nobody waited for it any more.
    pub status: u16,
    /// Until the connection stood; none if it never did.
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
    /// Whether it is over; what comes next is another attempt.
    pub is_over: bool,
}
