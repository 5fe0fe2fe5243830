//! Streams a page without its inlines: content of one session never reaches another.
//!
//! Owns which bytes of the source pass; they pass unchanged, other markup included. Easiest to
//! break: a byte passes only once it is certain to lie outside every inline.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use crate::program::{EsiLimits, EsiParser, Inline};

/// Passes a page on without its inlines.
#[derive(Debug)]
pub struct Cutter {
    parser: EsiParser,
    /// Bytes that have not passed yet, and their offset in the page.
    source: VecDeque<Bytes>,
    at: u64,
    cuts: VecDeque<Range<u64>>,
}

impl Cutter {
    /// At the beginning of a page.
    #[must_use]
    pub fn new(limits: EsiLimits) -> Self {
        let parser = EsiParser::new(limits);
        Self { parser, source: VecDeque::new(), at: 0, cuts: VecDeque::new() }
    }

    /// Takes the next bytes of the page and calls `pass` with those that are certain.
    pub fn feed(&mut self, chunk: Bytes, pass: impl FnMut(Bytes)) {
        self.source.push_back(chunk.clone());
        self.parser.feed(chunk);
        let _passed = self.parser.take_pieces();
        self.cuts.extend(self.parser.take_cuts());
        let settled = self.parser.settled();
        self.pass(settled, pass);
    }

    /// Ends the page: passes the rest. An inline without end is cut from its beginning.
    pub fn finish(&mut self, pass: impl FnMut(Bytes)) {
        let end = self.at + self.source.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let settled = self.parser.settled();
        // Bytes that the parser holds back outside an inline are text.
        let is_open = self.parser.is_in_inline();
        self.pass(if is_open { settled } else { end }, pass);
        self.source.clear();
    }

    /// The inlines that are complete.
    pub fn take_inlines(&mut self) -> Vec<Inline> {
        self.parser.take_inlines()
    }

    /// Whether unreadable markup may have hidden private content: the page must not be shared.
    #[must_use]
    pub const fn is_doubtful(&self) -> bool {
        self.parser.is_doubtful()
    }

    /// Passes the source up to byte `end`, without the cuts.
    fn pass(&mut self, end: u64, mut pass: impl FnMut(Bytes)) {
        while self.at < end {
            let Some(front) = self.source.front_mut() else { return };
            let cut = self.cuts.front().cloned();
            let (stop, passes) = match cut {
                Some(cut) if cut.end <= self.at => {
                    self.cuts.pop_front();
                    continue;
                }
                Some(cut) if cut.start <= self.at => (cut.end, false),
                Some(cut) => (cut.start, true),
                None => (end, true),
            };
            let len = (stop.min(end) - self.at).min(front.len() as u64);
            let piece = front.split_to(len as usize);
            if front.is_empty() {
                self.source.pop_front();
            }
            self.at += len;
            if passes && !piece.is_empty() {
                pass(piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cutter;
    use crate::EsiLimits;
    use bytes::Bytes;

    fn cut(page: &[u8], step: usize) -> (String, Vec<String>) {
        let mut cutter = Cutter::new(EsiLimits::default());
        let (mut out, mut inlines) = (Vec::new(), Vec::new());
        for chunk in page.chunks(step) {
            cutter.feed(Bytes::copy_from_slice(chunk), |bytes| out.extend_from_slice(&bytes));
            inlines.extend(cutter.take_inlines());
        }
        cutter.finish(|bytes| out.extend_from_slice(&bytes));
        let body = |inline: crate::Inline| String::from_utf8(inline.body.to_vec()).unwrap();
        (String::from_utf8(out).unwrap(), inlines.into_iter().map(body).collect())
    }

    #[test]
    fn inlines_go_and_all_else_stays_wherever_chunks_are_cut() {
        let page = b"a<esi:inline name='/x'>one</esi:inline><p>\
            <esi:include src='/x'/><!--esi b --><esi:inline name='/y'/>c<esi:remove>d</esi:remove>\
            <esi:inline name=' '>two</esi:inline>e<es";
        let kept = "a<p><esi:include src='/x'/><!--esi b -->c<esi:remove>d</esi:remove>e<es";
        for step in 1..page.len() {
            let (out, inlines) = cut(page, step);
            assert_eq!(out, kept, "{step}");
            assert_eq!(inlines, ["one", ""], "{step}");
        }
    }

    #[test]
    fn an_inline_that_never_ends_is_cut_to_the_end() {
        for step in [1, 7, 100] {
            assert_eq!(cut(b"a<esi:inline name='/x'>secret<p>", step).0, "a");
        }
    }

    #[test]
    fn unreadable_markup_is_reported() {
        let mut cutter = Cutter::new(EsiLimits::default());
        cutter.feed(Bytes::from_static(b"<esi:inline name='/x' <b>secret</b>"), |_| {});
        assert!(cutter.is_doubtful());
    }
}
