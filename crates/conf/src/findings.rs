//! The messages of one reading, each with the directive that it belongs to.
//!
//! Owns how many are kept: a file of nonsense yields one for each word.

use crate::ast::DirectiveNode;
use crate::diagnostic::Diagnostic;

/// Messages stored; more are of no use to the reader.
const DIAGNOSTICS_MAX: usize = 200;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticLog(Vec<(DirectiveNode, Diagnostic)>);

impl DiagnosticLog {
    /// Goes on behind the messages of loading.
    pub(crate) const fn new(before: Vec<(DirectiveNode, Diagnostic)>) -> Self {
        Self(before)
    }

    /// Records a message that belongs to `order`.
    pub(crate) fn note(&mut self, order: DirectiveNode, diagnostic: Diagnostic) {
        // The most severe one must not be lost among warnings.
        if self.0.len() < DIAGNOSTICS_MAX || diagnostic.is_fatal() {
            self.0.push((order, diagnostic));
        }
    }

    /// Records what a directive is refused with.
    pub(crate) fn fail(&mut self, order: DirectiveNode, diagnostic: Diagnostic) {
        // The first ones are enough.
        if self.0.len() < 2 * DIAGNOSTICS_MAX {
            self.0.push((order, diagnostic));
        }
    }

    /// Whether anything so far makes the configuration unusable.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.iter().any(|(_, diagnostic)| diagnostic.is_fatal())
    }

    /// All of them, in the order of the directives.
    pub(crate) fn into_sorted(mut self) -> Vec<(DirectiveNode, Diagnostic)> {
        self.0.sort_by_key(|(order, _)| *order);
        self.0
    }
}
