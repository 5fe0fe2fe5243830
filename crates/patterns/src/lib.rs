//! Regular expressions in the order of a configuration; the first match counts.
//!
//! With many expressions, a `Sieve` selects candidates in one pass over the text. PCRE decides
//! about matches and captures, in the order of the configuration.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_conf::regex::{LetterCase, Regex};

use outline::PatternDetail;
use sieve::{PatternNumbers, Sieve, WIDTH};

mod captures;
mod outline;
mod sieve;

pub use captures::{CapturePattern, Captures, MatchFailure};

/// Up to this many expressions are tried one by one.
const FEW: usize = 4;
/// LIMIT: states of all sieves of a configuration. Beyond it, expressions are tried one by one.
const STATES_MAX: usize = 60_000;

/// Expressions with their values.
#[derive(Debug)]
pub struct Patterns<T> {
    all: Vec<(CapturePattern, T)>,
    /// One for each [`WIDTH`] expressions; none if there are few.
    sieves: Arc<[Part]>,
}

/// Consecutive expressions, and their sieve unless it would be too large.
#[derive(Debug)]
struct Part {
    len: usize,
    sieve: Option<Sieve>,
}

/// An expression as written.
type Source = (Box<[u8]>, LetterCase);

/// The sieves of one configuration: equal lists share one.
#[derive(Debug)]
pub struct Sieves {
    known: HashMap<Vec<Source>, Arc<[Part]>>,
    /// The remaining states.
    budget: usize,
}

impl Default for Sieves {
    fn default() -> Self {
        Self { known: HashMap::new(), budget: STATES_MAX }
    }
}

impl Sieves {
    fn of(&mut self, regexes: &[&Regex]) -> Arc<[Part]> {
        if regexes.len() < FEW {
            return Arc::default();
        }
        let key = regexes.iter().map(|regex| (Box::from(regex.source()), regex.case()));
        let key: Vec<_> = key.collect();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let mut parts = Vec::new();
        for some in regexes.chunks(WIDTH) {
            self.divide(some, &mut parts);
        }
        let parts: Arc<[Part]> = parts.into();
        self.known.insert(key, parts.clone());
        parts
    }

    /// Builds one sieve for `regexes`, or several smaller ones.
    fn divide(&mut self, regexes: &[&Regex], parts: &mut Vec<Part>) {
        let mut make = |detail| Sieve::new(regexes.iter().copied(), detail, &mut self.budget);
        let sieve = make(PatternDetail::Whole).or_else(|| make(PatternDetail::Heads));
        if sieve.is_some() || regexes.len() <= FEW || self.budget == 0 {
            return parts.push(Part { len: regexes.len(), sieve });
        }
        let (first, second) = regexes.split_at(regexes.len() / 2);
        self.divide(first, parts);
        self.divide(second, parts);
    }
}

impl<T> Default for Patterns<T> {
    fn default() -> Self {
        Self { all: Vec::new(), sieves: Arc::default() }
    }
}

impl<T> Patterns<T> {
    /// Appends an expression.
    pub fn push(&mut self, pattern: CapturePattern, value: T) {
        self.all.push((pattern, value));
    }

    /// Builds the sieves; call it once, after the last expression.
    pub fn seal(&mut self, sieves: &mut Sieves) {
        let regexes: Vec<&Regex> = self.all.iter().map(|(pattern, _)| pattern.regex()).collect();
        self.sieves = sieves.of(&regexes);
        debug_assert!(
            self.sieves.is_empty()
                || self.sieves.iter().map(|part| part.len).sum::<usize>() == self.all.len(),
            "every expression has its place in a sieve"
        );
        self.all.shrink_to_fit();
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The value of the first expression that `asks` accepts; it is called in order, for those that
    /// might match `text`.
    #[inline]
    pub fn find(&self, text: &[u8], mut asks: impl FnMut(&CapturePattern) -> bool) -> Option<&T> {
        if self.sieves.is_empty() {
            return self.all.iter().find(|(pattern, _)| asks(pattern)).map(|(_, value)| value);
        }
        let mut from = 0;
        for part in &*self.sieves {
            let sifted = part.sieve.as_ref().map_or(PatternNumbers::MAX, |sieve| sieve.sift(text));
            let mut left = sifted & (PatternNumbers::MAX >> (WIDTH - part.len));
            while left != 0 {
                let (pattern, value) = &self.all[from + left.trailing_zeros() as usize];
                if asks(pattern) {
                    return Some(value);
                }
                left &= left - 1;
            }
            from += part.len;
        }
        None
    }

    /// The value of the first expression that matches; its groups are stored in `captures`.
    #[inline]
    pub fn capture(&self, text: &[u8], captures: &mut Captures) -> Option<&T> {
        self.find(text, |pattern| captures.capture(pattern, text))
    }
}

#[cfg(test)]
mod tests;
