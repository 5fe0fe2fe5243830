//! Shared limits: counts of this server are reported to the others, and theirs are charged here.
//!
//! A tick sends and receives reports. Reports that are lost with a connection are not repeated,
//! because they would be charged at the wrong time. INVARIANT: zones are referenced only during a
//! tick, so that those of a replaced configuration are freed with it.

mod receiving;
mod reporting;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide_cluster::{EntryId, LimitReport, ReportZone, Vault, VaultPurpose};
use bolide_conf::model::LogLevel;
use bolide_engine::{LimitZone, Zones};
use bolide_valkey::{Line, ValkeyFault};
use tokio::time::{Instant, sleep};

use super::log::{ExchangeLog, Topic};
use super::status::ExchangeBoard;
use receiving::{LastReports, LimitReceiving};
use reporting::{LimitReporting, Part, ReportedZones};

/// How often reports are sent and received.
const TICK: Duration = Duration::from_millis(100);
/// The pause after an error.
const REST: Duration = Duration::from_secs(1);
/// How long reports are kept in Valkey, and how often old ones are removed.
const KEEP_MS: u64 = 30_000;
const TIDY: Duration = Duration::from_secs(10);
/// LIMIT: reports per read, and reads in a tick.
const READ_MAX: usize = 64;
const ROUNDS: usize = 16;
/// The associated data of encrypted reports.
const NAME: &str = "limits";

/// The name of a zone in reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ZoneName {
    name: Box<[u8]>,
    key_text: Box<[u8]>,
}

impl ZoneName {
    fn of(zone: &LimitZone) -> Self {
        Self { name: zone.name().into(), key_text: zone.key_text().into() }
    }
}

/// State that survives connections: the identity of this process for others, and the reports that
/// it has received.
#[derive(Debug)]
pub(super) struct LimitLife {
    /// A random id of the process.
    id: u64,
    /// The number and time of its last report.
    last: Mutex<(u64, u64)>,
    last_reports: Mutex<LastReports>,
}

impl LimitLife {
    pub(super) fn new() -> Self {
        Self {
            id: bolide_tls::random_seed(),
            last: Mutex::default(),
            last_reports: Mutex::default(),
        }
    }

    /// The number and time of the next report. A clock that is set back does not make it older than
    /// the previous one.
    fn stamp(&self, unix_ms: u64) -> (u64, u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (last.0 + 1, last.1.max(unix_ms));
        *last
    }
}

/// The result of a received report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportOutcome {
    Used,
    /// It is this server's own.
    Own,
    /// It does not belong to this cluster.
    Foreign,
    /// It was received before, or is too old or from the future.
    Stale,
}

/// Shares limits on one connection.
pub(super) struct LimitShare {
    pub(super) line: Line,
    pub(super) zones: Zones,
    pub(super) desk: ReportDesk,
    pub(super) log: Arc<ExchangeLog>,
    pub(super) board: ExchangeBoard,
}

/// Writes and parses reports.
pub(super) struct ReportDesk {
    pub(super) vault: Option<Arc<Vault>>,
    pub(super) cluster: Box<[u8]>,
    pub(super) node: Box<[u8]>,
    pub(super) life: Arc<LimitLife>,
}

impl LimitShare {
    /// Shares while the connection lasts.
    pub(super) async fn share(self) {
        while self.line.is_open() {
            if let Err(fault) = self.share_until_amiss().await {
                let text = format!("cluster: limits are not shared: {fault}");
                self.board.record_fault(&text);
                self.log.write_limited(Topic::Limits, LogLevel::Error, &text);
            }
            sleep(REST).await;
        }
    }

    async fn share_until_amiss(&self) -> Result<(), ValkeyFault> {
        let mut position = self.line.newest_report().await?;
        let mut sharing = ReportedZones::default();
        let (mut reporting, mut receiving) = (LimitReporting::default(), LimitReceiving::default());
        let mut tidied = Instant::now();
        loop {
            let (parts, shares) = {
                let zones = self.zones.shared();
                sharing.turn(&zones).into_iter().for_each(|zone| receiving.mark_changed(zone));
                let now_ms = bolide_io::process::now().mono.as_nanos() / 1_000_000;
                self.board.update_limits(|limits| limits.zones = zones.len() as u64);
                (reporting.tick(&zones, now_ms), !zones.is_empty())
            };
            for part in &parts {
                // Without random numbers to encrypt it there is none.
                if let Some(report) = self.desk.write(part, bolide_io::process::now().unix_millis) {
                    self.line.report(&report).await?;
                    self.board.update_limits(|limits| limits.sent += 1);
                }
            }
            self.receive(&mut position, &mut receiving).await?;
            if tidied.elapsed() >= TIDY {
                tidied = Instant::now();
                let before_ms = self.line.time().await?.saturating_sub(KEEP_MS);
                self.line.trim_reports(before_ms).await?;
            }
            if shares {
                self.log.write_once("cluster: limits are counted with all servers");
            }
            sleep(TICK).await;
        }
    }

