//! The upstream response body on its way to the client: bounded, measured, perhaps compressed.
//!
//! Owns the limit on waiting bytes. Refuses a body that is longer or shorter than its declared
//! length. Easiest to break: a body that ends early is `Broken`, never `End`.

use bolide_base::{Retain, SendChain, Spool, SpoolLimits, SpoolPiece};
use bolide_files::CodingEncoder;
use bolide_http::negotiate::Coding;
use bolide_http::range::ByteRange;
use bytes::Bytes;

use super::{BodyPiece, FileOwner};

/// When to flush the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// When its output is large enough.
    Lazily,
    /// After each piece from the upstream.
    Always,
}

/// An upstream response body.
#[derive(Debug)]
pub(crate) struct Inflow {
    spool: Spool,
    /// The rest of the declared length.
    left: Option<u64>,
    /// The part that is passed on: bytes to skip, then bytes to pass.
    window: Option<(u64, u64)>,
    coder: Option<Box<Coder>>,
    last: LastByte,
}

/// The last byte of a body with a declared length. Trailers come behind it, and framing asks for
/// them with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastByte {
    /// It is passed on when it arrives.
    Passes,
    /// It will be passed on when the response ends.
    Awaited,
    /// It has arrived.
    Held(u8),
}

/// The compressor of a body. The encoder is large, so it is created with the first byte.
#[derive(Debug)]
struct Coder {
    coding: Coding,
    level: i8,
    flush: Flush,
    encoder: Option<CodingEncoder>,
    before: u64,
    after: u64,
}

impl Coder {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), bolide_files::EncodeError> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(CodingEncoder::new(self.coding, self.level)?),
        };
        encoder.feed(bytes, out)?;
        if self.flush == Flush::Always {
            encoder.flush(out)?;
        }
        self.before += bytes.len() as u64;
        self.after += out.len() as u64;
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), bolide_files::EncodeError> {
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => CodingEncoder::new(self.coding, self.level)?,
        };
        encoder.finish(out)?;
        self.after += out.len() as u64;
        Ok(())
    }
}

impl Inflow {
    /// An empty body; `len` is the declared length.
    pub(crate) const fn new(limits: SpoolLimits, len: Option<u64>) -> Self {
        Self {
            spool: Spool::new(limits, Retain::No),
            left: len,
            window: None,
            coder: None,
            last: LastByte::Passes,
        }
    }

    /// Passes the last byte on when the response has ended, with its trailers.
    pub(crate) fn await_end(&mut self) {
        debug_assert_eq!(self.spool.received(), 0, "it is decided before the first byte");
        debug_assert!(self.coder.is_none(), "a coded form has no declared length");
        if self.left.is_some_and(|left| left > 0) && self.window.is_none() {
            self.last = LastByte::Awaited;
        }
    }

    /// Whether the trailers are there when the body is.
    pub(crate) fn awaits_end(&self) -> bool {
        self.last != LastByte::Passes
    }

    /// Compresses the body while it is sent.
    pub(crate) fn encode(&mut self, coding: Coding, level: i8, flush: Flush) {
        debug_assert!(self.window.is_none(), "a coded form has no ranges");
        debug_assert_eq!(self.spool.received(), 0, "a body is coded from its first byte on");
        let coder = Coder { coding, level, flush, encoder: None, before: 0, after: 0 };
        self.coder = Some(Box::new(coder));
    }

    /// Drops everything outside of `range`; a body that is too short for it breaks.
    pub(crate) fn keep_only(&mut self, range: ByteRange) {
        debug_assert!(self.coder.is_none(), "a coded form has no ranges");
        self.window = Some((range.start, range.len()));
    }

    /// Takes bytes from the upstream; drops those beyond the declared length.
    pub(crate) fn push(&mut self, mut bytes: Bytes) {
        if let Some(left) = &mut self.left {
            bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= bytes.len() as u64;
        }
        if let Some((skip, keep)) = &mut self.window {
            let skipped = (*skip).min(bytes.len() as u64);
            *skip -= skipped;
            let _outside = bytes.split_to(skipped as usize);
            bytes.truncate(usize::try_from(*keep).unwrap_or(usize::MAX));
            *keep -= bytes.len() as u64;
        }
        if self.last == LastByte::Awaited
            && self.left == Some(0)
            && let Some((last, before)) = bytes.split_last()
        {
            self.last = LastByte::Held(*last);
            bytes.truncate(before.len());
        }
        if bytes.is_empty() || self.spool.is_broken() {
            return;
        }
        let Some(coder) = &mut self.coder else { return self.spool.push(bytes) };
        let mut coded = Vec::new();
        match coder.feed(&bytes, &mut coded) {
            Err(_) => self.spool.fail(),
            Ok(()) if coded.is_empty() => {}
            Ok(()) => self.spool.push(Bytes::from(coded)),
        }
    }

