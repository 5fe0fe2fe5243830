//! The framing of one stream-socket connection: HTTP/1 or HTTP/2, chosen by ALPN or preface.

use bolide_base::{Now, SendChain};
use bolide_http::ResponseHead;
use bolide_wire::h1::Replies;
use bolide_wire::{
    Awaiting, BodySource, ConnError, HeadPool, RespondError, StreamId, StreamOwner, WireEvent, h1,
    h2,
};

use crate::settings::WorkerLimits;

/// The framing of a connection; a closed set, hence an enum.
#[derive(Debug)]
pub(crate) enum ConnFraming {
    H1(Box<h1::H1Conn>),
    H2(Box<h2::H2Conn>),
}

/// The preface of an HTTP/2 client without ALPN (RFC 9113 §3.4).
const PREFACE_START: &[u8] = b"PRI * HTTP/2.0\r\n";

/// PROTOCOL_ERROR and INTERNAL_ERROR (RFC 9113 §7).
const PROTOCOL_ERROR: u32 = 1;
const INTERNAL_ERROR: u32 = 2;

/// Why a stream is reset before its response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetCause {
    /// Its client timed out, sending or receiving.
    ClientLate,
    /// The request gets no response (444).
    Unanswered,
    /// The request is abandoned.
    Unserved,
}

/// What ends together with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Stream,
    Connection,
}

/// An action on one stream of any framing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamAct {
    Continue,
    Ready,
    Discard,
    /// Read its body, with a window of this many bytes.
    Wanted(u32),
    Consumed(usize),
}

/// The protocol that the first bytes of a connection suggest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    Http1,
    Http2,
    Unclear,
}

/// Tells HTTP/2 with prior knowledge from HTTP/1.
pub(crate) fn first_bytes(input: &[u8]) -> FirstBytes {
    let n = input.len().min(PREFACE_START.len());
    if input[..n] != PREFACE_START[..n] {
        FirstBytes::Http1
    } else if n == PREFACE_START.len() {
        FirstBytes::Http2
    } else {
        FirstBytes::Unclear
    }
}

impl ConnFraming {
    pub(crate) fn h1() -> Self {
        Self::H1(Box::new(h1::H1Conn::new()))
    }

    pub(crate) fn h2() -> Self {
        Self::H2(Box::new(h2::H2Conn::new()))
    }

    pub(crate) fn receive(
        &mut self,
        settings: &WorkerLimits,
        now: Now,
        input: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) -> Result<usize, ConnError> {
        match self {
            Self::H1(conn) => Ok(conn.receive(&settings.h1, input, heads, events)),
            Self::H2(conn) => conn.receive(&settings.h2, now, input, heads, events),
        }
    }

    /// Requests that the client wasted since the last call.
    pub(crate) fn take_wasted(&mut self) -> u32 {
        match self {
            Self::H1(_) => 0,
            Self::H2(conn) => conn.take_wasted(),
        }
    }

    /// Ends the connection of a client that wastes too many requests.
    pub(crate) fn calm_down(&mut self, events: &mut Vec<WireEvent>) {
        if let Self::H2(conn) = self {
            conn.calm_down(events);
        }
    }

    /// The host of the head that is arriving, where its limits depend on that.
    pub(crate) fn take_host(&mut self) -> Option<&[u8]> {
        match self {
            Self::H1(conn) => conn.take_host(),
            Self::H2(_) => None,
        }
    }

    pub(crate) fn handle_eof(&mut self, events: &mut Vec<WireEvent>) {
        match self {
            Self::H1(conn) => conn.handle_eof(events),
            // Open streams of an HTTP/2 connection end with it.
            Self::H2(_) => {}
        }
    }

    /// Whether a head has begun, if only with a blank line.
    pub(crate) const fn is_within_head(&self) -> bool {
        match self {
            Self::H1(conn) => conn.is_within_head(),
            Self::H2(_) => false,
        }
    }

