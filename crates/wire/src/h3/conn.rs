//! The internal steps of [`H3Conn`]: admission, reset and completion of streams, and deferred
//! events.
//!
//! Everything here works on slots. Nothing here parses or writes a frame of a request.

use bytes::Bytes;

use super::control::{self, ControlNews, Typed, Uni};
use super::frame::{self, code, kind, uni};
use super::load;
use super::recv::{H3Fault, H3Intake, fatal};
use super::streams::{H3StreamFate, H3StreamPhase};
use super::{EARLY_PRIORITIES_MAX, H3Conn, H3Settings, LINGERING_MAX, Order, QuicStreams};
use crate::conn::UNBOUND;
use crate::sched::Priority;
use crate::{ConnError, HeadPool, WireEvent};

impl H3Conn {
    /// Opens a stream for a new request, unless the request is rejected.
    pub(super) fn admit(
        &mut self,
        settings: &H3Settings,
        id: u64,
    ) -> Result<Option<u32>, ConnError> {
        debug_assert!(id.is_multiple_of(4), "a request comes on a stream of the client's");
        let is_late = self.goaway.is_some_and(|goaway| id >= goaway);
        let limit = settings.max_concurrent_streams as usize + LINGERING_MAX;
        if is_late || self.streams.live() >= limit {
            let is_known =
                self.orders.iter().any(|order| matches!(order, Order::Reject(of) if *of == id));
            if !is_known {
                self.load.charge(load::ODD)?;
                self.orders.push(Order::Reject(id));
            }
            return Ok(None);
        }
        self.next_id = self.next_id.max(id + 4);
        let slot = self.streams.insert(id);
        // As in nginx, the number of the stream counts.
        if id / 4 + 1 >= settings.keepalive_requests {
            self.announce_end();
        }
        if let Some(at) = self.early_priorities.iter().position(|(of, _)| *of == id) {
            let (_, priority) = self.early_priorities.remove(at);
            if let Some(stream) = self.streams.at(slot) {
                stream.prioritise(priority);
                stream.is_priority_pinned = true;
            }
        }
        Ok(Some(slot))
    }

    /// Lets a stream read `input`, or its held section, and handles the result.
    pub(super) fn read(
        &mut self,
        settings: &H3Settings,
        slot: u32,
        input: Option<(Bytes, bool)>,
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        let name = self.streams.name(slot);
        let Some(stream) = self.streams.at(slot) else { return Ok(()) };
        let (was_announced, was_blocked) =
            (stream.is_announced, stream.recv.phase == H3StreamPhase::Blocked && input.is_some());
        let is_over = match &input {
            Some((_, fin)) => *fin,
            None => stream.recv.held.as_ref().is_some_and(|held| held.fin),
        };
        let mut intake = H3Intake {
            settings,
            name,
            decoder: &mut self.decoder,
            cache: &mut self.heads,
            load: &mut self.load,
            heads,
            events,
        };
        let result = match input {
            Some((bytes, fin)) => intake.receive(stream, bytes, fin),
            None => intake.resume(stream),
        };
        if stream.is_announced && !was_announced {
            self.requests += 1;
        }
        if stream.recv.phase == H3StreamPhase::Blocked && !was_blocked {
            // RFC 9204 §2.1.2: no more blocked streams than our SETTINGS allow.
            if self.blocked.len() >= settings.blocked_streams as usize {
                let reason = "too many blocked streams";
                return Err(fatal(crate::qpack::DECOMPRESSION_FAILED, reason));
            }
            debug_assert!(!self.blocked.contains(&slot), "a stream is blocked once");
            self.blocked.push(slot);
        }
        match result {
            Ok(()) => Ok(()),
            Err(H3Fault::Conn(error)) => Err(error),
            Err(H3Fault::Stream(code)) => {
                if is_over {
                    stream.recv.phase = H3StreamPhase::Ended;
                    if matches!(code, crate::qpack::DECOMPRESSION_FAILED | code::EXCESSIVE_LOAD) {
                        // RFC 9204 §2.2.2.2: no section of the stream is acknowledged.
                        self.decoder.cancel(stream.id);
                    }
                }
                self.load.charge(load::WASTED)?;
                self.abort(slot, code, events);
                Ok(())
            }
        }
    }

    /// Aborts a stream. The owner gets `Reset` now; the next `transmit` resets the QUIC stream.
    pub(super) fn abort(&mut self, slot: u32, code: u64, events: &mut Vec<WireEvent>) {
        self.unqueue(slot);
        self.blocked.retain(|&other| other != slot);
        self.resumed.retain(|&other| other != slot);
        let Some(stream) = self.streams.at(slot) else { return };
        if stream.fate != H3StreamFate::Open {
            return;
        }
        stream.fate = H3StreamFate::Aborted;
        if stream.user != UNBOUND {
            events.push(WireEvent::Reset { user: stream.user });
        }
        if stream.recv.phase != H3StreamPhase::Ended {
            stream.recv.phase = H3StreamPhase::Ignored;
        }
        stream.recv.held = None;
        stream.recv.unread = None;
        self.orders.push(Order::Abort(slot, code));
    }

