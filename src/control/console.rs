//! Orders of consoles: reloads and restarts here, purges by a thread of the admin office.

use std::fmt::Write as _;

use bolide_conf::model::LogLevel;
use bolide_engine::console::{ConsoleAction, ConsoleOutcome};
use bolide_worker::ConsoleOrder;

use super::ControlThread;
use crate::admin::AdminClient;
use crate::admin::line_protocol::Words;
use crate::php::PhpDesk;

/// The token of their bell, which no process of a pool has.
pub(super) const ORDERS: u64 = u64::MAX;

impl ControlThread<'_> {
    /// Executes the pending orders of consoles.
    pub(super) fn serve_consoles(&mut self) {
        if !self.console.bell().has_rung() {
            return;
        }
        for ConsoleOrder { action, reply } in self.console.take() {
            let text = format!("a client of the console asks for {}", shown(&action));
            self.log.write(LogLevel::Notice, &text);
            match action {
                ConsoleAction::Reload => reply.send(self.reload_for_console()),
                ConsoleAction::RestartPool(name) => reply.send(self.restart_pool(&name)),
                ConsoleAction::PurgeUrl(_)
                | ConsoleAction::PurgeTag(_)
                | ConsoleAction::PurgeAll => {
                    let (client, words) = (AdminClient::Console(reply), purge(&action));
                    let account = self.account.as_ref();
                    self.command_threads.handle(client, words, &self.generation, account, None);
                }
            }
        }
    }

    fn reload_for_console(&mut self) -> ConsoleOutcome {
        self.reload_if_possible().map_err(|why| format!("The reload was refused: {why}"))?;
        let mut text = format!("Configuration {} is in force.", self.generation.number);
        if let Some(time) = self.watched_for() {
            let _ = write!(text, " It is watched for {} s.", time.as_secs_f64().ceil());
        }
        Ok(text)
    }

    fn restart_pool(&mut self, name: &str) -> ConsoleOutcome {
        let now = bolide_io::process::now().mono;
        let mut desk = PhpDesk { door: &mut self.door, log: &self.log };
        match self.pools.restart_chosen(None, Some(name), now, &mut desk) {
            0 => Err(format!("There is no pool \"{name}\".")),
            _ => Ok(format!("The pool \"{name}\" starts again; its running requests end first.")),
        }
    }
}

fn purge(action: &ConsoleAction) -> Words {
    let mut words = Words::new("cache-purge");
    match action {
        ConsoleAction::PurgeUrl(url) => words.push("url", url),
        ConsoleAction::PurgeTag(tag) => words.push("tag", tag),
        _ => words.push("all", "1"),
    }
    words
}

/// The action for the log; words of clients are escaped.
fn shown(action: &ConsoleAction) -> String {
    match action {
        ConsoleAction::PurgeUrl(url) => format!("a purge of the URL \"{}\"", url.escape_ascii()),
        ConsoleAction::PurgeTag(tag) => format!("a purge of the tag \"{}\"", tag.escape_ascii()),
        ConsoleAction::PurgeAll => "a purge of everything".to_owned(),
        ConsoleAction::Reload => "a reload".to_owned(),
        ConsoleAction::RestartPool(name) => {
            format!("a restart of the pool \"{}\"", name.escape_debug())
        }
    }
}
