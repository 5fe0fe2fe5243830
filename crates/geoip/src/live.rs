//! A database that all workers use, and that may be replaced while they do.

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

/// What is known of a database's file, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoTimes {
    /// When it was built.
    pub built: u64,
    /// When the file was looked at last.
    pub checked: u64,
    /// When the file was read last.
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

    /// Asks the database as it is now.
    pub fn ask<T>(&self, question: impl FnOnce(&GeoDatabase) -> T) -> T {
        match &self.held {
            Held::Fixed(database) => question(database),
            Held::Replaceable(current) => {
                let database = current.read().unwrap_or_else(PoisonError::into_inner).clone();
                question(&database)
            }
        }
    }

    /// Notes that the file was looked at.
    pub fn note_check(&self, now: u64) {
        self.checked.store(now, Ordering::Relaxed);
    }

    /// Puts another database in its place; one that is asked at this moment answers still.
    pub fn replace(&self, database: GeoDatabase, now: u64) {
        if let Held::Replaceable(current) = &self.held {
            let database = Arc::new(database);
            let old = {
                let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
                std::mem::replace(&mut *current, database)
            };
            // What is freed here may be large, and no worker waits for it.
            drop(old);
            self.changed.store(now, Ordering::Relaxed);
        }
    }

    /// The times that variables tell.
    #[must_use]
    pub fn times(&self) -> GeoTimes {
        GeoTimes {
            built: self.ask(GeoDatabase::build_epoch),
            checked: self.checked.load(Ordering::Relaxed),
            changed: self.changed.load(Ordering::Relaxed),
        }
    }
}