    /// Aborts a stream and resets it in QUIC at once.
    pub(super) fn cut(
        &mut self,
        slot: u32,
        code: u64,
        events: &mut Vec<WireEvent>,
        quic: &mut impl QuicStreams,
    ) {
        self.abort(slot, code, events);
        self.obey_orders(quic);
    }

    /// Closes a stream whose response is complete.
    pub(super) fn complete(
        &mut self,
        slot: u32,
        events: &mut Vec<WireEvent>,
        quic: &mut impl QuicStreams,
    ) {
        let Some(stream) = self.streams.at(slot) else { return };
        debug_assert!(
            stream.send.is_complete(),
            "a response is complete behind its last byte, which its declared length names"
        );
        quic.finish(stream.id);
        if stream.user != UNBOUND {
            let (body_bytes, head_bytes) = (stream.send.body_bytes, stream.send.head_bytes);
            events.push(WireEvent::Sent { user: stream.user, body_bytes, head_bytes });
        }
        if stream.recv.phase != H3StreamPhase::Ended {
            // RFC 9114 §4.1: a server may stop reading once its response is complete.
            let is_malformed = stream.is_malformed;
            let code = if is_malformed { code::MESSAGE_ERROR } else { code::NO_ERROR };
            quic.stop(stream.id, code);
            self.decoder.cancel(stream.id);
        }
        if !stream.is_malformed {
            // A malformed request was wasted, whatever the response to it.
            self.load.refund();
        }
        self.forget(slot);
    }

    /// Removes a stream from all lists.
    pub(super) fn forget(&mut self, slot: u32) {
        self.unqueue(slot);
        if !self.blocked.is_empty() {
            self.blocked.retain(|&other| other != slot);
        }
        if !self.resumed.is_empty() {
            self.resumed.retain(|&other| other != slot);
        }
        self.streams.remove(slot);
    }

    /// Schedules a stream if it has something to write and could write it.
    pub(super) fn queue(&mut self, slot: u32) {
        let Some(stream) = self.streams.at(slot) else { return };
        let send = &mut stream.send;
        let has_bytes = !send.head.is_empty() || !send.rest.is_empty();
        let could =
            !send.is_held && has_bytes || (send.is_answered && !send.is_pending && !send.is_held);
        if could && !send.is_queued && !send.is_blocked && stream.fate == H3StreamFate::Open {
            send.is_queued = true;
            self.sched.insert(slot, stream.id, stream.priority);
        }
    }

    /// Removes a stream from the scheduler.
    pub(super) fn unqueue(&mut self, slot: u32) {
        if let Some(stream) = self.streams.at(slot)
            && std::mem::take(&mut stream.send.is_queued)
        {
            self.sched.remove(slot);
        }
    }

    /// Executes the orders that calls without QUIC have recorded.
    pub(super) fn obey_orders(&mut self, quic: &mut impl QuicStreams) {
        while let Some(order) = self.orders.pop() {
            match order {
                Order::Abort(slot, code) => self.finish_abort(slot, code, quic),
                Order::Reject(id) => {
                    // RFC 9114 §5.2: the request was not processed, so the client may retry it.
                    quic.reset(id, code::REQUEST_REJECTED);
                    quic.stop(id, code::REQUEST_REJECTED);
                    self.decoder.cancel(id);
                }
                Order::Forsake(id) => {
                    quic.reset(id, code::REQUEST_CANCELLED);
                    // RFC 9204 §2.2.2.2: its sections are not decoded.
                    self.decoder.cancel(id);
                }
                Order::StopUnknown(id) => quic.stop(id, code::STREAM_CREATION_ERROR),
                Order::Prioritise(slot, id) => {
                    if let Some(stream) = self.streams.at(slot).filter(|stream| stream.id == id)
                        && std::mem::take(&mut stream.has_new_priority)
                    {
                        quic.set_priority(id, 3 - i32::from(stream.priority.urgency));
                    }
                }
            }
        }
    }

    fn finish_abort(&mut self, slot: u32, code: u64, quic: &mut impl QuicStreams) {
        let Some(stream) = self.streams.at(slot) else { return };
        let id = stream.id;
        quic.reset(id, code);
        if stream.recv.phase != H3StreamPhase::Ended {
            quic.stop(id, code);
            // RFC 9204 §2.2.2.2: reading is abandoned.
            self.decoder.cancel(id);
        }
        if stream.awaits_user() {
            stream.fate = H3StreamFate::Dead;
            self.streams.unlist(id);
        } else {
            self.forget(slot);
        }
    }

    /// Reports what came before `bind`; `transmit` does so, too.
    pub fn report_waiting(&mut self, events: &mut Vec<WireEvent>) {
        events.extend(self.late.drain(..).map(|user| WireEvent::Reset { user }));
        for slot in self.resumed.drain(..) {
            let Some(stream) = self.streams.at(slot) else { continue };
            let Some(unread) = stream.recv.unread.take() else { continue };
            let user = stream.user;
            events.extend(unread.chunks.into_iter().map(|bytes| WireEvent::Body { user, bytes }));
            if let Some(refusal) = unread.refusal {
                events.push(WireEvent::BodyRefused { user, refusal });
            } else if unread.is_ended {
                events.push(WireEvent::BodyEnd { user });
            }
        }
    }

