//! Reads directories for listings: a small one within the turn, the rest of a large one on the
//! background thread.
//!
//! Owns who waits for which directory. One large directory is read at a time, because all of its
//! names are in memory.

use std::collections::VecDeque;

use bolide_base::SlabKey;
use bolide_base::errno::EAGAIN;
use bolide_engine::Wake;
use bolide_files::{OpenFailure, Probe, Probed, Want};
use bolide_io::Io;

use crate::background::Background;
use crate::env::WorkerEnv;
use crate::exchange_table::{ActiveExchange, Exchanges};
use crate::jobs::Task;
use crate::look::{DirectoryScan, SCANNED_AT_ONCE};

/// LIMIT: exchanges of one worker that wait for a large directory.
const WAITING_MAX: usize = 1024;

type Waiting = (SlabKey<ActiveExchange>, Box<Probe>);

/// Large directories of one worker.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    /// The directory that is being read, with its ticket.
    running: Option<(u64, Waiting)>,
    /// The next ones.
    waiting: VecDeque<Waiting>,
}

impl Scans {
    pub(crate) fn has(&self, ticket: u64) -> bool {
        self.running.as_ref().is_some_and(|(known, _)| *known == ticket)
    }
}

impl Background {
    /// Performs a file lookup for an exchange; returns the wake if that is done at once.
    pub(crate) fn probe<I: Io>(
        &mut self,
        (key, probe): Waiting,
        env: &mut WorkerEnv<I>,
        exchanges: &Exchanges,
    ) -> Option<Wake> {
        if probe.want != Want::List {
            env.probe(&probe);
            return Some(Wake::Probed);
        }
        match begin_with_room(env, &probe) {
            Ok(scan) if self.scans.running.is_none() => {
                let (_, probe) = self.scan((key, probe), scan).err()?;
                insert(&probe, failed(EAGAIN), env);
                Some(Wake::Probed)
            }
            Ok(_) => {
                let waiting = &mut self.scans.waiting;
                if waiting.len() >= WAITING_MAX {
                    waiting.retain(|(key, _)| exchanges.live.get(*key).is_some());
                }
                if waiting.len() >= WAITING_MAX {
                    insert(&probe, failed(EAGAIN), env);
                    return Some(Wake::Probed);
                }
                waiting.push_back((key, probe));
                debug_assert!(waiting.len() <= WAITING_MAX, "no more exchanges wait than may");
                None
            }
            Err(found) => {
                insert(&probe, found, env);
                Some(Wake::Probed)
            }
        }
    }

    /// Queues the rest of a directory, unless the queue is full.
    fn scan(&mut self, waiting: Waiting, scan: Box<DirectoryScan>) -> Result<(), Waiting> {
        debug_assert!(self.scans.running.is_none(), "one is read at a time");
        match self.submit(Task::Scan(scan)) {
            Ok(ticket) => {
                self.scans.running = Some((ticket, waiting));
                Ok(())
            }
            Err(_) => Err(waiting),
        }
    }

    /// Stores the entries of a directory; returns the exchange that waits for them.
    pub(crate) fn scanned<I: Io>(
        &mut self,
        ticket: u64,
        found: Probed,
        env: &mut WorkerEnv<I>,
    ) -> Option<(SlabKey<ActiveExchange>, Wake)> {
        let (_, (key, probe)) = self.scans.running.take_if(|(known, _)| *known == ticket)?;
        insert(&probe, found, env);
        Some((key, Wake::Probed))
    }

    /// Starts to read the next directory; returns exchanges that have their result already.
    pub(crate) fn scan_next<I: Io>(
        &mut self,
        env: &mut WorkerEnv<I>,
        exchanges: &Exchanges,
    ) -> Vec<SlabKey<ActiveExchange>> {
        let mut answered = Vec::new();
        // If none is being read, no result would come that leads here again.
        while self.scans.running.is_none() {
            let Some((key, probe)) = self.scans.waiting.pop_front() else { break };
            if exchanges.live.get(key).is_none() {
                continue;
            }
            match begin_with_room(env, &probe) {
                Ok(scan) => {
                    if let Err((key, probe)) = self.scan((key, probe), scan) {
                        for (key, probe) in
                            std::iter::once((key, probe)).chain(self.scans.waiting.drain(..))
                        {
                            insert(&probe, failed(EAGAIN), env);
                            answered.push(key);
                        }
                    }
                }
                Err(found) => {
                    insert(&probe, found, env);
                    answered.push(key);
                }
            }
        }
        answered
    }
}

/// As [`begin`], once more where idle files were closed for it.
fn begin_with_room<I: Io>(
    env: &mut WorkerEnv<I>,
    probe: &Probe,
) -> Result<Box<DirectoryScan>, Probed> {
    let is_out =
        |begun: &Result<_, Probed>| begun.as_ref().is_err_and(Probed::is_out_of_descriptors);
    env.twice_if(is_out, |io| begin(io, probe))
}

/// Begins to read a directory; returns the result if it is known at once.
fn begin(io: &mut impl Io, probe: &Probe) -> Result<Box<DirectoryScan>, Probed> {
    let mut scan = DirectoryScan::begin(io, probe).map_err(|failure| failed(failure.errno))?;
    match scan.go_on(SCANNED_AT_ONCE) {
        Some(found) => Err(found),
        None => Ok(Box::new(scan)),
    }
}

const fn failed(errno: i32) -> Probed {
    Probed::Failed(OpenFailure::from_errno(errno))
}

fn insert<I: Io>(probe: &Probe, found: Probed, env: &mut WorkerEnv<I>) {
    env.files.insert_probe(probe, found, env.now);
}
