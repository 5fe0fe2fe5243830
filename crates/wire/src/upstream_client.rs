//! What FastCGI, LSAPI, uwsgi, SCGI and HTTP/1 to upstreams have in common: one request and one
//! response at a time over a connection, which may carry another when both are complete.
//!
//! Owns what was sent and received of them, and whether the connection can be used again. A
//! protocol writes its requests and reads its responses; it changes nothing else.

use bolide_base::SendChain;
use bolide_http::OriginHead;

use crate::cgi::{self, CgiAnswer, CgiPhase};
use crate::outgoing::{OutgoingBody, SendingState};
use crate::{BodySource, OriginConnSettings, OriginError, OriginEvent, StreamOwner};

/// The request and the response that a connection carries.
#[derive(Debug, Default)]
pub struct UpstreamCall {
    pub(crate) settings: OriginConnSettings,
    pub(crate) outgoing: OutgoingBody,
    pub(crate) answer: CgiAnswer,
    /// Whether the connection cannot carry another request.
    pub(crate) is_spoiled: bool,
}

impl UpstreamCall {
    /// Whether received bytes belong to a response. Bytes behind one are dropped.
    ///
    /// # Errors
    ///
    /// There was no request.
    pub(crate) fn expects_bytes(&mut self) -> Result<bool, OriginError> {
        match self.answer.phase() {
            CgiPhase::Head | CgiPhase::Body => Ok(true),
            CgiPhase::None => {
                let text = b"upstream sent data before a request".as_slice();
                Err(OriginError::Invalid(text.into()))
            }
            CgiPhase::Over => {
                self.is_spoiled = true;
                Ok(false)
            }
        }
    }

    /// Handles bytes of the body; the response ends where they exceed its length.
    pub(crate) fn body(&mut self, piece: &[u8], behind: usize, events: &mut Vec<OriginEvent>) {
        self.answer.body(piece, behind, events);
        if self.answer.phase() == CgiPhase::Over {
            self.is_spoiled = true;
            self.outgoing.stop();
        }
    }

    /// Ends a complete response, unless bytes behind it are still to be reported.
    pub(crate) fn end_if_complete(&mut self, behind: &[u8], events: &mut Vec<OriginEvent>) {
        match self.answer.phase() {
            CgiPhase::Over => {
                self.is_spoiled = true;
                self.outgoing.stop();
            }
            CgiPhase::Body if behind.is_empty() && self.answer.is_complete() => self.end(0, events),
            _ => {}
        }
    }

    /// Begins a tunnel, whose bytes from the client come only after `body_ready`.
    ///
    /// # Errors
    ///
    /// RFC 9110 §7.8: 101 is valid only for a request with `Upgrade` that was sent completely.
    pub(crate) fn begin_tunnel(
        &mut self,
        asks_upgrade: bool,
        head: Box<OriginHead>,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        let is_sent = self.outgoing.sending == SendingState::Sent;
        if !asks_upgrade || !is_sent {
            return Err(cgi::invalid_status(b"101"));
        }
        self.is_spoiled = true;
        (self.outgoing.sending, self.outgoing.is_pending) = (SendingState::Body, true);
        self.answer.begin_tunnel(head, events);
        Ok(())
    }

    /// Ends the response.
    pub(crate) fn end(&mut self, app_status: u32, events: &mut Vec<OriginEvent>) {
        self.answer.end(app_status, events);
        self.outgoing.stop();
    }
}

/// A protocol: how requests are written and responses are read.
pub trait UpstreamProtocol: Default {
    /// What is asked.
    type Message;

    /// Appends the encoded message to the buffer of `call`.
    fn start(
        &mut self,
        call: &mut UpstreamCall,
        message: &Self::Message,
        body_len: Option<u64>,
    ) -> Started;

    /// Appends encoded bytes, then as much of the body as fits into `room`.
    fn pull(
        &mut self,
        call: &mut UpstreamCall,
        room: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    );

