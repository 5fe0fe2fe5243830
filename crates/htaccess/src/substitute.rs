//! mod_substitute: search and replacement in the lines of a body.
//!
//! [`SubstitutedLines`] processes the body. Refuses what Apache refuses, and a
//! `SubstituteMaxLineLength` beyond the limit of one body.

mod parse;
mod run;

use std::sync::Arc;

use crate::pattern::Pattern;
use crate::settings::Settings;

pub(crate) use parse::{inherit_before, line_max, substitute};
pub use run::{BrokenLine, SubstitutedLines};

/// The default of `SubstituteMaxLineLength`.
const LINE_MAX: usize = 1024 * 1024;
/// LIMIT: the largest `SubstituteMaxLineLength`.
const LINE_MAX_MAX: usize = 4 * 1024 * 1024;
/// LIMIT: lines of `Substitute` in one place, and of all that apply to a response.
const RULES_MAX: usize = 1000;

/// One `Substitute`.
#[derive(Clone, Debug)]
pub(crate) struct LineRule {
    pattern: Pattern,
    with: Vec<ReplacementPart>,
    /// Whether later expressions can match replaced text (no flag `q`).
    is_flat: bool,
}

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReplacementPart {
    Text(Box<[u8]>),
    /// `$n`
    Group(u8),
}

/// The directives of one place.
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

/// The merged rules of all places.
#[derive(Clone, Debug)]
pub struct BodySubstitution {
    rules: Vec<Arc<LineRule>>,
    line_max: usize,
}

impl BodySubstitution {
    /// The merged form of single rules, each as in `Substitute`.
    ///
    /// # Errors
    ///
    /// The first error.
    pub fn of_rules(rules: &[&str]) -> Result<Self, String> {
        let read = |rule: &&str| LineRule::parse(rule.as_bytes()).map(Arc::new);
        Ok(Self { rules: rules.iter().map(read).collect::<Result<_, _>>()?, line_max: LINE_MAX })
    }

    /// Merges `places`, the deepest last; none without rules, and marked as too many above the
    /// limit.
    pub(crate) fn new<'a>(places: impl Iterator<Item = &'a Settings>) -> Option<Self> {
        let mut own = Self { rules: Vec::new(), line_max: LINE_MAX };
        let mut is_before = false;
        for place in places.map(|settings| &settings.substitute) {
            own.line_max = place.line_max.unwrap_or(own.line_max);
            is_before = place.inherits_before.unwrap_or(is_before);
            // As in Apache, those of the deeper place come first by default.
            let at = if is_before { own.rules.len() } else { 0 };
            own.rules.splice(at..at, place.rules.iter().cloned());
            if own.rules.len() > RULES_MAX {
                // The body reports it.
                break;
            }
        }
        (!own.rules.is_empty()).then_some(own)
    }
}
