//! The inotify watches of workers, and the reported changes.
//!
//! Owns the queue of each worker. Like the kernel, it reports a change before a later request,
//! removes a watch whose directory is removed, and reports only an overflow after too many changes.

use bolide_base::errno::{ENOENT, ENOSPC, ENOSYS};
use bolide_io::DirChange;

/// Queued changes of one worker, at most.
const QUEUE_MAX: usize = 12;

#[derive(Debug)]
struct DirWatch {
    worker: usize,
    number: u32,
    path: String,
}

/// All inotify watches.
#[derive(Debug, Default)]
pub struct InotifyWatches {
    /// The limit of watches; 0 means that inotify is not supported.
    pub max: usize,
    watches: Vec<DirWatch>,
    last: u32,
    /// Changes that were not read so far, with their worker.
    queue: Vec<(usize, DirChange)>,
    token: u64,
}

impl InotifyWatches {
    /// A worker adds a watch for a directory.
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

    /// A worker removes a watch. Its end is a change, too (`IN_IGNORED`).
    pub(crate) fn end(&mut self, worker: usize, number: u32) {
        let before = self.watches.len();
        self.watches.retain(|watch| (watch.worker, watch.number) != (worker, number));
        if self.watches.len() < before {
            self.queue.push((worker, DirChange::Gone { watch: number }));
        }
    }

    /// Reports a change of `path`, or its removal.
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

    /// The token of a worker's inotify descriptor, if changes are queued.
    #[must_use]
    pub fn report(&self, worker: usize) -> Option<u64> {
        self.queue.iter().any(|(other, _)| *other == worker).then_some(self.token)
    }

    /// Takes the queued changes of a worker.
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
