//! The making of a part of a video as an order for a thread that may wait for the disk.

use bolide_base::FileRef;

use super::{Mp4Cut, Mp4Fault, Mp4Machine, Mp4Parts, Mp4Step};
use crate::Meta;

/// An order to make a part of a file that is on disk.
#[derive(Clone, Debug)]
pub struct Mp4Job {
    file: FileRef,
    meta: Meta,
    cut: Mp4Cut,
}

/// What came of an order.
#[derive(Clone, Debug)]
pub struct Mp4Made {
    /// The file as it was.
    pub meta: Meta,
    /// What was wanted.
    pub cut: Mp4Cut,
    /// What is sent.
    pub outcome: Result<Mp4Outcome, Mp4Fault>,
}

/// What is sent of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mp4Outcome {
    /// The file as it is.
    Whole,
    /// A part with a head of its own.
    Parts(Mp4Parts),
}

impl Mp4Job {
    /// The order to cut an open file.
    #[must_use]
    pub const fn new(file: FileRef, meta: Meta, cut: Mp4Cut) -> Self {
        Self { file, meta, cut }
    }

    /// Makes the part. `read` fills what it is given with the bytes of the file from an offset on,
    /// as far as there are some, and tells how many that were; `None` where it failed.
    #[must_use]
    pub fn run(&self, mut read: impl FnMut(&FileRef, u64, &mut [u8]) -> Option<usize>) -> Mp4Made {
        self.made(run(self.cut, self.meta.size, |at, len| {
            let mut bytes = vec![0; len];
            let mut filled = 0;
            while filled < len {
                match read(&self.file, at + filled as u64, &mut bytes[filled..])? {
                    0 => return None,
                    more => filled += more,
                }
            }
            Some(bytes)
        }))
    }

    /// What is made where nothing is to be read.
    #[must_use]
    pub const fn left_whole(&self) -> Mp4Made {
        self.made(Ok(Mp4Outcome::Whole))
    }

    const fn made(&self, outcome: Result<Mp4Outcome, Mp4Fault>) -> Mp4Made {
        Mp4Made { meta: self.meta, cut: self.cut, outcome }
    }
}

impl Mp4Cut {
    /// The part of a file that is in memory.
    ///
    /// # Errors
    ///
    /// As [`Mp4Machine::step`].
    pub fn of_memory(self, file: &[u8]) -> Result<Mp4Outcome, Mp4Fault> {
        run(self, file.len() as u64, |at, len| {
            let start = usize::try_from(at).ok()?;
            file.get(start..start + len).map(<[u8]>::to_vec)
        })
    }
}

/// Drives the machine; `read` gives bytes that are there.
fn run(
    cut: Mp4Cut,
    size: u64,
    mut read: impl FnMut(u64, usize) -> Option<Vec<u8>>,
) -> Result<Mp4Outcome, Mp4Fault> {
    let mut machine = Mp4Machine::new(cut, size);
    loop {
        match machine.step()? {
            Mp4Step::Whole => return Ok(Mp4Outcome::Whole),
            Mp4Step::Cut(parts) => return Ok(Mp4Outcome::Parts(parts)),
            Mp4Step::Read(range) => {
                // A window is as large as a buffer or a head, both of which have limits.
                let bytes = read(range.start, (range.end - range.start) as usize);
                let bytes = bytes.ok_or_else(|| Mp4Fault::about("file truncated"))?;
                machine.give(range.start, bytes);
            }
        }
    }
}
