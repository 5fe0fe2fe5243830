//! The substitution in the lines of a body.
//!
//! Owns the incomplete line, the progress within a line, and the limits: output of rules is counted
//! before it is generated. Easiest to break: any split into pieces gives the same result, and one
//! step ends within a long line.

use std::sync::Arc;

use super::{BodySubstitution, LineRule, RULES_MAX, ReplacementPart};
use crate::effort::{Effort, MATCH_MAX};
use crate::pattern::MatchSpans;

/// LIMIT: bytes at which a step ends, not counting the current line.
const STEP: usize = 64 * 1024;
/// LIMIT: steps of work, of about 2 ns each, at which one of our steps ends, not counting the
/// current match.
const STEP_WORK: u64 = 256 * 1024;
/// LIMIT: steps of work for a body, and for each of its bytes.
const BODY_WORK: u64 = 128 * 1024 * 1024;
const BYTE_WORK: u64 = 512;
/// Steps of the first search of a rule: its expression may have to be compiled for counting.
const FIRST: u64 = 32 * 1024;
/// Bytes scanned or copied per step.
const PLAIN: usize = 8;
/// LIMIT: pieces of a line that rules with `q` create.
const PIECES_MAX: usize = 64 * 1024;

/// Why a line cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenLine {
    /// The line, or its replacement, exceeds `SubstituteMaxLineLength`.
    TooLong,
    /// Rules with `q` cut it into too many pieces.
    Pieces,
    /// An expression matches an empty text without end.
    Endless,
    /// One match, or all of them, took too many steps.
    Steps,
    /// Too many rules apply.
    Rules,
}

impl BrokenLine {
    /// The text for the log.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::TooLong => "Substitute: a line is too long",
            Self::Pieces => "Substitute: rules with \"q\" cut a line into too many pieces",
            Self::Endless => "Substitute: an expression finds an empty text again and again",
            Self::Steps => "Substitute: expressions took too many steps",
            Self::Rules => "Substitute: too many lines apply to one answer",
        }
    }
}

/// The state of a body.
#[derive(Debug)]
pub struct SubstitutedLines {
    rules: Vec<Arc<LineRule>>,
    line_max: usize,
    /// Received bytes without a complete line.
    held: Vec<u8>,
    /// How many bytes of it are processed.
    done: usize,
    /// How many bytes after those were searched for a line end.
    looked: usize,
    line: Option<LineAtWork>,
    /// How many rules were applied to a line.
    used: usize,
    is_behind: bool,
    work: SearchWork,
    spans: MatchSpans,
    fault: Option<BrokenLine>,
}

/// The work for a body.
#[derive(Debug)]
struct SearchWork {
    /// Steps since the last `take_work`.
    taken: u64,
    /// The remaining steps of the body.
    left: u64,
    /// The limit of one match.
    effort: Effort,
}

impl SearchWork {
    fn spend(&mut self, steps: u64) -> Result<(), BrokenLine> {
        self.taken += steps;
        self.left = self.left.checked_sub(steps).ok_or(BrokenLine::Steps)?;
        Ok(())
    }

    fn spend_plain(&mut self, bytes: usize) -> Result<(), BrokenLine> {
        self.spend((bytes / PLAIN) as u64)
    }

    /// Searches `text`; returns whether there was a match.
    fn search(
        &mut self,
        rule: &LineRule,
        text: &[u8],
        spans: &mut MatchSpans,
    ) -> Result<bool, BrokenLine> {
        let most = u32::try_from(self.left).unwrap_or(u32::MAX).min(MATCH_MAX);
        self.effort.refill(most);
        let found = rule.pattern.find_spans(text, spans, &self.effort);
        self.spend(u64::from(most - self.effort.left()))?;
        let found = found.map_err(|_| BrokenLine::Steps)?;
        self.spend_plain(if found { spans.whole().1 } else { text.len() })?;
        Ok(found)
    }
}

/// A line in progress; rules are applied one by one.
#[derive(Debug, Default)]
struct LineAtWork {
    text: Vec<u8>,
    /// The ends of its pieces, none of them empty: no match extends beyond one.
    ends: Vec<usize>,
    /// The current rule.
    rule: usize,
    piece: usize,
    /// How many bytes this rule has processed.
    at: usize,
    made: Vec<u8>,
    made_ends: Vec<usize>,
    /// The limit of its length, including its line end.
    max: usize,
}