    /// The client closes its side: a request head that has begun is still logged. `rest` is what
    /// the framing has not taken.
    pub(crate) fn handle_departure(
        &mut self,
        is_reset: bool,
        rest: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) {
        match self {
            Self::H1(conn) => conn.handle_departure(is_reset, rest, heads, events),
            Self::H2(_) => {}
        }
    }

    /// A request head was not completed in time: it may get a response and is logged.
    pub(crate) fn handle_timeout(
        &mut self,
        rest: &[u8],
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) {
        match self {
            Self::H1(conn) => conn.handle_timeout(rest, heads, events),
            Self::H2(_) => {}
        }
    }

    pub(crate) fn bind(&mut self, stream: StreamId, user: StreamOwner) {
        match self {
            Self::H1(conn) => conn.bind(stream, user),
            Self::H2(conn) => conn.bind(stream, user),
        }
    }

    /// Sends an interim response.
    pub(crate) fn announce(&mut self, stream: StreamId, head: &ResponseHead) {
        match self {
            Self::H1(conn) => conn.announce(stream, head),
            Self::H2(conn) => conn.announce(stream, head),
        }
    }

    /// Sends a response; returns how many bytes of it are sent regardless of its rate limit.
    pub(crate) fn respond(
        &mut self,
        stream: StreamId,
        head: &ResponseHead,
        replies: &mut Replies,
    ) -> Result<u64, RespondError> {
        match self {
            Self::H1(conn) => conn.respond(stream, head, replies).map(|()| 0),
            Self::H2(conn) => conn.respond(stream, head),
        }
    }

    /// The response has a rate limit.
    pub(crate) fn keep_pace(&mut self, stream: StreamId) {
        match self {
            Self::H1(conn) => conn.keep_pace(stream),
            // Its head is a frame, which is sent at once.
            Self::H2(_) => {}
        }
    }

    pub(crate) fn users(&self, into: &mut Vec<StreamOwner>) {
        match self {
            Self::H1(conn) => into.extend(conn.users()),
            Self::H2(conn) => into.extend(conn.users()),
        }
    }

    /// Resets a stream; returns whether the connection ends, too.
    pub(crate) fn reset(&mut self, stream: StreamId, cause: ResetCause) -> Cut {
        match self {
            // Responses to earlier requests of a pipeline are sent first.
            Self::H1(conn)
                if cause == ResetCause::Unanswered
                    && conn.requests() > 1
                    && !conn.is_answering() =>
            {
                conn.close_without_response();
                Cut::Stream
            }
            Self::H1(_) => Cut::Connection,
            Self::H2(conn) => {
                // As nginx does, whatever RFC 9113 §7 would suggest.
                let code = match cause {
                    ResetCause::ClientLate | ResetCause::Unanswered => PROTOCOL_ERROR,
                    ResetCause::Unserved => INTERNAL_ERROR,
                };
                conn.reset(stream, code);
                Cut::Stream
            }
        }
    }

    pub(crate) fn send_continue(&mut self, stream: StreamId) {
        match self {
            Self::H1(conn) => conn.send_continue(stream),
            Self::H2(conn) => conn.send_continue(stream),
        }
    }

    pub(crate) fn body_ready(&mut self, stream: StreamId) {
        match self {
            Self::H1(conn) => conn.body_ready(stream),
            Self::H2(conn) => conn.body_ready(stream),
        }
    }

    pub(crate) fn discard_body(&mut self, stream: StreamId) {
        match self {
            Self::H1(conn) => conn.discard_body(stream),
            Self::H2(conn) => conn.discard_body(stream),
        }
    }

    pub(crate) fn body_wanted(&mut self, stream: StreamId, window: u32) {
        match self {
            Self::H1(_) => {}
            Self::H2(conn) => conn.body_wanted(stream, window),
        }
    }

