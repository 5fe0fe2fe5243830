//! The jobs of the background thread for exchanges and the store, and who waits for them.
//!
//! Owns the tickets. Short jobs are computed in the turn; so are those that find the thread's queue
//! full, or they are refused.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_base::SlabKey;
use bolide_cache::Object;
use bolide_engine::{FileChange, JobResult, PasswordCheck, StoreOrder, Wake};
use bolide_files::listing::ListingJob;
use bolide_files::{CompressJob, FileTable, Mp4Job, VariantKey};
use bolide_http::negotiate::Coding;
use bolide_io::Io;
use bytes::Bytes;

use crate::env::WorkerEnv;
use crate::exchange_table::ActiveExchange;
use crate::file_work::FileWork;
use crate::jobs::{FinishedJob, Job, Jobs, Output, Task, cut_video};
use crate::scans::Scans;
use crate::stored_answers::{LongPlacement, log_notes};
use crate::verified::{Fingerprint, Verified};

/// Files up to this many bytes are compressed in the turn: the thread would answer later.
const COMPRESS_AT_ONCE: usize = 16 * 1024;

/// LIMIT: checks of passwords of one worker that wait: other jobs need places in the queue, too.
const CHECKS_MAX: usize = 64;

/// Steps of a file change in the turn: a short one needs no thread.
const STEPS_AT_ONCE: usize = 16;

/// Who waits for a file change.
#[derive(Debug)]
enum Changing {
    /// An exchange.
    For(SlabKey<ActiveExchange>),
    /// Only the log: the client may be gone.
    Stored(Arc<StoreOrder>),
}

/// Jobs of one worker.
#[derive(Debug)]
pub(crate) struct Background {
    jobs: Jobs,
    worker: u16,
    /// The ticket of the next job.
    next: u64,
    /// Exchanges that wait for the check of a password, by ticket.
    checking: HashMap<u64, (SlabKey<ActiveExchange>, Fingerprint)>,
    verified: Verified,
    /// Who waits for a file change, by ticket.
    changing: HashMap<u64, Changing>,
    /// Exchanges that wait for a compressed file, by ticket.
    compressing: HashMap<u64, (SlabKey<ActiveExchange>, CompressJob)>,
    /// Cached objects that are being compressed, by ticket.
    coding: HashMap<u64, (Arc<Object>, Coding)>,
    /// Exchanges that wait for a part of a video, or for a listing, by ticket.
    making: HashMap<u64, SlabKey<ActiveExchange>>,
    pub(crate) scans: Scans,
}

impl Background {
    /// No jobs. `secret` is the process's.
    pub(crate) fn new(jobs: Jobs, worker: u16, secret: [u8; 32]) -> Self {
        Self {
            jobs,
            worker,
            next: 0,
            checking: HashMap::new(),
            verified: Verified::new(secret),
            changing: HashMap::new(),
            compressing: HashMap::new(),
            coding: HashMap::new(),
            making: HashMap::new(),
            scans: Scans::default(),
        }
    }

    /// Queues a task; returns its ticket, or the task if the queue is full.
    pub(crate) fn submit(&mut self, task: Task) -> Result<u64, Task> {
        let ticket = self.next;
        debug_assert!(!self.is_pending(ticket), "no two jobs have one ticket");
        self.jobs.submit(Job { worker: self.worker, ticket, task }).map_err(|job| job.task)?;
        self.next += 1;
        Ok(ticket)
    }

    fn is_pending(&self, ticket: u64) -> bool {
        self.checking.contains_key(&ticket)
            || self.changing.contains_key(&ticket)
            || self.compressing.contains_key(&ticket)
            || self.coding.contains_key(&ticket)
            || self.making.contains_key(&ticket)
            || self.scans.has(ticket)
    }

    /// Compresses a file for an exchange; returns the wake if that is done at once.
    pub(crate) fn compress(
        &mut self,
        key: SlabKey<ActiveExchange>,
        job: CompressJob,
        files: &mut FileTable,
    ) -> Option<Wake> {
        if job.data().len() > COMPRESS_AT_ONCE
            && let Ok(ticket) = self.submit(Task::Compress(job.key(), job.data().clone()))
        {
            self.compressing.insert(ticket, (key, job));
            return None;
        }
        let output = job.run();
        files.finish_job(&job, output);
        Some(Wake::Compressed)
    }

    /// Has the thread compress a cached object; if its queue is full, the next request tries again.
    pub(crate) fn compress_object(&mut self, object: Arc<Object>, key: VariantKey) {
        let data = object.body().unwrap_or_else(|| {
            let mut whole = Vec::with_capacity(object.body_len() as usize);
            object.pieces().for_each(|piece| whole.extend_from_slice(piece));
            Bytes::from(whole)
        });
        debug_assert!(data.len() as u64 == object.body_len(), "an object is compressed whole");
        match self.submit(Task::Compress(key, data)) {
            Ok(ticket) => drop(self.coding.insert(ticket, (object, key.coding))),
            Err(_) => object.unclaim_variant(key.coding),
        }
    }

