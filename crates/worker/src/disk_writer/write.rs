//! Writes objects to files: under a temporary name first, then renamed to that of the key.

use std::sync::Arc;

use bolide_base::FileRef;
use bolide_base::errno::{EEXIST, ENOENT};
use bolide_cache::disk::DiskWrite;
use bolide_io::{FileFailure, Io};

use super::removals::MadeAnew;
use super::{Charge, DiskWriter};

/// The permissions of files and of directories.
pub(super) const OWNER_ALONE: u32 = 0o600;
const OWNER_ALONE_DIRECTORY: u32 = 0o700;
/// ENOTDIR, EISDIR, ENOTEMPTY and ELOOP: something else has the name of a file or a directory of
/// the tree.
const IN_THE_WAY: [i32; 4] = [20, 21, 39, 40];
/// Objects written in one step.
const OBJECTS: usize = 64;
/// Bytes written in one step, not counting the last object.
const BYTES: u64 = 4 << 20;
/// Bodies up to this many bytes are written in one call with their heads.
const TOGETHER: usize = 64 * 1024;

impl<I: Io> DiskWriter<I> {
    /// Writes some queued objects; returns whether there is more.
    pub(super) fn write_some(&mut self, charge: &mut Charge) -> bool {
        if charge.off_until.is_some_and(|until| self.now.mono >= until) {
            self.turn_on(charge);
        }
        while let Some(hash) = charge.tree.next_doomed() {
            self.unlink_own(&charge.tree, hash);
        }
        if charge.tree.is_off() || charge.tree.lacks_journal() {
            return false;
        }
        let tree = Arc::clone(&charge.tree);
        let mut bytes = 0;
        for _ in 0..OBJECTS {
            let Some(spill) = tree.next_spill() else { return false };
            match self.write(charge, &spill) {
                Ok(size) => {
                    charge.is_logged = false;
                    bytes += size;
                }
                // The next object has another path.
                Err(failure) if IN_THE_WAY.contains(&failure.errno) => {
                    self.log_unstored(&tree.path(spill.hash()), failure);
                }
                Err(failure) => {
                    self.turn_off(charge, failure);
                    return false;
                }
            }
            if bytes >= BYTES {
                break;
            }
        }
        true
    }

    /// Writes one object; returns its size.
    fn write(&mut self, charge: &mut Charge, spill: &DiskWrite) -> Result<u64, FileFailure> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let size = if spill.encode(charge.tree.seal(), &mut buffer) {
            let written = self.write_file(charge, spill, &mut buffer);
            buffer.clear();
            buffer.shrink_to(1 << 20);
            written
        } else {
            Ok(0)
        };
        self.buffer = buffer;
        size
    }

    fn write_file(
        &mut self,
        charge: &mut Charge,
        spill: &DiskWrite,
        buffer: &mut Vec<u8>,
    ) -> Result<u64, FileFailure> {
        let tree = &Arc::clone(&charge.tree);
        let hash = spill.hash();
        let temporary = tree.temporary(hash, self.prng.next_u64());
        let mut made = MadeAnew::No;
        let file = match self.io.create(&temporary, OWNER_ALONE) {
            Err(failure) if failure.errno == ENOENT => {
                made = MadeAnew::Yes;
                make_directory(&mut self.io, tree.root())?;
                for directory in tree.directories(hash) {
                    make_directory(&mut self.io, &directory)?;
                }
                self.io.create(&temporary, OWNER_ALONE)?
            }
            other => other?,
        };
        self.watch_way(charge, hash, made);
        let written = self.fill(&file, spill, buffer);
        let written = written.and_then(|size| {
            self.io.rename(&temporary, &tree.path(hash))?;
            Ok(size)
        });
        match written {
            Ok(size) => tree.record_write(hash, size, self.seconds()),
            Err(_) => drop(self.io.unlink(&temporary)),
        }
        written
    }

    fn fill(
        &mut self,
        file: &FileRef,
        spill: &DiskWrite,
        buffer: &mut Vec<u8>,
    ) -> Result<u64, FileFailure> {
        let mut at = 0;
        let object = spill.object();
        let is_small = object.body_len() <= TOGETHER as u64;
        if is_small {
            object.pieces().for_each(|piece| buffer.extend_from_slice(piece));
        }
        self.write_all(file, &mut at, buffer)?;
        if !is_small {
            for piece in object.pieces() {
                self.write_all(file, &mut at, piece)?;
            }
        }
        Ok(at)
    }

    pub(super) fn write_all(
        &mut self,
        file: &FileRef,
        at: &mut u64,
        mut bytes: &[u8],
    ) -> Result<(), FileFailure> {
        while !bytes.is_empty() {
            let n = self.io.write_at(file, *at, bytes)?;
            *at += n as u64;
            bytes = &bytes[n..];
        }
        Ok(())
    }
}

/// Makes a directory that is missing.
pub(super) fn make_directory(io: &mut impl Io, path: &[u8]) -> Result<(), FileFailure> {
    match io.make_directory(path, OWNER_ALONE_DIRECTORY) {
        Err(failure) if failure.errno != EEXIST => Err(failure),
        Ok(()) | Err(_) => Ok(()),
    }
}