impl SubstitutedLines {
    /// A new body.
    #[must_use]
    pub fn new(substitution: BodySubstitution) -> Self {
        let BodySubstitution { rules, line_max } = substitution;
        let fault = (rules.len() > RULES_MAX).then_some(BrokenLine::Rules);
        Self {
            rules,
            line_max,
            held: Vec::new(),
            done: 0,
            looked: 0,
            line: None,
            used: 0,
            is_behind: false,
            work: SearchWork { taken: 0, left: BODY_WORK, effort: Effort::counted() },
            spans: MatchSpans::default(),
            fault,
        }
    }

    /// Why a line could not be sent.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        self.fault.map(BrokenLine::why)
    }

    /// Whether the next step needs no input.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Steps of work since the last call.
    pub const fn take_work(&mut self) -> u64 {
        std::mem::replace(&mut self.work.taken, 0)
    }

    /// Takes a piece and appends complete lines to `out`, as far as one step goes.
    ///
    /// # Errors
    ///
    /// A line cannot be sent.
    pub fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), BrokenLine> {
        self.held.extend_from_slice(piece);
        self.work.left = self.work.left.saturating_add(piece.len() as u64 * BYTE_WORK);
        self.is_behind = !self.step(false, out)?;
        Ok(())
    }

    /// Appends the rest, as far as one step goes; returns whether that was all.
    ///
    /// # Errors
    ///
    /// A line cannot be sent.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, BrokenLine> {
        self.step(true, out)
    }

    /// Performs one step; returns whether all input is processed.
    fn step(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<bool, BrokenLine> {
        let done = match self.fault {
            None => self.lines(is_last, out),
            Some(fault) => Err(fault),
        };
        self.fault = done.as_ref().err().copied();
        done
    }

    fn lines(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<bool, BrokenLine> {
        let (limit, enough) = (out.len() + STEP, self.work.taken + STEP_WORK);
        loop {
            let mut line = match self.line.take() {
                Some(line) => line,
                None => match self.next_line(is_last)? {
                    Some(line) => line,
                    None => return Ok(true),
                },
            };
            if !self.replace(&mut line, enough)? {
                self.line = Some(line);
                return Ok(false);
            }
            self.work.spend_plain(line.text.len())?;
            if out.is_empty() && line.text.len() >= STEP {
                *out = line.text;
            } else {
                out.extend_from_slice(&line.text);
            }
            if out.len() >= limit || self.work.taken >= enough {
                return Ok(false);
            }
        }
    }

    /// The next line with its end; the last one may have none.
    fn next_line(&mut self, is_last: bool) -> Result<Option<LineAtWork>, BrokenLine> {
        debug_assert!(self.done <= self.looked, "no line is looked at twice");
        let found = self.held[self.looked..].iter().position(|byte| *byte == b'\n');
        self.work.spend_plain(found.unwrap_or(self.held.len() - self.looked))?;
        let end = match found {
            Some(len) => self.looked + len + 1,
            None if is_last && self.done < self.held.len() => self.held.len(),
            None => {
                self.held.drain(..self.done);
                (self.done, self.looked) = (0, self.held.len());
                if self.held.is_empty() {
                    self.held.shrink_to(STEP);
                }
                return match self.looked > self.line_max {
                    true => Err(BrokenLine::TooLong),
                    false => Ok(None),
                };
            }
        };
        let text = match self.done == 0 && end >= STEP {
            // A long line is not held twice.
            true => {
                let rest = self.held.split_off(end);
                self.looked = 0;
                std::mem::replace(&mut self.held, rest)
            }
            false => {
                let text = self.held[self.done..end].to_vec();
                (self.done, self.looked) = (end, end);
                text
            }
        };
        if text.strip_suffix(b"\n").unwrap_or(&text).len() > self.line_max {
            return Err(BrokenLine::TooLong);
        }
        let (ends, max) = (vec![text.len()], self.line_max + 1);
        Ok(Some(LineAtWork { text, ends, max, ..LineAtWork::default() }))
    }

    /// Applies rules as far as one step goes; returns whether the line is complete.
    fn replace(&mut self, line: &mut LineAtWork, enough: u64) -> Result<bool, BrokenLine> {
        let Self { rules, work, spans, used, .. } = self;
        while let Some(rule) = rules.get(line.rule) {
            if line.rule >= *used {
                *used = line.rule + 1;
                work.spend(FIRST)?;
            }
            while let Some(&end) = line.ends.get(line.piece) {
                while line.at < end {
                    if work.taken >= enough {
                        return Ok(false);
                    }
                    if !work.search(rule, &line.text[line.at..end], spans)? {
                        break;
                    }
                    line.take_match(rule, end, spans, work)?;
                }
                line.end_piece(end, work)?;
            }
            line.end_rule();
        }
        Ok(true)
    }
}

impl LineAtWork {
    /// Appends the text before a match, and its replacement.
    fn take_match(
        &mut self,
        rule: &LineRule,
        end: usize,
        spans: &MatchSpans,
        work: &mut SearchWork,
    ) -> Result<(), BrokenLine> {
        let Self { text, at, made, made_ends, max, .. } = self;
        let text = &text[*at..end];
        let (start, end) = spans.whole();
        if end == 0 {
            // It would match here again and again.
            return Err(BrokenLine::Endless);
        }
        let mut push = |part: &[u8], made: &mut Vec<u8>| {
            work.spend(1 + part.len() as u64)?;
            if made.len() + part.len() > *max {
                return Err(BrokenLine::TooLong);
            }
            made.extend_from_slice(part);
            Ok(())
        };
        push(&text[..start], made)?;
        if !rule.is_flat {
            cut(made.len(), made_ends)?;
        }
        for part in &rule.with {
            match part {
                ReplacementPart::Text(text) => push(text, made)?,
                ReplacementPart::Group(number) => {
                    push(spans.of(text, usize::from(*number)), made)?;
                }
            }
        }
        if !rule.is_flat {
            cut(made.len(), made_ends)?;
        }
        *at += end;
        Ok(())
    }

    /// The rest of a piece is unchanged.
    fn end_piece(&mut self, end: usize, work: &mut SearchWork) -> Result<(), BrokenLine> {
        let rest = &self.text[self.at..end];
        work.spend_plain(rest.len())?;
        if self.made.len() + rest.len() > self.max {
            return Err(BrokenLine::TooLong);
        }
        self.made.extend_from_slice(rest);
        (self.at, self.piece) = (end, self.piece + 1);
        cut(self.made.len(), &mut self.made_ends)
    }

    /// The output of a rule is the input of the next one.
    fn end_rule(&mut self) {
        debug_assert_eq!(self.at, self.text.len(), "a rule is applied to a whole line");
        std::mem::swap(&mut self.text, &mut self.made);
        std::mem::swap(&mut self.ends, &mut self.made_ends);
        self.made.clear();
        self.made_ends.clear();
        (self.rule, self.piece, self.at) = (self.rule + 1, 0, 0);
    }
}

/// Ends a piece of a line at `at`, if it is not empty.
fn cut(at: usize, ends: &mut Vec<usize>) -> Result<(), BrokenLine> {
    if ends.last().copied().unwrap_or(0) == at {
        return Ok(());
    }
    if ends.len() == PIECES_MAX {
        return Err(BrokenLine::Pieces);
    }
    ends.push(at);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::{
        BODY_WORK, BYTE_WORK, BodySubstitution, BrokenLine, LineRule, MATCH_MAX, PIECES_MAX, STEP,
        STEP_WORK, SubstitutedLines,
    };

    fn machine(rules: &[&str], line_max: usize) -> SubstitutedLines {
        let rules = rules.iter().map(|rule| Arc::new(LineRule::parse(rule.as_bytes()).unwrap()));
        SubstitutedLines::new(BodySubstitution { rules: rules.collect(), line_max })
    }

    /// What becomes of a body in pieces of `size`, and in how many steps.
    fn run(
        mut machine: SubstitutedLines,
        text: &[u8],
        size: usize,
    ) -> Result<(Vec<u8>, u32), BrokenLine> {
        let (mut whole, mut steps) = (Vec::new(), 0);
        let mut step = |machine: &mut SubstitutedLines, piece: &[u8]| {
            let mut out = Vec::new();
            machine.feed(piece, &mut out)?;
            whole.append(&mut out);
            steps += 1;
            Ok(())
        };
        for piece in text.chunks(size) {
            step(&mut machine, piece)?;
            while machine.is_behind() {
                step(&mut machine, b"")?;
            }
        }
        loop {
            let mut out = Vec::new();
            let is_over = machine.finish(&mut out)?;
            whole.append(&mut out);
            steps += 1;
            if is_over {
                return Ok((whole, steps));
            }
        }
    }

    fn all(rules: &[&str], text: &str) -> String {
        let (whole, _) = run(machine(rules, 1000), text.as_bytes(), text.len().max(1)).unwrap();
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn lines_are_searched_one_by_one_for_one_rule_after_another() {
        assert_eq!(all(&["s/a/b/"], "aA\nca"), "bA\ncb");
        assert_eq!(all(&["s/a/b/i"], "aA\n"), "bb\n");
        assert_eq!(all(&["s/a.c/-/n"], "abca.c"), "abc-");
        assert_eq!(all(&["s/A.C/-/ni"], "abca.c"), "abc-");
        assert_eq!(all(&["s/(b)(c)/$2$1$0\\$1$9/"], "abcd"), "acbbc$1d");
        assert_eq!(all(&["s/b.*/-/"], "abc\nb\n"), "a-\n-\n");
        assert_eq!(all(&["s/a\\n/x/"], "a\na"), "xa");
        assert_eq!(all(&["s/a$/x/"], "a\na"), "a\nx");
        assert_eq!(all(&["s/[$]\\$[\\]$]/x/"], "$$]$"), "x$");
        assert_eq!(all(&["s/[]$]/x/"], "a]$"), "axx");
        assert_eq!(all(&["s/[^]$]/x/"], "a]$"), "x]$");
        assert_eq!(all(&["s/[[:digit:]$]/x/"], "a1$"), "axx");
        assert_eq!(all(&["s/\\Qa$\\E|b$/x/"], "a$cb"), "xcx");
        assert_eq!(all(&["s/[\\Q]$\\E]/x/"], "a]$"), "axx");
        assert_eq!(all(&["s/a/ab/", "s/b/c/"], "a"), "ac");
        assert_eq!(all(&["s|x||"], "axbx\n"), "ab\n");
        assert_eq!(all(&["s/a/b/"], ""), "");
    }

    #[test]
    fn what_a_quick_rule_made_is_a_piece_of_its_own() {
        assert_eq!(all(&["s/a/b/q", "s/xby/-/"], "xay"), "xby");
        assert_eq!(all(&["s/a/b/", "s/xby/-/"], "xay"), "-");
        assert_eq!(all(&["s/a/bb/q", "s/bb/c/"], "xay"), "xcy");
    }

    #[test]
    fn what_has_no_bound_breaks_the_body() {
        let fault = |rules: &[&str], max: usize, text: &[u8], size: usize| {
            run(machine(rules, max), text, size).err()
        };
        assert_eq!(fault(&["s/x*/y/"], 100, b"abc\n", 9), Some(BrokenLine::Endless));
        assert_eq!(fault(&["s/a/b/"], 9, b"0123456789", 3), Some(BrokenLine::TooLong));
        assert_eq!(fault(&["s/a/bbbb/"], 9, b"aaaa\n", 3), Some(BrokenLine::TooLong));
        assert_eq!(fault(&["s/a/bbbb/"], 9, b"abbbbbbbb\n", 3), Some(BrokenLine::TooLong));
        assert_eq!(fault(&["s/a/b/"], 10, b"0123456789\n0123456789", 3), None);
        let text = [&[b'a'; 60][..], b"c\n"].concat();
        assert_eq!(fault(&["s/^(a|aa)+$/x/"], 1000, &text, 99), Some(BrokenLine::Steps));
    }

    /// Rules, a text, and what comes of it.
    type SearchRow<'a> = (&'a [&'a str], &'a [u8], Result<(), BrokenLine>);

    /// Feeds a text whole and works on until it is over, or breaks; the most that a step took, what
    /// all took, how much memory was held at most, and the outcome.
    fn worked(rules: &[&str], text: &[u8]) -> (u64, u64, usize, Result<(), BrokenLine>) {
        let (mut machine, mut out) = (machine(rules, 1 << 20), Vec::new());
        let (mut most, mut sum, mut memory) = (0, 0, 0);
        let mut outcome = machine.feed(text, &mut out).map(|()| !machine.is_behind());
        loop {
            let taken = machine.take_work();
            (most, sum) = (most.max(taken), sum + taken);
            let line = machine.line.as_ref();
            let of_line = line.map_or(0, |line| {
                let ends = line.ends.capacity() + line.made_ends.capacity();
                line.text.capacity() + line.made.capacity() + 8 * ends
            });
            memory = memory.max(of_line + machine.held.capacity() + out.capacity());
            out.clear();
            outcome = match outcome {
                Err(fault) => return (most, sum, memory, Err(fault)),
                Ok(true) if machine.held.is_empty() && line.is_none() => {
                    return (most, sum, memory, Ok(()));
                }
                Ok(_) => machine.finish(&mut out),
            };
        }
    }

    #[test]
    fn work_is_told_and_a_step_ends_soon() {
        let line = [&[b'x'; 200][..], b"\n"].concat();
        let many: Vec<String> = (0..1000).map(|at| format!("s/(a|b)y{at}/-/")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let page = line.repeat(1000);
        let quick: Vec<&str> = std::iter::repeat_n("s/x/x/q", 998).collect();
        let rows: [SearchRow<'_>; 5] = [
            (&["s/x/yz/"], &vec![b'x'; 500_000], Ok(())),
            (&many[..20], &page, Ok(())),
            (&quick, &page, Err(BrokenLine::Steps)),
            (&["s/a(?>[^z]*)[zy]/b/"], &vec![b'a'; 200_000], Err(BrokenLine::Steps)),
            (&["s/(.*)foo(.*)/$2/"], &page, Ok(())),
        ];
        for (rules, text, wanted) in rows {
            let (most, sum, _, outcome) = worked(rules, text);
            assert!(most <= STEP_WORK + 2 * u64::from(MATCH_MAX), "{}: {most}", rules[0]);
            assert!(sum <= BODY_WORK + BYTE_WORK * text.len() as u64 + STEP_WORK, "{sum}");
            assert_eq!(outcome, wanted, "{} {}", rules.len(), rules[0]);
        }
        let (most, ..) = worked(&many, &page);
        assert!(most <= STEP_WORK + 2 * u64::from(MATCH_MAX), "{most}");
    }

    #[test]
    fn what_is_made_is_counted_before_it_is_made() {
        let rule = format!("s/a+/{}/", "$0".repeat(300));
        let (_, _, memory, outcome) = worked(&[&rule], &vec![b'a'; 1_000_000]);
        assert_eq!(outcome, Err(BrokenLine::TooLong));
        assert!(memory < 5 * 1024 * 1024, "{memory}");
        let text = vec![b'a'; 2 * PIECES_MAX];
        let (_, _, memory, outcome) = worked(&["s/a/b/q"], &text);
        assert_eq!(outcome, Err(BrokenLine::Pieces));
        assert!(memory < 5 * 1024 * 1024, "{memory}");
        let (_, _, memory, outcome) = worked(&["s/a//q"], &text);
        assert_eq!((outcome, memory < 1024 * 1024), (Ok(()), true), "{memory}");
    }

    #[test]
    fn a_long_line_takes_many_steps() {
        let text = vec![b'a'; 100_000];
        let (whole, steps) = run(machine(&["s/a/bc/"], 1 << 20), &text, STEP).unwrap();
        assert_eq!(whole, b"bc".repeat(text.len()));
        assert!(steps >= 10, "{steps}");
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_what_lines_give(
            lines in proptest::collection::vec("[ab\\n]{0,9}", 0..20),
            size in 1..40_usize,
            quick in any::<bool>(),
        ) {
            let text = lines.concat();
            let first = if quick { "s/ab/x/q" } else { "s/ab/x/" };
            let rules = [first, "s/(b)b/$1/", "s/xa/-/"];
            let pieces = run(machine(&rules, 1000), text.as_bytes(), size).unwrap().0;
            let lines = text.split_inclusive('\n').map(|line| all(&rules, line));
            prop_assert_eq!(String::from_utf8(pieces).unwrap(), lines.collect::<String>());
        }

        #[test]
        fn any_text_is_read_or_refused(text in "s?[/|a]{0,3}[a()$\\\\0-9*]{0,9}[/|][infqx]{0,3}") {
            let Ok(rule) = LineRule::parse(text.as_bytes()) else { return Ok(()) };
            let body = BodySubstitution { rules: vec![Arc::new(rule)], line_max: 50 };
            let _ = run(SubstitutedLines::new(body), b"a0(a)a\n0$\\a/|\n", 4);
        }
    }
}
