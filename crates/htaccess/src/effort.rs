//! How much one evaluation may do. What files say decides how much there is to do, and who writes
//! the files need not be who runs the server.
//!
//! Owns the counts. What is spent refuses the request: no condition counts as not met for it.

use std::cell::{Cell, RefCell};

use bolide_base::limits::MATCH_STEPS_MAX;
use bolide_regex::{MatchError, MatchWork};

use crate::world::Stop;

/// LIMIT: steps of one evaluation: bytes of texts that are made, and bytes that wildcards are held
/// against; a part of an expression and a match are [`PART`] of them, an entry of a list that is
/// gone through is [`ENTRY`].
const STEPS_MAX: u32 = 16 * 1024 * 1024;
/// Steps of a part of an expression, and of a match.
const PART: u32 = 64;
/// Steps of an entry of a list that is gone through.
const ENTRY: usize = 8;
/// Steps of a step of a match.
const MATCH_STEP: u32 = 4;
/// What one match may take.
pub(crate) const MATCH_MAX: u32 = MATCH_STEPS_MAX * MATCH_STEP;
/// LIMIT: what all matches of one evaluation may do uncounted: bytes gone through, items tried.
/// Beyond it each is counted from the beginning.
const QUICK_MAX: u32 = 16 * 1024 * 1024;
/// LIMIT: bytes of memory that the library has for one request to compile expressions for JIT; an
/// ordinary one takes some 9 KiB.
const JIT_MAX: usize = 2 * 1024 * 1024;

/// LIMIT: steps of a match in a version number.
const VERSION_STEPS_MAX: u32 = 500;

/// What is left to one evaluation, or to several that share it.
#[derive(Debug)]
pub struct Effort {
    steps: Cell<u32>,
    quick: Cell<u32>,
    jit: Cell<usize>,
    /// Whether no text that is made counts any more, and why.
    gave_up: Cell<bool>,
    stop: RefCell<Option<Stop>>,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            steps: Cell::new(STEPS_MAX),
            quick: Cell::new(QUICK_MAX),
            jit: Cell::new(JIT_MAX),
            gave_up: Cell::new(false),
            stop: RefCell::default(),
        }
    }
}

impl Effort {
    /// That of an evaluation for a request, others for which had so many bytes of memory to compile
    /// expressions.
    #[must_use]
    pub fn of_request(jit_taken: usize) -> Self {
        Self { jit: Cell::new(JIT_MAX.saturating_sub(jit_taken)), ..Self::default() }
    }

    /// Bytes of memory that those had, with this one.
    #[must_use]
    pub const fn jit_taken(&self) -> usize {
        JIT_MAX - self.jit.get()
    }

    /// That of one match in a version number: a file may ask thousands of times while it is parsed.
    pub(crate) fn for_a_version() -> Self {
        let steps = PART + VERSION_STEPS_MAX * MATCH_STEP;
        Self { steps: Cell::new(steps), quick: Cell::new(0), ..Self::of_request(JIT_MAX) }
    }

    /// One that counts each match from its beginning, and has nothing to begin with.
    pub(crate) fn counted() -> Self {
        Self { steps: Cell::new(0), quick: Cell::new(0), ..Self::default() }
    }

    /// Gives it so many steps.
    pub(crate) fn refill(&self, steps: u32) {
        self.steps.set(steps);
    }

    /// Steps that are left.
    pub(crate) const fn left(&self) -> u32 {
        self.steps.get()
    }

    /// Takes steps for so many bytes.
    pub fn spend(&self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.steps.set(self.steps.get().saturating_sub(bytes));
    }

    /// Takes the steps of going through a list of so many, which files made as long as it is.
    pub(crate) fn spend_entries(&self, entries: usize) {
        self.spend(entries.saturating_mul(ENTRY));
    }

    /// Takes the steps of a part of an expression, or of a match.
    ///
    /// # Errors
    ///
    /// None are left.
    pub(crate) fn spend_part(&self) -> Result<(), Stop> {
        self.steps.set(self.steps.get().saturating_sub(PART));
        self.check()
    }

    /// Ends the evaluation at the next check: a part of a text is not to be had.
    pub(crate) fn give_up(&self, stop: Stop) {
        self.stop.borrow_mut().get_or_insert(stop);
        self.gave_up.set(true);
    }

    /// Goes on where it was given up only to wait for what is there now.
    pub fn resume(&self) {
        let mut stop = self.stop.borrow_mut();
        if *stop == Some(Stop::Wait) {
            *stop = None;
            self.gave_up.set(false);
        }
    }

    /// Whether no steps are left: texts grow no more, and what is made of them does not count.
    pub(crate) const fn is_spent(&self) -> bool {
        self.steps.get() == 0 || self.gave_up.get()
    }

    /// Refuses the request if no steps are left.
    ///
    /// # Errors
    ///
    /// None are left.
    pub(crate) fn check(&self) -> Result<(), Stop> {
        match self.is_spent() {
            true => Err(self
                .stop
                .borrow()
                .clone()
                .unwrap_or(Stop::Refused(500, "conditions and texts took too many steps"))),
            false => Ok(()),
        }
    }

    /// Makes a match, which takes what it does.
    ///
    /// # Errors
    ///
    /// Nothing was left for it.
    pub(crate) fn matched<T>(
        &self,
        made: impl FnOnce(&mut MatchWork) -> Result<T, MatchError>,
    ) -> Result<Result<T, MatchError>, Stop> {
        self.check()?;
        let most = (self.steps.get() / MATCH_STEP).min(MATCH_STEPS_MAX);
        let mut work = MatchWork { quick: self.quick.get(), steps: most, jit: self.jit.get() };
        let outcome = made(&mut work);
        self.quick.set(work.quick);
        self.jit.set(work.jit);
        let taken = (most - work.steps).saturating_mul(MATCH_STEP);
        self.steps.set(self.steps.get().saturating_sub(taken));
        // What one match of its own would have had steps for is the fault of all before it.
        if outcome.is_err() && most < MATCH_STEPS_MAX && work.steps == 0 {
            self.steps.set(0);
            self.check()?;
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::{Effort, JIT_MAX};
    use crate::pattern::{Letters, Pattern};

    #[test]
    fn all_evaluations_for_a_request_share_the_memory_to_compile_in() {
        let (mut taken, mut rounds) = (0, Vec::new());
        for round in 0..4 {
            let effort = Effort::of_request(taken);
            for n in 0..400 {
                let source = format!("{round}b+{n}c+|de+f[g-k]+{n}|l+m{n}");
                let pattern = Pattern::new(source.as_bytes(), Letters::Exact).unwrap();
                assert_eq!(pattern.is_match(b"nothing of it", &effort), Ok(false));
            }
            rounds.push(effort.jit_taken() - taken);
            taken = effort.jit_taken();
        }
        assert!(rounds[0] > 0 && taken == JIT_MAX, "{rounds:?}");
        assert_eq!(rounds[3], 0, "{rounds:?}");
        assert_eq!(Effort::of_request(usize::MAX).jit_taken(), JIT_MAX);
    }
}
