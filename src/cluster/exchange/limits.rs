//! Limits that servers share: what was counted here goes to the others, and theirs is charged here.
//!
//! A tick tells and hears. What could not be told is not told later: it would be charged as if it
//! were of now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide_cluster::{EntryId, LimitReport, ReportKind, ReportZone, Vault, VaultPurpose};
use bolide_conf::model::LogLevel;
use bolide_engine::{LimitZone, Zones};
use bolide_valkey::{Line, ValkeyFault};
use tokio::time::{Instant, sleep};

use super::teller::{Teller, Topic};

/// How often others are told, and heard.
const TICK: Duration = Duration::from_millis(100);
/// How often those are told again that are in work.
const AGAIN: Duration = Duration::from_secs(1);
/// After how long without a word nothing is in work on a server any more.
const SILENCE: Duration = Duration::from_secs(5);
/// How long reports are kept, and how often old ones are dropped.
const KEEP_MS: u64 = 30_000;
const TIDY: Duration = Duration::from_secs(10);
/// LIMIT: keys in a report; a report has them of one zone.
const KEYS_MAX: usize = 2048;
/// LIMIT: reports of a tick; what is beyond them is not told.
const REPORTS_MAX: usize = 32;
/// LIMIT: keys in work that are told, of each zone.
const HELD_MAX: usize = 4096;
/// LIMIT: reports that are heard at once, and looks for more in a tick.
const HEARD_MAX: usize = 64;
const ROUNDS: usize = 16;
/// LIMIT: servers and zones whose requests in work are known, and keys of all of them.
const PEERS_MAX: usize = 1024;
const PEER_KEYS_MAX: usize = 65_536;
/// What a report is bound to when it is sealed.
const NAME: &str = "limits";

/// A zone, as reports name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ZoneName {
    name: Box<[u8]>,
    key_text: Box<[u8]>,
}

/// What a server has in work of one zone.
#[derive(Debug)]
struct Held {
    keys: HashMap<Box<[u8]>, u32>,
    heard: Instant,
}

/// What this server has told of a zone.
#[derive(Debug)]
struct Told {
    keys: Vec<(Arc<[u8]>, u32)>,
    at: Instant,
}

/// What shares limits on one connection.
pub(super) struct LimitShare {
    pub(super) line: Line,
    pub(super) zones: Zones,
    pub(super) vault: Option<Arc<Vault>>,
    pub(super) cluster: Box<[u8]>,
    pub(super) node: Box<[u8]>,
    /// The process, by chance.
    pub(super) life: u64,
    pub(super) teller: Arc<Teller>,
}

/// Zones that others are told of, as long as this is there.
#[derive(Debug, Default)]
struct Sharing(Mutex<Vec<Arc<LimitZone>>>);

impl Sharing {
    /// The zones of now. Of those that are new, what was counted before is not told.
    fn turn(&self, zones: &Zones) -> Vec<Arc<LimitZone>> {
        let now = zones.shared();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |zone: &&Arc<LimitZone>| known.iter().any(|other| Arc::ptr_eq(zone, other));
        now.iter().filter(|zone| !is_known(zone)).for_each(|zone| zone.share(true));
        known.clone_from(&now);
        now
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().for_each(|zone| zone.share(false));
    }
}

/// What is known of others on this connection.
#[derive(Debug, Default)]
struct Others {
    held: HashMap<(Box<[u8]>, u64, ZoneName), Held>,
    /// Zones whose sums are others now.
    changed: Vec<ZoneName>,
}

impl LimitShare {
    /// Shares as long as the connection is there.
    pub(super) async fn share(self) {
        while self.line.is_open() {
            if let Err(fault) = self.share_until_amiss().await {
                let text = format!("cluster: limits are not shared: {fault}");
                self.teller.tell(Topic::Limits, LogLevel::Error, &text);
            }
            sleep(AGAIN).await;
        }
    }

    async fn share_until_amiss(&self) -> Result<(), ValkeyFault> {
        let mut position = self.line.newest_report().await?;
        let sharing = Sharing::default();
        let (mut told, mut others) = (HashMap::new(), Others::default());
        let mut tidied = Instant::now();
        loop {
            let zones = sharing.turn(&self.zones);
            for report in self.reports(&zones, &mut told) {
                self.line.report(&report).await?;
            }
            self.hear(&mut position, &zones, &mut others).await?;
            if tidied.elapsed() >= TIDY {
                tidied = Instant::now();
                let before_ms = self.line.time().await?.saturating_sub(KEEP_MS);
                self.line.trim_reports(before_ms).await?;
            }
            if !zones.is_empty() {
                self.teller.once("cluster: limits are counted with all servers");
            }
            sleep(TICK).await;
        }
    }

    /// What others are to be told.
    fn reports(
        &self,
        zones: &[Arc<LimitZone>],
        told: &mut HashMap<ZoneName, Told>,
    ) -> Vec<Vec<u8>> {
        let mut reports = Vec::new();
        for zone in zones {
            if zone.counts_requests() {
                let unsent: Vec<_> = zone.take_unsent().into_iter().collect();
                let part = |part: &[(Arc<[u8]>, u64)]| {
                    let least = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
                    part.iter().map(|(key, count)| (key.clone(), least(*count))).collect::<Vec<_>>()
                };
                let parts = unsent.chunks(KEYS_MAX).map(part);
                reports.extend(parts.map(|keys| self.report(zone, ReportKind::Counted, &keys)));
                continue;
            }
            let keys = zone.held(HELD_MAX);
            let name = zone_name(zone);
            let is_due = match told.get(&name) {
                None => !keys.is_empty(),
                Some(told) => told.keys != keys || !keys.is_empty() && told.at.elapsed() >= AGAIN,
            };
            if is_due {
                reports.push(self.report(zone, ReportKind::Held, &keys));
                told.insert(name, Told { keys, at: Instant::now() });
            }
        }
        reports.truncate(REPORTS_MAX);
        // None could be sealed without randomness.
        reports.retain(|report| !report.is_empty());
        reports
    }

