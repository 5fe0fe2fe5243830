//! What connections to origins have in common: events, errors, the pulled request body.
//!
//! Mirrors `conn`: a machine is given a request, pulls its body when it may write, is fed bytes and
//! tells what the origin said. It never sees a socket and reads no clock.

pub mod fuzz;

use bolide_base::SendChain;
use bolide_http::{FieldMap, OriginHead, Params};
use bytes::Bytes;

use crate::{BodySource, StreamOwner, fcgi, h1_client, lsapi};

/// What an origin did.
#[derive(Debug)]
pub enum OriginEvent {
    /// A complete head of the answer. After one with a 1xx status (101 excepted) another comes;
    /// after 101 the connection is a tunnel: see [`OriginConn::is_tunnel`].
    Head(Box<OriginHead>),
    /// Part of the answer's body.
    Body(Bytes),
    /// Text for the error log: what the application wrote to its standard error, as it wrote it.
    Stderr(Bytes),
    /// The body went on behind its `Content-Length`, where it was cut; `End` follows. A warning:
    /// `upstream sent more data than specified in "Content-Length" header`.
    Excess,
    /// Bytes came behind the last chunk, and were dropped; `End` follows. A warning: `upstream sent
    /// data after final chunk`.
    ExcessChunk,
    /// The fields behind the last chunk, if there are any; `End` follows.
    Trailers(Box<FieldMap>),
    /// The answer is complete.
    End {
        /// What the application ended with; 0 is in order.
        app_status: u32,
    },
}

/// The origin broke its protocol, or ended before its answer did. The connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginError {
    /// The connection ended before the head was complete.
    ClosedBeforeHead,
    /// The connection ended within the body.
    ClosedWithinBody,
    /// FastCGI's stream of the answer ended before the head was complete, or within the body.
    StdoutClosed,
    /// The application ended the request within the body.
    RequestClosed,
    /// The head is larger than it may be.
    HeadTooBig,
    /// The head breaks its grammar; the text for the error log.
    InvalidHead(Box<[u8]>),
    /// Framing that is none; the text for the error log.
    Invalid(Box<[u8]>),
}

impl OriginError {
    /// What the error log says, in nginx's words, up to `while reading …`.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        match self {
            Self::ClosedBeforeHead | Self::ClosedWithinBody => {
                b"upstream prematurely closed connection"
            }
            Self::StdoutClosed => b"upstream prematurely closed FastCGI stdout",
            Self::RequestClosed => b"upstream prematurely closed FastCGI request",
            Self::HeadTooBig => b"upstream sent too big header",
            Self::InvalidHead(text) | Self::Invalid(text) => text,
        }
    }

    /// Whether nginx takes it for an answer that makes no sense (`invalid_header` of
    /// `fastcgi_next_upstream`) and not for a connection that failed (`error`).
    #[must_use]
    pub const fn is_invalid(&self) -> bool {
        !matches!(self, Self::ClosedBeforeHead | Self::ClosedWithinBody)
    }
}

/// What a connection is told with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginConnSettings {
    /// The most bytes of one head, framing included.
    pub head_max: usize,
    /// Whether the connection may carry another request afterwards.
    pub keep: bool,
    /// Whether the request was `HEAD`, whose answer has no body.
    pub answers_head: bool,
}

impl Default for OriginConnSettings {
    fn default() -> Self {
        Self { head_max: 8192, keep: false, answers_head: false }
    }
}

/// A connection to an origin, whatever it speaks. It carries one request at a time.
#[derive(Debug)]
pub enum OriginConn {
    /// FastCGI 1.0
    Fcgi(fcgi::FcgiClient),
    /// LiteSpeed's interface for applications.
    Lsapi(lsapi::LsapiClient),
    /// HTTP/1.1 or 1.0.
    Http(h1_client::H1Client),
}

/// Calls the method of the machine inside.
macro_rules! of_machine {
    ($conn:expr, $machine:ident => $call:expr) => {
        match $conn {
            OriginConn::Fcgi($machine) => $call,
            OriginConn::Lsapi($machine) => $call,
            OriginConn::Http($machine) => $call,
        }
    };
}

