//! The HTTP/1.x server machine (RFC 9112): one request and its response, then the next.
//!
//! Owns framing in both directions and the life of the connection between requests. A request that
//! two recipients could parse differently is refused, and the connection closes.
//!
//! ```text
//!            ┌────────────────── next request ◀─────────────────┐
//!            ▼                                                  │
//!  input:  Head ──▶ Body ──▶ Complete ──(response appended)─────┤
//!            │        │ (response appended first: drained) ─────┘
//!            └────────┴──▶ Discarding      errors, Connection: close, end of input
//!                           Complete ─(101 with a body of unknown length)─▶ Tunnel ─▶ Silent
//!
//!  answer: Idle ──Request──▶ Wanted ──respond──▶ Sending ──▶ Idle
//!                                                   └──────▶ Done   while the body is drained
//! ```
//!
//! INVARIANT: no byte behind a request is parsed before the response to that request was appended
//! *and* its body was read to the end; else a body could be parsed as a request.

mod body;
mod conn;
#[cfg(test)]
#[path = "../../fuzz-entries/src/h1.rs"]
pub mod fuzz;
pub(crate) mod grammar;
mod head;
mod line;
mod replay;
mod response;
mod send;
#[cfg(test)]
mod tests;

use bolide_http::{HttpVersion, Scheme};

use crate::{StreamId, StreamOwner};
use body::BodyDecoder;
use head::{After, H1HeadParser};
use replay::ReplayH1;
pub use replay::Replies;
use response::{BodyFraming, RequestFacts, Wants};

/// LIMIT: bytes of an unread body that are drained to keep a connection. A connection with more
/// closes.
const DRAIN_SIZE_MAX: u64 = 64 << 20;
/// LIMIT: bytes of the head buffer that a connection keeps between requests.
const OUTPUT_KEPT_MAX: usize = 1024;

/// The configuration of the HTTP/1 connections of one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H1Settings {
    /// The scheme of this listener. The machine accepts both schemes in absolute-form targets.
    pub scheme: Scheme,
    /// `client_header_buffer_size` in bytes: for the first lines of a head, as many as fit.
    pub header_buffer_size: usize,
    /// `large_client_header_buffers`: the number of buffers for the lines behind them.
    pub large_buffers: u16,
    /// `large_client_header_buffers`: bytes of each buffer. A line must fit in one buffer.
    pub large_buffer_size: usize,
    /// `max_headers`: the number of fields that a head may have.
    pub fields_max: u32,
    /// `underscores_in_headers`: whether names with `_` are valid.
    pub underscores_in_headers: bool,
    /// `ignore_invalid_headers`: whether fields with names outside letters, digits and `-` are
    /// dropped.
    pub ignore_invalid_headers: bool,
    /// `keepalive_requests`: requests after which a connection closes.
    pub keepalive_requests: u64,
    /// Whether these settings depend on the requested host. Then parsing stops behind the host, and
    /// [`H1Conn::take_host`] returns it.
    pub asks_host: bool,
}

impl Default for H1Settings {
    fn default() -> Self {
        Self {
            scheme: Scheme::Http,
            header_buffer_size: 1024,
            large_buffers: 4,
            large_buffer_size: 8 * 1024,
            fields_max: bolide_base::limits::FIELDS_MAX as u32,
            underscores_in_headers: false,
            ignore_invalid_headers: true,
            keepalive_requests: 1000,
            asks_host: false,
        }
    }
}

impl H1Settings {
    /// LIMIT: bytes of the largest head.
    const fn head_size_max(&self) -> usize {
        self.large_buffer_size
            .saturating_mul(self.large_buffers as usize)
            .saturating_add(self.header_buffer_size)
    }
}

/// What the machine expects next from the peer.
#[derive(Clone, Debug)]
enum Input {
    /// A request head.
    Head,
    /// The rest of a request body.
    Body(BodyDecoder),
    /// Nothing: the request is complete and the response is not.
    Complete,
    /// Bytes of another protocol, up to the end of the client's side.
    Tunnel,
    /// Nothing: the client ended its side of a tunnel.
    Silent,
    /// Nothing: received bytes are discarded, and the connection closes.
    Discarding,
}

