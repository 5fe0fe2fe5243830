//! A body that is changed on its way: gzip undone, texts replaced, coded again.
//!
//! Owns what was made and has not left, which is at most what one piece of the inner body gives.
//! Easiest to break: what the inner body wants of the worker (files, fragments) it still gets.

use base::SendChain;
use base::chain::Weave;
use files::{Decoder, Encoder};

use super::substitute::Substitute;
use super::{Body, Piece};

/// Bytes of the inner body that one piece takes.
const PIECE: usize = 16 * 1024;
/// The same where each byte may become a thousand.
const PIECE_CODED: usize = 2 * 1024;

/// What is done to a body.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) decoder: Option<Decoder>,
    pub(crate) substitute: Option<Substitute>,
    pub(crate) encoder: Option<Encoder>,
}

/// A body that is changed on its way.
#[derive(Debug)]
pub(crate) struct Reworked {
    pub(crate) inner: Body,
    work: Work,
    /// What was made and has not left.
    ready: Vec<u8>,
    given: usize,
    /// Between two steps of the work.
    between: Vec<u8>,
    state: State,
    /// Whether the encoder holds something back.
    unflushed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Going,
    Over,
    Broken,
}

impl Reworked {
    pub(crate) const fn new(inner: Body, work: Work) -> Self {
        Self {
            inner,
            work,
            ready: Vec::new(),
            given: 0,
            between: Vec::new(),
            state: State::Going,
            unflushed: false,
        }
    }

    /// Takes what was read of a file for the inner body.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        match &mut self.inner {
            Body::Span(super::Source::Outside(_), _) | Body::Stream(_) => self.inner.feed(bytes),
            Body::Parts(_) => self.state = State::Broken,
            _ if bytes.is_empty() => self.state = State::Broken,
            inner => {
                inner.advance(bytes.len() as u64);
                self.take(bytes);
            }
        }
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> Piece {
        if self.given < self.ready.len() {
            return self.give(max, out);
        }
        self.ready.clear();
        self.given = 0;
        match self.state {
            State::Broken => return Piece::Broken,
            State::Over => return Piece::End,
            State::Going => {}
        }
        let size = if self.work.decoder.is_some() { PIECE_CODED } else { PIECE };
        let mut chain = SendChain::new(Weave::Contiguous);
        let piece = self.inner.pull(size, &mut chain);
        if let Some(bytes) = chain.contiguous().filter(|bytes| !bytes.is_empty()) {
            self.take(bytes);
        }
        match piece {
            Piece::More => {}
            Piece::Pending => {
                self.flush();
                if self.ready.is_empty() && self.state == State::Going {
                    return Piece::Pending;
                }
            }
            Piece::End => self.finish(),
            Piece::Broken => self.state = State::Broken,
            Piece::File { file, offset, len, expect } => {
                return Piece::Read { file, offset, len: len.min(size as u64), expect };
            }
            Piece::Read { .. } | Piece::Fragment(_) => return piece,
        }
        self.give(max, out)
    }

    fn give(&mut self, max: usize, out: &mut SendChain) -> Piece {
        let end = self.ready.len().min(self.given + max);
        out.push_slice(&self.ready[self.given..end]);
        self.given = end;
        match self.state {
            _ if self.given < self.ready.len() => Piece::More,
            State::Going => Piece::More,
            State::Over => Piece::End,
            State::Broken => Piece::Broken,
        }
    }

    /// Does the work on one piece.
    fn take(&mut self, bytes: &[u8]) {
        let Self { work, ready, between, .. } = self;
        let mut is_broken = false;
        let mut now: &[u8] = bytes;
        let mut decoded = Vec::new();
        if let Some(decoder) = &mut work.decoder {
            is_broken = decoder.feed(now, &mut decoded).is_err();
            now = &decoded;
        }
        if let Some(substitute) = &mut work.substitute {
            between.clear();
            substitute.feed(now, between);
            now = between;
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
            self.state = State::Broken;
        }
    }

    /// Lets what the encoder holds leave: nothing comes for now.
    fn flush(&mut self) {
        let Some(encoder) = self.work.encoder.as_mut().filter(|_| self.unflushed) else { return };
        self.unflushed = false;
        if encoder.flush(&mut self.ready).is_err() {
            self.state = State::Broken;
        }
    }

    fn finish(&mut self) {
        if let Some(decoder) = self.work.decoder.take() {
            let mut rest = Vec::new();
            let is_whole = decoder.finish(&mut rest).is_ok();
            self.take(&rest);
            if !is_whole {
                self.state = State::Broken;
            }
        }
        if self.state == State::Broken {
            return;
        }
        let mut rest = Vec::new();
        if let Some(substitute) = &mut self.work.substitute {
            substitute.finish(&mut rest);
        }
        self.state = State::Over;
        match self.work.encoder.take() {
            None => self.ready.append(&mut rest),
            Some(mut encoder) => {
                let fed = encoder.feed(&rest, &mut self.ready);
                if fed.and_then(|()| encoder.finish(&mut self.ready)).is_err() {
                    self.state = State::Broken;
                }
            }
        }
    }
}
