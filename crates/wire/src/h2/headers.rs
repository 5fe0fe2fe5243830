//! Receives field blocks: requests, trailers, and blocks that are only decoded to keep the table in
//! step.
//!
//! Owns HEADERS and CONTINUATION, and decides what a block means for its stream.

use bolide_http::RequestHead;

use super::abuse::{BLOCK_FACTOR, CONTINUATIONS_MAX, calm};
use super::frame::{self, FrameHeader, WINDOW_INITIAL, WINDOW_MAX, code, flag};
use super::head::{FinishedHead, HeadAssembly, Swallow, Trailers, priority, rules};
use super::recv::{H2RecvTurn, error, protocol};
use super::streams::{Closed, H2Stream, Receiving};
use super::{Block, H2Conn};
use crate::hpack::{HpackError, Sink};
use crate::pseudo::Flaw;
use crate::sched::Priority;
use crate::{ConnError, WireEvent};

/// The properties of a HEADERS frame that precede its field block.
#[derive(Clone, Copy, Debug)]
struct Opening {
    stream: u32,
    ends_stream: bool,
    is_self_dependent: bool,
}

impl H2Conn {
    /// RFC 9113 §6.2.
    pub(super) fn receive_headers(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        // RFC 9113 §5.1.1: clients use odd ids.
        if header.stream.is_multiple_of(2) {
            return Err(protocol("client sent HEADERS frame with incorrect identifier"));
        }
        let mut fragment = payload;
        if header.has(flag::PADDED) {
            let len = frame::strip_padding(header, payload)
                .ok_or(protocol("client sent padded HEADERS frame with incorrect length"))?;
            fragment = &payload[1..=len];
        }
        let mut is_self_dependent = false;
        if header.has(flag::PRIORITY) {
            let Some((priority, rest)) = fragment.split_first_chunk::<5>() else {
                return Err(error(
                    code::FRAME_SIZE_ERROR,
                    "client sent HEADERS frame with incorrect length",
                ));
            };
            let [a, b, c, d, _] = *priority;
            let depends_on = u32::from_be_bytes([a, b, c, d]) & WINDOW_MAX;
            is_self_dependent = depends_on == header.stream;
            fragment = rest;
        }
        let (stream, ends_stream) = (header.stream, header.has(flag::END_STREAM));
        if header.has(flag::END_HEADERS) {
            let opening = Opening { stream, ends_stream, is_self_dependent };
            return self.receive_block(turn, opening, fragment);
        }
        let bytes = fragment.to_vec();
        self.block =
            Some(Box::new(Block { stream, ends_stream, is_self_dependent, frames: 1, bytes }));
        Ok(())
    }

