//! The body of a request as DATA frames, as far as the windows permit.

use bolide_base::SendChain;

use super::H2Client;
use crate::h2::frame::{FrameHeader, FrameKind, HEADER_LEN, flag};
use crate::outgoing::SendingState;
use crate::{BodySource, Pull, StreamOwner};

/// A frame shorter than this is not pulled just because the room ends.
const FRAME_MIN: usize = 256;

impl H2Client {
    /// Appends frames until `room` is used up, counted from `start`.
    pub(super) fn send_body(
        &mut self,
        room: usize,
        start: u64,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) {
        while self.pulls() && self.windows.room() > 0 {
            let left = room.saturating_sub((out.len() - start) as usize);
            let is_worth = left > HEADER_LEN && left >= FRAME_MIN.min(room);
            if !is_worth || !self.send_frame(left - HEADER_LEN, out, user, body) {
                return;
            }
        }
    }

    /// Appends one frame with at most `max` bytes of the body; whether there was anything.
    fn send_frame(
        &mut self,
        max: usize,
        out: &mut SendChain,
        user: StreamOwner,
        body: &mut impl BodySource,
    ) -> bool {
        let left =
            self.body_left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let max = max.min(self.windows.room() as usize).min(left);
        let mark = out.mark();
        out.push_slice(&[0; HEADER_LEN]);
        let before = out.len();
        let pull = fill(max, out, user, body);
        let filled = (out.len() - before) as usize;
        assert!(filled <= max, "a body gives no more than it was asked for");
        let is_whole = self.body_left.map_or(pull == Pull::End, |_| filled == left);
        self.sending = match pull {
            _ if is_whole => SendingState::Sent,
            // A body that is shorter than its declared length cannot be completed.
            Pull::End | Pull::Broken => SendingState::Broken,
            Pull::More | Pull::Pending => SendingState::Body,
        };
        self.is_pending = pull == Pull::Pending;
        if filled == 0 && !is_whole {
            out.rewind(mark);
            return false;
        }
        let flags = if is_whole { flag::END_STREAM } else { 0 };
        let (len, stream) = (filled as u32, self.stream);
        out.patch(mark, &FrameHeader { len, kind: FrameKind::Data, flags, stream }.bytes());
        self.windows.sent(len);
        if filled > 0 {
            self.reader.pay();
        }
        if let Some(left) = &mut self.body_left {
            *left -= filled as u64;
        }
        true
    }
}

/// Pulls until `max` bytes are appended or the body has no more for now.
fn fill(max: usize, out: &mut SendChain, user: StreamOwner, body: &mut impl BodySource) -> Pull {
    let start = out.len();
    loop {
        let before = out.len();
        let pull = body.pull(user, max - (before - start) as usize, out);
        let goes_on = pull == Pull::More && out.len() - start < max as u64 && out.len() > before;
        if !goes_on {
            return pull;
        }
    }
}
