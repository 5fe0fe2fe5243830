//! The HTTP/1.x server machine: one request, one answer, then the next (RFC 9112).
//!
//! It owns framing in both directions and the life of the connection between requests. It refuses
//! to guess: what two recipients could read differently is refused and the connection closes.
//!
//! ```text
//!            ┌────────────────── next request ◀─────────────────┐
//!            ▼                                                  │
//!  input:  Head ──▶ Body ──▶ Complete ──(answer appended)───────┤
//!            │        │ (answer appended first: drained) ───────┘
//!            └────────┴──▶ Discarding      errors, Connection: close, end of input
//!                           Complete ─(101 with a body of unknown length)─▶ Tunnel ─▶ Silent
//!
//!  answer: Idle ──Request──▶ Wanted ──respond──▶ Sending ──▶ Idle
//!                                                   └──────▶ Done   while the body is drained
//! ```
//!
//! INVARIANT: no byte behind a request is looked at before that request's answer was appended
//! *and* its body was taken to the end; else a body could be read as a request.

mod body;
mod conn;
pub mod fuzz;
mod grammar;
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
pub use fuzz::fuzz;
use head::{After, H1HeadParser};
use replay::ReplayH1;
pub use replay::Replies;
use response::{BodyFraming, RequestFacts, Wants};

/// Bytes of an unread body that are thrown away to keep a connection; more, and it closes.
const DRAIN_SIZE_MAX: u64 = 64 << 20;
/// Bytes of the head buffer that a connection keeps between requests.
const OUTPUT_KEPT_MAX: usize = 1024;

/// What configuration says about HTTP/1 connections of one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H1Settings {
    /// How clients reach this listener. The machine accepts both schemes in absolute targets.
    pub scheme: Scheme,
    /// `client_header_buffer_size` in bytes: for the first lines of a head, as many as fit.
    pub header_buffer_size: usize,
    /// `large_client_header_buffers`: how many there are for the lines behind them.
    pub large_buffers: u16,
    /// `large_client_header_buffers`: bytes of each. No line stands in two of them.
    pub large_buffer_size: usize,
    /// `max_headers`: how many fields a head may have.
    pub fields_max: u32,
    /// Whether names with `_` are taken.
    pub underscores_in_headers: bool,
    /// Whether fields with names outside letters, digits and `-` are passed over in silence.
    pub ignore_invalid_headers: bool,
    /// Requests after which a connection closes.
    pub keepalive_requests: u64,
    /// Whether what is said here depends on the host that is asked for: then reading stops behind
    /// its name, and [`Conn::take_host`] tells it.
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
    /// Bytes of the largest head.
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
    /// Nothing: the request is complete and not yet answered.
    Complete,
    /// Whatever it says in another protocol, up to the end of its side.
    Tunnel,
    /// Nothing: it ended its side of a tunnel.
    Silent,
    /// Nothing that matters: whatever comes is thrown away, and the connection closes.
    Discarding,
}

/// Where the answer to the current request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// There is no request.
    Idle,
    /// Not here yet.
    Wanted,
    /// Its head is queued or gone, its body is being pulled.
    Sending(BodyFraming),
    /// Appended to its last byte, while the request body is still being drained.
    Done,
}

/// Who reads the request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Exchange,
    Nobody,
}

/// Whether the client still waits for `100 Continue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expectation {
    None,
    Waiting,
}

/// Whether the body source has something to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Ready,
    Pending,
}

/// One client connection speaking HTTP/1.x.
///
/// Drive it in a loop: offer the kept bytes to [`Self::receive`], act on the events ([`Self::bind`]
/// at once), drop what was consumed, and again until nothing was consumed: a request head whose
/// body follows ends a call, so that every body event finds its user bound. After
/// [`Self::transmit`], offer kept bytes again; the next request may be among them.
#[derive(Debug)]
pub struct H1Conn {
    parser: H1HeadParser,
    said: ReplayH1,
    input: Input,
    answer: Answer,
    /// Interim heads and the head of the answer.
    output: Vec<u8>,
    /// Heads seen; names the current request.
    requests: u64,
    user: StreamOwner,
    /// Body bytes of the answer that were appended, with the framing of chunks.
    sent: u64,
    /// Bytes of its head.
    told: u32,
    /// Body bytes thrown away after the answer.
    drained: u64,
    /// Body bytes given to the exchange that it has not consumed.
    ahead: u32,
    /// Bytes that the last `receive` left to the caller.
    held: u32,
    asked: RequestFacts,
    after: After,
    reader: Reader,
    expectation: Expectation,
    source: Source,
    /// The peer has closed its side.
    ended: bool,
    /// The answer was cut.
    broken: bool,
    /// The peer may still be sending something that nobody will read.
    lingers: bool,
    /// The next answer is the last.
    going: bool,
    /// Trailer fields are asked for at the end of the answer.
    trailed: bool,
    /// The next head had begun when the answer before it was complete.
    pipelined: bool,
}

