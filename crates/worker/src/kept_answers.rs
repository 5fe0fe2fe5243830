//! One worker's view of the store: its front, the store's work of each turn, and the bell of the
//! disk writer.

use std::sync::Arc;

use bolide_base::Now;
use bolide_cache::{Front, Object, ObjectVariant, Wakes};
use bolide_files::EncodeError;
use bolide_http::negotiate::Coding;
use bolide_io::Io;
use bolide_io::wake::Bell;
use bytes::Bytes;

use crate::disk_lookup::write_purges;

/// Turns between two sweeps.
const SWEEP_EVERY: u32 = 64;

/// The cache from the view of one worker.
#[derive(Debug)]
pub(crate) struct KeptAnswers {
    /// None if nothing is cached.
    pub(crate) front: Option<Front>,
    /// Wakes the disk writer.
    disk_writer: Bell,
    /// Turns since the last sweep.
    unswept: u32,
}

impl KeptAnswers {
    pub(crate) const fn new(front: Option<Front>, disk_writer: Bell) -> Self {
        Self { front, disk_writer, unswept: 0 }
    }

    /// Writes purges to the journals before they are acknowledged.
    #[inline]
    pub(crate) fn journal_purges(&mut self, io: &mut impl Io) {
        if self.front.as_ref().is_some_and(|front| front.store().disk().has_unwritten_purges()) {
            self.write_purges(io);
        }
    }

    #[cold]
    fn write_purges(&mut self, io: &mut impl Io) {
        let Some(front) = &self.front else { return };
        let store = front.store().clone();
        write_purges(io, &store);
        self.disk_writer.ring();
    }

    /// Does the store's work of a turn; returns the exchanges that wait for a fill without a
    /// writer. None if nothing is cached.
    pub(crate) fn tend(&mut self, now: Now) -> Option<Wakes> {
        let front = self.front.as_mut()?;
        front.tend(4);
        self.unswept += 1;
        debug_assert!(self.unswept <= SWEEP_EVERY, "the store is swept in time");
        if self.unswept >= SWEEP_EVERY {
            self.unswept = 0;
            front.store().sweep(64, now.unix_millis);
        }
        let wakes = front.poll_orphans();
        if front.store().disk().take_call() {
            self.disk_writer.ring();
        }
        Some(wakes)
    }

    /// Stores a compressed form of an object.
    pub(crate) fn keep_variant(
        &self,
        object: &Arc<Object>,
        coding: Coding,
        output: Result<Vec<u8>, EncodeError>,
    ) {
        let Some(front) = &self.front else { return };
        let variant = match output {
            Ok(form) if (form.len() as u64) < object.body_len() => {
                ObjectVariant::Ready(Bytes::from(form))
            }
            Ok(_) | Err(_) => ObjectVariant::NotWorth,
        };
        // It may have left the index meanwhile.
        let _is_kept = front.store().set_variant(object, coding, variant);
    }
}