/// The state of the response to the current request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// There is no request.
    Idle,
    /// The response has not begun.
    Wanted,
    /// The head is queued or sent, and the body is being pulled.
    Sending(BodyFraming),
    /// The response is appended completely, and the request body is still being drained.
    Done,
}

/// The consumer of the request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Exchange,
    Discarded,
}

/// Whether the client still waits for `100 (Continue)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expectation {
    None,
    Waiting,
}

/// Whether the body source has bytes available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Ready,
    Pending,
    /// The pace of the response holds its head.
    Held,
}

/// One HTTP/1.x client connection.
///
/// Drive it in a loop: offer the kept bytes to [`Self::receive`], handle the events ([`Self::bind`]
/// at once), drop the consumed bytes, and repeat until nothing was consumed. A request head with a
/// body ends a call, so that the owner is bound before the first body event. After
/// [`Self::transmit`] offer kept bytes again: the next request may be among them.
#[derive(Debug)]
pub struct H1Conn {
    parser: H1HeadParser,
    said: ReplayH1,
    input: Input,
    answer: Answer,
    /// Interim responses and the head of the final response.
    output: Vec<u8>,
    /// Heads received; identifies the current request.
    requests: u64,
    user: StreamOwner,
    /// Body bytes of the response that were appended, including chunked framing.
    sent: u64,
    /// Bytes of the response head.
    head_sent: u32,
    /// Body bytes drained after the response.
    drained: u64,
    /// Body bytes given to the owner that it has not consumed. At most the body window.
    ahead: u32,
    /// Bytes that the last `receive` did not consume.
    held: u32,
    asked: RequestFacts,
    after: After,
    reader: Reader,
    expectation: Expectation,
    source: Source,
    /// The peer has closed its side.
    ended: bool,
    /// The response was truncated.
    broken: bool,
    /// The end of the connection would look like that of the truncated body.
    hides_break: bool,
    /// The peer may still be sending bytes that will not be read.
    lingers: bool,
    /// The next response is the last.
    going: bool,
    /// The response ends with trailer fields.
    trailed: bool,
    /// The response has a pace, which its head keeps to.
    paced: bool,
    /// The next head had begun when the previous response was complete.
    pipelined: bool,
}

// An idle connection holds nothing but this struct: ten thousand of them must stay cheap.
const _: () = assert!(size_of::<H1Conn>() <= 200);

impl Default for H1Conn {
    fn default() -> Self {
        Self {
            parser: H1HeadParser::default(),
            said: ReplayH1::default(),
            input: Input::Head,
            answer: Answer::Idle,
            output: Vec::new(),
            requests: 0,
            user: crate::conn::UNBOUND,
            sent: 0,
            head_sent: 0,
            drained: 0,
            ahead: 0,
            held: 0,
            asked: RequestFacts { version: HttpVersion::Http11, wants: Wants::Body },
            after: After::KeepAlive,
            reader: Reader::Exchange,
            expectation: Expectation::None,
            source: Source::Ready,
            ended: false,
            broken: false,
            hides_break: false,
            lingers: false,
            going: false,
            trailed: false,
            paced: false,
            pipelined: false,
        }
    }
}

impl H1Conn {
    /// A new connection. It holds no buffer until the first response.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the owner of the request on `stream`.
    pub fn bind(&mut self, stream: StreamId, user: StreamOwner) {
        if self.is_current(stream) {
            self.user = user;
        }
    }

    /// The owner of the request whose response is incomplete.
    pub fn users(&self) -> impl Iterator<Item = StreamOwner> {
        let waits = matches!(self.answer, Answer::Wanted | Answer::Sending(_));
        (waits && self.user != crate::conn::UNBOUND).then_some(self.user).into_iter()
    }

