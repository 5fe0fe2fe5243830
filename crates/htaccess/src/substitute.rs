//! mod_substitute: which expressions the lines of a body are searched for, and what takes the place
//! of what they find.
//!
//! The body goes through [`SubstitutedLines`]. Refuses what Apache refuses, and lines that are
//! permitted to be longer than what one body may hold.

mod parse;
mod run;

use std::sync::Arc;

use crate::pattern::Pattern;
use crate::settings::Settings;

pub(crate) use parse::{inherit_before, line_max, substitute};
pub use run::{BrokenLine, SubstitutedLines};

/// Bytes of a line where `SubstituteMaxLineLength` is not given.
const LINE_MAX: usize = 1024 * 1024;
/// LIMIT: bytes that a line may be permitted to have.
const LINE_MAX_MAX: usize = 4 * 1024 * 1024;
/// LIMIT: lines of `Substitute` in one place, and of all that apply to an answer.
const RULES_MAX: usize = 1000;

/// One `Substitute`.
#[derive(Clone, Debug)]
pub(crate) struct LineRule {
    pattern: Pattern,
    with: Vec<ReplacementPart>,
    /// Whether what is replaced can be found by the expressions behind this one (no flag `q`).
    is_flat: bool,
}

/// A part of what takes the place of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReplacementPart {
    Text(Box<[u8]>),
    /// `$n`
    Group(u8),
}

/// What one place says.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubstituteSettings {
    rules: Vec<Arc<LineRule>>,
    line_max: Option<usize>,
    /// `SubstituteInheritBefore`
    inherits_before: Option<bool>,
}

impl SubstituteSettings {
    /// Whether it has lines of `Substitute`.
    pub(crate) fn is_given(&self) -> bool {
        !self.rules.is_empty()
    }
}

/// What all places come to.
#[derive(Clone, Debug)]
pub struct BodySubstitution {
    rules: Vec<Arc<LineRule>>,
    line_max: usize,
}

impl BodySubstitution {
    /// What rules come to that stand alone, each as in `Substitute`.
    ///
    /// # Errors
    ///
    /// What is wrong with the first that is not understood.
    pub fn of_rules(rules: &[&str]) -> Result<Self, String> {
        let read = |rule: &&str| LineRule::parse(rule.as_bytes()).map(Arc::new);
        Ok(Self { rules: rules.iter().map(read).collect::<Result<_, _>>()?, line_max: LINE_MAX })
    }

    /// What `places`, the deepest last, come to; none where nothing is searched for, and too many
    /// where more apply than may.
    pub(crate) fn new<'a>(places: impl Iterator<Item = &'a Settings>) -> Option<Self> {
        let mut own = Self { rules: Vec::new(), line_max: LINE_MAX };
        let mut is_before = false;
        for place in places.map(|settings| &settings.substitute) {
            own.line_max = place.line_max.unwrap_or(own.line_max);
            is_before = place.inherits_before.unwrap_or(is_before);
            // As in Apache, those of the deeper place come first unless it is said otherwise.
            let at = if is_before { own.rules.len() } else { 0 };
            own.rules.splice(at..at, place.rules.iter().cloned());
            if own.rules.len() > RULES_MAX {
                // The body says so.
                break;
            }
        }
        (!own.rules.is_empty()).then_some(own)
    }
}
