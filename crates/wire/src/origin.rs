//! The types that all connections to upstreams share: events, errors, the pulled request body.
//!
//! It mirrors `conn`: a machine takes a request, pulls its body when it may write, takes received
//! bytes and reports the response. It never sees a socket and reads no clock.

#[cfg(test)]
#[path = "../../fuzz-entries/src/upstream.rs"]
pub mod fuzz;

use bolide_base::SendChain;
use bolide_http::{FieldMap, OriginHead, UpstreamMessage};
use bytes::Bytes;

use crate::{BodySource, StreamOwner, fcgi, h1_client, h2_client, lsapi, memcached, per_request};

/// An event of a connection to an upstream.
#[derive(Debug)]
pub enum OriginEvent {
    /// A complete response head. After an interim response (1xx except 101) another one follows.
    /// After 101 the connection is a tunnel, see [`OriginConn::is_tunnel`].
    Head(Box<OriginHead>),
    /// Bytes of the response body.
    Body(Bytes),
    /// Text for the error log: the standard error of the application, unchanged.
    Stderr(Bytes),
    /// The body exceeded its `Content-Length`, and was truncated there; `End` follows. Log a
    /// warning: `upstream sent more data than specified in "Content-Length" header`.
    Excess,
    /// Bytes came after the last chunk, and were dropped; `End` follows. Log a warning: `upstream
    /// sent data after final chunk`.
    ExcessChunk,
    /// Memcached has no value for this key; a head with 404 follows. Log at `info`: `key: "…" was
    /// not found by memcached`.
    Missing(Bytes),
    /// What followed the value was wrong; `End` follows. Log an error: `memcached sent invalid
    /// trailer`.
    BadTrailer,
    /// The trailer fields, if there are any; `End` follows.
    Trailers(Box<FieldMap>),
    /// The response is complete.
    End {
        /// The exit status of the application; 0 is success.
        app_status: u32,
    },
}

/// The upstream violated its protocol, or closed before the response was complete. Close the
/// connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginError {
    /// The connection ended before the head was complete.
    ClosedBeforeHead,
    /// The connection ended within the body.
    ClosedWithinBody,
    /// The FastCGI stdout stream ended before the head was complete, or within the body.
    StdoutClosed,
    /// The application ended the request within the body.
    RequestClosed,
    /// The head exceeds its limit.
    HeadTooBig,
    /// The head has invalid syntax; the text for the error log.
    InvalidHead(Box<[u8]>),
    /// The framing is invalid; the text for the error log.
    Invalid(Box<[u8]>),
    /// The upstream says that it did not process the request (RFC 9113 §8.7); the text for the
    /// error log.
    Unprocessed(Box<[u8]>),
}

impl OriginError {
    /// The text for the error log, as nginx writes it, up to `while reading …`.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        match self {
            Self::ClosedBeforeHead | Self::ClosedWithinBody => {
                b"upstream prematurely closed connection"
            }
            Self::StdoutClosed => b"upstream prematurely closed FastCGI stdout",
            Self::RequestClosed => b"upstream prematurely closed FastCGI request",
            Self::HeadTooBig => b"upstream sent too big header",
            Self::InvalidHead(text) | Self::Invalid(text) | Self::Unprocessed(text) => text,
        }
    }

    /// Whether nginx counts the error as `invalid_header` of `fastcgi_next_upstream` and not as
    /// `error`, a failed connection.
    #[must_use]
    pub const fn is_invalid(&self) -> bool {
        !matches!(self, Self::ClosedBeforeHead | Self::ClosedWithinBody)
    }
}

/// The settings of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginConnSettings {
    /// LIMIT: bytes of a head, framing included.
    pub head_max: usize,
    /// Whether the connection may carry another request afterwards.
    pub keep: bool,
    /// Whether the request is `HEAD`, whose response has no body.
    pub answers_head: bool,
}

impl Default for OriginConnSettings {
    fn default() -> Self {
        Self { head_max: 8192, keep: false, answers_head: false }
    }
}

/// A connection to an upstream in any protocol. It carries one request at a time.
#[derive(Debug)]
pub enum OriginConn {
    /// FastCGI 1.0
    Fcgi(fcgi::FcgiClient),
    /// LiteSpeed's interface for applications.
    Lsapi(lsapi::LsapiClient),
    /// HTTP/1.1 or 1.0.
    Http(h1_client::H1Client),
    /// HTTP/2.
    Http2(Box<h2_client::H2Client>),
    /// Memcached's text protocol.
    Memcached(memcached::MemcachedClient),
    /// uwsgi or SCGI, as the request says.
    PerRequest(per_request::PerRequestClient),
}

/// Calls the method of the protocol's machine.
macro_rules! of_machine {
    ($conn:expr, $machine:ident => $call:expr) => {
        match $conn {
            OriginConn::Fcgi($machine) => $call,
            OriginConn::Lsapi($machine) => $call,
            OriginConn::Http($machine) => $call,
            OriginConn::Http2($machine) => $call,
            OriginConn::Memcached($machine) => $call,
            OriginConn::PerRequest($machine) => $call,
        }
    };
}

impl OriginConn {
    /// A new FastCGI connection.
    #[must_use]
    pub fn fcgi() -> Self {
        Self::Fcgi(fcgi::FcgiClient::new())
    }

    /// A new LSAPI connection.
    #[must_use]
    pub fn lsapi() -> Self {
        Self::Lsapi(lsapi::LsapiClient::new())
    }

