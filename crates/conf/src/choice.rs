//! Words from a fixed set, of which a directive takes one or several, case-insensitive.

use crate::ast::Node;
use crate::reader::{ConfReader, ReadFault, invalid_value, show};

/// The meaning of a directive's only word.
pub(crate) fn chosen<T: Clone>(node: &Node, choices: &[(&str, T)]) -> Result<T, ReadFault> {
    choice(node.arg(0), choices)
}

/// The meaning of a word.
pub(crate) fn choice<T: Clone>(word: &[u8], choices: &[(&str, T)]) -> Result<T, ReadFault> {
    let known = choices.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
    known.map(|(_, meaning)| meaning.clone()).ok_or_else(|| invalid_value(word))
}

/// Warns of a word of a set that the directive already had in this block.
pub(crate) fn say_once(r: &mut ConfReader, node: &Node, word: &[u8]) {
    let key = [node.name(), b" ", &*word.to_ascii_lowercase()].concat();
    if !r.scope.said.insert(key) {
        r.warn(format!("duplicate value \"{}\"", show(word)));
    }
}
