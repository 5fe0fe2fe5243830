//! The limit of work of one evaluation. Files determine the amount of work, and their author need
//! not be the administrator.
//!
//! Owns the counts. Exceeding the limit refuses the request; no condition counts as false because
//! of it.

use std::cell::{Cell, RefCell};

use bolide_base::limits::MATCH_STEPS_MAX;
use bolide_regex::{MatchError, MatchWork};

use crate::world::Stop;

/// LIMIT: steps of one evaluation: bytes of generated text, and bytes compared with wildcards; a
/// part of an expression or a match counts [`PART`], an entry of a searched list [`ENTRY`].
const STEPS_MAX: u32 = 16 * 1024 * 1024;
/// Steps of a part of an expression, or of a match.
const PART: u32 = 64;
/// Steps of an entry of a searched list.
const ENTRY: usize = 8;
/// Steps per step of PCRE.
const MATCH_STEP: u32 = 4;
/// The limit of one match.
pub(crate) const MATCH_MAX: u32 = MATCH_STEPS_MAX * MATCH_STEP;
/// LIMIT: uncounted work of all matches of one evaluation: bytes scanned, items tried. Beyond it
/// each match is counted from its beginning.
const QUICK_MAX: u32 = 16 * 1024 * 1024;
/// LIMIT: bytes of memory for compiling expressions with JIT in one request; a typical one takes
/// 9 KiB.
const JIT_MAX: usize = 2 * 1024 * 1024;

/// LIMIT: steps of a match in a version number.
const VERSION_STEPS_MAX: u32 = 500;

/// The remaining work of one evaluation, or of several that share it.
#[derive(Debug)]
pub struct Effort {
    steps: Cell<u32>,
    quick: Cell<u32>,
    jit: Cell<usize>,
    /// Whether generated texts are invalid, and why.
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
    /// The work of one evaluation for a request; its earlier evaluations have used so many bytes of
    /// memory for JIT.
    #[must_use]
    pub fn of_request(jit_taken: usize) -> Self {
        Self { jit: Cell::new(JIT_MAX.saturating_sub(jit_taken)), ..Self::default() }
    }

    /// The bytes of memory that JIT used for the request, with this evaluation.
    #[must_use]
    pub const fn jit_taken(&self) -> usize {
        JIT_MAX - self.jit.get()
    }

    /// The limit for one match in a version number: parsing a file may need thousands.
    pub(crate) fn for_a_version() -> Self {
        let steps = PART + VERSION_STEPS_MAX * MATCH_STEP;
        Self { steps: Cell::new(steps), quick: Cell::new(0), ..Self::of_request(JIT_MAX) }
    }

    /// Without uncounted work and without steps.
    pub(crate) fn counted() -> Self {
        Self { steps: Cell::new(0), quick: Cell::new(0), ..Self::default() }
    }

    /// Sets the steps.
    pub(crate) fn refill(&self, steps: u32) {
        self.steps.set(steps);
    }

    /// The remaining steps.
    pub(crate) const fn left(&self) -> u32 {
        self.steps.get()
    }

    /// Takes the steps for this many bytes.
    pub fn spend(&self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.steps.set(self.steps.get().saturating_sub(bytes));
    }

    /// Takes the steps for searching a list of this length, which files determine.
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

    /// Stops the evaluation at the next check, because a part of a text is not available.
    pub(crate) fn give_up(&self, stop: Stop) {
        self.stop.borrow_mut().get_or_insert(stop);
        self.gave_up.set(true);
    }

    /// Continues after a wait whose result is available now.
    pub fn resume(&self) {
        let mut stop = self.stop.borrow_mut();
        if *stop == Some(Stop::Wait) {
            *stop = None;
            self.gave_up.set(false);
        }
    }

    /// Whether no steps are left: texts are not extended any more, and do not count.
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

    /// Performs a match, which takes its own steps.
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
        // If a match alone would have had enough steps, the matches before it are to blame.
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
