//! A connection that something is logged about.

use std::sync::Arc;

use bolide_engine::ConnInfo;

use crate::generation::Generation;

/// A connection that something is logged about, and the configuration that it goes by: what it
/// listens on has its number and its logs there.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    info: Box<ConnInfo>,
    generation: Arc<Generation>,
}

impl Subject {
    pub(crate) fn of(info: &ConnInfo, generation: &Arc<Generation>) -> Self {
        debug_assert!(
            info.listen < generation.listens.len(),
            "a connection came in where its configuration listens"
        );
        Self { info: Box::new(info.clone()), generation: generation.clone() }
    }

    pub(crate) fn info(&self) -> &ConnInfo {
        &self.info
    }

    /// The configuration in which the number of its listen means something.
    pub(crate) fn generation(&self) -> &Generation {
        &self.generation
    }
}