    /// Whether the body of an answered request is still being drained.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        matches!(self.answer, Answer::Done)
    }

    /// Discards the request body from now on. [`crate::WireEvent::BodyEnd`] still comes.
    pub fn discard_body(&mut self, stream: StreamId) {
        if self.is_current(stream) {
            self.reader = Reader::Discarded;
            self.ahead = 0;
        }
    }

    /// Returns the room of `bytes` body bytes; then offer kept bytes again. At most
    /// [`bolide_base::limits::BODY_WINDOW`] bytes are outstanding.
    pub fn body_consumed(&mut self, stream: StreamId, bytes: usize) {
        if self.is_current(stream) {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.ahead = self.ahead.saturating_sub(bytes);
        }
    }

    /// Whether to read the socket now: not while a complete request waits for its response and
    /// pipelined bytes are held, nor while the body window is full.
    #[must_use]
    pub const fn wants_input(&self) -> bool {
        if self.ended || self.broken {
            return false;
        }
        match self.input {
            Input::Head => true,
            Input::Body(_) | Input::Tunnel => self.body_room() > 0,
            Input::Complete => self.held == 0,
            Input::Silent => false,
            Input::Discarding => matches!(self.answer, Answer::Idle),
        }
    }

    /// Whether a response with 101 switched the connection to another protocol, see
    /// [`Self::respond`]. The client may be silent for any time, and may end its side.
    #[must_use]
    pub const fn is_tunnel(&self) -> bool {
        matches!(self.input, Input::Tunnel | Input::Silent)
    }

    /// Whether the connection is idle between requests: nothing queued and no head begun.
    #[must_use]
    #[allow(clippy::inline_always, reason = "measured: 30 instructions of a hit")]
    #[inline(always)]
    pub const fn is_idle(&self) -> bool {
        matches!((&self.input, self.answer), (Input::Head, Answer::Idle))
            && self.parser.is_empty()
            && self.held == 0
            && self.output.is_empty()
    }

    /// Whether [`Self::transmit`] could append bytes now.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        if matches!(self.source, Source::Held) {
            return false;
        }
        let ready = matches!(
            (self.answer, self.source),
            (Answer::Sending(BodyFraming::Empty), _) | (Answer::Sending(_), Source::Ready)
        );
        !self.output.is_empty() || ready
    }

    /// Whether the connection closes after the appended bytes are sent.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        self.broken || matches!((&self.input, self.answer), (Input::Discarding, Answer::Idle))
    }

    /// Whether a request has been received whose response has not begun.
    #[must_use]
    pub const fn owes_head(&self) -> bool {
        matches!(self.answer, Answer::Wanted)
    }

    /// Whether a response is in progress. A close now must not let it look complete.
    #[must_use]
    pub const fn is_answering(&self) -> bool {
        matches!(self.answer, Answer::Sending(_))
    }

    /// Whether a response was truncated. Close at once, so that it cannot look complete.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether only a reset shows that it was truncated: its body ends with the connection
    /// (RFC 9112 §8). A reset discards what the client has not read.
    #[must_use]
    pub const fn hides_break(&self) -> bool {
        self.hides_break
    }

    /// Whether the peer may still be sending when the connection closes. Then shut down writing,
    /// read for a while ([`Self::receive`] discards the bytes), and close. A close with unread
    /// bytes resets the connection and may destroy the response (RFC 9112 §9.6).
    #[must_use]
    pub const fn needs_lingering(&self) -> bool {
        self.is_closing() && (self.lingers || self.held > 0) && !self.ended && !self.broken
    }

    /// Whether a head has begun and is incomplete, and no response is outstanding.
    #[must_use]
    pub const fn is_reading_head(&self) -> bool {
        matches!(self.input, Input::Head) && !self.is_idle()
    }

    /// Request heads received on this connection, refused ones included.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Makes the next response the last one; it says so with `Connection: close`.
    pub const fn shutdown(&mut self) {
        self.going = true;
    }

    /// Frees the buffers that are kept for the next request; for connections that are idle for
    /// long.
    pub fn shrink(&mut self) {
        self.said.shrink();
        if self.output.is_empty() {
            self.output = Vec::new();
        }
    }
}
