//! The clock of a node: the machine's, or a test's.

use bolide_base::Now;

/// The clock.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeClock {
    #[cfg(test)]
    simulated: Option<std::sync::Arc<super::sim::SimulatedClock>>,
}

impl NodeClock {
    #[cfg(test)]
    pub(super) const fn simulated(clock: std::sync::Arc<super::sim::SimulatedClock>) -> Self {
        Self { simulated: Some(clock) }
    }

    /// The time.
    pub(super) fn now(&self) -> Now {
        #[cfg(test)]
        if let Some(clock) = &self.simulated {
            return clock.now();
        }
        bolide_io::process::now()
    }
}
