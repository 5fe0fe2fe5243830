//! The log of a run, line by line. The same seed must produce the same bytes.

use std::fmt::Write as _;

/// Whether the story is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Every line.
    Aloud,
    /// Nothing; for runs of many seeds.
    Silent,
}

/// A transcript in the making.
#[derive(Debug)]
pub struct ScenarioLog {
    telling: Telling,
    text: String,
}

impl ScenarioLog {
    /// An empty story.
    #[must_use]
    pub const fn new(telling: Telling) -> Self {
        Self { telling, text: String::new() }
    }

    /// Tells one line; `line` is only made for a listener.
    pub fn tell(&mut self, nanos: u64, line: impl FnOnce() -> String) {
        if self.telling == Telling::Aloud {
            let (seconds, micros) = (nanos / 1_000_000_000, nanos / 1000 % 1_000_000);
            // A string takes whatever is written to it.
            let _ = writeln!(self.text, "{seconds:4}.{micros:06} {}", line());
        }
    }

    /// All lines so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The first bytes of something, readable.
#[must_use]
pub fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(60)];
    let rest = if shown.len() < bytes.len() { "…" } else { "" };
    format!("{} \"{}{rest}\"", bytes.len(), shown.escape_ascii())
}
