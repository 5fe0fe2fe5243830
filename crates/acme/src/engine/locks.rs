//! The locks of state directories: each is held once, for all attempts that need it.

use std::path::PathBuf;

use super::Engine;
use crate::host::AcmeLogLevel;
use crate::plan::{AcmeIssuer, OrderId};
use crate::state::AcmeStore;

impl Engine {
    /// Takes the locks of an order's and an issuer's directories; `None` if another process has
    /// one.
    pub(super) fn lock(&mut self, id: &OrderId, issuer: &AcmeIssuer) -> Option<Vec<PathBuf>> {
        let store = self.files.get(id).map(|files| files.store.clone());
        let stores = store.into_iter().chain([self.shared.store(issuer)]);
        let mut taken = Vec::new();
        for store in stores {
            let AcmeStore::Directory(path) = &*store else { continue };
            if let Some((_, count)) = self.locks.get_mut(path) {
                *count += 1;
                taken.push(path.clone());
                continue;
            }
            match store.lock() {
                Ok(Some(lock)) => {
                    self.locks.insert(path.clone(), (lock, 1));
                    taken.push(path.clone());
                }
                Ok(None) => {
                    self.unlock(&taken);
                    return None;
                }
                Err(why) => {
                    self.log(AcmeLogLevel::Error, &why);
                    self.unlock(&taken);
                    return None;
                }
            }
        }
        Some(taken)
    }

    pub(super) fn unlock(&mut self, paths: &[PathBuf]) {
        for path in paths {
            if let Some((_, count)) = self.locks.get_mut(path) {
                *count -= 1;
                if *count == 0 {
                    self.locks.remove(path);
                }
            }
        }
    }
}
