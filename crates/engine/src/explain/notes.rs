//! What a trial run writes down of its way.

use bolide_conf::SourcePlace;

/// One thing that happened on the way.
#[derive(Clone, Debug)]
pub struct TraceStep {
    /// What, in words.
    pub text: String,
    /// Which line of the configuration made it happen.
    pub place: Option<SourcePlace>,
}

/// What a trial run has written down.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(super) steps: Vec<TraceStep>,
    /// Path and query before an instruction.
    pub(super) before: (Vec<u8>, Vec<u8>),
}