    /// Flushes our control stream and our QPACK streams.
    pub(super) fn flush_own(&mut self, quic: &mut impl QuicStreams) {
        if self.encoder.has_output() {
            self.encoder.poll_output(self.encoder_out.pending(uni::ENCODER));
        }
        if self.decoder.has_output() {
            self.decoder.poll_output(self.decoder_out.pending(uni::DECODER));
        }
        for out in [&mut self.control_out, &mut self.encoder_out, &mut self.decoder_out] {
            if out.has_output() {
                out.flush(quic);
            }
        }
    }

    /// Sends GOAWAY: no request is accepted behind those that have begun.
    pub fn announce_end(&mut self) {
        if self.goaway.is_none() {
            self.send_goaway(self.next_id);
        }
    }

    pub(super) fn send_goaway(&mut self, id: u64) {
        debug_assert!(
            self.goaway.is_none_or(|before| id <= before) && id.is_multiple_of(4),
            "RFC 9114 §5.2: GOAWAY names requests and never increases"
        );
        self.goaway = Some(id);
        let mut payload = Vec::new();
        frame::encode_varint(&mut payload, id);
        let pending = self.control_out.pending(uni::CONTROL);
        frame::encode_header(pending, kind::GOAWAY, payload.len() as u64);
        pending.extend_from_slice(&payload);
    }

    /// Receives bytes of a unidirectional stream.
    pub(super) fn receive_uni(
        &mut self,
        settings: &H3Settings,
        id: u64,
        bytes: &[u8],
        fin: bool,
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        let at = self.unis.iter().position(|(of, _)| *of == id).unwrap_or_else(|| {
            self.unis.push((id, Uni::Typing(Vec::new())));
            self.unis.len() - 1
        });
        let mut input = bytes;
        let (_, uni) = &mut self.unis[at];
        if self.control.identify(uni, &mut input)? == Typed::Unknown {
            self.load.charge(load::ODD)?;
            self.orders.push(Order::StopUnknown(id));
        }
        match uni {
            Uni::Typing(_) | Uni::Ignored => {}
            Uni::Control => {
                self.control.receive(input, &mut self.load, &mut self.news)?;
                self.follow_news();
            }
            Uni::Encoder => {
                let count = self.decoder.receive(input).map_err(control::encoder_stream)?;
                self.load.charge(count.saturating_mul(load::ODD))?;
                self.unblock(settings, heads, events)?;
            }
            Uni::Decoder => self.encoder.receive(input).map_err(control::decoder_stream)?,
        }
        if fin { self.close_uni(id) } else { Ok(()) }
    }

    /// Handles the end of a peer's unidirectional stream.
    pub(super) fn close_uni(&mut self, id: u64) -> Result<(), ConnError> {
        let Some(at) = self.unis.iter().position(|(of, _)| *of == id) else { return Ok(()) };
        let (_, uni) = self.unis.swap_remove(at);
        if uni.is_critical() {
            return Err(fatal(code::CLOSED_CRITICAL_STREAM, "client closes a critical stream"));
        }
        Ok(())
    }

    /// Resumes the streams whose missing insertions have come.
    fn unblock(
        &mut self,
        settings: &H3Settings,
        heads: &mut HeadPool,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        let inserted = self.decoder.inserted();
        let mut at = 0;
        while let Some(&slot) = self.blocked.get(at) {
            let held = self.streams.at(slot).and_then(|stream| stream.recv.held.as_ref());
            debug_assert!(held.is_some(), "a blocked stream holds its section");
            if held.is_some_and(|held| held.required > inserted) {
                at += 1;
                continue;
            }
            self.blocked.remove(at);
            self.read(settings, slot, None, heads, events)?;
        }
        Ok(())
    }

    fn follow_news(&mut self) {
        for news in std::mem::take(&mut self.news) {
            match news {
                ControlNews::TableCapacity(capacity) => self.encoder.allow(capacity),
                ControlNews::Priority(id, priority) => self.prioritise(id, priority),
            }
        }
    }

    fn prioritise(&mut self, id: u64, priority: Priority) {
        let Some(slot) = self.streams.slot_of(id) else {
            self.early_priorities.retain(|(of, _)| *of != id);
            if self.early_priorities.len() == EARLY_PRIORITIES_MAX {
                self.early_priorities.remove(0);
            }
            return self.early_priorities.push((id, priority));
        };
        let Some(stream) = self.streams.at(slot) else { return };
        stream.is_priority_pinned = true;
        stream.prioritise(priority);
        if stream.has_new_priority {
            self.sched.reprioritise(slot, priority);
            self.orders.push(Order::Prioritise(slot, id));
        }
    }
}
