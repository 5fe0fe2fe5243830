//! A body of consecutive slices: the first comes with the head, each other one by a subrequest.
//!
//! Owns which bytes of the slices the client gets, and which slice is next. Easiest to break: a
//! slice that ends early breaks the body, because the bytes of the next one belong elsewhere.

use bolide_base::SendChain;
use bolide_http::range::ByteRange;
use bytes::Bytes;

use super::{AnswerBody, BodyPiece, ByteSpan, Pulled};
use crate::subrequest::SliceRange;

/// The state of the current slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SliceStanding {
    /// The first one, which is the inner body, is being sent.
    First,
    /// The next one has to be requested.
    Due,
    /// An exchange with this key was started for it.
    Asked(u64),
    /// Its head is there.
    Answering(u64),
}

/// A sliced body.
#[derive(Debug)]
pub(crate) struct SlicedBody {
    /// The part of the first slice that the client gets.
    pub(super) inner: AnswerBody,
    standing: SliceStanding,
    /// The current or next slice.
    range: SliceRange,
    /// The length of the representation.
    whole: u64,
    /// The entity tag that all slices must have.
    etag: Option<Vec<u8>>,
    /// The bytes of the representation that are still to be sent.
    window: ByteSpan,
    /// Bytes of a slice that are not sent yet.
    ready: Bytes,
    is_broken: bool,
}

impl SlicedBody {
    /// A body with the bytes of `window`, of which `first` is the first slice.
    pub(crate) fn new(
        first: (SliceRange, AnswerBody),
        whole: u64,
        etag: Option<Vec<u8>>,
        window: ByteSpan,
    ) -> Self {
        let (range, mut inner) = first;
        debug_assert!(range.size > 0 && range.start < whole, "a slice has bytes");
        debug_assert!(window.at <= window.end && window.end <= whole, "what leaves is there");
        // If the client's range does not apply, the first slice may not begin the body.
        let is_early = window.at < range.start;
        let wanted = if is_early {
            ByteRange { start: 0, end: 0 }
        } else {
            range.part_of(window.into(), whole)
        };
        inner.keep_of_slice(wanted);
        let (standing, ready) = (SliceStanding::First, Bytes::new());
        Self { inner, standing, range, whole, etag, window, ready, is_broken: false }
    }

    /// The slice to request, and which of its bytes are needed.
    pub(crate) fn due(&self) -> Option<(SliceRange, ByteRange)> {
        let is_due = self.standing == SliceStanding::Due && !self.is_broken && self.is_missing();
        is_due.then(|| (self.range, self.range.part_of(self.window.into(), self.whole)))
    }

    /// The length of the representation, and the entity tag of its slices.
    pub(crate) fn version(&self) -> (u64, Option<&[u8]>) {
        (self.whole, self.etag.as_deref())
    }

    /// Binds the next slice to an exchange.
    pub(crate) fn bind(&mut self, child: u64) {
        debug_assert_eq!(self.standing, SliceStanding::Due, "one slice is asked for at a time");
        self.standing = SliceStanding::Asked(child);
    }

    /// The next slice cannot be requested.
    pub(crate) const fn refuse(&mut self) {
        self.is_broken = true;
    }

    /// Whether the exchange `child` was started for the current slice.
    pub(crate) fn owns(&self, child: u64) -> bool {
        matches!(
            self.standing,
            SliceStanding::Asked(by) | SliceStanding::Answering(by) if by == child
        )
    }

    /// The head of the slice is there, and it is the requested one.
    pub(crate) fn accept(&mut self, child: u64) {
        if self.owns(child) {
            self.standing = SliceStanding::Answering(child);
        }
    }

    /// The slice failed, before its head or later.
    pub(crate) fn lose(&mut self, child: u64) {
        self.is_broken |= self.owns(child);
    }

    /// Takes the bytes that were pulled of the slice that [`BodyPiece::Fragment`] named; false if
    /// it needs no more of them.
    pub(crate) fn take(&mut self, child: u64, bytes: &[u8], pulled: Pulled) -> bool {
        if !self.owns(child) || self.is_broken {
            return false;
        }
        debug_assert!(self.ready.is_empty(), "what came leaves before more is asked for");
        self.count(bytes.len() as u64);
        self.ready = Bytes::copy_from_slice(bytes);
        match pulled {
            Pulled::Some => {}
            Pulled::All => self.end_slice(),
            Pulled::Broken => self.is_broken = true,
        }
        true
    }

    /// Counts received bytes; more than the slice's length breaks the body.
    fn count(&mut self, bytes: u64) {
        let end = self.window.end.min(self.range.end());
        match self.window.at.checked_add(bytes).filter(|&at| at <= end || bytes == 0) {
            Some(at) => self.window.at = at,
            None => self.is_broken = true,
        }
    }

    /// The current slice is complete.
    fn end_slice(&mut self) {
        // The client gets nothing of a first slice that does not begin the body.
        let is_early = self.window.at < self.range.start;
        let has_all = is_early || self.window.at >= self.range.end().min(self.window.end);
        self.is_broken |= !has_all;
        self.range = self.range.with(self.window.at);
        self.standing = SliceStanding::Due;
    }

    /// Whether bytes are still to be sent.
    const fn is_missing(&self) -> bool {
        self.window.at < self.window.end
    }

    /// Records that `len` bytes of the described file part were sent.
    pub(super) fn advance(&mut self, len: u64) {
        self.inner.advance(len);
        self.count(len);
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        if !self.ready.is_empty() {
            out.push_owned(self.ready.split_to(max.min(self.ready.len())));
            return BodyPiece::More;
        }
        if self.is_broken {
            return BodyPiece::Broken;
        }
        match self.standing {
            SliceStanding::First => self.pull_first(max, out),
            SliceStanding::Answering(child) => BodyPiece::Fragment(child),
            SliceStanding::Due if !self.is_missing() => BodyPiece::End,
            SliceStanding::Due | SliceStanding::Asked(_) => BodyPiece::Pending,
        }
    }

    fn pull_first(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        let had = out.len();
        let piece = self.inner.pull(max, out);
        self.count(out.len() - had);
        match piece {
            BodyPiece::End => {
                self.inner = AnswerBody::Empty;
                self.end_slice();
                match self.is_missing() {
                    _ if self.is_broken => BodyPiece::Broken,
                    true => BodyPiece::Pending,
                    false => BodyPiece::End,
                }
            }
            other => other,
        }
    }
}
