//! A body that is changed on its way: gzip undone, texts replaced, recoded, coded again.
//!
//! Owns what was made and has not left: what one step of the work gives, which may take several for
//! one piece of the inner body.
//! Easiest to break: what the inner body wants of the worker (files, fragments) it still gets.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_files::{CodingDecoder, CodingEncoder};

use super::substitute::{STEP, Substitute};
use super::{AnswerBody, BodyPiece, Recoder};

/// Bytes of the inner body that one piece takes.
const PIECE: usize = 16 * 1024;
/// The same where each byte may become a thousand.
const PIECE_CODED: usize = 2 * 1024;

/// What is done to a body.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) decoder: Option<CodingDecoder>,
    pub(crate) substitute: Option<Substitute>,
    pub(crate) recoder: Option<Recoder>,
    pub(crate) encoder: Option<CodingEncoder>,
}

/// A body that is changed on its way.
#[derive(Debug)]
pub(crate) struct Reworked {
    pub(crate) inner: AnswerBody,
    work: Work,
    /// What was made and has not left.
    ready: Vec<u8>,
    given: usize,
    /// Between two steps of the work.
    between: Vec<u8>,
    /// The same, behind recoding.
    recoded: Vec<u8>,
    state: ReworkState,
    /// Whether the encoder holds something back.
    unflushed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReworkState {
    Going,
    /// The inner body is over; the work is not.
    Ending,
    Over,
    Broken,
}

impl Reworked {
    pub(crate) const fn new(inner: AnswerBody, work: Work) -> Self {
        Self {
            inner,
            work,
            ready: Vec::new(),
            given: 0,
            between: Vec::new(),
            recoded: Vec::new(),
            state: ReworkState::Going,
            unflushed: false,
        }
    }

    /// Takes what was read of a file for the inner body.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        match &mut self.inner {
            inner if inner.feeds_itself() => inner.feed(bytes),
            AnswerBody::Parts(parts) if parts.feeds_itself() => self.inner.feed(bytes),
            _ if bytes.is_empty() => self.state = ReworkState::Broken,
            inner => {
                inner.advance(bytes.len() as u64);
                self.take(bytes);
            }
        }
    }

    /// Works until there is something to give: who is given nothing waits to be woken.
    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        let before = out.len();
        loop {
            let piece = self.pull_some(max, out);
            if !matches!(piece, BodyPiece::More) || out.len() > before {
                return piece;
            }
        }
    }

    fn pull_some(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        if self.given < self.ready.len() {
            return self.give(max, out);
        }
        empty(&mut self.ready);
        self.given = 0;
        match self.state {
            ReworkState::Broken => return BodyPiece::Broken,
            ReworkState::Over => return BodyPiece::End,
            ReworkState::Ending => {
                self.end();
                return self.give(max, out);
            }
            ReworkState::Going
                if self.work.substitute.as_ref().is_some_and(Substitute::is_behind) =>
            {
                self.rework(b"");
                return self.give(max, out);
            }
            ReworkState::Going => {}
        }
        let grows = self.work.decoder.is_some() || self.work.recoder.is_some();
        let size = if grows { PIECE_CODED } else { PIECE };
        let mut chain = SendChain::new(CopyPolicy::Contiguous);
        let piece = self.inner.pull(size, &mut chain);
        if let Some(bytes) = chain.contiguous().filter(|bytes| !bytes.is_empty()) {
            self.take(bytes);
        }
        match piece {
            BodyPiece::More => {}
            BodyPiece::Pending => {
                self.flush();
                if self.ready.is_empty() && self.state == ReworkState::Going {
                    return BodyPiece::Pending;
                }
            }
            BodyPiece::End => self.finish(),
            BodyPiece::Broken => self.state = ReworkState::Broken,
            BodyPiece::File { file, offset, len, expect } => {
                return BodyPiece::Read { file, offset, len: len.min(size as u64), expect };
            }
            BodyPiece::Read { .. } | BodyPiece::Fragment(_) => return piece,
        }
        self.give(max, out)
    }

    fn give(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        debug_assert!(self.given <= self.ready.len(), "no more leaves than was made");
        let end = self.ready.len().min(self.given + max);
        out.push_slice(&self.ready[self.given..end]);
        self.given = end;
        match self.state {
            _ if self.given < self.ready.len() => BodyPiece::More,
            ReworkState::Going | ReworkState::Ending => BodyPiece::More,
            ReworkState::Over => BodyPiece::End,
            ReworkState::Broken => BodyPiece::Broken,
        }
    }

    /// Does the work on one piece.
    fn take(&mut self, bytes: &[u8]) {
        let Some(decoder) = &mut self.work.decoder else { return self.rework(bytes) };
        let mut decoded = Vec::new();
        let is_broken = decoder.feed(bytes, &mut decoded).is_err();
        self.rework(&decoded);
        if is_broken {
            self.state = ReworkState::Broken;
        }
    }

    /// Replaces and codes, as far as one step goes.
    fn rework(&mut self, bytes: &[u8]) {
        let Self { work, ready, between, recoded, .. } = self;
        let mut now = bytes;
        let mut is_broken = false;
        if let Some(substitute) = &mut work.substitute {
            empty(between);
            substitute.feed(now, between);
            now = between;
        }
        if let Some(recoder) = &mut work.recoder {
            empty(recoded);
            recoder.feed(now, recoded);
            now = recoded;
        }
        match &mut work.encoder {
            _ if now.is_empty() => {}
            Some(encoder) => {
                is_broken |= encoder.feed(now, ready).is_err();
                self.unflushed = true;
            }
            None => ready.extend_from_slice(now),
        }
        if is_broken {
            self.state = ReworkState::Broken;
        }
    }

    /// Lets what the encoder holds leave: nothing comes for now.
    fn flush(&mut self) {
        let Some(encoder) = self.work.encoder.as_mut().filter(|_| self.unflushed) else { return };
        self.unflushed = false;
        if encoder.flush(&mut self.ready).is_err() {
            self.state = ReworkState::Broken;
        }
    }

    fn finish(&mut self) {
        if let Some(decoder) = self.work.decoder.take() {
            let mut rest = Vec::new();
            let is_whole = decoder.finish(&mut rest).is_ok();
            self.rework(&rest);
            if !is_whole {
                self.state = ReworkState::Broken;
            }
        }
        if self.state == ReworkState::Broken {
            return;
        }
        self.state = ReworkState::Ending;
        if self.ready.len() < STEP {
            self.end();
        }
    }

    /// Ends the work, as far as one step goes: nothing more comes.
    fn end(&mut self) {
        let Self { work, ready, between, recoded, state, .. } = self;
        empty(between);
        if work.substitute.as_mut().is_none_or(|substitute| substitute.finish(between)) {
            *state = ReworkState::Over;
        }
        let last = match &mut work.recoder {
            Some(recoder) => {
                empty(recoded);
                recoder.feed(between, recoded);
                recoded
            }
            None => between,
        };
        let Some(encoder) = &mut work.encoder else { return ready.append(last) };
        let mut done = encoder.feed(last, ready);
        if *state == ReworkState::Over
            && let Some(encoder) = work.encoder.take()
        {
            done = done.and_then(|()| encoder.finish(ready));
        }
        if done.is_err() {
            *state = ReworkState::Broken;
        }
    }
}

/// Empties a buffer, which keeps no more memory than a step needs.
fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(STEP);
}
