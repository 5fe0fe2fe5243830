//! A database that all workers use, and that can be replaced meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::database::GeoDatabase;

/// A database in use. One that is never replaced is read without a lock.
#[derive(Debug)]
pub struct LiveGeoDatabase {
    held: Held,
    checked: AtomicU64,
    changed: AtomicU64,
}

#[derive(Debug)]
enum Held {
    Fixed(GeoDatabase),
    Replaceable(RwLock<Arc<GeoDatabase>>),
}

/// The times of a database and its file, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoTimes {
    /// When it was built.
    pub built: u64,
    /// When the file was last checked.
    pub checked: u64,
    /// When the file was last read.
    pub changed: u64,
}

impl LiveGeoDatabase {
    /// A database that stays, read at `now`, in seconds since 1970.
    #[must_use]
    pub const fn fixed(database: GeoDatabase, now: u64) -> Self {
        Self::new(Held::Fixed(database), now)
    }

    /// A database that [`Self::replace`] replaces, read at `now`.
    #[must_use]
    pub fn replaceable(database: GeoDatabase, now: u64) -> Self {
        Self::new(Held::Replaceable(RwLock::new(Arc::new(database))), now)
    }

    const fn new(held: Held, now: u64) -> Self {
        Self { held, checked: AtomicU64::new(now), changed: AtomicU64::new(now) }
    }

    /// Calls `question` with the current database.
    pub fn ask<T>(&self, question: impl FnOnce(&GeoDatabase) -> T) -> T {
        match &self.held {
            Held::Fixed(database) => question(database),
            Held::Replaceable(current) => {
                let database = current.read().unwrap_or_else(PoisonError::into_inner).clone();
                question(&database)
            }
        }
    }

    /// Records that the file was checked.
    pub fn record_check(&self, now: u64) {
        self.checked.store(now, Ordering::Relaxed);
    }

    /// Replaces the database; a running query still uses the old one.
    pub fn replace(&self, database: GeoDatabase, now: u64) {
        if let Held::Replaceable(current) = &self.held {
            let database = Arc::new(database);
            let old = {
                let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
                std::mem::replace(&mut *current, database)
            };
            // Freeing may take long, and no worker waits for it.
            drop(old);
            self.changed.store(now, Ordering::Relaxed);
        }
    }

    /// The times for variables.
    #[must_use]
    pub fn times(&self) -> GeoTimes {
        GeoTimes {
            built: self.ask(GeoDatabase::build_epoch),
            checked: self.checked.load(Ordering::Relaxed),
            changed: self.changed.load(Ordering::Relaxed),
        }
    }
}
