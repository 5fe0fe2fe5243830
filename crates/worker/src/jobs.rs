//! The background thread, for jobs that are too long for a turn; results come by mail.

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

/// LIMIT: waiting jobs; a worker that finds the queue full computes in its turn, or refuses.
const JOBS_MAX: usize = 256;
/// Directory entries per step, before other jobs have their turn.
const ENTRIES: usize = 4096;
/// Steps of a file change, before other jobs have their turn.
const STEPS: usize = 256;

/// A job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) worker: u16,
    pub(crate) ticket: u64,
    pub(crate) task: Task,
}

/// The kinds of jobs.
#[derive(Debug)]
pub(crate) enum Task {
    /// Compress a file.
    Compress(VariantKey, Bytes),
    /// Check a password.
    Check(PasswordCheck),
    /// Change files; the rest of a long change is queued again.
    Change(Box<FileWork>),
    /// Read a directory; the rest of a large one is queued again.
    Scan(Box<DirectoryScan>),
    /// Cut a part of a video, whose file is read for it.
    CutVideo(Box<Mp4Job>),
    /// Write the listing of a large directory.
    List(Box<ListingJob>),
}

/// The result of a job.
#[derive(Debug)]
pub(crate) enum Output {
    /// The compressed form.
    Compressed(Result<Vec<u8>, EncodeError>),
    /// Whether the password is right.
    Checked(bool),
    /// The outcome of the change.
    Changed(FileOutcome),
    /// The entries of the directory.
    Scanned(Box<Probed>),
    /// The part of the video.
    VideoCut(Box<Mp4Made>),
    /// The listing.
    Listed(Vec<u8>),
}

/// A finished job.
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

/// The queue of the thread; a clone is cheap.
#[derive(Clone, Debug)]
pub struct Jobs(Arc<Queue>);

impl Jobs {
    /// Starts the thread; it ends with the process. It processes data from clients and
    /// applications, so it calls `give_up_rights` first.
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
        let (sender, receiver) = mpsc::sync_channel(1);
        let body = move || {
            let settled = give_up_rights();
            let is_ready = settled.is_ok();
            // The caller waits for it.
            let _ = sender.send(settled);
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
        receiver.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()))?;
        Ok(jobs)
    }

    /// A queue without a thread, for the simulator, which calls [`Self::compute_one`].
    #[must_use]
    pub fn without_thread() -> Self {
        Self(Arc::default())
    }

    /// Does the oldest job, or a part of it, and posts its result; returns to which worker, if
    /// there was a job.
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
    /// The queue is full; returns the job.
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

/// Does a job; returns the rest if it is not done.
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
        // A mailbox accepts every result, even if it is full.
        let _ = post.send(Mail::Finished(FinishedJob { ticket: job.ticket, output }));
    }
    None
}

/// Cuts a part of a video, reading its file synchronously.
pub(crate) fn cut_video(job: &Mp4Job, io: &mut impl Io) -> Box<Mp4Made> {
    Box::new(job.run(|file, at, into| io.read(file, at, into).ok()))
}

impl Queue {
    /// The queue may be full: a running job keeps its place.
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