impl OriginConn {
    /// A fresh connection that speaks FastCGI.
    #[must_use]
    pub fn fcgi() -> Self {
        Self::Fcgi(fcgi::FcgiClient::new())
    }

    /// A fresh connection that speaks LSAPI.
    #[must_use]
    pub fn lsapi() -> Self {
        Self::Lsapi(lsapi::LsapiClient::new())
    }

    /// A fresh connection that speaks HTTP/1.
    #[must_use]
    pub fn http() -> Self {
        Self::Http(h1_client::H1Client::new())
    }

    /// Begins a request. The connection must be idle. `body_len` is the length of the body if it
    /// is known; `Some(0)` means that none will be pulled. LSAPI must know it: see
    /// [`Self::is_broken`]. The first `params` of HTTP are `:method`, `:target` and `:version`
    /// (`1.1` or `1.0`), and the others its fields as they leave, those of the framing included;
    /// a body of unknown length leaves in chunks.
    pub fn start(&mut self, params: &Params, body_len: Option<u64>, settings: &OriginConnSettings) {
        of_machine!(self, machine => machine.start(params, body_len, settings));
    }

    /// Appends what may leave now, about `room` bytes of it: what is queued, even where `room` is
    /// less, then as much of `user`'s body as fits.
    pub fn transmit(
        &mut self,
        room: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) {
        of_machine!(self, machine => machine.transmit(room, out, user, body));
    }

    /// A body that was `Pending` has bytes again, or its end. A tunnel pulls from the first call
    /// on.
    pub const fn body_ready(&mut self) {
        of_machine!(self, machine => machine.body_ready());
    }

    /// Whether something can be sent now.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        of_machine!(self, machine => machine.has_output())
    }

    /// Whether all of the request was handed over (not: written to the socket).
    #[must_use]
    pub const fn is_request_sent(&self) -> bool {
        of_machine!(self, machine => machine.is_request_sent())
    }

    /// Whether the request cannot be completed: its body broke, or the protocol cannot carry it
    /// (LSAPI: a body of unknown length, more than 256 KiB of params, a variable of 64 KiB; HTTP: a
    /// param with a line end or a zero in it).
    /// Nothing more will leave.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        of_machine!(self, machine => machine.is_broken())
    }

    /// Takes what the origin sent; says how much of it was used, which is all unless it failed.
    /// Nothing has to be kept and given again.
    ///
    /// # Errors
    ///
    /// [`OriginError`], after which the connection is over. Events told before it stand.
    pub fn receive(
        &mut self,
        input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<usize, OriginError> {
        of_machine!(self, machine => machine.receive(input, events))
    }

    /// The origin closed its side. Tells the end of the answer where nginx lets it end so.
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the answer was not complete.
    pub fn handle_eof(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        of_machine!(self, machine => machine.handle_eof(events))
    }

    /// Whether the origin switched to the protocol that an `Upgrade` field asked for (RFC 9110
    /// §7.8). From then on everything that comes is `Body`, until the origin closes, which is
    /// `End`; and all that the body source gives leaves as it is, once [`Self::body_ready`] was
    /// called. Its end makes [`Self::is_request_sent`] true; the connection carries nothing else
    /// ever.
    #[must_use]
    pub const fn is_tunnel(&self) -> bool {
        match self {
            Self::Http(client) => client.is_tunnel(),
            Self::Fcgi(_) | Self::Lsapi(_) => false,
        }
    }

    /// Queues the word that nobody waits for the answer any more; no more of the body is pulled.
    pub fn abort(&mut self) {
        of_machine!(self, machine => machine.abort());
    }

    /// Whether the connection may carry a request: it is fresh, or the last one was sent and
    /// answered completely and both sides wanted to go on.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        of_machine!(self, machine => machine.is_idle())
    }

    /// Bytes of the answer that are kept until the rest of them arrives.
    pub(crate) const fn held(&self) -> usize {
        of_machine!(self, machine => machine.held())
    }
}
