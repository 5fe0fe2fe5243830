//! Servers: names, the settings that apply before a location is known, TLS.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{LocationId, SourcePlace, TlsConf};
use crate::regex::Regex;

/// An index into [`super::Http::servers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u32);

impl ServerId {
    /// The position in the list.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A `server` block.
#[derive(Clone, Debug)]
pub struct ServerConf {
    /// Every name, as written and in order; no `server_name` is one empty exact name.
    pub names: Vec<ServerName>,
    /// The first name in the form of `$server_name`: of `.a.com`, `a.com`; of a regex, `~…`.
    pub primary_name: Arc<str>,
    /// `http2 on`: HTTP/2 over TLS by ALPN, and in the clear by its preface.
    pub http2: bool,
    /// `http3` (on by default); only matters where a `quic` listener is.
    pub http3: bool,
    /// `ssl_*`; every server has it, whether or not it listens with TLS.
    pub tls: Arc<TlsConf>,
    /// The port to which requests without TLS are redirected (`auto_https`).
    pub redirects_to: Option<u16>,
    /// The block itself as the location for requests that match none.
    pub root: LocationId,
    /// The settings from the first byte on, before a location is known.
    pub settings: Arc<ServerSettings>,
    /// Where it was written.
    pub place: SourcePlace,
    /// Where it ends.
    pub closed: SourcePlace,
}

/// One name of a server; text is in lower case.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerName {
    /// `www.a.com`; empty matches a missing host.
    Exact(Box<str>),
    /// `*.a.com`: holds `.a.com`. Matches longer names with that suffix.
    Suffix(Box<str>),
    /// `.a.com`: holds `.a.com`. Matches `a.com` and all `*.a.com`.
    SuffixOrSelf(Box<str>),
    /// `www.*`: holds `www.`. Matches longer names with that prefix.
    Prefix(Box<str>),
    /// `~re`; case-insensitive when it has upper-case letters, as in nginx.
    Regex(Regex),
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) | Self::SuffixOrSelf(text) => f.write_str(text),
            Self::Suffix(text) => write!(f, "*{text}"),
            Self::Prefix(text) => write!(f, "{text}*"),
            Self::Regex(regex) => write!(f, "~{}", String::from_utf8_lossy(regex.source())),
        }
    }
}

/// The settings of a server from the first byte of a request on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// `connection_pool_size`; accepted.
    pub connection_pool_size: usize,
    /// `request_pool_size`; accepted.
    pub request_pool_size: usize,
    /// `client_header_timeout`
    pub client_header_timeout: Duration,
    /// `client_header_buffer_size` in bytes.
    pub client_header_buffer_size: usize,
    /// `large_client_header_buffers`: how many.
    pub large_client_header_buffers: u32,
    /// `large_client_header_buffers`: bytes of each; no line may be longer.
    pub large_client_header_buffer_size: usize,
    /// `max_headers`: fields in a request head.
    pub max_headers: u32,
    /// `ignore_invalid_headers`
    pub ignore_invalid_headers: bool,
    /// `underscores_in_headers`
    pub underscores_in_headers: bool,
    /// `merge_slashes`
    pub merge_slashes: bool,
    /// `http2_*`
    pub h2: Http2,
    /// `http3_*`, `quic_*`
    pub h3: Http3,
}

/// `http2_*` of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// `http2_max_concurrent_streams`
    pub max_concurrent_streams: u32,
    /// `http2_body_preread_size`: bytes of a body that may arrive before it is read.
    pub body_preread_size: u32,
}

/// `http3_alt_svc`: what clients over TCP are told of HTTP/3 (RFC 7838).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AltSvc {
    /// The port of a QUIC listener of the server.
    Listener,
    /// This port, at which clients reach such a listener.
    Port(u16),
    /// Nothing.
    Off,
}

/// `http3_*` and `quic_*` of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http3 {
    /// `http3_max_concurrent_streams`
    pub max_concurrent_streams: u32,
    /// `http3_stream_buffer_size` in bytes, where it is written.
    pub stream_buffer_size: Option<usize>,
    /// `quic_retry`: whether clients must validate their address first.
    pub retry: bool,
    /// `quic_gso`: whether the kernel may cut datagrams.
    pub gso: bool,
    /// `quic_active_connection_id_limit`
    pub active_connection_id_limit: u32,
    /// `http3_alt_svc`
    pub alt_svc: AltSvc,
    /// `quic_host_key`: file of the secret for tokens, and the place of the directive.
    pub host_key: Option<(std::path::PathBuf, SourcePlace)>,
}
