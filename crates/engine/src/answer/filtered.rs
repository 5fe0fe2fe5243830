//! A body behind filters that change its bytes.
//!
//! Owns the output that is not sent yet: the output of one filter step; a piece of the inner body
//! may take several. Easiest to break: requests of the inner body to the worker (files, fragments)
//! are passed on.

use bolide_base::chain::CopyPolicy;
use bolide_base::limits::FILTERED_PER_TURN;
use bolide_base::{Bound, SendChain};

use super::filters::ByteFilter;
use super::substitute::STEP;
use super::{AnswerBody, BodyPiece};

/// The state of the first bytes of a body before its head is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyStart {
    /// Some output is ready, or none has to be ready.
    Ready,
    /// It waits for the upstream.
    Waits,
    /// The limit of work in a turn is reached.
    Rests,
    /// It cannot be sent, for this reason.
    Failed(&'static str),
    /// Its source broke off before the first output.
    CutOff,
}

/// What a finished response head waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerHold {
    #[default]
    No,
    /// The first bytes of its body.
    ForMore,
    /// The first bytes of its body, and the next turn.
    ForTurn,
}

/// Bytes of the inner body per piece.
const PIECE: usize = 16 * 1024;
/// The same if the inner body is compressed, and may expand a thousandfold.
const PIECE_CODED: usize = 2 * 1024;

/// A body behind filters.
#[derive(Debug)]
pub(crate) struct FilteredBody {
    pub(crate) inner: AnswerBody,
    filters: Vec<ByteFilter>,
    /// Output that is not sent yet.
    ready: Vec<u8>,
    given: usize,
    /// The input of the current filter, and its output.
    between: [Vec<u8>; 2],
    state: FilteredState,
    /// Why a body cannot be sent (`.htaccess` filters).
    fault: Option<&'static str>,
    /// Bytes given to filters since the last `take_work`, counted once per filter, and the work
    /// that filters report.
    pub(super) work: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilteredState {
    Going,
    /// The inner body and the filters before this one are complete.
    Ending(usize),
    Over,
    Broken,
}

impl FilteredBody {
    pub(crate) const fn new(inner: AnswerBody, filters: Vec<ByteFilter>) -> Self {
        Self {
            inner,
            filters,
            ready: Vec::new(),
            given: 0,
            between: [Vec::new(), Vec::new()],
            state: FilteredState::Going,
            fault: None,
            work: 0,
        }
    }