    /// Reads bytes of the upstream.
    ///
    /// # Errors
    ///
    /// [`OriginError`]; the connection must then be closed.
    fn read(
        &mut self,
        call: &mut UpstreamCall,
        input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError>;

    /// Stops sending, and queues what tells the upstream that its response is not needed.
    fn abort(&mut self, call: &mut UpstreamCall);

    /// Handles the end of input.
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the response is incomplete.
    fn handle_eof(
        &mut self,
        call: &mut UpstreamCall,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError>;

    /// Bytes of the response that are buffered until the rest arrives.
    fn held(&self) -> usize;
}

/// How far a request was sent when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// Its body is to be pulled.
    BodyFollows,
    /// It is complete.
    Whole,
    /// The protocol cannot encode it.
    Unencodable,
}

/// A connection to an upstream.
#[derive(Debug, Default)]
pub struct UpstreamClient<P> {
    pub(crate) call: UpstreamCall,
    pub(crate) protocol: P,
}

impl<P: UpstreamProtocol> UpstreamClient<P> {
    /// A new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a request, see [`crate::OriginConn::start`].
    pub fn start(
        &mut self,
        message: &P::Message,
        body_len: Option<u64>,
        settings: &OriginConnSettings,
    ) {
        assert!(self.is_idle(), "one request at a time");
        let Self { call, protocol } = self;
        call.outgoing.begin();
        call.settings = *settings;
        call.answer = CgiAnswer::begun(settings.answers_head);
        call.outgoing.sending = match protocol.start(call, message, body_len) {
            Started::BodyFollows => SendingState::Body,
            Started::Whole => SendingState::Sent,
            Started::Unencodable => SendingState::Broken,
        };
    }

    /// Appends what can be sent, see [`crate::OriginConn::transmit`].
    pub fn transmit(
        &mut self,
        room: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) {
        self.protocol.pull(&mut self.call, room, out, user, body);
    }

    /// Queues an abort, see [`crate::OriginConn::abort`].
    pub fn abort(&mut self) {
        if matches!(self.call.answer.phase(), CgiPhase::Head | CgiPhase::Body) {
            self.call.is_spoiled = true;
            self.protocol.abort(&mut self.call);
        }
    }

    /// Receives bytes of the upstream, see [`crate::OriginConn::receive`].
    ///
    /// # Errors
    ///
    /// [`OriginError`]; the connection must then be closed.
    pub fn receive(
        &mut self,
        input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<usize, OriginError> {
        let received = self.protocol.read(&mut self.call, input, events);
        // An error does not invalidate the bytes before it.
        self.call.answer.flush(events);
        if received.is_err() {
            self.call.is_spoiled = true;
            self.call.outgoing.stop();
        }
        received.map(|()| input.len())
    }

    /// Handles the end of input, see [`crate::OriginConn::handle_eof`].
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the response is incomplete.
    pub fn handle_eof(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        self.call.is_spoiled = true;
        self.protocol.handle_eof(&mut self.call, events)
    }

    /// Bytes of the response that are buffered until the rest arrives.
    #[must_use]
    pub fn held(&self) -> usize {
        self.protocol.held()
    }
}

impl<P> UpstreamClient<P> {
    /// A body that was `Pending`, or the client's side of a tunnel, has bytes again or ended.
    pub const fn body_ready(&mut self) {
        self.call.outgoing.is_pending = false;
    }

    /// Whether something can be sent now.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        self.call.outgoing.has_output()
    }

    /// Whether the whole request was handed over; of a tunnel, all bytes of the client.
    #[must_use]
    pub const fn is_request_sent(&self) -> bool {
        self.call.outgoing.is_sent()
    }

    /// Whether the request cannot be completed.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.call.outgoing.is_broken()
    }

    /// Whether the connection may carry a request.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        let call = &self.call;
        match call.answer.phase() {
            CgiPhase::None => !call.is_spoiled,
            CgiPhase::Over => call.settings.keep && call.outgoing.is_sent() && !call.is_spoiled,
            CgiPhase::Head | CgiPhase::Body => false,
        }
    }
}
