//! An open file as a value that travels between layers without anybody reading it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// A shared open file. Only `io` opens and reads one; it closes when the last copy goes.
#[derive(Clone, Debug)]
pub struct FileRef(Arc<OwnedFd>);

impl FileRef {
    /// Shares `fd`.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        Self(Arc::new(fd))
    }

    /// The descriptor, for the kernel's door.
    #[must_use]
    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// How many copies there are, this one included; tells the simulator what is held open.
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