    /// Takes the bytes that were read of a file for the inner body.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        match &mut self.inner {
            inner if inner.feeds_itself() => inner.feed(bytes),
            AnswerBody::Parts(parts) if parts.feeds_itself() => self.inner.feed(bytes),
            _ if bytes.is_empty() => self.state = FilteredState::Broken,
            inner => {
                inner.advance(bytes.len() as u64);
                self.pass(0, bytes);
            }
        }
    }

    /// Works until there is output, up to the limit of a turn: a filter may have no output for all
    /// its input.
    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        debug_assert!(max > 0, "a pull has room");
        let (before, enough) = (out.len(), self.work + FILTERED_PER_TURN);
        loop {
            let piece = self.pull_some(max, out);
            if !matches!(piece, BodyPiece::More) || out.len() > before {
                return piece;
            }
            if self.work >= enough {
                return BodyPiece::Later;
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
            FilteredState::Broken => return BodyPiece::Broken,
            FilteredState::Over => return BodyPiece::End,
            FilteredState::Ending(at) => {
                self.end(at);
                return self.give(max, out);
            }
            FilteredState::Going => {}
        }
        if let Some(behind) = self.filters.iter().position(ByteFilter::is_behind) {
            self.pass(behind, b"");
            return self.give(max, out);
        }
        self.pull_piece(max, out)
    }

    /// Works on what is in memory until there is output.
    fn begin(&mut self) -> BodyStart {
        if self.inner.is_changed() {
            return self.inner.begin();
        }
        debug_assert_eq!(self.given, 0, "nothing leaves before the head");
        let mut bound = Bound::new();
        while self.ready.is_empty() && bound.goes_on() {
            if self.work >= FILTERED_PER_TURN {
                return BodyStart::Rests;
            }
            match self.state {
                FilteredState::Over | FilteredState::Broken => break,
                FilteredState::Ending(at) => self.end(at),
                FilteredState::Going => match self.filters.iter().position(ByteFilter::is_behind) {
                    Some(behind) => self.pass(behind, b""),
                    None if !self.inner.is_in_hand() => break,
                    None => match self.take_piece() {
                        Some(BodyPiece::Pending) => return BodyStart::Waits,
                        Some(_) => break,
                        None => {}
                    },
                },
            }
        }
        match self.fault {
            Some(fault) => BodyStart::Failed(fault),
            None if self.state == FilteredState::Broken && self.ready.is_empty() => {
                BodyStart::CutOff
            }
            None => BodyStart::Ready,
        }
    }

    fn pull_piece(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        self.take_piece().unwrap_or_else(|| self.give(max, out))
    }

    /// Takes a piece of the inner body; returns what it needs first, if anything.
    fn take_piece(&mut self) -> Option<BodyPiece> {
        let size = if self.filters.iter().any(ByteFilter::grows) { PIECE_CODED } else { PIECE };
        let mut chain = SendChain::new(CopyPolicy::Contiguous);
        let piece = self.inner.pull(size, &mut chain);
        if let Some(bytes) = chain.contiguous().filter(|bytes| !bytes.is_empty()) {
            self.pass(0, bytes);
        }
        match piece {
            BodyPiece::More => {}
            BodyPiece::Pending => {
                self.flush();
                if self.ready.is_empty() && self.state == FilteredState::Going {
                    return Some(BodyPiece::Pending);
                }
            }
            BodyPiece::End => self.finish(),
            BodyPiece::Broken => self.state = FilteredState::Broken,
            BodyPiece::File { file, offset, len, whose } => {
                let len = len.min(size as u64);
                return Some(BodyPiece::Read { file, offset, len, whose });
            }
            BodyPiece::Read { .. } | BodyPiece::Fragment(_) | BodyPiece::Later => {
                return Some(piece);
            }
        }
        None
    }

    fn give(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        debug_assert!(self.given <= self.ready.len(), "no more leaves than was made");
        let end = self.ready.len().min(self.given + max);
        out.push_slice(&self.ready[self.given..end]);
        self.given = end;
        match self.state {
            _ if self.given < self.ready.len() => BodyPiece::More,
            FilteredState::Going | FilteredState::Ending(_) => BodyPiece::More,
            FilteredState::Over => BodyPiece::End,
            FilteredState::Broken => BodyPiece::Broken,
        }
    }

    /// Passes a piece through the filters from this index on.
    fn pass(&mut self, first: usize, piece: &[u8]) {
        let Self { filters, ready, between: [taken, given], state, fault, work, .. } = self;
        debug_assert!(first <= filters.len(), "what passes the last filter is ready");
        let Some(last) = filters.len().checked_sub(1).filter(|last| first <= *last) else {
            return ready.extend_from_slice(piece);
        };
        for (at, filter) in filters.iter_mut().enumerate().skip(first) {
            let out = if at == last { &mut *ready } else { empty(given) };
            let piece = if at == first { piece } else { &**taken };
            *work += piece.len() as u64;
            let fed = filter.feed(piece, out);
            *work += filter.take_work();
            if fed.is_err() {
                *state = FilteredState::Broken;
                *fault = fault.or_else(|| filter.fault());
            }
            std::mem::swap(taken, given);
        }
    }

    /// Flushes the last filter: no more input for now.
    fn flush(&mut self) {
        let flushed = self.filters.last_mut().map(|last| last.flush(&mut self.ready));
        if flushed.is_some_and(|flushed| flushed.is_err()) {
            self.state = FilteredState::Broken;
        }
    }

    /// The inner body is complete.
    fn finish(&mut self) {
        if self.state == FilteredState::Broken {
            return;
        }
        debug_assert_eq!(self.state, FilteredState::Going, "a body ends once");
        self.state = FilteredState::Ending(0);
        if self.ready.len() < STEP {
            self.end(0);
        }
    }

    /// Finishes the filters from this one on, as far as one step goes.
    fn end(&mut self, mut at: usize) {
        let mut rest = Vec::new();
        while let Some(filter) = self.filters.get_mut(at) {
            rest.clear();
            let ended = filter.finish(&mut rest);
            self.work += filter.take_work();
            self.pass(at + 1, &rest);
            match ended {
                _ if self.state == FilteredState::Broken => return,
                Err(_) => {
                    self.state = FilteredState::Broken;
                    self.fault = self.fault.or_else(|| self.filters[at].fault());
                    return;
                }
                Ok(true) => at += 1,
                Ok(false) => break,
            }
        }
        debug_assert!(at <= self.filters.len(), "each filter ends once, in turn");
        let is_over = at == self.filters.len();
        self.state = if is_over { FilteredState::Over } else { FilteredState::Ending(at) };
    }
}

