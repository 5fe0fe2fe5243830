//! Traces: a thread sends the spans in workers' queues to a collector (OTLP over HTTP), and nothing
//! waits for it.
//!
//! ```text
//!   load (draft) ──▶ next ──settle (in force)──▶ active ──full, interval──▶ sent or kept
//! ```
//!
//! Easiest to break: a replaced configuration still has requests, so its queue is served until
//! nothing holds it.

mod post;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::{Config, LogLevel, Otel};
use bolide_engine::tracing::otlp;
use bolide_engine::tracing::queue::{SpanBatch, SpanBell, SpanLimits, SpanQueue};

use crate::account::{WorkerAccount, spawn_as};
use crate::control_log::ControlLog;
pub(crate) use post::system_authorities;
use post::{Collector, Refusal};

/// The interval of messages about dropped spans, or an unreachable collector.
const REPEAT_INTERVAL: Duration = Duration::from_mins(1);
/// The pause before a refused batch is sent again: at first, doubled each time, and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
/// How long the spans of a replaced configuration are offered to its collector.
const RETIRED: Duration = Duration::from_mins(1);
/// How long spans may delay the end of the process.
const PATIENCE: Duration = Duration::from_secs(2);

/// The exporters of the process, and their thread.
#[derive(Debug, Default)]
pub(crate) struct OtelExport(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    bell: Arc<SpanBell>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The exporter of the configuration in force, if it has one.
    current: Option<Arc<Exporter>>,
    /// The current one, and earlier ones that still have requests or spans.
    active: Vec<Arc<Exporter>>,
    log: Option<Arc<ControlLog>>,
    runs: bool,
    ends: bool,
    is_over: bool,
}

/// The exporter of a draft configuration, if it has one.
#[derive(Debug, Default)]
pub(crate) struct OtelDraft(Option<Arc<Exporter>>);

impl OtelDraft {
    /// The queue for its spans.
    pub(crate) fn queue(&self) -> Option<Arc<SpanQueue>> {
        self.0.as_ref().map(|exporter| exporter.queue.clone())
    }
}

/// The exporter of a configuration.
#[derive(Debug)]
struct Exporter {
    conf: Otel,
    interval: Duration,
    resource: Vec<u8>,
    collector: Collector,
    queue: Arc<SpanQueue>,
    progress: Mutex<Progress>,
}

