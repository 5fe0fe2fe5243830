//! What time it is for a node of a cluster: the machine's time, or one that a test invents.

use bolide_base::Now;

/// Tells the time.
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