    /// Records the end of the response; if it is shorter than declared, the body is broken.
    pub(crate) fn finish(&mut self) {
        let lacks_range = self.window.is_some_and(|window| window != (0, 0));
        if self.left.is_some_and(|left| left > 0) || lacks_range {
            self.spool.fail();
        }
        if self.spool.is_broken() || self.spool.is_complete() {
            return;
        }
        if let Some(coder) = &mut self.coder {
            let mut coded = Vec::new();
            if coder.finish(&mut coded).is_err() {
                return self.spool.fail();
            }
            self.spool.push(Bytes::from(coded));
        }
        if let LastByte::Held(last) = self.last {
            self.spool.push(Bytes::copy_from_slice(&[last]));
        }
        self.spool.finish();
    }

    /// Records that the rest will not arrive.
    pub(crate) fn fail(&mut self) {
        self.spool.fail();
    }

    /// Coding, size before and size after, if the body is compressed.
    pub(crate) fn compression(&self) -> Option<(&'static str, u64, u64)> {
        let coder = self.coder.as_deref()?;
        Some((coder.coding.token(), coder.before, coder.after))
    }

    /// The waiting bytes, to write them to a file.
    pub(crate) const fn spool_mut(&mut self) -> &mut Spool {
        &mut self.spool
    }

    /// The waiting bytes.
    pub(crate) const fn spool(&self) -> &Spool {
        &self.spool
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        match self.spool.pull(max, out) {
            SpoolPiece::More => BodyPiece::More,
            SpoolPiece::Pending => BodyPiece::Pending,
            SpoolPiece::End => BodyPiece::End,
            SpoolPiece::Broken => BodyPiece::Broken,
            SpoolPiece::File { file, offset, len } => {
                BodyPiece::File { file, offset, len, whose: FileOwner::Transit }
            }
        }
    }

    pub(super) fn advance(&mut self, len: u64) {
        self.spool.advance(len);
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::{CopyPolicy, SendChain, SpoolLimits};
    use bolide_http::negotiate::Coding;
    use bolide_http::range::ByteRange;
    use bytes::Bytes;

    use super::{Flush, Inflow};
    use crate::answer::BodyPiece;

    const LIMITS: SpoolLimits = SpoolLimits { memory: 100, file: 0 };

    fn drain(inflow: &mut Inflow) -> (Vec<u8>, BodyPiece) {
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        loop {
            match inflow.pull(3, &mut out) {
                BodyPiece::More => {}
                end => return (out.contiguous().unwrap_or_default().to_vec(), end),
            }
        }
    }

    #[test]
    fn a_body_is_as_long_as_its_head_told_or_it_is_broken() {
        let mut short = Inflow::new(LIMITS, Some(5));
        short.push(Bytes::from_static(b"abcd"));
        assert!(matches!(drain(&mut short), (text, BodyPiece::Pending) if text == b"abcd"));
        short.finish();
        assert!(matches!(drain(&mut short).1, BodyPiece::Broken));
        let mut long = Inflow::new(LIMITS, Some(3));
        long.push(Bytes::from_static(b"abcd"));
        long.push(Bytes::from_static(b"e"));
        long.finish();
        assert!(matches!(drain(&mut long), (text, BodyPiece::End) if text == b"abc"));
    }

    #[test]
    fn the_last_byte_may_wait_for_the_end() {
        for pieces in [&["abc"][..], &["ab", "c"], &["a", "bcd"], &["abc", "d"]] {
            let mut inflow = Inflow::new(LIMITS, Some(3));
            inflow.await_end();
            for piece in pieces {
                inflow.push(Bytes::from_static(piece.as_bytes()));
            }
            assert!(matches!(drain(&mut inflow), (text, BodyPiece::Pending) if text == b"ab"));
            inflow.finish();
            assert!(matches!(drain(&mut inflow), (text, BodyPiece::End) if text == b"c"));
        }
    }

    #[test]
    fn what_was_cut_off_never_ends_well() {
        let mut inflow = Inflow::new(LIMITS, None);
        inflow.push(Bytes::from_static(b"abc"));
        inflow.fail();
        assert!(matches!(drain(&mut inflow), (text, BodyPiece::Broken) if text == b"abc"));
        inflow.finish();
        assert!(matches!(drain(&mut inflow).1, BodyPiece::Broken));
    }

    #[test]
    fn a_range_is_cut_out_of_pieces_of_any_size() {
        for size in 1..11 {
            let mut inflow = Inflow::new(LIMITS, Some(10));
            inflow.keep_only(ByteRange { start: 3, end: 7 });
            for piece in b"0123456789".chunks(size) {
                inflow.push(Bytes::copy_from_slice(piece));
            }
            inflow.finish();
            assert!(matches!(drain(&mut inflow), (text, BodyPiece::End) if text == b"3456"));
        }
    }

    #[test]
    fn a_flushed_coding_gives_each_piece_at_once_and_a_lazy_one_waits() {
        for (flush, at_once) in [(Flush::Always, true), (Flush::Lazily, false)] {
            let mut inflow = Inflow::new(SpoolLimits { memory: 1000, file: 0 }, None);
            inflow.encode(Coding::Zstd, 3, flush);
            inflow.push(Bytes::from_static(b"hello hello hello"));
            assert_eq!(!drain(&mut inflow).0.is_empty(), at_once);
            inflow.finish();
            assert!(matches!(drain(&mut inflow).1, BodyPiece::End));
            assert!(matches!(inflow.compression(), Some(("zstd", 17, after)) if after > 0));
        }
    }
}
