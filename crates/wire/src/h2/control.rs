//! Receives the frames that carry neither fields nor data: SETTINGS, WINDOW_UPDATE, PING,
//! RST_STREAM, PRIORITY, GOAWAY.
//!
//! Each handler checks size and stream, charges the cost of the frame, and then applies it.

use super::abuse::CountedFrame;
use super::frame::{self, FRAME_SIZES, FrameHeader, FrameKind, WINDOW_MAX};
use super::frame::{code, flag, setting};
use super::recv::{H2RecvTurn, error, protocol};
use super::streams::{Closed, H2Sending};
use super::{EARLY_MAX, H2Conn};
use crate::sched::Priority;
use crate::{ConnError, WireEvent};

impl H2Conn {
    /// RFC 9113 §6.5.
    pub(super) fn receive_settings(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        let is_ack = header.has(flag::ACK);
        if header.stream != 0 {
            return Err(protocol("client sent SETTINGS frame on a stream"));
        }
        if (is_ack && !payload.is_empty()) || !payload.len().is_multiple_of(6) {
            return Err(error(
                code::FRAME_SIZE_ERROR,
                "client sent SETTINGS frame with incorrect length",
            ));
        }
        if is_ack {
            self.settings_are_acked = true;
            return Ok(());
        }
        self.abuse.charge(CountedFrame::Settings)?;
        let (entries, _) = payload.as_chunks::<6>();
        for &[a, b, c, d, e, f] in entries {
            let (id, value) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
            self.apply_setting(id, value)?;
        }
        self.output.ack(FrameKind::Settings, &[]);
        Ok(())
    }

    fn apply_setting(&mut self, id: u16, value: u32) -> Result<(), ConnError> {
        match id {
            setting::HEADER_TABLE_SIZE => self.output.limit_table(value),
            setting::ENABLE_PUSH | setting::NO_RFC7540_PRIORITIES if value > 1 => {
                return Err(protocol("client sent SETTINGS frame with a value that is no boolean"));
            }
            setting::INITIAL_WINDOW_SIZE if value > WINDOW_MAX => {
                return Err(error(
                    code::FLOW_CONTROL_ERROR,
                    "client sent SETTINGS frame with incorrect INITIAL_WINDOW_SIZE value",
                ));
            }
            setting::INITIAL_WINDOW_SIZE => {
                let delta = i64::from(value) - i64::from(self.flow.send_initial);
                self.flow.send_initial = value;
                self.streams.move_send_windows(delta).ok_or(error(
                    code::FLOW_CONTROL_ERROR,
                    "client made a window too large by SETTINGS",
                ))?;
            }
            setting::MAX_FRAME_SIZE if !FRAME_SIZES.contains(&value) => {
                return Err(protocol(
                    "client sent SETTINGS frame with incorrect MAX_FRAME_SIZE value",
                ));
            }
            setting::MAX_FRAME_SIZE => self.output.set_frame_size(value),
            // RFC 9113 §6.5.2: unknown settings MUST be ignored.
            _ => {}
        }
        Ok(())
    }

    /// RFC 9113 §6.7.
    pub(super) fn receive_ping(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        if payload.len() != 8 {
            return Err(error(
                code::FRAME_SIZE_ERROR,
                "client sent PING frame with incorrect length",
            ));
        }
        if header.stream != 0 {
            return Err(protocol("client sent PING frame on a stream"));
        }
        self.abuse.charge(CountedFrame::Ping)?;
        if !header.has(flag::ACK) {
            self.output.ack(FrameKind::Ping, payload);
        }
        Ok(())
    }

    /// RFC 9113 §6.9.
    pub(super) fn receive_window_update(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        let &[a, b, c, d] = payload else {
            return Err(error(
                code::FRAME_SIZE_ERROR,
                "client sent WINDOW_UPDATE frame with incorrect length",
            ));
        };
        let increment = u32::from_be_bytes([a, b, c, d]) & WINDOW_MAX;
        self.abuse.charge(CountedFrame::WindowUpdate)?;
        if header.stream == 0 {
            if increment == 0 {
                return Err(protocol("client sent WINDOW_UPDATE frame with increment 0"));
            }
            // RFC 9113 §6.9.1: a window MUST NOT exceed 2^31-1.
            let window = self.flow.send + increment;
            if window > WINDOW_MAX {
                return Err(error(
                    code::FLOW_CONTROL_ERROR,
                    "client violated flow control by an overflow",
                ));
            }
            self.flow.send = window;
            return Ok(());
        }
        self.check_idle(header.stream, "client sent WINDOW_UPDATE frame on an idle stream")?;
        // RFC 9113 §5.1: on a closed stream it is no error.
        let Some(slot) = self.streams.find(header.stream) else { return Ok(()) };
        let stream = self.streams.at(slot);
        let wrong = match stream.send_window.checked_add_unsigned(increment) {
            Some(_) if increment == 0 => code::PROTOCOL_ERROR,
            Some(window) => {
                stream.send_window = window;
                self.streams.schedule(slot);
                return Ok(());
            }
            None => code::FLOW_CONTROL_ERROR,
        };
        self.stream_error(header.stream, wrong, turn.events)
    }

