//! Reads values at moments when nginx does not evaluate them: before `$realpath_root` may be read,
//! and to check that a path stays below its directory.
//!
//! Owns what the evaluation of a variable changes of a request: the captures of the last match,
//! the values of `map` and its kin, first values, warnings. Easiest to break: an effect that is
//! added to evaluation has to be undone here.

use super::VariableScope;
use crate::request::Request;

/// Calls `read` with `scope`, and undoes the effects of the evaluations in it.
pub(crate) fn preview<'a, T>(
    scope: &VariableScope<'a>,
    read: impl FnOnce(&VariableScope<'a>) -> T,
) -> T {
    let Request { captures, notes, first_values, is_undecided, .. } = scope.request;
    let before = captures.borrow().clone();
    let (noted, kept) = (notes.borrow().len(), first_values.borrow().mark());
    let was_undecided = is_undecided.get();
    let value = read(scope);
    debug_assert!(notes.borrow().len() >= noted, "notes are written out between evaluations");
    captures.replace(before);
    notes.borrow_mut().truncate(noted);
    first_values.borrow_mut().forget_since(kept);
    is_undecided.set(was_undecided);
    value
}
