//! The results of asynchronous access checks.

use crate::answer::drop_any;
use crate::subrequest::AuthVerdict;

/// The results of asynchronous access checks, until they are used.
#[derive(Debug, Default)]
pub(crate) struct AccessChecks {
    /// The result of a password check.
    pub(crate) password: Option<bool>,
    /// The result of an authorization subrequest.
    pub(crate) verdict: Option<Box<AuthVerdict>>,
}

impl AccessChecks {
    /// Clears the state of the last request.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.password = None;
        drop_any(&mut self.verdict);
    }
}
