//! The URL of a key.
//!
//! INVARIANT: it is written with the key and at no other time, because the response is stored under
//! it.

use std::ops::Deref;

/// The URL of a key, as the client asked.
#[derive(Debug, Default)]
pub(in crate::caching) struct KeyUrl(Vec<u8>);

impl KeyUrl {
    /// Replaces it by what `push` appends.
    pub(super) fn write(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.0.clear();
        push(&mut self.0);
    }
}

impl Deref for KeyUrl {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
