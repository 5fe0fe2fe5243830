//! Configurations that are no longer in force, kept until the last worker has dropped them.
//!
//! Freeing what ten thousand servers left takes the time of many turns, so the control thread must
//! do it. Easiest to break: everything that a worker may hold apart from its generation needs a
//! list of its own here.

use std::sync::Arc;

use bolide_conf::model::Config;
use bolide_engine::Site;
use bolide_tls::Acceptor;
use bolide_worker::{Generation, OpenLogs};

/// Objects that workers may still hold.
#[derive(Debug, Default)]
pub(crate) struct Retired {
    generations: Vec<Arc<Generation>>,
    sites: Vec<Arc<Site>>,
    logs: Vec<OpenLogs>,
    acceptors: Vec<Acceptor>,
}

impl Retired {
    /// Keeps a configuration that another one has replaced.
    pub(crate) fn keep(&mut self, generation: Arc<Generation>) {
        self.generations.push(generation);
    }

    /// Keeps log files that others have replaced.
    pub(crate) fn keep_logs(&mut self, logs: OpenLogs) {
        self.logs.push(logs);
    }

    /// The configurations that requests may still use.
    pub(crate) fn configs(&self) -> impl Iterator<Item = &Config> {
        let sites = self.generations.iter().map(|generation| &generation.site).chain(&self.sites);
        sites.map(|site| site.config())
    }

    /// Frees objects that have no other owner. Connections outlive the rest of their configuration
    /// and hold the TLS settings of their handshake. Returns whether a configuration is gone now.
    pub(crate) fn sweep(&mut self) -> bool {
        for generation in std::mem::take(&mut self.generations) {
            match Arc::try_unwrap(generation) {
                Ok(Generation { site, listens, .. }) => {
                    self.sites.push(site);
                    self.acceptors.extend(listens.into_iter().filter_map(|listen| listen.tls));
                }
                Err(held) => self.generations.push(held),
            }
        }
        let before = self.sites.len();
        self.sites.retain(|site| Arc::strong_count(site) > 1);
        let is_gone = self.sites.len() < before;
        self.logs.retain(|logs| Arc::strong_count(logs) > 1);
        self.acceptors.retain(Acceptor::is_in_use);
        is_gone
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::Retired;

    #[test]
    fn objects_held_by_a_worker_are_dropped_here_afterwards() {
        let mut retired = Retired::default();
        let logs = Arc::new(HashMap::new());
        let (worker, gone) = (Arc::clone(&logs), Arc::downgrade(&logs));
        retired.keep_logs(logs);
        retired.sweep();
        drop(worker);
        assert!(gone.upgrade().is_some(), "the worker was not the last one");
        retired.sweep();
        assert!(gone.upgrade().is_none());
    }
}
