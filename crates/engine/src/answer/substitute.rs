//! `sub_filter`: replaces texts in a stream, however it is split into pieces.
//!
//! Owns the bytes that are held back because they may begin a match: fewer than the longest text.
//! If several texts begin at the same byte, the first one in the configuration wins, as in nginx.
//! Easiest to break: any split gives the same result; and replacements may be long and contain
//! client data, so that one step may not process a whole piece.

/// LIMIT: bytes of output at which a step ends, not counting one replacement and copied text.
pub(super) const STEP: usize = 64 * 1024;

/// A text and its replacement.
#[derive(Debug)]
pub(crate) struct Pair {
    /// In lower case, not empty.
    pub(crate) search: Vec<u8>,
    pub(crate) replacement: Vec<u8>,
}

/// The state of a replacement.
#[derive(Debug)]
pub(crate) struct Substitute {
    pairs: Vec<Pair>,
    /// Whether a text is replaced only once.
    once: bool,
    /// Bytes that may begin a match, or were not searched yet.
    held: Vec<u8>,
    /// How many bytes of `held` are processed.
    done: usize,
    /// Whether the last step ended before its input was processed.
    is_behind: bool,
    /// Whether a text begins with this byte.
    begins: Box<[bool; 256]>,
}

/// The match at one position.
enum At {
    /// No match.
    Nothing,
    /// The text with this index matches.
    Text(usize),
    /// Undecided: more input is needed.
    Unknown,
}

impl Substitute {
    /// A filter for these texts.
    pub(crate) fn new(pairs: Vec<Pair>, once: bool) -> Self {
        debug_assert!(
            pairs.iter().all(|pair| {
                !pair.search.is_empty() && !pair.search.iter().any(u8::is_ascii_uppercase)
            }),
            "texts are looked for in lower case, and none is empty"
        );
        let mut made = Self {
            pairs,
            once,
            held: Vec::new(),
            done: 0,
            is_behind: false,
            begins: Box::new([false; 256]),
        };
        made.mark();
        made
    }

    fn mark(&mut self) {
        self.begins.fill(false);
        for byte in self.pairs.iter().filter_map(|pair| pair.search.first()) {
            self.begins[usize::from(*byte)] = true;
            self.begins[usize::from(byte.to_ascii_uppercase())] = true;
        }
    }

    /// Whether the next step needs no input.
    pub(crate) const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Takes a piece and appends the decided output to `out`, as far as one step goes.
    pub(crate) fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let used = self.scan(piece, out);
            self.held.extend_from_slice(&piece[used..]);
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(piece);
        self.done += self.scan(&held[self.done..], out);
        self.keep(held);
    }

    /// Appends the final output, as far as one step goes; returns whether that was all.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        // Bytes that were undecided may contain a shorter match.
        let held = std::mem::take(&mut self.held);
        let limit = out.len() + STEP;
        while let Some(rest) = held.get(self.done..).filter(|rest| !rest.is_empty()) {
            if out.len() >= limit {
                self.keep(held);
                return false;
            }
            let found = self.pairs.iter().position(|pair| {
                let text = rest.get(..pair.search.len());
                text.is_some_and(|text| text.eq_ignore_ascii_case(&pair.search))
            });
            match found {
                Some(index) => {
                    self.done += self.pairs[index].search.len();
                    self.replace(index, out);
                }
                None => {
                    out.push(rest[0]);
                    self.done += 1;
                }
            }
        }
        self.keep(held);
        true
    }

    /// Puts held bytes back, and removes the processed part if it is most of them.
    fn keep(&mut self, mut held: Vec<u8>) {
        debug_assert!(self.done <= held.len(), "no more is done with than was held");
        if self.done > held.len() / 2 {
            held.drain(..self.done);
            self.done = 0;
        }
        if held.is_empty() && held.capacity() > STEP {
            held = Vec::new();
        }
        self.held = held;
    }

    /// Copies and replaces as far as one step goes; returns the number of processed bytes.
    fn scan(&mut self, text: &[u8], out: &mut Vec<u8>) -> usize {
        let (mut done, mut at) = (0, 0);
        let limit = out.len() + STEP;
        self.is_behind = false;
        while let Some(offset) = self.next_candidate(&text[at..]) {
            at += offset;
            match self.look(&text[at..]) {
                At::Nothing => at += 1,
                At::Unknown => {
                    out.extend_from_slice(&text[done..at]);
                    return at;
                }
                At::Text(index) => {
                    out.extend_from_slice(&text[done..at]);
                    at += self.pairs[index].search.len();
                    done = at;
                    self.replace(index, out);
                    if out.len() >= limit {
                        self.is_behind = at < text.len();
                        return at;
                    }
                }
            }
        }
        out.extend_from_slice(&text[done..]);
        text.len()
    }

    fn next_candidate(&self, text: &[u8]) -> Option<usize> {
        if self.pairs.is_empty() {
            return None;
        }
        text.iter().position(|byte| self.begins[usize::from(*byte)])
    }

    fn look(&self, text: &[u8]) -> At {
        for (index, pair) in self.pairs.iter().enumerate() {
            let len = pair.search.len().min(text.len());
            if text[..len].eq_ignore_ascii_case(&pair.search[..len]) {
                return if len == pair.search.len() { At::Text(index) } else { At::Unknown };
            }
        }
        At::Nothing
    }

    fn replace(&mut self, index: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.pairs[index].replacement);
        if self.once {
            self.pairs.remove(index);
            self.mark();
        }
    }
}

