//! The body of an origin's answer on its way to the client: bounded, measured, maybe compressed.
//!
//! Owns how much may wait; refuses more or fewer bytes than the head told. Easiest to break: a body
//! that ends early is `Broken`, never `End`.
#![allow(dead_code, reason = "codings follow")]

use base::{Retain, SendChain, Spool, SpoolLimits, SpoolPiece};
use bytes::Bytes;
use files::Encoder;

use super::Piece;

/// When what an encoder holds back leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// When there is enough of it.
    Lazily,
    /// With each piece that the origin sends.
    Always,
}

/// A body that comes from an origin.
#[derive(Debug)]
pub(crate) struct Inflow {
    spool: Spool,
    /// What is missing of the length that the origin told.
    left: Option<u64>,
    encoder: Option<Encoder>,
    flush: Flush,
    /// Bytes before and after the encoder.
    before: u64,
    after: u64,
}

/// Whether a piece was more than the origin told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fits {
    /// It was not.
    Yes,
    /// It was; what is too much was thrown away.
    TooMuch,
}

impl Inflow {
    /// An empty body; `len` is what the origin told.
    pub(crate) const fn new(limits: SpoolLimits, len: Option<u64>) -> Self {
        Self {
            spool: Spool::new(limits, Retain::No),
            left: len,
            encoder: None,
            flush: Flush::Lazily,
            before: 0,
            after: 0,
        }
    }

    /// The same, compressed on its way.
    pub(crate) fn encoded(self, encoder: Encoder, flush: Flush) -> Self {
        Self { encoder: Some(encoder), flush, ..self }
    }

    /// Takes what the origin sent.
    pub(crate) fn push(&mut self, mut bytes: Bytes) -> Fits {
        let mut fits = Fits::Yes;
        if let Some(left) = &mut self.left {
            if bytes.len() as u64 > *left {
                bytes.truncate(*left as usize);
                fits = Fits::TooMuch;
            }
            *left -= bytes.len() as u64;
        }
        if bytes.is_empty() || self.spool.is_broken() {
            return fits;
        }
        let Some(encoder) = &mut self.encoder else {
            self.spool.push(bytes);
            return fits;
        };
        let mut coded = Vec::new();
        let fed = encoder.feed(&bytes, &mut coded).and_then(|()| match self.flush {
            Flush::Lazily => Ok(()),
            Flush::Always => encoder.flush(&mut coded),
        });
        self.before += bytes.len() as u64;
        self.after += coded.len() as u64;
        if fed.is_err() {
            self.spool.fail();
        } else if !coded.is_empty() {
            self.spool.push(Bytes::from(coded));
        }
        fits
    }

    /// Notes that the origin has sent everything; false when that is less than it told.
    pub(crate) fn finish(&mut self) -> bool {
        if self.left.is_some_and(|left| left > 0) {
            self.spool.fail();
            return false;
        }
        if self.spool.is_broken() || self.spool.is_complete() {
            return true;
        }
        if let Some(encoder) = self.encoder.take() {
            let mut coded = Vec::new();
            if encoder.finish(&mut coded).is_err() {
                self.spool.fail();
                return true;
            }
            self.after += coded.len() as u64;
            self.spool.push(Bytes::from(coded));
        }
        self.spool.finish();
        true
    }

    /// Notes that the rest will not come.
    pub(crate) fn fail(&mut self) {
        self.spool.fail();
    }

    /// Bytes before and after the encoder.
    pub(crate) const fn sizes(&self) -> (u64, u64) {
        (self.before, self.after)
    }

    /// What waits, for writing it to a file.
    pub(crate) const fn spool_mut(&mut self) -> &mut Spool {
        &mut self.spool
    }

    /// What waits.
    pub(crate) const fn spool(&self) -> &Spool {
        &self.spool
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> Piece {
        match self.spool.pull(max, out) {
            SpoolPiece::More => Piece::More,
            SpoolPiece::Pending => Piece::Pending,
            SpoolPiece::End => Piece::End,
            SpoolPiece::Broken => Piece::Broken,
            SpoolPiece::File { file, offset, len } => {
                Piece::File { file, offset, len, expect: None }
            }
        }
    }

    pub(super) fn advance(&mut self, len: u64) {
        self.spool.advance(len);
    }
}

#[cfg(test)]
mod tests {
    use base::{SendChain, SpoolLimits, Weave};
    use bytes::Bytes;

    use super::{Fits, Inflow};
    use crate::answer::Piece;

    const LIMITS: SpoolLimits = SpoolLimits { memory: 100, file: 0 };

    fn drain(inflow: &mut Inflow) -> (Vec<u8>, Piece) {
        let mut out = SendChain::new(Weave::Contiguous);
        loop {
            match inflow.pull(3, &mut out) {
                Piece::More => {}
                end => return (out.contiguous().unwrap_or_default().to_vec(), end),
            }
        }
    }

    #[test]
    fn a_body_is_as_long_as_its_head_told_or_it_is_broken() {
        let mut short = Inflow::new(LIMITS, Some(5));
        assert_eq!(short.push(Bytes::from_static(b"abcd")), Fits::Yes);
        assert!(matches!(drain(&mut short), (text, Piece::Pending) if text == b"abcd"));
        assert!(!short.finish());
        assert!(matches!(drain(&mut short).1, Piece::Broken));
        let mut long = Inflow::new(LIMITS, Some(3));
        assert_eq!(long.push(Bytes::from_static(b"abcd")), Fits::TooMuch);
        assert_eq!(long.push(Bytes::from_static(b"e")), Fits::TooMuch);
        assert!(long.finish());
        assert!(matches!(drain(&mut long), (text, Piece::End) if text == b"abc"));
    }

    #[test]
    fn what_was_cut_off_never_ends_well() {
        let mut inflow = Inflow::new(LIMITS, None);
        inflow.push(Bytes::from_static(b"abc"));
        inflow.fail();
        assert!(matches!(drain(&mut inflow), (text, Piece::Broken) if text == b"abc"));
        assert!(inflow.finish());
        assert!(matches!(drain(&mut inflow).1, Piece::Broken));
    }
}