impl AnswerBody {
    /// Processes the first bytes before the head is sent, as far as they are in memory.
    pub(crate) fn begin(&mut self) -> BodyStart {
        match self {
            Self::Filtered(filtered) => filtered.begin(),
            Self::Compound(compound) => compound.inner.begin(),
            _ => BodyStart::Ready,
        }
    }

    /// Whether another exchange's fetch fills it.
    #[inline]
    pub(crate) fn is_growing(&self) -> bool {
        matches!(self.innermost(), Self::Growing(_))
    }

    /// Whether it consists of bytes of other responses, which nothing before has compressed.
    #[inline]
    pub(crate) fn is_put_together(&self) -> bool {
        matches!(self.innermost(), Self::Growing(_) | Self::Sliced(_))
    }

    /// Why a body cannot be sent (`.htaccess` filters).
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Filtered(filtered) => filtered.fault.or_else(|| filtered.inner.fault()),
            Self::Compound(compound) => compound.inner.fault(),
            _ => None,
        }
    }
}

/// Empties a buffer and limits its capacity to what a step needs.
fn empty(buffer: &mut Vec<u8>) -> &mut Vec<u8> {
    buffer.clear();
    buffer.shrink_to(STEP);
    buffer
}

#[cfg(test)]
mod tests {
    use bolide_base::SendChain;
    use bolide_base::chain::CopyPolicy;
    use bolide_base::limits::FILTERED_PER_TURN;
    use bolide_files::{CodingDecoder, compress};
    use bolide_htaccess::{BodySubstitution, SubstitutedLines};
    use bolide_http::negotiate::Coding;
    use bytes::Bytes;
    use proptest::prelude::*;

    use crate::answer::{
        AnswerBody, BodyFilter, BodyFilters, BodyPiece, ByteFilter, CompressFilter, Pair,
        Substitute,
    };

    fn replacing(search: &str, replacement: &str) -> ByteFilter {
        let pair = Pair { search: search.into(), replacement: replacement.into() };
        ByteFilter::Sub(Substitute::new(vec![pair], false), false)
    }

    fn filtered(inner: &[u8], filters: Vec<ByteFilter>) -> AnswerBody {
        let mut list = BodyFilters::default();
        filters.into_iter().for_each(|filter| list.push(BodyFilter::Bytes(filter)));
        list.around(AnswerBody::memory(Bytes::copy_from_slice(inner)))
    }

    /// All that leaves, in pulls of `max` bytes; `None` where it breaks.
    fn pulled(mut body: AnswerBody, max: usize) -> Option<Vec<u8>> {
        let mut whole = Vec::new();
        loop {
            let mut chain = SendChain::new(CopyPolicy::Contiguous);
            let piece = body.pull(max, &mut chain);
            assert!(chain.len() <= max as u64, "no more leaves than was asked for");
            whole.extend_from_slice(chain.contiguous().unwrap_or_default());
            match piece {
                BodyPiece::More | BodyPiece::Later => {}
                BodyPiece::End => return Some(whole),
                BodyPiece::Broken => return None,
                piece => panic!("memory needs nothing: {piece:?}"),
            }
        }
    }

    fn unzipped(bytes: &[u8]) -> Vec<u8> {
        let (mut decoder, mut out) = (CodingDecoder::gzip(), Vec::new());
        decoder.feed(bytes, &mut out).unwrap();
        decoder.finish(&mut out).unwrap();
        out
    }

