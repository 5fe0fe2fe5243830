//! Log lines with a rate limit: each kind at most once a minute.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::LogLevel;

use crate::control_log::ControlLog;

/// The interval of equal messages.
const REPEAT_INTERVAL: Duration = Duration::from_mins(1);

/// The kinds of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Unreachable,
    /// An unexpected reply.
    Fault,
    /// A foreign or corrupt record.
    Record,
    /// Such a record was replaced.
    Replaced,
    /// Certificates are not shared.
    Certificates,
    /// Limits are not shared.
    Limits,
    /// A foreign or corrupt report of limits.
    LimitRecord,
    /// A report that was received before, or is too old.
    LimitTime,
}

/// Writes the lines.
#[derive(Debug, Default)]
pub(super) struct ExchangeLog {
    log: Mutex<Option<Arc<ControlLog>>>,
    logged: Mutex<Vec<(Topic, Instant)>>,
    /// Messages that are logged once.
    once: Mutex<Vec<&'static str>>,
}

impl ExchangeLog {
    pub(super) fn set_target(&self, log: ControlLog) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(log));
    }

    pub(super) fn write(&self, level: LogLevel, text: &str) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        log.into_iter().for_each(|log| log.write(level, text));
    }

    /// Logs a message once in the life of the process.
    pub(super) fn write_once(&self, text: &'static str) {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        if !once.contains(&text) {
            once.push(text);
            drop(once);
            self.write(LogLevel::Notice, text);
        }
    }

    /// Logs, unless a message of this kind was logged recently.
    pub(super) fn write_limited(&self, topic: Topic, level: LogLevel, text: &str) {
        let now = bolide_io::process::now().mono;
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        match logged.iter_mut().find(|(other, _)| *other == topic) {
            Some((_, again)) if now < *again => return,
            Some((_, again)) => *again = now.after(REPEAT_INTERVAL),
            None => logged.push((topic, now.after(REPEAT_INTERVAL))),
        }
        drop(logged);
        self.write(level, text);
    }
}
