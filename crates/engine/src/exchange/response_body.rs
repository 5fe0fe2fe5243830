//! The response body while it is sent, and its trailers.
//!
//! Owns how many bytes were given: no more than the head states. It does not know the protocol.

use bolide_base::SendChain;
use bolide_http::BodyLen;

use crate::answer::{Answer, BodyPiece};
use crate::request::Request;

/// LIMIT: consecutive pulls without a result.
const EMPTY_PULLS_MAX: u32 = 64;

/// The body of an exchange's response; see [`super::Exchange::response_body`].
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
        self.answer.is_cut_short |= matches!(piece, BodyPiece::Broken);
        piece
    }

    /// Repeats pulls that gave nothing but promised more, because framing would wait.
    #[cold]
    fn pull_on(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        debug_assert!(max > 0, "a pull for no bytes gives none");
        let before = out.len();
        for _ in 0..EMPTY_PULLS_MAX {
            let piece = self.answer.body.pull(max, out);
            if out.len() > before || !matches!(piece, BodyPiece::More) {
                self.count(out.len() - before);
                self.answer.is_cut_short |= matches!(piece, BodyPiece::Broken);
                return piece;
            }
        }
        debug_assert!(false, "a body that has more gives some of it before long");
        BodyPiece::Broken
    }

    /// Reports that `len` bytes of the file part of the last pull were sent.
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

    /// Passes the bytes that were read of the file part of the last pull. An empty slice means that
    /// reading failed or that the file has changed, and breaks the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.answer.body.feed(bytes);
    }

    /// Whether a filter changes its bytes. Such a body is not pulled again in a turn in which
    /// [`Self::take_work`] has reached the turn's limit.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.answer.body.is_changed()
    }

    /// The bytes that filters have processed since the last call.
    pub fn take_work(&mut self) -> u64 {
        self.answer.body.take_work()
    }

    /// Whether more of the upstream response may be read; to be checked after pulls, when
    /// [`crate::StepEffect::FetchMayRead`] has forbidden it.
    #[must_use]
    pub fn wants_origin(&self) -> bool {
        self.answer.wants_origin()
    }
}
