//! The body of an answer while it leaves, and what stands behind it.
//!
//! Owns how much of it was given: no more than the head says. Refuses to know which protocol sends
//! it.

use bolide_base::SendChain;
use bolide_http::BodyLen;

use crate::answer::{Answer, BodyPiece};
use crate::request::Request;

/// LIMIT: pulls in a row of which nothing comes.
const EMPTY_PULLS_MAX: u32 = 64;

/// The body of an exchange's answer; see [`super::Exchange::response_body`].
#[derive(Debug)]
pub struct ResponseBody<'a> {
    pub(crate) request: &'a Request,
    pub(crate) answer: &'a mut Answer,
}

impl ResponseBody<'_> {
    /// Appends at most `max` bytes of the body to `out`, or describes a part of a file.
    #[inline]
    pub fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        let before = out.len();
        let piece = self.answer.body.pull(max, out);
        let given = out.len() - before;
        if given == 0 && max > 0 && matches!(piece, BodyPiece::More) {
            return self.pull_on(max, out);
        }
        self.count(given);
        piece
    }

    /// Pulls on where a pull gave nothing and promised more: framing would wait behind it.
    #[cold]
    fn pull_on(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        debug_assert!(max > 0, "a pull for no bytes gives none");
        let before = out.len();
        for _ in 0..EMPTY_PULLS_MAX {
            let piece = self.answer.body.pull(max, out);
            if out.len() > before || !matches!(piece, BodyPiece::More) {
                self.count(out.len() - before);
                return piece;
            }
        }
        debug_assert!(false, "a body that has more gives some of it before long");
        BodyPiece::Broken
    }

    /// Notes that `len` bytes of the file part described by the last pull were sent.
    #[inline]
    pub fn advance(&mut self, len: u64) {
        self.answer.body.advance(len);
        self.count(len);
    }

    #[inline]
    fn count(&mut self, len: u64) {
        self.answer.body_sent += len;
        let (sent, stated) = (self.answer.body_sent, self.answer.head.body);
        debug_assert!(
            !matches!(stated, BodyLen::Exact(whole) if sent > whole),
            "a body of a stated length yields no more than that"
        );
    }

    /// Takes what was read of the file part described by the last pull; an empty slice tells that
    /// reading failed or that the file is not what it was, and breaks the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.answer.body.feed(bytes);
    }

    /// Whether it takes other bytes than it gives: one that does is asked for no more in a turn in
    /// which [`Self::take_work`] has told of as many as a turn may take.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.answer.body.is_changed()
    }

    /// How many bytes were taken to change them since the last call.
    pub fn take_work(&mut self) -> u64 {
        self.answer.body.take_work()
    }

    /// Whether more of the origin's answer may be read now; to be asked after pulls, when
    /// [`crate::StepEffect::FetchMayRead`] had forbidden it.
    #[must_use]
    pub fn wants_origin(&self) -> bool {
        self.answer.wants_origin()
    }
}
