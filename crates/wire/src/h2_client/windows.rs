//! Flow control in both directions (RFC 9113 §5.2), and the upstream's largest frame.
//!
//! Owns the windows of the connection and of its one stream.

use crate::h2::frame::{FRAME_SIZES, FrameKind, WINDOW_INITIAL, WINDOW_MAX, push_u32};

/// The windows of the upstream are opened again below this.
const REOPENED_BELOW: u32 = WINDOW_MAX / 4;

/// Both windows in both directions.
#[derive(Debug)]
pub(super) struct ClientWindows {
    send: u32,
    /// Negative where the upstream has lowered its initial window.
    stream_send: i64,
    /// The upstream's `SETTINGS_INITIAL_WINDOW_SIZE`.
    initial: u32,
    /// The upstream's `SETTINGS_MAX_FRAME_SIZE`.
    frame_size: u32,
    receive: u32,
    stream_receive: u32,
}

impl ClientWindows {
    pub(super) const fn new() -> Self {
        Self {
            send: WINDOW_INITIAL,
            stream_send: WINDOW_INITIAL as i64,
            initial: WINDOW_INITIAL,
            frame_size: *FRAME_SIZES.start(),
            receive: WINDOW_MAX,
            stream_receive: WINDOW_MAX,
        }
    }

    /// A new stream begins.
    pub(super) const fn begin_stream(&mut self) {
        debug_assert!(self.initial <= WINDOW_MAX, "a larger initial window is refused");
        self.stream_send = self.initial as i64;
        self.stream_receive = WINDOW_MAX;
    }

    /// The longest payload that the upstream takes.
    pub(super) const fn frame_size(&self) -> u32 {
        self.frame_size
    }

    /// Bytes of the body that may be sent now, in one frame.
    pub(super) const fn room(&self) -> u32 {
        if self.stream_send <= 0 {
            return 0;
        }
        let stream = self.stream_send as u32;
        let window = if stream < self.send { stream } else { self.send };
        if window < self.frame_size { window } else { self.frame_size }
    }

    /// Counts sent bytes of the body.
    pub(super) fn sent(&mut self, bytes: u32) {
        assert!(bytes <= self.room(), "DATA fits the windows and the upstream's frame size");
        self.send -= bytes;
        self.stream_send -= i64::from(bytes);
    }

    /// Counts the payload of a DATA frame, and opens the windows again.
    ///
    /// # Errors
    ///
    /// The upstream sent more than it may; the text for the error log.
    pub(super) fn take(
        &mut self,
        stream: u32,
        len: u32,
        answers: &mut Vec<u8>,
    ) -> Result<(), String> {
        for (window, whose, id) in
            [(&mut self.receive, "connection", 0), (&mut self.stream_receive, "stream", stream)]
        {
            let Some(rest) = window.checked_sub(len) else {
                return Err(format!(
                    "upstream violated {whose} flow control, received {len} data frame with \
                     window {window}"
                ));
            };
            *window = rest;
            if rest < REOPENED_BELOW {
                push_u32(answers, FrameKind::WindowUpdate, id, WINDOW_MAX - rest);
                *window = WINDOW_MAX;
            }
        }
        Ok(())
    }

    /// A WINDOW_UPDATE of the connection; `None` if the window would be too large.
    pub(super) fn widen(&mut self, by: u32) -> Option<()> {
        self.send = self.send.checked_add(by).filter(|window| *window <= WINDOW_MAX)?;
        Some(())
    }

    /// A WINDOW_UPDATE of the stream; `None` if the window would be too large.
    pub(super) fn widen_stream(&mut self, by: i64) -> Option<()> {
        let widened = self.stream_send + by;
        self.stream_send = (widened <= i64::from(WINDOW_MAX)).then_some(widened)?;
        Some(())
    }

    /// RFC 9113 §6.9.2: a new initial window changes that of the stream.
    pub(super) fn set_initial(&mut self, size: u32) -> Option<()> {
        let change = i64::from(size) - i64::from(self.initial);
        self.initial = size;
        self.widen_stream(change)
    }

    /// A new largest frame; `None` if it is out of bounds.
    pub(super) fn set_frame_size(&mut self, size: u32) -> Option<()> {
        self.frame_size = Some(size).filter(|size| FRAME_SIZES.contains(size))?;
        Some(())
    }
}
