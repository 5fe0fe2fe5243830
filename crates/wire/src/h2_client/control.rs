//! Frames about the connection, and resets: SETTINGS, PING, GOAWAY, WINDOW_UPDATE, RST_STREAM.

use super::H2Client;
use super::flaw::{invalid, too_large_update, too_many};
use crate::OriginError;
use crate::cgi::CgiPhase;
use crate::h2::frame::{FrameKind, WINDOW_MAX, code, flag, push, read_u32, setting};

/// LIMIT: bytes of answers to SETTINGS and PING that the upstream does not take.
const ANSWERS_MAX: usize = 32 * 1024;

impl H2Client {
    pub(super) fn take_settings(&mut self, payload: &[u8]) -> Result<(), OriginError> {
        for [a, b, c, d, e, f] in payload.as_chunks().0 {
            let value = u32::from_be_bytes([*c, *d, *e, *f]);
            let is_valid = match u16::from_be_bytes([*a, *b]) {
                setting::MAX_CONCURRENT_STREAMS => {
                    self.streams_max = value;
                    Some(())
                }
                setting::INITIAL_WINDOW_SIZE if value > WINDOW_MAX => {
                    let text = "upstream sent settings frame with too large initial window size";
                    return Err(invalid(format!("{text}: {value}")));
                }
                setting::INITIAL_WINDOW_SIZE => self.windows.set_initial(value),
                setting::MAX_FRAME_SIZE => {
                    let text = "upstream sent settings frame with invalid frame size";
                    let set = self.windows.set_frame_size(value);
                    set.ok_or_else(|| invalid(format!("{text}: {value}")))?;
                    Some(())
                }
                _ => Some(()),
            };
            is_valid.ok_or_else(too_large_update)?;
        }
        self.answer_with(FrameKind::Settings, b"")
    }

    /// Queues the acknowledgement of SETTINGS or PING.
    pub(super) fn answer_with(
        &mut self,
        kind: FrameKind,
        payload: &[u8],
    ) -> Result<(), OriginError> {
        if self.answers.len() > ANSWERS_MAX {
            return Err(too_many(kind));
        }
        // As in nginx, an upstream that takes the answers may ask as often as it likes.
        if self.answers.is_empty() {
            self.reader.pay();
        }
        debug_assert!(
            matches!((kind, payload.len()), (FrameKind::Settings, 0) | (FrameKind::Ping, 8)),
            "no other frames are acknowledged"
        );
        push(&mut self.answers, kind, flag::ACK, 0, payload);
        Ok(())
    }

    /// RFC 9113 §6.8: a request above the last stream was not processed; any other goes on.
    pub(super) fn take_goaway(&mut self, payload: &[u8]) -> Result<(), OriginError> {
        self.is_spoiled = true;
        let last = read_u32(payload).unwrap_or_default() & WINDOW_MAX;
        let code = payload.get(4..).and_then(read_u32).unwrap_or_default();
        if last < self.stream && self.is_running() {
            let text = format!("upstream sent goaway with error {code}");
            return Err(OriginError::Unprocessed(text.into_bytes().into()));
        }
        Ok(())
    }

    pub(super) fn take_window_update(
        &mut self,
        stream: u32,
        payload: &[u8],
    ) -> Result<(), OriginError> {
        let by = read_u32(payload).unwrap_or_default() & WINDOW_MAX;
        let is_within = match stream {
            0 => self.windows.widen(by),
            _ if stream == self.stream => self.windows.widen_stream(i64::from(by)),
            _ => Some(()),
        };
        is_within.ok_or_else(too_large_update)
    }

    /// Of the response, a reset is its end; behind it, it only says that no more is read of the
    /// request.
    pub(super) fn take_reset(&mut self, stream: u32, payload: &[u8]) -> Result<(), OriginError> {
        if stream != self.stream || !self.is_running() {
            return Ok(());
        }
        let code = read_u32(payload).unwrap_or_default();
        let text = format!("upstream rejected request with error {code}").into_bytes().into();
        let is_refused = code == code::REFUSED_STREAM && self.answer.phase() == CgiPhase::Head;
        Err(if is_refused { OriginError::Unprocessed(text) } else { OriginError::Invalid(text) })
    }
}
