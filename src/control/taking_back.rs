//! `reload_watch`: a new configuration is watched for a while, and the previous one is put back in
//! force if clearly more requests fail.
//!
//! ```text
//!   reload ──▶ watched ──time is over──▶ stays
//!                 │ ──more failures──▶ the last good one is in force again, not watched
//!                 └ ──another reload──▶ watched anew, compared with the same counts
//! ```
//!
//! Easiest to break: files may have changed, so the certificates are those that were read before.

use std::sync::Arc;
use std::time::Duration;

use bolide_base::{Instant, Now};
use bolide_conf::Outline;
use bolide_conf::model::{Config, LogLevel};
use bolide_engine::metrics::ServiceCounts;

use super::figures::ReloadResult;
use super::reload_watch::{ServiceRecord, WorseService, judge};
use super::{ControlThread, Life};
use crate::admin::AdminClient;
use crate::reading::Reading;
use crate::tls_setup::ReadCertificates;

/// A replaced configuration.
#[derive(Debug)]
pub(super) struct LastGood {
    pub(super) number: u64,
    pub(super) config: Arc<Config>,
    pub(super) outline: Outline,
    pub(super) certificates: ReadCertificates,
}

/// The watch over the configuration in force.
#[derive(Debug, Default)]
pub(super) struct ReloadWatching {
    record: ServiceRecord,
    watched: Option<WatchedReload>,
}

#[derive(Debug)]
struct WatchedReload {
    until: Instant,
    /// The counts of the last good configuration.
    before: ServiceCounts,
    /// The counters when the new one came into force.
    start: ServiceCounts,
    good: LastGood,
    /// Commands that wait for the end of the watch.
    waiting: Vec<AdminClient>,
}