    proptest! {
        #[test]
        fn a_body_behind_all_filters_is_the_same_in_pulls_of_any_size(
            words in prop::collection::vec("[abx]{0,9}", 0..9000),
            max in 1..100_000_usize,
        ) {
            let text = words.join(" ");
            let zipped = compress(Coding::Gzip, 1, text.as_bytes()).unwrap();
            let filters = vec![
                ByteFilter::gunzip(),
                replacing("ab", "<a longer text than before>"),
                ByteFilter::Compress(CompressFilter::new(Coding::Gzip, 1).unwrap()),
            ];
            let got = pulled(filtered(&zipped, filters), max).unwrap();
            let wanted = text.replace("ab", "<a longer text than before>");
            prop_assert_eq!(String::from_utf8(unzipped(&got)).unwrap(), wanted);
        }
    }

    /// Pulls until something comes, and returns how often it had to come back for that in another
    /// turn.
    fn turns(mut body: AnswerBody) -> u64 {
        let mut turns = 0;
        loop {
            let mut chain = SendChain::new(CopyPolicy::Contiguous);
            let piece = body.pull(1000, &mut chain);
            // A piece may be the last one that fits, and each filter takes it.
            assert!(body.take_work() < FILTERED_PER_TURN + 4 * 1024 * 1024);
            match piece {
                BodyPiece::Later if chain.is_empty() => turns += 1,
                BodyPiece::End if chain.is_empty() => return turns,
                piece => panic!("nothing is left of it: {piece:?}"),
            }
        }
    }

    #[test]
    fn a_turn_takes_so_much_of_a_body_of_which_nothing_is_left() {
        let text = vec![b'a'; 9 * FILTERED_PER_TURN as usize];
        let filters = vec![replacing("aaaaaaaaaaaaaaaa", "")];
        assert!((8..=9).contains(&turns(filtered(&text, filters))));
        // What a decoder makes of little is much for the filter behind it.
        let zipped = compress(Coding::Gzip, 9, &text).unwrap();
        let filters = vec![ByteFilter::gunzip(), replacing("aaaaaaaaaaaaaaaa", "")];
        assert!((2..=9).contains(&turns(filtered(&zipped, filters))));
    }

    #[test]
    fn a_turn_ends_by_what_searches_take() {
        let rules: Vec<String> = (0..200).map(|at| format!("s/(a|b)x{at}/-/")).collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let substitution = BodySubstitution::of_rules(&rules).unwrap();
        let lines = ByteFilter::Lines(Box::new(SubstitutedLines::new(substitution)));
        let text = [&[b'a'; 99][..], b"\n"].concat().repeat(1000);
        let mut body = filtered(&text, vec![lines]);
        let (mut most, mut sum, mut len) = (0, 0, 0);
        loop {
            let mut chain = SendChain::new(CopyPolicy::Contiguous);
            let piece = body.pull(1 << 20, &mut chain);
            let work = body.take_work();
            (most, sum, len) = (most.max(work), sum + work, len + chain.len());
            if matches!(piece, BodyPiece::End) {
                break;
            }
        }
        assert_eq!(len, text.len() as u64);
        assert!(most < 2 * FILTERED_PER_TURN, "{most}");
        assert!(sum > 100 * len, "each of 200 rules goes through all of it: {sum}");
    }

    #[test]
    fn a_coding_that_is_damaged_or_cut_off_breaks_the_body() {
        let whole = compress(Coding::Gzip, 1, &[b'a'; 9000]).unwrap();
        for (bytes, is_well) in [(&whole[..], true), (&whole[..whole.len() - 9], false)] {
            let filters = vec![ByteFilter::gunzip(), replacing("a", "b")];
            assert_eq!(pulled(filtered(bytes, filters), 1000).is_some(), is_well);
        }
    }

    #[test]
    #[should_panic(expected = "nginx's order")]
    fn filters_out_of_order_are_a_mistake_of_the_caller() {
        filtered(b"", vec![replacing("a", "b"), ByteFilter::Gunzip(None)]);
    }
}
