//! Heads of `location` blocks that a server has already: a second one would be an error.

use std::collections::BTreeSet;

/// The heads so far.
#[derive(Debug, Default)]
pub(crate) struct Heads(BTreeSet<String>);

impl Heads {
    /// Adds a head that is no expression; whether it is new.
    pub(crate) fn take(&mut self, head: &str) -> bool {
        let is_exact = head.starts_with("= ");
        let path = head.trim_start_matches(['=', '^', '~', ' ']).trim_matches('"');
        self.0.insert(format!("{}{path}", if is_exact { "= " } else { "" }))
    }
}
