//! Objects on their way to files: the queue, and how one is encoded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{DiskTree, DiskWrite};
use crate::disk::format::{CHUNK, Record, Summer, head_size};
use crate::disk::index::FileHash;
use crate::disk::name::file_hash;
use crate::object::{Object, ObjectKind};
use crate::tags::lock;

/// LIMIT: bytes of objects that wait to be written; more are not written. One may have more.
const QUEUE_BYTES_MAX: u64 = 64 << 20;
/// LIMIT: objects that wait to be written.
const QUEUE_MAX: usize = 4096;

impl DiskTree {
    /// Queues an object to be written; false if the queue is full.
    pub(crate) fn spill(&self, spill: DiskWrite) -> bool {
        if !self.is_open() || self.is_off() {
            return false;
        }
        let mut queue = lock(&self.queue);
        let bytes = spill.object.charge();
        let is_too_much = queue.bytes > 0 && queue.bytes + bytes > QUEUE_BYTES_MAX;
        if queue.spills.len() >= QUEUE_MAX || is_too_much {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        queue.bytes += bytes;
        queue.spills.push_back((spill, bytes));
        true
    }

    /// The next object to write.
    #[must_use]
    pub fn next_spill(&self) -> Option<DiskWrite> {
        let mut queue = lock(&self.queue);
        let (spill, bytes) = queue.spills.pop_front()?;
        queue.bytes -= bytes;
        assert!(
            queue.bytes == 0 || !queue.spills.is_empty(),
            "the bytes of the queue are those of its objects"
        );
        Some(spill)
    }

    /// Visits the queued objects; for the command line.
    pub(crate) fn queued(&self, visit: &mut impl FnMut(&Arc<Object>)) {
        lock(&self.queue).spills.iter().for_each(|(spill, _)| visit(&spill.object));
    }

    /// The smallest purge number of the queued objects.
    #[must_use]
    pub fn queued_floor(&self) -> Option<u64> {
        lock(&self.queue).spills.iter().map(|(spill, _)| spill.sequence).min()
    }
}

impl DiskWrite {
    /// The name of its file.
    #[must_use]
    pub fn hash(&self) -> FileHash {
        let session = self.object.session().map_or(&b""[..], |session| session.text());
        file_hash(&self.namespace, self.object.url(), self.object.vary(), session)
    }

    /// Encodes the head of its file; the pieces of the object follow it. False if the format cannot
    /// hold it.
    #[must_use]
    pub fn encode(&self, seal: u64, out: &mut Vec<u8>) -> bool {
        let object = &self.object;
        let mut sums = Summer::default();
        if object.kind() == ObjectKind::Content {
            object.pieces().for_each(|piece| sums.add(piece));
        }
        let sums = sums.finish();
        debug_assert!(
            object.kind() != ObjectKind::Content
                || sums.len() as u64 == object.body_len().div_ceil(CHUNK as u64) * 8,
            "each chunk of a body has a checksum"
        );
        let is_content = object.kind() == ObjectKind::Content;
        let record = Record {
            seal,
            sequence: self.sequence,
            kind: object.kind(),
            is_stale: object.is_softly_purged(),
            status: if is_content { object.status() } else { 0 },
            times: object.times(),
            body_len: if is_content { object.body_len() } else { 0 },
            namespace: &self.namespace,
            url: object.url(),
            vary: object.vary(),
            session: object.session().map_or(&b""[..], |session| session.text()),
            etag: object.etag().unwrap_or_default(),
            tags: &self.tags,
            head: object.packed_head(),
            sums: &sums,
        };
        record.encode(out) && head_size(out) == Some(out.len())
    }

    /// The object.
    #[must_use]
    pub const fn object(&self) -> &Arc<Object> {
        &self.object
    }
}
