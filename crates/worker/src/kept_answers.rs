//! One worker's side of the store of kept answers: its front, what each turn owes the store, and
//! word to the disk writer.

use std::sync::Arc;

use bolide_base::Now;
use bolide_cache::{Front, Object, ObjectVariant, Wakes};
use bolide_files::EncodeError;
use bolide_http::negotiate::Coding;
use bolide_io::Io;
use bolide_io::wake::Bell;
use bytes::Bytes;

use crate::disk_lookup::write_purges;

/// Turns between two looks for what can be freed.
const SWEEP_EVERY: u32 = 64;

/// Kept answers, as one worker sees them.
#[derive(Debug)]
pub(crate) struct KeptAnswers {
    /// None if no answers are kept.
    pub(crate) front: Option<Front>,
    /// Calls who looks after the files of the cache.
    disk_writer: Bell,
    /// Turns since the store was swept.
    unswept: u32,
}

impl KeptAnswers {
    pub(crate) const fn new(front: Option<Front>, disk_writer: Bell) -> Self {
        Self { front, disk_writer, unswept: 0 }
    }

    /// Writes purges to the journals before they are acknowledged.
    #[inline]
    pub(crate) fn note_purges(&mut self, io: &mut impl Io) {
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

    /// Does what the store is owed in each turn; which exchanges wait for a fill that has no reader
    /// any more. None if no answers are kept.
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

    /// Keeps a compressed form of an object.
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
