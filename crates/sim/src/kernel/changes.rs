//! The inotify watches of workers, and the reported changes.
//!
//! Owns the queue of each worker. Like the kernel, it reports a change before a later request,
//! removes a watch whose directory is removed, and reports only an overflow after too many changes.

use bolide_base::errno::{ENOENT, ENOSPC, ENOSYS};
use bolide_io::DirChange;

/// Changes that wait for one worker, at most.
const QUEUE_MAX: usize = 12;

#[derive(Debug)]
struct DirWatch {
    worker: usize,
    number: u32,
    path: String,
}

/// All watches.
#[derive(Debug, Default)]
pub struct SimWatches {
    /// How many there may be; none at all if it is 0.
    pub max: usize,
    watches: Vec<DirWatch>,
    last: u32,
    /// What is to be told, and to which worker.
    queue: Vec<(usize, DirChange)>,
    token: u64,
}

impl SimWatches {
    /// A worker watches a directory, which is there or not.
    pub(crate) fn add(
        &mut self,
        worker: usize,
        (path, is_there): (&str, bool),
        token: u64,
    ) -> Result<u32, i32> {
        self.token = token;
        let is_known = |watch: &&DirWatch| watch.worker == worker && watch.path == path;
        match self.watches.iter().find(is_known) {
            _ if self.max == 0 => Err(ENOSYS),
            _ if !is_there => Err(ENOENT),
            Some(watch) => Ok(watch.number),
            None if self.watches.len() >= self.max => Err(ENOSPC),
            None => {
                self.last += 1;
                self.watches.push(DirWatch { worker, number: self.last, path: path.to_owned() });
                Ok(self.last)
            }
        }
    }

    /// A worker watches it no more.
    pub(crate) fn end(&mut self, worker: usize, number: u32) {
        self.watches.retain(|watch| (watch.worker, watch.number) != (worker, number));
    }

    /// What is under a path has changed, or is no longer there.
    pub(super) fn note(&mut self, path: &str, is_gone: bool) {
        let (above, name) = path.rsplit_once('/').unwrap_or_default();
        let above = if above.is_empty() { "/" } else { above };
        let queue = &mut self.queue;
        self.watches.retain(|watch| {
            let (worker, number) = (watch.worker, watch.number);
            if watch.path == above {
                let name = name.as_bytes().into();
                queue.push((worker, DirChange::Entry { watch: number, name }));
            }
            let ends = is_gone && watch.path == path;
            if ends {
                queue.push((worker, DirChange::Gone { watch: number }));
            }
            !ends
        });
    }

    /// What the changes that wait for a worker are reported under, if there are any.
    #[must_use]
    pub fn report(&self, worker: usize) -> Option<u64> {
        self.queue.iter().any(|(other, _)| *other == worker).then_some(self.token)
    }

    /// Hands them over.
    pub(crate) fn take(&mut self, worker: usize, out: &mut Vec<DirChange>) {
        let queue = std::mem::take(&mut self.queue);
        let (own, others) = queue.into_iter().partition::<Vec<_>, _>(|(other, _)| *other == worker);
        self.queue = others;
        if own.len() > QUEUE_MAX {
            out.push(DirChange::Unknown);
        } else {
            out.extend(own.into_iter().map(|(_, change)| change));
        }
    }
}
