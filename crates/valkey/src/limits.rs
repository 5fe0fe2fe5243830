//! The commands of shared limits: a short stream of the counts of each server.

use bolide_cluster::EntryId;

use crate::line::{Line, StreamEntry};
use crate::small::Range;
use crate::{ValkeyFault, replies};

/// The field of an entry that holds its bytes.
const FIELD: &str = "counts";
/// LIMIT: entries of the stream. Older ones have been read long ago.
const KEPT: u64 = 1024;

impl Line {
    /// The id of the newest report.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn newest_report(&self) -> Result<EntryId, ValkeyFault> {
        let entries = self.read_range((&self.keys.limits, FIELD), Range::Newest, 1).await?;
        Ok(entries.first().map_or(EntryId::ZERO, |entry| entry.id))
    }

    /// Adds a report.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid; the report may have been added.
    pub async fn report(&self, bytes: &[u8]) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("XADD");
        command.arg(&self.keys.limits).arg("MAXLEN").arg("=").arg(KEPT).arg("*");
        command.arg(FIELD).arg(bytes);
        self.ask_for(&command, |value| replies::id(&value)).await.map(drop)
    }

    /// Up to `count` reports behind `position`; fewer if they are large.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn reports(
        &self,
        position: EntryId,
        count: usize,
    ) -> Result<Vec<StreamEntry>, ValkeyFault> {
        self.read_range((&self.keys.limits, FIELD), Range::Behind(position), count).await
    }

    /// Drops reports from before a time of the server's clock: they contain addresses of clients.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn trim_reports(&self, before_ms: u64) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("XTRIM");
        command.arg(&self.keys.limits).arg("MINID").arg("=").arg(before_ms);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }
}