    async fn receive(
        &self,
        position: &mut EntryId,
        receiving: &mut LimitReceiving,
    ) -> Result<(), ValkeyFault> {
        for _ in 0..ROUNDS {
            let entries = self.line.reports(*position, READ_MAX).await?;
            let zones = self.zones.shared();
            for entry in &entries {
                // In whatever order they arrive, none is charged twice.
                if entry.id <= *position {
                    continue;
                }
                *position = entry.id;
                // A report that is too large to be read has no bytes.
                let bytes = entry.bytes.as_deref();
                let outcome = bytes.map(|bytes| self.desk.apply(bytes, &zones, receiving));
                self.count(outcome.unwrap_or(ReportOutcome::Foreign));
            }
            drop(zones);
            if entries.len() < READ_MAX {
                break;
            }
            tokio::task::yield_now().await;
        }
        receiving.settle(&self.zones.shared(), bolide_io::process::now());
        Ok(())
    }

    fn count(&self, outcome: ReportOutcome) {
        self.board.update_limits(|limits| match outcome {
            ReportOutcome::Own => {}
            ReportOutcome::Used => limits.received += 1,
            ReportOutcome::Foreign | ReportOutcome::Stale => limits.unused += 1,
        });
        let (topic, text) = match outcome {
            ReportOutcome::Used | ReportOutcome::Own => return,
            ReportOutcome::Foreign => (
                Topic::LimitRecord,
                "cluster: a report of limits in Valkey is not used: it is foreign, damaged, or of \
                 another version, namespace or key",
            ),
            ReportOutcome::Stale => (
                Topic::LimitTime,
                "cluster: a report of limits in Valkey is not used: it was heard before, or its \
                 time is more than 60 seconds away from the clock of this server",
            ),
        };
        self.log.write_limited(topic, LogLevel::Error, text);
    }
}

impl ReportDesk {
    /// A report as bytes, encrypted if there is a key. `None` without random numbers.
    fn write(&self, part: &Part, unix_ms: u64) -> Option<Vec<u8>> {
        let keys = part.keys.iter().map(|(key, count)| (&**key, *count)).collect();
        let ZoneName { name, key_text } = &part.zone;
        let (number, unix_ms) = self.life.stamp(unix_ms);
        let report = LimitReport {
            cluster: &self.cluster,
            node: &self.node,
            life: self.life.id,
            number,
            unix_ms,
            zones: vec![ReportZone { kind: part.kind, name, key_text, keys }],
        };
        let plain = report.write();
        match &self.vault {
            Some(vault) => vault.seal(VaultPurpose::Limits, NAME, &plain),
            None => Some(plain),
        }
    }

    /// Charges one report.
    fn apply(
        &self,
        bytes: &[u8],
        zones: &[Arc<LimitZone>],
        receiving: &mut LimitReceiving,
    ) -> ReportOutcome {
        let opened = self.vault.as_ref().map(|vault| vault.open(VaultPurpose::Limits, NAME, bytes));
        let plain = match &opened {
            Some(Ok(plain)) => plain.as_slice(),
            Some(Err(_)) => return ReportOutcome::Foreign,
            None => bytes,
        };
        let report = LimitReport::read(plain).filter(|report| *report.cluster == *self.cluster);
        let Some(report) = report else { return ReportOutcome::Foreign };
        if report.life == self.life.id && *report.node == *self.node {
            return ReportOutcome::Own;
        }
        let mut last_reports =
            self.life.last_reports.lock().unwrap_or_else(PoisonError::into_inner);
        match receiving.apply(&report, zones, &mut last_reports, bolide_io::process::now()) {
            true => ReportOutcome::Used,
            false => ReportOutcome::Stale,
        }
    }
}
