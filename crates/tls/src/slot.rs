//! A certificate that is replaced while handshakes use it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::LoadedCertificate;

/// A place for a certificate, empty at first. All clones share the place; its lock is held for as
/// long as a count changes.
#[derive(Clone, Default)]
pub struct CertSlot(Arc<RwLock<Option<LoadedCertificate>>>);

impl CertSlot {
    /// From now on handshakes use this one.
    pub fn set(&self, certificate: LoadedCertificate) {
        // What was there is dropped without the lock.
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let old = place.replace(certificate);
        drop(place);
        drop(old);
    }

    /// What is there now.
    #[must_use]
    pub fn certificate(&self) -> Option<LoadedCertificate> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for CertSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CertSlot").field(&self.certificate()).finish()
    }
}
