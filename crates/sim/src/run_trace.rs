//! The trace of a run, line by line. The same seed must produce the same bytes.

use std::fmt::Write as _;

/// Whether the trace is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceMode {
    /// Every line.
    On,
    /// Nothing, for runs of many seeds.
    Off,
}

/// The trace of a run.
#[derive(Debug)]
pub struct RunTrace {
    trace_mode: TraceMode,
    text: String,
}

impl RunTrace {
    /// An empty trace.
    #[must_use]
    pub const fn new(trace_mode: TraceMode) -> Self {
        Self { trace_mode, text: String::new() }
    }

    /// Adds a line; `line` is called only if the trace is recorded.
    pub fn line(&mut self, nanos: u64, line: impl FnOnce() -> String) {
        if self.trace_mode == TraceMode::On {
            let (seconds, micros) = (nanos / 1_000_000_000, nanos / 1000 % 1_000_000);
            // Writing to a string never fails.
            let _ = writeln!(self.text, "{seconds:4}.{micros:06} {}", line());
        }
    }

    /// All lines so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The length and the first bytes of a body, for the trace and for messages.
#[must_use]
pub fn excerpt(bytes: &[u8]) -> String {
    let client_cert = &bytes[..bytes.len().min(60)];
    let rest = if client_cert.len() < bytes.len() { "…" } else { "" };
    format!("{} \"{}{rest}\"", bytes.len(), client_cert.escape_ascii())
}