    fn report(&self, zone: &LimitZone, kind: ReportKind, keys: &[(Arc<[u8]>, u32)]) -> Vec<u8> {
        let keys = keys.iter().map(|(key, count)| (&**key, *count)).collect();
        let zone = ReportZone { kind, name: zone.name(), key_text: zone.key_text(), keys };
        let report = LimitReport {
            cluster: &self.cluster,
            node: &self.node,
            life: self.life,
            zones: vec![zone],
        };
        let plain = report.write();
        match &self.vault {
            Some(vault) => vault.seal(VaultPurpose::Limits, NAME, &plain).unwrap_or_default(),
            None => plain,
        }
    }

    async fn hear(
        &self,
        position: &mut EntryId,
        zones: &[Arc<LimitZone>],
        others: &mut Others,
    ) -> Result<(), ValkeyFault> {
        for _ in 0..ROUNDS {
            let entries = self.line.reports(*position, HEARD_MAX).await?;
            for entry in &entries {
                // Whatever order they come in, none is heard twice.
                if entry.id <= *position {
                    continue;
                }
                *position = entry.id;
                let heard =
                    entry.bytes.as_deref().and_then(|bytes| self.take(bytes, zones, others));
                if heard.is_none() {
                    let text = "cluster: a report of limits in Valkey is not used: it is foreign, \
                                damaged, or of another version, namespace or key";
                    self.teller.tell(Topic::LimitRecord, LogLevel::Error, text);
                }
            }
            if entries.len() < HEARD_MAX {
                break;
            }
            tokio::task::yield_now().await;
        }
        others.settle(zones);
        Ok(())
    }

    /// Takes one report in. `None` if it is none of this cluster.
    fn take(&self, bytes: &[u8], zones: &[Arc<LimitZone>], others: &mut Others) -> Option<()> {
        let opened = match &self.vault {
            Some(vault) => Some(vault.open(VaultPurpose::Limits, NAME, bytes).ok()?),
            None => None,
        };
        let report = LimitReport::read(opened.as_ref().map_or(bytes, |plain| plain))?;
        if *report.cluster != *self.cluster {
            return None;
        }
        if report.life == self.life && *report.node == *self.node {
            return Some(());
        }
        let now_ms = bolide_io::process::now().mono.as_nanos() / 1_000_000;
        for told in &report.zones {
            let is_told = |zone: &&Arc<LimitZone>| {
                let counts = told.kind == ReportKind::Counted;
                zone.counts_requests() == counts
                    && (zone.name(), zone.key_text()) == (told.name, told.key_text)
            };
            let Some(zone) = zones.iter().find(is_told) else { continue };
            match told.kind {
                ReportKind::Counted => {
                    for (key, count) in &told.keys {
                        zone.charge_elsewhere(key, (*count).into(), now_ms);
                    }
                }
                ReportKind::Held => others.hear(&report, told, zone_name(zone)),
            }
        }
        Some(())
    }
}

fn zone_name(zone: &LimitZone) -> ZoneName {
    ZoneName { name: zone.name().into(), key_text: zone.key_text().into() }
}

impl Others {
    fn hear(&mut self, report: &LimitReport<'_>, told: &ReportZone<'_>, zone: ZoneName) {
        let from = (report.node.into(), report.life, zone.clone());
        let before = self.held.remove(&from).map(|held| held.keys).unwrap_or_default();
        let known = self.held.values().map(|held| held.keys.len()).sum::<usize>();
        let is_room = known + told.keys.len() <= PEER_KEYS_MAX && self.held.len() < PEERS_MAX;
        let told = told.keys.iter().filter(|_| is_room);
        let keys: HashMap<Box<[u8]>, u32> =
            told.map(|(key, count)| ((*key).into(), *count)).collect();
        if before != keys && !self.changed.contains(&zone) {
            self.changed.push(zone);
        }
        if !keys.is_empty() {
            self.held.insert(from, Held { keys, heard: Instant::now() });
        }
    }

    /// Forgets servers that are silent, and has zones know the sums.
    fn settle(&mut self, zones: &[Arc<LimitZone>]) {
        let changed = &mut self.changed;
        self.held.retain(|(_, _, zone), held| {
            let is_there = held.heard.elapsed() < SILENCE;
            if !is_there && !changed.contains(zone) {
                changed.push(zone.clone());
            }
            is_there
        });
        for name in self.changed.drain(..) {
            let mut sums: HashMap<Box<[u8]>, u32> = HashMap::new();
            let of_zone = self.held.iter().filter(|((_, _, zone), _)| *zone == name);
            for (key, count) in of_zone.flat_map(|(_, held)| &held.keys) {
                let sum = sums.entry(key.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
            let is_it = |zone: &&Arc<LimitZone>| !zone.counts_requests() && zone_name(zone) == name;
            if let Some(zone) = zones.iter().find(is_it) {
                zone.set_held_elsewhere(sums);
            }
        }
    }
}
