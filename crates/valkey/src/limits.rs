//! The commands of limits that servers share: a short stream of what each has counted.

use bolide_cluster::EntryId;

use crate::line::{Line, StreamEntry};
use crate::{ValkeyFault, replies};

/// The field of an entry that has its bytes.
const FIELD: &str = "counts";
/// LIMIT: entries of the stream. What is older was read long ago.
const KEPT: u64 = 1024;

impl Line {
    /// The newest report there is.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn newest_report(&self) -> Result<EntryId, ValkeyFault> {
        let mut command = redis::cmd("XREVRANGE");
        command.arg(&self.keys.limits).arg("+").arg("-").arg("COUNT").arg(1);
        let entries = self.ask_for(&command, |value| replies::entries_of(value, FIELD)).await?;
        Ok(entries.first().map_or(EntryId::ZERO, |entry| entry.id))
    }

    /// Tells others what was counted.
    ///
    /// # Errors
    ///
    /// There is no good reply; the report may be there.
    pub async fn report(&self, bytes: &[u8]) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("XADD");
        command.arg(&self.keys.limits).arg("MAXLEN").arg("=").arg(KEPT).arg("*");
        command.arg(FIELD).arg(bytes);
        self.ask_for(&command, |value| replies::id(&value)).await.map(drop)
    }

    /// Up to `count` reports behind `position`.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn reports(
        &self,
        position: EntryId,
        count: usize,
    ) -> Result<Vec<StreamEntry>, ValkeyFault> {
        let mut command = redis::cmd("XRANGE");
        command.arg(&self.keys.limits).arg(format!("({position}")).arg("+");
        command.arg("COUNT").arg(count);
        self.ask_for(&command, |value| replies::entries_of(value, FIELD)).await
    }

    /// Drops reports from before a time of the server's clock: they have addresses of clients.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn trim_reports(&self, before_ms: u64) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("XTRIM");
        command.arg(&self.keys.limits).arg("MINID").arg("=").arg(before_ms);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }
}
