//! One connection, and the commands of a cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bolide_cluster::EntryId;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};
use tokio::task::JoinHandle;

use crate::connect::fault;
use crate::metered::Overrun;
use crate::replies::{self, FIELD};
use crate::settings::{ValkeyPlace, ValkeySettings};
use crate::small::Range;
use crate::{ValkeyFault, ValkeyFaultKind};

/// The task that transports the bytes of a connection; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Driver {
    task: JoinHandle<()>,
    overrun: Overrun,
    /// A reply showed that another connection may be better.
    is_amiss: AtomicBool,
    /// The server refuses scripts; the commands in them are sent instead.
    has_no_scripts: AtomicBool,
}

impl Driver {
    pub(crate) const fn new(task: JoinHandle<()>, overrun: Overrun) -> Self {
        let (is_amiss, has_no_scripts) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { task, overrun, is_amiss, has_no_scripts }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An entry of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its id.
    pub id: EntryId,
    /// Its bytes; `None` if it is not in our format.
    pub bytes: Option<Vec<u8>>,
    /// The number of its bytes, if it is too large to be read.
    pub too_large: Option<u64>,
}

/// The state of a stream at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamState {
    /// The number of entries.
    pub length: u64,
    /// The oldest entry.
    pub first: Option<EntryId>,
    /// The newest entry.
    pub newest: Option<EntryId>,
    /// The greatest id that it assigned.
    pub last: EntryId,
}

/// The keys of a cluster. The part in braces selects the slot, so all have the same one.
#[derive(Debug)]
pub(crate) struct Keys {
    purges: String,
    nodes: String,
    /// The prefix of keys of objects, leases and counts of misses.
    pub(crate) objects: String,
    pub(crate) leases: String,
    pub(crate) uses: String,
    /// The prefix of keys of sealed values.
    pub(crate) secrets: String,
    pub(crate) limits: String,
}

/// A connection to the server of the stream.
#[derive(Clone, Debug)]
pub struct Line {
    connection: MultiplexedConnection,
    driver: Arc<Driver>,
    place: Arc<ValkeyPlace>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) timeout: Duration,
}

impl Line {
    pub(crate) fn new(
        connection: MultiplexedConnection,
        driver: Driver,
        place: ValkeyPlace,
        settings: &ValkeySettings,
    ) -> Self {
        let namespace = &settings.namespace;
        let keys = Keys {
            purges: format!("bolide:{{{namespace}}}:purges"),
            nodes: format!("bolide:{{{namespace}}}:nodes"),
            objects: format!("bolide:{{{namespace}}}:object:"),
            leases: format!("bolide:{{{namespace}}}:lease:"),
            uses: format!("bolide:{{{namespace}}}:uses:"),
            secrets: format!("bolide:{{{namespace}}}:secret:"),
            limits: format!("bolide:{{{namespace}}}:limits"),
        };
        Self {
            connection,
            driver: Arc::new(driver),
            place: Arc::new(place),
            keys: Arc::new(keys),
            timeout: settings.timeout,
        }
    }

