//! Finds in one pass over a text which of up to 64 expressions might match it.
//!
//! The outlines of all expressions are combined into a deterministic automaton: each byte is one
//! step, whatever the number of expressions. A table that would be too large is not built.

use std::collections::{HashMap, HashSet};

use bolide_conf::regex::Regex;

use super::outline::{Bytes, PatternDetail, PatternStep, Steps};

/// Expressions of one sieve.
pub(super) const WIDTH: usize = 64;
/// LIMIT: states of one sieve. With the byte classes of typical expressions, some fifty, a table
/// takes 400 KB.
const STATES_MAX: usize = 2048;

/// Marks the row of a state in which expressions are found.
const FOUND: u32 = 1 << 31;
/// Bytes between two looks for that mark.
const STRIDE: usize = 4;

/// A set of expressions that might match, as bits.
pub(super) type PatternNumbers = u64;

/// The table.
#[derive(Debug)]
pub(super) struct Sieve {
    /// The class of each byte.
    kinds: Box<[u8; 256]>,
    width: usize,
    /// By state and byte class: the offset of the next state's row, with [`FOUND`] if that state
    /// finds expressions. The length is a power of two, so that a mask bounds an index.
    next: Box<[u32]>,
    /// By state: the expressions that might match, whatever follows.
    found: Box<[PatternNumbers]>,
    /// By state: the expressions that might match if the text ends here.
    at_end: Box<[PatternNumbers]>,
    /// The expressions without an outline.
    unknown: PatternNumbers,
}

impl Sieve {
    /// A sieve for `regexes`, at most [`WIDTH`] of them; takes its states from `budget`. None if it
    /// would be too large.
    pub(super) fn new<'r>(
        regexes: impl Iterator<Item = &'r Regex>,
        detail: PatternDetail,
        budget: &mut usize,
    ) -> Option<Self> {
        let mut steps = Steps::default();
        let mut unknown = 0;
        // The indices of expressions with an outline, in the order of the steps.
        let mut numbers = Vec::new();
        for (number, regex) in regexes.enumerate() {
            if steps.add(regex, detail) {
                numbers.push(number as u8);
            } else {
                unknown |= 1 << number;
            }
        }
        let mut builder = Builder::new(&steps, &numbers);
        let states_max = STATES_MAX.min(*budget);
        let table = builder.build(states_max);
        *budget -= table.as_ref().map_or(states_max, |table| table.found.len());
        let table = table?;
        let width = builder.width;
        let row = |state: &u16| {
            let state = usize::from(*state);
            (state * width) as u32 | if table.found[state] == 0 { 0 } else { FOUND }
        };
        let mut next: Vec<u32> = table.next.iter().map(row).collect();
        assert!(next.len() < FOUND as usize, "a row and the mark fit into a number");
        next.resize(next.len().next_power_of_two(), 0);
        Some(Self {
            kinds: builder.kinds,
            width,
            next: next.into(),
            found: table.found.into(),
            at_end: table.at_end.into(),
            unknown,
        })
    }

    /// The expressions that might match `text`.
    pub(super) fn sift(&self, text: &[u8]) -> PatternNumbers {
        // `$` also matches before a final line feed, or another line end that PCRE was configured
        // for.
        if text.last().is_some_and(|last| *last < b' ' || *last == 0x85) {
            return PatternNumbers::MAX;
        }
        let (next, kinds) = (&*self.next, &*self.kinds);
        let Some(mask) = next.len().checked_sub(1) else { return PatternNumbers::MAX };
        debug_assert!(next.len().is_power_of_two(), "the mask leaves every index as it is");
        let step = |row: u32, byte: &u8| {
            next[(row as usize + usize::from(kinds[usize::from(*byte)])) & mask]
        };
        let mut row = 0;
        let mut found = self.found[0] | self.unknown;
        let (strides, rest) = text.as_chunks::<STRIDE>();
        // PERF: a branch for each byte costs as much as its step: the marks of a stride are
        // gathered, and a marked stride is walked again.
        for stride in strides {
            let start = row;
            let mut marks = 0;
            for byte in stride {
                row = step(row, byte);
                marks |= row;
            }
            if marks & FOUND != 0 {
                let rows = stride.iter().scan(start, |row, byte| {
                    *row = step(*row, byte);
                    Some(*row)
                });
                rows.for_each(|row| found |= self.found[self.state(row)]);
            }
        }
        for byte in rest {
            row = step(row, byte);
            if row & FOUND != 0 {
                found |= self.found[self.state(row)];
            }
        }
        found | self.at_end[self.state(row)]
    }

    /// The state of a row.
    const fn state(&self, row: u32) -> usize {
        (row & !FOUND) as usize / self.width
    }

    /// Bytes of memory that it takes.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        256 + self.next.len() * 4 + self.found.len() * 16
    }
}

/// The steps reachable without reading a byte: reading steps, in order, and matches. Steps that
/// every state has, because a match may begin anywhere, are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Reach {
    reading: Vec<u32>,
    found: PatternNumbers,
    at_end: PatternNumbers,
}

impl Reach {
    fn add(&mut self, other: &Self) {
        self.reading.extend_from_slice(&other.reading);
        self.found |= other.found;
        self.at_end |= other.at_end;
    }
}

#[derive(Debug)]
struct Builder<'s> {
    steps: &'s Steps,
    numbers: &'s [u8],
    kinds: Box<[u8; 256]>,
    width: usize,
    /// The part that every state has.
    always: Reach,
    /// By step: the byte classes that it reads, and the steps after it; empty if it does not read.
    reads: Vec<(Vec<u8>, Reach)>,
    /// By step, within the text and at its end: the last round that visited it.
    seen: Vec<[u32; 2]>,
    round: u32,
}

