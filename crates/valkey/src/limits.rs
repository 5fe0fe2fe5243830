//! The commands of limits that servers share: a short stream of what each has counted.

use bolide_cluster::EntryId;

use crate::line::{Line, StreamEntry};
use crate::small::Range;
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
        let entries = self.read_range((&self.keys.limits, FIELD), Range::Newest, 1).await?;
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

    /// Up to `count` reports behind `position`; fewer where they are large.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn reports(
        &self,
        position: EntryId,
        count: usize,
    ) -> Result<Vec<StreamEntry>, ValkeyFault> {
        self.read_range((&self.keys.limits, FIELD), Range::Behind(position), count).await
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