    /// Whether the connection is open and usable: not after a timeout, or after a reply that
    /// another server, or this one later, might give differently.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_connected() && !self.driver.is_amiss.load(Ordering::Acquire)
    }

    /// Whether the connection is open, usable or not.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.driver.task.is_finished()
    }

    pub(crate) fn has_scripts(&self) -> bool {
        !self.driver.has_no_scripts.load(Ordering::Relaxed)
    }

    pub(crate) fn disable_scripts(&self) {
        self.driver.has_no_scripts.store(true, Ordering::Relaxed);
    }

    /// Stops sending: unanswered requests would accumulate.
    fn give_up(&self) {
        self.driver.is_amiss.store(true, Ordering::Release);
    }

    /// Its address.
    #[must_use]
    pub fn place(&self) -> &ValkeyPlace {
        &self.place
    }

    /// Whether the server owns the slot of the keys.
    pub(crate) async fn probe(&self) -> Result<(), RedisError> {
        let mut connection = self.connection.clone();
        let mut command = redis::cmd("EXISTS");
        command.arg(&self.keys.purges);
        let asked = command.query_async::<Value>(&mut connection);
        match tokio::time::timeout(self.timeout, asked).await {
            Ok(asked) => asked.map(drop),
            Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
        }
    }

    pub(crate) async fn ask(&self, command: &Cmd, timeout: Duration) -> Result<Value, ValkeyFault> {
        let mut connection = self.connection.clone();
        let asked = command.query_async::<Value>(&mut connection);
        let asked = tokio::time::timeout(timeout, asked).await;
        let asked = asked.map_err(|_| {
            // Shorter timeouts are of callers that expect a late reply.
            if timeout >= self.timeout {
                self.give_up();
            }
            ValkeyFault {
                kind: ValkeyFaultKind::Late,
                text: format!("{}: no answer in time", self.place),
            }
        })?;
        let asked = asked.map_err(|error| match self.driver.overrun.has_happened() {
            true => ValkeyFault {
                kind: ValkeyFaultKind::TooLarge,
                text: format!("{}: a reply is too large", self.place),
            },
            false => fault(&self.place, &error),
        });
        if asked.as_ref().is_err_and(|fault| fault.kind == ValkeyFaultKind::Broken) {
            self.give_up();
        }
        asked
    }

    pub(crate) async fn ask_for<T>(
        &self,
        command: &Cmd,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<T, ValkeyFault> {
        let value = self.ask(command, self.timeout).await?;
        read(value).ok_or_else(|| self.strange())
    }

    pub(crate) fn strange(&self) -> ValkeyFault {
        ValkeyFault::broken(format!("{}: a reply is of another kind than it should be", self.place))
    }

    /// The state of the stream; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn state(&self) -> Result<Option<StreamState>, ValkeyFault> {
        self.state_of(&self.keys.purges).await
    }

    /// Waits for an entry behind `position`, or for `time`.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn wait(&self, position: EntryId, time: Duration) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(1).arg("BLOCK").arg(time.as_millis() as u64);
        command.arg("STREAMS").arg(&self.keys.purges).arg(position.to_string());
        match self.ask(&command, self.timeout + time).await? {
            Value::Nil | Value::Array(_) => Ok(()),
            _ => Err(self.strange()),
        }
    }

    /// Up to `count` entries from `position` on, inclusive; fewer if they are large, but at least
    /// one.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn read(
        &self,
        position: EntryId,
        count: usize,
    ) -> Result<Vec<StreamEntry>, ValkeyFault> {
        self.read_range((&self.keys.purges, FIELD), Range::From(position), count).await
    }

    /// The newest entries, the newest first.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn read_newest(&self, count: usize) -> Result<Vec<StreamEntry>, ValkeyFault> {
        self.read_range((&self.keys.purges, FIELD), Range::Newest, count).await
    }

    /// Adds an entry, and trims the stream to `count` entries.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid; the entry may have been added.
    pub async fn add(&self, bytes: &[u8], count: u64) -> Result<EntryId, ValkeyFault> {
        let mut command = redis::cmd("XADD");
        command.arg(&self.keys.purges).arg("MAXLEN").arg("=").arg(count).arg("*");
        command.arg(FIELD).arg(bytes);
        self.ask_for(&command, |value| replies::id(&value)).await
    }

    /// Drops entries from before a time of the server's clock.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn trim(&self, before_ms: u64) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("XTRIM");
        command.arg(&self.keys.purges).arg("MINID").arg("=").arg(before_ms);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }

    /// The server's clock, in milliseconds.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn time(&self) -> Result<u64, ValkeyFault> {
        self.ask_for(&redis::cmd("TIME"), |value| replies::time(&value)).await
    }

    /// The line of a node.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn node(&self, name: &str) -> Result<Option<String>, ValkeyFault> {
        let mut command = redis::cmd("HGET");
        command.arg(&self.keys.nodes).arg(name);
        Ok(replies::maybe_text(&self.ask(&command, self.timeout).await?))
    }

    /// Sets the line of a node.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn set_node(&self, name: &str, line: &str) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("HSET");
        command.arg(&self.keys.nodes).arg(name).arg(line);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }

    /// All nodes and their lines.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn nodes(&self) -> Result<Vec<(String, String)>, ValkeyFault> {
        let mut command = redis::cmd("HGETALL");
        command.arg(&self.keys.nodes);
        self.ask_for(&command, |value| replies::pairs(&value)).await
    }

    /// Removes a node.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn forget_node(&self, name: &str) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("HDEL");
        command.arg(&self.keys.nodes).arg(name);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }
}
