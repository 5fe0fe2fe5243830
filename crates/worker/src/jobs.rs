//! What is too long for a turn, done by a thread of its own; results come by mail.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};

use bolide_engine::{FileOutcome, PasswordCheck};
use bolide_files::listing::ListingJob;
use bolide_files::{EncodeError, Mp4Job, Mp4Made, Probed, VariantKey};
use bolide_io::Io;
use bytes::Bytes;

use crate::file_work::FileWork;
use crate::look::DirectoryScan;
use crate::mail::{Mail, Post};

/// LIMIT: jobs that may wait; a worker that finds the queue full computes in its turn, or refuses.
const JOBS_MAX: usize = 256;
/// Entries of a directory before others have their turn.
const ENTRIES: usize = 4096;
/// Steps of a change of files before others have their turn.
const STEPS: usize = 256;

/// Something to do.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) worker: u16,
    pub(crate) ticket: u64,
    pub(crate) task: Task,
}

/// What is done.
#[derive(Debug)]
pub(crate) enum Task {
    /// A compressed form.
    Compress(VariantKey, Bytes),
    /// Whether a password is right.
    Check(PasswordCheck),
    /// A change of files; the rest of one that is not done yet waits behind the others.
    Change(Box<FileWork>),
    /// The entries of a directory; the rest of a large one waits behind the others.
    Scan(Box<DirectoryScan>),
    /// A part of a video, whose file is read for it.
    CutVideo(Box<Mp4Job>),
    /// The listing of a large directory.
    List(Box<ListingJob>),
}

/// What a task gave.
#[derive(Debug)]
pub(crate) enum Output {
    /// The compressed form.
    Compressed(Result<Vec<u8>, EncodeError>),
    /// Whether the password is right.
    Checked(bool),
    /// What came of the change.
    Changed(FileOutcome),
    /// What is in the directory.
    Scanned(Box<Probed>),
    /// The part of the video.
    VideoCut(Box<Mp4Made>),
    /// The listing.
    Listed(Vec<u8>),
}

/// What came of a job.
#[derive(Debug)]
pub struct FinishedJob {
    pub(crate) ticket: u64,
    pub(crate) output: Output,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<VecDeque<Job>>,
    bell: Condvar,
}

/// The thread, by its queue. Cheap to copy.
#[derive(Clone, Debug)]
pub struct Jobs(Arc<Queue>);

impl Jobs {
    /// Starts one thread; it ends with the process. What it computes of comes from clients and
    /// applications, so `give_up_rights` is the first that it does.
    ///
    /// # Errors
    ///
    /// The system gives no thread, or `give_up_rights` failed.
    pub fn start(
        posts: Arc<Vec<Post>>,
        mut io: impl Io + Send + 'static,
        give_up_rights: impl FnOnce() -> std::io::Result<()> + Send + 'static,
    ) -> std::io::Result<Self> {
        let jobs = Self::without_thread();
        let queue = jobs.0.clone();
        let (teller, told) = mpsc::sync_channel(1);
        let body = move || {
            let settled = give_up_rights();
            let is_ready = settled.is_ok();
            // Who started us waits for it.
            let _ = teller.send(settled);
            if !is_ready {
                return;
            }
            loop {
                if let Some(rest) = compute(queue.take(), &posts, &mut io) {
                    queue.put_back(rest);
                }
            }
        };
        std::thread::Builder::new().name("jobs".to_owned()).spawn(body)?;
        told.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()))?;
        Ok(jobs)
    }

    /// A queue that moves only when [`Self::compute_one`] is called, for the simulator.
    #[must_use]
    pub fn without_thread() -> Self {
        Self(Arc::default())
    }

    /// Does the oldest job, or a part of it, and posts what came of it: to which worker, if there
    /// was a job.
    pub fn compute_one(&self, posts: &[Post], io: &mut impl Io) -> Option<u16> {
        let job = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        let worker = job.worker;
        if let Some(rest) = compute(job, posts, io) {
            self.0.put_back(rest);
        }
        Some(worker)
    }

    /// Queues a job.
    ///
    /// # Errors
    ///
    /// Too many wait; the job comes back.
    pub(crate) fn submit(&self, job: Job) -> Result<(), Job> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= JOBS_MAX {
            return Err(job);
        }
        waiting.push_back(job);
        debug_assert!(waiting.len() <= JOBS_MAX, "no more jobs wait than may");
        self.0.bell.notify_one();
        Ok(())
    }
}

/// Does a job; gives back what is not done yet.
fn compute(mut job: Job, posts: &[Post], io: &mut impl Io) -> Option<Job> {
    let output = match &mut job.task {
        Task::Compress(key, data) => {
            Output::Compressed(bolide_files::compress(key.coding, key.level, data))
        }
        Task::Check(check) => Output::Checked(check.run()),
        Task::Change(work) => match work.go_on(io, STEPS) {
            Some(outcome) => Output::Changed(outcome),
            None => return Some(job),
        },
        Task::Scan(scan) => match scan.go_on(ENTRIES) {
            Some(found) => Output::Scanned(Box::new(found)),
            None => return Some(job),
        },
        Task::CutVideo(job) => Output::VideoCut(cut_video(job, io)),
        Task::List(job) => Output::Listed(job.run()),
    };
    if let Some(post) = posts.get(usize::from(job.worker)) {
        // A box takes every result, however full it is.
        let _ = post.send(Mail::Finished(FinishedJob { ticket: job.ticket, output }));
    }
    None
}

/// Makes a part of a video, and waits for its file.
pub(crate) fn cut_video(job: &Mp4Job, io: &mut impl Io) -> Box<Mp4Made> {
    Box::new(job.run(|file, at, into| io.read(file, at, into).ok()))
}

impl Queue {
    /// The queue may be full: what was taken has its place.
    fn put_back(&self, rest: Job) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(rest);
    }

    fn take(&self) -> Job {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = waiting.pop_front() {
                return job;
            }
            waiting = self.bell.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
