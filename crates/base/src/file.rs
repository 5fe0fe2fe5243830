//! An open file as a value that layers pass on without reading it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// A shared open file. Only `io` opens and reads one; it closes with its last copy.
#[derive(Clone, Debug)]
pub struct FileRef(Arc<OwnedFd>);

impl FileRef {
    /// Shares `fd`.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        Self(Arc::new(fd))
    }

    /// The descriptor, for the `Io` backend.
    #[must_use]
    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// How many copies exist, this one included. The simulator uses it to see what is open.
    #[must_use]
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl PartialEq for FileRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