    /// RFC 9113 §6.4.
    pub(super) fn receive_reset(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        if payload.len() != 4 {
            return Err(error(
                code::FRAME_SIZE_ERROR,
                "client sent RST_STREAM frame with incorrect length",
            ));
        }
        self.check_idle(header.stream, "client sent RST_STREAM frame on an idle stream")?;
        self.output.withhold_reset(header.stream);
        let Some(slot) = self.streams.find(header.stream) else {
            return self.abuse.charge(CountedFrame::Stray);
        };
        let is_waste = self.streams.at(slot).sending == H2Sending::Waiting;
        let user = self.drop_stream(slot, Closed::ByPeer);
        turn.events.extend(user.map(|user| WireEvent::Reset { user }));
        if is_waste { self.abuse.cancel(header.stream) } else { Ok(()) }
    }

    /// RFC 9113 §6.3: checked and ignored; our SETTINGS announce RFC 9218 instead.
    pub(super) fn receive_priority(
        &mut self,
        turn: &mut H2RecvTurn<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        if header.stream == 0 {
            return Err(protocol("client sent PRIORITY frame with incorrect identifier"));
        }
        self.abuse.charge(CountedFrame::Priority)?;
        let wrong = match *payload {
            [a, b, c, d, _] => {
                let depends_on = u32::from_be_bytes([a, b, c, d]) & WINDOW_MAX;
                (depends_on == header.stream).then_some(code::PROTOCOL_ERROR)
            }
            _ => Some(code::FRAME_SIZE_ERROR),
        };
        let Some(code) = wrong else { return Ok(()) };
        let is_reset =
            matches!(self.streams.closed(header.stream), Some(Closed::ByPeer | Closed::ByUs));
        if self.streams.find(header.stream).is_none() && !is_reset {
            // RFC 9113 §6.4, §5.1, §5.4: no reset may name a stream that is idle or has ended.
            return Err(error(code, "client sent incorrect PRIORITY frame on no open stream"));
        }
        self.stream_error(header.stream, code, turn.events)
    }

    /// RFC 9218 §7.1.
    pub(super) fn receive_priority_update(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnError> {
        if header.stream != 0 {
            return Err(protocol("client sent PRIORITY_UPDATE frame on a stream"));
        }
        let (Some(id), Some(text)) = (frame::read_u32(payload), payload.get(4..)) else {
            return Err(error(
                code::FRAME_SIZE_ERROR,
                "client sent PRIORITY_UPDATE frame with incorrect length",
            ));
        };
        let id = id & WINDOW_MAX;
        if id.is_multiple_of(2) {
            return Err(protocol("client sent PRIORITY_UPDATE frame for no request"));
        }
        self.abuse.charge(CountedFrame::Priority)?;
        let priority = Priority::parse(text);
        if id > self.last_seen {
            self.early.retain(|(early, _)| *early != id);
            // LIMIT: the oldest entry is dropped. A priority is only a hint.
            if self.early.len() == EARLY_MAX {
                self.early.remove(0);
            }
            self.early.push((id, priority));
        } else if let Some(slot) = self.streams.find(id) {
            self.streams.at(slot).priority = priority;
            self.streams.sched.reprioritise(slot, priority);
        }
        Ok(())
    }

    /// RFC 9113 §5.1: on an idle stream only HEADERS and PRIORITY are allowed.
    fn check_idle(&self, id: u32, reason: &'static str) -> Result<(), ConnError> {
        if id.is_multiple_of(2) || id > self.last_seen { Err(protocol(reason)) } else { Ok(()) }
    }
}

/// RFC 9113 §6.8: the client accepts no more pushed streams, and we push none. It closes the
/// connection itself; until then its frames are still handled.
pub(super) fn receive_goaway(header: &FrameHeader, payload: &[u8]) -> Result<(), ConnError> {
    if header.stream != 0 {
        return Err(protocol("client sent GOAWAY frame on a stream"));
    }
    if payload.len() < 8 {
        return Err(error(
            code::FRAME_SIZE_ERROR,
            "client sent GOAWAY frame with incorrect length",
        ));
    }
    Ok(())
}
