//! The outline of an expression: an automaton that accepts at least every text that the expression
//! matches.
//!
//! An outline may accept too much and never too little: what it does not model exactly (lookaround,
//! backreferences, word boundaries) counts as fulfilled, and an expression with unknown syntax has
//! no outline. Easiest to break: an unknown option or escape must end the parsing, because it may
//! change the meaning of everything after it.

use bolide_conf::regex::{LetterCase, Regex};

/// LIMIT: copies of a repeated part; a larger count is treated as unlimited.
const COPIES_MAX: u32 = 24;
/// This many leading bytes, each from a small set, distinguish an expression well enough.
const HEAD_LEN: usize = 4;
/// LIMIT: nesting of groups.
const DEPTH_MAX: usize = 40;
/// LIMIT: steps of one outline.
const STEPS_MAX: usize = 2000;

/// A set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bytes([u64; 4]);

impl Bytes {
    const NONE: Self = Self([0; 4]);
    const ALL: Self = Self([u64::MAX; 4]);

    fn of(bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut set = Self::NONE;
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }

    fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    const fn insert(&mut self, byte: u8) {
        self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
    }

    /// Whether `byte` is in it.
    pub(super) const fn has(&self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }

    const fn inverted(self) -> Self {
        let [a, b, c, d] = self.0;
        Self([!a, !b, !c, !d])
    }

    /// With the other case of each letter.
    fn folded(self) -> Self {
        let mut set = self;
        for lower in b'a'..=b'z' {
            let upper = lower.to_ascii_uppercase();
            if self.has(lower) || self.has(upper) {
                set.insert(lower);
                set.insert(upper);
            }
        }
        set
    }
}

/// A step of the automaton; a number is the index of a step.
#[derive(Clone, Debug)]
pub(super) enum PatternStep {
    /// One byte of the set.
    Byte(Bytes, u32),
    /// Either of two steps.
    Fork(u32, u32),
    /// The text's start.
    Start(u32),
    /// The text's end.
    End(u32),
    /// The expression with this number might match.
    Match(u8),
}

/// How much of an expression its outline models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternDetail {
    /// As much as possible.
    Whole,
    /// From a leading text up to the first gap of any length.
    Heads,
}

/// The automata of several expressions.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) all: Vec<PatternStep>,
    /// The first step of each expression.
    pub(super) starts: Vec<u32>,
}

impl Steps {
    /// Appends an expression; false, without a change, if it has no outline.
    pub(super) fn add(&mut self, regex: &Regex, detail: PatternDetail) -> bool {
        let Some(mut tree) = Parser::read(regex) else { return false };
        if detail == PatternDetail::Heads {
            tree.cut();
        }
        let before = self.all.len();
        let number = self.starts.len() as u8;
        self.all.push(PatternStep::Match(number));
        match self.build(&tree, before as u32, before + STEPS_MAX) {
            Some(start) => self.starts.push(start),
            None => self.all.truncate(before),
        }
        self.starts.len() > usize::from(number)
    }

    fn push(&mut self, step: PatternStep, most: usize) -> Option<u32> {
        self.all.push(step);
        (self.all.len() <= most).then_some(self.all.len() as u32 - 1)
    }

    /// Builds `tree` followed by `next`; none if it becomes too large.
    fn build(&mut self, tree: &Tree, next: u32, most: usize) -> Option<u32> {
        match tree {
            Tree::Empty => Some(next),
            Tree::Set(set) => self.push(PatternStep::Byte(*set, next), most),
            Tree::Start => self.push(PatternStep::Start(next), most),
            Tree::End => self.push(PatternStep::End(next), most),
            Tree::Row(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.build(part, next, most))
            }
            Tree::Either(ways) => {
                let (last, others) = ways.split_last()?;
                let mut start = self.build(last, next, most)?;
                for way in others {
                    let way = self.build(way, next, most)?;
                    start = self.push(PatternStep::Fork(way, start), most)?;
                }
                Some(start)
            }
            Tree::Repeat(part, min, max) => self.repeat(part, *min, *max, next, most),
        }
    }

    fn repeat(
        &mut self,
        part: &Tree,
        min: u32,
        max: Option<u32>,
        next: u32,
        most: usize,
    ) -> Option<u32> {
        let bounded = max.filter(|max| max - min <= COPIES_MAX && min <= COPIES_MAX);
        let mut start = next;
        match bounded {
            Some(max) => {
                for _ in min..max {
                    let way = self.build(part, start, most)?;
                    start = self.push(PatternStep::Fork(way, next), most)?;
                }
            }
            None => {
                let fork = self.push(PatternStep::Fork(next, next), most)?;
                let way = self.build(part, fork, most)?;
                self.all[fork as usize] = PatternStep::Fork(way, next);
                start = fork;
            }
        }
        (0..min.min(COPIES_MAX)).try_fold(start, |start, _| self.build(part, start, most))
    }
}

