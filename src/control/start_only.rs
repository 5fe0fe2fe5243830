//! Directives that only a start obeys: workers are threads that a reload keeps, with the account
//! and the limits of the start. A reload says so.

use std::sync::Arc;

use bolide_conf::model::{Config, Main};

use super::ControlThread;
use crate::{account, assemble};

/// What a start has read, by directive.
#[derive(Debug)]
pub(super) struct StartOnly([(&'static str, String); 6]);

impl StartOnly {
    pub(super) fn of(main: &Main) -> Self {
        Self([
            ("worker_rlimit_nofile", format!("{:?}", main.worker_rlimit_nofile)),
            ("worker_rlimit_core", format!("{:?}", main.worker_rlimit_core)),
            ("worker_priority", main.worker_priority.to_string()),
            ("worker_cpu_affinity", format!("{:?}", main.worker_cpu_affinity)),
            ("working_directory", format!("{:?}", main.working_directory)),
            ("env", format!("{:?}", main.env)),
        ])
    }

    /// The directives that are others in `new`.
    fn changed(&self, new: &Self) -> Vec<&'static str> {
        let pairs = self.0.iter().zip(&new.0);
        pairs.filter(|(old, new)| old != new).map(|(_, (name, _))| *name).collect()
    }
}

impl ControlThread<'_> {
    /// Has a new configuration use the account that the workers have; returns warnings about all
    /// directives that a reload does not obey.
    ///
    /// # Errors
    ///
    /// In nginx's words: there is no such account.
    pub(super) fn keep_start(&self, config: &mut Arc<Config>) -> Result<Vec<String>, Vec<String>> {
        let mut changed = self.start_only.changed(&StartOnly::of(&config.main));
        if account::account(config)? != self.account {
            changed.insert(0, "user");
            let main = &mut Arc::make_mut(config).main;
            main.user.clone_from(&self.config.main.user);
            main.group.clone_from(&self.config.main.group);
        }
        let memory = assemble::store_memory(config);
        if self.shared.store.get().is_some_and(|store| store.stats().bytes_max != memory) {
            changed.push("page_cache_memory");
        }
        let warning = |name: &str| {
            format!(
                "\"{name}\" has changed, but a reload keeps what is in use; an upgrade (USR2, then \
                 QUIT to the old process) or a restart changes it"
            )
        };
        let mut warnings: Vec<String> = changed.into_iter().map(warning).collect();
        let (wanted, workers) = (assemble::worker_count(config), self.crew.size());
        if wanted != workers {
            warnings.push(format!(
                "\"worker_processes\" asks for {wanted} workers, but a reload keeps the {workers} \
                 there are; an upgrade (USR2, then QUIT to the old process) or a restart changes \
                 their number"
            ));
        }
        Ok(warnings)
    }
}