/// Drives the machine with arbitrary pieces: they give what the whole gives.
#[cfg(test)]
fn fuzz(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let (Some(search), Some(second), Some(text)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    for once in [false, true] {
        let whole = run(&[search, second], text, text.len().max(1), once);
        for size in 1..8 {
            assert_eq!(run(&[search, second], text, size, once), whole);
        }
    }
}

#[cfg(test)]
fn run(searches: &[&[u8]], text: &[u8], size: usize, once: bool) -> Vec<u8> {
    let pairs = searches.iter().enumerate().filter(|(_, search)| !search.is_empty());
    let pairs = pairs.map(|(number, search)| Pair {
        search: search.to_ascii_lowercase(),
        replacement: format!("<{number}>").into_bytes(),
    });
    let mut machine = Substitute::new(pairs.collect(), once);
    let mut out = Vec::new();
    for piece in text.chunks(size) {
        machine.feed(piece, &mut out);
        while machine.is_behind() {
            machine.feed(b"", &mut out);
        }
    }
    while !machine.finish(&mut out) {}
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Pair, STEP, Substitute, fuzz, run};

    fn all(searches: &[&str], text: &str, once: bool) -> String {
        let searches: Vec<&[u8]> = searches.iter().map(|text| text.as_bytes()).collect();
        let whole = run(&searches, text.as_bytes(), text.len(), once);
        for size in 1..text.len() {
            assert_eq!(run(&searches, text.as_bytes(), size, once), whole, "pieces of {size}");
        }
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn the_text_that_was_written_first_counts_at_one_place() {
        assert_eq!(all(&["ab", "abc"], "abcabcABC xyz abc", false), "<0>c<0>c<0>C xyz <0>c");
        assert_eq!(all(&["abc", "ab"], "abcabcABC xyz abd", false), "<0><0><0> xyz <1>d");
        assert_eq!(all(&["abcd", "bc"], "abce", false), "a<1>e");
    }

    #[test]
    fn each_text_is_replaced_once_where_that_is_asked_for() {
        assert_eq!(all(&["a", "b"], "aabbAB", true), "<0>a<1>bAB");
    }

    #[test]
    fn a_text_that_only_begins_stays_and_may_hold_a_shorter_one() {
        assert_eq!(all(&["abcdef", "bc"], "xxabcd", false), "xxa<1>d");
        assert_eq!(all(&["aaab"], "aaaab aaa", false), "a<0> aaa");
    }

    #[test]
    fn long_replacements_come_step_by_step() {
        let long = vec![b'-'; STEP / 2];
        let text = b"ab".repeat(9);
        for is_last in [false, true] {
            let pair = Pair { search: b"ab".to_vec(), replacement: long.clone() };
            let mut machine = Substitute::new(vec![pair], false);
            let (mut out, mut whole, mut steps) = (Vec::new(), 0, 0);
            // In the last step what is held is looked at again.
            machine.feed(&text[..1], &mut out);
            machine.feed(&text[1..], &mut out);
            loop {
                assert!(out.len() < 2 * STEP, "{} in one step", out.len());
                whole += out.len();
                steps += 1;
                out.clear();
                match (machine.is_behind(), is_last) {
                    (true, false) => machine.feed(b"", &mut out),
                    _ if machine.finish(&mut out) => break,
                    _ => {}
                }
            }
            assert_eq!(whole + out.len(), 9 * long.len());
            assert!(steps >= 4, "{steps} steps");
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_what_the_whole_gives(
            data in proptest::collection::vec(
                prop_oneof![Just(b'a'), Just(b'B'), Just(b'b'), Just(0)],
                0..60,
            ),
        ) {
            fuzz(&data);
        }
    }
}