/// The thread's state of an exporter.
#[derive(Debug, Default)]
struct Progress {
    /// When incomplete batches are sent as well.
    due: Instant,
    /// A refused batch, and when it is sent again.
    kept: Option<(SpanBatch, Instant)>,
    failures: u32,
    /// When failures and drops may be logged again.
    next_failure_line: Instant,
    next_drops_line: Instant,
    dropped: u64,
    /// When the remaining spans of a replaced configuration are dropped.
    retires: Option<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OtelExport {
    /// The exporter of a draft, if it has one; that of the configuration in force if both have the
    /// same settings.
    ///
    /// # Errors
    ///
    /// The CA certificates cannot be read.
    pub(crate) fn load(&self, config: &Config, workers: u16) -> Result<OtelDraft, String> {
        let state = lock(&self.0.state);
        let otel = config.http.as_ref().map(|http| &http.otel);
        let Some((otel, exporter)) =
            otel.and_then(|otel| otel.exporter.as_ref().map(|e| (otel, e)))
        else {
            return Ok(OtelDraft::default());
        };
        let made = match state.current.as_ref().filter(|active| active.conf == *otel) {
            Some(active) => active.clone(),
            None => {
                let limits = SpanLimits {
                    batch_size: exporter.batch_size as usize,
                    batch_count: exporter.batch_count as usize,
                };
                let mut attributes = vec![("service.name".to_owned(), otel.service_name.clone())];
                attributes.extend(otel.resource.iter().cloned());
                Arc::new(Exporter {
                    conf: otel.clone(),
                    interval: exporter.interval,
                    resource: otlp::resource(&attributes),
                    collector: Collector::new(exporter)?,
                    queue: Arc::new(SpanQueue::new(workers.into(), limits, self.0.bell.clone())),
                    progress: Mutex::default(),
                })
            }
        };
        Ok(OtelDraft(Some(made)))
    }

    /// Logs to another file from now on: the old one may have been moved away.
    pub(crate) fn log_to(&self, log: ControlLog) {
        lock(&self.0.state).log = Some(Arc::new(log));
    }

    /// Puts the draft in force. The thread runs as `account`, so that responses of collectors are
    /// parsed without privileges.
    pub(crate) fn settle(
        &self,
        draft: OtelDraft,
        log: ControlLog,
        account: Option<&WorkerAccount>,
    ) {
        let mut state = lock(&self.0.state);
        let log = Arc::new(log);
        state.log = Some(log.clone());
        state.current = draft.0;
        if let Some(next) = state.current.clone() {
            state.active.retain(|active| !Arc::ptr_eq(active, &next));
            state.active.push(next);
        }
        self.0.bell.ring();
        if state.active.is_empty() || state.runs {
            return;
        }
        let (shared, refusing, log_of_thread) = (self.0.clone(), self.0.clone(), log.clone());
        let refused = move |why: &str| {
            log_of_thread.write(LogLevel::Emerg, why);
            // The next reload tries again.
            lock(&refusing.state).runs = false;
        };
        match spawn_as(account, "otel", move || shared.run(), refused) {
            Ok(_) => state.runs = true,
            Err(error) => log.write(LogLevel::Alert, &format!("cannot export spans: {error}")),
        }
    }

    /// Sends the remaining spans, for the last time; a slow collector is not waited for.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.0.state);
        if !state.runs {
            return;
        }
        state.ends = true;
        self.0.bell.ring();
        let wait = self.0.over.wait_timeout_while(state, PATIENCE, |state| !state.is_over);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Shared {
    /// Sends spans until the process ends.
    fn run(&self) {
        loop {
            let (active, log, ends) = {
                let mut state = lock(&self.state);
                let current = state.current.clone();
                let is_current = move |one: &Arc<Exporter>| {
                    current.as_ref().is_some_and(|current| Arc::ptr_eq(one, current))
                };
                let now = bolide_io::process::now().mono;
                // Requests hold the site, which holds the queue.
                state.active.retain(|one| is_current(one) || one.is_held(now));
                let active = state.active.iter().map(|one| (one.clone(), is_current(one)));
                (active.collect::<Vec<_>>(), state.log.clone(), state.ends)
            };
            let now = bolide_io::process::now().mono;
            let mut next = now.after(REPEAT_INTERVAL);
            for (exporter, is_current) in &active {
                exporter.work(ends || !is_current, ends, log.as_deref());
                next = next.min(exporter.next_due());
            }
            if ends {
                lock(&self.state).is_over = true;
                self.over.notify_all();
                return;
            }
            let now = bolide_io::process::now().mono;
            self.bell.wait(next.since(now).max(Duration::from_millis(1)));
        }
    }
}

impl Exporter {
    /// Whether requests may still add spans, or some are left that the collector may accept: it is
    /// not retried for ever.
    fn is_held(&self, now: Instant) -> bool {
        if Arc::strong_count(&self.queue) > 1 {
            return true;
        }
        let mut progress = lock(&self.progress);
        let until = *progress.retires.get_or_insert(now.after(RETIRED));
        now < until && (progress.kept.is_some() || self.queue.waiting() > 0)
    }

    fn next_due(&self) -> Instant {
        let progress = lock(&self.progress);
        // A paused queue is not checked before the next attempt.
        match &progress.kept {
            Some((_, at)) => *at,
            None if self.queue.closed() > 0 => Instant::default(),
            None => progress.due,
        }
    }

    /// Sends what is due.
    fn work(&self, everything: bool, ends: bool, log: Option<&ControlLog>) {
        let mut progress = lock(&self.progress);
        let now = bolide_io::process::now().mono;
        if everything || now >= progress.due {
            self.queue.close_batches(everything);
            progress.due = now.after(self.interval);
        }
        let write_log = |level: LogLevel, text: &str| {
            if let Some(log) = log {
                log.write(level, text);
            }
        };
        // Later spans belong to the next batches, so that this ends.
        for _ in 0..=self.queue.closed() {
            let now = bolide_io::process::now().mono;
            let batch = match progress.kept.take() {
                Some((batch, at)) if !ends && now < at => {
                    progress.kept = Some((batch, at));
                    break;
                }
                Some((batch, _)) => batch,
                None => match self.queue.take() {
                    Some(batch) => batch,
                    None => break,
                },
            };
            let request = otlp::export_request(&self.resource, &batch.bytes);
            let Err(refusal) = self.collector.post(&request) else {
                progress.failures = 0;
                continue;
            };
            let now = bolide_io::process::now().mono;
            let Refusal { why, is_final, after } = refusal;
            if now >= progress.next_failure_line {
                progress.next_failure_line = now.after(REPEAT_INTERVAL);
                write_log(
                    LogLevel::Error,
                    &format!("OTel export failure: {why}, {}", self.collector),
                );
            }
            if is_final || ends {
                self.queue.drop_batch(&batch);
                continue;
            }
            let pause = RETRY.0.saturating_mul(1 << progress.failures.min(7));
            let pause = after.unwrap_or_default().max(pause).min(RETRY.1);
            progress.failures += 1;
            progress.kept = Some((batch, now.after(pause)));
            break;
        }
        progress.dropped += self.queue.take_dropped();
        let now = bolide_io::process::now().mono;
        if progress.dropped > 0 && (ends || now >= progress.next_drops_line) {
            progress.next_drops_line = now.after(REPEAT_INTERVAL);
            let dropped = std::mem::take(&mut progress.dropped);
            let text = format!("OTel: {dropped} spans were dropped, {}", self.collector);
            write_log(LogLevel::Warn, &text);
        }
    }
}
