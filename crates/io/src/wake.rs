//! Waking a worker from another thread.

use std::sync::Arc;

use bolide_base::FileRef;

use crate::{Fd, sys};

/// Rings a worker that sleeps in `wait`. Cheap to copy, usable from any thread.
#[derive(Clone, Debug)]
pub struct Bell(Arc<FileRef>);

impl Bell {
    /// A new bell.
    ///
    /// # Errors
    ///
    /// No descriptor is available.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(Arc::new(FileRef::new(sys::event_fd()?))))
    }

    /// The descriptor to watch.
    #[must_use]
    pub fn fd(&self) -> Fd {
        Fd(self.0.raw())
    }

    /// Clears it; whether it had been set. For a thread that does not wait in a backend.
    #[must_use]
    pub fn has_rung(&self) -> bool {
        sys::read(self.fd().0, &mut [0; 8]).is_ok()
    }

    /// Wakes the watcher.
    pub fn ring(&self) {
        // A full counter means that it is set already.
        let _ = sys::write(self.fd().0, &1_u64.to_ne_bytes());
    }
}
