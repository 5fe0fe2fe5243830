//! What came of checks of access that had to be waited for.

use crate::subrequest::AuthVerdict;

/// Answers that the checks of access wait for, until they are looked at.
#[derive(Debug, Default)]
pub(crate) struct AccessChecks {
    /// What came of checking a password.
    pub(crate) password: Option<bool>,
    /// What came of asking another location.
    pub(crate) verdict: Option<Box<AuthVerdict>>,
}

impl AccessChecks {
    /// Forgets the request.
    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.password, self.verdict) = (None, None);
    }
}
