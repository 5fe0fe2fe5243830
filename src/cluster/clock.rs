//! The clock of a node: the machine's, or a test's.

use bolide_base::Now;

/// The clock.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeClock {
    #[cfg(test)]
    invented: Option<std::sync::Arc<super::sim::InventedClock>>,
}

impl NodeClock {
    #[cfg(test)]
    pub(super) const fn invented(clock: std::sync::Arc<super::sim::InventedClock>) -> Self {
        Self { invented: Some(clock) }
    }

    /// The time.
    pub(super) fn now(&self) -> Now {
        #[cfg(test)]
        if let Some(clock) = &self.invented {
            return clock.now();
        }
        bolide_io::process::now()
    }
}
