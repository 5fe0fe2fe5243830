//! Computations too long for a turn, done by threads of their own; results come by mail.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};

use bolide_engine::PasswordCheck;
use bolide_files::{EncodeError, VariantKey};
use bytes::Bytes;

use crate::mail::{Mail, Post};

/// Jobs that may wait; a worker that finds the queue full computes in its turn.
const JOBS_MAX: usize = 256;

/// Something to compute.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) worker: u16,
    pub(crate) ticket: u64,
    pub(crate) task: Task,
}

/// What is computed.
#[derive(Debug)]
pub(crate) enum Task {
    /// A compressed form.
    Compress(VariantKey, Bytes),
    /// Whether a password is right.
    Check(PasswordCheck),
}

/// What a task gave.
#[derive(Debug)]
pub(crate) enum Output {
    /// The compressed form.
    Compressed(Result<Vec<u8>, EncodeError>),
    /// Whether the password is right.
    Checked(bool),
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

/// The threads that compute, by their queue. Cheap to copy.
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
                compute(&queue.take(), &posts);
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

    /// Does the oldest job and posts what came of it: to which worker, if there was a job.
    pub fn compute_one(&self, posts: &[Post]) -> Option<u16> {
        let job = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        compute(&job, posts);
        Some(job.worker)
    }

    /// Queues a job; false when too many wait.
    pub(crate) fn submit(&self, job: Job) -> bool {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= JOBS_MAX {
            return false;
        }
        waiting.push_back(job);
        debug_assert!(waiting.len() <= JOBS_MAX, "no more jobs wait than may");
        self.0.bell.notify_one();
        true
    }
}

fn compute(job: &Job, posts: &[Post]) {
    let output = match &job.task {
        Task::Compress(key, data) => {
            Output::Compressed(bolide_files::compress(key.coding, key.level, data))
        }
        Task::Check(check) => Output::Checked(check.run()),
    };
    if let Some(post) = posts.get(usize::from(job.worker)) {
        // A box takes every result, however full it is.
        let _ = post.send(Mail::Finished(FinishedJob { ticket: job.ticket, output }));
    }
}

impl Queue {
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
