//! Where the root of a location leads.

/// Where the root of a request's location leads.
#[derive(Debug, Default)]
pub(crate) struct RealRoot {
    pub(super) path: Vec<u8>,
    /// The error number of the system, if it leads nowhere.
    pub(super) failed: i32,
    /// Whether that was told.
    pub(super) told: std::cell::Cell<bool>,
}

impl RealRoot {
    /// Forgets where the last request's led.
    pub(crate) fn clear(&mut self) {
        self.path.clear();
        self.failed = 0;
    }
}
