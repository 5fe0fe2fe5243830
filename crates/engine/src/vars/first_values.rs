//! Variables that nginx evaluates once per request: the first value holds until its end.
//!
//! Owns which those are, and their values. Log lines are the last readers and store none.

use std::ops::Range;

use bolide_conf::vars::Var;

/// The first values of a request's variables. The buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct FirstValues {
    /// The range of each value in `text`; none if the variable had no value.
    known: Vec<(Var, Option<Range<usize>>)>,
    text: Vec<u8>,
    /// Whether only log lines read from now on.
    is_closed: bool,
}

impl FirstValues {
    /// Forgets those of the last request.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.text.clear();
        self.is_closed = false;
    }

    /// The first value of `var`, if it was read.
    pub(super) fn find(&self, var: &Var) -> Option<Option<&[u8]>> {
        let (_, value) = self.known.iter().find(|(known, _)| known == var)?;
        Some(value.as_ref().map(|place| &self.text[place.clone()]))
    }

    /// Stores the first value of `var`.
    pub(super) fn keep(&mut self, var: &Var, value: Option<&[u8]>) {
        debug_assert!(self.find(var).is_none(), "a value is the first once");
        if self.is_closed {
            return;
        }
        let place = value.map(|value| {
            let start = self.text.len();
            self.text.extend_from_slice(value);
            start..self.text.len()
        });
        self.known.push((var.clone(), place));
    }

    /// The number of stored values.
    pub(crate) const fn mark(&self) -> usize {
        self.known.len()
    }

    /// Drops the values stored since `mark`.
    pub(crate) fn forget_since(&mut self, mark: usize) {
        debug_assert!(mark <= self.known.len(), "values are forgotten behind a mark only");
        self.known.truncate(mark);
    }

    /// Only log lines are written from now on.
    pub(crate) const fn close(&mut self) {
        self.is_closed = true;
    }
}

/// Whether a variable changes during its request, and keeps its first value in nginx.
pub(super) const fn is_kept(var: &Var) -> bool {
    matches!(
        var,
        Var::SentField(_)
            | Var::SentTrailer(_)
            | Var::RequestCompletion
            | Var::RequestBody
            | Var::RequestBodyFile
            | Var::GzipRatio
    )
}

#[cfg(test)]
mod tests {
    use bolide_conf::vars::{FieldName, Var};

    use super::{FirstValues, is_kept};

    #[test]
    fn what_changes_and_is_read_once_is_kept() {
        assert!(is_kept(&Var::SentField(FieldName::from_variable("location"))));
        assert!(is_kept(&Var::RequestCompletion));
        assert!(!is_kept(&Var::Status));
        assert!(!is_kept(&Var::BodyBytesSent));
        assert!(!is_kept(&Var::RequestMethod));
    }

    #[test]
    fn the_first_value_stays_and_lines_of_logs_leave_none() {
        let mut first = FirstValues::default();
        first.keep(&Var::RequestBody, Some(b"one"));
        first.keep(&Var::GzipRatio, None);
        assert_eq!(first.find(&Var::RequestBody), Some(Some(&b"one"[..])));
        assert_eq!(first.find(&Var::GzipRatio), Some(None));
        first.close();
        first.keep(&Var::RequestCompletion, Some(b"OK"));
        assert_eq!(first.find(&Var::RequestCompletion), None);
        first.clear();
        assert_eq!(first.find(&Var::RequestBody), None);
    }

    #[test]
    fn what_was_read_behind_a_mark_can_be_forgotten() {
        let mut first = FirstValues::default();
        first.keep(&Var::GzipRatio, Some(b"1.0"));
        let mark = first.mark();
        first.keep(&Var::RequestBody, Some(b"two"));
        first.forget_since(mark);
        assert_eq!(first.find(&Var::GzipRatio), Some(Some(&b"1.0"[..])));
        assert_eq!(first.find(&Var::RequestBody), None);
    }
}
