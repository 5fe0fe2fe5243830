//! Log lines with a rate limit: each kind at most once a minute.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::LogLevel;

use crate::control_log::ControlLog;

/// The interval of equal messages.
const TELL: Duration = Duration::from_mins(1);

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
pub(super) struct Teller {
    log: Mutex<Option<Arc<ControlLog>>>,
    told: Mutex<Vec<(Topic, Instant)>>,
    /// Messages that are logged once.
    once: Mutex<Vec<&'static str>>,
}

impl Teller {
    pub(super) fn log_to(&self, log: ControlLog) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(log));
    }

    pub(super) fn say(&self, level: LogLevel, text: &str) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        log.into_iter().for_each(|log| log.write(level, text));
    }

    /// Logs a message once in the life of the process.
    pub(super) fn once(&self, text: &'static str) {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        if !once.contains(&text) {
            once.push(text);
            drop(once);
            self.say(LogLevel::Notice, text);
        }
    }

    /// Logs, unless a message of this kind was logged recently.
    pub(super) fn tell(&self, topic: Topic, level: LogLevel, text: &str) {
        let now = bolide_io::process::now().mono;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match told.iter_mut().find(|(other, _)| *other == topic) {
            Some((_, again)) if now < *again => return,
            Some((_, again)) => *again = now.after(TELL),
            None => told.push((topic, now.after(TELL))),
        }
        drop(told);
        self.say(level, text);
    }
}
