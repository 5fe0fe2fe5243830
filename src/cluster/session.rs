//! A connection with its tasks: reading the stream, keeping time, and sending.
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

/// LIMIT: entries per read, and past entries per read.
const READ_MAX: usize = 16;
const PAST_MAX: usize = 256;
/// The timeout of a blocking read, after which the position is checked.
const WAIT: Duration = Duration::from_secs(1);
/// The pause if a read returned nothing although Valkey did not block.
const HASTE: Duration = Duration::from_millis(100);
/// The interval of a node's sign of life.
const BEAT: Duration = Duration::from_secs(1);

/// The result of a task.
#[derive(Debug)]
pub(super) enum Report {
    /// Entries after the previous ones.
    News(Vec<StreamEntry>),
    /// There are no further entries.
    CaughtUp,
    /// The entry at the position does not exist.
    Astray(StreamFacts),
    /// The result of adding an entry.
    Added(Result<EntryId, ValkeyFault>),
    /// The node's report was stored.
    Acknowledged,
    /// The time by Valkey's clock.
    Beat(u64),
    /// Objects are not shared, for this reason.
    Objects(ValkeyFault),
    /// The connection has failed.
    Broken(ValkeyFault),
    /// Entries were not read in time.
    LateRead(ValkeyFault),
}

/// How many entries a read requests. Large ones may keep Valkey busy for longer than a reply may
/// take: after such a read the next one requests a single entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadSize(usize);

impl Default for ReadSize {
    fn default() -> Self {
        Self(READ_MAX)
    }
}

impl ReadSize {
    /// Reduces the size. Returns whether it was a single entry already.
    pub(super) const fn reduce(&mut self) -> bool {
        let was_least = self.0 == 1;
        self.0 = 1;
        was_least
    }

    pub(super) fn grow(&mut self) {
        self.0 = (self.0 * 2).min(READ_MAX);
    }

    /// The size of a read behind a known entry, which is read as well.
    const fn with_known(self) -> usize {
        self.0 + 1
    }

    /// The size of a read of past entries, the known one included.
    pub(super) const fn past(self) -> usize {
        if self.0 < READ_MAX { self.with_known() } else { PAST_MAX }
    }
}

/// A connection and its tasks.
pub(super) struct Session {
    number: u64,
    waiter: Line,
    line: Line,
    tasks: JoinSet<()>,
    mail: mpsc::Sender<ClusterMail>,
}

/// The mark that identifies an entry.
pub(super) fn mark(entry: &StreamEntry) -> EntryMark {
    EntryMark::of(entry.id, entry.bytes.as_deref())
}

/// The state of the stream at a position whose entry exists or not.
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
        // Removes finished tasks.
        while self.tasks.try_join_next().is_some() {}
        let (number, mail) = (self.number, self.mail.clone());
        self.tasks.spawn(async move {
            if let Some(report) = task.await {
                let _ended = mail.send(ClusterMail::Session(number, report)).await;
            }
        });
    }

    /// Reads the entries after `position`; after a pause, if there were none just now.
    pub(super) fn read_from(&mut self, position: EntryMark, size: ReadSize, is_again: bool) {
        let reader = Reader {
            waiter: self.waiter.clone(),
            line: self.line.clone(),
            size,
            number: self.number,
            mail: self.mail.clone(),
        };
        self.run(async move {
            if is_again {
                tokio::time::sleep(HASTE).await;
            }
            reader.read(position).await.unwrap_or_else(Some)
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

    /// Transfers shared objects.
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

    /// Stores the report of this node.
    pub(super) fn acknowledge(&mut self, node: String, text: String) {
        let line = self.line.clone();
        self.run(async move {
            // If Valkey is out of memory, the stream can be read all the same.
            let _full = line.set_node(&node, &text).await;
            Some(Report::Acknowledged)
        });
    }

    /// Removes entries from before a time.
    pub(super) fn trim(&mut self, before_ms: u64) {
        let line = self.line.clone();
        self.run(async move {
            let _refused = line.trim(before_ms).await;
            None
        });
    }
}

/// Reads the stream.
struct Reader {
    waiter: Line,
    line: Line,
    size: ReadSize,
    number: u64,
    mail: mpsc::Sender<ClusterMail>,
}

impl Reader {
    /// Reads until the position is not valid any more. The error is a report as well.
    async fn read(mut self, mut position: EntryMark) -> Result<Option<Report>, Report> {
        let mut is_hasty = false;
        loop {
            // The entry at the position comes first, as the proof that nothing is missing.
            let read = self.line.read(position.id, self.size.with_known()).await;
            let mut entries = read.map_err(late_read)?;
            self.size.grow();
            if entries.first().is_none_or(|entry| mark(entry) != position) {
                let state = self.line.state().await.map_err(late_read)?;
                return Ok(Some(match state {
                    Some(state) => {
                        let facts = facts(&self.line, &state, false).await;
                        Report::Astray(facts.map_err(late_read)?)
                    }
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
                    self.waiter.wait(position.id, WAIT).await.map_err(Report::Broken)?;
                    // A Valkey that answers at once without entries would keep this thread busy.
                    is_hasty = start.elapsed() < HASTE;
                }
            }
        }
    }
}

fn late_read(fault: ValkeyFault) -> Report {
    match fault.kind {
        ValkeyFaultKind::Late => Report::LateRead(fault),
        _ => Report::Broken(fault),
    }
}

/// The error for a stream that has disappeared.
pub(super) fn gone() -> ValkeyFault {
    ValkeyFault { kind: ValkeyFaultKind::Broken, text: "the stream is gone".to_owned() }
}