    /// RFC 9113 §6.10. The caller has checked that it continues the open block.
    pub(super) fn receive_continuation(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        let Some(mut block) = self.block.take() else {
            return Err(protocol("client sent unexpected CONTINUATION frame"));
        };
        block.frames += 1;
        if block.frames > CONTINUATIONS_MAX {
            return Err(calm("client sent too many CONTINUATION frames"));
        }
        if block.bytes.len() + payload.len() > turn.settings.head_size_max * BLOCK_FACTOR {
            return Err(calm(HpackError::TooLarge.reason()));
        }
        block.bytes.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(());
        }
        let Block { stream, ends_stream, is_self_dependent, bytes, .. } = *block;
        let opening = Opening { stream, ends_stream, is_self_dependent };
        self.receive_block(turn, opening, &bytes)
    }

    /// Handles a complete field block.
    fn receive_block(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        opening: Opening,
        block: &[u8],
    ) -> Result<(), ConnError> {
        let id = opening.stream;
        if id > self.last_seen {
            return self.receive_request(turn, opening, block);
        }
        if let Some(slot) = self.streams.find(id) {
            return self.receive_trailers(turn, opening, slot, block);
        }
        match self.streams.closed(id) {
            // RFC 9113 §5.1: after END_STREAM in both directions this is no race.
            Some(Closed::Ended) => {
                Err(error(code::STREAM_CLOSED, "client sent HEADERS frame on a closed stream"))
            }
            Some(Closed::ByPeer) => {
                self.decode(turn, block, &mut Swallow)?;
                self.stream_error(id, code::STREAM_CLOSED, turn.events)
            }
            Some(Closed::ByUs) => self.decode(turn, block, &mut Swallow),
            // RFC 9113 §5.1.1: ids of new streams MUST increase.
            None => Err(protocol("client sent HEADERS frame with a decreasing identifier")),
        }
    }

    fn receive_trailers(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        opening: Opening,
        slot: u32,
        block: &[u8],
    ) -> Result<(), ConnError> {
        let mut trailers = Trailers::default();
        self.decode(turn, block, &mut trailers)?;
        let stream = self.streams.at(slot);
        if stream.receiving == Receiving::Ended {
            // RFC 9113 §5.1: half-closed (remote).
            return self.stream_error(opening.stream, code::STREAM_CLOSED, turn.events);
        }
        if opening.is_self_dependent {
            return self.stream_error(opening.stream, code::PROTOCOL_ERROR, turn.events);
        }
        // RFC 9113 §8.1: trailers end the stream and have no pseudo-header fields.
        if trailers.are_malformed || !opening.ends_stream {
            if opening.ends_stream {
                stream.receiving = Receiving::Ended;
            }
            return self.spoil(slot, "client sent invalid trailers", turn.events).map(|_| ());
        }
        self.end_body(slot, turn.events)
    }

    /// Opens a stream.
    fn receive_request(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        opening: Opening,
        block: &[u8],
    ) -> Result<(), ConnError> {
        let id = opening.stream;
        self.last_seen = id;
        // RFC 9113 §6.8: streams above the last one in our GOAWAY are ignored.
        if self.is_going_away {
            self.streams.forget(id, Closed::ByUs);
            return self.decode(turn, block, &mut Swallow);
        }
        if self.streams.open() >= turn.settings.max_concurrent_streams && !self.streams.make_room()
        {
            self.decode(turn, block, &mut Swallow)?;
            // RFC 9113 §5.1.2: REFUSED_STREAM lets the client retry.
            return self.stream_error(id, code::REFUSED_STREAM, turn.events);
        }
        // As in nginx: the client may not know yet that its bodies have a smaller window.
        if !self.settings_are_acked
            && !opening.ends_stream
            && turn.settings.recv_window < WINDOW_INITIAL
        {
            self.decode(turn, block, &mut Swallow)?;
            return self.stream_error(id, code::REFUSED_STREAM, turn.events);
        }
        self.requests += 1;
        self.abuse.pay_request();
        let mut head = turn.heads.take();
        let finished = self.decode_head(turn, opening, block, &mut head)?;
        self.last_taken = id;
        head.wire_size = block.len() as u32;
        if opening.is_self_dependent {
            turn.heads.put(head);
            return self.stream_error(id, code::PROTOCOL_ERROR, turn.events);
        }
        self.open(turn, opening, finished, head);
        if let Some(Flaw::Malformed(_)) = finished.flaw {
            self.abuse.waste(code::PROTOCOL_ERROR)?;
        }
        let age = self.started.map(|at| turn.now.mono.since(at)).unwrap_or_default();
        if self.requests >= turn.settings.keepalive_requests || age > turn.settings.keepalive_time {
            self.shutdown();
        }
        Ok(())
    }

    fn open(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        opening: Opening,
        finished: FinishedHead,
        head: Box<RequestHead>,
    ) {
        let windows = (self.flow.send_initial as i32, self.flow.recv_initial as i32);
        let mut stream = H2Stream::new(windows.0, windows.1);
        stream.is_head = head.method == bolide_http::Method::Head;
        if opening.ends_stream {
            stream.receiving = Receiving::Ended;
        }
        if let bolide_http::RequestBody::Length(length) = head.body {
            stream.recv_left = length;
        }
        stream.priority = finished.priority.unwrap_or(Priority::UNSIGNALLED);
        // RFC 9218 §7: a PRIORITY_UPDATE that came before the request overrides its field.
        if !self.early.is_empty() {
            if let Some((_, early)) = self.early.iter().find(|(id, _)| *id == opening.stream) {
                stream.priority = *early;
            }
            self.early.retain(|(id, _)| *id > opening.stream);
        }
        debug_assert!(
            finished.flaw.is_none() || head.body == bolide_http::RequestBody::None,
            "a refused head has no body"
        );
        stream.discards = finished.flaw.is_some();
        stream.is_malformed = matches!(finished.flaw, Some(Flaw::Malformed(_)));
        let stream = self.streams.insert(opening.stream, stream);
        turn.events.push(match finished.flaw {
            Some(flaw) => WireEvent::Refused { stream, head, refusal: flaw.refusal() },
            None => WireEvent::Request { stream, head },
        });
    }

    /// Decodes a request's field block, or copies the cached head of an identical block.
    fn decode_head(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        opening: Opening,
        block: &[u8],
        head: &mut RequestHead,
    ) -> Result<FinishedHead, ConnError> {
        let generation = self.decoder.generation();
        if opening.ends_stream
            && let Some(priority) = self.known_requests.find(generation, block, head)
        {
            return Ok(FinishedHead { flaw: None, priority });
        }
        let rules = rules(turn.settings);
        let mut assembly = HeadAssembly::new(&rules, head);
        self.decode(turn, block, &mut assembly)?;
        let flaw = assembly.finish(opening.ends_stream);
        let finished = FinishedHead { flaw, priority: priority(head) };
        if opening.ends_stream && finished.flaw.is_none() && self.decoder.generation() == generation
        {
            self.known_requests.note(generation, block, head, finished.priority);
        }
        Ok(finished)
    }

    fn decode(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        block: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), ConnError> {
        let size_max = turn.settings.head_size_max * BLOCK_FACTOR;
        let result = self.decoder.decode(block, size_max, &mut turn.heads.scratch, sink);
        result.map_err(|failure| match failure {
            HpackError::TooLarge => calm(failure.reason()),
            // RFC 9113 §4.3: the dynamic tables differ now, which is a connection error.
            _ => error(code::COMPRESSION_ERROR, failure.reason()),
        })
    }
}
