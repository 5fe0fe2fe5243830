//! One connection at work: what reads the stream, keeps time, and carries what is asked of Valkey.
//!
//! Owns the tasks of a connection, which end with it. They decide nothing: each result is a
//! [`Report`] to the node.

use std::time::Duration;

use bolide_cluster::{EntryId, EntryMark, StreamFacts};
use bolide_valkey::{Line, StreamEntry, StreamState, ValkeyFault, ValkeyFaultKind};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::ClusterMail;
use super::objects::Carrier;

/// LIMIT: entries that are read at once.
const READ_MAX: usize = 16;
/// How long Valkey is waited for before it is looked whether the position is still good.
const WAIT: Duration = Duration::from_secs(1);
/// How long it is rested when there was nothing behind the position although Valkey did not wait.
const HASTE: Duration = Duration::from_millis(100);
/// How often a node says that it is there.
const BEAT: Duration = Duration::from_secs(1);

/// What came of a task.
#[derive(Debug)]
pub(super) enum Report {
    /// Entries behind those before.
    News(Vec<StreamEntry>),
    /// There are no entries behind those that were read.
    CaughtUp,
    /// The entry at the position is not there.
    Astray(StreamFacts),
    /// An entry was added, or why not.
    Added(Result<EntryId, ValkeyFault>),
    /// What the node left of itself has arrived.
    Acknowledged,
    /// What time it is by Valkey's clock.
    Beat(u64),
    /// Objects are not shared as they should be, for this reason.
    Objects(ValkeyFault),
    /// The connection is of no use any more.
    Broken(ValkeyFault),
}

/// A connection and its tasks.
pub(super) struct Session {
    number: u64,
    waiter: Line,
    line: Line,
    tasks: JoinSet<()>,
    mail: mpsc::Sender<ClusterMail>,
}

/// An entry as it is known again.
pub(super) fn mark(entry: &StreamEntry) -> EntryMark {
    EntryMark::of(entry.id, entry.bytes.as_deref())
}

/// What a stream is, seen from a position whose entry was or was not there.
pub(super) async fn facts(
    line: &Line,
    state: &StreamState,
    has_position: bool,
) -> Result<StreamFacts, ValkeyFault> {
    let newest = line.read_newest(1).await?.first().map(mark);
    let newest = newest.unwrap_or(EntryMark { id: state.last, sum: 0 });
    let (first, last) = (state.first.unwrap_or(newest.id), state.last.max(newest.id));
    Ok(StreamFacts { first, newest, last, has_position })
}

impl Session {
    pub(super) fn new(
        number: u64,
        (waiter, line): (Line, Line),
        mail: mpsc::Sender<ClusterMail>,
    ) -> Self {
        let mut session = Self { number, waiter, line, tasks: JoinSet::new(), mail };
        session.keep_time();
        session
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) const fn line(&self) -> &Line {
        &self.line
    }

    /// Runs a task whose result is a report.
    pub(super) fn run(&mut self, task: impl Future<Output = Option<Report>> + Send + 'static) {
        // Those that are done are forgotten.
        while self.tasks.try_join_next().is_some() {}
        let (number, mail) = (self.number, self.mail.clone());
        self.tasks.spawn(async move {
            if let Some(report) = task.await {
                let _ended = mail.send(ClusterMail::Session(number, report)).await;
            }
        });
    }

    /// Reads what comes behind `position`; after a rest, if it was looked for in vain just now.
    pub(super) fn read_from(&mut self, position: EntryMark, is_again: bool) {
        let reader = Reader {
            waiter: self.waiter.clone(),
            line: self.line.clone(),
            number: self.number,
            mail: self.mail.clone(),
        };
        self.run(async move {
            if is_again {
                tokio::time::sleep(HASTE).await;
            }
            let read = reader.read(position).await;
            read.unwrap_or_else(|fault| Some(Report::Broken(fault)))
        });
    }

    fn keep_time(&mut self) {
        let line = self.line.clone();
        let (number, mail) = (self.number, self.mail.clone());
        self.run(async move {
            loop {
                let report = match line.time().await {
                    Ok(now) => Report::Beat(now),
                    Err(fault) => return Some(Report::Broken(fault)),
                };
                if mail.send(ClusterMail::Session(number, report)).await.is_err() {
                    return None;
                }
                tokio::time::sleep(BEAT).await;
            }
        });
    }

    /// Carries shared objects.
    pub(super) fn carry(&mut self, carrier: Carrier) {
        self.run(carrier.carry());
    }

    /// Adds an entry.
    pub(super) fn add(&mut self, record: Vec<u8>, keep: u64) {
        let line = self.line.clone();
        self.run(async move { Some(Report::Added(line.add(&record, keep).await)) });
    }

    /// Adds an entry without purges.
    pub(super) fn greet(&mut self, record: Vec<u8>, keep: u64) {
        let line = self.line.clone();
        self.run(async move {
            let _full = line.add(&record, keep).await;
            None
        });
    }

    /// Leaves a line of this node.
    pub(super) fn acknowledge(&mut self, node: String, text: String) {
        let line = self.line.clone();
        self.run(async move {
            // Where there is no memory left, the stream is read all the same.
            let _full = line.set_node(&node, &text).await;
            Some(Report::Acknowledged)
        });
    }

    /// Drops entries from before a time.
    pub(super) fn trim(&mut self, before_ms: u64) {
        let line = self.line.clone();
        self.run(async move {
            let _refused = line.trim(before_ms).await;
            None
        });
    }
}

/// What reads the stream.
struct Reader {
    waiter: Line,
    line: Line,
    number: u64,
    mail: mpsc::Sender<ClusterMail>,
}

impl Reader {
    /// Reads until the position is not good any more.
    async fn read(self, mut position: EntryMark) -> Result<Option<Report>, ValkeyFault> {
        let mut is_hasty = false;
        loop {
            // The entry at the position comes first, as the evidence that nothing is missing.
            let mut entries = self.line.read(position.id, READ_MAX + 1).await?;
            if entries.first().is_none_or(|entry| mark(entry) != position) {
                let state = self.line.state().await?;
                return Ok(Some(match state {
                    Some(state) => Report::Astray(facts(&self.line, &state, false).await?),
                    None => Report::Broken(gone()),
                }));
            }
            entries.remove(0);
            let last = entries.last().map(mark);
            if last.is_none() && is_hasty {
                tokio::time::sleep(HASTE).await;
            }
            let report = last.map_or(Report::CaughtUp, |_| Report::News(entries));
            if self.mail.send(ClusterMail::Session(self.number, report)).await.is_err() {
                return Ok(None);
            }
            match last {
                Some(last) => (position, is_hasty) = (last, false),
                None => {
                    let start = Instant::now();
                    self.waiter.wait(position.id, WAIT).await?;
                    // One that answers at once without news would keep this thread busy.
                    is_hasty = start.elapsed() < HASTE;
                }
            }
        }
    }
}

/// There is no stream where one was.
pub(super) fn gone() -> ValkeyFault {
    ValkeyFault { kind: ValkeyFaultKind::Broken, text: "the stream is gone".to_owned() }
}