/// A parsed expression.
#[derive(Clone, Debug)]
enum Tree {
    Empty,
    Set(Bytes),
    Start,
    End,
    Row(Vec<Self>),
    Either(Vec<Self>),
    Repeat(Box<Self>, u32, Option<u32>),
}

impl Tree {
    /// Any text at all.
    fn anything() -> Self {
        Self::Repeat(Box::new(Self::Set(Bytes::ALL)), 0, None)
    }

    /// Drops everything after the first gap: if each of many expressions is in a gap of its own,
    /// every one of them needs a copy of the states of all others.
    fn cut(&mut self) {
        let Self::Row(parts) = self else { return };
        if !matches!(parts.first(), Some(Self::Start)) {
            return;
        }
        let is_gap = |part: &Self| matches!(part, Self::Repeat(_, _, None));
        let Some(gap) = parts.iter().position(is_gap) else { return };
        let is_narrow = |part: &&Self| matches!(part, Self::Set(set) if set.len() <= 2);
        if parts[..gap].iter().filter(is_narrow).count() >= HEAD_LEN {
            parts.truncate(gap);
        }
    }
}

struct Parser<'t> {
    rest: &'t [u8],
    ignores_case: bool,
    depth: usize,
}

/// The meaning of an escape.
enum Escape {
    Set(Bytes),
    Other(Tree),
}

impl<'t> Parser<'t> {
    fn read(regex: &'t Regex) -> Option<Tree> {
        let ignores_case = regex.case() == LetterCase::Insensitive;
        let mut parser = Self { rest: regex.source(), ignores_case, depth: 0 };
        let tree = parser.either()?;
        parser.rest.is_empty().then_some(tree)
    }

    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, text: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Up to the end or the group's `)`, which stays.
    fn either(&mut self) -> Option<Tree> {
        let case = self.ignores_case;
        let mut ways = vec![self.row()?];
        while self.skip(b"|") {
            ways.push(self.row()?);
        }
        // An inner option holds to the end of the group.
        self.ignores_case = case;
        if ways.len() == 1 { ways.pop() } else { Some(Tree::Either(ways)) }
    }

    fn row(&mut self) -> Option<Tree> {
        let mut parts = Vec::new();
        while !matches!(self.rest.first(), None | Some(b'|' | b')')) {
            let part = self.part()?;
            let part = self.repeated(part)?;
            parts.push(part);
        }
        if parts.len() == 1 { parts.pop() } else { Some(Tree::Row(parts)) }
    }

    fn part(&mut self) -> Option<Tree> {
        match self.take()? {
            b'^' => Some(Tree::Start),
            b'$' => Some(Tree::End),
            b'.' => Some(Tree::Set(Bytes::ALL)),
            b'(' => self.group(),
            b'[' => self.class().map(Tree::Set),
            b'\\' => Some(match self.escape()? {
                Escape::Set(set) => self.set(set),
                Escape::Other(tree) => tree,
            }),
            // Two quantifiers in a row, or an unknown brace.
            b'*' | b'+' | b'?' | b'{' => None,
            byte => Some(self.set(Bytes::of([byte]))),
        }
    }

    fn set(&self, set: Bytes) -> Tree {
        Tree::Set(if self.ignores_case { set.folded() } else { set })
    }