    /// A new HTTP/1 connection.
    #[must_use]
    pub fn http() -> Self {
        Self::Http(h1_client::H1Client::new())
    }

    /// A new HTTP/2 connection.
    #[must_use]
    pub fn http2() -> Self {
        Self::Http2(Box::default())
    }

    /// A new connection to memcached.
    #[must_use]
    pub fn memcached() -> Self {
        Self::Memcached(memcached::MemcachedClient::new())
    }

    /// A new connection for a request by uwsgi or SCGI.
    #[must_use]
    pub fn per_request() -> Self {
        Self::PerRequest(per_request::PerRequestClient::new())
    }

    /// Begins a request of this connection's protocol. The connection must be idle. `body_len` is
    /// the length of the body if it is known; `Some(0)` means that none will be pulled. LSAPI,
    /// uwsgi and SCGI must know it, see [`Self::is_broken`]; HTTP/1 sends a body of unknown length
    /// in chunks.
    pub fn start(
        &mut self,
        message: &UpstreamMessage,
        body_len: Option<u64>,
        settings: &OriginConnSettings,
    ) {
        match (self, message) {
            (Self::Fcgi(client), UpstreamMessage::Cgi(params)) => {
                client.start(params, body_len, settings);
            }
            (Self::Lsapi(client), UpstreamMessage::Cgi(params)) => {
                client.start(params, body_len, settings);
            }
            (Self::Http(client), UpstreamMessage::Http(head)) => {
                client.start(head, body_len, settings);
            }
            (Self::Http2(client), UpstreamMessage::Http2(asked)) => {
                client.start(asked, body_len, settings);
            }
            (Self::Memcached(client), UpstreamMessage::Memcached(get)) => {
                client.start(get, settings);
            }
            (Self::PerRequest(client), UpstreamMessage::App(asked)) => {
                client.start(asked, body_len, settings);
            }
            (
                Self::Fcgi(_)
                | Self::Lsapi(_)
                | Self::Http(_)
                | Self::Http2(_)
                | Self::Memcached(_)
                | Self::PerRequest(_),
                _,
            ) => {
                unreachable!("a connection is asked in its own protocol")
            }
        }
    }

    /// Appends about `room` bytes of what can be sent now: queued bytes, even where `room` is less,
    /// then as much of the body of `user` as fits.
    pub fn transmit(
        &mut self,
        room: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) {
        of_machine!(self, machine => machine.transmit(room, out, user, body));
    }

    /// A body that was `Pending` has bytes again, or ended. A tunnel pulls from the first call on.
    pub const fn body_ready(&mut self) {
        of_machine!(self, machine => machine.body_ready());
    }

    /// Whether something can be sent now.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        of_machine!(self, machine => machine.has_output())
    }

    /// Whether the body waits until the upstream opens a window.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        match self {
            Self::Http2(client) => client.is_blocked(),
            Self::Fcgi(_)
            | Self::Lsapi(_)
            | Self::Http(_)
            | Self::Memcached(_)
            | Self::PerRequest(_) => false,
        }
    }

    /// Whether the whole request was handed over (not: written to the socket).
    #[must_use]
    pub const fn is_request_sent(&self) -> bool {
        of_machine!(self, machine => machine.is_request_sent())
    }

    /// Whether the request cannot be completed: its body failed, or the protocol cannot encode it
    /// (LSAPI: a body of unknown length, more than 256 KiB of params, a variable of 64 KiB; HTTP: a
    /// field with CR, LF or NUL; uwsgi and SCGI: a body of unknown length; uwsgi: 64 KiB of
    /// variables; SCGI: a variable with NUL). Nothing more is sent.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        of_machine!(self, machine => machine.is_broken())
    }

    /// Receives bytes of the upstream. Returns the number of consumed bytes, which is all of them
    /// unless it fails.
    ///
    /// # Errors
    ///
    /// [`OriginError`]; the connection must then be closed. Events before it stay valid.
    pub fn receive(
        &mut self,
        input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<usize, OriginError> {
        of_machine!(self, machine => machine.receive(input, events))
    }

    /// Handles the end of input. Reports the end of the response where nginx accepts it.
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the response is incomplete.
    pub fn handle_eof(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        of_machine!(self, machine => machine.handle_eof(events))
    }

    /// Whether the upstream switched to the protocol of an `Upgrade` field (RFC 9110 §7.8). From
    /// then on all received bytes are `Body`, until the upstream closes, which is `End`. The bytes
    /// of the body source are sent without framing, once [`Self::body_ready`] was called; their end
    /// makes [`Self::is_request_sent`] true. The connection cannot carry another request.
    #[must_use]
    pub const fn is_tunnel(&self) -> bool {
        match self {
            Self::Http(client) => client.is_tunnel(),
            Self::PerRequest(client) => client.is_tunnel(),
            Self::Fcgi(_) | Self::Lsapi(_) | Self::Http2(_) | Self::Memcached(_) => false,
        }
    }

    /// Queues an abort: the response is no longer needed, and no more of the body is pulled.
    pub fn abort(&mut self) {
        of_machine!(self, machine => machine.abort());
    }

    /// Whether the connection may carry a request: it is new, or its last request and response are
    /// complete and both sides keep it alive.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        of_machine!(self, machine => machine.is_idle())
    }

    /// Bytes of the response that are buffered until the rest arrives.
    #[must_use]
    pub fn held(&self) -> usize {
        of_machine!(self, machine => machine.held())
    }
}