    /// Whether the client can send nothing of any body until we consume what came.
    pub(crate) const fn is_shut(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(conn) => conn.is_shut(),
        }
    }

    pub(crate) fn body_consumed(&mut self, stream: StreamId, bytes: usize) {
        match self {
            Self::H1(conn) => conn.body_consumed(stream, bytes),
            Self::H2(conn) => conn.body_consumed(stream, bytes),
        }
    }

    pub(crate) fn transmit(
        &mut self,
        now: Now,
        room: usize,
        out: &mut SendChain,
        events: &mut Vec<WireEvent>,
        bodies: &mut impl BodySource,
    ) {
        match self {
            Self::H1(conn) => conn.transmit(room, out, events, bodies),
            Self::H2(conn) => conn.transmit(now, room, out, events, bodies),
        }
    }

    /// The streams that wait for the client, on a connection with several.
    pub(crate) fn awaiting(&self, into: &mut Vec<Awaiting>) {
        match self {
            Self::H1(_) => {}
            Self::H2(conn) => into.extend(conn.awaiting()),
        }
    }

    pub(crate) fn wants_input(&self) -> bool {
        match self {
            Self::H1(conn) => conn.wants_input(),
            Self::H2(_) => true,
        }
    }

    #[allow(clippy::inline_always, reason = "measured: 26 instructions of a hit")]
    #[inline(always)]
    pub(crate) fn has_output(&self) -> bool {
        match self {
            Self::H1(conn) => conn.has_output(),
            Self::H2(conn) => conn.has_output(),
        }
    }

    #[allow(clippy::inline_always, reason = "measured: 36 instructions of a hit")]
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Self::H1(conn) => conn.is_idle(),
            Self::H2(conn) => conn.is_idle(),
        }
    }

    pub(crate) fn is_reading_head(&self) -> bool {
        match self {
            Self::H1(conn) => conn.is_reading_head(),
            Self::H2(conn) => h2::is_within_block(conn),
        }
    }

    /// Whether the rest of an answered request's body is being discarded.
    pub(crate) fn is_draining(&self) -> bool {
        match self {
            Self::H1(conn) => conn.is_draining(),
            Self::H2(_) => false,
        }
    }

    /// Whether the connection is a tunnel, in which the client may be silent.
    pub(crate) fn is_tunnel(&self) -> bool {
        match self {
            Self::H1(conn) => conn.is_tunnel(),
            Self::H2(_) => false,
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        match self {
            Self::H1(conn) => conn.is_closing(),
            Self::H2(conn) => conn.is_closing(),
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        match self {
            Self::H1(conn) => conn.is_broken(),
            Self::H2(_) => false,
        }
    }

    /// Whether only a reset shows that a response was truncated.
    pub(crate) fn hides_break(&self) -> bool {
        match self {
            Self::H1(conn) => conn.hides_break(),
            Self::H2(_) => false,
        }
    }

    pub(crate) fn needs_lingering(&self) -> bool {
        match self {
            Self::H1(conn) => conn.needs_lingering(),
            // Its window updates would reset a closed socket and could destroy responses.
            Self::H2(conn) => conn.is_closing(),
        }
    }

    pub(crate) fn shutdown(&mut self) {
        match self {
            Self::H1(conn) => conn.shutdown(),
            Self::H2(conn) => conn.shutdown(),
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        match self {
            Self::H1(conn) => conn.requests(),
            Self::H2(conn) => conn.requests(),
        }
    }

    /// Whether one write may hold file ranges and shared pieces instead of copies.
    pub(crate) fn is_plain_h1(&self) -> bool {
        matches!(self, Self::H1(_))
    }
}

#[cfg(test)]
mod tests {
    use super::{FirstBytes, first_bytes};

    #[test]
    fn the_preface_is_told_from_a_request_at_its_first_difference() {
        assert_eq!(first_bytes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), FirstBytes::Http2);
        assert_eq!(first_bytes(b"PRI * "), FirstBytes::Unclear);
        assert_eq!(first_bytes(b"P"), FirstBytes::Unclear);
        assert_eq!(first_bytes(b"PUT / HTTP/1.1\r\n"), FirstBytes::Http1);
        assert_eq!(first_bytes(b"GET"), FirstBytes::Http1);
    }
}