    fn repeated(&mut self, part: Tree) -> Option<Tree> {
        let (min, max) = match self.rest.first() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') => {
                self.take();
                let (min, max) = self.bounds()?;
                // Lazy or possessive.
                let _ = self.skip(b"?") || self.skip(b"+");
                return self.once(Tree::Repeat(Box::new(part), min, max));
            }
            _ => return Some(part),
        };
        self.take();
        let _ = self.skip(b"?") || self.skip(b"+");
        self.once(Tree::Repeat(Box::new(part), min, max))
    }

    /// A repetition that is not repeated itself.
    fn once(&self, tree: Tree) -> Option<Tree> {
        (!matches!(self.rest.first(), Some(b'*' | b'+' | b'?' | b'{'))).then_some(tree)
    }

    /// Parses what follows a `{`.
    fn bounds(&mut self) -> Option<(u32, Option<u32>)> {
        let min = self.number()?;
        if self.skip(b"}") {
            return Some((min, Some(min)));
        }
        if !self.skip(b",") {
            return None;
        }
        if self.skip(b"}") {
            return Some((min, None));
        }
        let max = self.number()?;
        (self.skip(b"}") && min <= max).then_some((min, Some(max)))
    }

    fn number(&mut self) -> Option<u32> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Parses what follows a `(`.
    fn group(&mut self) -> Option<Tree> {
        if self.depth >= DEPTH_MAX || self.rest.first() == Some(&b'*') {
            return None;
        }
        let mut looks_around = false;
        if self.skip(b"?") {
            match self.take()? {
                b':' | b'>' | b'|' => {}
                b'=' | b'!' => looks_around = true,
                b'<' if self.skip(b"=") || self.skip(b"!") => looks_around = true,
                b'<' => self.name(b'>')?,
                b'\'' => self.name(b'\'')?,
                b'P' if self.skip(b"<") => self.name(b'>')?,
                // From here to the end of the group around it.
                b'i' if self.skip(b")") => {
                    self.ignores_case = true;
                    return Some(Tree::Empty);
                }
                // A dot is any byte here anyhow.
                b's' if self.skip(b")") => return Some(Tree::Empty),
                _ => return None,
            }
        }
        self.depth += 1;
        let inner = self.either()?;
        self.depth -= 1;
        let inner = if looks_around { Tree::Empty } else { inner };
        self.skip(b")").then_some(inner)
    }

    fn name(&mut self, end: u8) -> Option<()> {
        let len = self.rest.iter().position(|byte| *byte == end)?;
        // Newer versions have groups with a similar start: `(?<*` is a lookbehind.
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        let (name, rest) = self.rest.split_at(len);
        self.rest = &rest[1..];
        name.iter().all(is_name).then_some(())
    }

    /// Parses what follows a backslash, outside of brackets.
    fn escape(&mut self) -> Option<Escape> {
        if let Some(set) = self.escaped_set() {
            return Some(Escape::Set(set));
        }
        Some(Escape::Other(match self.take()? {
            b'A' => Tree::Start,
            b'z' | b'Z' => Tree::End,
            b'b' | b'B' | b'G' | b'K' => Tree::Empty,
            b'1'..=b'9' => {
                let _ = self.number();
                Tree::anything()
            }
            _ => return None,
        }))
    }

    /// An escape that means a set of bytes, within brackets or outside.
    fn escaped_set(&mut self) -> Option<Bytes> {
        let word = || Bytes::of((0..=255_u8).filter(|b| b.is_ascii_alphanumeric() || *b == b'_'));
        let first = *self.rest.first()?;
        let set = match first {
            b'd' => Bytes::of(b'0'..=b'9'),
            b'D' => Bytes::of(b'0'..=b'9').inverted(),
            b'w' => word(),
            b'W' => word().inverted(),
            b's' => Bytes::of(*b"\t\n\x0b\x0c\r "),
            b'S' => Bytes::of(*b"\t\n\x0b\x0c\r ").inverted(),
            b't' => Bytes::of([b'\t']),
            b'n' => Bytes::of([b'\n']),
            b'r' => Bytes::of([b'\r']),
            b'f' => Bytes::of([0x0c]),
            byte if !byte.is_ascii_alphanumeric() => Bytes::of([byte]),
            _ => return None,
        };
        self.take();
        Some(set)
    }

    /// Parses what follows a `[`.
    fn class(&mut self) -> Option<Bytes> {
        let inverted = self.skip(b"^");
        let mut set = Bytes::NONE;
        let mut is_first = true;
        loop {
            let (member, low) = self.member(&mut is_first)?;
            let Some(member) = member else { break };
            set.add(member);
            let Some(low) = low else {
                // Whether a hyphen after a set is a literal or an error does not matter here.
                if self.rest.first() == Some(&b'-') && self.rest.get(1) != Some(&b']') {
                    return None;
                }
                continue;
            };
            if self.rest.first() == Some(&b'-') && self.rest.get(1) != Some(&b']') {
                self.take();
                let (_, high) = self.member(&mut is_first)?;
                let high = high.filter(|high| low <= *high)?;
                set.add(Bytes::of(low..=high));
            }
        }
        let set = if self.ignores_case { set.folded() } else { set };
        Some(if inverted { set.inverted() } else { set })
    }

    /// A member of a class, and its byte if it is a single one; neither at the end.
    fn member(&mut self, is_first: &mut bool) -> Option<(Option<Bytes>, Option<u8>)> {
        let was_first = std::mem::replace(is_first, false);
        Some(match self.take()? {
            b']' if !was_first => (None, None),
            b'[' if matches!(self.rest.first(), Some(b':' | b'.' | b'=')) => return None,
            b'\\' => {
                let escaped = *self.rest.first()?;
                let single = !escaped.is_ascii_alphanumeric();
                (Some(self.escaped_set()?), single.then_some(escaped))
            }
            byte => (Some(Bytes::of([byte])), Some(byte)),
        })
    }
}
