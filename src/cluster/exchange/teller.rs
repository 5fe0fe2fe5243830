//! Lines of the log, each kind once a minute at most.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::LogLevel;

use crate::control_log::ControlLog;

/// How often the same is said at most.
const TELL: Duration = Duration::from_mins(1);

/// The kinds of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Unreachable,
    /// A reply that should not be.
    Fault,
    /// A record that is foreign or damaged.
    Record,
    /// Such a record was replaced.
    Replaced,
    /// Certificates are not shared.
    Certificates,
    /// Limits are not shared.
    Limits,
    /// A report of limits that is foreign or damaged.
    LimitRecord,
    /// One that was heard before, or is of another time.
    LimitTime,
}

/// What writes the lines.
#[derive(Debug, Default)]
pub(super) struct Teller {
    log: Mutex<Option<Arc<ControlLog>>>,
    told: Mutex<Vec<(Topic, Instant)>>,
    /// What was said once.
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

    /// Logs what is said once in the life of the process.
    pub(super) fn once(&self, text: &'static str) {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        if !once.contains(&text) {
            once.push(text);
            drop(once);
            self.say(LogLevel::Notice, text);
        }
    }

    /// Logs, unless something of the kind was said a moment ago.
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