/// States by their content, in the order of discovery.
#[derive(Debug, Default)]
struct States {
    known: HashMap<Reach, u16>,
    all: Vec<Reach>,
}

impl States {
    fn number(&mut self, mut state: Reach) -> u16 {
        state.reading.sort_unstable();
        state.reading.dedup();
        let next = self.all.len() as u16;
        let all = &mut self.all;
        *self.known.entry(state).or_insert_with_key(|state| {
            all.push(state.clone());
            next
        })
    }
}

#[derive(Debug, Default)]
struct Table {
    next: Vec<u16>,
    found: Vec<PatternNumbers>,
    at_end: Vec<PatternNumbers>,
}

impl<'s> Builder<'s> {
    fn new(steps: &'s Steps, numbers: &'s [u8]) -> Self {
        let sets = steps.all.iter().filter_map(|step| match step {
            PatternStep::Byte(set, _) => Some(*set),
            _ => None,
        });
        let mut met = HashSet::new();
        let sets: Vec<Bytes> = sets.filter(|set| met.insert(*set)).collect();
        let (kinds, examples) = kinds(&sets);
        let (always, reads) = Default::default();
        let (width, seen) = (examples.len(), vec![[0; 2]; steps.all.len()]);
        let mut builder = Self { steps, numbers, kinds, width, always, reads, seen, round: 0 };
        builder.always = builder.reach(&steps.starts, false);
        let read = |set: &Bytes| -> Vec<u8> {
            let read = (0..).zip(&examples).filter(|(_, byte)| set.has(**byte));
            read.map(|(kind, _)| kind).collect()
        };
        let known: HashMap<Bytes, Vec<u8>> = sets.iter().map(|set| (*set, read(set))).collect();
        let reads = steps.all.iter().map(|step| match step {
            PatternStep::Byte(set, next) => (known[set].clone(), builder.reach(&[*next], false)),
            _ => Default::default(),
        });
        builder.reads = reads.collect();
        builder
    }

    /// The steps that `from` reaches without reading, at the start of the text or not.
    fn reach(&mut self, from: &[u32], is_start: bool) -> Reach {
        let mut reach = Reach::default();
        self.round += 1;
        let mut todo: Vec<(u32, bool)> = from.iter().map(|step| (*step, false)).collect();
        while let Some((at, is_end)) = todo.pop() {
            let seen = &mut self.seen[at as usize][usize::from(is_end)];
            if std::mem::replace(seen, self.round) == self.round {
                continue;
            }
            match &self.steps.all[at as usize] {
                PatternStep::Byte(..)
                    if is_end || self.always.reading.binary_search(&at).is_ok() => {}
                PatternStep::Byte(..) => reach.reading.push(at),
                PatternStep::Fork(one, other) => todo.extend([(*one, is_end), (*other, is_end)]),
                PatternStep::Start(next) if is_start => todo.push((*next, is_end)),
                PatternStep::Start(_) => {}
                PatternStep::End(next) => todo.push((*next, true)),
                PatternStep::Match(at) => {
                    let bit = 1 << self.numbers[usize::from(*at)];
                    if is_end { reach.at_end |= bit } else { reach.found |= bit }
                }
            }
        }
        reach.reading.sort_unstable();
        reach
    }

    fn build(&mut self, states_max: usize) -> Option<Table> {
        let mut states = States::default();
        let first = self.reach(&self.steps.starts, true);
        states.number(first);
        // By byte class: the successor of the part that every state has.
        let (found, at_end) = (self.always.found, self.always.at_end);
        let mut base = vec![Reach { reading: Vec::new(), found, at_end }; self.width];
        for step in &self.always.reading {
            let (kinds, reach) = &self.reads[*step as usize];
            kinds.iter().for_each(|kind| base[usize::from(*kind)].add(reach));
        }
        let usual: Vec<u16> = base.iter().map(|state| states.number(state.clone())).collect();
        let mut table = Table::default();
        let mut targets: Vec<Option<Reach>> = vec![None; self.width];
        let mut at = 0;
        while at < states.all.len() {
            if states.all.len() > states_max {
                return None;
            }
            let state = std::mem::take(&mut states.all[at]);
            at += 1;
            table.found.push(state.found);
            table.at_end.push(state.at_end);
            for step in &state.reading {
                let (kinds, reach) = &self.reads[*step as usize];
                for kind in kinds {
                    let kind = usize::from(*kind);
                    targets[kind].get_or_insert_with(|| base[kind].clone()).add(reach);
                }
            }
            let next = targets.iter_mut().zip(&usual).map(|(target, usual)| match target.take() {
                Some(target) => states.number(target),
                None => *usual,
            });
            table.next.extend(next);
        }
        Some(table)
    }
}

/// Bytes that no set distinguishes are in one class; also returns an example of each class.
fn kinds(sets: &[Bytes]) -> (Box<[u8; 256]>, Vec<u8>) {
    let mut kinds = Box::new([0_u8; 256]);
    let mut examples = vec![0_u8];
    for set in sets {
        let mut split: HashMap<(u8, bool), u8> = HashMap::new();
        let mut fresh = Vec::new();
        let before = kinds.clone();
        for byte in 0..=255_u8 {
            let known = split.len() as u8;
            let kind = split.entry((before[usize::from(byte)], set.has(byte)));
            let kind = *kind.or_insert_with(|| {
                fresh.push(byte);
                known
            });
            kinds[usize::from(byte)] = kind;
        }
        examples = fresh;
    }
    (kinds, examples)
}
