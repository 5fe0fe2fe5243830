//! The record of a trial run.

use bolide_conf::SourcePlace;

/// One recorded step.
#[derive(Clone, Debug)]
pub struct TraceStep {
    /// Its text.
    pub text: String,
    /// The line of the configuration that caused it.
    pub place: Option<SourcePlace>,
}

/// The record of a trial run.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(super) steps: Vec<TraceStep>,
    /// Path and query before the current instruction.
    pub(super) before: (Vec<u8>, Vec<u8>),
}