// An idle connection is this and nothing else: ten thousand of them must stay cheap.
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
            told: 0,
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
            lingers: false,
            going: false,
            trailed: false,
            pipelined: false,
        }
    }
}

impl H1Conn {
    /// A fresh connection. It holds no buffer until the first answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the request on `stream` its owner's name.
    pub fn bind(&mut self, stream: StreamId, user: StreamOwner) {
        if self.is_current(stream) {
            self.user = user;
        }
    }

    /// Who owns the request that is not answered to its end.
    pub fn users(&self) -> impl Iterator<Item = StreamOwner> {
        let waits = matches!(self.answer, Answer::Wanted | Answer::Sending(_));
        (waits && self.user != crate::conn::UNBOUND).then_some(self.user).into_iter()
    }

    /// Whether an answered request's body is still being taken, to be thrown away.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        matches!(self.answer, Answer::Done)
    }

    /// Throws the request body away from now on; [`crate::Event::BodyEnd`] still comes.
    pub fn discard_body(&mut self, stream: StreamId) {
        if self.is_current(stream) {
            self.reader = Reader::Nobody;
            self.ahead = 0;
        }
    }

    /// Gives the room of `bytes` body bytes back; then offer kept bytes again. At most
    /// [`bolide_base::limits::BODY_WINDOW`] bytes are ever outstanding.
    pub fn body_consumed(&mut self, stream: StreamId, bytes: usize) {
        if self.is_current(stream) {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.ahead = self.ahead.saturating_sub(bytes);
        }
    }

    /// Whether the socket is to be read now. Not while an unanswered request is complete and bytes
    /// behind it wait already, nor while the body window is full.
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

    /// Whether another protocol is spoken, which an answer with 101 allowed: see
    /// [`Self::respond`]. The client may be silent for as long as it likes, and may end its side.
    #[must_use]
    pub const fn is_tunnel(&self) -> bool {
        matches!(self.input, Input::Tunnel | Input::Silent)
    }

    /// Whether the connection rests between requests with nothing queued and nothing begun.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!((&self.input, self.answer), (Input::Head, Answer::Idle))
            && self.parser.is_empty()
            && self.held == 0
            && self.output.is_empty()
    }

    /// Whether [`Self::transmit`] could append something now.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        let ready = matches!(
            (self.answer, self.source),
            (Answer::Sending(BodyFraming::Empty), _) | (Answer::Sending(_), Source::Ready)
        );
        !self.output.is_empty() || ready
    }

    /// Whether the connection is over once what was appended has left.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        self.broken || matches!((&self.input, self.answer), (Input::Discarding, Answer::Idle))
    }

    /// Whether an answer was cut: close at once, so that it cannot look complete.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether the peer may still be sending when the connection closes: then shut down writing,
    /// read on for a while ([`Self::receive`] throws it away), and only then close. A close with
    /// unread bytes resets the connection and may take the answer with it (RFC 9112 §9.6).
    #[must_use]
    pub const fn needs_lingering(&self) -> bool {
        self.is_closing() && (self.lingers || self.held > 0) && !self.ended && !self.broken
    }

    /// Whether a head has begun and not ended, and no answer is outstanding.
    #[must_use]
    pub const fn is_reading_head(&self) -> bool {
        matches!(self.input, Input::Head) && !self.is_idle()
    }

    /// Request heads seen on this connection, refused ones included.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Makes the next answer the last, and has it say so.
    pub const fn shutdown(&mut self) {
        self.going = true;
    }

    /// Gives what is kept for the next request and answer back; for connections idle for long.
    pub fn shrink(&mut self) {
        self.said.shrink();
        if self.output.is_empty() {
            self.output = Vec::new();
        }
    }
}
