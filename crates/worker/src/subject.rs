//! A connection as log lines need it.

use std::sync::Arc;

use bolide_engine::ConnInfo;

use crate::generation::Generation;

/// A connection for log lines, with the configuration that it uses: the index of its listen, and
/// the logs, belong to that.
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

    /// The configuration that the index of its listen belongs to.
    pub(crate) fn generation(&self) -> &Generation {
        &self.generation
    }
}
