//! Errors in a configuration, in nginx's words and with their places.

use std::fmt;

use crate::model::{LogLevel, SourcePlace};

/// One message about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How grave it is.
    pub level: LogLevel,
    /// The text, without its place.
    pub message: String,
    /// Where it was found; `None` for an error that appears only once everything is read.
    pub place: Option<SourcePlace>,
    /// A suggestion; never part of nginx's line.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A message of `level`.
    #[must_use]
    pub fn new(level: LogLevel, message: impl Into<String>, place: Option<SourcePlace>) -> Self {
        Self { level, message: message.into(), place, help: None }
    }

    /// Whether the configuration cannot be used.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.level <= LogLevel::Crit
    }
}

impl fmt::Display for Diagnostic {
    /// nginx's form: `TEXT in FILE:LINE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.place {
            None => Ok(()),
            Some(place) => write!(f, " in {place}"),
        }
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str("command line");
        }
        write!(f, "{}:{}", self.file, self.line)
    }
}