impl ControlThread<'_> {
    /// Starts to count for the first configuration.
    pub(super) fn begin_record(&mut self) {
        let counts = self.service_counts();
        let now = bolide_io::process::now().mono;
        self.reload_watch.record.begin(ServiceCounts::default(), counts, now);
    }

    /// Watches the configuration that is now in force in place of `replaced`, if both enable it.
    /// `counted` are the counters at that time. If `replaced` was still watched, the new one is
    /// compared with the same counts.
    pub(super) fn begin_watch(&mut self, counted: &ServiceCounts, replaced: LastGood) {
        let (before, good) = match self.reload_watch.watched.take() {
            None => (self.reload_watch.record.until(counted), replaced),
            Some(WatchedReload { before, good, waiting, .. }) => {
                let number = replaced.number;
                let text = format!("the watch over configuration {number} ends: another reload");
                self.log.write(LogLevel::Notice, &text);
                waiting.into_iter().for_each(|client| client.reply(Err(text.clone())));
                (before, good)
            }
        };
        let (now, counts) = (bolide_io::process::now(), self.service_counts());
        self.reload_watch.record.begin(ServiceCounts::default(), counts.clone(), now.mono);
        let (time, theirs) = (self.config.main.reload_watch, good.config.main.reload_watch);
        if time.is_zero() || theirs.is_zero() {
            self.set_watched_until(0);
            return;
        }
        let (number, seconds) = (self.generation.number, time.as_secs());
        let text = format!("watching configuration {number} for {seconds}s");
        self.log.write(LogLevel::Notice, &text);
        self.set_watched_until(now.unix_seconds() + seconds);
        let until = now.mono.after(time);
        let watched = WatchedReload { until, before, start: counts, good, waiting: Vec::new() };
        self.reload_watch.watched = Some(watched);
    }

    /// The remaining time of the watch.
    pub(super) fn watched_for(&self) -> Option<Duration> {
        let now = bolide_io::process::now().mono;
        self.reload_watch.watched.as_ref().map(|watched| watched.until.since(now))
    }

    /// Lets a command wait for the end of the watch, if there is one.
    pub(super) fn wait_for_watch(&mut self, client: AdminClient) -> Result<(), AdminClient> {
        match &mut self.reload_watch.watched {
            Some(watched) => {
                watched.waiting.push(client);
                Ok(())
            }
            None => Err(client),
        }
    }

    /// Compares the counts of the configuration in force.
    pub(super) fn look_at_service(&mut self, now: Now) {
        if self.config.main.reload_watch.is_zero() || self.life == Life::Ending {
            return;
        }
        let Some(watched) = &self.reload_watch.watched else {
            if self.reload_watch.record.is_due(now.mono) {
                let counts = self.service_counts();
                self.reload_watch.record.turn(counts, now.mono);
            }
            return;
        };
        if self.successor.is_some() {
            return self.end_watch("a new binary serves");
        }
        if self.crew.has_yielded() {
            return self.end_watch("the workers accept no more");
        }
        let counts = self.service_counts();
        let after = counts.since(&watched.start);
        if let Some(worse) = judge(&watched.before, &after) {
            self.take_back(&worse);
        } else if now.mono >= watched.until {
            self.pass(after, counts, now.mono);
        }
    }

    /// Ends the watch, if there is one, without a verdict: the configuration stays.
    pub(super) fn end_watch(&mut self, why: &str) {
        let Some(watched) = self.reload_watch.watched.take() else { return };
        let number = self.generation.number;
        let text = format!("the watch over configuration {number} ends: {why}");
        self.log.write(LogLevel::Notice, &text);
        self.set_watched_until(0);
        watched.waiting.into_iter().for_each(|client| client.reply(Err(text.clone())));
    }

    /// The watch is over, and the configuration stays.
    fn pass(&mut self, after: ServiceCounts, counts: ServiceCounts, now: Instant) {
        let Some(watched) = self.reload_watch.watched.take() else { return };
        let text = format!(
            "configuration {} stays in force: {} of {} requests ended with 5xx, {} of {} \
             handshakes failed",
            self.generation.number,
            after.requests.failed,
            after.requests.all,
            after.handshakes.failed,
            after.handshakes.all,
        );
        self.log.write(LogLevel::Notice, &text);
        self.reload_watch.record.begin(after, counts, now);
        self.set_watched_until(0);
        for client in watched.waiting {
            client.reply(Ok(format!("{text}\n").into_bytes()));
        }
    }

    /// Puts the last good configuration back in force.
    fn take_back(&mut self, worse: &WorseService) {
        let Some(watched) = self.reload_watch.watched.take() else { return };
        let WatchedReload { before, good, waiting, .. } = watched;
        let LastGood { number: old, config, outline, certificates } = good;
        let bad = self.generation.number;
        let why = format!("configuration {bad} fails more often than configuration {old}: {worse}");
        self.log.write(LogLevel::Alert, &format!("{why}; putting configuration {old} back"));
        let reading = Reading {
            config,
            notices: Vec::new(),
            warnings: Vec::new(),
            files: Vec::new(),
            outline,
        };
        let (result, fate, text) = match self.put_in_force(reading, certificates) {
            Ok(_) => {
                let new = self.generation.number;
                let text = format!("configuration {old} is in force again, as configuration {new}");
                self.log.write(LogLevel::Notice, &text);
                (ReloadResult::TakenBack, "was taken back", format!("{why}; {text}"))
            }
            Err(texts) => {
                texts.iter().for_each(|text| self.log.write(LogLevel::Emerg, text));
                let reason = texts.first().map_or("an address is in use", String::as_str);
                let text = format!(
                    "configuration {old} cannot be put back in force, configuration {bad} stays: \
                     {reason}"
                );
                self.log.write(LogLevel::Alert, &text);
                (ReloadResult::Stuck, "fails and cannot be taken back", format!("{why}; {text}"))
            }
        };
        let (now, counts) = (bolide_io::process::now().mono, self.service_counts());
        self.reload_watch.record.begin(before, counts, now);
        self.count_reload(result, std::slice::from_ref(&text));
        self.manager.ready(&format!("Serving; the last reload {fate}: {worse}"));
        for client in waiting {
            client.reply(Err(text.clone()));
        }
    }

    fn set_watched_until(&self, until: u64) {
        self.shared.figures.process().reloads.watched_until = until;
    }

    pub(super) fn service_counts(&self) -> ServiceCounts {
        ServiceCounts::read(&self.crew.tallies(), &self.shared.figures)
    }
}
