//! Requests that a client breaks off: `RESET_STREAM` and `STOP_SENDING`, and what they cost it.

use bolide_base::Now;

use super::frame::code;
use super::recv::fatal;
use super::streams::{H3StreamFate, H3StreamPhase};
use super::{H3Conn, Order, load};
use crate::{ConnError, WireEvent, WireRefusal, pseudo};

impl H3Conn {
    /// Handles the peer's `RESET_STREAM`.
    ///
    /// # Errors
    ///
    /// RFC 9114 §6.2.1: a critical stream must not be closed.
    pub fn handle_reset(
        &mut self,
        stream: u64,
        _code: u64,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        if stream & 3 == 2 {
            return self.close_uni(stream);
        }
        let Some(slot) = self.streams.slot_of(stream) else {
            // The peer reset it before any of it was read. Our side has to end as well: QUIC grants
            // the peer another stream only after both sides are closed.
            self.load.charge(load::ODD)?;
            self.orders.push(Order::Forsake(stream));
            return Ok(());
        };
        self.charge_cancelled(slot)?;
        let name = self.streams.name(slot);
        if let Some(stream) = self.streams.at(slot) {
            if stream.recv.phase == H3StreamPhase::Blocked && !stream.is_announced {
                // As in nginx, the request counts, and is answered.
                debug_assert!(stream.recv.held.is_some(), "a blocked stream holds its section");
                self.blocked.retain(|&other| other != slot);
                stream.recv.held = None;
                stream.recv.phase = H3StreamPhase::Ended;
                stream.is_announced = true;
                stream.is_malformed = true;
                self.requests += 1;
                self.decoder.cancel(stream.id);
                let mut head = Box::<bolide_http::RequestHead>::default();
                head.version = bolide_http::HttpVersion::Http3;
                head.early = stream.recv.is_early;
                let refusal = WireRefusal { status: 400, reason: pseudo::CLOSED_EARLY };
                events.push(WireEvent::Refused { stream: name, head, refusal });
                return Ok(());
            }
            // The peer's side is over and needs no STOP_SENDING, but QPACK needs a Stream
            // Cancellation.
            if stream.recv.phase != H3StreamPhase::Ended {
                stream.recv.phase = H3StreamPhase::Ended;
                self.decoder.cancel(stream.id);
            }
        }
        self.abort(slot, code::REQUEST_CANCELLED, events);
        Ok(())
    }

    /// Handles the peer's `STOP_SENDING`.
    ///
    /// # Errors
    ///
    /// RFC 9114 §6.2.1: a critical stream must not be closed.
    pub fn handle_stopped(
        &mut self,
        stream: u64,
        _code: u64,
        events: &mut Vec<WireEvent>,
    ) -> Result<(), ConnError> {
        if [&self.control_out, &self.encoder_out, &self.decoder_out].iter().any(|o| o.is(stream)) {
            return Err(fatal(code::CLOSED_CRITICAL_STREAM, "client stops a critical stream"));
        }
        if let Some(slot) = self.streams.slot_of(stream) {
            self.charge_cancelled(slot)?;
            self.abort(slot, code::REQUEST_CANCELLED, events);
        }
        Ok(())
    }

    /// Credits the time until `now` for unusual input; called before each read.
    #[inline]
    pub fn rest(&mut self, now: Now) {
        self.load.rest(now);
    }

    /// Returns the requests that the client broke since the last call.
    pub const fn take_wasted(&mut self) -> u32 {
        self.load.take_wasted()
    }

    /// Charges a cancelled request, once: clients reset it and stop the response. It costs less
    /// after its response has begun.
    fn charge_cancelled(&mut self, slot: u32) -> Result<(), ConnError> {
        let cost = match self.streams.at(slot) {
            Some(stream) if stream.fate != H3StreamFate::Open => return Ok(()),
            Some(stream) if stream.send.is_answered => load::ODD,
            Some(stream) if stream.is_announced => {
                self.load.cost_of_cancelling(stream.announced_in)
            }
            _ => load::CANCELLED,
        };
        self.load.charge(cost)
    }
}