    /// Checks a password for an exchange; returns the wake if that is done at once.
    pub(crate) fn check_password(
        &mut self,
        key: SlabKey<ActiveExchange>,
        check: &PasswordCheck,
    ) -> Option<Wake> {
        if check.is_slow() {
            let fingerprint = self.verified.fingerprint(check);
            if self.verified.knows(&fingerprint) {
                return Some(Wake::PasswordChecked(true));
            }
            if self.checking.len() >= CHECKS_MAX {
                return Some(Wake::PasswordUnchecked);
            }
            return match self.submit(Task::Check(check.clone())) {
                Ok(ticket) => {
                    self.checking.insert(ticket, (key, fingerprint));
                    debug_assert!(self.checking.len() <= CHECKS_MAX, "few checks wait");
                    None
                }
                Err(_) => Some(Wake::PasswordUnchecked),
            };
        }
        Some(Wake::PasswordChecked(check.run()))
    }

    /// Changes files for an exchange; returns the wake if that is done at once.
    pub(crate) fn change_files(
        &mut self,
        key: SlabKey<ActiveExchange>,
        change: FileChange,
        io: &mut impl Io,
    ) -> Option<Wake> {
        let mut work = Box::new(FileWork::new(change));
        if let Some(outcome) = work.go_on(io, STEPS_AT_ONCE) {
            return Some(Wake::FilesChanged(Box::new(outcome)));
        }
        match self.submit(Task::Change(work)) {
            Ok(ticket) => drop(self.changing.insert(ticket, Changing::For(key))),
            Err(Task::Change(work)) => {
                return Some(Wake::FilesChanged(Box::new(work.give_up(io))));
            }
            Err(_) => {}
        }
        None
    }

    /// Cuts a part of a video for an exchange; returns the wake if that is done at once.
    pub(crate) fn cut_video(
        &mut self,
        key: SlabKey<ActiveExchange>,
        job: Box<Mp4Job>,
        io: &mut impl Io,
    ) -> Option<Wake> {
        match self.submit(Task::CutVideo(job)) {
            Ok(ticket) => drop(self.making.insert(ticket, key)),
            Err(Task::CutVideo(job)) => {
                return Some(Wake::JobDone(JobResult::Video(cut_video(&job, io))));
            }
            Err(_) => {}
        }
        None
    }

    /// Writes the listing of a large directory for an exchange; returns the wake if it is done.
    pub(crate) fn list(
        &mut self,
        key: SlabKey<ActiveExchange>,
        job: Box<ListingJob>,
    ) -> Option<Wake> {
        debug_assert!(!job.entries.is_empty(), "what is short is written in the turn");
        match self.submit(Task::List(job)) {
            Ok(ticket) => drop(self.making.insert(ticket, key)),
            Err(Task::List(job)) => {
                return Some(Wake::JobDone(JobResult::Listing(job.run().into())));
            }
            Err(_) => {}
        }
        None
    }

    /// Moves the file of a response to its path.
    pub(crate) fn place<I: Io>(&mut self, (work, order): LongPlacement, env: &mut WorkerEnv<I>) {
        match self.submit(Task::Change(work)) {
            Ok(ticket) => drop(self.changing.insert(ticket, Changing::Stored(order))),
            Err(Task::Change(work)) => log_notes(&order, &work.give_up(&mut env.io).notes, env),
            Err(_) => {}
        }
    }

    /// Stores the result of a background job; returns the exchange that waits for it.
    pub(crate) fn finish<I: Io>(
        &mut self,
        finished: FinishedJob,
        env: &mut WorkerEnv<I>,
    ) -> Option<(SlabKey<ActiveExchange>, Wake)> {
        debug_assert!(finished.ticket < self.next, "what is finished was submitted");
        match finished.output {
            Output::Compressed(output) => {
                if let Some((object, coding)) = self.coding.remove(&finished.ticket) {
                    env.kept.keep_variant(&object, coding, output);
                    return None;
                }
                let (key, job) = self.compressing.remove(&finished.ticket)?;
                env.files.finish_job(&job, output);
                Some((key, Wake::Compressed))
            }
            Output::Changed(outcome) => match self.changing.remove(&finished.ticket)? {
                Changing::For(key) => Some((key, Wake::FilesChanged(Box::new(outcome)))),
                Changing::Stored(order) => {
                    log_notes(&order, &outcome.notes, env);
                    None
                }
            },
            Output::Scanned(found) => self.scanned(finished.ticket, *found, env),
            Output::VideoCut(made) => {
                let key = self.making.remove(&finished.ticket)?;
                Some((key, Wake::JobDone(JobResult::Video(made))))
            }
            Output::Listed(text) => {
                let key = self.making.remove(&finished.ticket)?;
                Some((key, Wake::JobDone(JobResult::Listing(text.into()))))
            }
            Output::Checked(is_right) => {
                let (key, fingerprint) = self.checking.remove(&finished.ticket)?;
                if is_right {
                    self.verified.note(fingerprint);
                }
                Some((key, Wake::PasswordChecked(is_right)))
            }
        }
    }
}
