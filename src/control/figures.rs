//! The control thread's metrics of the process.

use std::time::Duration;

use bolide_acme::AcmeOrderReport;
use bolide_base::Now;
use bolide_engine::metrics::{ClusterFigures, OrderFigures, PoolFigures, ProcessFigures};

use super::ControlThread;
use crate::admin::line_protocol::Words;
use crate::admin::metrics;
use crate::admin::rollover;
use crate::admin::status::{self, Scene};
use crate::php::{PoolReport, PoolState};

/// The update interval, not counting a tick.
const FIGURES_EVERY: Duration = Duration::from_secs(1);

/// LIMIT: stored errors of a reload, and characters of each.
const ERRORS_MAX: usize = 8;
const ERROR_MAX: usize = 500;

/// The result of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReloadResult {
    Good,
    Refused,
    /// It came into force, and was taken back.
    TakenBack,
    /// More requests fail, and the previous configuration could not be restored.
    Stuck,
}

impl ControlThread<'_> {
    /// Sets the values that do not change.
    pub(super) fn begin_figures(&mut self) {
        let now = bolide_io::process::now();
        self.shared.figures.process().reloads.last_good = now.unix_seconds();
        self.refresh_figures(now);
    }

    /// Updates the values, once per interval.
    pub(super) fn refresh_due_figures(&mut self, now: Now) {
        let is_due = now.mono.since(self.figures_refreshed) >= FIGURES_EVERY;
        if is_due && self.generation.site.serves_metrics() {
            self.refresh_figures(now);
        }
    }

    /// The server's state for a command, if it needs it.
    pub(super) fn scene_for(&mut self, words: &Words) -> Option<Scene> {
        match &*words.command {
            rollover::COMMAND => {}
            status::COMMAND | metrics::COMMAND => self.refresh_figures(bolide_io::process::now()),
            _ => return None,
        }
        let figures = self.shared.figures.process();
        let fate = if figures.reloads.was_taken_back { "was taken back" } else { "failed" };
        let why = figures.reload_errors.first().filter(|_| figures.reloads.has_failed);
        let reload_failure = why.map(|why| format!("{fate}: {why}"));
        drop(figures);
        Some(Scene {
            generation: self.generation.number,
            watched_for: self.watched_for(),
            reload_failure,
            crew: self.crew.members(),
            pools: self.pools.reports(),
            orders: self.shared.tls.issued.report(),
            accounts: self.shared.tls.issued.accounts(),
        })
    }

    /// Counts a reload, and stores the first of its `errors`.
    pub(super) fn count_reload(&mut self, result: ReloadResult, errors: &[String]) {
        let now = bolide_io::process::now();
        let mut figures = self.shared.figures.process();
        let reloads = &mut figures.reloads;
        match result {
            ReloadResult::Good => {
                reloads.good += 1;
                reloads.last_good = now.unix_seconds();
            }
            ReloadResult::Refused => {
                reloads.failed += 1;
                reloads.last_failed = now.unix_seconds();
            }
            ReloadResult::TakenBack | ReloadResult::Stuck => {
                reloads.taken_back += u64::from(result == ReloadResult::TakenBack);
                reloads.last_failed = now.unix_seconds();
                reloads.watched_until = 0;
            }
        }
        reloads.has_failed = result != ReloadResult::Good;
        reloads.was_taken_back = result == ReloadResult::TakenBack;
        let kept = errors.iter().take(ERRORS_MAX);
        figures.reload_errors = kept.map(|text| text.chars().take(ERROR_MAX).collect()).collect();
        drop(figures);
        self.refresh_figures(now);
    }

    /// Updates all values.
    fn refresh_figures(&mut self, now: Now) {
        self.figures_refreshed = now.mono;
        // Slow queries come before the lock.
        let pools = self.pools.reports().iter().map(pool).collect();
        let mut certificates = self.certificate_ends.files();
        certificates.extend(self.shared.tls.issued.ends(&self.config));
        let acme = self.shared.tls.issued.figures(now);
        let orders = self.shared.tls.issued.report().into_iter().map(order).collect();
        let mut found =
            ProcessFigures { pools, certificates, acme, orders, ..ProcessFigures::default() };
        found.configuration = self.generation.number;
        found.cluster = self.shared.cluster.status().map(|status| ClusterFigures {
            is_connected: status.connected.is_some(),
            sent: status.sent,
            received: status.received,
            waiting: status.waiting,
            losses: status.losses,
            objects: status.objects,
        });
        look(&mut found);
        let mut figures = self.shared.figures.process();
        (found.reloads, found.stalls) = (figures.reloads, figures.stalls);
        found.reload_errors = std::mem::take(&mut figures.reload_errors);
        *figures = found;
    }
}

/// Queries the kernel.
fn look(figures: &mut ProcessFigures) {
    figures.pid = std::process::id();
    let usage = bolide_io::process::usage();
    figures.cpu_seconds = usage.map(|usage| usage.cpu_seconds);
    figures.virtual_bytes = usage.map(|usage| usage.virtual_bytes);
    figures.started = usage.map_or(0.0, |usage| usage.started);
    figures.resident_bytes = bolide_io::process::resident_bytes();
    (figures.descriptors_max, _) = bolide_io::process::open_files();
    // The count itself takes a descriptor: a failure means that none is left.
    figures.descriptors = bolide_io::process::descriptors().unwrap_or(figures.descriptors_max);
}

fn pool(report: &PoolReport) -> PoolFigures {
    PoolFigures {
        name: report.name.clone(),
        is_up: matches!(report.state, PoolState::Running | PoolState::Idle),
        state: report.state.word(),
        pid: report.pid,
        seconds: report.seconds,
        children: report.children as u64,
        children_max: report.children_max.into(),
        ended: report.ended,
        finishing: report.finishing as u64,
    }
}

fn order(report: AcmeOrderReport) -> OrderFigures {
    let AcmeOrderReport { names, issuer, expires, next_attempt, .. } = report;
    let AcmeOrderReport { is_ordering, last_error, failures, revoked, .. } = report;
    let revoked = revoked.map(|revoked| revoked.revocation.reason_words());
    OrderFigures {
        names,
        issuer,
        expires,
        next_attempt,
        is_ordering,
        failures,
        last_error,
        revoked,
    }
}
