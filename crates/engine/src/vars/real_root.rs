//! The resolved root of a location.

/// The resolved root of a request's location.
#[derive(Debug, Default)]
pub(crate) struct RealRoot {
    pub(super) path: Vec<u8>,
    /// The `errno` of the resolution, if it failed.
    pub(super) failed: i32,
    /// Whether the error was logged.
    pub(super) is_logged: std::cell::Cell<bool>,
}

impl RealRoot {
    /// Clears the state of the last request.
    pub(crate) fn clear(&mut self) {
        self.path.clear();
        self.failed = 0;
    }
}
